"""The optimal damping factor: the least that keeps the 2-norm of the step within Delta.

Deo & Walker 1993, 3.1 and 4.1, whose lambda is our lambda^2. The squared norm of the step is

phi^2 = sum_i (s_i gamma_i)^2 / (s_i^2 + lambda)^2                    (15), U^T e = gamma
phi^2 = sum_i (s_i gamma_i + beta_i)^2 / (s_i^2 + a + T)^2            (29), V^T v = beta
        + sum_{i>r} beta_i^2 / (a + T)^2,  lambda = a + T

where v / lambda is the motion in the null space. Both are sum_i c_i^2 / (d_i + a)^2, which falls
with a: phi(a) = Delta has one root. Newton's iteration finds it, (17), or that on 1 / phi, which is
almost straight, (18); within bounds that close in on the root as in More 1978.
"""

from math import sqrt

import numpy as np

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array, Settings

NAME = "optimal"
NEWTON, RECIPROCAL = 17, 18
TOLERANCE = 1e-3  # of phi relative to Delta
T = 1e-4  # least lambda in (28): without it, (27) has a pole at 0
MOST_ITERATIONS = 50
MOST_BISECTIONS = 300
LEAST_SQUARE = 1e-300  # stands in for the square of a singular value that is too small to have one


@kernel
def search_plain(settings: Settings, s: Array, gamma: Array, start: float) -> tuple[float, int]:
    """Return lambda for J* e alone, (13), and the iterations; 0 if |J+ e| <= Delta.

    Args:
        s: (r,) singular values; zeros contribute nothing. gamma: (r,) U^T e.
        start: lambda of the step before.
    """
    r = s.shape[0]
    c, d = np.empty(r), np.empty(r)
    for i in range(r):
        c[i] = s[i] * gamma[i]
        d[i] = max(s[i] * s[i], LEAST_SQUARE)
    return _search(settings, c, d, start)


@kernel
def search_total(
    settings: Settings, s: Array, gamma: Array, beta: Array, rest2: float, start: float
) -> tuple[float, int]:
    """Return lambda for J* e + (I - J* J) v / lambda, (25), and the iterations.

    0 if J+ e + (I - J+ J) v, (20), is no longer than Delta; else at least T, where the step may be
    shorter than Delta.

    Args:
        s: (r,), gamma: (r,) U^T e, beta: (r,) V^T v.
        rest2: squared norm of the part of v outside those directions.
        start: lambda of the step before.
    """
    if total_norm(s, gamma, beta, rest2) <= settings.Delta:
        return 0.0, 0
    r = s.shape[0]
    c, d = np.empty(r + 1), np.empty(r + 1)
    for i in range(r):
        c[i] = s[i] * gamma[i] + beta[i]
        d[i] = s[i] * s[i] + T
    c[r], d[r] = sqrt(rest2), T
    a, iterations = _search(settings, c, d, start - T)
    return a + T, iterations


@kernel
def total_norm(s: Array, gamma: Array, beta: Array, rest2: float) -> float:
    """|J+ e + (I - J+ J) v|, (20); arguments as of :func:`search_total`."""
    total = rest2
    for i in range(s.shape[0]):
        part = gamma[i] / s[i] if s[i] > 0.0 else beta[i]
        total += part * part
    return sqrt(total)


@kernel
def _search(settings: Settings, c: Array, d: Array, start: float) -> tuple[float, int]:
    """Return the a >= 0 with phi(a) = Delta, or 0 if phi(0) <= Delta; and the updates it took."""
    Delta = settings.Delta
    phi, slope = _norm_and_slope(c, d, 0.0)
    if not phi > Delta:  # also for NaN, which no factor mends
        return 0.0, 0
    tangent, low, high = (Delta - phi) / slope, 0.0, _upper_bound(c, Delta)
    if tangent > low:  # phi is convex: its tangents end before the root
        low = tangent
    a = start
    for count in range(MOST_ITERATIONS + MOST_BISECTIONS):
        if not low <= a <= high or count > MOST_ITERATIONS:
            a = max(0.001 * high, sqrt(low) * sqrt(high))
        phi, slope = _norm_and_slope(c, d, a)
        if abs(phi - Delta) <= TOLERANCE * Delta:
            return a, count
        newton = a - (phi - Delta) / slope
        if phi < Delta:
            high = a
        elif a > low:
            low = a
        if newton > low:
            low = newton
        a = newton if settings.search == NEWTON else a - phi / Delta * (phi - Delta) / slope
    return high, MOST_ITERATIONS + MOST_BISECTIONS


@kernel
def _upper_bound(c: Array, Delta: float) -> float:
    """phi(a) <= |c| / a."""
    total = 0.0
    for i in range(c.shape[0]):
        total += c[i] * c[i]
    return sqrt(total) / Delta


@kernel
def _norm_and_slope(c: Array, d: Array, a: float) -> tuple[float, float]:
    """Return phi(a) and its derivative, (16)."""
    square, bend = 0.0, 0.0
    for i in range(c.shape[0]):
        part = c[i] / (d[i] + a)
        square += part * part
        bend += part * part / (d[i] + a)
    phi = sqrt(square)
    return phi, -bend / phi if phi != 0.0 else 0.0
