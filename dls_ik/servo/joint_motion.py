"""Motion through joint space: where to, which way, and when to be where."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.scene.ways import NODES, PathPairs, find_way, path_pairs, way_limits, way_out
from dls_ik.servo.guard import Guard
from dls_ik.servo.limiter import Limiter
from dls_ik.servo.tip_speed import TipSpeed
from dls_ik.solver import IkResult, IkSolver

# Where to, and which way
GOALS = 12  # most solutions that are tried

# When to be where
ARRIVED = 1e-9  # [rad or m] from the goal
LAG, LEAST_LAG = 0.1, 1e-3  # [s] at the limits of velocity, and [rad or m]: of a command that moves
LATE = 0.5  # [s] of a command that does not keep up
PARTS = 12  # of a straight part, for the speed of the tip; of a corner, for its distances
SLOWER, MOST_ROUNDS = 1.001, 200  # rounds in which parts are made slower until corners fit
EASE = 0.95  # share of the limits of acceleration and jerk, so that a command that lags catches up


class MotionPlan(NamedTuple):
    """A way to a target, or the reason why there is none."""

    way: Array  # (m, n) configurations from the start on, joined by straight paths; (0, n): none
    result: IkResult  # of the solver, for the target
    names: Pair | None = None  # in the way, where no free way leads to the target


def plan_motion(
    solver: IkSolver,
    world: SceneSnapshot | None,
    q: Array,
    T: Array,
    *,
    pairs: PathPairs | None = None,
    max_nodes: int = NODES,
    seed: int = 0,
) -> MotionPlan:
    """Find a way from q (n,) to a target that is free of collisions.

    To the nearest solution, straight if that is free; else to any of several solutions, around
    things. Where the target cannot be reached and q is too near to something, out of there.

    Args:
        solver: With the scene, if there is one.
        world: As the scene stands; None: every way is free.
        T: (4, 4), (k, 4, 4) for k tips.
        pairs: That are kept apart, at the target too; default: all of the scene.
        seed: Seed of random configurations.
    """
    result = solver.solve(T, q)
    if world is None:
        return MotionPlan(np.array([q, result.q]), result)
    pairs = path_pairs(world) if pairs is None else pairs
    start = way_limits(solver.robot, q, q[None], max_nodes, seed)
    names: Pair | None = None
    try:
        if pairs.near(q) is None and pairs.near(result.q) is None:
            names = pairs.block(q, result.q)
            if names is None:
                return MotionPlan(np.array([q, result.q]), result)
        goals, names = _goals(solver, T, q, result, pairs)
        if len(goals):
            limits = way_limits(solver.robot, q, np.vstack([q, goals]), max_nodes, seed)
            way = find_way(world, q, goals, limits, pairs)
            if way.success:
                return MotionPlan(way.q, result)
            names = way.names
        if pairs.near(q) is not None:
            return MotionPlan(way_out(world, q, start, pairs).q, result, names)
    except SceneError:  # an exact check, for which there is no library
        pass
    return MotionPlan(np.empty((0, solver.robot.n)), result, names)


def _goals(
    solver: IkSolver, T: Array, q: Array, result: IkResult, pairs: PathPairs
) -> tuple[Array, Pair | None]:
    """Return configurations (g, n) at the target, or the nearest; or a pair that is too near."""
    found = result.q[None]
    if result.success:
        others = solver.solve_all(T, GOALS, q)
        if solver.scene is not None:
            clearest = solver.solve(T, q, solve_type="clearance")
            others = np.vstack([others, clearest.q]) if clearest.success else others
        found = np.vstack([found, others])
    near = [pairs.near(each) for each in found]
    names = next((pair for pair in near if pair is not None), result.pair_in_the_way)
    return found[np.array([pair is None for pair in near], bool)], names


class MotionLimits(NamedTuple):
    """Limits of a motion through joint space."""

    velocity: Array  # (n,) [rad/s or m/s]
    acceleration: Array  # (n,), infinite without a limit
    jerk: Array  # (n,), infinite without a limit
    tip: TipSpeed | None = None


class Answer(NamedTuple):
    """The planner's answer."""

    plan: MotionPlan | None  # None: the way that was given is still free
    course: Course | None  # None: there is none


