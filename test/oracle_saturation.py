# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of SNS and HQP: bounds of the joints inside the step.

Flacco et al. 2012, Algorithm 1, as printed; least squares within bounds by SciPy.
"""

import numpy as np
import oracle_laws as laws
from scipy.optimize import lsq_linear


def step_bounds(robot, q, o):
    """Return the bounds (n,) of the step of each joint."""
    low = np.clip(robot.lower - q, -o.largest_change, 0.0)
    return low, np.clip(robot.upper - q, 0.0, o.largest_change)


def sns(J, e, inverse, low, high):
    """Return dq (n,) of Algorithm 1.

    Args:
        inverse: Function that returns the inverse (k, r) of columns (r, k) by the damping law.
    """
    n, rank = J.shape[1], np.linalg.matrix_rank(J, rtol=1e-9)
    free, z, best, dq = np.ones(n, bool), np.zeros(n), 0.0, np.zeros(n)
    while free.any() and np.linalg.matrix_rank(J[:, free], rtol=1e-9) == rank:
        P = np.zeros((n, len(e)))
        P[free] = inverse(J[:, free])
        along, rest = P @ e, z - P @ (J @ z)
        whole = along + rest
        passed = free & ((whole > high + 1e-12) | (whole < low - 1e-12))
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.sort([(low - rest) / along, (high - rest) / along], axis=0)[:, free]
        scale = min(1.0, np.nanmin(ends[1])) if passed.any() else 1.0
        if passed.any() and (scale < 0.0 or np.nanmax(ends[0]) > scale):
            scale = 0.0
        if scale > best:
            best, dq = scale, scale * along + rest
        if not passed.any():
            break
        with np.errstate(divide="ignore", invalid="ignore"):
            last = np.maximum((low - rest) / along, (high - rest) / along)
        critical = min(np.flatnonzero(passed), key=lambda j: last[j])
        z[critical] = high[critical] if whole[critical] > high[critical] else low[critical]
        free[critical] = False
    return dq


def best_sns(J, e, low, high):
    """Return the largest scale with J dq = s e within the bounds, and the shortest such dq."""
    n = len(low)
    A, least, most = np.column_stack([J, -e]), np.append(low, 0.0), np.append(high, 1.0)
    only = np.append(np.zeros(n), 1.0)[None]
    rows, right = [A], [np.zeros(len(e))]
    for level, b in ((only, np.ones(1)), (np.eye(n + 1)[:n], np.zeros(n))):
        x = least_squares(rows, right, level, b, least, most)
        rows, right = [*rows, level], [*right, level @ x]
    return x[:n]


def hqp(J, e, law, o, lambda2, low, high):
    """Return the shortest of the dq that minimise the damped error within the bounds."""
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    values = laws.filtered(s, o) if law in laws.FILTERS else s
    g = laws.gains(law, s, o, lambda2)
    kept = g > 0.0
    damping = np.where(kept, values / np.where(kept, g, 1.0) - values**2, 0.0)
    A = np.vstack([U @ np.diag(values * kept) @ Vt, np.diag(np.sqrt(np.maximum(damping, 0))) @ Vt])
    if law in ("jp", "jd", "ed", "ied") and lambda2 > 0.0:
        A = np.vstack([J, np.sqrt(lambda2) * np.eye(len(low))])
    b = np.zeros(len(A))
    b[: len(e)] = e
    first = least_squares([], [], A, b, low, high)
    return least_squares([A], [A @ first], np.eye(len(low)), np.zeros(len(low)), low, high)


def least_squares(rows, right, A, b, low, high):
    """Return x with min |A x - b| within the bounds, among those with rows x = right.

    The solution is found with large weights of the rows; then it is made exact on its active set.
    """
    still = high - low <= 0.0
    wide = np.where(still, 1e-9, 0.0)
    R, c = (np.vstack(rows), np.concatenate(right)) if rows else (np.zeros((0, len(low))), [])
    top = 1e4
    found = lsq_linear(
        np.vstack([top * R, A]), np.append(top * np.array(c), b), (low - wide, high + wide),
        method="bvls", tol=1e-15, max_iter=500,
    )  # fmt: skip
    x = np.clip(found.x, low, high)
    x[(found.active_mask < 0) | still] = low[(found.active_mask < 0) | still]
    x[found.active_mask > 0] = high[found.active_mask > 0]
    free = (found.active_mask == 0) & ~still
    if not free.any():
        return x
    fixed = np.where(free, 0.0, x)
    particular = np.linalg.lstsq(R[:, free], c - R @ fixed, rcond=1e-12)[0] if rows else 0.0
    Z = np.eye(free.sum())
    if rows:
        _, s, Vt = np.linalg.svd(R[:, free])
        Z = Vt[(s > 1e-10 * max(s.max(initial=0.0), 1e-300)).sum() :].T
    x[free] = particular
    left = b - A @ x
    x[free] += Z @ np.linalg.lstsq(A[:, free] @ Z, left, rcond=1e-12)[0]
    return x
