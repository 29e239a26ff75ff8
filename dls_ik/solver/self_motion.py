# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Families of solutions of one pose that are connected by self-motion.

Self-motion is a motion of a redundant arm during which the tips keep their poses. Two solutions
belong to one family if a self-motion within the joint limits leads from one to the other; with a
scene, the motion must also be collision-free.

The self-motion is searched in steps. A step displaces the joints, and then lets the solver bring
the tips back to the pose (an attempt); it needs no Jacobian, so it works for all tasks and scenes.
If the configurations that reach the pose form a curve, as for an arm with one spare joint, the
curve is followed from each solution in both directions until it meets another solution or ends. If
they form a surface of two or more dimensions, a probabilistic roadmap connects the solutions
(Kavraki et al. 1996).

Arrays `x` are scaled configurations: joint positions times the square roots of the joint weights
(solver option `joint_weights`), so that Euclidean distances of `x` are weighted joint distances.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.selection import SELECT_FIRST
from dls_ik.core.types import Array
from dls_ik.model.joint import TURN
from dls_ik.solver.method import AUTO_METHOD, parse_method
from dls_ik.solver.options import solver_options
from dls_ik.solver.search import Search, build_search, found

Families = NDArray[np.intp]  # (s,) family number of each solution; equal in the same family

# Options that define which configurations are solutions, and how distances are measured
SOLUTION_OPTIONS = (
    "position_tolerance", "rotation_tolerance", "error_tolerance", "rotation_weight",
    "rotation_error", "length_unit", "joint_weights", "random_seed",
)  # fmt: skip

# Lengths below are Euclidean distances between scaled configurations (see the module docstring).

# To find the directions of self-motion, each joint is displaced by PROBE_LENGTH, and the solver
# returns to the pose. The remaining displacements are the rows of a matrix. The matrix has a right
# singular vector for each direction; the singular value is above MIN_PROBE_SHARE * PROBE_LENGTH.
PROBE_LENGTH = 0.01
MIN_PROBE_SHARE = 0.5

# Following a curve:
CURVE_STEP = 0.05  # maximum length of a step along a curve
MIN_CURVE_STEP = 0.002  # if a smaller step would be needed, the curve ends
MAX_TANGENT_DEVIATION = 0.3  # largest accepted distance from the tangent, relative to the step
MIN_MOTION_SHARE = 0.5  # smallest accepted motion, relative to the step; joint limits shorten it
MEETING_DISTANCE = 0.005  # a solution within this distance of the curve is on the curve
MAX_CURVE_STEPS = 2000

# Roadmap, whose points are the given solutions and random solutions of the same pose:
NUM_ROADMAP_STARTS = 256  # number of random starts from which random solutions are searched
NUM_NEIGHBOURS = 4  # number of closest points to which motions from each point are tried in a round
MAX_ROADMAP_ROUNDS = 8
MOTION_STEP = 0.1  # length of a step on the motion from a point to another
MAX_MOTION_STEPS = 400


def number_families(search: Search, T: Array, q: Array, near: Array) -> Families:
    """Return the family number of each solution of one pose.

    Solutions have the same number if a self-motion within the joint limits connects them.

    Args:
        search: Search (robot, task, options and scene) that found the solutions.
        T: (1, k, 4, 4) pose that all solutions reach.
        q: (s, n) solutions [rad or m].
        near: (1, n) reference configuration [rad or m]. All configurations of a self-motion differ
            from it by at most ``search.max_change`` in each joint.

    Returns:
        Numbers (s,). The first solution has 0; each further family has the next integer.
    """
    space = SolutionSpace(search, T, near)
    x = q * space.scale
    groups = Groups(len(x))
    tangents = [space.tangents(each) for each in x]
    dimensions = [len(each) for each in tangents if len(each)]
    if dimensions and min(dimensions) == 1:
        _follow_curves(space, x, tangents, groups)
    elif dimensions:
        _connect_by_roadmap(space, x, groups)
    return groups.numbers(len(x))


class Groups:
    """Partition of points 0 ... count - 1 into groups; groups can be merged.

    At first, each point is a group of its own.

    Args:
        count: Number of points.
    """

    def __init__(self, count: int) -> None:
        self.label = np.arange(count)  # (count,) label of each point; equal within a group

    def merge(self, one: int, other: int) -> None:
        """Merge the group of the point with index `one` and the group of the point `other`."""
        self.label[self.label == self.label[other]] = self.label[one]

    def numbers(self, count: int) -> Families:
        """Return a group number (count,) for each of the first `count` points.

        Points of one group have the same number. The groups are numbered 0, 1, ... in the order in
        which they first occur.
        """
        known: dict[int, int] = {}
        return np.array([known.setdefault(k, len(known)) for k in self.label[:count].tolist()], int)


