# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint positions along a path of poses, chosen for the whole path at once.

1. Candidates: a sweep finds solutions of every pose (:mod:`.path_candidates`).
2. Choice: dynamic programming finds the sequence of candidates with the minimum number of
   reconfigurations and, among those, the minimum joint motion. Motions of this sequence that turn
   out not to be continuous are excluded, and the choice is repeated.
3. Exploration: around each reconfiguration, more candidates are added along the self-motion, first
   for a few poses, then for more, as long as reconfigurations remain.
4. Refinement: the configurations of all poses are moved together along their self-motion
   (:mod:`.path_refinement`).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from dls_ik.core.selection import ATTEMPTS_COLUMN, FOUND_ALL, FOUND_COLUMN, STEPS_COLUMN
from dls_ik.core.types import Array, Indices, Rows
from dls_ik.errors import BatchInterrupted
from dls_ik.lazy_property import cached_property
from dls_ik.solver.calls import batch_result, solve_rows
from dls_ik.solver.conclusion import has_answer
from dls_ik.solver.path_candidates import (
    CandidateGraph,
    JointSequence,
    Steps,
    TimeUpError,
    turns_of,
)
from dls_ik.solver.path_motions import are_continuous, explain_break
from dls_ik.solver.path_refinement import PathRefiner, RefinedPath
from dls_ik.solver.poses import valid_poses
from dls_ik.solver.result import IkPathResult, Reconfiguration, Status
from dls_ik.solver.search import Search, found, some_rows

if TYPE_CHECKING:
    from dls_ik.scene.snapshot import PathContact

Progress = Callable[[int, int], None]

MAX_SWEEP_CANDIDATES = 400  # maximum number of candidates of a pose after the first sweep
MAX_TOTAL_CANDIDATES = 4_000_000  # maximum number of candidates of all poses
MIN_CANDIDATES = 16  # number of candidates of a pose that is allowed in any case
# Rounds of the exploration. Each entry has the number of poses before and after a reconfiguration,
# and the maximum number of candidates of a pose.
ROUNDS = ((32, 200), (128, 400), (512, 600), (2048, 1000), (10**9, 2000))
# Minimum growth of the number of candidates around the reconfigurations in a round; with less,
# and as many reconfigurations as before, the rounds with (or without) the margin end
MIN_GROWTH = 1.25
EXPLORATION_BUDGET = 1_000_000  # number of attempts after which no further round starts
MAX_EXPLORED_JUMPS = 30  # maximum number of reconfigurations around which candidates are added
# For an arm without redundancy: random starts per pose, maximum number of rounds, and maximum
# number of candidates of a pose. A pose at a singularity has infinitely many solutions. Regular
# poses have at most 16 * 2^6 solutions if six joints have limits of +-2 pi.
NUM_BRANCH_STARTS, MAX_BRANCH_ROUNDS, MAX_BRANCHES = 128, 3, 1024
MISSED_BATCH_SIZE = 64  # number of poses without candidates solved between checks of the timeout
MAX_CHOICES = 60  # maximum number of repeated choices because of motions that are not continuous
MAX_REFINEMENTS = 4  # maximum number of refinements, with more configurations held each time
AT_SEED_TOLERANCE = 1e-3  # [rad or m] maximum joint difference of a first solution at the seed


def solve_whole_path(
    search: Search,
    poses: Array,
    start: Array | None,
    step: Array,
    timeout: float | None,
    progress: Progress | None,
) -> IkPathResult:
    """Solve for a path of poses as a whole; :meth:`dls_ik.IkSolver.solve_path` explains the result.

    Args:
        search: Search with the robot, task and scene.
        poses: (b, k, 4, 4) poses.
        start: (n,) configuration before the path [rad or m], or None.
        step: (n,) maximum joint step between successive poses [rad or m].
        timeout: Maximum duration [s]; None for no limit.
        progress: Function that is called with the number of finished poses and of all poses.

    Raises:
        BatchInterrupted: If Ctrl-C is pressed.
    """
    return _WholePath(search, poses, start, step, timeout, progress).run()


