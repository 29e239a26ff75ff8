# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Motions in joint space to a target pose: goal configurations, path and timing."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import SceneError
from dls_ik.scene.joint_paths import (
    MAX_TREE_NODES,
    PathPairs,
    escape_path,
    path_limits,
    path_pairs,
    plan_path,
)
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.servo.guard import Guard
from dls_ik.servo.limiter import Limiter
from dls_ik.servo.tip_speed import TipSpeed
from dls_ik.solver import IkResult, IkSolver

# Goal and path
MAX_GOALS = 12  # maximum number of IK solutions that are goals of a path

# Timing
GOAL_TOLERANCE = 1e-9  # [rad or m] distance from the goal at which a motion is complete
LAG_TIMEOUT = 0.5  # [s] a motion has failed if its command lags for this time
# Number of intervals of a straight segment (for the tip speed) and of a corner (for distances).
NUM_SEGMENTS = 12
# Maximum number of iterations that lengthen segments until their corners fit, and the factor by
# which each iteration lengthens a segment in addition.
MAX_RETIMINGS, RETIMING_FACTOR = 200, 1.001
# Share of the acceleration and jerk limits that a trajectory uses, so that a lagging command can
# catch up.
USED_LIMIT_SHARE = 0.95


class MotionPlan(NamedTuple):
    """Path to a target, or the pair of links or objects that blocks all paths to the target."""

    path: Array  # (m, n) configurations joined by straight segments; (0, n): no path found
    result: IkResult  # the solver's result for the target
    names: Pair | None = None  # pair that blocks the target, or the path to the target


def plan_motion(
    solver: IkSolver,
    world: SceneSnapshot | None,
    q: Array,
    T: Array,
    *,
    pairs: PathPairs | None = None,
    max_nodes: int = MAX_TREE_NODES,
    seed: int = 0,
    goal: Array | None = None,
) -> MotionPlan:
    """Plan a collision-free joint path from q (n,) to a target pose.

    If the straight path to the closest IK solution is collision-free, this path is returned.
    Otherwise a search looks for a path around obstacles to one of several IK solutions. If the
    search fails, and a pair is closer than its margin at q, the returned path only separates the
    pairs: it ends at a configuration in which all pairs keep their margins.

    Args:
        solver: Solver, with the scene if there is one.
        world: Current state of the scene; None: there are no obstacles.
        q: (n,) start [rad or m].
        T: T_base_tip (4, 4), or (k, 4, 4) for k tips.
        pairs: Pairs of links or objects, and the margin (minimum distance) that each pair keeps
            along the path; None: all pairs of the scene.
        max_nodes: Maximum number of configurations in the search trees.
        seed: Seed of the random configurations.
        goal: (n,) IK solution of the target at which the path must end [rad or m]; None: any IK
            solution.
    """
    result = solver.solve(T, q if goal is None else goal)
    if goal is not None:
        result = result._replace(q=goal)
    if world is None:
        return MotionPlan(np.array([q, result.q]), result)
    pairs = path_pairs(world) if pairs is None else pairs
    start = path_limits(solver.robot, q, q[None], max_nodes, seed)
    names: Pair | None = None
    try:
        if pairs.near(q) is None and pairs.near(result.q) is None:
            names = pairs.block(q, result.q)
            if names is None:
                return MotionPlan(np.array([q, result.q]), result)
        goals, names = _goal_configurations(solver, T, q, result, pairs, goal is not None)
        if len(goals):
            limits = path_limits(solver.robot, q, np.vstack([q, goals]), max_nodes, seed)
            path = plan_path(world, q, goals, limits, pairs)
            if path.success:
                return MotionPlan(path.q, result)
            names = path.names
        if pairs.near(q) is not None:
            return MotionPlan(escape_path(world, q, start, pairs).q, result, names)
    except SceneError:  # an exact check needs a library that is not installed
        pass
    return MotionPlan(np.empty((0, solver.robot.n)), result, names)


