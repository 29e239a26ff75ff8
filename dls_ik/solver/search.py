"""Searches: attempts for many poses, which solution they look for, and how they end.

A :class:`Search` is all that a call of the solver needs: robot, method, options, problem and the
solution that is wanted. :mod:`.calls` adds the clock, and threads.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dls_ik.core import limits
from dls_ik.core.fast.packed import pack
from dls_ik.core.reach_bounds import ReachBounds, rows_beyond_reach
from dls_ik.core.search_rows import (
    search_packed,
    search_packed_free,
    search_rows,
    search_rows_free,
)
from dls_ik.core.selection import (
    ATTEMPTS,
    BLOCKED,
    CANDIDATES,
    CLEAREST,
    DEXTROUS,
    FIRST,
    FOUND,
    NEAREST,
    NOTHING,
    PAIRS,
    SLOTS,
    STATE,
    OpenSolutions,
    count_pair,
)
from dls_ik.core.types import Array, Rows, SearchParams, SelectionRule
from dls_ik.errors import MethodError, OptionError
from dls_ik.model.chain import build_arm
from dls_ik.model.joint import JointValues, some_by_name
from dls_ik.model.pose import PoseLike
from dls_ik.model.reach import build_reach
from dls_ik.model.robot import RobotModel
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.solver.method import AUTO, MethodChoice
from dls_ik.solver.options import SolverOptions, checked_value
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import Problem, build_problem, no_table
from dls_ik.solver.task import Tasks, checked_tasks, rotation_free
from dls_ik.text import listing

KINDS = {
    "speed": FIRST,
    "distance": NEAREST,
    "manipulability": DEXTROUS,
    "clearance": CLEAREST,
}
_FIELDS = SolverOptions.__dataclass_fields__

FIRST_ATTEMPTS = 8  # of "auto" before the first look at the clock, about 20 us
QUICK_STEPS = 100  # of an attempt, up to which that holds
UNLIMITED = 2**62
LONG_ATTEMPTS = (100, 0.999, 3)  # max_iterations, stall_ratio, stall_count


@dataclass(frozen=True, eq=False)
class Search:
    """The problem of a call, and the solution that it asks for."""

    robot: RobotModel
    method: str
    options: SolverOptions
    problem: Problem
    kind: int  # of solution: FIRST, NEAREST, DEXTROUS or CLEAREST
    max_change: Array  # (n,) from the seed to an answer, at most [rad or m]
    approximate: bool  # the nearest configuration is an answer where a pose is missed
    position_only: tuple[bool, ...]  # (k,) tips of which the rotation does not count
    snapshot: SceneSnapshot | None = None  # of the scene in which answers are free

    def wanting(
        self,
        solve_type: str | None = None,
        max_joint_change: JointValues | None = None,
        approximate: bool | None = None,
    ) -> Search:
        """Return the search for another solution; None leaves a choice to the options.

        Raises:
            OptionError: a value that is not valid.
            MethodError: PyKDL is asked for another solution than the first one.
        """
        kind = KINDS[self._choice("solve_type", solve_type)]
        if isinstance(max_joint_change, Mapping):
            names = self.robot.joint_names
            max_joint_change = some_by_name(max_joint_change, names, np.inf)
        change = np.array(self._choice("max_joint_change", max_joint_change), np.float64)
        n, names = self.robot.n, self.robot.joint_names
        if change.ndim == 1 and len(change) != n:
            raise OptionError(
                f"max_joint_change is one number, or one for each of the {n} joints "
                f"({listing(names)}), not {len(change)}"
            )
        if self.problem.kdl is not None and (kind != FIRST or np.isfinite(change).any()):
            raise MethodError(
                f"method {self.method!r} returns the first solution that it finds; solve_type and "
                "max_joint_change are for other methods"
            )
        nearest = bool(self._choice("approximate", approximate))
        change = np.broadcast_to(change, (n,)).copy()
        return replace(self, kind=kind, max_change=change, approximate=nearest)

    def _choice(self, option: str, given: Any) -> Any:
        default = getattr(self.options, option)
        return default if given is None else checked_value(_FIELDS[option], given)

    @cached_property
    def keeps_limits(self) -> bool:
        """True if the method keeps the joint limits, and those around the seed."""
        return limits.clips(self.problem.method)

    @cached_property
    def is_narrowed(self) -> bool:
        """True if the change from the seed is bounded for some joint."""
        return bool(np.isfinite(self.max_change).any())

    @cached_property
    def max_attempts(self) -> int:
        """Attempts for one pose by the clock, at most."""
        restarts = self.options.max_restarts
        return UNLIMITED if restarts is None else restarts + 1

    @cached_property
    def first_attempts(self) -> int:
        """Attempts for one pose before the first look at the clock."""
        is_quick = self.method == AUTO and self.options.max_iterations <= QUICK_STEPS
        first = FIRST_ATTEMPTS if is_quick else 1
        return min(first, self.max_attempts, self.options.prove_after)

    @cached_property
    def columns(self) -> int:
        """Columns of `Rows.counts`: with a scene also of the pairs in the way."""
        return PAIRS if self.snapshot is None else PAIRS + 2 * SLOTS

    @cached_property
    def middle(self) -> Array:
        """(1, n) mid-range, which stands in for a seed."""
        return 0.5 * (self.problem.starts.lower + self.problem.starts.upper)[None]

    def checked(self, T: PoseLike, seed: JointValues | None) -> tuple[Array, Array]:
        """Return a pose (1, k, 4, 4) and a seed (1, n) as kernels take them.

        Raises:
            PoseError, JointValueError: values that are not valid.
        """
        poses = checked_poses(T, len(self.robot.tips), self.position_only)[None]
        return poses, self.middle if seed is None else self.checked_seed(seed)[None]

    def checked_seed(self, seed: JointValues) -> Array:
        """Return a seed (n,), or raise a JointValueError."""
        return self.robot.validated_one(seed)

    def new_rows(self, b: int) -> Rows:
        """Return the state of b searches before their first attempt."""
        counts = np.zeros((b, self.columns), np.int64)
        rows = Rows(counts, np.empty((b, self.robot.n)), np.empty((b, 3)))
        rows.counts[:, STATE] = self.options.random_seed
        rows.best.fill(np.nan)
        rows.figures.fill(np.nan)
        return rows

    def attempt(
        self, Ts: Array, seeds: Array, attempts: int, rows: Rows, seeded: bool = True
    ) -> None:
        """Make more attempts for every pose: :mod:`dls_ik.core.search_rows`.

        Args:
            Ts: (b, k, 4, 4), seeds: (b, n), or (1, n) for all.
            rows: state of the searches, in and out. A pose or a seed that is not valid leaves its
                row as it is.
            seeded: whether the first attempt starts from the seed, or from the table of starts.
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

    def _attempt_free(
        self,
        snapshot: SceneSnapshot,
        Ts: Array,
        seeds: Array,
        attempts: int,
        rows: Rows,
        seeded: bool,
    ) -> None:
        """Make more attempts, and decide the solutions that bounds leave open by exact checks."""
        b, n = rows.best.shape
        until = rows.counts[:, ATTEMPTS] + attempts
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
        """(p,) 1 for pairs of the scene that collide in all solutions of a pose, or in none."""
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
        """Make attempts up to `until` (b,) in all, or until solutions are open."""
        problem, targets = self.problem, (Ts, seeds, self.max_change)
        state, noted = (rows.counts, rows.best, rows.figures), (opened.candidates, opened.answers)
        count, scene = self.options.num_candidates, (*snapshot.packed, self.decided)
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
        """Check the open solutions of a row exactly, up to the first free one if that will do."""
        for i in range(int(answers[0])):
            pair = snapshot.first_touching(candidates[i, : self.robot.n])
            if pair is None:
                answers[1 + i] = 1
                if self.kind == FIRST:
                    break
                continue
            count_pair(counts, pair)
            if self.decided[pair] and counts[FOUND] == NOTHING:
                counts[FOUND], answers[0] = BLOCKED, 0
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
        """Make more attempts for some of the rows, by their numbers."""
        part = some_rows(rows, which)
        self.attempt(poses[which], seeds_of(seeds, which), attempts, part, seeded)
        put_back(rows, which, part)

    def starts(self, seeds: Array) -> tuple[Array, NDArray[np.bool_]]:
        """Return where to start for seeds (b, n), and (b,) where there can be no answer.

        There is none where no configuration inside the limits is near enough to the seed; the
        start is then as near to it as the limits are.
        """
        if not self.is_narrowed:
            return seeds, np.zeros(len(seeds), np.bool_)
        lower, upper, change = self.robot.lower, self.robot.upper, self.max_change
        apart = (seeds - change > upper) | (seeds + change < lower)
        no_answer = np.logical_and(apart.any(axis=1), np.isfinite(seeds).all(axis=1))
        return np.where(no_answer[:, None], np.clip(seeds, lower, upper), seeds), no_answer

    def keeps(self, q: Array, seeds: Array) -> NDArray[np.bool_]:
        """Return (b,) where answers (b, n) keep the limits and are near enough to their seeds.

        Not every method takes care of that. Rows of NaN count as beyond.
        """
        if self.keeps_limits:
            return np.ones(len(q), np.bool_)
        inside = self.is_inside(q)
        return inside & self.is_near(q, seeds) if self.is_narrowed else inside

    def is_inside(self, q: Array) -> NDArray[np.bool_]:
        """Return (b,) where q (b, n) is inside the limits."""
        inside = (q >= self.robot.lower) & (q <= self.robot.upper)
        every: NDArray[np.bool_] = np.logical_and.reduce(inside, axis=1)  # np.all: a us longer
        return every

    def is_near(self, q: Array, seeds: Array) -> NDArray[np.bool_]:
        """Return (b,) where q (b, n) is within `max_change` of seeds."""
        every: NDArray[np.bool_] = np.logical_and.reduce(abs(q - seeds) <= self.max_change, axis=1)
        return every

    def was_blocked(self, rows: Rows) -> NDArray[np.bool_]:
        """Return (b,) rows with solutions that are in collision."""
        if self.snapshot is None:
            return np.zeros(len(rows.counts), np.bool_)
        blocked: NDArray[np.bool_] = rows.counts[:, PAIRS] > 0
        return blocked

    @cached_property
    def with_long_attempts(self) -> Search:
        """The same search with attempts that go on while they come nearer at all."""
        return self.with_criteria(*LONG_ATTEMPTS)

    def with_criteria(self, max_iterations: int, stall_ratio: float, stall_count: int) -> Search:
        """Return the search with other criteria of the end of attempts, without a table."""
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
        """Return the search for answers that are free of collisions, which is kept."""
        known = self._placed[0]  # once: another thread may replace it
        if known is None or known.snapshot is not snapshot:
            known = self._placed[0] = replace(self, snapshot=snapshot)
        return known

    @cached_property
    def _placed(self) -> list[Search | None]:
        return [None]

    def prepare_bounds(self) -> None:
        """Compute bounds of reach now, where they serve; else the first proof waits for them."""
        if self._can_prove:
            reach_of(self._whole_robot)

    def proves_unreachable(self, Ts: Array) -> NDArray[np.bool_]:
        """Return (b,) which poses (b, k, 4, 4) are proved to be beyond reach; False proves nothing.

        There are proofs for the full pose of one tip, within the solver's tolerances. A robot with
        narrowed limits takes the bounds of the whole one.
        """
        beyond = np.zeros(len(Ts), np.bool_)
        if self._can_prove and len(Ts):
            options, most = self.options, self.options.error_tolerance
            position = options.length_unit * min(options.position_tolerance, most)
            rotation = min(options.rotation_tolerance, most / options.rotation_weight)
            poses = np.ascontiguousarray(Ts[:, 0])
            rows_beyond_reach(reach_of(self._whole_robot), poses, position, rotation, beyond)
        return beyond

    @property
    def _can_prove(self) -> bool:
        return self.keeps_limits and self.problem.packed is not None

    @property
    def _whole_robot(self) -> RobotModel:
        return self.robot.whole or self.robot


