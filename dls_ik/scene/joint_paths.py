# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Planning of collision-free joint paths.

A margin is a distance that a pair of shapes must keep along a path. A configuration or a path keeps
the margins if no pair is closer than its margin.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dls_ik.core.distance_bounds import block_of_path, bound_pairs
from dls_ik.core.scene_arrays import PackedScene
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.text import quoted

MAX_BRANCH_LENGTH = 0.7  # [rad or m] longest segment that is added to a tree
MAX_TREE_NODES = 10_000  # default maximum number of configurations in both trees together
# Maximum number of attempts to shorten a path, and maximum number of consecutive failed attempts
MAX_SHORTCUTS, MAX_FAILURES = 200, 30
SEARCH_TIMEOUT = 10.0  # [s] maximum time of a search, for scenes in which checks are slow
# [rad or m] standard deviations, tried in this order, of random configurations around a start or
# goal that violates margins
ESCAPE_SPREADS = np.geomspace(0.01, 1.0, 12)
NUM_ESCAPE_SAMPLES = 32  # number of random configurations for each standard deviation
APPROACH_TOLERANCE = 1e-6  # [m] allowed decrease of a distance that is below its margin
MIN_CLEARANCE = 1e-6  # [m] minimum margin of a pair


class JointPath(NamedTuple):
    """Result of a search for a joint path.

    If no path was found, `names` is a pair of shapes that are too close to each other: at the start
    or at the goals if no motion can start or end there, otherwise on the straight path to a goal.
    """

    q: Array  # (m, n) configurations joined by straight segments; (0, n) if no path was found
    goal: int  # index of the reached goal; -1 if no path was found
    names: Pair | None  # names of the blocking pair; None if a path was found
    nodes: int  # number of path segments that were checked

    @property
    def success(self) -> bool:
        """Whether a path was found."""
        return self.goal >= 0


class PathPairs(NamedTuple):
    """Pairs of shapes that must keep margins (minimum distances) along paths.

    There are p pairs of two moving shapes (of links or attached objects), followed by s pairs of a
    moving shape and a standing shape (of an object of the world).
    """

    packed: PackedScene  # arrays of the kernels in :mod:`dls_ik.core.distance_bounds`
    # (p + s, n) maximum decrease of the distance of a pair per motion of a joint [m/rad or m/m]
    reach: Array
    names: tuple[Pair, ...]  # (p + s,) names of the links or objects of each pair
    margins: Array  # (p + s,) minimum distance of each pair [m], above 0

    def block(self, q0: Array, q1: Array) -> Pair | None:
        """Return a pair that is not proven to keep its margin on a straight path.

        The result is None if all pairs are proven to keep their margins.

        Args:
            q0: (n,) start of the path [rad or m].
            q1: (n,) end of the path [rad or m].
        """
        speed = self.reach @ np.abs(q1 - q0)
        k = block_of_path(self.packed, (q0, q1), speed, self.margins, np.empty(1))
        return None if k < 0 else self.names[k]

    def distances(self, q: Array) -> Array:
        """Return lower bounds (p + s,) on the distances [m] of all pairs at configuration q (n,).

        The bounds are tight for distances up to the largest margin.
        """
        bounds = np.empty((len(self.names), 2))
        bound_pairs(self.packed, q, self.margins.max(initial=0.0), False, bounds)
        return bounds[:, 0]

    def near(self, q: Array) -> Pair | None:
        """Return the pair with the largest violation of its margin at configuration q (n,).

        The result is None if all pairs keep their margins.
        """
        below = self.distances(q) - self.margins
        k = int(below.argmin()) if len(below) else -1
        return self.names[k] if k >= 0 and below[k] <= 0.0 else None


def path_pairs(world: SceneSnapshot, min_distance: float = 0.0) -> PathPairs:
    """Return all checked pairs of a scene, with `min_distance` [m] as the margin of each pair."""
    margins = np.full(len(world.names), max(min_distance, MIN_CLEARANCE))
    return PathPairs(world.packed, world.leverage[0], world.names, margins)


class PathLimits(NamedTuple):
    """Limits of a search for a path: ranges of joint positions, and number of configurations."""

    lower: Array  # (n,) lower bounds on random configurations [rad or m]
    upper: Array  # (n,) upper bounds on random configurations [rad or m]
    max_nodes: int = MAX_TREE_NODES  # maximum number of configurations in both trees together
    seed: int = 0  # seed of the random configurations
    timeout: float = SEARCH_TIMEOUT  # [s] maximum time of the search
    # Function that returns whether to end the search without a path.
    is_cancelled: Callable[[], bool] = lambda: False


