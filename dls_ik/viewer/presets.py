# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Presets: moving targets, computed for the robot, that show how methods differ.

:mod:`dls_ik.solver.hard_paths` computes the path through a singularity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.hard_paths import (
    BARE_STEP_DURATION,
    MAX_RESTARTS,
    PATH_METHODS,
    PATH_PAST_SINGULARITY,
    PATH_THROUGH_SINGULARITY,
    PATH_TO_EDGE,
    SOLVE_TIMEOUT,
    PathSearch,
)
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.stepper import paced_stepper
from dls_ik.solver.task import Tasks, checked_tasks
from dls_ik.viewer.source import LocalSource

if TYPE_CHECKING:
    from dls_ik.scene.snapshot import SceneSnapshot
    from dls_ik.scene.srdf import Pair

PATH_END_REST_TIME = 1.0  # [s] time for which the target rests at each end of a path
FOLLOWER = "dls"


class Preset(NamedTuple):
    """Closed path of the target, and the methods to compare on this path."""

    title: str
    watch: str  # text about what a person should watch
    methods: tuple[str, ...]
    start: Array  # (n,) initial joint positions of the arms [rad or m]
    Ts: Array  # (m, 4, 4) poses T_base_tip at equal time steps; the last one equals the first
    period: float  # [s] time for the whole path
    bare: bool = True  # whether the arms make steps of the methods without the controller's limits

    def pose(self, time: float) -> Array:
        """Return the target T_base_tip (4, 4) at a `time` since the start of the preset [s]."""
        share = (time % self.period) / self.period * (len(self.Ts) - 1)
        i = min(int(share), len(self.Ts) - 2)
        T: Array = moved(self.Ts[i], difference(self.Ts[i], self.Ts[i + 1]) * (share - i))
        return T


def make_presets(robot: RobotModel, start: Array, task: Tasks = None) -> tuple[Preset, ...]:
    """Compute the presets that are possible with a robot; this takes about two seconds.

    Args:
        robot: Robot with one tip.
        start: (n,) joint positions far from singularities and limits.
        task: See :class:`dls_ik.IkSolver`.
    """
    if len(robot.tips) > 1:
        return ()
    search = PathSearch(robot, checked_tasks(robot, task)[0], start)
    presets = through_singularity(search), out_of_reach(search), into_limit(search)
    return tuple(filter(None, presets))


def pair_in_the_way(
    robot: RobotModel, preset: Preset, world: SceneSnapshot, task: Tasks = None
) -> Pair | None:
    """Return the first pair that collides while an arm follows a preset, or None.

    Presets are computed without obstacles, so an obstacle may block the path of a preset.

    Args:
        robot: Robot.
        preset: Preset to follow.
        world: State of the scene.
        task: See :class:`dls_ik.IkSolver`.
    """
    stepper = paced_stepper(robot, FOLLOWER, preset.start, BARE_STEP_DURATION, task)
    Ts = np.array(
        [
            preset.pose(time)
            for time in np.arange(BARE_STEP_DURATION, preset.period, BARE_STEP_DURATION)
        ]
    )
    q = np.concatenate([preset.start[None], stepper.run(Ts, len(Ts)).q])
    colliding = np.flatnonzero(world.in_collision(q))
    return world.colliding_pair(q[colliding[0]]) if len(colliding) else None


def _there_and_back(Ts: Array, duration: float) -> tuple[Array, float]:
    """Return a closed path along given poses and back, with a rest at both ends.

    Args:
        Ts: (m, 4, 4) poses at equal time steps.
        duration: Time from the first to the last pose [s].

    Returns:
        Poses (k, 4, 4) at the same time steps, and the duration of the whole path [s].
    """
    rests = round(PATH_END_REST_TIME * (len(Ts) - 1) / duration)
    path = [Ts[:1]] * rests + [Ts] + [Ts[-1:]] * rests + [Ts[-2::-1]]
    closed = np.concatenate(path)
    return closed, (len(closed) - 1) * duration / (len(Ts) - 1)


# Start: far from singularities and limits, the tip in front, all links above the floor

START_SAMPLES, TRIED_STARTS, START_SEED = 400, 500, 7
FLOOR_TOLERANCE = 1e-3  # [m] links this far below the floor count as above it


