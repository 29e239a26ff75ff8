# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of damping factor policies: lambda^2 of each step.

Deo & Walker 1993, section 3 (their lambda is our lambda^2), 3.1 and 4.1.
"""

import numpy as np
from oracle_laws import inverse, least_damping
from oracle_objectives import manipulability

SHIFT = 1e-4  # T of (28)


def lambda_squared(law, o, J, e, last):
    """What is added to the squares of the singular values, except by the policy `optimal`.

    Args:
        J: (r, n) with its columns scaled. e: (r,) error of the task, after its bound.
        last: J of the step before, or None.
    """
    by_error = o.error_gain * (e @ e)
    if law in ("ed", "svf+ed"):
        return by_error
    if law == "nfd":
        return o.lambda_**2
    if law == "lm":
        return by_error + np.min(o.bias)
    if law == "ied":
        return by_error + o.omega**2
    if law != "jd":
        return 0.0
    s = np.linalg.svd(J)[1]
    if o.policy == "error":
        return by_error
    if o.policy == "manipulability":
        w = manipulability(J)
        return o.lambda0 * (1.0 - w / o.w_t) ** 2 if w < o.w_t else 0.0
    if o.policy == "rate":
        before = 0.0 if last is None else manipulability(last)
        ratio = manipulability(J) / before if before > 0.0 else 1.0
        return o.lambda0 * (1.0 - ratio) if ratio < o.rate_t else 0.0
    if o.policy == "velocity":
        return least_damping(s[-1], o.velocity_bound)
    if o.policy == "tracking":
        return s[s > 1e-10 * s[0]][-1] ** 2 * o.tracking_bound / (1.0 - o.tracking_bound)
    if o.policy == "condition":
        least = 0.0 if J.shape[0] < J.shape[1] else s[-1]
        k = o.condition_bound
        return max(0.0, (s[0] ** 2 - k * least**2) / (k - 1.0))
    if o.policy == "accuracy":
        return near_singular(o, s) * o.lambda_max**2
    if o.policy.startswith("mayorga"):
        return mayorga(o, J, last)
    return o.lambda_**2


def near_singular(o, s):
    """1 - (s_min / epsilon)^2, or 0 away from singularities."""
    return 1.0 - (s[-1] / o.epsilon) ** 2 if s[-1] < o.epsilon else 0.0


def task_weighting(o, J, rows):
    """W of Chiaverini's policy: less weight for the direction d that may be less exact.

    Args:
        rows: r of the task; one fewer than J has, with TA.
    """
    s = np.linalg.svd(J)[1]
    d = np.zeros(J.shape[0])
    d[rows - 1] = 1.0
    if o.direction is not None:
        d[:] = 0.0
        d[: len(o.direction)] = o.direction / np.linalg.norm(o.direction)
    w = 1.0 - np.sqrt(near_singular(o, s)) * (1.0 - o.w_min)
    return np.eye(len(d)) + (w - 1.0) * np.outer(d, d)


def mayorga(o, J, last):
    """Method 7: by a bound on the condition number, or by the change since the last step."""
    if o.policy == "mayorga-rank":
        if last is None:
            return 0.0
        least = np.linalg.svd(last)[1][-1]
        level = np.linalg.norm(J - last) / least if least > 0.0 else np.inf
    else:
        wide = J.shape[0] <= J.shape[1]  # else J J^T, of which the paper speaks, is always singular
        level = guggenheimer(J @ J.T if wide else J.T @ J) / o.condition_bound
    if level <= 1.0:
        return 0.0
    return min(o.lambda0 * (1.0 - level) ** 2, 1e12 * np.linalg.norm(J) ** 2)


def guggenheimer(A):
    """Bound on the condition number: 2 / |det A| (|A|_F / sqrt r)^r."""
    r = len(A)
    determinant = abs(np.linalg.det(A)) if np.linalg.matrix_rank(A, hermitian=True) == r else 0.0
    power = (np.linalg.norm(A) / np.sqrt(r)) ** r
    return 2.0 / determinant * power if determinant > 0.0 else np.inf


def optimal_step(o, J, left, v=None):
    """Section 3.1; with the motion v of an objective section 4.1.

    Returns:
        (n,) with a norm of Delta, or the undamped step if that is shorter; and lambda^2.
    """
    own = np.zeros(J.shape[1]) if v is None else v
    pinv = inverse("jp", J, o, 0.0)
    undamped = pinv @ left + own - pinv @ (J @ own)
    if np.linalg.norm(undamped) <= o.Delta:
        return undamped, 0.0

    def step(lambda2):
        z = own / lambda2 if own.any() else own
        return z + inverse("jd", J, o, lambda2) @ (left - J @ z)

    low = SHIFT if own.any() else 0.0
    if own.any() and np.linalg.norm(step(low)) <= o.Delta:
        return step(low), low
    high = max(1.0, low)
    while np.linalg.norm(step(high)) > o.Delta:
        high *= 4.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.linalg.norm(step(middle)) > o.Delta else (low, middle)
    return step(high), high