def path_limits(
    robot: RobotModel,
    start: Array,
    goals: Array,
    max_nodes: int = MAX_TREE_NODES,
    seed: int = 0,
) -> PathLimits:
    """Return the limits of a search for a path.

    Random positions of a joint without limits are at most half a turn below the smallest and above
    the largest position at the start and at the goals.

    Args:
        robot: Robot with the joint limits.
        start: (n,) start configuration [rad or m].
        goals: (g, n) goal configurations [rad or m].
        max_nodes: Maximum number of configurations in both search trees together.
        seed: Seed of the random configurations.

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
    """Find a path that keeps all margins from a start configuration to one of several goals.

    The first goal to which the straight path keeps all margins is chosen. If there is no such goal,
    two trees of configurations grow toward random configurations and toward each other
    (RRT-Connect; Kuffner & LaValle 2000), one tree from the start and one from all goals. Each
    branch is proven to keep all margins along its whole length. The path is then shortened. The
    result is deterministic, unless the search reaches its maximum time.

    If the start or a goal violates a margin, the first or last segment of the path is between this
    configuration and a nearby configuration that keeps all margins. A goal in collision is ignored.

    Args:
        world: Scene.
        start: (n,) start configuration [rad or m].
        goals: (g, n) goal configurations [rad or m], in the order of preference.
        limits: Limits of the search.
        pairs: Pairs with their margins. None stands for all checked pairs of the scene, which must
            not touch.
    """
    return _PathSearch(world, start, limits, pairs).run(goals)


def escape_path(
    world: SceneSnapshot, start: Array, limits: PathLimits, pairs: PathPairs | None = None
) -> JointPath:
    """Find a path from a configuration that violates margins to one that keeps all margins.

    Args:
        world: Scene.
        start: (n,) start configuration [rad or m].
        limits: Limits of the search.
        pairs: Pairs with their margins. None stands for all checked pairs of the scene, which must
            not touch.
    """
    return _PathSearch(world, start, limits, pairs).out()


class _PathSearch:
    """Search for a path from a start configuration; see :func:`plan_path` for the arguments."""

    def __init__(
        self, world: SceneSnapshot, start: Array, limits: PathLimits, pairs: PathPairs | None
    ) -> None:
        self._world, self._start, self._limits = world, start, limits
        self._pairs = path_pairs(world) if pairs is None else pairs
        self._rng = np.random.default_rng(limits.seed)
        self._until = time.perf_counter() + min(limits.timeout, SEARCH_TIMEOUT)
        self._checks = 0  # number of path segments that were checked

    def run(self, goals: Array) -> JointPath:
        """Search for a path to one of the goals (g, n), and return the result."""
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
        """Search for a path to any configuration that keeps all margins, and return the result."""
        first = self._escape(self._start, may_collide=True)
        if first is None:
            return self._none(self._pairs.near(self._start))
        return JointPath(np.array(first), 0, None, self._checks)

    def _none(self, names: Pair | None) -> JointPath:
        """Return the result of a search that found no path; `names` is the blocking pair."""
        return JointPath(np.empty((0, len(self._start))), -1, names, self._checks)

    def _found(self, points: Sequence[Array], number: int) -> JointPath:
        """Shorten a path to the goal with index `number`, and return the result of the search.

        Args:
            points: Configurations (n,) joined by straight segments.
            number: Index of the goal.
        """
        return JointPath(np.array(self._shortened(points)), number, None, self._checks)

    def _block(self, q0: Array, q1: Array) -> Pair | None:
        """Return a pair that is not proven to keep its margin on the path from q0 to q1, or None.

        The path is straight. The check is added to the number of checked segments.
        """
        self._checks += 1
        return self._pairs.block(q0, q1)

    # Paths from a start or goal that violates margins

    def _escape(self, q: Array, may_collide: bool = False) -> list[Array] | None:
        """Return a path from q to a configuration that keeps all margins, as a list of points.

        Pairs that are closer than their margin at q do not come closer on this path. If q keeps all
        margins, the path is q alone. The result is None if no path is found.

        Args:
            q: (n,) start of the path [rad or m].
            may_collide: Whether q may be in collision; if False, a collision gives None.
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
        """Return whether no pair comes closer than permitted on a straight path from q.

        If no pair is in contact at q, all pairs must keep the margins in `first`. Otherwise the
        path must not cause a contact of another pair.

        Args:
            q: (n,) start of the path [rad or m].
            to: (n,) end of the path [rad or m].
            first: Pairs with margins that are not larger than their distances at q.
        """
        if (first.margins > -APPROACH_TOLERANCE).all():
            return first.block(q, to) is None
        # Bounding spheres cannot distinguish the contact at q from a new contact.
        contact = self._world.path_in_collision(q, to)
        return contact is None or self._world.colliding_pair(q) == contact.names

    # Search with two trees (RRT-Connect)

    def _connect(self, start: Array, goals: Sequence[Array]) -> list[Array]:
        """Search for a path with two trees, one from the start and one from all goals.

        Args:
            start: (n,) start configuration, which keeps all margins [rad or m].
            goals: Goal configurations (n,), which keep all margins [rad or m].

        Returns:
            Configurations (n,) of the path, from the start to one of the goals; empty if no path is
            found before a limit of the search is reached.
        """
        trees = [_Tree([start]), _Tree(goals)]
        while len(trees[0]) + len(trees[1]) < self._limits.max_nodes:
            if self._must_end():
                break
            one, other = trees
            tip = self._grow(one, self._rng.uniform(self._limits.lower, self._limits.upper))
            if tip is not None and (met := self._reach(other, one.points[tip])) is not None:
                halves = one.branch(tip), other.branch(met)
                forward, back = halves if one.branch(tip)[-1] is start else halves[::-1]
                return [*forward[::-1], *back[1:]]
            trees.reverse()
        return []

    def _must_end(self) -> bool:
        """Return whether the time of the search is over, or the search is cancelled."""
        return time.perf_counter() > self._until or self._limits.is_cancelled()

    def _grow(self, tree: _Tree, goal: Array) -> int | None:
        """Extend a tree by one segment from its closest point toward a configuration.

        Args:
            tree: Tree, which is extended.
            goal: (n,) configuration [rad or m].

        Returns:
            Index of the new point; None if the segment does not keep all margins.
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
        """Extend a tree by successive segments until it contains a configuration.

        Args:
            tree: Tree, which is extended.
            goal: (n,) configuration [rad or m].

        Returns:
            Index of the configuration in the tree; None if a segment does not keep all margins.
        """
        while (tip := self._grow(tree, goal)) is not None:
            if tree.points[tip] is goal:
                return tip
        return None

    # Shortening of a path

    def _shortened(self, points: Sequence[Array]) -> list[Array]:
        """Shorten a path by replacing parts between two random points by straight segments.

        Args:
            points: Configurations (n,) joined by straight segments.

        Returns:
            Configurations (n,) of the shortened path.
        """
        path, failures = list(points), 0
        for _ in range(MAX_SHORTCUTS):
            if len(path) < 3 or failures >= MAX_FAILURES or self._must_end():
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
        """Return a path without those points that straight segments can skip, keeping all margins.

        The path is a list of configurations (n,) joined by straight segments.
        """
        found, i = path[:1], 0
        while i < len(path) - 1:
            later = range(len(path) - 1, i + 1, -1)
            i = next((j for j in later if self._block(path[i], path[j]) is None), i + 1)
            found.append(path[i])
        return found


class _Tree:
    """Trees of configurations (points) for the search, one tree for each root.

    A straight segment that keeps all margins joins each point to its parent.
    """

    def __init__(self, roots: Sequence[Array]) -> None:
        self.points = list(roots)
        self._parents = [-1] * len(roots)
        self._array = np.array([*roots, *([roots[0]] * len(roots))])

    def __len__(self) -> int:
        return len(self.points)

    def nearest(self, q: Array) -> int:
        """Return the index of the point closest to configuration q (n,)."""
        away = self._array[: len(self.points)] - q
        return int(np.einsum("ij,ij->i", away, away).argmin())

    def add(self, q: Array, parent: int) -> int:
        """Add configuration q (n,) as a child of the point with index `parent`.

        Returns:
            Index of the new point.
        """
        number = len(self.points)
        if number == len(self._array):
            self._array = np.concatenate([self._array, self._array])
        self._array[number] = q
        self.points.append(q)
        self._parents.append(parent)
        return number

    def branch(self, tip: int) -> list[Array]:
        """Return the points (n,) on the path from the point with index `tip` to its root."""
        found = []
        while tip >= 0:
            found.append(self.points[tip])
            tip = self._parents[tip]
        return found
