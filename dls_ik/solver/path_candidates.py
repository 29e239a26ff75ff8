# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Candidate configurations for every pose of a path, and the best sequence of candidates.

A sweep carries candidates from pose to pose: each candidate is the start of an attempt for the next
pose. In a sweep that explores, random displacements of the candidates are starts too, so that the
candidates spread along the self-motion of a redundant arm. Candidates in collision are dropped.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.collision import CHECK_FREE
from dls_ik.core.path_graph import KEY_BITS, PathGraph, Sequences, find_sequences, mark_new
from dls_ik.core.selection import STEPS_COLUMN
from dls_ik.core.types import Array, Flags, Indices
from dls_ik.lazy_property import cached_property
from dls_ik.model.joint import TURN
from dls_ik.solver.calls import usable_cores
from dls_ik.solver.search import Search, found, some_rows
from dls_ik.solver.self_motion import attempts_of_auto

if TYPE_CHECKING:
    from dls_ik.scene.snapshot import SceneSnapshot

MAX_SPACING = 0.1  # [rad or m] maximum spacing of the grid on which duplicates are removed
SPACING_SHARE = 0.5  # spacing of this grid, relative to the maximum joint step
MIN_THREAD_SIZE = 512  # minimum number of attempts for each thread
NUM_FIRST_STARTS = 96  # random starts for the first pose with a candidate
MIN_CLEAR_DISTANCE = (
    0.004  # [m] pairs that bounding spheres prove to be farther apart need no exact check
)
FRESH_SHARE = 4  # an exploration makes most // FRESH_SHARE random starts at every tenth pose
NUM_FRESH_STARTS, FRESH_INTERVAL = 12, 10  # random starts of a sweep, at every tenth pose


class TimeUpError(Exception):
    """Error at the time limit of a search; the candidates found so far remain in the graph."""


class Steps(NamedTuple):
    """Maximum joint steps of continuous motions, and the joint metric."""

    step: Array  # (n,) [rad or m]
    weights: Array  # (n,) weights of the squared joint differences
    turn: Array  # (n,) 2 pi for joints without limits that may be shifted by full turns, else 0


class JointSequence(NamedTuple):
    """Sequence of candidates, one for each pose that has candidates."""

    poses: Indices  # (s,) indices of the poses, ascending
    numbers: Indices  # (s,) number of each candidate within its layer
    q: Array  # (s, n) candidates [rad or m]; joints without limits are not wrapped
    is_jump: Flags  # (s,) whether the motion from the previous candidate is a reconfiguration

    @property
    def num_jumps(self) -> int:
        """Number of reconfigurations."""
        return int(self.is_jump.sum())