def _goal_configurations(
    solver: IkSolver,
    T: Array,
    q: Array,
    result: IkResult,
    pairs: PathPairs,
    is_only: bool = False,
) -> tuple[Array, Pair | None]:
    """Return the goal configurations (g, n) of a path, and a pair that excludes other goals.

    Goals are IK solutions in which all pairs keep their margins. If the solver does not reach the
    target, the only possible goal is the closest configuration that the solver found.

    Args:
        solver: Solver, with the scene if there is one.
        T: T_base_tip (4, 4), or (k, 4, 4) for k tips.
        q: (n,) start of the path [rad or m].
        result: The solver's result for T.
        pairs: Pairs and their margins.
        is_only: Whether the solver's result is the only possible goal.

    Returns:
        The goals, and a pair that is closer than its margin in an excluded configuration; None
        instead of the pair if no configuration was excluded.
    """
    found = result.q[None]
    if result.success and not is_only:
        others = solver.solve_all(T, MAX_GOALS, q).q
        if solver.scene is not None:
            clearest = solver.solve(T, q, solve_type="clearance")
            others = np.vstack([others, clearest.q]) if clearest.success else others
        found = np.vstack([found, others])
    near = [pairs.near(each) for each in found]
    names = next((pair for pair in near if pair is not None), result.pair_in_the_way)
    return found[np.array([pair is None for pair in near], bool)], names


class MotionLimits(NamedTuple):
    """Limits of a joint-space motion."""

    velocity: Array  # (n,) velocity limits [rad/s or m/s]
    acceleration: Array  # (n,) acceleration limits [rad/s^2 or m/s^2], infinite without a limit
    jerk: Array  # (n,) jerk limits [rad/s^3 or m/s^3], infinite without a limit
    tip: TipSpeed | None = None  # speed limits of the tip; None: no limits


class PlannedPath(NamedTuple):
    """Result of planning: a plan, and a trajectory along the planned path."""

    plan: MotionPlan | None  # None: the previous path is still collision-free and is reused
    trajectory: TimedPath | None  # None: no path found


class PlannedMotion:
    """Motion of the command along a trajectory.

    The command follows a reference, which moves along the trajectory and waits while the distance
    of the command from the reference is large.

    Args:
        trajectory: Trajectory of the reference.
        velocity: (n,) velocity limits [rad/s or m/s].

    Attributes:
        goal: (n,) joint positions at the end of the trajectory [rad or m].
        reference: (n,) joint positions of the reference in the current cycle [rad or m].
    """

    def __init__(self, trajectory: TimedPath, velocity: Array) -> None:
        self._trajectory, self._time = trajectory, 0.0
        # (n,) distance from the reference at which the command lags [rad or m]: 0.1 s at full speed
        self._max_lag = 0.1 * velocity + 1e-3
        self._lag_time = 0.0  # [s] time for which the command has lagged
        self.goal = trajectory.path[-1]
        self.reference = trajectory.path[0]

    @property
    def remaining_path(self) -> Array:
        """Configurations (k, n) [rad or m] of the path from the reference to the goal."""
        return self._trajectory.remaining_path(self._time)

    @property
    def has_failed(self) -> bool:
        """Return whether the command has lagged behind the reference for `LAG_TIMEOUT`."""
        return self._lag_time >= LAG_TIMEOUT

    def advance(self, limiter: Limiter | Guard, dt: float) -> bool:
        """Move the limiter's command for `dt` [s]; return whether the command is at the goal.

        The reference waits while the command lags, for example if the guard slows the command in
        front of an obstacle.
        """
        waits = bool((np.abs(limiter.q - self.reference) > self._max_lag).any())
        before = self.reference
        if not waits:
            self._time += dt
            self.reference = self._trajectory.at(self._time)
        is_late = waits or self._time > self._trajectory.duration + dt
        self._lag_time = self._lag_time + dt if is_late else 0.0
        limiter.advance(self.reference, (self.reference - before) / dt, dt)
        return (
            self._time >= self._trajectory.duration
            and float(np.abs(self.goal - limiter.q).max()) <= GOAL_TOLERANCE
        )


