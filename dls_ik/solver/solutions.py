# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Search for distinct solutions of one pose, and the class of its result."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.typing import NDArray

from dls_ik.core.fast.table import LEAF_ROWS
from dls_ik.core.search import unwind
from dls_ik.core.selection import ATTEMPTS_COLUMN, SELECT_FIRST, SELECT_NEAREST
from dls_ik.core.types import WIDEST, Array
from dls_ik.lazy_property import cached_property
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.solver.notebook import solutions_html
from dls_ik.solver.options import checked_count
from dls_ik.solver.search import Search, found
from dls_ik.solver.self_motion import number_families
from dls_ik.solver.task import count_exact_rows
from dls_ik.text import scaled

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel

# [rad or m] Two solutions are distinct if, for some joint, the difference times the square root of
# the joint's weight is larger than this value.
MIN_SOLUTION_DIFFERENCE = 0.1  # value for a redundant arm, whose solutions form curves or surfaces
MIN_BRANCH_DIFFERENCE = 0.01  # value for other arms, whose solutions can be close to a singularity
STARTS_PER_ROUND = 64
# The search ends after this number of consecutive rounds that find no new solution
MAX_FRUITLESS_ROUNDS = 16
MAX_SEARCH_ROUNDS = 200


@dataclass(frozen=True, eq=False, repr=False)
class IkSolutions(NDArrayOperatorsMixin):
    """Distinct solutions of one pose, the closest to the seed first; of a stack, the best first.

    The result can be used like the array `q` of its configurations: in NumPy functions and
    arithmetic, by index, in loops and with ``len``. ``bool(result)`` is true if there is a
    solution.
    """

    q: Array  # (s, n) configurations [rad or m]
    position_error: Array  # (s,) position error of each configuration [m]
    rotation_error: Array  # (s,) rotation error of each configuration [rad]
    T: Array  # (k, 4, 4) desired pose of each tip [m]
    seed: Array  # (n,) seed [rad or m]; the solutions are sorted by their distance from the seed
    search: Search  # robot, task, options and scene with which the solutions were found
    # Array (s, l) of the level_errors of each solution, see IkResult; (0, 0) without a TaskStack
    level_errors: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def robot(self) -> RobotModel:
        """Robot that the configurations belong to."""
        return self.search.robot

    @cached_property
    def families(self) -> NDArray[np.intp]:
        """Family number of each solution, shape (s,).

        Two solutions belong to the same family if the arm can move from one to the other within its
        joint limits while the tips keep their poses (self-motion). With a scene, this motion must
        also be collision-free. The families are numbered 0, 1, ... in the order in which they first
        occur. All solutions of an arm without redundancy have different numbers. For joints that
        can make full turns, positions that differ by full turns count as equal.

        The numbers are computed when the property is first read. For one redundant joint this takes
        approximately 0.02 s, and self-motions are searched in steps of 0.05 [rad or m]. For two or
        more, it takes up to 1 s; self-motions are searched through random solutions in steps of
        0.1, and may be missed, so that connected solutions can have different numbers.
        """
        return number_families(self.search, self.T[None], self.q, self.seed[None])

    @property
    def num_families(self) -> int:
        """Number of different values in `families`."""
        return len(set(self.families.tolist()))

    @property
    def representatives(self) -> Array:
        """Solution closest to the seed from each of the f families, shape (f, n) [rad or m]."""
        return np.asarray(self.q[np.unique(self.families, return_index=True)[1]])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (s, n) of the array of configurations."""
        return self.q.shape

    def __len__(self) -> int:
        """Return the number s of solutions."""
        return len(self.q)

    def __bool__(self) -> bool:
        """Return True if at least one solution was found."""
        return len(self.q) > 0

    def __iter__(self) -> Iterator[Array]:
        """Return an iterator over the configurations (n,)."""
        return iter(self.q)

    def __getitem__(self, key: Any) -> Any:
        """Return ``q[key]``, where `q` is the array (s, n) of configurations [rad or m]."""
        return self.q[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        """Return the configurations (s, n) as an array."""
        return np.array(self.q, dtype=dtype, copy=copy)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        """Apply a NumPy function to the array of configurations."""
        arrays = (each.q if isinstance(each, IkSolutions) else each for each in inputs)
        return getattr(ufunc, method)(*arrays, **options)

    def __repr__(self) -> str:
        """Return the numbers of solutions and families and the largest errors as text."""
        return f"IkSolutions({self._about()})"

    def _repr_html_(self) -> str:
        """Return HTML for notebooks: a table of the joint positions and family of each solution."""
        return solutions_html(self, self._about())

    def _about(self) -> str:
        if not len(self):
            return "no solution"
        families = "1 family" if self.num_families == 1 else f"{self.num_families} families"
        return (
            f"{len(self)} solution{'s' if len(self) > 1 else ''} in {families}, errors up to "
            f"{scaled(self.position_error.max(), 'm')}, {scaled(self.rotation_error.max(), 'rad')}"
        )


def solve_all(search: Search, T: PoseLike, count: int, seed: JointValues | None) -> IkSolutions:
    """Find at most `count` distinct solutions of the pose `T`, sorted by distance from the seed.

    See :meth:`dls_ik.IkSolver.solve_all` for the arguments. In the arrays (s, n + 2) of this
    module, a row has the joint positions of a solution [rad or m], its position error [m] and its
    rotation error [rad].
    """
    count = checked_count("count", count, 0)
    poses, near = search.checked(T, seed)
    n, weights = search.robot.n, search.problem.starts.joint_weights
    kept = distinct(search, np.empty((0, n + 2)), _nearest_solution(search, poses, near))
    if len(kept) or not search.proves_unreachable(poses)[0]:
        kept = _with_more(search, poses, near, kept, count)
    distances = ((kept[:, :n] - near) ** 2) @ weights
    kept = kept[np.argsort(distances, kind="stable")[:count]]
    q = np.ascontiguousarray(kept[:, :n])
    return IkSolutions(q, kept[:, n].copy(), kept[:, n + 1].copy(), poses[0], near[0], search)


def _with_more(search: Search, poses: Array, near: Array, kept: Array, count: int) -> Array:
    """Search for further solutions until there are `count`, or several rounds find no more.

    Args:
        search: Robot, task, options and scene of the search.
        poses: (1, k, 4, 4) desired pose.
        near: (1, n) seed [rad or m]; solutions are within ``search.max_change`` of the seed.
        kept: (s, n + 2) solutions found so far.
        count: Number of solutions that ends the search.

    Returns:
        Array (r, n + 2) of the solutions `kept`, followed by the new solutions.
    """
    if len(kept) < count and search.problem.has_table:
        kept = distinct(search, kept, _solutions(search, poses, None, near))
    rng = np.random.default_rng(search.options.random_seed)
    low, high = _bounds_of_starts(search, near)
    num_fruitless = 0
    for _ in range(MAX_SEARCH_ROUNDS):
        if len(kept) >= count or num_fruitless >= MAX_FRUITLESS_ROUNDS:
            break
        starts = rng.uniform(low, high, (STARTS_PER_ROUND, search.robot.n))
        more = distinct(search, kept, _solutions(search, poses, starts, near))
        num_fruitless = 0 if len(more) > len(kept) else num_fruitless + 1
        kept = more
    return kept


def _nearest_solution(search: Search, poses: Array, near: Array) -> Array:
    """Search for the solution closest to the seed, as with the option `solve_type="distance"`.

    Args:
        search: Robot, task, options and scene of the search.
        poses: (1, k, 4, 4) desired pose.
        near: (1, n) seed [rad or m].

    Returns:
        Array (1, n + 2) with the solution, or an empty array (0, n + 2) if none is found.
    """
    row = search.new_rows(1)
    replace(search, kind=SELECT_NEAREST).attempt(poses, near, search.options.num_candidates, row)
    return _admissible(search, row.best, row.figures, found(row), near)


def _solutions(search: Search, poses: Array, starts: Array | None, near: Array) -> Array:
    """Run one attempt of the solver from each start, and return the s solutions found, (s, n + 2).

    Args:
        search: Robot, task, options and scene of the search.
        poses: (1, k, 4, 4) desired pose.
        starts: (b, n) start configurations [rad or m]; None stands for starts from the solver's
            table of configurations.
        near: (1, n) seed [rad or m]. Joints that can make full turns are turned to the position
            closest to the seed; solutions are within ``search.max_change`` of the seed.
    """
    b = LEAF_ROWS if starts is None else len(starts)
    rows = search.new_rows(b)
    anywhere = replace(search, kind=SELECT_FIRST, max_change=np.full(search.robot.n, np.inf))
    if starts is None:
        # An attempt takes the table entry whose index is the number of attempts made before.
        rows.counts[:, ATTEMPTS_COLUMN] = np.arange(b)
    Ts = np.repeat(poses, b, axis=0)
    anywhere.attempt(Ts, near if starts is None else starts, 1, rows, starts is not None)
    robot, solved = search.robot, found(rows)
    for i in np.flatnonzero(solved):
        unwind(search.problem.starts.periodic, robot.lower, robot.upper, near[0], rows.best[i])
    return _admissible(search, rows.best, rows.figures, solved, near)


def _bounds_of_starts(search: Search, near: Array) -> tuple[Array, Array]:
    """Return the lower and the upper bounds (1, n) of random starts [rad or m].

    The bounds are the joint limits, and at most ``search.max_change`` from the seed `near` (1, n).
    """
    robot, change = search.robot, search.max_change
    low, high = np.maximum(robot.lower, near - change), np.minimum(robot.upper, near + change)
    lower, upper = robot.finite_limits()
    wide = ~(high - low <= WIDEST)
    low, high = np.where(wide, lower, low), np.where(wide, upper, high)
    # Adding 0.0 turns -0.0 into 0.0, because NumPy cannot draw between 0.0 and -0.0.
    return low + 0.0, np.maximum(low, high) + 0.0


def _admissible(
    search: Search, q: Array, figures: Array, solved: NDArray[np.bool_], near: Array
) -> Array:
    """Return the solutions (s, n + 2) inside the joint limits and close enough to the seed.

    Args:
        search: Search with the robot's limits and with `max_change`, the maximum difference of each
            joint from the seed.
        q: (b, n) configurations [rad or m].
        figures: (b, 3) position error [m], rotation error [rad] and an unused value of each
            configuration.
        solved: (b,) whether each configuration reaches the pose.
        near: (1, n) seed [rad or m].
    """
    solved = solved & search.is_inside(q) & search.is_near(q, near)
    return np.hstack([q, figures[:, :2]])[solved]


def distinct(search: Search, kept: Array, more: Array) -> Array:
    """Append to `kept` each solution of `more` that differs from all solutions in `kept` so far.

    Two solutions differ if, for some joint, the difference times the square root of the joint's
    weight is above MIN_SOLUTION_DIFFERENCE if the arm is redundant for the task, and above
    MIN_BRANCH_DIFFERENCE otherwise.

    Args:
        search: Search with the robot, the tasks and the joint weights.
        kept: (s, n + 2) solutions; the array is not changed.
        more: (b, n + 2) solutions.

    Returns:
        Array (r, n + 2) of the solutions.
    """
    n, scale = search.robot.n, np.sqrt(search.problem.starts.joint_weights)
    is_redundant = count_exact_rows(search.tasks) < n
    least = MIN_SOLUTION_DIFFERENCE if is_redundant else MIN_BRANCH_DIFFERENCE
    for row in more:
        away = scale * np.abs(kept[:, :n] - row[:n])
        if (away.max(axis=1, initial=0.0) > least).all():
            kept = np.vstack([kept, row])
    return kept
