"""Ways through joint space that are free of collisions."""

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

STEP = 0.7  # [rad or m] greatest length of a branch
NODES = 10_000  # most configurations of both trees
SHORTCUTS, FRUITLESS = 200, 30  # most attempts to shorten a way, and without success in sequence
LONGEST = 10.0  # [s] of a search, against scenes that make each check slow
SPREADS = np.geomspace(0.01, 1.0, 12)  # [rad or m] of configurations about one that is too near
SAMPLES = 32  # of each spread
ROUNDING = 1e-6  # [m] by which what is too near may come nearer
LEAST = 1e-6  # [m] distance of certainly free shapes


class Way(NamedTuple):
    """A way between two configurations, or the reason why there is none."""

    q: Array  # (m, n) joined by straight joint paths that are free; (0, n): none was found
    goal: int  # number of the goal; -1: none was reached
    names: Pair | None  # in the way of the straight path to the first goal, or at an end
    nodes: int  # configurations that the search tried to join

    @property
    def success(self) -> bool:
        """Return whether there is a way."""
        return self.goal >= 0


class PathPairs(NamedTuple):
    """Pairs of shapes that paths keep apart."""

    packed: tuple[Array, Indices]  # for the kernels of :mod:`dls_ik.core.distance_bounds`
    reach: Array  # (p + s, n) how far joints bring the shapes of each pair together [m by unit]
    names: tuple[Pair, ...]  # (p + s,)
    margins: Array  # (p + s,) distance that each pair keeps [m], above 0

    def block(self, q0: Array, q1: Array) -> Pair | None:
        """Return a pair that is not certainly farther apart on a straight path than its margin."""
        speed = self.reach @ np.abs(q1 - q0)
        k = block_of_path(*self.packed, (q0, q1), speed, self.margins, np.empty(1))
        return None if k < 0 else self.names[k]

    def distances(self, q: Array) -> Array:
        """Return lower bounds (p + s,) of the distances at q (n,), sharp up to the margins [m]."""
        bounds = np.empty((len(self.names), 2))
        bound_pairs(*self.packed, q, self.margins.max(initial=0.0), False, bounds)
        return bounds[:, 0]

    def near(self, q: Array) -> Pair | None:
        """Return a pair at q (n,) that is nearer than its margin."""
        below = self.distances(q) - self.margins
        k = int(below.argmin()) if len(below) else -1
        return self.names[k] if k >= 0 and below[k] <= 0.0 else None


def path_pairs(world: SceneSnapshot, min_distance: float = 0.0) -> PathPairs:
    """Return the pairs of a scene, all of which keep a distance [m]."""
    margins = np.full(len(world.names), max(min_distance, LEAST))
    return PathPairs(world.packed, world.leverage[0], world.names, margins)


class WayLimits(NamedTuple):
    """Where a way may lead, and how long it is looked for."""

    lower: Array  # (n,) of random configurations [rad or m]
    upper: Array  # (n,)
    max_nodes: int = NODES
    seed: int = 0  # of random configurations


def way_limits(
    robot: RobotModel,
    start: Array,
    goals: Array,
    max_nodes: int = NODES,
    seed: int = 0,
) -> WayLimits:
    """Return limits for ways of a robot from a configuration (n,) to others (g, n).

    Joints without limits stay within half a turn beyond start and goals.

    Raises:
        OptionError: If a number is negative or not finite.
    """
    if not 0 <= max_nodes < np.inf:
        raise OptionError(f"max_nodes is a number of at least 0, not {quoted(max_nodes)}")
    both = np.concatenate([start[None], goals])
    lower, upper = robot.finite_limits()
    turns = np.isinf(robot.lower) & np.isinf(robot.upper)
    lower = np.where(turns, both.min(axis=0) - np.pi, lower)
    upper = np.where(turns, both.max(axis=0) + np.pi, upper)
    return WayLimits(lower, upper, max_nodes, seed)


def find_way(
    world: SceneSnapshot,
    start: Array,
    goals: Array,
    limits: WayLimits,
    pairs: PathPairs | None = None,
) -> Way:
    """Find a way from a configuration (n,) to one of several (g, n), the nearest ones first.

    The straight path is taken where it is free. Else two trees of free configurations grow towards
    random ones and towards each other (RRT-Connect; Kuffner & LaValle 2000), one from the start and
    one from all goals. Each branch is certain to be free, as the whole path, not samples of it.
    The way is shortened. The same input leads to the same way.

    A pair that is nearer than its margin at the start or at the goal has to leave first.

    Args:
        pairs: That paths keep apart; default: all of the scene.
    """
    return _WaySearch(world, start, limits, pairs).run(goals)


def way_out(
    world: SceneSnapshot, start: Array, limits: WayLimits, pairs: PathPairs | None = None
) -> Way:
    """Find a way from a configuration (n,) that is too near to something to one that is not."""
    return _WaySearch(world, start, limits, pairs).out()