class SolutionSpace:
    """Set of all configurations that reach one pose, with functions to move in this set.

    Methods take and return scaled configurations x = `scale` * q, where q are joint positions
    [rad or m]. The set has the configurations that are inside the joint limits, collision-free, and
    differ from `near` by at most ``search.max_change`` in each joint.

    Args:
        search: Search with the robot, task, tolerances and scene.
        T: (1, k, 4, 4) pose.
        near: (1, n) reference configuration [rad or m].

    Attributes:
        scale: (n,) square roots of the joint weights.
        n: Number of joints.
        rng: Random generator, initialized with the option `random_seed` of the search.
    """

    def __init__(self, search: Search, T: Array, near: Array) -> None:
        self._search = attempts_of_auto(search)
        self._max_change, self._T, self._near = search.max_change, T, near
        starts = self._search.problem.starts
        self.scale, self.n = np.sqrt(starts.joint_weights), search.robot.n
        self._turn = np.where(starts.periodic != 0, TURN * self.scale, np.inf)
        self.rng = np.random.default_rng(search.options.random_seed)

    def project(self, x: Array) -> Array:
        """Run one attempt of the solver from each x (b, n), and return the solutions (b, n).

        Rows are NaN if the attempt finds no solution.
        """
        search, b = self._search, len(x)
        rows = search.new_rows(b)
        if b:
            search.attempt(np.repeat(self._T, b, axis=0), x / self.scale, 1, rows)
        q = rows.best
        is_near = (abs(q - self._near) <= self._max_change).all(axis=1)
        q[~(found(rows) & search.is_inside(q) & is_near)] = np.nan
        return np.asarray(q * self.scale)

    def difference(self, to: Array, start: Array) -> Array:
        """Return the displacement (..., n) from `start` to `to`.

        For joints that can make full turns, the displacement is at most half a turn.
        """
        away = to - start
        return np.asarray(away - np.nan_to_num(self._turn * np.round(away / self._turn)))

    def tangents(self, x: Array) -> Array:
        """Return d orthonormal directions (d, n) in which self-motion is possible at x (n,).

        `x` is a solution; d is 0 if no self-motion is possible.
        """
        probes = PROBE_LENGTH * np.vstack([np.eye(self.n), -np.eye(self.n)])
        moved = np.nan_to_num(self.project(x + probes) - x, nan=0.0)
        moved[np.linalg.norm(moved, axis=1) > 2.0 * PROBE_LENGTH] = 0.0
        _, lengths, directions = np.linalg.svd(moved, full_matrices=False)
        return np.asarray(directions[lengths > MIN_PROBE_SHARE * PROBE_LENGTH])

    def random_solutions(self, count: int) -> Array:
        """Run attempts from `count` random starts, and return the s solutions found, (s, n)."""
        x = self.project(self.rng.uniform(*self._search.robot.finite_limits(), (count, self.n)))
        return np.asarray(x[np.isfinite(x).all(axis=1)])


def attempts_of_auto(search: Search) -> Search:
    """Return a copy of a search that uses the method "auto".

    The copy has the same solutions, because robot, task, tolerances and scene are unchanged. Other
    methods than "auto" may end at a solution far from the start of an attempt.
    """
    if search.method != AUTO_METHOD:
        choice = parse_method(AUTO_METHOD)
        options = solver_options(choice, {})
        same = {name: getattr(search.options, name) for name in SOLUTION_OPTIONS}
        auto = build_search(search.robot, choice, replace(options, **same), search.tasks)
        search = replace(auto, snapshot=search.snapshot)
    return replace(search, kind=SELECT_FIRST, max_change=np.full(search.robot.n, np.inf))