def start_configuration(
    robot: RobotModel, clearance: Callable[[Array], Array] | None = None
) -> Array:
    """Return a configuration (n,) [rad or m] far from singularities; each call returns the same.

    Args:
        robot: Robot.
        clearance: Returns the minimum height [m] of each moving link (k,) above the floor at joint
            positions (n,). If this function is given, the result is the best configuration with all
            links above the floor; links that are never above the floor are ignored. If there is no
            such configuration, the result is the configuration with the highest links.
    """
    lower, upper = robot.finite_limits()
    middle = np.where(robot.limited, 0.5 * (lower + upper), 0.0)
    spread = 0.3 * np.minimum(upper - lower, np.pi)
    rng = np.random.default_rng(START_SEED)
    near = middle + spread * rng.uniform(-1.0, 1.0, (START_SAMPLES, robot.n))
    q = robot.clip(np.concatenate([near, robot.random(START_SAMPLES, rng)]))
    x = robot.fk(q).reshape(len(q), -1, 4, 4)[:, 0, 0, 3]
    front: Array = (x - x.min()) / max(float(np.ptp(x)), 1e-9)
    s = np.asarray(np.linalg.svd(robot.jacobian(q), compute_uv=False), np.float64)
    rank = int((s > 1e-6 * s[:, :1]).sum(axis=1).max())
    merit = s[:, rank - 1] * (0.2 + front)
    # Samples of the second half, which are far from mid-range, are the second choice.
    merit[START_SAMPLES:] *= 0.1
    order = np.argsort(-merit)
    if clearance is None:
        return np.asarray(q[order[0]])
    tried = order[:TRIED_STARTS]
    heights = np.array([clearance(q[i]) for i in tried])
    attainable = np.minimum(heights.max(axis=0), 0.0)  # negative for links always below the floor
    # All configurations above the floor get the same height, so that argmax returns the first of
    # them, which has the largest merit.
    lowest = np.minimum((heights - attainable).min(axis=1), -FLOOR_TOLERANCE)
    return np.asarray(q[tried[np.argmax(lowest)]])


# Path through a singularity

LOST_DIRECTION_TEXT = "along the direction that the tip loses there"
PATH_DESCRIPTIONS = {
    PATH_THROUGH_SINGULARITY: f"crosses a singular configuration {LOST_DIRECTION_TEXT}",
    PATH_PAST_SINGULARITY: f"passes a singular configuration closely, {LOST_DIRECTION_TEXT}",
    PATH_TO_EDGE: "comes to the edge of the reach, where the arm is stretched and singular, and "
    "{:.1g} mm beyond",
}
REDUNDANT_ARM_NOTE = "A joint to spare does not help: all joints together lose the direction"
NONREDUNDANT_ARM_NOTE = "The arm has no joint to spare that could avoid the singularity"


def through_singularity(search: PathSearch) -> Preset | None:
    """Return a preset through a singularity where the methods differ, or None if there is none."""
    found = search.hardest()
    if found is None:
        return None
    path, (plain, *damped) = found.path, found.runs
    unit = "m/s" if set(search.robot.units) == {"m"} else "rad/s"
    off = max(run.error for run in damped)
    is_turning = not np.ptp(path.Ts[:, :3, 3], axis=0).max() > 0.0
    deviation = f"{np.degrees(off):.0f} deg" if is_turning else f"{1e3 * off:.0f} mm"
    *others, last = (f"{peak:.3g}" for peak in found.peaks(plain))
    watch = (
        f"the target {PATH_DESCRIPTIONS[path.about].format(1e3 * found.beyond)}. "
        f"{REDUNDANT_ARM_NOTE if search.has_joint_to_spare else NONREDUNDANT_ARM_NOTE}. "
        f"A, the plain pseudoinverse, asks a joint for {', '.join(others)} and {last} {unit} "
        f"(fastest joint) on passes 1 to {len(others) + 1}; then the preset starts again. "
        f"The damped methods ask for {max(run.peak for run in damped):.2g} {unit} at most, and "
        f"leave the path by up to {deviation}."
    )
    closed = np.concatenate([path.Ts, path.Ts[:1]])
    period = (len(closed) - 1) * path.dt
    return Preset("Through a singularity", watch, PATH_METHODS, path.start, closed, period)


# Path out of reach: a straight line away from the shoulder to a point out of reach

NUM_POSES = 61
REACH_FACTOR = 1.2  # largest distance of the target, relative to the reach of the arm
REACH_WATCH = (
    "all arms stretch towards a target that moves out of reach, and an error remains. A stretched "
    "arm is singular: A, the plain pseudoinverse, moves fast back and forth (see the fastest "
    "joint), the damped methods rest at the closest point until the target is back in reach."
)


def out_of_reach(arm: PathSearch) -> Preset:
    """Return a preset whose target moves away from the shoulder until out of reach, and back."""
    T = arm.robot.fk(arm.start)
    away, reach = T[:3, 3] - arm.middle, arm.reach
    length = float(np.linalg.norm(away))
    direction = away / length if length > 1e-6 else np.array([1.0, 0.0, 0.0])
    way = np.linspace(0.0, max(REACH_FACTOR * reach - length, 0.2 * reach), NUM_POSES)
    Ts = np.repeat(T[None], NUM_POSES, axis=0)
    Ts[:, :3, 3] += way[:, None] * direction
    return Preset("Out of reach", REACH_WATCH, PATH_METHODS, arm.start, *_there_and_back(Ts, 4.0))


# Path into a joint limit: tip poses while a single joint moves beyond its limit

