"""All that the quick path reads of a solver, in two arrays.

Each array costs the same to hand from Python to a kernel, and a call with two dozen of them takes
longer than the solution.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.fast.table import LEAF
from dls_ik.core.jit import inlined, spliced
from dls_ik.core.types import Arm, Array, Goal, Method, Starts, Table

SIZES = 13  # whole numbers before the arrays
NUMBERS = 13  # other numbers before the arrays


class Packed(NamedTuple):
    """The structs one after the other."""

    numbers: Array
    integers: NDArray[np.int64]


def pack(arm: Arm, table: Table, method: Method, goal: Goal, starts: Starts) -> Packed:
    """Put them where :func:`unpack` looks for them."""
    m, n = len(arm.variable), len(arm.lower)
    sizes = (
        m, n, len(table.q), table.levels, table.first_turns, table.last_turns,
        method.damping, method.limits, method.step, method.following,
        goal.max_iterations, goal.stall_count, goal.patience,
    )  # fmt: skip
    numbers = (
        method.alpha, method.lambda_, method.error_gain, method.nu, method.sigma0,
        method.gamma_max, method.margin, method.mu,
        goal.position_tolerance, goal.rotation_tolerance, goal.error_tolerance,
        goal.rotation_weight, goal.stall_ratio,
    )  # fmt: skip
    arrays = (
        arm.turn, arm.slide, arm.link, arm.lower, arm.upper, arm.base, arm.tip,
        starts.lower, starts.upper, starts.joint_weights,
        table.features, table.middle, table.q, table.cut,
    )  # fmt: skip
    whole = (sizes, arm.variable, starts.turning, table.by)
    return Packed(_joined((numbers, *arrays), np.float64), _joined(whole, np.int64))


def _joined(parts: tuple, dtype: type) -> NDArray:  # type: ignore[type-arg]
    return np.concatenate([np.asarray(part).ravel().astype(dtype) for part in parts])


@inlined
def _matrix(numbers: Array, at: int, rows: int, columns: int) -> Array:
    return numbers[at : at + rows * columns].reshape(rows, columns)


@spliced
def unpack(numbers: Array, integers: NDArray[np.int64]) -> tuple[Arm, Table, Method, Goal, Starts]:
    """Return the structs, views of the two arrays."""
    m, n, rows, levels = integers[0], integers[1], integers[2], integers[3]
    nodes = 1 << levels
    v, t = SIZES + m, SIZES + m + n
    a = NUMBERS + 8 * m  # turn, slide and link have been 8 numbers an element
    b = a + 2 * n + 12 + 9
    c = b + 3 * n
    f, q = c + 9 * rows, c + 21 * rows
    k = q + n * rows
    arm = Arm(
        _matrix(numbers, NUMBERS, m, 2),
        numbers[NUMBERS + 2 * m : NUMBERS + 3 * m],
        _matrix(numbers, NUMBERS + 3 * m, m, 5),
        integers[SIZES:v],
        numbers[a : a + n],
        numbers[a + n : a + 2 * n],
        _matrix(numbers, a + 2 * n, 3, 4),
        _matrix(numbers, a + 2 * n + 12, 3, 3),
    )
    table = Table(
        numbers[c:f].reshape(rows // LEAF, 9, LEAF),
        numbers[f:q].reshape(rows, 3, 4),
        _matrix(numbers, q, rows, n),
        integers[t : t + nodes],
        numbers[k : k + nodes],
        levels,
        integers[4] != 0,
        integers[5] != 0,
    )
    method = Method(
        integers[6], integers[7], integers[8], numbers[0], numbers[1], numbers[2], numbers[3],
        numbers[4], numbers[5], numbers[6], numbers[7], integers[9] != 0,
    )  # fmt: skip
    goal = Goal(
        numbers[8], numbers[9], numbers[10], numbers[11], integers[10], numbers[12], integers[11],
        integers[12],
    )  # fmt: skip
    starts = Starts(
        numbers[b : b + n], numbers[b + n : b + 2 * n], integers[v:t], numbers[b + 2 * n : c]
    )
    return arm, table, method, goal, starts