@dataclass(eq=False)
class CandidateGraph:
    """Candidates of the poses of a path; methods add candidates and find the best sequence.

    Args:
        search: Search with the robot, task, tolerances and scene.
        poses: (m, k, 4, 4) poses.
        is_valid: (m,) whether each pose is valid.
        steps: Maximum joint steps, and the joint metric.
        until: Value of `time.perf_counter` at which the search stops [s]; inf for no limit.
    """

    search: Search
    poses: Array
    is_valid: Flags
    steps: Steps
    until: float
    layers: list[Array] = field(init=False)
    steps_made: Indices = field(init=False)  # (m,) iterations of all attempts for each pose
    attempts_made: Indices = field(init=False)  # (m,) number of attempts for each pose
    has_margin: bool = True  # whether candidates must keep `MIN_CLEAR_DISTANCE` from collisions
    blocked: set[int] = field(default_factory=set)  # keys of motions, see core/path_graph.py

    def __post_init__(self) -> None:
        """Start with empty layers."""
        m, n = len(self.poses), self.search.robot.n
        self.layers = [np.empty((0, n)) for _ in range(m)]
        self.steps_made, self.attempts_made = np.zeros((2, m), np.int64)
        self.plain = replace(attempts_of_auto(self.search), snapshot=None)
        # Last result of `sequences`, with the numbers of candidates and blocked motions
        self._best: tuple[tuple[int, int], PathGraph, Sequences] | None = None
        self._rng = np.random.default_rng(self.search.options.random_seed)
        self._spacing = np.minimum(SPACING_SHARE * self.steps.step, MAX_SPACING)
        self._threads = usable_cores()
        self._limits = self.search.robot.finite_limits()

    @cached_property
    def is_redundant(self) -> bool:
        """Whether the arm has more joints than the task needs, so that solutions are not isolated.

        With tolerances, solutions are not isolated either.
        """
        tasks = self.search.tasks
        rows = sum(len(each.position) + len(each.rotation) for each in tasks)
        has_tolerance = any(
            any(each.position_tolerance) or any(each.rotation_tolerance) for each in tasks
        )
        return has_tolerance or self.search.robot.n > rows

    # Candidates of one pose

    def attempt(self, i: int, starts: Array) -> tuple[Array, Array, NDArray[np.intp]]:
        """Make one attempt for pose i from each start (s, n), without regard to the scene.

        Returns:
            Solutions (f, n) within the joint limits [rad or m], their errors and measures (f, 3),
            and the indices (f,) of their starts.
        """
        search, count = self.plain, len(starts)
        rows = search.new_rows(count)
        poses = np.repeat(self.poses[i : i + 1], count, axis=0)
        parts = min(self._threads, count // MIN_THREAD_SIZE)
        if parts > 1:
            edges = np.linspace(0, count, parts + 1).astype(int).tolist()
            slices = [slice(a, b) for a, b in pairwise(edges)]

            def solve(which: slice) -> None:
                search.attempt(poses[which], starts[which], 1, some_rows(rows, which))

            with ThreadPoolExecutor(parts) as pool:
                list(pool.map(solve, slices))
        elif count:
            search.attempt(poses, starts, 1, rows)
        self.steps_made[i] += rows.counts[:, STEPS_COLUMN].sum()
        self.attempts_made[i] += count
        kept = np.flatnonzero(found(rows) & search.is_inside(rows.best))
        return rows.best[kept], rows.figures[kept], kept

    def add(
        self,
        i: int,
        starts: Array,
        sources: Array | None,
        most: int,
        has_margin: bool | None = None,
    ) -> Array:
        """Add candidates of pose i, found by attempts from starts (s, n).

        Args:
            i: Index of the pose.
            starts: (s, n) start configurations [rad or m].
            sources: (s, n) candidates of the neighbouring pose from which the starts were derived;
                None for random starts.
            most: Maximum number of candidates of the pose.
            has_margin: As the attribute of this name, which is the default.

        Returns:
            The candidates (c, n) that were added.
        """
        q, _, which = self.attempt(i, starts)
        near = np.full_like(q, np.nan) if sources is None else sources[which]
        q = q[mark_new(q, near, self.layers[i], self._spacing, self.steps.step)]
        q = q[: max(most - len(self.layers[i]), 0)]
        if len(q):
            q = q[self.are_free(q, self.has_margin if has_margin is None else has_margin)]
            self.layers[i] = np.vstack([self.layers[i], q])
        return q

    def are_free(self, q: Array, has_margin: bool) -> Flags:
        """Return whether configurations q (c, n) are collision-free.

        Args:
            q: Configurations [rad or m].
            has_margin: Whether bounding spheres must prove that all pairs keep
                `MIN_CLEAR_DISTANCE`. Otherwise, exact checks decide.
        """
        if self.search.snapshot is None:
            return np.ones(len(q), np.bool_)
        if has_margin and self._padded is not None:
            return np.asarray(self._padded.states(q)[:, 0] == CHECK_FREE)
        return ~self.search.snapshot.in_collision(q)

    @cached_property
    def _padded(self) -> SceneSnapshot | None:
        """Scene with links and attached objects enlarged by half of `MIN_CLEAR_DISTANCE`."""
        scene = self.search.snapshot
        if scene is None:
            return None
        names = [*scene.links, *scene.attached]
        padding = {name: scene.padding.get(name, 0.0) + 0.5 * MIN_CLEAR_DISTANCE for name in names}
        return replace(scene, padding=padding, kept=dict(scene.kept))

    def random_starts(self, count: int) -> Array:
        """Return random configurations (count, n) within the joint limits [rad or m]."""
        return self._rng.uniform(*self._limits, (count, self.search.robot.n))

    def _around(self, q: Array) -> Array:
        """Return configurations (c, n) displaced from q (c, n) by up to the maximum joint steps."""
        width = np.minimum(self.steps.step, 1.0)
        return q + self._rng.uniform(-width, width, q.shape)

    # Sweeps

    def sweep(
        self, poses: Iterable[int], front: Array, most: int, report: Callable[[int], object]
    ) -> None:
        """Start attempts for each pose from the candidates of the pose before.

        Every tenth pose also has random starts.

        Args:
            poses: Indices of the poses in order, either ascending or descending.
            front: (c, n) candidates of the neighbour of the first of these poses [rad or m]; (0, n)
                without such a neighbour.
            most: Maximum number of candidates of a pose.
            report: Function that is called with the index of each finished pose.

        Raises:
            TimeUpError: If the time is up.
        """
        for i in poses:
            self.check_time()
            if self.is_valid[i]:
                if len(front):
                    self.add(i, front, front, most)
                if not len(front) or not len(self.layers[i]) or i % FRESH_INTERVAL == 0:
                    self._add_random(i, front, most)
                front = self.layers[i]
            report(i)

    def _add_random(self, i: int, front: Array, most: int) -> None:
        """Add candidates of pose i from random starts: many if the pose has no candidates so far.

        Args:
            i: Index of the pose.
            front: (c, n) candidates of the neighbouring pose. They are starts of further attempts
                without the margin if no candidate of pose i keeps the margin.
            most: Maximum number of candidates of the pose.
        """
        is_first = not len(front) or not len(self.layers[i])
        count = NUM_FIRST_STARTS if is_first else NUM_FRESH_STARTS
        self.add(i, self.random_starts(count), None, most)
        if not len(self.layers[i]) and self.has_margin:
            starts = np.vstack([front, self.random_starts(NUM_FIRST_STARTS)])
            self.add(i, starts, None, most, has_margin=False)

    def explore(
        self,
        poses: Iterable[int],
        front: Array,
        most: int,
        usable: Callable[[int], Array],
    ) -> None:
        """Start attempts for each pose from candidates of the pose before and their neighbourhood.

        For a redundant arm, random displacements of the candidates are starts too, so that the
        candidates spread along the self-motion.

        Args:
            poses: Indices of the poses in order, either ascending or descending.
            front: (c, n) candidates of the pose next to the first of these poses.
            most: Maximum number of candidates of a pose.
            usable: Function that returns the earlier candidates (c, n) of a pose which are also
                used as starts for the next pose.

        Raises:
            TimeUpError: If the time is up.
        """
        for i in poses:
            self.check_time()
            older = usable(i)
            if self.is_valid[i] and len(front):
                starts = front
                if self.is_redundant:
                    starts = np.vstack([front, self._around(front)])
                sources = np.resize(front, starts.shape)
                added = self.add(i, starts, sources, most)
                if i % FRESH_INTERVAL == 0:
                    fresh = self.add(i, self.random_starts(most // FRESH_SHARE), None, most)
                    added = np.vstack([added, fresh])
                front = np.vstack([older, added])
            elif len(older):
                front = older
            if len(front) > most // 2:
                front = front[self._rng.choice(len(front), most // 2, replace=False)]

    def check_time(self) -> None:
        """Raise an error if the time is up.

        Raises:
            TimeUpError: If the time is up.
        """
        if time.perf_counter() > self.until:
            raise TimeUpError

    # Sequences

    def block(self, layer: int, parent: int, child: int) -> None:
        """Declare the motion from a candidate of the previous layer to one of `layer` impossible.

        `parent` and `child` are the numbers of the candidates within their layers.
        """
        self.blocked.add((layer << (2 * KEY_BITS)) | (parent << KEY_BITS) | child)

    def packed(self, is_reversed: bool = False) -> PathGraph:
        """Return the graph for the kernels, with the layers in reverse order if `is_reversed`."""
        layers = self.layers[::-1] if is_reversed else self.layers
        first = np.zeros(len(layers) + 1, np.int64)
        np.cumsum([len(each) for each in layers], out=first[1:])
        q = np.vstack([np.empty((0, self.search.robot.n)), *layers])
        key, order = self._key(q), np.arange(len(q))
        if key >= 0:
            layer = np.repeat(np.arange(len(layers)), np.diff(first))
            order = np.lexsort((q[:, key], layer))
        keys = [] if is_reversed else sorted(self.blocked)
        blocked = np.array(keys, np.int64)
        return PathGraph(
            q, first, order, key, self.steps.step, self.steps.weights, self.steps.turn, blocked
        )

    def _key(self, q: Array) -> int:
        """Return the index of the joint with the largest range relative to its maximum step.

        Joints that may be shifted by full turns are excluded; -1 if no joint remains.
        """
        usable = self.steps.turn == 0.0
        if not usable.any() or not len(q):
            return -1
        spread = np.where(usable, np.ptp(q, axis=0) / self.steps.step, -1.0)
        return int(spread.argmax())

    def sequences(self, initial: Array, is_reversed: bool = False) -> tuple[PathGraph, Sequences]:
        """Return the packed graph and the best sequences to all candidates.

        Args:
            initial: (k,) lengths added to all sequences from the k candidates of the first layer
                that is not empty.
            is_reversed: Whether sequences start at the last pose.
        """
        if is_reversed:
            graph = self.packed(is_reversed)
            return graph, find_sequences(graph, initial)
        state = sum(map(len, self.layers)), len(self.blocked)  # both only grow
        if self._best is None or self._best[0] != state:
            graph = self.packed()
            self._best = state, graph, find_sequences(graph, initial)
        return self._best[1:]

    def best(self, initial: Array) -> JointSequence:
        """Return the best sequence; ``initial`` is the argument of :meth:`sequences`."""
        graph, found = self.sequences(initial)
        return best_sequence(graph, found)


def best_sequence(graph: PathGraph, found: Sequences) -> JointSequence:
    """Return the best sequence of all poses that have candidates.

    Args:
        graph: Candidates.
        found: Best sequences to all candidates.
    """
    filled = np.flatnonzero(np.diff(graph.first))
    numbers, is_jump = np.zeros(len(filled), np.int64), np.zeros(len(filled), np.bool_)
    index = numbers.copy()
    if len(filled):
        last = slice(graph.first[filled[-1]], graph.first[filled[-1] + 1])
        at = int(last.start + np.lexsort((found.length[last], found.jumps[last]))[0])
        for k in range(len(filled) - 1, -1, -1):
            index[k], is_jump[k] = at, found.is_jump[at]
            at = int(found.parent[at])
        numbers = index - graph.first[filled]
    q = unwrapped(graph.q[index], graph.turn)
    return JointSequence(filled, numbers, q, is_jump)


def unwrapped(q: Array, turn: Array) -> Array:
    """Return q (s, n) with joints shifted by full turns so that successive values are close.

    Args:
        q: (s, n) configurations [rad or m].
        turn: (n,) 2 pi for joints that may be shifted, else 0.
    """
    q = q.copy()
    for j in np.flatnonzero(turn):
        q[:, j] = np.unwrap(q[:, j])
    return q


def turns_of(search: Search) -> Array:
    """Return (n,) 2 pi for joints without limits that may be shifted by full turns, else 0."""
    free = np.isinf(search.robot.lower) & np.isinf(search.robot.upper)
    return np.where(free & (search.problem.starts.periodic != 0), TURN, 0.0)