class PlannedMotion:
    """Motion of a command along a course, for as long as it can keep up.

    Args:
        velocity: (n,) limits [rad/s or m/s].
    """

    def __init__(self, course: Course, velocity: Array) -> None:
        self._course, self._time = course, 0.0
        self._most = LAG * velocity + LEAST_LAG
        self._late = 0.0  # [s] for which it has stood
        self.goal = course.way[-1]
        self.reference = course.way[0]

    @property
    def rest(self) -> Array:
        """The way that is left (k, n), from the reference on."""
        return self._course.rest(self._time)

    @property
    def has_failed(self) -> bool:
        """Return whether the command has not kept up for a while."""
        return self._late >= LATE

    def advance(self, limiter: Limiter | Guard, dt: float) -> bool:
        """Move for `dt` [s]; return whether the goal is reached.

        The reference waits for a command that lags behind it, such as before a thing.
        """
        waits = bool((np.abs(limiter.q - self.reference) > self._most).any())
        before = self.reference
        if not waits:
            self._time += dt
            self.reference = self._course.at(self._time)
        is_late = waits or self._time > self._course.duration + dt
        self._late = self._late + dt if is_late else 0.0
        limiter.advance(self.reference, (self.reference - before) / dt, dt)
        return (
            self._time >= self._course.duration
            and float(np.abs(self.goal - limiter.q).max()) <= ARRIVED
        )