def _follow_curves(space: SolutionSpace, x: Array, tangents: list[Array], groups: Groups) -> None:
    """Follow the self-motion curve through each solution, and merge solutions on the same curve.

    The curve is followed in both directions until it meets another solution or ends.

    Args:
        space: Set of all solutions of the pose.
        x: (s, n) scaled solutions.
        tangents: For each solution, the directions (d, n) of the curves through it; d is 0 without
            self-motion, 1 for one curve, and more where curves cross.
        groups: Groups of the s solutions, which are merged in place.
    """
    origin = np.array([i for i, each in enumerate(tangents) for _ in range(2 * len(each))], int)
    heading = np.concatenate([np.concatenate([each, -each]) for each in tangents])
    at, step, travelled = x[origin], np.full(len(origin), CURVE_STEP), np.zeros(len(origin))
    for _ in range(MAX_CURVE_STEPS):
        if not len(origin):
            return
        ahead = at + step[:, None] * heading
        there = space.project(ahead)
        motion = there - at
        length = np.linalg.norm(motion, axis=1)
        follows = np.linalg.norm(there - ahead, axis=1) <= MAX_TANGENT_DEVIATION * step
        follows &= length >= MIN_MOTION_SHARE * step
        met = _solutions_on(space, x, at[follows], motion[follows])
        away = travelled[follows] > 2.0 * CURVE_STEP
        met[np.flatnonzero(~away), origin[follows][~away]] = False
        goes_on = np.ones(len(origin), bool)
        for i, row in zip(np.flatnonzero(follows), met, strict=True):
            for k in np.flatnonzero(row):
                groups.merge(int(origin[i]), int(k))
            goes_on[i] = not row.any()
        at[follows] = there[follows]
        heading[follows] = motion[follows] / length[follows, None]
        travelled += np.where(follows, length, 0.0)
        step = np.where(follows, np.minimum(2.0 * step, CURVE_STEP), 0.5 * step)
        goes_on &= step >= MIN_CURVE_STEP
        origin, at, heading = origin[goes_on], at[goes_on], heading[goes_on]
        step, travelled = step[goes_on], travelled[goes_on]


def _solutions_on(space: SolutionSpace, x: Array, start: Array, motion: Array) -> NDArray[np.bool_]:
    """Return (b, s) whether the line of motion i passes solution j within MEETING_DISTANCE.

    All configurations are scaled, see :class:`SolutionSpace`.

    Args:
        space: Set of all solutions of the pose.
        x: (s, n) solutions.
        start: (b, n) start of each straight motion.
        motion: (b, n) displacement of each motion.
    """
    away = space.difference(x, start[:, None])  # (b, s, n)
    squared = (motion**2).sum(axis=1)[:, None]
    share = np.clip((away * motion[:, None]).sum(axis=2) / squared, 0.0, 1.0)
    distance = np.linalg.norm(away - share[..., None] * motion[:, None], axis=2)
    return np.asarray(distance <= MEETING_DISTANCE)


def _connect_by_roadmap(space: SolutionSpace, x: Array, groups: Groups) -> None:
    """Merge solutions that self-motion connects, found by a roadmap of random solutions.

    The points of the roadmap are the solutions `x` and random solutions of the same pose. In each
    round, self-motions from each point to the closest points of other groups are tried. The search
    ends when all solutions `x` are connected, a round connects no points, or after
    MAX_ROADMAP_ROUNDS rounds.

    Args:
        space: Set of all solutions of the pose.
        x: (s, n) scaled solutions.
        groups: Groups of the s solutions, which are merged in place.
    """
    points = np.vstack([x, space.random_solutions(NUM_ROADMAP_STARTS)])
    merged = Groups(len(points))
    away = np.linalg.norm(space.difference(points[None], points[:, None]), axis=2)
    for _ in range(MAX_ROADMAP_ROUNDS):
        is_other = merged.label[:, None] != merged.label
        if not is_other[: len(x), : len(x)].any():
            break
        closest = np.argsort(np.where(is_other, away, np.inf), axis=1)[:, :NUM_NEIGHBOURS]
        one = np.repeat(np.arange(len(points)), closest.shape[1])
        other = closest.ravel()
        one, other = one[is_other[one, other]], other[is_other[one, other]]
        leads = _lead_to(space, points[one], points[other])
        for i, k in zip(one[leads].tolist(), other[leads].tolist(), strict=True):
            merged.merge(i, k)
        if not leads.any():
            break
    groups.label = merged.label[: len(x)]


def _lead_to(space: SolutionSpace, x: Array, goals: Array) -> NDArray[np.bool_]:
    """Return (b,) whether a self-motion from each solution toward its goal reaches the goal.

    A motion is abandoned if a step brings it no closer to its goal, or after MAX_MOTION_STEPS.

    Args:
        space: Set of all solutions of the pose.
        x: (b, n) scaled solutions at which the motions start.
        goals: (b, n) scaled solutions, one goal for each start.
    """
    x, leads, active = x.copy(), np.zeros(len(x), bool), np.arange(len(x))
    for _ in range(MAX_MOTION_STEPS):
        gap = space.difference(goals[active], x[active])
        left = np.linalg.norm(gap, axis=1)
        leads[active[left <= MOTION_STEP]] = True
        active, gap, left = (each[left > MOTION_STEP] for each in (active, gap, left))
        if not len(active):
            break
        there = space.project(x[active] + MOTION_STEP * gap / left[:, None])
        moved = np.linalg.norm(there - x[active], axis=1)
        closer = left - np.linalg.norm(space.difference(goals[active], there), axis=1)
        follows = (moved <= 1.5 * MOTION_STEP) & (closer >= 0.1 * MOTION_STEP)
        active = active[follows]
        x[active] = there[follows]
    return leads
