"""Paths on which methods differ: past a singularity, and out of reach.

A path is found by trial: configurations are brought to a singularity by descent on the least
singular value of the task's Jacobian, and paths along the direction that is lost there are walked
by bare steps. The first is taken on which the undamped method is clearly faster than the damped
ones, or else the one on which it is so most.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dls_ik.core.se3 import moved
from dls_ik.core.types import Array
from dls_ik.errors import RobotModelError
from dls_ik.model.analysis import LENGTH, VANISHING, descend, ready_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.solver.problem import largest_errors
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.stepper import paced_stepper
from dls_ik.solver.task import Task, checked_tasks, task_jacobians

STEP = 0.01  # [s] a bare step of a method, as in the tables of docs/lab/choosing.md
LAPS = 2  # forth and back, each 2 pi seconds: 1 rad/s
COSINE = np.cos(np.arange(round(2.0 * LAPS * math.pi / STEP)) * STEP)
METHODS = ("jp", "dls", "svf+sd", "sdls+clamp")  # that paths are tried by; the first is undamped

# Configurations near which a singularity is looked for first: the path of benchmarks.tracking.
HINTS = {tuple(f"wam_j{i}" for i in range(1, 8)): (0.3, 0.6, 0.2, 1.6, -math.pi / 2, 0.0, 0.2)}
STARTS, SEED = 48, 5
SINGULAR = 1e-4  # share of the largest singular value
APART = 0.3  # [rad or m] of joint values of different singularities
TRIED = 24  # singular configurations
REACH_SAMPLES, REACH_SEED, FARTHEST = 4000, 3, 24  # the last: of samples, that are stretched
TRANSLATION = 0.1  # [m] half the length of a path, or of the reach of small and large arms
USUAL_REACH = 0.6, 2.0  # [m]
ROTATION = 0.5  # [rad]
LINEAR = 0.3  # least linear part of a lost direction that is taken for a translation
MISSES = (0.03, 0.01)  # [rad or m] of the joints, of paths that pass a singularity closely
BEYOND_REACH = 3e-5, 1e-4, 3e-4, 1e-3  # of the reach, at the end of a path to its edge
BEYOND = 0.5  # of half the length, that a path leads out of reach
RESTARTS, PATIENCE = 200, 10.0  # for the first pose; the restarts end a search, not the time [s]
SETTLING, REACHED = 300, 1e-3  # damped steps to the first pose; [m, 0.5 m/rad]
RATIO, PEAK = 2.5, 5.0  # of peak speeds, and [rad/s or m/s] of the undamped: enough to be shown
CLEAR = 4.0, 10.0  # the same, enough to end the search
WILD = 400.0  # [rad/s or m/s] a faster joint shows no path that an arm follows
FAR_OFF = 0.3  # of the reach: a method that is farther off has lost the path
CROSSING, PASSING, EDGE = "through a singularity", "past a singularity", "to the edge of the reach"


class PosePath(NamedTuple):
    """Targets at equal times."""

    about: str  # such as "past a singularity"
    Ts: Array  # (t, 4, 4) T_base_tip [m]
    dt: float  # [s] from one target to the next
    start: Array  # (n,) joint values at the first target [rad or m]
    first_counted: int = 0  # target from which errors count: the begin of lap 2


class BareRun(NamedTuple):
    """Bare steps of a method along one lap."""

    peak: float  # speed of the fastest joint [rad/s or m/s]
    error: float  # largest of the position [m], or of the rotation [rad]


class HardPath(NamedTuple):
    """A path along the direction that is lost at a singular configuration."""

    path: PosePath
    beyond: float  # [m or rad] the end is beyond the reach
    runs: tuple[BareRun, ...]  # of METHODS

    @property
    def ratio(self) -> float:
        """Peak speed of the undamped method over the largest of the others."""
        return self.runs[0].peak / max(run.peak for run in self.runs[1:])


def default_task(robot: RobotModel) -> Task | None:
    """Return None, the full pose, for arms that move in six directions; else the position."""
    return None if PathSearch(robot).rank == 6 else Task.position_only()


def singular_path(robot: RobotModel, task: Task | None = None) -> PosePath:
    """Find a path forth and back past a singularity: a cosine in time, two laps.

    Where no such path makes methods differ, as of a planar arm of two links, it leads to the edge
    of the reach, or is :func:`reach_path`.

    Raises:
        RobotModelError: several tips, or no singularity is found.
    """
    found = PathSearch(robot, task).hardest()
    return reach_path(robot, task) if found is None else found.path


def reach_path(robot: RobotModel, task: Task | None = None) -> PosePath:
    """Find a path straight out of reach and back: a cosine in time, two laps.

    Raises:
        RobotModelError: several tips, or no border of the workspace is found.
    """
    search = PathSearch(robot, task)
    tips = robot.fk(search.samples)[:, :3, 3]
    far = np.argsort(-np.linalg.norm(tips - search.middle, axis=1))[:FARTHEST]
    for q in search.descend(search.samples[far]):
        outward = robot.fk(q)[:3, 3] - search.middle
        size = float(np.linalg.norm(outward))
        if size > 0.0 and search.is_singular(q):
            direction = np.append(search.half_length * outward / size, np.zeros(3))
            motion = (BEYOND - (1.0 + COSINE))[:, None] * direction
            path = search.walk("out of reach and back", robot.fk(q), q, motion)
            if path is not None:
                return path
    raise RobotModelError(f"{robot.name}: no path out of reach is found for the task")


class PathSearch:
    """A search for paths of an arm with one tip near configurations where its task loses rank.

    Args:
        start: (n,) joint values near which singularities are preferred; default: a bent arm.

    Raises:
        RobotModelError: several tips.
    """

    def __init__(
        self, robot: RobotModel, task: Task | None = None, start: Array | None = None
    ) -> None:
        if len(robot.tips) > 1:
            names = ", ".join(robot.tips)
            raise RobotModelError(
                f"a path is made for one tip, and {robot.name} has {names}: name one"
            )
        self.robot, self.task = robot, checked_tasks(robot, task)[0]
        self.start = ready_configuration(robot) if start is None else start

    def jacobians(self, q: Array) -> Array:
        """Compute Jacobians (b, r, n) of the rows of the task at q (b, n), scaled by LENGTH."""
        weights = np.repeat((1.0, LENGTH), (len(self.task.position), len(self.task.rotation)))
        return weights[:, None] * task_jacobians(self.robot, self.task, q)

    @cached_property
    def rank(self) -> int:
        """Rank of the Jacobian at almost every configuration."""
        J = self.jacobians(self.robot.random(np.random.default_rng(0), 50))
        s = np.linalg.svd(J, compute_uv=False)
        return int((s > VANISHING * s[:, :1]).sum(axis=1).max())

    @property
    def has_joint_to_spare(self) -> bool:
        """Return whether the arm has more joints than its tip has independent motions."""
        return self.robot.n > self.rank

    @cached_property
    def samples(self) -> Array:
        """Random configurations (b, n)."""
        return self.robot.random(np.random.default_rng(REACH_SEED), REACH_SAMPLES)

    @cached_property
    def middle(self) -> Array:
        """Middle (3,) of where the tip gets [m]."""
        tips = self.robot.fk(self.samples)[:, :3, 3]
        return np.asarray(0.5 * (tips.min(axis=0) + tips.max(axis=0)))

    @cached_property
    def reach(self) -> float:
        """Farthest distance of the tip from the middle of where it gets [m]."""
        tips = self.robot.fk(self.samples)[:, :3, 3]
        return float(np.linalg.norm(tips - self.middle, axis=1).max())

    @property
    def half_length(self) -> float:
        """Half the length of a path [m]."""
        is_usual = USUAL_REACH[0] < self.reach < USUAL_REACH[1]
        return TRANSLATION * (1.0 if is_usual else self.reach)

    def descend(self, q: Array) -> Array:
        """Descend to singular configurations from q (b, n), within the limits."""
        return descend(self.jacobians, self.robot, q, self.rank)

    def is_singular(self, q: Array) -> bool:
        """Return whether q (n,) is singular."""
        s = np.linalg.svd(self.jacobians(q[None])[0], compute_uv=False)
        return bool(s[self.rank - 1] < SINGULAR * s[0])

    def hardest(self) -> HardPath | None:
        """Find the path on which methods differ; None if there is none.

        Paths through singularities come first, then such to the edge of the reach.
        """
        singular = list(self._singular_configurations())
        for make_paths in (self._crossings, self._edges):
            best: HardPath | None = None
            for q in singular:
                for path, beyond in make_paths(q, self._lost_motion(q)):
                    runs = self._runs(path)
                    if runs is None or runs[0].peak < PEAK:
                        continue
                    found = HardPath(path, beyond, runs)
                    if found.ratio >= RATIO and (best is None or found.ratio > best.ratio):
                        best = found
                    if found.ratio >= CLEAR[0] and runs[0].peak >= CLEAR[1]:
                        return found
            if best is not None:
                return best
        return None

    def walk(self, about: str, center: Array, q: Array, motion: Array) -> PosePath | None:
        """Make a path of a pose (4, 4) moved by (m, 6); None if it cannot begin near q (n,)."""
        Ts = np.array([moved(center, each) for each in motion])
        start = self._start_of(q, Ts[0])
        return None if start is None else PosePath(about, Ts, STEP, start, len(Ts) // LAPS)

    def _singular_configurations(self) -> Iterator[Array]:
        """Yield singular configurations (n,), hints first."""
        rng = np.random.default_rng(SEED)
        spread = np.linspace(0.1, 1.0, STARTS)[:, None]
        starts = self.start + spread * (self.robot.random(rng, STARTS) - self.start)
        hint = HINTS.get(self.robot.joint_names)
        if hint is not None:
            starts = np.concatenate([[hint], starts])
        found: list[Array] = []
        for q in self.descend(self.robot.clip(starts)):
            is_new = all(np.abs(q - other).max() > APART for other in found)
            if is_new and self.is_singular(q):
                found.append(q)
                yield q
            if len(found) >= TRIED:
                return

    def _lost_motion(self, q: Array) -> Array:
        """Return the motion (6,) of the tip lost at q (n,): a translation, or else a rotation."""
        u = np.linalg.svd(self.jacobians(q[None])[0])[0][:, self.rank - 1]
        rows = ["xyz".index(axis) for axis in self.task.position]
        rows += [3 + "xyz".index(axis) for axis in self.task.rotation]
        V, T = np.zeros(6), self.robot.fk(q)
        V[rows] = u
        if self.task.frame == "target":
            V = (T[:3, :3] @ V.reshape(2, 3, 1)).ravel()
        size = float(np.linalg.norm(V[:3]))
        if size > LINEAR:
            outward = math.copysign(self.half_length, float(V[:3] @ T[:3, 3]))
            return np.append(outward * V[:3] / size, np.zeros(3))
        return np.append(np.zeros(3), ROTATION * V[3:] / np.linalg.norm(V[3:]))

    def _crossings(self, q: Array, lost: Array) -> Iterator[tuple[PosePath, float]]:
        """Yield paths along the motion (6,) lost at a singular q (n,), through it and past it."""
        away = np.random.default_rng(SEED).choice((-1.0, 1.0), self.robot.n)
        for miss in (0.0, *MISSES):
            center = self.robot.fk(q + miss * away)
            about = PASSING if miss else CROSSING
            path = self.walk(about, center, q, COSINE[:, None] * lost)
            if path is not None:
                yield path, 0.0

    def _edges(self, q: Array, lost: Array) -> Iterator[tuple[PosePath, float]]:
        """Yield paths to a singular q (n,) at the edge of the reach from inside, and beyond."""
        unit = lost / np.linalg.norm(lost)
        for share in BEYOND_REACH:
            for side in (1.0, -1.0):
                motion = -(1.0 + COSINE)[:, None] * side * lost
                motion += side * share * self.reach * unit
                path = self.walk(EDGE, self.robot.fk(q), q, motion)
                if path is not None:
                    yield path, share * self.reach

    def _start_of(self, q: Array, T: Array) -> Array | None:
        """Return joint values (n,) at a pose (4, 4), near q (n,) and within the limits, or None."""
        if self.task == Task():
            solver = IkSolver(self.robot, solve_type="distance", max_restarts=RESTARTS)
            result = solver.solve(T, q, PATIENCE)
            return result.q if result.success else None
        away = np.random.default_rng(SEED).uniform(-0.05, 0.05, self.robot.n)
        stepper = paced_stepper(self.robot, "jc+ed", self.robot.clip(q + away), STEP, self.task)
        stepper.run(T, SETTLING)
        is_there = float(np.linalg.norm(stepper.error(T))) < REACHED
        return stepper.q if is_there and bool(self.robot.within_limits(stepper.q)) else None

    def _runs(self, path: PosePath) -> tuple[BareRun, ...] | None:
        """Run all methods along a path; None if it cannot be followed."""
        found = []
        for method in METHODS:
            run = self._run(method, path)
            if run.peak > WILD or run.error > FAR_OFF * self.reach:
                return None
            found.append(run)
        return tuple(found)

    def _run(self, method: str, path: PosePath) -> BareRun:
        """Make a bare step for each pose of a path."""
        stepper = paced_stepper(self.robot, method, path.start, path.dt, self.task)
        q = stepper.run(path.Ts[1:], len(path.Ts) - 1).q
        is_turning = not np.ptp(path.Ts[:, :3, 3], axis=0).max() > 0.0
        errors = []
        for k in range(1, len(path.Ts), 4):
            stepper.q = q[k]
            e = stepper.error(path.Ts[k])
            errors.append(float(largest_errors(stepper.details.task, e)[int(is_turning)]))
        return BareRun(float(np.abs(np.diff(q, axis=0)).max()) / path.dt, max(errors))
