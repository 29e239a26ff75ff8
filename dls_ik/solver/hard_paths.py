"""Paths on which methods differ: past a singularity, and out of reach.

A path is found by trial: random configurations are brought to a singularity by descent on the least
singular value of the task's Jacobian, and paths along the direction that is lost there are walked
by bare steps. The one with the greatest ratio of joint speeds is taken.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from dls_ik.core.se3 import moved
from dls_ik.core.types import Array
from dls_ik.errors import RobotModelError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

RATE, LAPS = 100.0, 2  # [Hz] of targets; forth and back
TURN = 0.01  # [rad] of the phase from one target to the next: a lap takes 2 pi seconds
SPAN = 0.1  # half the length of a path, as a share of the reach
HALF_TURN = 0.3  # [rad] the same for a path of rotations
LINEAR = 0.3  # least linear part of a lost direction that is taken for a translation
BEYOND = 0.5  # of half the length, that a path leads out of reach

SAMPLES, KEPT, RANDOM_SEED = 2000, 24, 5
RESTARTS, PATIENCE = 20, 60.0  # for the first pose; the restarts end a search, not the time [s]
INNER = 0.7  # of the joint ranges, that samples are from
ROUNDS, LONGEST, DIFFERENCE = 30, 0.3, 1e-5  # of the descent; [rad or m]
VANISHING, SINGULAR = 1e-7, 1e-4  # shares of the largest singular value
NEAR = (0.02, 0.05, 0.1, 0.2)  # singular values in mid-path, as shares of the median
TRACKED = 0.1  # of half the length: error up to which a path counts as followed
DISTINCT = 2.0  # ratio of joint speeds that makes a path worth showing

# Folded wrist of the WAM, and half the length [m]: the path of benchmarks.tracking.
KNOWN = {"wam7": ((0.3, 0.6, 0.2, 1.6, -math.pi / 2, 0.0, 0.2), 0.1)}


class PosePath(NamedTuple):
    """Targets at equal times."""

    about: str  # such as "past a singularity"
    Ts: Array  # (t, 4, 4) T_base_tip [m]
    dt: float  # [s] from one target to the next
    start: Array  # (n,) joint values at the first target [rad or m]
    first_counted: int = 0  # target from which errors count: the begin of lap 2


def default_task(robot: RobotModel) -> Task | None:
    """Return None, the full pose, for arms that move in six directions; else the position."""
    J = robot.jacobian(robot.random(np.random.default_rng(0), 8))
    ranks = [np.linalg.matrix_rank(each[:6], tol=VANISHING) for each in J]
    return None if max(ranks) == 6 else Task.position_only()


def singular_path(robot: RobotModel, task: Task | None = None) -> PosePath:
    """Find a path forth and back past a singularity: a cosine in time, two laps.

    Arms that no such path makes fast, as a planar arm of two links, get :func:`reach_path`.

    Args:
        task: pose or position, see :func:`default_task`.

    Raises:
        RobotModelError: several tips, or no singularity is found.
    """
    _check_tips(robot)
    if robot.name in KNOWN and robot.n == len(KNOWN[robot.name][0]) and task is None:
        q, half = KNOWN[robot.name]
        return _known_path(robot, np.array(q), half)
    trials = [_Trial(robot, task, *each) for each in _candidates(robot, task)]
    best = max(trials, key=lambda trial: trial.ratio, default=None)
    if best is None or best.ratio < DISTINCT:
        return reach_path(robot, task)
    return best.path


def reach_path(robot: RobotModel, task: Task | None = None) -> PosePath:
    """Find a path straight out of reach and back: a cosine in time, two laps.

    Raises:
        RobotModelError: several tips, or no border of the workspace is found.
    """
    _check_tips(robot)
    search, solver = _Search(robot, task), _quick_solver(robot, task)
    tips = robot.fk(search.samples)[:, :3, 3]
    shoulder = 0.5 * (tips.min(axis=0) + tips.max(axis=0))
    far = np.argsort(-np.linalg.norm(tips - shoulder, axis=1))[:KEPT]
    for q in search.descend(search.samples[far]):
        outward = robot.fk(q)[:3, 3] - shoulder
        size = float(np.linalg.norm(outward))
        if size > 0.0 and search.is_singular(q):
            direction = np.append(SPAN * search.reach * outward / size, np.zeros(3))
            path = _walk(solver, q, robot.fk(q), direction, _beyond, "out of reach and back")
            if path is not None:
                return path
    raise RobotModelError(f"{robot.name}: no path out of reach is found for the task")


def _check_tips(robot: RobotModel) -> None:
    if len(robot.tips) > 1:
        names = ", ".join(robot.tips)
        raise RobotModelError(f"a path is made for one tip, and {robot.name} has {names}: name one")


def _through(phase: float) -> float:
    return math.cos(phase)


def _touching(phase: float) -> float:
    return -(1.0 + math.cos(phase))


def _beyond(phase: float) -> float:
    return BEYOND - (1.0 + math.cos(phase))


def _walk(
    solver: IkSolver,
    q: Array,
    center: Array,
    direction: Array,
    shape: Callable[[float], float],
    about: str,
) -> PosePath | None:
    """Make a path about a pose (4, 4) along a twist (6,); None if its begin is not reached."""
    lap = round(2.0 * math.pi * LAPS / TURN) // LAPS
    begin = solver.solve(moved(center, shape(0.0) * direction), q, timeout=PATIENCE)
    if not begin.success:
        return None
    phases = TURN * np.arange(round(2.0 * math.pi * LAPS / TURN))
    Ts = np.array([moved(center, shape(phase) * direction) for phase in phases])
    return PosePath(about, Ts, 1.0 / RATE, begin.q, lap)


def _known_path(robot: RobotModel, q: Array, half: float) -> PosePath:
    """Return the path through a configuration that is exactly singular."""
    u = np.linalg.svd(robot.jacobian(q))[0][:3, -1]
    center = robot.fk(q)
    outward = math.copysign(half, float(u @ center[:3, 3])) * u / np.linalg.norm(u)
    direction = np.append(outward, np.zeros(3))
    solver = IkSolver(robot, solve_type="distance")
    path = _walk(solver, q, center, direction, _through, "through a singularity")
    if path is None:
        raise RobotModelError(f"{robot.name}: the path through its singularity is not reached")
    return path


def _quick_solver(robot: RobotModel, task: Task | None) -> IkSolver:
    """Return a solver for begins of paths, many of which are not reached."""
    return IkSolver(robot, task=task, solve_type="distance", max_restarts=RESTARTS)


class _Search:
    """Search for configurations where the task's Jacobian loses rank."""

    def __init__(self, robot: RobotModel, task: Task | None) -> None:
        self.robot = robot
        rows = 6 if task is None else 3
        self._weights = np.array([1.0, 1.0, 1.0, 0.5, 0.5, 0.5])[:rows, None]  # [m/rad]
        rng = np.random.default_rng(RANDOM_SEED)
        lower, upper = robot.finite_limits()
        half = INNER * np.minimum(0.5 * (upper - lower), np.pi)
        spread = rng.uniform(-1.0, 1.0, (SAMPLES, robot.n))
        self.samples = 0.5 * (lower + upper) + half * spread
        s = self.singular_values(self.samples)
        self.rank = int((s > VANISHING * s[:, :1]).sum(axis=1).max())
        self.least = s[:, self.rank - 1]
        self.reach = 0.5 * float(np.ptp(robot.fk(self.samples)[:, :3, 3], axis=0).max())

    def jacobians(self, q: Array) -> Array:
        """Compute scaled Jacobians (b, r, n) at q (b, n)."""
        return self._weights * self.robot.jacobian(q)[:, : len(self._weights)]

    def singular_values(self, q: Array) -> Array:
        """Compute singular values (b, k) at q (b, n), falling."""
        return np.asarray(np.linalg.svd(self.jacobians(q), compute_uv=False))

    def gradients(self, q: Array) -> Array:
        """Compute gradients (b, n) of the singular value of the rank by central differences."""
        b, n = q.shape
        shifts = DIFFERENCE * np.eye(n)
        both = np.concatenate([q[:, None] + shifts, q[:, None] - shifts], axis=1)
        values = self.singular_values(both.reshape(-1, n))[:, self.rank - 1].reshape(b, 2, n)
        return (values[:, 0] - values[:, 1]) / (2.0 * DIFFERENCE)

    def descend(self, q: Array) -> Array:
        """Descend to singular configurations from q (b, n), by Newton's steps within the limits."""
        for _ in range(ROUNDS):
            value = self.singular_values(q)[:, self.rank - 1]
            g = self.gradients(q)
            squared = np.maximum((g * g).sum(axis=1), 1e-18)
            length = np.minimum(value / squared, LONGEST / np.sqrt(squared))
            q = self.robot.clip(q - length[:, None] * g)
        return q

    def is_singular(self, q: Array) -> bool:
        """Return whether q (n,) is singular."""
        s = self.singular_values(q[None])[0]
        return bool(s[self.rank - 1] < SINGULAR * s[0])

    def lost(self, q: Array) -> Array:
        """Return the twist (6,) that is lost at q (n,), as long as half a path, outward."""
        U = np.linalg.svd(self.jacobians(q[None])[0])[0]
        u = U[:, self.rank - 1]
        size = float(np.linalg.norm(u[:3]))
        if size < LINEAR:
            turn = u[3:] / np.linalg.norm(u[3:])
            return np.append(np.zeros(3), HALF_TURN * turn)
        outward = math.copysign(SPAN * self.reach / size, float(u[:3] @ self.robot.fk(q)[:3, 3]))
        return np.append(outward * u[:3], np.zeros(3))


