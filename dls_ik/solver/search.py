# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The search of a solver call: robot, method, options, problem and selection rule.

A :class:`Search` makes attempts for one or many poses. An attempt is a sequence of steps from a
start configuration; an attempt that reaches the pose finds a solution. The state of the searches
for b poses is a struct `Rows`, with a row for each pose. :mod:`.calls` adds timeouts and threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dls_ik import compat
from dls_ik.core import limits
from dls_ik.core.fast.packed import pack
from dls_ik.core.search_rows import (
    search_packed,
    search_packed_free,
    search_rows,
    search_rows_free,
)
from dls_ik.core.selection import (
    ATTEMPTS_COLUMN,
    CANDIDATES,
    FOUND_BLOCKED,
    FOUND_COLUMN,
    FOUND_NOTHING,
    PAIRS_COLUMN,
    RANDOM_STATE_COLUMN,
    SELECT_CLEAREST,
    SELECT_DEXTROUS,
    SELECT_FIRST,
    SELECT_NEAREST,
    SLOTS,
    OpenSolutions,
    count_pair,
)
from dls_ik.core.types import Array, Rows, SearchParams, SelectionRule
from dls_ik.errors import MethodError, OptionError
from dls_ik.lazy_property import cached_property
from dls_ik.model.chain import build_arm
from dls_ik.model.joint import JointValues, some_by_name
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel
from dls_ik.solver.method import AUTO_METHOD, MethodChoice
from dls_ik.solver.options import SolverOptions, checked_value
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import Problem, build_problem, no_table
from dls_ik.solver.task import Task, Tasks, checked_tasks, rotation_free
from dls_ik.solver.unreachable import TaskRegion, are_unreachable, reach_of, regions
from dls_ik.text import listing

if TYPE_CHECKING:
    from dls_ik.scene.snapshot import SceneSnapshot

SELECTION_KINDS = {
    "speed": SELECT_FIRST,
    "distance": SELECT_NEAREST,
    "manipulability": SELECT_DEXTROUS,
    "clearance": SELECT_CLEAREST,
}
_FIELDS = SolverOptions.__dataclass_fields__

UNTIMED_ATTEMPTS = 8  # attempts of "auto" before the clock is first read; about 20 us
MAX_UNTIMED_ITERATIONS = 100  # if max_iterations is larger, the clock is read after one attempt
UNLIMITED_ATTEMPTS = 2**62
DEFAULT_RESTARTS = 10_000  # restarts for one pose without a scene if max_restarts is None
# An attempt of the general kernels takes about this number of times as long as one of the fast ones
GENERAL_ATTEMPT_COST = 5
LONG_ATTEMPT_CRITERIA = (100, 0.999, 3)  # options max_iterations, stall_ratio, stall_count

# Kernel of the fast path, called without type checks; all arrays are writable and C-contiguous
_search_plain = compat.EntryPoint(search_packed)
_loaded: frozenset[tuple[bool, bool, bool]] = frozenset()  # see Search.load_kernels


