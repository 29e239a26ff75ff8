# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Planning of collision-free joint paths."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dls_ik.core.distance_bounds import block_of_path, bound_pairs
from dls_ik.core.types import Array, Indices
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.text import quoted

MAX_BRANCH_LENGTH = 0.7  # [rad or m] longest segment that is added to a tree
MAX_TREE_NODES = 10_000  # default maximum number of configurations in both trees together
MAX_SHORTCUTS, MAX_FAILURES = 200, 30  # attempts to shorten a path: total, consecutive failures
SEARCH_TIMEOUT = 10.0  # [s] longest time of a search, for scenes in which checks are slow
ESCAPE_SPREADS = np.geomspace(
    0.01, 1.0, 12
)  # [rad or m] standard deviations of random configurations around the start or a goal
NUM_ESCAPE_SAMPLES = 32  # random configurations per standard deviation
APPROACH_TOLERANCE = 1e-6  # [m] allowed decrease of a distance that is below its margin
MIN_CLEARANCE = 1e-6  # [m] minimum distance of collision-free shapes


class JointPath(NamedTuple):
    """A joint path between two configurations, or the pair that blocks the path."""

    q: Array  # (m, n) configurations joined by straight segments; (0, n) if no path was found
    goal: int  # index of the reached goal; -1 if no path was found
    names: Pair | None  # pair that blocks the straight path to the first goal, the start or a goal
    nodes: int  # number of path segments that were checked

    @property
    def success(self) -> bool:
        """Whether a path was found."""
        return self.goal >= 0


class PathPairs(NamedTuple):
    """Pairs of shapes that must keep a distance along paths.

    There are p pairs of moving shapes and s pairs of a moving and a standing shape.
    """

    packed: tuple[Array, Indices]  # arrays of the kernels in :mod:`dls_ik.core.distance_bounds`
    reach: Array  # (p + s, n) maximum approach of the shapes per joint motion [m/rad or m/m]
    names: tuple[Pair, ...]  # (p + s,)
    margins: Array  # (p + s,) distance that each pair must keep [m], above 0

    def block(self, q0: Array, q1: Array) -> Pair | None:
        """Return a pair that may violate its margin on the straight path from q0 to q1 (n,).

        None is returned if all pairs are proven to keep their margins.
        """
        speed = self.reach @ np.abs(q1 - q0)
        k = block_of_path(*self.packed, (q0, q1), speed, self.margins, np.empty(1))
        return None if k < 0 else self.names[k]

    def distances(self, q: Array) -> Array:
        """Return lower bounds (p + s,) on the distances at q (n,) [m].

        The bounds are tight for distances up to the largest margin.
        """
        bounds = np.empty((len(self.names), 2))
        bound_pairs(*self.packed, q, self.margins.max(initial=0.0), False, bounds)
        return bounds[:, 0]

    def near(self, q: Array) -> Pair | None:
        """Return a pair that is closer than its margin at q (n,), or None."""
        below = self.distances(q) - self.margins
        k = int(below.argmin()) if len(below) else -1
        return self.names[k] if k >= 0 and below[k] <= 0.0 else None


def path_pairs(world: SceneSnapshot, min_distance: float = 0.0) -> PathPairs:
    """Return all pairs of a scene; each pair must keep `min_distance` [m]."""
    margins = np.full(len(world.names), max(min_distance, MIN_CLEARANCE))
    return PathPairs(world.packed, world.leverage[0], world.names, margins)


class PathLimits(NamedTuple):
    """Limits of a search for a path."""

    lower: Array  # (n,) lower bounds on random configurations [rad or m]
    upper: Array  # (n,) upper bounds on random configurations [rad or m]
    max_nodes: int = MAX_TREE_NODES  # maximum number of configurations in both trees together
    seed: int = 0  # seed of the random configurations


def path_limits(
    robot: RobotModel,
    start: Array,
    goals: Array,
    max_nodes: int = MAX_TREE_NODES,
    seed: int = 0,
) -> PathLimits:
    """Return the limits of a search from a start configuration (n,) to goals (g, n).

    For a joint without limits, random positions are at most half a turn beyond the start and the
    goals.

    Raises:
        OptionError: If `max_nodes` is negative or not finite.
    """
    if not 0 <= max_nodes < np.inf:
        raise OptionError(
            f"max_nodes must be a number of at least 0, and finite; got {quoted(max_nodes)}"
        )
    both = np.concatenate([start[None], goals])
    lower, upper = robot.finite_limits()
    turns = np.isinf(robot.lower) & np.isinf(robot.upper)
    lower = np.where(turns, both.min(axis=0) - np.pi, lower)
    upper = np.where(turns, both.max(axis=0) + np.pi, upper)
    return PathLimits(lower, upper, max_nodes, seed)


