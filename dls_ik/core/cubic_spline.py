# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cubic splines with continuous second derivatives."""

import numpy as np

from dls_ik.core.jit import allocating
from dls_ik.core.types import Array


@allocating
def spline_slopes(s: Array, q: Array) -> Array:
    """Return the derivatives (k, n) at the knots of the cubic spline through k points.

    The third derivative is continuous at the second and at the last but one knot (not-a-knot). Two
    points are joined by a line, three by a parabola.

    Args:
        s: (k,) increasing parameters of the knots, at least two.
        q: (k, n) points.
    """
    k, n = q.shape
    h, slope, v = np.empty(k - 1), np.empty((k - 1, n)), np.empty((k, n))
    for i in range(k - 1):
        h[i] = s[i + 1] - s[i]
        for j in range(n):
            slope[i, j] = (q[i + 1, j] - q[i, j]) / h[i]
    if k < 4:
        for j in range(n):
            bend = (slope[1, j] - slope[0, j]) / (s[2] - s[0]) if k == 3 else 0.0
            v[0, j] = slope[0, j] - bend * h[0]
            for i in range(k - 1):
                v[i + 1, j] = slope[i, j] + bend * h[i]
        return v
    # Rows of a tridiagonal system: ahead is the ratio of the upper to the eliminated diagonal.
    ahead = np.empty(k - 1)
    a, b = h[0], h[1]
    ahead[0] = (a + b) / b
    for j in range(n):
        v[0, j] = ((3.0 * a + 2.0 * b) * b * slope[0, j] + a * a * slope[1, j]) / ((a + b) * b)
    for i in range(1, k - 1):
        a, b = h[i - 1], h[i]
        pivot = 2.0 * (a + b) - b * ahead[i - 1]
        ahead[i] = a / pivot
        for j in range(n):
            v[i, j] = (3.0 * (b * slope[i - 1, j] + a * slope[i, j]) - b * v[i - 1, j]) / pivot
    a, b = h[k - 2], h[k - 3]
    pivot = b - (a + b) * ahead[k - 2]
    for j in range(n):
        value = ((3.0 * a + 2.0 * b) * b * slope[k - 2, j] + a * a * slope[k - 3, j]) / (a + b)
        v[k - 1, j] = (value - (a + b) * v[k - 2, j]) / pivot
    for i in range(k - 2, -1, -1):
        for j in range(n):
            v[i, j] -= ahead[i] * v[i + 1, j]
    return v