class _WaySearch:
    """A search for one way."""

    def __init__(
        self, world: SceneSnapshot, start: Array, limits: WayLimits, pairs: PathPairs | None
    ) -> None:
        self._world, self._start, self._limits = world, start, limits
        self._pairs = path_pairs(world) if pairs is None else pairs
        self._rng = np.random.default_rng(limits.seed)
        self._until = time.perf_counter() + LONGEST
        self._tried = 0

    def run(self, goals: Array) -> Way:
        """Return the way."""
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

    def out(self) -> Way:
        """Return the way to the next configuration that keeps the distance."""
        first = self._escape(self._start, may_collide=True)
        if first is None:
            return self._none(self._pairs.near(self._start))
        return Way(np.array(first), 0, None, self._tried)

    def _none(self, names: Pair | None) -> Way:
        return Way(np.empty((0, len(self._start))), -1, names, self._tried)

    def _found(self, points: Sequence[Array], number: int) -> Way:
        return Way(np.array(self._shortened(points)), number, None, self._tried)

    def _block(self, q0: Array, q1: Array) -> Pair | None:
        """Return a pair that comes too near on a straight path."""
        self._tried += 1
        return self._pairs.block(q0, q1)

    # Ends that are too near

    def _escape(self, q: Array, may_collide: bool = False) -> list[Array] | None:
        """Return configurations from q (n,) to one that keeps the distance; None: none was found.

        Pairs that are too near do not come nearer on the way there.
        """
        distances, margins = self._pairs.distances(q), self._pairs.margins
        if (distances > margins).all():
            return [q]
        if not may_collide and self._world.colliding_pair(q) is not None:
            return None
        first = self._pairs._replace(margins=np.minimum(margins, distances - ROUNDING))
        lower, upper = np.minimum(self._limits.lower, q), np.maximum(self._limits.upper, q)
        for spread in SPREADS:
            some = q + spread * self._rng.normal(size=(SAMPLES, len(q)))
            for each in np.clip(some, lower, upper):
                if self._block(each, each) is None and self._leaves(q, each, first):
                    return [q, each]
        return None

    def _leaves(self, q: Array, to: Array, first: PathPairs) -> bool:
        """Return whether the path to another configuration touches nothing new."""
        if (first.margins > -ROUNDING).all():
            return first.block(q, to) is None
        contact = self._world.path_in_collision(q, to)  # spheres leave open if they touch
        return contact is None or self._world.colliding_pair(q) == contact.names

    # Two trees

    def _connect(self, start: Array, goals: Sequence[Array]) -> list[Array]:
        """Return a way between free configurations (n,); empty if none was found."""
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
        """Add a point nearer to the goal (n,); return its number, None where it is not free."""
        i = tree.nearest(goal)
        ahead = goal - tree.points[i]
        length = float(np.linalg.norm(ahead))
        q = goal if length <= STEP else tree.points[i] + (STEP / length) * ahead
        if self._block(tree.points[i], q) is not None:
            return None
        return tree.add(q, i)

    def _reach(self, tree: _Tree, goal: Array) -> int | None:
        """Grow to the goal; return its number if it was reached."""
        while (tip := self._grow(tree, goal)) is not None:
            if tree.points[tip] is goal:
                return tip
        return None

    # Shortening

    def _shortened(self, points: Sequence[Array]) -> list[Array]:
        """Replace parts by straight paths between random places, while that succeeds."""
        way, failures = list(points), 0
        for _ in range(SHORTCUTS):
            if len(way) < 3 or failures >= FRUITLESS or time.perf_counter() > self._until:
                break
            lengths = np.linalg.norm(np.diff(way, axis=0), axis=1)
            ends = np.concatenate([[0.0], np.cumsum(lengths)])
            i, j = sorted(self._rng.uniform(0.0, ends[-1], 2).tolist())
            a = int(np.searchsorted(ends, i, "right")) - 1
            b = int(np.searchsorted(ends, j, "left"))
            if b - a < 2:
                failures += 1
                continue
            q0 = way[a] + (i - ends[a]) / lengths[a] * (way[a + 1] - way[a])
            q1 = way[b] + (j - ends[b]) / lengths[b - 1] * (way[b] - way[b - 1])
            if self._block(q0, q1) is None:
                way[a + 1 : b] = [q0, q1]
                failures = 0
            else:
                failures += 1
        return self._without_corners(way)

    def _without_corners(self, way: list[Array]) -> list[Array]:
        """Leave out corners that straight free paths pass by."""
        found, i = way[:1], 0
        while i < len(way) - 1:
            later = range(len(way) - 1, i + 1, -1)
            i = next((j for j in later if self._block(way[i], way[j]) is None), i + 1)
            found.append(way[i])
        return found


class _Tree:
    """Configurations that are joined by free paths to its roots."""

    def __init__(self, roots: Sequence[Array]) -> None:
        self.points = list(roots)
        self._parents = [-1] * len(roots)
        self._array = np.array([*roots, *([roots[0]] * len(roots))])

    def __len__(self) -> int:
        return len(self.points)

    def nearest(self, q: Array) -> int:
        """Return the number of the point nearest to q (n,)."""
        away = self._array[: len(self.points)] - q
        return int(np.einsum("ij,ij->i", away, away).argmin())

    def add(self, q: Array, parent: int) -> int:
        """Add a point; return its number."""
        number = len(self.points)
        if number == len(self._array):
            self._array = np.concatenate([self._array, self._array])
        self._array[number] = q
        self.points.append(q)
        self._parents.append(parent)
        return number

    def branch(self, tip: int) -> list[Array]:
        """Return the points from a tip to its root."""
        found = []
        while tip >= 0:
            found.append(self.points[tip])
            tip = self._parents[tip]
        return found