def plan_path(
    world: SceneSnapshot,
    start: Array,
    goals: Array,
    limits: PathLimits,
    pairs: PathPairs | None = None,
) -> JointPath:
    """Find a collision-free path from a configuration (n,) to one of several goals (g, n).

    The first goal to which the straight path is collision-free is chosen. If there is no such goal,
    two trees of collision-free configurations grow toward random configurations and toward each
    other (RRT-Connect; Kuffner & LaValle 2000), one tree from the start and one from all goals.
    Each branch is proven collision-free along its whole length. The path is then shortened. The
    result is deterministic.

    If a pair is closer than its margin at the start or at a goal, the path first moves from there
    to a nearby configuration that keeps all margins.

    Args:
        world: Scene.
        start: Start configuration (n,).
        goals: Goal configurations (g, n), in the order of preference.
        limits: Limits of the search.
        pairs: Pairs that must keep a distance; None: all pairs of the scene.
    """
    return _PathSearch(world, start, limits, pairs).run(goals)


def escape_path(
    world: SceneSnapshot, start: Array, limits: PathLimits, pairs: PathPairs | None = None
) -> JointPath:
    """Find a path from a configuration (n,) that violates margins to one that keeps all margins.

    Args:
        world: Scene.
        start: Start configuration (n,).
        limits: Limits of the search.
        pairs: Pairs that must keep a distance; None: all pairs of the scene.
    """
    return _PathSearch(world, start, limits, pairs).out()


