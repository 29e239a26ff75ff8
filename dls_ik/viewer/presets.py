"""Targets that move by themselves, computed for whatever robot there is."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.motion import difference, moved
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.solver.solver import IkSolver
from dls_ik.viewer.measures import DEFAULTS

REST = 1.0  # [s] at each end


class Preset(NamedTuple):
    """A path for the target to go along and back again, for two methods to follow."""

    title: str
    watch: str  # one sentence: what to look at
    methods: tuple[str, str]
    start: Array  # (n,) where the arms begin [rad or m]
    Ts: Array  # (m, 4, 4) poses T_base_tip at equal times
    duration: float  # [s] one way

    @property
    def period(self) -> float:
        """After which it begins again [s]."""
        return 2.0 * (self.duration + REST)

    def pose(self, time: float) -> Array:
        """The target (4, 4) at a time since the beginning [s]."""
        share = _to_and_fro(time, self.duration) * (len(self.Ts) - 1)
        leg = min(int(share), len(self.Ts) - 2)
        along = difference(self.Ts[leg], self.Ts[leg + 1]) * (share - leg)
        T: Array = moved(self.Ts[leg], along)
        return T


def _to_and_fro(time: float, duration: float) -> float:
    """From 0 to 1 and back, with a rest at both ends."""
    phase = time % (2.0 * (duration + REST))
    if phase > duration + REST:
        return 1.0 - float(np.clip((phase - duration - 2.0 * REST) / duration, 0.0, 1.0))
    return float(np.clip((phase - REST) / duration, 0.0, 1.0))


def presets_for(robot: RobotModel) -> tuple[Preset, ...]:
    """Those that make sense for a robot; takes some tenths of a second."""
    makers = (through_a_singularity, out_of_reach, into_a_limit)
    return tuple(preset for maker in makers if (preset := maker(robot)) is not None)


# A configuration to begin with: away from singularities and limits
START_TRIED, START_SEED = 400, 7


def comfortable(robot: RobotModel) -> Array:
    """Joint values (n,) [rad or m] where the arm moves well; the same each time."""
    q = _candidates(robot)
    J = robot.jacobian(q)
    J[:, 3:] *= DEFAULTS.rotation_weight
    least = np.linalg.svd(J, compute_uv=False)[:, -1]
    best: Array = q[np.argmax(least * (0.2 + _front(robot, q)))]
    return best


def _candidates(robot: RobotModel) -> Array:
    """(b, n) in the middle of the ranges, and where there is no range about 0."""
    lower, upper = robot.finite_limits()
    middle = np.where(robot.limited, 0.5 * (lower + upper), 0.0)
    spread = 0.3 * np.minimum(upper - lower, np.pi)
    rng = np.random.default_rng(START_SEED)
    return robot.clip(middle + spread * rng.uniform(-1.0, 1.0, (START_TRIED, robot.n)))


def _front(robot: RobotModel, q: Array) -> Array:
    """How much a tip is in front, from 0 to 1 (b,): an arm is seen best so."""
    x = robot.fk(q)[:, 0, 3]
    share: Array = (x - x.min()) / max(float(np.ptp(x)), 1e-9)
    return share


# Through a singularity: poses of a straight motion of the joints across one. All of them can be
# reached, and the joints need not be fast; a method that inverts the Jacobian without damping does
# not know that.
MIDDLES_TRIED, MIDDLES_KEPT, DIRECTIONS, MIDDLES_SEED = 2000, 8, 24, 5
SINGULAR = 0.1  # of the median: a smaller least singular value is as good as none
FARTHEST = 0.75  # [rad or m] of the joints, either way
SINGULARITY_POSES = 121
SINGULARITY_WATCH = (
    "where the least singular value (under Conditioning) falls to zero, the joints of A, the plain "
    "pseudoinverse, twitch (see the fastest joint); B, damped least squares, passes quietly and "
    "pays for it with a little more error."
)


def through_a_singularity(robot: RobotModel) -> Preset | None:
    """A wide motion of the tip, in front of the arm; None for a robot without room for one.

    None too where nothing is singular, as for few joints whose task has six rows.
    """
    rng = np.random.default_rng(MIDDLES_SEED)
    middles = _singular(robot, rng)
    motions = [(middle, way) for middle in middles for way in _ways(robot, rng)]
    if not motions:
        return None
    ways = [_across(robot, *motion) for motion in motions]
    tips = [robot.fk(q[[0, -1]])[:, :3, 3] for q in ways]
    widths = [float(np.linalg.norm(b - a)) + float(a[0] + b[0]) for a, b in tips]
    q = ways[int(np.argmax(widths))]
    if np.abs(q[-1] - q[0]).max() < 0.1:
        return None
    methods = ("jp", "dls")
    return Preset("Through a singularity", SINGULARITY_WATCH, methods, q[0], robot.fk(q), 5.0)


def _singular(robot: RobotModel, rng: np.random.Generator) -> Array:
    """(k, n) the most singular of many configurations away from the limits; or none is."""
    lower, upper = robot.finite_limits()
    q = 0.5 * (lower + upper) + 0.55 * (robot.random(rng, MIDDLES_TRIED) - 0.5 * (lower + upper))
    J = robot.jacobian(q)
    J[:, 3:] *= DEFAULTS.rotation_weight
    least = np.linalg.svd(J, compute_uv=False)[:, min(6, robot.n) - 1]
    kept: Array = robot.clip(q)[np.argsort(least)[:MIDDLES_KEPT]]
    return kept if least.min() < SINGULAR * np.median(least) else kept[:0]


def _ways(robot: RobotModel, rng: np.random.Generator) -> Array:
    """(DIRECTIONS, n) directions, the largest entry being 1."""
    d = rng.normal(size=(DIRECTIONS, robot.n))
    ways: Array = d / np.abs(d).max(axis=1, keepdims=True)
    return ways


def _across(robot: RobotModel, middle: Array, direction: Array) -> Array:
    """(m, n) as far either way as the limits let it."""
    room = np.minimum(middle - robot.lower, robot.upper - middle)
    with np.errstate(divide="ignore"):
        reach = min(FARTHEST, 0.8 * float((room / np.abs(direction)).min()))
    steps: Array = middle + np.linspace(-reach, reach, SINGULARITY_POSES)[:, None] * direction
    return steps


# Out of reach: straight away from the first joint that turns, farther than the arm is long
REACH_SAMPLES, REACH_SEED, POSES = 4000, 3, 61
STRETCH = 1.2  # times the distance that was reached
REACH_WATCH = (
    "both arms stretch after a target that leaves their reach: the condition number shoots up and "
    "an error remains; the joints of A, without damping, are the faster and more restless ones, "
    "and both follow again when the target is back."
)


def out_of_reach(robot: RobotModel) -> Preset:
    """From where the arm moves well, out along the line from its shoulder, and back."""
    q = comfortable(robot)
    T = robot.fk(q)
    shoulder, reach = _shoulder(robot)
    away = T[:3, 3] - shoulder
    length = float(np.linalg.norm(away))
    direction = away / length if length > 1e-6 else np.array([1.0, 0.0, 0.0])
    way = np.linspace(0.0, max(STRETCH * reach - length, 0.2 * reach), POSES)
    Ts = np.repeat(T[None], POSES, axis=0)
    Ts[:, :3, 3] += way[:, None] * direction
    return Preset("Out of reach", REACH_WATCH, ("jp", "dls"), q, Ts, 4.0)


def _shoulder(robot: RobotModel) -> tuple[Array, float]:
    """A point (3,) that the tip stays about, and how far from it the tip came [m]."""
    tips = robot.fk(robot.random(np.random.default_rng(REACH_SEED), REACH_SAMPLES))[:, :3, 3]
    middle = 0.5 * (tips.min(axis=0) + tips.max(axis=0))
    return middle, float(np.linalg.norm(tips - middle, axis=1).max())


# Into a joint limit: poses that one joint alone would have to pass its limit for
BEYOND = (0.35, 0.22, 0.12)  # of its range, past the limit: as far as the others make up for it
ATTEMPTS = 10
NEAR = 2.0  # [rad or m] that a joint may have to go: a solution farther off is another posture
LIMIT_WATCH = (
    "joint {joint} comes to its limit (red in the bars) and stops there; {rest}: A does not know "
    "of limits and is just cut off, B (CTP) holds the joint and moves the others instead."
)
REDUNDANT = "the other joints could make up for it"
NOT_REDUNDANT = "the others cannot quite make up for it"


class _Case(NamedTuple):
    joint: int
    Ts: Array  # (POSES, 4, 4)
    is_reached: bool  # by the others
    travel: float  # [m] of the tip


def into_a_limit(robot: RobotModel) -> Preset | None:
    """For the joint that moves the tip most, of those that others make up for, if there are any.

    None for a robot without limits.
    """
    q = comfortable(robot)
    limited = [int(j) for j in np.flatnonzero(robot.limited) if robot.upper[j] > robot.lower[j]]
    if not limited:
        return None
    solver = IkSolver(robot, max_restarts=ATTEMPTS, timeout=0.1)
    cases = [_case(robot, solver, q, j, past) for j in limited for past in BEYOND]
    best = max(cases, key=lambda case: (case.is_reached, case.travel))
    rest = REDUNDANT if best.is_reached else NOT_REDUNDANT
    watch = LIMIT_WATCH.format(joint=robot.joint_names[best.joint], rest=rest)
    return Preset("Into a joint limit", watch, ("jp", "ctp+sd+svf"), q, best.Ts, 4.0)


def _case(robot: RobotModel, solver: IkSolver, q: Array, j: int, past: float) -> _Case:
    Ts = _way(robot, q, j, past)
    result = solver.solve(Ts[-1], seed=q)
    is_reached = result.success and float(np.abs(result.q - q).max()) < NEAR
    return _Case(j, Ts, is_reached, float(np.linalg.norm(Ts[-1, :3, 3] - Ts[0, :3, 3])))


def _way(robot: RobotModel, q: Array, j: int, past: float) -> Array:
    """(POSES, 4, 4) while joint j goes to the limit next to it, and past it."""
    lower, upper = float(robot.lower[j]), float(robot.upper[j])
    width = upper - lower
    is_lower = q[j] - lower < upper - q[j]
    end = lower - past * width if is_lower else upper + past * width
    qs = np.repeat(q[None], POSES, axis=0)
    qs[:, j] = np.linspace(q[j], end, POSES)
    return robot.fk(qs)