class Course:
    """Motion along a way, from rest to rest: straight at even velocities, with rounded corners.

    At each corner the velocity changes by an even acceleration, which begins before the corner and
    ends as long after it (parabolic blends, Kunz & Stilman 2012); with limits of jerk it rises and
    falls evenly. Where such a corner is not free the arm stops in it.

    Args:
        way: (m, n) configurations.
        pairs: that rounded corners have to keep apart; None: all corners are free.

    Attributes:
        way: as given.
        duration: [s].
    """

    def __init__(self, way: Array, limits: MotionLimits, pairs: PathPairs | None = None) -> None:
        self.way, self._limits = way, limits
        stops = np.zeros(len(way), bool)
        stops[[0, -1]] = True
        for _ in range(len(way)):
            self._schedule(stops)
            new = self._blocked_corners(stops, pairs)
            if not new.any():
                break
            stops |= new

    def at(self, t: float) -> Array:
        """Return the configuration (n,) at a time [s]."""
        if t >= self.duration:
            return np.array(self.way[-1])
        u: Array = t - self._centres
        before, after = u <= -0.5 * self._durations, u >= 0.5 * self._durations
        passed = np.where(after, u, 0.0)
        turns = np.flatnonzero(~before & ~after)
        passed[turns] = _distance(u[turns], self._durations[turns], self._ramps[turns])
        q: Array = self.way[0] + passed @ self._changes
        return q

    def rest(self, t: float) -> Array:
        """Return the way that is left at a time [s], (k, n), from where it is then."""
        ahead = self._corners > t
        left: Array = np.vstack([self.at(t), self.way[ahead] if ahead.any() else self.way[-1:]])
        return np.asarray(left, float)

    def _schedule(self, stops: NDArray[np.bool_]) -> None:
        """Set when velocities change, and by how much, with rests in some corners."""
        centres, durations, ramps, changes = [], [], [], []
        corners, begin = [0.0], 0.0
        rests = np.flatnonzero(stops)
        for first, last in pairwise(rests):
            times, dv, b, w = self._section(self.way[first : last + 1])
            at = begin + 0.5 * b[0] + np.concatenate([[0.0], np.cumsum(times)])
            centres.append(at)
            durations.append(b)
            ramps.append(w)
            changes.append(dv)
            begin = float(at[-1] + 0.5 * b[-1])
            corners += [*at[1:-1].tolist(), begin]
        self._centres, self._durations = np.concatenate(centres), np.concatenate(durations)
        self._ramps, self._changes = np.concatenate(ramps), np.vstack(changes)
        self._corners, self.duration = np.array(corners), begin

    def _section(self, way: Array) -> tuple[Array, Array, Array, Array]:
        """Return times (m - 1,) of straight parts; changes (m, n), durations and ramps (m,)."""
        limits, steps = self._limits, np.diff(way, axis=0)
        times = np.maximum((np.abs(steps) / limits.velocity).max(axis=1), 1e-6)
        if limits.tip is not None:
            times = np.maximum(
                times, [_tip_time(limits.tip, a, d) for a, d in zip(way, steps, strict=False)]
            )
        for _ in range(MOST_ROUNDS):
            v = np.vstack([np.zeros_like(way[0]), steps / times[:, None], np.zeros_like(way[0])])
            dv = np.diff(v, axis=0)
            b, w = _pulses(dv, EASE * limits.acceleration, EASE * limits.jerk)
            need = 0.5 * (b[:-1] + b[1:])
            if (need <= times * (1.0 + 1e-9)).all():
                break
            times = np.where(need > times, np.sqrt(times * need) * SLOWER, times)
        return times, dv, b, w

    def _blocked_corners(
        self, stops: NDArray[np.bool_], pairs: PathPairs | None
    ) -> NDArray[np.bool_]:
        """Return (m,) the corners that are passed without a stop, and are not free."""
        blocked = np.zeros(len(stops), bool)
        if pairs is None:
            return blocked
        for i in range(1, len(stops) - 1):
            k = i + int(stops[1:i].sum())  # as there are two changes where it stops
            if stops[i] or self._durations[k] == 0.0:
                continue
            half = 0.5 * self._durations[k]
            times = self._centres[k] + np.linspace(-half, half, PARTS + 1)
            q = np.array([self.at(t) for t in times])
            # The curve is within |a| h^2 / 8 of its chord.
            peak = np.abs(self._changes[k]) / max(2.0 * half - self._ramps[k], 1e-9)
            away = pairs.reach @ (peak * (2.0 * half / PARTS) ** 2 / 8.0)
            wide = pairs._replace(margins=pairs.margins + away)
            blocked[i] = any(wide.block(a, c) is not None for a, c in pairwise(q))
        return blocked


def _tip_time(tip: TipSpeed, q: Array, step: Array) -> float:
    """Return the least time [s] of a straight step (n,) at an even velocity."""
    return PARTS * tip.shortest(q + np.linspace(0.0, 1.0, PARTS + 1)[:, None] * step)


def _pulses(dv: Array, acceleration: Array, jerk: Array) -> tuple[Array, Array]:
    """Return durations (m,) of changes of velocity (m, n), and of their rise and fall [s]."""
    sharp = (np.abs(dv) / jerk).max(axis=1)
    level = np.maximum((np.abs(dv) / acceleration).max(axis=1), np.sqrt(sharp))
    ramps = sharp / np.maximum(level, 1e-12)
    return level + ramps, ramps


def _distance(u: Array, durations: Array, ramps: Array) -> Array:
    """Return the integrals (k,) of changes of velocity by 1, at times from their middles [s]."""
    x, y = u + 0.5 * durations, 0.5 * durations - u  # since the beginning, until the end
    with np.errstate(divide="ignore", invalid="ignore"):
        cubes = x**3 - np.maximum(x - ramps, 0.0) ** 3 - np.maximum(ramps - y, 0.0) ** 3
        rounded = cubes / (6.0 * ramps * (durations - ramps))
        even = x * x / (2.0 * durations)
    passed: Array = np.where(ramps > 1e-6 * durations, rounded, even)
    return passed
