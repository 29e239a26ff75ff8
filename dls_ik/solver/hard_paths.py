# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Search for paths on which methods differ: past a singularity, and out of reach.

Singular configurations are found by a descent that minimizes the smallest singular value of the
task's Jacobian. At a singular configuration there is a direction in which the tip cannot move;
candidate paths lead along this direction. Several methods follow each candidate path by bare steps:
one step of the method per pose, without restarts. The first path on which the undamped method moves
the joints clearly faster than the damped methods is chosen. If there is no such path, the path with
the largest ratio of undamped to damped speed is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.se3 import moved
from dls_ik.core.types import Array
from dls_ik.errors import RobotModelError
from dls_ik.lazy_property import cached_property
from dls_ik.model.analysis import RANK_TOLERANCE, ROTATION_WEIGHT, descend, ready_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.solver.problem import largest_errors
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.stepper import paced_stepper
from dls_ik.solver.task import Task, checked_tasks, task_jacobians

# [s] duration of a bare step, equal to that in the tables of docs/lab/choosing.md
BARE_STEP_DURATION = 0.01
LAPS = 2  # number of laps forward and back, each 2 pi seconds: 1 rad/s
COSINE = np.cos(np.arange(round(2.0 * LAPS * math.pi / BARE_STEP_DURATION)) * BARE_STEP_DURATION)
# methods that follow each path; "jp" is undamped
PATH_METHODS = ("jp", "dls", "svf+sd", "sdls+clamp")
# Options of methods during the search; the paths of the documentation were found with these values
PATH_OPTIONS: dict[str, dict[str, Any]] = {"sdls+clamp": {"gamma_max": 0.5, "D_max": 0.4}}

# Configurations, by joint names, near which singularities are searched first. The configuration of
# the WAM is taken from the path of benchmarks.tracking.
HINTS = {tuple(f"wam_j{i}" for i in range(1, 8)): (0.3, 0.6, 0.2, 1.6, -math.pi / 2, 0.0, 0.2)}
NUM_DESCENTS, DESCENT_SEED = 48, 5  # random starts of the descent, and their seed
SINGULAR_RATIO = 1e-4  # maximum ratio of smallest to largest singular value at a singularity
# [rad or m] singular configurations that differ less in all joints are equal
MIN_SINGULAR_DIFFERENCE = 0.3
MAX_SINGULARITIES = 24  # maximum number of singular configurations that are tried
NUM_PATH_SAMPLES, PATH_SAMPLES_SEED = 4000, 3  # random configurations, and their seed
NUM_STRETCHED = 24  # samples farthest from the middle of the workspace, from which descents start
HALF_LENGTH = 0.1  # [m] half the length of a path; a share of the reach outside USUAL_REACH
USUAL_REACH = 0.6, 2.0  # [m] minimum and maximum reach for which HALF_LENGTH is in metres
HALF_ROTATION = 0.5  # [rad] half the rotation of a path that rotates the tip
MIN_LINEAR_PART = 0.3  # minimum linear part of a direction that counts as a translation
PASSING_OFFSETS = (0.03, 0.01)  # [rad or m] joint offsets of paths that pass near a singularity
EDGE_EXCESSES = 3e-5, 1e-4, 3e-4, 1e-3  # shares of the reach by which paths end outside it
OUT_OF_REACH_SHARE = 0.5  # share of half the length by which a path leaves the reach
MAX_RESTARTS, SOLVE_TIMEOUT = 200, 10.0  # limits for the first pose; [s]
NUM_SETTLING_STEPS = 300  # number of damped steps toward the first pose
MAX_FIRST_POSE_ERROR = 1e-3  # [m, with 0.5 m/rad] maximum error at the first pose
# Minimum ratio of undamped to damped peak speed, and minimum undamped peak speed [rad/s or m/s].
MIN_RATIO, MIN_PEAK = 2.5, 5.0
CLEAR_RATIO, CLEAR_PEAK = 4.0, 10.0  # a path that reaches both values ends the search
MAX_PEAK = 400.0  # [rad/s or m/s] a path with a faster joint is discarded
MAX_ERROR = 0.3  # maximum error of a method as a share of the reach
PATH_THROUGH_SINGULARITY, PATH_PAST_SINGULARITY, PATH_TO_EDGE = (
    "through a singularity",
    "past a singularity",
    "to the edge of the reach",
)