# Candidate distances beyond the limit, relative to the joint's range
LIMIT_OVERRUNS = (0.35, 0.22, 0.12)
MAX_POSTURE_CHANGE = 2.0  # [rad or m] a larger change of any joint counts as another posture
LIMIT_METHODS = ("jp", "ctp+sd+svf")
LIMIT_WATCH = (
    "{joint} moves to its limit (red in the bars), where the controller stops it. The method of A "
    "ignores limits, so its steps are clipped; B (CTP) slows the joint down before the limit. "
    "{rest}: at the end of the target's rest, A is {off[0]:.0f} mm off and B {off[1]:.0f} mm."
)
LIMIT_DURATION = 4.0  # [s] time of the motion beyond the limit
MAX_COMPENSATED_ERROR = 5e-3  # [m] position errors of at most this value count as reached
COMPENSATED = "The other joints make up for the joint"
NOT_FOUND = (
    "The other joints could make up for the joint, but the steps from here do not lead to such a "
    "configuration"
)
NOT_REDUNDANT = "The other joints cannot reach the target without this joint"


class _LimitCase(NamedTuple):
    is_reached: bool  # whether the other joints can reach the last pose within all limits
    travel: float  # length of the path of the tip [m]
    joint: int
    Ts: Array  # (NUM_POSES, 4, 4) poses T_base_tip


def into_limit(arm: PathSearch) -> Preset | None:
    """Return a preset whose target moves as if one joint went beyond its limit.

    Joints for which the other joints can still reach the target are preferred. Of these joints, the
    one that moves the tip the most is chosen.

    Returns:
        The preset, or None for a robot without joint limits.
    """
    robot = arm.robot
    limited = [int(j) for j in np.flatnonzero(robot.limited) if robot.upper[j] > robot.lower[j]]
    if not limited:
        return None
    solver = IkSolver(robot, max_restarts=MAX_RESTARTS, timeout=SOLVE_TIMEOUT)
    cases = [_limit_case(arm, solver, j, beyond) for j in limited for beyond in LIMIT_OVERRUNS]
    best = max(cases, key=lambda case: (case.is_reached, case.travel))
    path = _there_and_back(best.Ts, LIMIT_DURATION)
    preset = Preset("Into a joint limit", "", LIMIT_METHODS, arm.start, *path, bare=False)
    off = _errors_at_rest(robot, preset, arm.task)
    rest = NOT_FOUND if best.is_reached else NOT_REDUNDANT
    if off[-1] <= MAX_COMPENSATED_ERROR:
        rest = COMPENSATED
    joint = robot.joint_names[best.joint]
    return preset._replace(
        watch=LIMIT_WATCH.format(joint=joint, rest=rest, off=[1e3 * error for error in off])
    )


def _errors_at_rest(robot: RobotModel, preset: Preset, task: Tasks) -> list[float]:
    """Return the position error [m] of each method of a preset at the far end of its path.

    The arms follow the path as on the page, until the target has rested for PATH_END_REST_TIME.
    """
    errors = []
    until = LIMIT_DURATION + 2.0 * PATH_END_REST_TIME  # the target also rests at the start
    for method in preset.methods:
        source = LocalSource(robot, method, preset.start, task)
        for k in range(round(until / BARE_STEP_DURATION)):
            source.set_target(preset.pose(k * BARE_STEP_DURATION))
            sample = source.step(k * BARE_STEP_DURATION)
            source.wait_for_planner()  # the page leaves the planner 10 ms per step
        source.close()
        errors.append(float(np.max(sample.position_error)))
    return errors


def _limit_case(arm: PathSearch, solver: IkSolver, j: int, beyond: float) -> _LimitCase:
    """Compute the tip poses of a motion in which joint j moves beyond its closest limit.

    Args:
        arm: Robot with start configuration and task.
        solver: Solver that tests whether the arm can reach the last pose within all limits.
        j: Index of the joint.
        beyond: Distance beyond the limit, relative to the range of the joint.

    Returns:
        The poses, the length of the path, and whether the last pose can be reached.
    """
    robot, q = arm.robot, arm.start
    lower, upper = float(robot.lower[j]), float(robot.upper[j])
    past = beyond * (upper - lower)
    end = lower - past if q[j] - lower < upper - q[j] else upper + past
    qs = np.repeat(q[None], NUM_POSES, axis=0)
    qs[:, j] = np.linspace(q[j], end, NUM_POSES)
    Ts = robot.fk(qs)
    try:
        result = solver.solve(Ts[-1], seed=q, task=arm.task)
    except DlsIkError:  # no method solves this task
        return _LimitCase(False, 0.0, j, Ts)
    is_near = float(np.abs(result.q - q).max()) < MAX_POSTURE_CHANGE
    is_reached = arm.has_joint_to_spare and result.success and is_near
    return _LimitCase(is_reached, float(np.linalg.norm(Ts[-1, :3, 3] - Ts[0, :3, 3])), j, Ts)