class _PathSearch:
    """A search for a path from one start configuration."""

    def __init__(
        self, world: SceneSnapshot, start: Array, limits: PathLimits, pairs: PathPairs | None
    ) -> None:
        self._world, self._start, self._limits = world, start, limits
        self._pairs = path_pairs(world) if pairs is None else pairs
        self._rng = np.random.default_rng(limits.seed)
        self._until = time.perf_counter() + SEARCH_TIMEOUT
        self._checks = 0  # number of path segments that were checked

    def run(self, goals: Array) -> JointPath:
        """Return the path to one of the goals (g, n)."""
        first = self._escape(self._start, may_collide=True)
        if first is None:
            return self._none(self._pairs.near(self._start))
        numbers, lasts, blocked = [], [], None
        for number, goal in enumerate(goals):
            last = self._escape(goal)
            if last is None:
                blocked = blocked or self._pairs.near(goal)
                continue
            pair = self._block(first[-1], last[-1])
            if pair is None:
                return self._found([*first, *last[::-1]], number)
            blocked = blocked or pair
            numbers.append(number)
            lasts.append(last)
        if not lasts:
            return self._none(blocked)
        found = self._connect(first[-1], [last[-1] for last in lasts])
        if not found:
            return self._none(blocked)
        which = next(i for i, last in enumerate(lasts) if last[-1] is found[-1])
        return self._found([*first[:-1], *found, *lasts[which][-2::-1]], numbers[which])

    def out(self) -> JointPath:
        """Return the path from the start to a configuration that keeps all margins."""
        first = self._escape(self._start, may_collide=True)
        if first is None:
            return self._none(self._pairs.near(self._start))
        return JointPath(np.array(first), 0, None, self._checks)

    def _none(self, names: Pair | None) -> JointPath:
        """Return the result of a failed search, with the blocking pair `names`."""
        return JointPath(np.empty((0, len(self._start))), -1, names, self._checks)

    def _found(self, points: Sequence[Array], number: int) -> JointPath:
        """Return the result of a successful search: the shortened path to goal `number`."""
        return JointPath(np.array(self._shortened(points)), number, None, self._checks)

    def _block(self, q0: Array, q1: Array) -> Pair | None:
        """Return a pair that may violate its margin on a straight path, or None; count checks."""
        self._checks += 1
        return self._pairs.block(q0, q1)

    # Start and goals that violate margins

    def _escape(self, q: Array, may_collide: bool = False) -> list[Array] | None:
        """Return the configurations of a path from q (n,) to one that keeps all margins, or None.

        Pairs that are closer than their margin at q do not come closer on this path.

        Args:
            q: (n,) start of the path.
            may_collide: Whether q may be in collision.
        """
        distances, margins = self._pairs.distances(q), self._pairs.margins
        if (distances > margins).all():
            return [q]
        if not may_collide and self._world.colliding_pair(q) is not None:
            return None
        first = self._pairs._replace(margins=np.minimum(margins, distances - APPROACH_TOLERANCE))
        lower, upper = np.minimum(self._limits.lower, q), np.maximum(self._limits.upper, q)
        for spread in ESCAPE_SPREADS:
            some = q + spread * self._rng.normal(size=(NUM_ESCAPE_SAMPLES, len(q)))
            for each in np.clip(some, lower, upper):
                if self._block(each, each) is None and self._leaves(q, each, first):
                    return [q, each]
        return None

    def _leaves(self, q: Array, to: Array, first: PathPairs) -> bool:
        """Return whether the straight path from q to `to` (n,) causes no new contact.

        Args:
            q: (n,) start of the path.
            to: (n,) end of the path.
            first: Pairs, with margins that are at most the distances at q.
        """
        if (first.margins > -APPROACH_TOLERANCE).all():
            return first.block(q, to) is None
        contact = self._world.path_in_collision(q, to)  # exact check: spheres do not suffice
        return contact is None or self._world.colliding_pair(q) == contact.names

    # Two trees

    def _connect(self, start: Array, goals: Sequence[Array]) -> list[Array]:
        """Return a path from a start (n,) to one of the goals, found by two trees; [] if none.

        The start and the goals are collision-free.
        """
        trees = [_Tree([start]), _Tree(goals)]
        while len(trees[0]) + len(trees[1]) < self._limits.max_nodes:
            if time.perf_counter() > self._until:
                break
            one, other = trees
            tip = self._grow(one, self._rng.uniform(self._limits.lower, self._limits.upper))
            if tip is not None and (met := self._reach(other, one.points[tip])) is not None:
                halves = one.branch(tip), other.branch(met)
                forward, back = halves if one.branch(tip)[-1] is start else halves[::-1]
                return [*forward[::-1], *back[1:]]
            trees.reverse()
        return []

    def _grow(self, tree: _Tree, goal: Array) -> int | None:
        """Extend a tree toward a configuration `goal` (n,) by one segment.

        Returns:
            Index of the new point; None if the segment is not collision-free.
        """
        i = tree.nearest(goal)
        ahead = goal - tree.points[i]
        length = float(np.linalg.norm(ahead))
        q = (
            goal
            if length <= MAX_BRANCH_LENGTH
            else tree.points[i] + (MAX_BRANCH_LENGTH / length) * ahead
        )
        if self._block(tree.points[i], q) is not None:
            return None
        return tree.add(q, i)

    def _reach(self, tree: _Tree, goal: Array) -> int | None:
        """Extend a tree to a configuration `goal` (n,) by several segments.

        Returns:
            Index of the point `goal` in the tree; None if a segment is not collision-free.
        """
        while (tip := self._grow(tree, goal)) is not None:
            if tree.points[tip] is goal:
                return tip
        return None

    # Shortening

    def _shortened(self, points: Sequence[Array]) -> list[Array]:
        """Return a path shortened by straight segments between random points of the path."""
        path, failures = list(points), 0
        for _ in range(MAX_SHORTCUTS):
            if len(path) < 3 or failures >= MAX_FAILURES or time.perf_counter() > self._until:
                break
            lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
            ends = np.concatenate([[0.0], np.cumsum(lengths)])
            i, j = sorted(self._rng.uniform(0.0, ends[-1], 2).tolist())
            a = int(np.searchsorted(ends, i, "right")) - 1
            b = int(np.searchsorted(ends, j, "left"))
            if b - a < 2:
                failures += 1
                continue
            q0 = path[a] + (i - ends[a]) / lengths[a] * (path[a + 1] - path[a])
            q1 = path[b] + (j - ends[b]) / lengths[b - 1] * (path[b] - path[b - 1])
            if self._block(q0, q1) is None:
                path[a + 1 : b] = [q0, q1]
                failures = 0
            else:
                failures += 1
        return self._without_corners(path)

    def _without_corners(self, path: list[Array]) -> list[Array]:
        """Return a path without the corners that collision-free straight segments can skip."""
        found, i = path[:1], 0
        while i < len(path) - 1:
            later = range(len(path) - 1, i + 1, -1)
            i = next((j for j in later if self._block(path[i], path[j]) is None), i + 1)
            found.append(path[i])
        return found


class _Tree:
    """Tree of configurations; collision-free segments join each of them to one of the roots."""

    def __init__(self, roots: Sequence[Array]) -> None:
        self.points = list(roots)
        self._parents = [-1] * len(roots)
        self._array = np.array([*roots, *([roots[0]] * len(roots))])

    def __len__(self) -> int:
        return len(self.points)

    def nearest(self, q: Array) -> int:
        """Return the index of the point closest to q (n,)."""
        away = self._array[: len(self.points)] - q
        return int(np.einsum("ij,ij->i", away, away).argmin())

    def add(self, q: Array, parent: int) -> int:
        """Add the point q (n,), joined to the point of index `parent`; return the index of q."""
        number = len(self.points)
        if number == len(self._array):
            self._array = np.concatenate([self._array, self._array])
        self._array[number] = q
        self.points.append(q)
        self._parents.append(parent)
        return number

    def branch(self, tip: int) -> list[Array]:
        """Return the points from the point of index `tip` to its root."""
        found = []
        while tip >= 0:
            found.append(self.points[tip])
            tip = self._parents[tip]
        return found