class PosePath(NamedTuple):
    """Path of target poses at equal time intervals, and a start configuration."""

    about: str  # description such as "past a singularity"
    Ts: Array  # (t, 4, 4) T_base_tip [m]
    dt: float  # [s] interval between targets
    start: Array  # (n,) joint positions at the first target [rad or m]
    first_counted: int = 0  # index of the first target that counts: the start of lap 2


class BareRun(NamedTuple):
    """Joint speeds and largest error of a method that makes a single step toward each path pose."""

    speeds: Array  # (t - 1,) speed of the fastest joint in each step [rad/s or m/s]
    error: float  # maximum position error [m]; if the tip only rotates, rotation error [rad]

    @property
    def peak(self) -> float:
        """Maximum speed of any joint during the run [rad/s or m/s]."""
        return float(self.speeds.max())


class HardPath(NamedTuple):
    """A path along the direction in which the tip cannot move at a singular configuration."""

    path: PosePath
    beyond: float  # [m or rad] distance by which the path leaves the reach; 0.0 if it stays inside
    runs: tuple[BareRun, ...]  # one for each of PATH_METHODS

    @property
    def ratio(self) -> float:
        """Peak joint speed of the undamped method divided by that of the fastest damped method."""
        return self.runs[0].peak / max(run.peak for run in self.runs[1:])

    def peaks(self, run: BareRun) -> list[float]:
        """Return the maximum joint speed for each pass of a run by the singularity [rad/s or m/s].

        The path goes forward and back in each of LAPS laps. A lap passes a singular configuration
        inside the reach twice; it comes to a singular configuration at the edge of the reach once.

        Args:
            run: Run of a method along this path.
        """
        passes = LAPS if self.path.about == PATH_TO_EDGE else 2 * LAPS
        return [float(speeds.max()) for speeds in np.array_split(run.speeds, passes)]


def default_task(robot: RobotModel) -> Task | None:
    """Return the task with which paths of an arm are searched, depending on the arm's mobility.

    The task is None (the full pose) if the Jacobian of the arm has rank 6; otherwise it is the
    position.
    """
    return None if PathSearch(robot).rank == 6 else Task.position_only()


def singular_path(robot: RobotModel, task: Task | None = None) -> PosePath:
    """Find a path that passes a singularity, forward and back, in two laps.

    The displacement along the path is a cosine of time. If the speeds of the methods do not differ
    on any such path, as for a planar arm with two links, a path to the edge of the reach is
    returned. If they do not differ on a path to the edge either, the path of :func:`reach_path` is
    returned.

    Args:
        robot: Arm with one tip.
        task: Part of the pose that must be reached; None stands for the full pose.

    Raises:
        RobotModelError: If the robot has several tips, or no path is found.
    """
    found = PathSearch(robot, task).hardest()
    return reach_path(robot, task) if found is None else found.path


def reach_path(robot: RobotModel, task: Task | None = None) -> PosePath:
    """Find a straight path out of reach and back, in two laps.

    The displacement along the path is a cosine of time.

    Args:
        robot: Arm with one tip.
        task: Part of the pose that must be reached; None stands for the full pose.

    Raises:
        RobotModelError: If the robot has several tips, or no boundary of the workspace is found.
    """
    search = PathSearch(robot, task)
    tips = robot.fk(search.samples)[:, :3, 3]
    far = np.argsort(-np.linalg.norm(tips - search.middle, axis=1))[:NUM_STRETCHED]
    for q in search.descend(search.samples[far]):
        outward = robot.fk(q)[:3, 3] - search.middle
        size = float(np.linalg.norm(outward))
        if size > 0.0 and search.is_singular(q):
            direction = np.append(search.half_length * outward / size, np.zeros(3))
            motion = (OUT_OF_REACH_SHARE - (1.0 + COSINE))[:, None] * direction
            path = search.walk("out of reach and back", robot.fk(q), q, motion)
            if path is not None:
                return path
    raise RobotModelError(
        f"{robot.name}: no configuration at the boundary of the workspace was found for the task"
    )


