# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Families of solutions of one pose that self-motion connects.

Self-motion moves a redundant arm while its tips keep their poses. Two solutions belong to one
family if a self-motion within the joint limits leads from one to the other; in a scene, the
configurations of this motion are also collision-free.

A step of the self-motion is a displacement of the joints, followed by an attempt of the solver,
which brings the arm back to the pose. The attempts work for all tasks, tips, tolerances and scenes,
and need no Jacobian. If the solutions near each solution form a curve, as for an arm with one spare
joint, both directions of the curve are followed to the next solution or to the end of the curve.
Surfaces of two or more dimensions are searched by a probabilistic roadmap (Kavraki et al. 1996).

Arrays `x` are joint positions in the joint metric: joint positions times the square root of the
joint weights.
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

Families = NDArray[np.intp]  # (s,) number of the family of each solution

# options that define which configurations are solutions, and their distances
SOLUTION_OPTIONS = (
    "position_tolerance", "rotation_tolerance", "error_tolerance", "rotation_weight",
    "rotation_error", "length_unit", "joint_weights", "random_seed",
)  # fmt: skip

# Lengths are in the joint metric.
PROBE_LENGTH = 0.01  # displacement of one joint by which directions of self-motion are found
MIN_PROBE_SHARE = 0.5  # minimum singular value of the displacements along a direction, in probes

# Curves:
CURVE_STEP = 0.05  # maximum step along a curve
MIN_CURVE_STEP = 0.002  # a curve ends where a smaller step would be needed
MAX_TANGENT_DEVIATION = 0.3  # maximum distance from the tangent to the new solution, in steps
MIN_MOTION_SHARE = 0.5  # minimum motion, in steps: less means that a joint limit stops the arm
MEETING_DISTANCE = 0.005  # maximum distance of a solution from the curve that leads through it
MAX_CURVE_STEPS = 2000

# Roadmap:
NUM_ROADMAP_STARTS = 256  # random starts whose solutions are intermediate points of motions
NUM_NEIGHBOURS = 4  # motions that are tried from each point in a round
MAX_ROADMAP_ROUNDS = 8
MOTION_STEP = 0.1  # length of a step toward a neighbour
MAX_MOTION_STEPS = 400


