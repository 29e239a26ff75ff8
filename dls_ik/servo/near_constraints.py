# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Distance constraints on the motion of a cycle, as arrays for callers in Python."""

import numpy as np

from dls_ik.core.avoidance import approach_bounds, stopping_time
from dls_ik.core.near_pairs import MAX_CONTROLLED_PAIRS, NearRows, near_rows
from dls_ik.core.types import Array, Indices


def near_constraints(
    near: NearRows, q: Array, dq: Array, dt: float
) -> tuple[Array, Array, Indices]:
    """Return the distance constraints N dq >= b on the motion of a cycle.

    Args:
        near: Scene and pairs.
        q: (n,) joint positions before the motion [rad or m].
        dq: (n,) approximate motion, which determines how long the arm needs to stop [rad or m].
        dt: Duration of the cycle [s].

    Returns:
        The rows N (m, n), the bounds b (m,), and the index (m,) of the pair of each row.
    """
    N, remaining = np.empty((MAX_CONTROLLED_PAIRS, len(q))), np.empty(MAX_CONTROLLED_PAIRS)
    pair = np.empty(MAX_CONTROLLED_PAIRS, np.int64)
    count = near_rows(near, q, N, remaining, pair)
    b = np.empty(count)
    if count:
        T = stopping_time(near.stopping, dt, dq)
        approach_bounds(near.stopping, dt, T, remaining[:count], b)
    return N[:count], b, pair[:count]
