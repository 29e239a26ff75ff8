# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Distinct solutions of one pose, and the result that holds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
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

# Two solutions are distinct if sqrt(joint weight) * difference is larger for some joint [rad or m].
MIN_SOLUTION_DIFFERENCE = 0.1  # value for redundant arms, whose solutions are not isolated
MIN_BRANCH_DIFFERENCE = 0.01  # value for other arms, whose branches meet at singularities
STARTS_PER_ROUND = 64
MAX_FRUITLESS_ROUNDS = 16  # maximum number of rounds in a row without a new solution
MAX_SEARCH_ROUNDS = 200


@dataclass(frozen=True, eq=False, repr=False)
class IkSolutions(NDArrayOperatorsMixin):
    """Distinct solutions of one pose, the closest to the seed first.

    The result can be used like the array `q` of its configurations: in NumPy functions and
    arithmetic, by index, in loops and with ``len``. ``bool(result)`` is true if there is a
    solution.
    """

    q: Array  # (s, n) configurations [rad or m]
    position_error: Array  # (s,) position error of each configuration [m]
    rotation_error: Array  # (s,) rotation error of each configuration [rad]
    T: Array  # (k, 4, 4) desired pose of each tip [m]
    seed: Array  # (n,) configuration by the distance from which solutions are sorted [rad or m]
    search: Search  # robot, task and scene of the call

    @property
    def robot(self) -> RobotModel:
        """Robot of the configurations."""
        return self.search.robot

    @cached_property
    def families(self) -> NDArray[np.intp]:
        """Number of the family of each solution, (s,), from 0 in the order of the solutions.

        Solutions have the same number if the arm can move from one to the other within its limits
        while the tips keep their poses (self-motion); with a scene, also without a collision. All
        solutions of an arm without redundancy have different numbers. Solutions that differ by full
        turns of joints count as equal.

        The motions are searched in steps of 0.05 [rad or m] when the numbers are first read, which
        takes approximately 0.02 s. If two or more joints are redundant, they are searched through
        random configurations in steps of 0.1, in up to 1 s, and solutions with different numbers
        can nevertheless be connected.
        """
        return number_families(self.search, self.T[None], self.q, self.seed[None])

    @property
    def num_families(self) -> int:
        """Number of families among the solutions."""
        return len(set(self.families.tolist()))

    @property
    def representatives(self) -> Array:
        """Configurations (f, n) [rad or m], of each family the closest to the seed."""
        return np.asarray(self.q[np.unique(self.families, return_index=True)[1]])

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape (s, n) of the array of configurations."""
        return self.q.shape

    def __len__(self) -> int:
        """Return the number of solutions."""
        return len(self.q)

    def __bool__(self) -> bool:
        """Return whether there is a solution."""
        return len(self.q) > 0

    def __iter__(self) -> Iterator[Array]:
        """Return an iterator over the configurations (n,)."""
        return iter(self.q)

    def __getitem__(self, key: Any) -> Any:
        """Return configurations or joint positions, as the array `q` does for the same index."""
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
        """Return the solutions as HTML with a table of the joints and families, for notebooks."""
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
    """Find at most `count` distinct solutions of a pose; see :meth:`dls_ik.IkSolver.solve_all`.

    In the arrays (s, n + 2) of this module, a row is a configuration [rad or m], its position error
    [m] and its rotation error [rad].
    """
    count = checked_count("count", count, 0)
    poses, near = search.checked(T, seed)
    n, weights = search.robot.n, search.problem.starts.joint_weights
    kept = _distinct(search, np.empty((0, n + 2)), _nearest_solution(search, poses, near))
    if len(kept) or not search.proves_unreachable(poses)[0]:
        kept = _with_more(search, poses, near, kept, count)
    distances = ((kept[:, :n] - near) ** 2) @ weights
    kept = kept[np.argsort(distances, kind="stable")[:count]]
    q = np.ascontiguousarray(kept[:, :n])
    return IkSolutions(q, kept[:, n].copy(), kept[:, n + 1].copy(), poses[0], near[0], search)


def _with_more(search: Search, poses: Array, near: Array, kept: Array, count: int) -> Array:
    """Search for further solutions until there are `count` of them, or no more are found.

    Args:
        search: Search.
        poses: (1, k, 4, 4) desired pose.
        near: (1, n) configuration [rad or m].
        kept: (s, n + 2) solutions found so far.
        count: Number of solutions that ends the search.

    Returns:
        The rows `kept` and further rows.
    """
    if len(kept) < count and search.problem.has_table:
        kept = _distinct(search, kept, _solutions(search, poses, None, near))
    rng = np.random.default_rng(search.options.random_seed)
    low, high = _bounds_of_starts(search, near)
    num_fruitless = 0
    for _ in range(MAX_SEARCH_ROUNDS):
        if len(kept) >= count or num_fruitless >= MAX_FRUITLESS_ROUNDS:
            break
        starts = rng.uniform(low, high, (STARTS_PER_ROUND, search.robot.n))
        more = _distinct(search, kept, _solutions(search, poses, starts, near))
        num_fruitless = 0 if len(more) > len(kept) else num_fruitless + 1
        kept = more
    return kept


def _nearest_solution(search: Search, poses: Array, near: Array) -> Array:
    """Search for the solution closest to a configuration, as with `solve_type="distance"`.

    Args:
        search: Search.
        poses: (1, k, 4, 4) desired pose.
        near: (1, n) configuration [rad or m].

    Returns:
        The solution as (1, n + 2); (0, n + 2) if none is found.
    """
    row = search.new_rows(1)
    replace(search, kind=SELECT_NEAREST).attempt(poses, near, search.options.num_candidates, row)
    return _admissible(search, row.best, row.figures, found(row), near)


def _solutions(search: Search, poses: Array, starts: Array | None, near: Array) -> Array:
    """Make one attempt from each start, and return the solutions (s, n + 2).

    Args:
        search: Search.
        poses: (1, k, 4, 4) desired pose.
        starts: (b, n) start configurations [rad or m]; None stands for starts of the start table.
        near: (1, n) configuration [rad or m]. Joints that can make full turns are turned to the
            position closest to this configuration.
    """
    b = LEAF_ROWS if starts is None else len(starts)
    rows = search.new_rows(b)
    anywhere = replace(search, kind=SELECT_FIRST, max_change=np.full(search.robot.n, np.inf))
    if starts is None:
        rows.counts[:, ATTEMPTS_COLUMN] = np.arange(b)  # the count i selects start i of the table
    Ts = np.repeat(poses, b, axis=0)
    anywhere.attempt(Ts, near if starts is None else starts, 1, rows, starts is not None)
    robot, solved = search.robot, found(rows)
    for i in np.flatnonzero(solved):
        unwind(search.problem.starts.periodic, robot.lower, robot.upper, near[0], rows.best[i])
    return _admissible(search, rows.best, rows.figures, solved, near)


def _bounds_of_starts(search: Search, near: Array) -> tuple[Array, Array]:
    """Return the lower and upper bounds (1, n) of random starts [rad or m].

    The bounds are the joint limits, intersected with the range `max_change` around the
    configuration `near` (1, n).
    """
    robot, change = search.robot, search.max_change
    low, high = np.maximum(robot.lower, near - change), np.minimum(robot.upper, near + change)
    lower, upper = robot.finite_limits()
    wide = ~(high - low <= WIDEST)
    low, high = np.where(wide, lower, low), np.where(wide, upper, high)
    return low + 0.0, np.maximum(low, high) + 0.0  # NumPy cannot draw from 0.0 to -0.0


def _admissible(
    search: Search, q: Array, figures: Array, solved: NDArray[np.bool_], near: Array
) -> Array:
    """Return the solutions (s, n + 2) inside the limits and within `max_change` of `near`.

    Args:
        search: Search.
        q: (b, n) configurations [rad or m].
        figures: (b, 3) errors and measure of the configurations, as in Rows.
        solved: (b,) whether a configuration is a solution.
        near: (1, n) configuration [rad or m].
    """
    solved = solved & search.is_inside(q) & search.is_near(q, near)
    return np.hstack([q, figures[:, :2]])[solved]


def _distinct(search: Search, kept: Array, more: Array) -> Array:
    """Append the rows of `more` to `kept` that differ from all rows kept so far; return the result.

    Rows differ if some joint differs by more than a minimum after multiplication by the square root
    of its weight. The minimum is smaller if the arm has no redundancy for the task.

    Args:
        search: Search that gives the joint weights and the tasks.
        kept: (s, n + 2) solutions.
        more: (b, n + 2) solutions.
    """
    n, scale = search.robot.n, np.sqrt(search.problem.starts.joint_weights)
    is_redundant = count_exact_rows(search.tasks) < n
    least = MIN_SOLUTION_DIFFERENCE if is_redundant else MIN_BRANCH_DIFFERENCE
    for row in more:
        away = scale * np.abs(kept[:, :n] - row[:n])
        if (away.max(axis=1, initial=0.0) > least).all():
            kept = np.vstack([kept, row])
    return kept