class PathSearch:
    """Search for paths that pass or approach singular configurations of an arm with one tip.

    Args:
        robot: Arm with one tip.
        task: Part of the pose that must be reached; None stands for the full pose.
        start: (n,) joint positions [rad or m]; singular configurations near these are preferred.
            The default is a bent arm.

    Raises:
        RobotModelError: If the robot has several tips.
    """

    def __init__(
        self, robot: RobotModel, task: Task | None = None, start: Array | None = None
    ) -> None:
        if len(robot.tips) > 1:
            names = ", ".join(robot.tips)
            raise RobotModelError(
                f"a path needs a robot with one tip; {robot.name} has {names}: select one of them"
            )
        self.robot, self.task = robot, checked_tasks(robot, task)[0]
        self.start = ready_configuration(robot) if start is None else start

    def jacobians(self, q: Array) -> Array:
        """Return the task's Jacobians (b, r, n) at q (b, n) [rad or m].

        Rotation rows are multiplied by `ROTATION_WEIGHT`.
        """
        weights = np.repeat(
            (1.0, ROTATION_WEIGHT), (len(self.task.position), len(self.task.rotation))
        )
        return weights[:, None] * task_jacobians(self.robot, self.task, q)

    @cached_property
    def rank(self) -> int:
        """Rank of the task's Jacobian at configurations that are not singular."""
        J = self.jacobians(self.robot.random(50, np.random.default_rng(0)))
        s = np.linalg.svd(J, compute_uv=False)
        return int((s > RANK_TOLERANCE * s[:, :1]).sum(axis=1).max())

    @property
    def has_joint_to_spare(self) -> bool:
        """Whether the arm has more joints than its tip has independent motions."""
        return self.robot.n > self.rank

    @cached_property
    def samples(self) -> Array:
        """Random configurations (b, n) [rad or m] within the limits, to estimate the reach."""
        return self.robot.random(NUM_PATH_SAMPLES, np.random.default_rng(PATH_SAMPLES_SEED))

    @cached_property
    def middle(self) -> Array:
        """Center (3,) [m] of the bounding box of the tip positions of `samples`."""
        tips = self.robot.fk(self.samples)[:, :3, 3]
        return np.asarray(0.5 * (tips.min(axis=0) + tips.max(axis=0)))

    @cached_property
    def reach(self) -> float:
        """Maximum distance [m] of the tip from `middle` in the configurations `samples`."""
        tips = self.robot.fk(self.samples)[:, :3, 3]
        return float(np.linalg.norm(tips - self.middle, axis=1).max())

    @property
    def half_length(self) -> float:
        """Half the length of a path [m]."""
        is_usual = USUAL_REACH[0] < self.reach < USUAL_REACH[1]
        return HALF_LENGTH * (1.0 if is_usual else self.reach)

    def descend(self, q: Array) -> Array:
        """Minimize the smallest singular value from each start q (b, n) within the limits.

        Returns:
            The last configurations (b, n) [rad or m], which need not be singular.
        """
        return descend(self.jacobians, self.robot, q, self.rank)

    def is_singular(self, q: Array) -> bool:
        """Return whether the task's Jacobian is singular at q (n,) [rad or m]."""
        s = np.linalg.svd(self.jacobians(q[None])[0], compute_uv=False)
        return bool(s[self.rank - 1] < SINGULAR_RATIO * s[0])

    def hardest(self) -> HardPath | None:
        """Return a path on which the speeds of the methods differ, or None if none is found.

        Paths through singularities are tried first, then paths to the edge of the reach.
        """
        singular = list(self._singular_configurations())
        for make_paths in (self._crossings, self._edges):
            best: HardPath | None = None
            for q in singular:
                for path, beyond in make_paths(q, self._impossible_motion(q)):
                    runs = self._runs(path)
                    if runs is None or runs[0].peak < MIN_PEAK:
                        continue
                    found = HardPath(path, beyond, runs)
                    if found.ratio >= MIN_RATIO and (best is None or found.ratio > best.ratio):
                        best = found
                    if found.ratio >= CLEAR_RATIO and runs[0].peak >= CLEAR_PEAK:
                        return self._by_defaults(found)
            if best is not None:
                return self._by_defaults(best)
        return None

    def walk(self, about: str, center: Array, q: Array, motion: Array) -> PosePath | None:
        """Build a path of poses, each of which is a pose `center` after a displacement.

        Args:
            about: Description of the path, such as "past a singularity".
            center: (4, 4) pose T_base_tip to which each displacement is applied.
            q: (n,) joint positions near which the path must start [rad or m].
            motion: (m, 6) displacements [m, rad], one for each pose of the path.

        Returns:
            The path; None if no configuration near q reaches the first pose of the path.
        """
        Ts = np.array([moved(center, each) for each in motion])
        start = self._start_of(q, Ts[0])
        return (
            None
            if start is None
            else PosePath(about, Ts, BARE_STEP_DURATION, start, len(Ts) // LAPS)
        )

    def _singular_configurations(self) -> Iterator[Array]:
        """Yield singular configurations (n,) [rad or m] that differ by `MIN_SINGULAR_DIFFERENCE`.

        The first one is found by a descent from the configuration of `HINTS`, if the robot has one.
        """
        rng = np.random.default_rng(DESCENT_SEED)
        spread = np.linspace(0.1, 1.0, NUM_DESCENTS)[:, None]
        starts = self.start + spread * (self.robot.random(NUM_DESCENTS, rng) - self.start)
        hint = HINTS.get(self.robot.joint_names)
        if hint is not None:
            starts = np.concatenate([[hint], starts])
        found: list[Array] = []
        for q in self.descend(self.robot.clip(starts)):
            is_new = all(np.abs(q - other).max() > MIN_SINGULAR_DIFFERENCE for other in found)
            if is_new and self.is_singular(q):
                found.append(q)
                yield q
            if len(found) >= MAX_SINGULARITIES:
                return

    def _impossible_motion(self, q: Array) -> Array:
        """Return a displacement (6,) [m, rad] in a direction in which the tip cannot move.

        The displacement is a pure translation or a pure rotation in the base frame. `q` (n,) is a
        singular configuration.
        """
        u = np.linalg.svd(self.jacobians(q[None])[0])[0][:, self.rank - 1]
        rows = ["xyz".index(axis) for axis in self.task.position]
        rows += [3 + "xyz".index(axis) for axis in self.task.rotation]
        V, T = np.zeros(6), self.robot.fk(q)
        V[rows] = u
        if self.task.frame == "target":
            V = (T[:3, :3] @ V.reshape(2, 3, 1)).ravel()
        size = float(np.linalg.norm(V[:3]))
        if size > MIN_LINEAR_PART:
            outward = math.copysign(self.half_length, float(V[:3] @ T[:3, 3]))
            return np.append(outward * V[:3] / size, np.zeros(3))
        return np.append(np.zeros(3), HALF_ROTATION * V[3:] / np.linalg.norm(V[3:]))

    def _crossings(self, q: Array, lost: Array) -> Iterator[tuple[PosePath, float]]:
        """Yield paths through and past a singular configuration.

        The second value is the distance by which a path leaves the reach, 0.0.

        Args:
            q: (n,) singular configuration [rad or m].
            lost: (6,) displacement that the tip cannot make at q [m, rad].
        """
        away = np.random.default_rng(DESCENT_SEED).choice((-1.0, 1.0), self.robot.n)
        for offset in (0.0, *PASSING_OFFSETS):
            center = self.robot.fk(q + offset * away)
            about = PATH_PAST_SINGULARITY if offset else PATH_THROUGH_SINGULARITY
            path = self.walk(about, center, q, COSINE[:, None] * lost)
            if path is not None:
                yield path, 0.0

    def _edges(self, q: Array, lost: Array) -> Iterator[tuple[PosePath, float]]:
        """Yield paths that leave the reach, and the distance by which each path leaves it [m].

        Args:
            q: (n,) singular configuration at the edge of the reach [rad or m].
            lost: (6,) displacement that the tip cannot make at q [m, rad].
        """
        unit = lost / np.linalg.norm(lost)
        for share in EDGE_EXCESSES:
            for side in (1.0, -1.0):
                motion = -(1.0 + COSINE)[:, None] * side * lost
                motion += side * share * self.reach * unit
                path = self.walk(PATH_TO_EDGE, self.robot.fk(q), q, motion)
                if path is not None:
                    yield path, share * self.reach

    def _start_of(self, q: Array, T: Array) -> Array | None:
        """Return a solution (n,) [rad or m] of the pose T (4, 4), or None if none is found.

        The search starts at or next to the configuration `q` (n,).
        """
        if self.task == Task():
            solver = IkSolver(self.robot, solve_type="distance", max_restarts=MAX_RESTARTS)
            result = solver.solve(T, q, SOLVE_TIMEOUT)
            return result.q if result.success else None
        away = np.random.default_rng(DESCENT_SEED).uniform(-0.05, 0.05, self.robot.n)
        stepper = paced_stepper(
            self.robot, "jc+ed", self.robot.clip(q + away), BARE_STEP_DURATION, self.task
        )
        stepper.run(T, NUM_SETTLING_STEPS)
        is_there = float(np.linalg.norm(stepper.error(T))) < MAX_FIRST_POSE_ERROR
        return stepper.q if is_there and bool(self.robot.within_limits(stepper.q)) else None

    def _runs(self, path: PosePath) -> tuple[BareRun, ...] | None:
        """Follow a path with all PATH_METHODS, and return their runs.

        Return None if the joint speed or the error of a method is too large.
        """
        found = []
        for method in PATH_METHODS:
            run = self._run(method, path, PATH_OPTIONS.get(method))
            if run.peak > MAX_PEAK or run.error > MAX_ERROR * self.reach:
                return None
            found.append(run)
        return tuple(found)

    def _by_defaults(self, found: HardPath) -> HardPath:
        """Return the path with the runs of PATH_OPTIONS repeated with default options."""
        runs = [
            self._run(method, found.path) if method in PATH_OPTIONS else run
            for method, run in zip(PATH_METHODS, found.runs, strict=True)
        ]
        return found._replace(runs=tuple(runs))

    def _run(
        self, method: str, path: PosePath, options: Mapping[str, Any] | None = None
    ) -> BareRun:
        """Follow a path with a method that makes one step per pose, and return the run."""
        stepper = paced_stepper(self.robot, method, path.start, path.dt, self.task, options)
        q = stepper.run(path.Ts[1:], len(path.Ts) - 1).q
        is_turning = not np.ptp(path.Ts[:, :3, 3], axis=0).max() > 0.0
        errors = []
        for k in range(1, len(path.Ts), 4):
            stepper.q = q[k]
            e = stepper.error(path.Ts[k])
            errors.append(float(largest_errors(stepper.details.task, e)[int(is_turning)]))
        return BareRun(np.abs(np.diff(q, axis=0)).max(axis=1) / path.dt, max(errors))