def build_search(
    robot: RobotModel, choice: MethodChoice, options: SolverOptions, task: Tasks
) -> Search:
    """Return the search of a robot by a method, for the solution that the options ask for.

    Raises:
        MethodError: a method that cannot serve this robot and this task, with the reason.
        OptionError: a task or an option that does not fit the robot.
    """
    problem = build_problem(robot, choice, options, task)
    free = rotation_free(checked_tasks(robot, task))
    search = Search(robot, choice.name, options, problem, FIRST, np.empty(0), False, free)
    return search.wanting()


@lru_cache(maxsize=128)  # more than a node has groups
def reach_of(robot: RobotModel) -> ReachBounds:
    """Return bounds on the poses of a robot's only tip; they take some tenths of a second, once."""
    return build_reach(robot.chain)


def some_rows(rows: Rows, which: slice | NDArray[np.intp]) -> Rows:
    """Return some rows: views for a slice, copies for indices."""
    return Rows._make(array[which] for array in rows)


def put_back(rows: Rows, which: NDArray[np.intp], part: Rows) -> None:
    """Write some rows over those with the numbers `which`."""
    for array, some in zip(rows, part, strict=True):
        array[which] = some


def seeds_of(seeds: Array, which: NDArray[np.intp]) -> Array:
    """Return the seeds of some rows; one for all, (1, n), stays."""
    return seeds if len(seeds) == 1 else seeds[which]


def attempts_of(rows: Rows) -> NDArray[np.int64]:
    """Return (b,) attempts made; 0 for rows that were passed over."""
    made: NDArray[np.int64] = rows.counts[:, ATTEMPTS]
    return made


def found(rows: Rows) -> NDArray[np.bool_]:
    """Return (b,) which rows have a solution."""
    some: NDArray[np.bool_] = rows.counts[:, FOUND] % BLOCKED != NOTHING
    return some