def number_families(search: Search, T: Array, q: Array, near: Array) -> Families:
    """Number the families of solutions that self-motion within the joint limits connects.

    Args:
        search: Search whose solutions are numbered.
        T: (1, k, 4, 4) pose that all solutions reach.
        q: (s, n) solutions [rad or m].
        near: (1, n) configuration [rad or m], from which the motion is at most `max_change`.

    Returns:
        The numbers 0, 1, ... in the order of the first solution of each family.
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
    """Disjoint groups of points, which are merged step by step.

    Args:
        count: Number of points; each point is a group of its own at first.
    """

    def __init__(self, count: int) -> None:
        self.label = np.arange(count)  # (count,) equal for all points of a group

    def merge(self, one: int, other: int) -> None:
        """Merge the groups of two points, given by their indices."""
        self.label[self.label == self.label[other]] = self.label[one]

    def numbers(self, count: int) -> Families:
        """Return the numbers of the groups of the first `count` points, in order of appearance."""
        known: dict[int, int] = {}
        return np.array([known.setdefault(k, len(known)) for k in self.label[:count].tolist()], int)


class SolutionSpace:
    """Solutions of one pose in the joint metric.

    Args:
        search: Search whose robot, task, tolerances, limits and scene define the solutions.
        T: (1, k, 4, 4) pose.
        near: (1, n) configuration [rad or m], from which solutions are within `max_change`.

    Attributes:
        scale: (n,) square roots of the joint weights.
        n: Number of joints.
        rng: Random generator with the seed of the search.
    """

    def __init__(self, search: Search, T: Array, near: Array) -> None:
        self._search = _attempts_of_auto(search)
        self._max_change, self._T, self._near = search.max_change, T, near
        starts = self._search.problem.starts
        self.scale, self.n = np.sqrt(starts.joint_weights), search.robot.n
        self._turn = np.where(starts.periodic != 0, TURN * self.scale, np.inf)
        self.rng = np.random.default_rng(search.options.random_seed)

    def project(self, x: Array) -> Array:
        """Return the solution that an attempt from each x (b, n) reaches; NaN if there is none."""
        search, b = self._search, len(x)
        rows = search.new_rows(b)
        if b:
            search.attempt(np.repeat(self._T, b, axis=0), x / self.scale, 1, rows)
        q = rows.best
        is_near = (abs(q - self._near) <= self._max_change).all(axis=1)
        q[~(found(rows) & search.is_inside(q) & is_near)] = np.nan
        return np.asarray(q * self.scale)

    def difference(self, to: Array, start: Array) -> Array:
        """Return the shortest displacement, up to whole turns, from `start` to `to`, (..., n)."""
        away = to - start
        return np.asarray(away - np.nan_to_num(self._turn * np.round(away / self._turn)))

    def tangents(self, x: Array) -> Array:
        """Return orthonormal directions (d, n) of the self-motion at a solution x (n,)."""
        probes = PROBE_LENGTH * np.vstack([np.eye(self.n), -np.eye(self.n)])
        moved = np.nan_to_num(self.project(x + probes) - x, nan=0.0)
        moved[np.linalg.norm(moved, axis=1) > 2.0 * PROBE_LENGTH] = 0.0
        _, lengths, directions = np.linalg.svd(moved, full_matrices=False)
        return np.asarray(directions[lengths > MIN_PROBE_SHARE * PROBE_LENGTH])

    def random_solutions(self, count: int) -> Array:
        """Return the solutions (s, n) that attempts from random starts reach."""
        x = self.project(self.rng.uniform(*self._search.robot.finite_limits(), (count, self.n)))
        return np.asarray(x[np.isfinite(x).all(axis=1)])


def _attempts_of_auto(search: Search) -> Search:
    """Return a search with the same solutions whose attempts are those of the method "auto".

    A family does not depend on the method, and some methods do not end at the closest solution.
    """
    if search.method != AUTO_METHOD:
        choice = parse_method(AUTO_METHOD)
        options = solver_options(choice, {})
        same = {name: getattr(search.options, name) for name in SOLUTION_OPTIONS}
        auto = build_search(search.robot, choice, replace(options, **same), search.tasks)
        search = replace(auto, snapshot=search.snapshot)
    return replace(search, kind=SELECT_FIRST, max_change=np.full(search.robot.n, np.inf))


def _follow_curves(space: SolutionSpace, x: Array, tangents: list[Array], groups: Groups) -> None:
    """Follow the curve through each solution both ways, and merge the solutions that are met.

    Args:
        space: Solutions of the pose.
        x: (s, n) solutions.
        tangents: Directions of the curve at each solution; two or more at a crossing.
        groups: Groups of the solutions, merged.
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
    """Return (b, s) whether each motion leads through each of the solutions x (s, n).

    Args:
        space: Solutions of the pose.
        x: (s, n) solutions.
        start: (b, n) starts of the motions.
        motion: (b, n) displacements.
    """
    away = space.difference(x, start[:, None])  # (b, s, n)
    squared = (motion**2).sum(axis=1)[:, None]
    share = np.clip((away * motion[:, None]).sum(axis=2) / squared, 0.0, 1.0)
    distance = np.linalg.norm(away - share[..., None] * motion[:, None], axis=2)
    return np.asarray(distance <= MEETING_DISTANCE)


def _connect_by_roadmap(space: SolutionSpace, x: Array, groups: Groups) -> None:
    """Merge solutions between which motions over random solutions lead.

    In each round, motions from each point to its closest points of other groups are tried.

    Args:
        space: Solutions of the pose.
        x: (s, n) solutions.
        groups: Groups of the solutions, merged.
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
    """Return (b,) whether self-motions in the direction of goals reach the goals.

    Args:
        space: Solutions of the pose.
        x: (b, n) solutions at which the motions start.
        goals: (b, n) solutions at which they must end.
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
