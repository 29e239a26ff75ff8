"""Presets: paths of the target that show how methods differ, computed for the robot at hand.

The path through a singularity is that of ``benchmarks/choosing.py``: from a singular configuration
to and fro along the direction that is lost there, with a cosine in time. Among many singular
configurations the one is taken on which bare steps of the methods differ most.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.analysis import LENGTH
from dls_ik.model.robot import RobotModel
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Task, Tasks, checked_tasks
from dls_ik.viewer.source import STEP, bare_stepper, task_errors

if TYPE_CHECKING:
    from dls_ik.scene.snapshot import SceneSnapshot
    from dls_ik.scene.srdf import Pair

REST = 1.0  # [s] at each end
RESTARTS, PATIENCE = 10, 10.0  # of solvers; [s], which does not decide
POSE_ROWS = 6
FOLLOWER = "dls"


class Preset(NamedTuple):
    """A closed path of the target, and methods to compare on it."""

    title: str
    watch: str  # one sentence: what to look at
    methods: tuple[str, ...]
    start: Array  # (n,) of the arms [rad or m]
    Ts: Array  # (m, 4, 4) poses T_base_tip at equal times, the last one as the first
    period: float  # [s]
    bare: bool = True  # whether steps are bare, or within the limits of the controller

    def pose(self, time: float) -> Array:
        """Return the target (4, 4) at a time since the beginning [s]."""
        share = (time % self.period) / self.period * (len(self.Ts) - 1)
        i = min(int(share), len(self.Ts) - 2)
        T: Array = moved(self.Ts[i], difference(self.Ts[i], self.Ts[i + 1]) * (share - i))
        return T


def make_presets(robot: RobotModel, start: Array, task: Tasks = None) -> tuple[Preset, ...]:
    """Make the presets that suit a robot with one tip; takes about a second.

    Args:
        start: (n,) joint values where the arm moves well.
    """
    if len(robot.tips) > 1:
        return ()
    arm = _Arm(robot, checked_tasks(robot, task)[0], start)
    return tuple(filter(None, (through_singularity(arm), out_of_reach(arm), into_limit(arm))))


def pair_in_the_way(
    robot: RobotModel, preset: Preset, world: SceneSnapshot, task: Tasks = None
) -> Pair | None:
    """Return the first pair that collides where an arm follows a preset; None: none does.

    Presets are computed without obstacles, as the robot alone moves.
    """
    stepper = bare_stepper(robot, FOLLOWER, preset.start, task)
    Ts = np.array([preset.pose(time) for time in np.arange(STEP, preset.period, STEP)])
    q = np.concatenate([preset.start[None], stepper.run(Ts, len(Ts)).q])
    colliding = np.flatnonzero(world.in_collision(q))
    return world.colliding_pair(q[colliding[0]]) if len(colliding) else None


class _Arm(NamedTuple):
    """A robot, its task, and joint values (n,) where it moves well."""

    robot: RobotModel
    task: Task
    start: Array

    def jacobians(self, q: Array) -> Array:
        """Compute scaled Jacobians (b, r, n) of the rows of the task at q (b, n)."""
        J = self.robot.jacobian(q)[:, :POSE_ROWS].copy()
        J[:, 3:] *= LENGTH
        if self.task.frame == "target":
            Rt = self.robot.fk(q)[:, :3, :3].swapaxes(1, 2)
            J[:, :3], J[:, 3:] = Rt @ J[:, :3], Rt @ J[:, 3:]
        rows = ["xyz".index(axis) for axis in self.task.position]
        rows += [3 + "xyz".index(axis) for axis in self.task.rotation]
        return J[:, rows]

    @property
    def has_joint_to_spare(self) -> bool:
        """Whether the arm has more joints than its tip has independent motions."""
        q = self.robot.random(np.random.default_rng(0), 20)
        return self.robot.n > _rank(self.jacobians(q))

    @property
    def size(self) -> float:
        """Farthest distance of the tip from the middle of where it gets [m]."""
        return _reach(self.robot)[1]


def _rank(J: Array) -> int:
    """Return the largest rank of matrices (b, r, n)."""
    s = np.asarray(np.linalg.svd(J, compute_uv=False), np.float64)
    return int((s > 1e-6 * s[:, :1]).sum(axis=1).max())


def _reach(robot: RobotModel) -> tuple[Array, float]:
    """Return the middle (3,) of where the tip gets, and how far it gets from there [m]."""
    tips = robot.fk(robot.random(np.random.default_rng(REACH_SEED), REACH_SAMPLES))[:, :3, 3]
    middle = 0.5 * (tips.min(axis=0) + tips.max(axis=0))
    return middle, float(np.linalg.norm(tips - middle, axis=1).max())


def _there_and_back(Ts: Array, duration: float) -> tuple[Array, float]:
    """Return a closed path along poses (m, 4, 4), with rests, and its period [s].

    Args:
        duration: one way [s].
    """
    rests = round(REST * (len(Ts) - 1) / duration)
    path = [Ts[:1]] * rests + [Ts] + [Ts[-1:]] * rests + [Ts[-2::-1]]
    closed = np.concatenate(path)
    return closed, (len(closed) - 1) * duration / (len(Ts) - 1)


# Start: away from singularities and limits, the tip in front, all links above the floor

START_SAMPLES, TRIED_STARTS, START_SEED = 400, 500, 7
ON_FLOOR = 1e-3  # [m]


def start_configuration(
    robot: RobotModel, clearance: Callable[[Array], Array] | None = None
) -> Array:
    """Return joint values (n,) [rad or m] where the arm moves well; the same ones each time.

    Args:
        clearance: least height of each moving link (k,) above the floor [m] at joint values (n,).
            The best configuration is taken with all links above it that can be; else the highest.
    """
    lower, upper = robot.finite_limits()
    middle = np.where(robot.limited, 0.5 * (lower + upper), 0.0)
    spread = 0.3 * np.minimum(upper - lower, np.pi)
    rng = np.random.default_rng(START_SEED)
    near = middle + spread * rng.uniform(-1.0, 1.0, (START_SAMPLES, robot.n))
    q = robot.clip(np.concatenate([near, robot.random(rng, START_SAMPLES)]))
    x = robot.fk(q).reshape(len(q), -1, 4, 4)[:, 0, 0, 3]
    front: Array = (x - x.min()) / max(float(np.ptp(x)), 1e-9)
    J = robot.jacobian(q)
    s = np.asarray(np.linalg.svd(J, compute_uv=False), np.float64)
    merit = s[:, _rank(J) - 1] * (0.2 + front)
    merit[START_SAMPLES:] *= 0.1  # only where none near the middle is above the floor
    order = np.argsort(-merit)
    if clearance is None:
        return np.asarray(q[order[0]])
    tried = order[:TRIED_STARTS]
    heights = np.array([clearance(q[i]) for i in tried])
    attainable = np.minimum(heights.max(axis=0), 0.0)  # a base in the floor stays there
    lowest = np.minimum((heights - attainable).min(axis=1), -ON_FLOOR)  # those above are equal
    return np.asarray(q[tried[np.argmax(lowest)]])


# Through a singularity

METHODS = ("jp", "dls", "svf+sd", "sdls+clamp")
HINTS = {  # near which a singularity is looked for first: the path of benchmarks/choosing.py
    tuple(f"wam_j{i}" for i in range(1, 8)): (0.3, 0.6, 0.2, 1.6, -math.pi / 2, 0.0, 0.2)
}
STARTS, STARTS_SEED = 16, 5
DESCENT_ROUNDS, DIFFERENCE, LONGEST_STEP = 60, 1e-6, 0.3
SINGULAR = 1e-4  # share of the largest singular value
APART = 0.3  # [rad or m] of joint values of different singularities
TRIED = 6  # singular configurations
TRANSLATION = 0.1  # [m], or of the reach of arms that are much smaller or larger
USUAL_REACH = 0.6, 2.0  # [m]
ROTATION = 0.5  # [rad]
MISSES = (0.03, 0.01)  # [rad or m] of the joints, of paths that pass a singularity closely
BEYOND_REACH = 3e-5, 1e-4, 3e-4, 1e-3  # of the reach, at the end of a path to its edge
SETTLING = 300  # damped steps to the first pose
REACHED = 1e-3  # [m, 0.5 m/rad]
RATIO, PEAK = 2.5, 5.0  # of peak speeds, and [rad/s or m/s] of the first: enough to be shown
CLEAR = 4.0, 10.0  # the same, enough to end the search
WILD = 400.0  # [rad/s or m/s] a faster joint shows no path that an arm follows
FAR_OFF = 0.3  # of the reach: a method that is farther off has lost the path
CROSSING = "crosses a singular configuration along the direction that the tip loses there"
PASSING = "passes a singular configuration closely, along the direction that the tip loses there"
EDGE = (
    "comes to the edge of the reach, where the arm is stretched and singular, and {:.1g} mm beyond"
)
SPARE = "A joint to spare does not help: all joints together lose the direction"
NO_SPARE = "The arm has no joint to spare that could take another way"


class Run(NamedTuple):
    """Bare steps of a method along one period."""

    method: str
    peak: float  # speed of the fastest joint [rad/s or m/s]
    error: float  # largest of the position [m], or of the rotation [rad]


class _LostPath(NamedTuple):
    """A path along the direction that is lost at a singular configuration."""

    words: str  # about the target
    start: Array  # (n,)
    Ts: Array  # (m, 4, 4), STEP [s] apart


def through_singularity(arm: _Arm) -> Preset | None:
    """Choose a path through a singularity on which the methods differ; None if there is none."""
    singular = list(_singular_configurations(arm))
    for make_paths in (_crossings, _edges):
        best: tuple[float, Preset] | None = None
        for q, rank in singular:
            for path in make_paths(arm, q, _lost_motion(arm, q, rank)):
                runs = _runs(arm, path)
                if runs is None or runs[0].peak < PEAK:
                    continue
                ratio = runs[0].peak / max(run.peak for run in runs[1:])
                if ratio >= RATIO and (best is None or ratio > best[0]):
                    best = ratio, _singularity_preset(arm, path, runs)
                if ratio >= CLEAR[0] and runs[0].peak >= CLEAR[1]:
                    return _singularity_preset(arm, path, runs)
        if best is not None:
            return best[1]
    return None


def _singularity_preset(arm: _Arm, path: _LostPath, runs: Sequence[Run]) -> Preset:
    unit = "m/s" if set(arm.robot.units) == {"m"} else "rad/s"
    slow, off = max(run.peak for run in runs[1:]), max(run.error for run in runs[1:])
    is_turning = not np.ptp(path.Ts[:, :3, 3], axis=0).max() > 0.0
    deviation = f"{np.degrees(off):.0f} deg" if is_turning else f"{1e3 * off:.0f} mm"
    watch = (
        f"the target {path.words}. {SPARE if arm.has_joint_to_spare else NO_SPARE}. "
        f"A, the plain pseudoinverse, asks a joint for {runs[0].peak:.3g} {unit} (fastest joint); "
        f"the damped methods ask for {slow:.2g} {unit} at most, and leave the path by up to "
        f"{deviation}."
    )
    period = (len(path.Ts) - 1) * STEP
    return Preset("Through a singularity", watch, METHODS, path.start, path.Ts, period)


def _singular_configurations(arm: _Arm) -> Iterator[tuple[Array, int]]:
    """Yield singular configurations (n,), hints first, and the rank elsewhere."""
    robot, rng = arm.robot, np.random.default_rng(STARTS_SEED)
    rank = _rank(arm.jacobians(robot.random(rng, 50)))
    hint = HINTS.get(robot.joint_names)
    spread = np.linspace(0.1, 1.0, STARTS)[:, None]
    starts = arm.start + spread * (robot.random(rng, STARTS) - arm.start)
    if hint is not None:
        starts = np.concatenate([[hint], starts])
    found: list[Array] = []
    for q in _descend(arm, robot.clip(starts), rank):
        s = np.linalg.svd(arm.jacobians(q[None])[0], compute_uv=False)
        is_new = all(np.abs(q - other).max() > APART for other in found)
        if s[rank - 1] < SINGULAR * s[0] and is_new:
            found.append(q)
            yield q, rank
        if len(found) >= TRIED:
            return


def _descend(arm: _Arm, q: Array, rank: int) -> Array:
    """Descend on the singular value of that number from each of q (b, n), within the limits."""
    n = q.shape[1]
    shifts = DIFFERENCE * np.eye(n)
    for _ in range(DESCENT_ROUNDS):
        U, S, Vt = np.linalg.svd(arm.jacobians(q))
        value, u, v = S[:, rank - 1], U[:, :, rank - 1], Vt[:, rank - 1]
        ahead = arm.jacobians((q[:, None] + shifts).reshape(-1, n))
        behind = arm.jacobians((q[:, None] - shifts).reshape(-1, n))
        slopes = (ahead - behind).reshape(len(q), n, -1, n) / (2.0 * DIFFERENCE)
        g = np.einsum("bi,bkij,bj->bk", u, slopes, v)
        blocked = ((q <= arm.robot.lower) & (g > 0.0)) | ((q >= arm.robot.upper) & (g < 0.0))
        g[blocked] = 0.0
        square = np.maximum((g * g).sum(axis=1), 1e-18)
        length = np.minimum(value / square, LONGEST_STEP / np.sqrt(square))
        q = np.clip(q - length[:, None] * g, arm.robot.lower, arm.robot.upper)
    return q


COSINE = np.cos(np.arange(round(4.0 * math.pi / STEP) + 1) * STEP)  # two laps, 1 rad/s


def _crossings(arm: _Arm, q: Array, lost: Array) -> Iterator[_LostPath]:
    """Yield paths along the motion (6,) lost at a singular q (n,), through it and past it."""
    away = np.random.default_rng(STARTS_SEED).choice((-1.0, 1.0), arm.robot.n)
    for miss in (0.0, *MISSES):
        words, middle = PASSING if miss else CROSSING, q + miss * away
        yield from _path(arm, words, arm.robot.fk(middle), q, COSINE[:, None] * lost)


def _edges(arm: _Arm, q: Array, lost: Array) -> Iterator[_LostPath]:
    """Yield paths to a singular q (n,) at the edge of the reach from inside, and a bit beyond."""
    unit = lost / np.linalg.norm(lost[:3] if lost[:3].any() else lost[3:])
    for share in BEYOND_REACH:
        words = EDGE.format(1e3 * share * arm.size)
        for side in (lost, -lost):
            motion = -(1.0 + COSINE)[:, None] * side
            motion += math.copysign(share * arm.size, float(side @ lost)) * unit
            yield from _path(arm, words, arm.robot.fk(q), q, motion)


def _path(arm: _Arm, words: str, T: Array, q: Array, motion: Array) -> Iterator[_LostPath]:
    """Yield the path of a pose (4, 4) moved by (m, 6), if it can begin near q (n,)."""
    Ts = np.array([moved(T, each) for each in motion])
    start = _start_of(arm, q, Ts[0])
    if start is not None:
        yield _LostPath(words, start, Ts)


def _lost_motion(arm: _Arm, q: Array, rank: int) -> Array:
    """Return the motion (6,) of the tip lost at q (n,): a translation, or else a rotation."""
    J = arm.jacobians(q[None])[0]
    u = np.linalg.svd(J)[0][:, rank - 1]
    axes = [*arm.task.position]
    V = np.zeros(6)
    for row, value in enumerate(u):
        axis = (arm.task.position + arm.task.rotation)[row]
        V[(0 if row < len(axes) else 3) + "xyz".index(axis)] = value
    if arm.task.frame == "target":
        R = arm.robot.fk(q)[:3, :3]
        V[:3], V[3:] = R @ V[:3], R @ V[3:]
    if np.linalg.norm(V[:3]) > 0.3:
        is_usual = USUAL_REACH[0] < arm.size < USUAL_REACH[1]
        length = TRANSLATION * (1.0 if is_usual else arm.size)
        return np.append(length * V[:3] / np.linalg.norm(V[:3]), np.zeros(3))
    return np.append(np.zeros(3), ROTATION * V[3:] / np.linalg.norm(V[3:]))


def _start_of(arm: _Arm, q: Array, T: Array) -> Array | None:
    """Return joint values (n,) at a pose (4, 4), near q (n,) and within the limits, or None."""
    if arm.task == Task():
        solver = IkSolver(arm.robot, solve_type="distance", max_restarts=RESTARTS, timeout=PATIENCE)
        result = solver.solve(T, q)
        return result.q if result.success else None
    away = np.random.default_rng(STARTS_SEED).uniform(-0.05, 0.05, arm.robot.n)
    stepper = bare_stepper(arm.robot, "jc+ed", arm.robot.clip(q + away), arm.task)
    stepper.run(T, SETTLING)
    is_there = float(np.linalg.norm(stepper.error(T))) < REACHED
    return stepper.q if is_there and bool(arm.robot.within_limits(stepper.q)) else None


def _runs(arm: _Arm, path: _LostPath) -> list[Run] | None:
    """Run all methods along a path; None if it cannot be followed."""
    found = []
    for method in METHODS:
        run = run_bare(arm.robot, method, path.start, path.Ts, arm.task)
        if run.peak > WILD or run.error > FAR_OFF * (arm.size if path.Ts[:, :3, 3].any() else 1.0):
            return None
        found.append(run)
    return found


def run_bare(robot: RobotModel, method: str, start: Array, Ts: Array, task: Tasks = None) -> Run:
    """Make a bare step for each pose of a path (m, 4, 4) from joint values (n,)."""
    stepper = bare_stepper(robot, method, start, task)
    q = stepper.run(Ts[1:], len(Ts) - 1).q
    peak = float(np.abs(np.diff(q, axis=0)).max()) / STEP
    is_turning = not np.ptp(Ts[:, :3, 3], axis=0).max() > 0.0
    errors = []
    for k in range(1, len(Ts), 4):
        stepper.q = q[k]
        errors.append(task_errors(stepper.details.task, stepper.error(Ts[k]))[int(is_turning)])
    return Run(method, peak, max(errors))


# Out of reach: straight away from the first joint that turns, farther than the arm is long

REACH_SAMPLES, REACH_SEED, POSES = 4000, 3, 61
STRETCH = 1.2  # times the reach
REACH_WATCH = (
    "all arms stretch after a target that leaves their reach, and an error remains. The stretched "
    "arm is singular: A, the plain pseudoinverse, thrashes about (see the fastest joint), the "
    "damped methods rest at the nearest point and follow again when the target is back."
)


def out_of_reach(arm: _Arm) -> Preset:
    """Move the target from the start outwards along the line from the shoulder, and back."""
    T = arm.robot.fk(arm.start)
    shoulder, reach = _reach(arm.robot)
    away = T[:3, 3] - shoulder
    length = float(np.linalg.norm(away))
    direction = away / length if length > 1e-6 else np.array([1.0, 0.0, 0.0])
    way = np.linspace(0.0, max(STRETCH * reach - length, 0.2 * reach), POSES)
    Ts = np.repeat(T[None], POSES, axis=0)
    Ts[:, :3, 3] += way[:, None] * direction
    return Preset("Out of reach", REACH_WATCH, METHODS, arm.start, *_there_and_back(Ts, 4.0))


# Into a joint limit: poses for which one joint alone would have to pass its limit

BEYOND = (0.35, 0.22, 0.12)  # of its range past the limit, the farthest that others make up for
SAME_POSTURE = 2.0  # [rad or m] a solution farther off is another posture
LIMIT_METHODS = ("jp", "ctp+sd+svf")
LIMIT_WATCH = (
    "joint {joint} comes to its limit (red in the bars), where the controller stops it. A does not "
    "know of limits and is just cut off; B (CTP) holds the joint and moves the others. {rest}."
)
REDUNDANT = "The arm has a joint to spare: its other joints make up for the one that is held"
NOT_REDUNDANT = "No other joints can make up for the one that is held: an error remains"


class _LimitCase(NamedTuple):
    is_reached: bool  # by the other joints
    travel: float  # [m] of the tip
    joint: int
    Ts: Array  # (POSES, 4, 4)


def into_limit(arm: _Arm) -> Preset | None:
    """Choose the joint that moves the tip most, if possible one that others make up for.

    None for a robot without limits.
    """
    robot = arm.robot
    limited = [int(j) for j in np.flatnonzero(robot.limited) if robot.upper[j] > robot.lower[j]]
    if not limited:
        return None
    solver = IkSolver(robot, max_restarts=RESTARTS, timeout=PATIENCE)
    cases = [_limit_case(arm, solver, j, beyond) for j in limited for beyond in BEYOND]
    best = max(cases, key=lambda case: (case.is_reached, case.travel))
    rest = REDUNDANT if best.is_reached else NOT_REDUNDANT
    watch = LIMIT_WATCH.format(joint=robot.joint_names[best.joint], rest=rest)
    path = _there_and_back(best.Ts, 4.0)
    return Preset("Into a joint limit", watch, LIMIT_METHODS, arm.start, *path, bare=False)


def _limit_case(arm: _Arm, solver: IkSolver, j: int, beyond: float) -> _LimitCase:
    """Move joint j past its nearest limit, and ask if the others reach the last pose."""
    robot, q = arm.robot, arm.start
    lower, upper = float(robot.lower[j]), float(robot.upper[j])
    past = beyond * (upper - lower)
    end = lower - past if q[j] - lower < upper - q[j] else upper + past
    qs = np.repeat(q[None], POSES, axis=0)
    qs[:, j] = np.linspace(q[j], end, POSES)
    Ts = robot.fk(qs)
    try:
        result = solver.solve(Ts[-1], seed=q, task=arm.task)
    except DlsIkError:  # a task that the solver has no method for
        return _LimitCase(False, 0.0, j, Ts)
    is_near = float(np.abs(result.q - q).max()) < SAME_POSTURE
    is_reached = arm.has_joint_to_spare and result.success and is_near
    return _LimitCase(is_reached, float(np.linalg.norm(Ts[-1, :3, 3] - Ts[0, :3, 3])), j, Ts)