class TimedPath:
    """Trajectory along a path with rounded corners; the arm starts and ends at rest.

    The velocity is constant on each straight segment. A corner is rounded by a parabolic blend
    (Kunz & Stilman 2012): the velocity changes at constant acceleration, during equal times before
    and after the corner. With a jerk limit, the acceleration ramps up and down linearly. If a blend
    is not collision-free, the arm stops at the corner instead.

    Args:
        path: (m, n) configurations [rad or m].
        limits: Limits of the motion.
        pairs: Pairs, and the margin (minimum distance) that each pair keeps in rounded corners;
            None: no checks.

    Attributes:
        path: As given.
        duration: Duration of the trajectory [s].
    """

    def __init__(self, path: Array, limits: MotionLimits, pairs: PathPairs | None = None) -> None:
        self.path, self._limits = path, limits
        stops = np.zeros(len(path), bool)
        stops[[0, -1]] = True
        for _ in range(len(path)):
            self._schedule(stops)
            new = self._blocked_corners(stops, pairs)
            if not new.any():
                break
            stops |= new

    def at(self, t: float) -> Array:
        """Return the configuration (n,) at a time [s]."""
        if t >= self.duration:
            return np.array(self.path[-1])
        u: Array = t - self._centres
        before, after = u <= -0.5 * self._durations, u >= 0.5 * self._durations
        passed = np.where(after, u, 0.0)
        turns = np.flatnonzero(~before & ~after)
        passed[turns] = _blend_distance(u[turns], self._durations[turns], self._ramps[turns])
        q: Array = self.path[0] + passed @ self._changes
        return q

    def knots(self, min_interval: float) -> tuple[Array, Array, Array]:
        """Return points between which the trajectory is a polynomial of degree 3 or less.

        The times are whole nanoseconds, as in ROS messages. If times were rounded after sampling,
        the accelerations in short intervals would change considerably, because they are inversely
        proportional to the square of the interval.

        Args:
            min_interval: Minimum time between two points [s].

        Returns:
            Times (k,) [s], positions (k, n) [rad or m] and velocities (k, n) [rad/s or m/s].
        """
        half = 0.5 * self._durations
        ends = (-half, self._ramps - half, half - self._ramps, half)
        times = np.unique(np.concatenate([self._centres + end for end in ends]).clip(0.0))
        kept = np.concatenate([[True], np.diff(times) > min_interval])
        times = times[kept]
        if len(times) < 2:
            times = np.array([0.0, max(self.duration, 2.0 * min_interval)])
        times[-1] = max(self.duration, times[-2] + min_interval)
        times = np.append(np.round(times[:-1], 9), np.ceil(times[-1] * 1e9) / 1e9)
        q = np.array([self.at(t) for t in times])
        return times, q, np.array([self._velocity_at(t) for t in times])

    def _velocity_at(self, t: float) -> Array:
        """Return the velocities (n,) at a time [s]."""
        h, w = self._durations, self._ramps
        x = np.clip(t - self._centres + 0.5 * h, 0.0, h)  # time since the start of each change
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = x**2 - np.maximum(x - w, 0.0) ** 2 - np.maximum(w - (h - x), 0.0) ** 2
            share = np.where(w > 1e-6 * h, squares / (2.0 * w * (h - w)), x / h)
        share = np.where(t - self._centres >= 0.5 * h, 1.0, np.nan_to_num(share))
        v: Array = share @ self._changes
        return v

    def remaining_path(self, t: float) -> Array:
        """Return the configurations (k, n) of the path that remains after time t [s]."""
        ahead = self._corners > t
        left: Array = np.vstack([self.at(t), self.path[ahead] if ahead.any() else self.path[-1:]])
        return np.asarray(left, float)

    def _schedule(self, stops: NDArray[np.bool_]) -> None:
        """Compute and store the times, durations and sizes of all velocity changes.

        Args:
            stops: (m,) whether the arm stops at each configuration of the path.
        """
        centres, durations, ramps, changes = [], [], [], []
        corners, start = [0.0], 0.0
        rests = np.flatnonzero(stops)
        for first, last in pairwise(rests):
            times, dv, b, w = self._section(self.path[first : last + 1])
            at = start + 0.5 * b[0] + np.concatenate([[0.0], np.cumsum(times)])
            centres.append(at)
            durations.append(b)
            ramps.append(w)
            changes.append(dv)
            start = float(at[-1] + 0.5 * b[-1])
            corners += [*at[1:-1].tolist(), start]
        self._centres, self._durations = np.concatenate(centres), np.concatenate(durations)
        self._ramps, self._changes = np.concatenate(ramps), np.vstack(changes)
        self._corners, self.duration = np.array(corners), start

    def _section(self, path: Array) -> tuple[Array, Array, Array, Array]:
        """Compute the timing of a path (m, n) on which the arm stops only at the start and the end.

        Returns:
            Durations (m - 1,) of the straight segments [s]; velocity changes (m, n) at the
            configurations [rad/s or m/s]; durations (m,) of the velocity changes [s]; durations
            (m,) of the acceleration ramps of the velocity changes [s].
        """
        limits, steps = self._limits, np.diff(path, axis=0)
        times = np.maximum((np.abs(steps) / limits.velocity).max(axis=1), 1e-6)
        if limits.tip is not None:
            times = np.maximum(
                times, [_tip_time(limits.tip, a, d) for a, d in zip(path, steps, strict=False)]
            )
        rest = np.zeros_like(path[0])
        for _ in range(MAX_RETIMINGS):
            v = np.vstack([rest, steps / times[:, None], rest])
            dv = np.diff(v, axis=0)
            b, w = _pulse_durations(
                dv, USED_LIMIT_SHARE * limits.acceleration, USED_LIMIT_SHARE * limits.jerk
            )
            need = 0.5 * (b[:-1] + b[1:])
            if (need <= times * (1.0 + 1e-9)).all():
                break
            times = np.where(need > times, np.sqrt(times * need) * RETIMING_FACTOR, times)
        return times, dv, b, w

    def _blocked_corners(
        self, stops: NDArray[np.bool_], pairs: PathPairs | None
    ) -> NDArray[np.bool_]:
        """Return flags (m,) of the corners whose blend is not collision-free.

        Configurations at which the arm already stops are not flagged.

        Args:
            stops: (m,) whether the arm stops at each configuration of the path.
            pairs: Pairs and their margins; None: no checks.
        """
        blocked = np.zeros(len(stops), bool)
        if pairs is None:
            return blocked
        for i in range(1, len(stops) - 1):
            k = i + int(stops[1:i].sum())  # each earlier stop has two velocity changes
            if stops[i] or self._durations[k] == 0.0:
                continue
            half = 0.5 * self._durations[k]
            times = self._centres[k] + np.linspace(-half, half, NUM_SEGMENTS + 1)
            q = np.array([self.at(t) for t in times])
            # A curve of acceleration a and duration h stays within |a| h^2 / 8 of its chord.
            peak = np.abs(self._changes[k]) / max(2.0 * half - self._ramps[k], 1e-9)
            away = pairs.reach @ (peak * (2.0 * half / NUM_SEGMENTS) ** 2 / 8.0)
            wide = pairs._replace(margins=pairs.margins + away)
            blocked[i] = any(wide.block(a, c) is not None for a, c in pairwise(q))
        return blocked