@dataclass(frozen=True, eq=False)
class Search:
    """Everything that determines the answers of a solver call.

    These are the robot, the method with its options, the task, the scene, and the rule by which a
    solution is selected. A search does not change; methods return modified copies.
    """

    robot: RobotModel
    method: str
    options: SolverOptions
    problem: Problem
    kind: int  # selection rule: SELECT_FIRST, SELECT_NEAREST, SELECT_DEXTROUS or SELECT_CLEAREST
    max_change: Array  # (n,) maximum difference of an answer from its seed [rad or m]
    approximate: bool  # whether the closest configuration answers a pose that is not reached
    tasks: tuple[Task, ...]  # (k,) task of each tip
    snapshot: SceneSnapshot | None = None  # scene in which answers must be collision-free

    def wanting(
        self,
        solve_type: str | None = None,
        max_joint_change: JointValues | None = None,
        approximate: bool | None = None,
    ) -> Search:
        """Return a search with other selection options.

        The arguments have the meaning of the solver options of these names; None stands for the
        option of the solver.

        Raises:
            OptionError: If a value is not valid.
            MethodError: If a KDL method is asked for any solution but the first.
        """
        kind = SELECTION_KINDS[self._choice("solve_type", solve_type)]
        if isinstance(max_joint_change, Mapping):
            names = self.robot.joint_names
            max_joint_change = some_by_name(max_joint_change, names, np.inf)
        change = np.array(self._choice("max_joint_change", max_joint_change), np.float64)
        n, names = self.robot.n, self.robot.joint_names
        if change.ndim == 1 and len(change) != n:
            raise OptionError(
                f"max_joint_change must be one number or {n} numbers, one for each joint "
                f"({listing(names)}); got {len(change)}"
            )
        if self.problem.kdl is not None and (kind != SELECT_FIRST or np.isfinite(change).any()):
            raise MethodError(
                f"method {self.method!r} always returns the first solution it finds: solve_type "
                "and max_joint_change need another method, such as 'auto'"
            )
        nearest = bool(self._choice("approximate", approximate))
        change = np.broadcast_to(change, (n,)).copy()
        return replace(self, kind=kind, max_change=change, approximate=nearest)

    def _choice(self, option: str, given: Any) -> Any:
        default = getattr(self.options, option)
        return default if given is None else checked_value(_FIELDS[option], given)

    @cached_property
    def keeps_limits(self) -> bool:
        """Whether the method enforces the joint limits and `max_change`."""
        return limits.clips(self.problem.method)

    @cached_property
    def is_narrowed(self) -> bool:
        """Whether `max_change` is finite for some joint."""
        return bool(np.isfinite(self.max_change).any())

    @cached_property
    def max_attempts(self) -> int:
        """Maximum number of attempts for one pose; a timeout may end a search earlier.

        If no collisions are checked, a pose that `DEFAULT_RESTARTS` attempts do not reach is almost
        certainly unreachable. In a scene, collision-free solutions can be much rarer.
        """
        restarts = self.options.max_restarts
        if restarts is None:
            return UNLIMITED_ATTEMPTS if self.snapshot is not None else DEFAULT_RESTARTS + 1
        return restarts + 1

    @cached_property
    def prove_after(self) -> int:
        """Number of attempts before the solver tries to prove the pose unreachable.

        With the general kernels, whose attempts take longer, the option of this name is reduced.
        """
        given = self.options.prove_after
        return given if self.problem.packed is not None else max(1, given // GENERAL_ATTEMPT_COST)

    @cached_property
    def first_attempts(self) -> int:
        """Number of attempts for one pose that are made before the timeout is first checked."""
        is_quick = (
            self.method == AUTO_METHOD and self.options.max_iterations <= MAX_UNTIMED_ITERATIONS
        )
        first = UNTIMED_ATTEMPTS if is_quick else 1
        return min(first, self.max_attempts, self.prove_after)

    @cached_property
    def position_only(self) -> tuple[bool, ...]:
        """Tuple (k,) with true for tips whose rotation is free."""
        return rotation_free(self.tasks)

    @cached_property
    def columns(self) -> int:
        """Number of columns of `Rows.counts`; with a scene, some columns count colliding pairs."""
        return PAIRS_COLUMN if self.snapshot is None else PAIRS_COLUMN + 2 * SLOTS

    @cached_property
    def middle(self) -> Array:
        """Middle (1, n) [rad or m] of the bounds of random starts, which is the default seed."""
        return 0.5 * (self.problem.starts.lower + self.problem.starts.upper)[None]

    def checked(self, T: PoseLike, seed: JointValues | None) -> tuple[Array, Array]:
        """Validate a pose and a seed, and return arrays (1, k, 4, 4) and (1, n) for the kernels.

        If the seed is None, `middle` is returned in its place.

        Raises:
            PoseError: If the pose is not valid.
            JointValueError: If the seed is not valid.
        """
        poses = checked_poses(T, len(self.robot.tips), self.position_only)[None]
        return poses, self.middle if seed is None else self.checked_seed(seed)[None]

    def checked_seed(self, seed: JointValues) -> Array:
        """Validate a seed, and return it as an array (n,) [rad or m].

        Raises:
            JointValueError: If the seed has another length or is not finite.
        """
        return self.robot.validated_one(seed)

    def new_rows(self, b: int) -> Rows:
        """Return the state of searches for b poses before the first attempt."""
        counts = np.zeros((b, self.columns), np.int64)
        rows = Rows(counts, np.empty((b, self.robot.n)), np.empty((b, 3)))
        rows.counts[:, RANDOM_STATE_COLUMN] = self.options.random_seed
        rows.best.fill(np.nan)
        rows.figures.fill(np.nan)
        return rows

    def attempt(
        self, Ts: Array, seeds: Array, attempts: int, rows: Rows, seeded: bool = True
    ) -> None:
        """Make more attempts for every pose; see :mod:`dls_ik.core.search_rows`.

        The search for a pose ends earlier if a solution is found that the selection rule accepts.

        Args:
            Ts: (b, k, 4, 4) desired poses.
            seeds: (b, n) seeds, or (1, n) for all poses [rad or m].
            attempts: Maximum number of attempts per pose in this call.
            rows: State of the searches, read and written. Rows with an invalid pose or seed do not
                change.
            seeded: Whether the first attempt starts at the seed; otherwise it starts at a
                configuration of the start table.
        """
        problem = self.problem
        targets, state = (Ts, seeds, self.max_change), (rows.counts, rows.best, rows.figures)
        if problem.kdl is not None:
            problem.kdl.search(Ts, seeds, attempts, rows, self.snapshot)
        elif self.snapshot is not None:
            self._attempt_free(self.snapshot, Ts, seeds, attempts, rows, seeded)
        elif problem.packed is not None:
            rule = self.kind, self.options.num_candidates, seeded or not problem.has_table
            search_packed(*problem.packed, targets, rule, attempts, state)
        elif problem.details is not None:
            selection = SelectionRule(self.kind, self.options.num_candidates, True)
            params = SearchParams(problem.method, problem.goal, problem.starts, selection)
            search_rows(self.robot.chain, params, problem.details, targets, attempts, state)

    def attempt_plain(self, T: Array, seed: Array, row: Rows, seeded: bool) -> None:
        """Make the first attempts for a pose, as :meth:`attempt` but with fewer type checks.

        Args:
            T: (1, k, 4, 4) desired poses; `T` and `seed` are C-contiguous and writable.
            seed: (1, n) seed [rad or m].
            row: State of the search, read and written.
            seeded: As for :meth:`attempt`.
        """
        problem = self.problem
        if problem.packed is None or self.snapshot is not None:
            self.attempt(T, seed, self.first_attempts, row, seeded)
            return
        rule = self.kind, self.options.num_candidates, seeded or not problem.has_table
        targets, state = (T, seed, self.max_change), (row.counts, row.best, row.figures)
        _search_plain(*problem.packed, targets, rule, self.first_attempts, state)

    def _attempt_free(
        self,
        snapshot: SceneSnapshot,
        Ts: Array,
        seeds: Array,
        attempts: int,
        rows: Rows,
        seeded: bool,
    ) -> None:
        """Make more attempts for every pose in a scene; :meth:`attempt` explains the arguments.

        The kernels prove most solutions collision-free or in collision by bounds. Undecided
        solutions are checked exactly in Python, then the kernels continue.
        """
        b, n = rows.best.shape
        until = rows.counts[:, ATTEMPTS_COLUMN] + attempts
        candidates, answers = np.empty((b, CANDIDATES, n + 3)), np.zeros((b, 1 + CANDIDATES), int)
        opened = OpenSolutions(candidates, answers)
        self._search_free(snapshot, Ts, seeds, until, rows, opened, seeded)
        while answers[:, 0].any():
            which = np.flatnonzero(answers[:, 0])
            for i in which:
                self._decide(snapshot, candidates[i], answers[i], rows.counts[i])
            part, again = some_rows(rows, which), OpenSolutions(candidates[which], answers[which])
            near = seeds_of(seeds, which)
            self._search_free(snapshot, Ts[which], near, until[which], part, again, seeded)
            put_back(rows, which, part)
            candidates[which], answers[which] = again

    @cached_property
    def decided(self) -> NDArray[np.int64]:
        """Array (p,) with 1 for pairs whose distance depends only on the tip pose, 0 for others.

        If a pair with 1 collides in one solution of a pose, it collides in all solutions of the
        pose.
        """
        if self.snapshot is None or self.problem.packed is None:
            return np.zeros(0 if self.snapshot is None else len(self.snapshot.names), np.int64)
        return self.snapshot.moved_by_tip(self.robot.base, self.robot.tips[0])

    def _search_free(
        self,
        snapshot: SceneSnapshot,
        Ts: Array,
        seeds: Array,
        until: NDArray[np.int64],
        rows: Rows,
        opened: OpenSolutions,
        seeded: bool,
    ) -> None:
        """Make attempts in a scene with the kernels.

        A row ends when it has enough attempts, or when it needs exact collision checks.

        Args:
            snapshot: Scene.
            Ts: (b, k, 4, 4) desired poses.
            seeds: (b, n) seeds, or (1, n) for all poses [rad or m].
            until: (b,) total number of attempts at which a row ends.
            rows: State of the searches, read and written.
            opened: Undecided solutions of the rows, and answers of exact checks, read and written.
            seeded: Whether the first attempt starts at the seed.
        """
        problem, targets = self.problem, (Ts, seeds, self.max_change)
        state, noted = (rows.counts, rows.best, rows.figures), (opened.candidates, opened.answers)
        count, scene = self.options.num_candidates, (snapshot.packed, self.decided)
        if problem.packed is not None:
            rule = self.kind, count, seeded or not problem.has_table
            search_packed_free(*problem.packed, scene, targets, rule, until, state, noted)
        elif problem.details is not None:
            selection = SelectionRule(self.kind, count, True)
            params = SearchParams(problem.method, problem.goal, problem.starts, selection)
            chain, details = self.robot.chain, problem.details
            search_rows_free(chain, params, details, scene, targets, until, state, noted)

    def _decide(
        self,
        snapshot: SceneSnapshot,
        candidates: Array,
        answers: NDArray[np.int64],
        counts: NDArray[np.int64],
    ) -> None:
        """Check the undecided solutions of a row exactly, and write the answers.

        With the selection rule SELECT_FIRST, the first collision-free solution ends the checks.

        Args:
            snapshot: Scene.
            candidates: (CANDIDATES, n + 3) undecided solutions; the first n columns are q.
            answers: (1 + CANDIDATES,) number of undecided solutions, then 1 for each solution that
                is collision-free; written.
            counts: Counts of the row, in which colliding pairs are counted.
        """
        for i in range(int(answers[0])):
            pair = snapshot.first_touching(candidates[i, : self.robot.n])
            if pair is None:
                answers[1 + i] = 1
                if self.kind == SELECT_FIRST:
                    break
                continue
            count_pair(counts, pair)
            if self.decided[pair] and counts[FOUND_COLUMN] == FOUND_NOTHING:
                counts[FOUND_COLUMN], answers[0] = FOUND_BLOCKED, 0
                break

    def attempt_some(
        self,
        which: NDArray[np.intp],
        poses: Array,
        seeds: Array,
        attempts: int,
        rows: Rows,
        seeded: bool,
    ) -> None:
        """Make more attempts for the rows with the indices `which` only.

        The other arguments are those of :meth:`attempt` for all rows.
        """
        part = some_rows(rows, which)
        self.attempt(poses[which], seeds_of(seeds, which), attempts, part, seeded)
        put_back(rows, which, part)

    def starts(self, seeds: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return the start configurations for seeds, and whether rows cannot have an answer.

        A row cannot have an answer if no configuration inside the joint limits is within
        `max_change` of the seed. The start of such a row is the seed clipped to the joint limits.

        Args:
            seeds: (b, n) seeds [rad or m].

        Returns:
            Starts (b, n) [rad or m], and (b,) whether an answer is impossible.
        """
        if not self.is_narrowed:
            return seeds, np.zeros(len(seeds), np.bool_)
        lower, upper, change = self.robot.lower, self.robot.upper, self.max_change
        is_outside = (seeds - change > upper) | (seeds + change < lower)
        no_answer = np.logical_and(is_outside.any(axis=1), np.isfinite(seeds).all(axis=1))
        return np.where(no_answer[:, None], np.clip(seeds, lower, upper), seeds), no_answer

    def keeps(self, q: Array, seeds: Array) -> NDArray[np.bool_]:
        """Return (b,) whether q (b, n) is inside the joint limits and within `max_change` of seeds.

        For a method that enforces the limits and `max_change`, the result is true without a
        comparison. For other methods q is compared, and the result is false for a row of NaN.
        """
        if self.keeps_limits:
            return np.ones(len(q), np.bool_)
        inside = self.is_inside(q)
        return inside & self.is_near(q, seeds) if self.is_narrowed else inside

    def is_inside(self, q: Array) -> NDArray[np.bool_]:
        """Return (b,) whether q (b, n) is inside the joint limits."""
        inside = (q >= self.robot.lower) & (q <= self.robot.upper)
        every: NDArray[np.bool_] = np.logical_and.reduce(inside, axis=1)  # 1 us less than np.all
        return every

    def is_near(self, q: Array, seeds: Array) -> NDArray[np.bool_]:
        """Return (b,) whether q (b, n) is within `max_change` of the seeds."""
        every: NDArray[np.bool_] = np.logical_and.reduce(abs(q - seeds) <= self.max_change, axis=1)
        return every

    def was_blocked(self, rows: Rows) -> NDArray[np.bool_]:
        """Return (b,) whether a solution of the row was rejected because of a collision."""
        if self.snapshot is None:
            return np.zeros(len(rows.counts), np.bool_)
        blocked: NDArray[np.bool_] = rows.counts[:, PAIRS_COLUMN] > 0
        return blocked

    @cached_property
    def with_long_attempts(self) -> Search:
        """Copy of this search whose attempts continue as long as the error decreases."""
        return self.with_criteria(*LONG_ATTEMPT_CRITERIA)

    @property
    def without_steps(self) -> Search | None:
        """This search with attempts of 0 steps, which return the errors of their starts.

        None for KDL, which cannot evaluate a configuration without a step.
        """
        attempts = self.problem.kdl
        if attempts is None:
            return self.with_criteria(0, 1.0, 0)
        still = attempts.without_steps()
        return None if still is None else replace(self, problem=self.problem._replace(kdl=still))

    def with_criteria(self, max_iterations: int, stall_ratio: float, stall_count: int) -> Search:
        """Return a copy without start table and with other criteria that end an attempt.

        Args:
            max_iterations, stall_ratio, stall_count: Values of the solver options of these names.
        """
        problem = self.problem
        goal = problem.goal._replace(
            max_iterations=max_iterations, stall_ratio=stall_ratio, stall_count=stall_count
        )
        packed = problem.packed
        if packed is not None:
            arm, table = build_arm(self.robot.chain), no_table(self.robot.n)
            packed = pack(arm, table, problem.method, goal, problem.starts)
        problem = problem._replace(goal=goal, packed=packed, has_table=False)
        return replace(self, problem=problem)

    def within(self, snapshot: SceneSnapshot) -> Search:
        """Return a copy of this search whose answers must be collision-free in a scene.

        The copy for the last snapshot is cached.
        """
        known = self._placed[0]  # read once, because another thread may replace the entry
        if known is None or known.snapshot is not snapshot:
            known = self._placed[0] = replace(self, snapshot=snapshot)
        return known

    @cached_property
    def _placed(self) -> list[Search | None]:
        return [None]

    def load_kernels(self) -> None:
        """Load the compiled kernels of this search from disk, if this process has not done so.

        Loading takes up to 0.1 s, which would otherwise be part of the duration of the first call.
        """
        global _loaded
        kernels = self.problem.packed is None, self.problem.kdl is None, self.snapshot is None
        if kernels not in _loaded:
            nothing = np.empty((0, len(self.robot.tips), 4, 4))
            self.attempt(nothing, self.middle, 1, self.new_rows(0))
            _loaded |= {kernels}

    def prepare_bounds(self) -> None:
        """Compute the reach bounds now, if this search uses them for proofs of unreachability.

        Otherwise the first proof computes them.
        """
        for region in self._regions:
            reach_of(self._whole_robot, region.tip, region.pointing)

    def proves_unreachable(self, Ts: Array) -> NDArray[np.bool_]:
        """Return (b,) whether poses (b, k, 4, 4) are proven unreachable within the tolerances.

        False means that no proof was found; the pose may still be unreachable. If the limits of
        the robot are narrowed for a call, the reach bounds of the robot with its full limits are
        used.
        """
        return are_unreachable(self._whole_robot, self._regions, Ts)

    @cached_property
    def _regions(self) -> tuple[TaskRegion, ...]:
        """Task regions of the tips, with which poses are proven unreachable.

        They are () if no proof is possible, because the method does not enforce the joint limits
        or runs in Python.
        """
        can_prove = self.keeps_limits and self.problem.kdl is None
        return regions(self.tasks, self.options) if can_prove else ()

    @property
    def _whole_robot(self) -> RobotModel:
        return self.robot.whole or self.robot


def build_search(
    robot: RobotModel, choice: MethodChoice, options: SolverOptions, task: Tasks
) -> Search:
    """Build the search for a robot, method and task, with the selection rule of the options.

    Raises:
        MethodError: If the method does not support the robot or the task.
        OptionError: If a task or an option does not fit the robot.
    """
    problem = build_problem(robot, choice, options, task)
    tasks = checked_tasks(robot, task)
    search = Search(robot, choice.name, options, problem, SELECT_FIRST, np.empty(0), False, tasks)
    return search.wanting()


def some_rows(rows: Rows, which: slice | NDArray[np.intp]) -> Rows:
    """Return the rows with the given indices: views if `which` is a slice, otherwise copies."""
    return Rows._make(array[which] for array in rows)


def put_back(rows: Rows, which: NDArray[np.intp], part: Rows) -> None:
    """Copy `part` to the rows with the indices `which`; the inverse of :func:`some_rows`."""
    for array, some in zip(rows, part, strict=True):
        array[which] = some


def seeds_of(seeds: Array, which: NDArray[np.intp]) -> Array:
    """Return the seeds of the rows with the indices `which`.

    `seeds` is (b, n); a single seed (1, n) for all rows is returned unchanged.
    """
    return seeds if len(seeds) == 1 else seeds[which]


def attempts_of(rows: Rows) -> NDArray[np.int64]:
    """Return (b,) the number of attempts of each search.

    It is 0 for rows that the kernel skipped because the pose or the seed is not valid.
    """
    made: NDArray[np.int64] = rows.counts[:, ATTEMPTS_COLUMN]
    return made


def found(rows: Rows) -> NDArray[np.bool_]:
    """Return (b,) whether each search has found a solution that is an answer.

    In a scene, the solution must be collision-free.
    """
    some: NDArray[np.bool_] = rows.counts[:, FOUND_COLUMN] % FOUND_BLOCKED != FOUND_NOTHING
    return some
