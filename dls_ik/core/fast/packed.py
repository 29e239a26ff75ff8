# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Inputs of the fast path, packed into two arrays.

Passing an array from Python to a kernel takes the same time for any size, and passing two dozen
arrays would take longer than solving a pose.

Integers, Booleans and indices are packed into one array and floating-point numbers into the other,
both in the order of the fields of the structs in `STRUCTS`. A new number needs one line in its
struct in :mod:`dls_ik.core.types`; a new array also needs its shape in :func:`unpack`.
"""

from typing import NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.fast.table import LEAF_ROWS
from dls_ik.core.jit import allocating, fixed_tuple
from dls_ik.core.types import Array, ChainTable, Indices, Method, SerialChain, Starts, StopCriteria

STRUCTS = (Method, StopCriteria, SerialChain, Starts, ChainTable)
WHOLE = (int, bool, Indices)
# The array of integers begins with three sizes: the number of moving elements and the number of
# joint variables of the chain, and the number of rows of the table of start configurations.
NUM_STRUCT_SIZES = 3


def _count(struct: type, kinds: tuple[type, ...]) -> int:
    """Return the number of fields of a NamedTuple class whose type is one of `kinds`."""
    return sum(kind in kinds for kind in get_type_hints(struct).values())


# One flag for each field of `STRUCTS`, in order: True if the array of integers stores the field.
STRUCT_FIELD_IS_WHOLE = tuple(
    hint in WHOLE for each in STRUCTS for hint in get_type_hints(each).values()
)
METHOD_WHOLE, METHOD_OTHER = _count(Method, (int, bool)), _count(Method, (float,))
STOP_WHOLE, STOP_OTHER = _count(StopCriteria, (int, bool)), _count(StopCriteria, (float,))


class Packed(NamedTuple):
    """The structs of the fast path in two flat arrays, one of floats and one of integers."""

    numbers: Array
    integers: Indices


def pack(
    chain: SerialChain, table: ChainTable, method: Method, stop: StopCriteria, starts: Starts
) -> Packed:
    """Pack the structs into two arrays for :func:`unpack`."""
    whole: list[object] = [(len(chain.variable), len(chain.lower), len(table.q))]
    others: list[object] = []
    fields = (*method, *stop, *chain, *starts, *table)
    for value, is_whole in zip(fields, STRUCT_FIELD_IS_WHOLE, strict=True):
        (whole if is_whole else others).append(value)
    return Packed(_joined(others, np.float64), _joined(whole, np.int64))


def _joined(parts: list[object], dtype: type) -> NDArray:  # type: ignore[type-arg]
    """Return the entries of all arrays and numbers in `parts` as one flat array."""
    return np.concatenate([np.asarray(part).ravel().astype(dtype) for part in parts])


@allocating
def _matrix(numbers: Array, at: int, rows: int, columns: int) -> Array:
    """Return a view (rows, columns) of the entries of `numbers` that start at index `at`."""
    return numbers[at : at + rows * columns].reshape(rows, columns)


@allocating
def unpack(
    numbers: Array, integers: Indices
) -> tuple[SerialChain, ChainTable, Method, StopCriteria, Starts]:
    """Return the structs whose fields :func:`pack` stored; their arrays are views.

    Args:
        numbers, integers: The arrays of :class:`Packed`.
    """
    m, n, rows = integers[0], integers[1], integers[2]
    # Read the numbers of the method and of the stop criteria.
    whole, others = integers[NUM_STRUCT_SIZES:], numbers
    method = Method(*(fixed_tuple(whole, METHOD_WHOLE) + fixed_tuple(others, METHOD_OTHER)))
    whole, others = whole[METHOD_WHOLE:], others[METHOD_OTHER:]
    stop = StopCriteria(*(fixed_tuple(whole, STOP_WHOLE) + fixed_tuple(others, STOP_OTHER)))
    whole, others = whole[STOP_WHOLE:], others[STOP_OTHER:]
    # Read the chain: 8 numbers per element, the limits, and 12 + 9 numbers for `base` and `tip`.
    ends = 8 * m + 2 * n
    chain = SerialChain(
        turn=_matrix(others, 0, m, 2),
        slide=others[2 * m : 3 * m],
        link=_matrix(others, 3 * m, m, 5),
        variable=whole[:m],
        lower=others[8 * m : 8 * m + n],
        upper=others[8 * m + n : ends],
        base=_matrix(others, ends, 3, 4),
        tip=_matrix(others, ends + 12, 3, 3),
    )
    whole, others = whole[m:], others[ends + 21 :]
    starts = Starts(
        lower=others[:n],
        upper=others[n : 2 * n],
        periodic=whole[:n],
        joint_weights=others[2 * n : 3 * n],
    )
    whole, others = whole[n:], others[3 * n :]
    # Read the table: the nodes of the tree, and 9 + 12 + n numbers per row.
    nodes = 1 << whole[0]
    features, middle, q = nodes, nodes + 9 * rows, nodes + 21 * rows
    table = ChainTable(
        levels=whole[0],
        first_turns=whole[1] != 0,
        last_turns=whole[2] != 0,
        by=whole[3 : 3 + nodes],
        cut=others[:nodes],
        features=others[features:middle].reshape(rows // LEAF_ROWS, 9, LEAF_ROWS),
        middle=others[middle:q].reshape(rows, 3, 4),
        q=_matrix(others, q, rows, n),
    )
    return chain, table, method, stop, starts