def _tip_time(tip: TipSpeed, q: Array, step: Array) -> float:
    """Return the minimum time [s] for a joint-space step within the speed limits of the tip.

    Args:
        tip: Speed limits of the tip.
        q: (n,) start of the step [rad or m].
        step: (n,) change of the joint positions, at constant velocity [rad or m].
    """
    samples = q + np.linspace(0.0, 1.0, NUM_SEGMENTS + 1)[:, None] * step
    return NUM_SEGMENTS * tip.shortest(samples)


def _pulse_durations(dv: Array, acceleration: Array, jerk: Array) -> tuple[Array, Array]:
    """Return the durations (m,) of m velocity changes, and of their acceleration ramps [s].

    An acceleration ramp is the interval in which the acceleration rises from 0, or falls to 0.

    Args:
        dv: (m, n) velocity changes [rad/s or m/s].
        acceleration: (n,) limits [rad/s^2 or m/s^2].
        jerk: (n,) limits [rad/s^3 or m/s^3].
    """
    sharp = (np.abs(dv) / jerk).max(axis=1)
    level = np.maximum((np.abs(dv) / acceleration).max(axis=1), np.sqrt(sharp))
    ramps = sharp / np.maximum(level, 1e-12)
    return level + ramps, ramps


def _blend_distance(u: Array, durations: Array, ramps: Array) -> Array:
    """Return the distances (k,) covered so far in k velocity changes from 0 to 1.

    The acceleration of each change rises linearly from 0, is constant, and falls linearly to 0.

    Args:
        u: (k,) times since the middle of each velocity change [s].
        durations: (k,) durations of the velocity changes [s].
        ramps: (k,) durations of the acceleration ramps of the velocity changes [s].
    """
    x, y = u + 0.5 * durations, 0.5 * durations - u  # time since the start, time to the end
    with np.errstate(divide="ignore", invalid="ignore"):
        cubes = x**3 - np.maximum(x - ramps, 0.0) ** 3 - np.maximum(ramps - y, 0.0) ** 3
        rounded = cubes / (6.0 * ramps * (durations - ramps))
        even = x * x / (2.0 * durations)
    passed: Array = np.where(ramps > 1e-6 * durations, rounded, even)
    return passed