def _candidates(robot: RobotModel, task: Task | None) -> Iterator[tuple[PosePath, float]]:
    """Yield paths near singularities, each with half its length [m or rad]."""
    search, solver = _Search(robot, task), _quick_solver(robot, task)
    rng = np.random.default_rng(RANDOM_SEED)
    for q in search.descend(search.samples[np.argsort(search.least)[:KEPT]]):
        if not search.is_singular(q):
            continue
        direction = search.lost(q)
        beside = q + 1e-3 * rng.uniform(-1.0, 1.0, robot.n)  # it has no gradient itself
        g = search.gradients(beside[None])[0]
        for share in NEAR:
            away = share * float(np.median(search.least)) * g / max(float(g @ g), 1e-18)
            middle = robot.clip(q + away)
            for shape in (_through, _touching):
                about = "past a singularity"
                path = _walk(solver, middle, robot.fk(middle), direction, shape, about)
                if path is not None:
                    yield path, float(np.linalg.norm(direction))


class _Trial:
    """Joint speeds that a path asks for."""

    def __init__(self, robot: RobotModel, task: Task | None, path: PosePath, half: float) -> None:
        self.path, self.ratio = path, 0.0
        lap = path.Ts[: len(path.Ts) // LAPS]
        exact = self._steps(robot, task, "svf", lap)
        off = np.linalg.norm(robot.fk(exact[1:])[:, :3, 3] - lap[:, :3, 3], axis=1).max()
        if off > TRACKED * half or not robot.within_limits(exact).all():
            return  # a jump to another branch, or joints beyond their limits
        fast = (exact, self._steps(robot, task, "jp", lap))
        calm = _fastest(self._steps(robot, task, "svf+sd", lap))
        self.ratio = min(map(_fastest, fast)) / max(calm, 1e-12)

    def _steps(self, robot: RobotModel, task: Task | None, method: str, Ts: Array) -> Array:
        return Stepper(robot, method, self.path.start, task=task).run(Ts, len(Ts)).q


def _fastest(q: Array) -> float:
    return float(np.abs(np.diff(q, axis=0)).max())