class _WholePath:
    """Search for the best joint path; :func:`solve_whole_path` explains the arguments."""

    def __init__(
        self,
        search: Search,
        poses: Array,
        start: Array | None,
        step: Array,
        timeout: float | None,
        progress: Progress | None,
    ) -> None:
        self._begin = time.perf_counter()
        until = math.inf if timeout is None else self._begin + timeout
        self._search, self._start, self._progress = search, start, progress
        poses, is_valid = valid_poses(poses, len(search.robot.tips))
        weights = search.problem.starts.joint_weights
        steps = Steps(np.minimum(step, search.max_change), weights, turns_of(search))
        self._graph = CandidateGraph(search, poses, is_valid, steps, until)
        self._missed: dict[int, tuple[int, Rows]] = {}
        self._is_start_fixed = False
        self._is_exhaustive = False  # whether random starts found no further branch
        self._continuous: set[tuple[int, int, int]] = set()  # motions that were checked

    def run(self) -> IkPathResult:
        """Search for the path, and return the result."""
        status, sequence, refined = Status.MAX_RESTARTS, None, None
        try:
            self._find_candidates()
            sequence = self._choose()
            sequence = self._explore(sequence)
            refined = self._refine(sequence)
        except TimeUpError:
            status = Status.TIMED_OUT
        except KeyboardInterrupt as error:
            result = self._result(sequence, refined, Status.INTERRUPTED)
            raise BatchInterrupted(result) from error
        result = self._result(sequence, refined, status)
        self._report(len(self._graph.poses))
        return result

    def _report(self, done: int) -> None:
        if self._progress is not None:
            self._progress(done, len(self._graph.poses))

    # Candidates

    def _find_candidates(self) -> None:
        """Find the first candidates of all poses, by one sweep along the path."""
        graph, search = self._graph, self._search
        m = len(graph.poses)
        if m and self._start is not None and graph.is_valid[0]:
            self._add_start(self._start)
        most = min(MAX_SWEEP_CANDIDATES, self._most)
        fixed = graph.layers[0][:1] if self._is_start_fixed else np.empty((0, search.robot.n))
        poses = range(len(fixed), m)
        graph.sweep(poses, fixed, most, lambda i: self._report(min(i + 1, m - 1)))
        missed = np.flatnonzero(graph.is_valid & (self._sizes() == 0))
        for first in range(0, len(missed), MISSED_BATCH_SIZE):
            graph.check_time()
            self._solve_missed(missed[first : first + MISSED_BATCH_SIZE])

    @cached_property
    def _most(self) -> int:
        """Maximum number of candidates of a pose, which bounds the memory."""
        return max(MIN_CANDIDATES, MAX_TOTAL_CANDIDATES // max(len(self._graph.poses), 1))

    def _sizes(self) -> Indices:
        return np.array([len(each) for each in self._graph.layers], np.int64)

    def _add_start(self, start: Array) -> None:
        """Add the first pose's candidate that is closest to the start configuration (n,).

        If the start itself reaches the first pose, it is the only candidate.
        """
        graph = self._graph
        added = graph.add(0, start[None], None, 1)
        if len(added) and (abs(added[0] - start) <= AT_SEED_TOLERANCE).all():
            self._is_start_fixed = True

    def _solve_missed(self, missed: Indices) -> None:
        """Search for solutions of the poses with the indices `missed`, which have no candidates."""
        graph, search = self._graph, self._search
        known = np.flatnonzero(self._sizes())
        before = np.searchsorted(known, missed) - 1
        seeds = np.array(
            [graph.layers[known[k]][-1] if k >= 0 else search.middle[0] for k in before.tolist()]
        )
        rows = search.new_rows(len(missed))
        ended = solve_rows(search, graph.poses[missed], seeds, True, rows)
        is_found = found(rows) & search.is_inside(rows.best)
        for k, i in enumerate(missed.tolist()):
            if is_found[k]:
                graph.layers[i] = rows.best[k : k + 1].copy()
            else:
                self._missed[i] = int(ended[k]), some_rows(rows, slice(k, k + 1))

    # Choice

    def _initial(self) -> Array:
        """Return the lengths of the motions from the start to the first candidates."""
        first = next((each for each in self._graph.layers if len(each)), np.empty((0, 0)))
        if self._start is None or not len(first):
            return np.zeros(len(first))
        return np.sqrt(((first - self._start) ** 2) @ self._graph.steps.weights)

    def _choose(self) -> JointSequence:
        """Return the best sequence whose continuous motions have been checked."""
        graph, initial = self._graph, self._initial()
        for _ in range(MAX_CHOICES):
            sequence = graph.best(initial)
            broken = self._broken(sequence)
            if not len(broken):
                return sequence
            for k in broken.tolist():
                graph.block(*_motion(sequence, k))
            graph.check_time()
        is_jump = sequence.is_jump.copy()
        is_jump[broken] = True
        return sequence._replace(is_jump=is_jump)

    def _broken(self, sequence: JointSequence) -> Indices:
        """Return the indices of motions of a sequence that should be continuous, but are not.

        Index k stands for the motion from element k - 1 to element k.
        """
        unknown = [
            k
            for k in np.flatnonzero(~sequence.is_jump).tolist()
            if k and _motion(sequence, k) not in self._continuous
        ]
        which = np.array(unknown, np.int64)
        is_good = are_continuous(self._graph, sequence.poses, sequence.q, which)
        self._continuous.update(_motion(sequence, k) for k in which[is_good].tolist())
        return which[~is_good]

    # Exploration

    def _explore(self, sequence: JointSequence) -> JointSequence:
        """Add candidates around reconfigurations, and return the best sequence.

        If there are many reconfigurations, the maximum joint steps are too small for the distances
        of the poses, and candidates would not help.
        """
        if sequence.num_jumps > MAX_EXPLORED_JUMPS:
            return sequence
        if not self._graph.is_redundant:
            return self._find_branches(sequence)
        graph = self._graph
        budget = graph.attempts_made.sum() + EXPLORATION_BUDGET
        for has_margin in (True, False) if self._search.snapshot is not None else (False,):
            graph.has_margin = has_margin
            for window, most in ROUNDS:
                if not sequence.num_jumps or graph.attempts_made.sum() > budget:
                    return sequence
                count, known = sequence.num_jumps, self._around(sequence)
                self._explore_around(sequence, window, min(most, self._most))
                sequence = self._choose()
                is_saturated = self._around(sequence) < MIN_GROWTH * known
                if is_saturated and sequence.num_jumps == count and window > ROUNDS[0][0]:
                    break
        return sequence

    def _around(self, sequence: JointSequence) -> float:
        """Return the mean number of candidates of the poses around the reconfigurations."""
        near = np.zeros(len(self._graph.poses), np.bool_)
        for pose in sequence.poses[sequence.is_jump].tolist():
            near[max(pose - ROUNDS[0][0], 0) : pose + ROUNDS[0][0]] = True
        return float(self._sizes()[near].mean()) if near.any() else 0.0

    def _find_branches(self, sequence: JointSequence) -> JointSequence:
        """Search for further branches of a non-redundant arm, and return the best sequence."""
        graph, m, most = self._graph, len(self._graph.poses), min(MAX_BRANCHES, self._most)
        for _ in range(MAX_BRANCH_ROUNDS):
            if not sequence.num_jumps:
                return sequence
            before = self._sizes().sum()
            for i in np.flatnonzero(graph.is_valid).tolist():
                graph.check_time()
                if i or not self._is_start_fixed:
                    graph.add(i, graph.random_starts(NUM_BRANCH_STARTS), None, most)
            first = 1 if self._is_start_fixed else 0
            for poses in (range(1, m), range(m - 2, first - 1, -1)):
                front = graph.layers[poses[0] - poses.step] if len(poses) else graph.layers[0]
                graph.sweep(poses, front, most, lambda _: self._report(m - 1))
            sizes = self._sizes()
            self._is_exhaustive = bool(sizes.sum() == before and sizes.max() < most)
            if sizes.sum() == before:
                break
            sequence = self._choose()
        return sequence

    def _explore_around(self, sequence: JointSequence, window: int, most: int) -> None:
        """Add candidates for the poses around each reconfiguration of a sequence.

        Reconfigurations within a section that was already explored wait for the next round.

        Args:
            sequence: Best sequence so far.
            window: Number of poses before and after a reconfiguration.
            most: Maximum number of candidates of a pose.
        """
        graph, m, total = self._graph, len(self._graph.poses), sequence.num_jumps
        packed, ahead = graph.sequences(self._initial())
        last = next(each for each in reversed(graph.layers) if len(each))
        _, back = graph.sequences(np.zeros(len(last)), is_reversed=True)
        forward = np.split(ahead.jumps, packed.first[1:-1])
        reverse = np.cumsum(self._sizes()[::-1])[:-1]
        backward = np.split(back.jumps, reverse)[::-1]
        explored = -1  # last pose of the sections explored so far
        for number, k in enumerate(np.flatnonzero(sequence.is_jump).tolist(), 1):
            pose = int(sequence.poses[k])
            if pose <= explored:
                continue
            low, high = max(0, pose - window), min(m - 1, pose + window)
            explored = high

            def from_start(i: int, number: int = number) -> Array:
                return graph.layers[i][: len(forward[i])][forward[i] <= number - 1]

            def from_end(i: int, number: int = number) -> Array:
                layer, known = graph.layers[i], len(backward[i])
                return np.vstack([layer[:known][backward[i] <= total - number], layer[known:]])

            graph.explore(range(low + 1, high + 1), from_start(low), most, from_start)
            first = 1 if self._is_start_fixed and low == 0 else low
            graph.explore(range(high - 1, first - 1, -1), from_end(high), 2 * most, from_end)
            self._report(m - 1)

    # Refinement

    def _refine(self, sequence: JointSequence) -> RefinedPath | None:
        """Return the refined path, whose continuous motions have been checked."""
        if not len(sequence.q):
            return None
        refiner = PathRefiner(self._graph, sequence, self._is_start_fixed)
        which = np.flatnonzero(~sequence.is_jump[1:]) + 1
        for _ in range(MAX_REFINEMENTS):
            refined = refiner.refine(sequence.q)
            broken = which[~are_continuous(self._graph, sequence.poses, refined.q, which)]
            if not len(broken):
                return refined
            held = np.zeros(len(sequence.q), np.bool_)
            for k in broken.tolist():
                held[max(k - 3, 0) : k + 3] = True
            refiner.hold(held)
        return None

    # Result

    def _result(
        self, sequence: JointSequence | None, refined: RefinedPath | None, ended: Status
    ) -> IkPathResult:
        """Return the result.

        Args:
            sequence: Best sequence so far; None before the first choice.
            refined: Refined sequence; None without refinement.
            ended: Status of valid poses for which the search found no solution and gave no status.
        """
        graph, search = self._graph, self._search
        b = len(graph.poses)
        if sequence is None:
            sequence = graph.best(self._initial())
        rows = search.new_rows(b)
        status = np.where(graph.is_valid, int(ended), int(Status.REFUSED))
        for i, (value, row) in self._missed.items():
            status[i] = value
            for array, part in zip(rows, row, strict=True):
                array[i] = part[0]
        if refined is None:
            refined = self._unrefined(sequence)
        rows.best[sequence.poses], rows.figures[sequence.poses] = refined
        rows.counts[:, ATTEMPTS_COLUMN] += graph.attempts_made
        rows.counts[:, STEPS_COLUMN] += graph.steps_made
        rows.counts[sequence.poses, FOUND_COLUMN] = FOUND_ALL
        status[sequence.poses] = int(Status.SUCCESS)
        seeds = search.middle if self._start is None else self._start[None]
        success = has_answer(search, status, rows.best, seeds)
        jumps = np.zeros(b, np.bool_)
        jumps[sequence.poses[sequence.is_jump]] = True
        is_complete = ended is Status.MAX_RESTARTS
        breaks = self._breaks(sequence, refined.q, is_complete)
        count = len(breaks)
        return IkPathResult(
            **vars(batch_result(search, rows, status, success, self._begin)),
            jumps=jumps,
            contacts=self._contacts(sequence, refined.q),
            reconfigurations=breaks,
            min_reconfigurations=0 if not count else count if self._is_exhaustive else None,
            is_complete=is_complete,
        )

    def _unrefined(self, sequence: JointSequence) -> RefinedPath:
        """Return the configurations of a sequence with their errors."""
        search = self._graph.plain
        rows = search.new_rows(len(sequence.q))
        search.attempt(np.ascontiguousarray(self._graph.poses[sequence.poses]), sequence.q, 1, rows)
        return RefinedPath(sequence.q, rows.figures)

    def _breaks(
        self, sequence: JointSequence, q: Array, is_complete: bool
    ) -> tuple[Reconfiguration, ...]:
        return tuple(
            explain_break(self._graph, q[k - 1], int(sequence.poses[k]), is_complete)
            for k in np.flatnonzero(sequence.is_jump).tolist()
        )

    def _contacts(self, sequence: JointSequence, q: Array) -> tuple[PathContact | None, ...]:
        """Return the contact of the straight joint motion of each reconfiguration.

        The entry of a pose is None if no reconfiguration leads to the pose, or if the straight
        motion is collision-free. Without a scene, the tuple is empty.
        """
        snapshot = self._search.snapshot
        if snapshot is None:
            return ()
        contacts: list[PathContact | None] = [None] * len(self._graph.poses)
        for k in np.flatnonzero(sequence.is_jump).tolist():
            contacts[sequence.poses[k]] = snapshot.path_in_collision(q[k - 1], q[k])
        return tuple(contacts)


def _motion(sequence: JointSequence, k: int) -> tuple[int, int, int]:
    """Return the layer, the parent and the child of the motion to element k of a sequence."""
    return int(sequence.poses[k]), int(sequence.numbers[k - 1]), int(sequence.numbers[k])
