# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of damping laws: P = sum_i g_i v_i u_i^T from NumPy's singular values.

Colome & Torras 2012, Table II; Deo & Walker 1993, (6) and the remarks of section 3.
"""

from itertools import product

import numpy as np

FILTERS = ("svf", "svf+ed")
ZERO = 1e-12  # share of the largest singular value below which a singular value is zero


def filtered(s, o):
    """(3)."""
    return (s**3 + o.nu * s**2 + 2 * s + 2 * o.sigma0) / (s**2 + o.nu * s + 2)


def least_damping(s, bound):
    """(6) of Deo & Walker: what keeps s / (s^2 + lambda) at the bound."""
    return s / bound - s**2 if s <= 1.0 / bound else 0.0


def jf_damping(s, o):
    """Return damping of the smallest singular value only: full at 0, none from epsilon on."""
    return (1.0 - (s / o.epsilon) ** 2) * o.lambda_max**2 if s < o.epsilon else 0.0


def gains(law, s, o, lambda2, length=0.0):
    """(k,): what becomes of each singular value, falling.

    Args:
        lambda2: added to every square, of the laws that do. length: step length of JT.
    """
    if law in FILTERS:
        return filtered(s, o) / (filtered(s, o) ** 2 + lambda2)
    if law == "jt":
        return length * s
    added = np.full(len(s), float(lambda2))
    if law == "jf":
        added[-1] += jf_damping(s[-1], o)
    if law == "nfd":
        added[-1] += jf_damping(s[-1], o)
    if law == "gdls":
        added += o.lambda_max**2 * np.exp(-((s / o.gauss_width) ** 2))
    if law == "nf":
        added += least_damping(s[-2], o.velocity_bound) if len(s) > 1 else 0.0
        added[-1] += least_damping(s[-1], o.velocity_bound)
    kept = s > (o.truncation if law == "tpinv" else ZERO) * s[0]
    return np.divide(s, s**2 + added, where=kept & (s > 0.0), out=np.zeros_like(s))


def inverse(law, B, o, lambda2, length=0.0):
    """(k, r): of some columns B (r, k) of the Jacobian."""
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    return Vt.T @ np.diag(gains(law, s, o, lambda2, length)) @ U.T


def filtered_jacobian(J, o):
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    return U @ np.diag(filtered(s, o)) @ Vt


def step_length(J, h, left):
    """Buss & Kim, section 5: <e, J d> / <J d, J d> for d = (I - H) J^T e."""
    moved = J @ ((1.0 - h) * (J.T @ left))
    return left @ moved / (moved @ moved) if moved.any() else 0.0


def continuous_inverse(J, h, of_columns):
    """J^{(I-H)+}: the inverses of every set of free joints, (n, r)."""
    P = np.zeros(J.T.shape)
    for free in product((False, True), repeat=len(h)):
        free = np.array(free)
        weight = np.prod(np.where(free, 1.0 - h, h))
        if weight > 0.0 and free.any():
            P[free] += weight * of_columns(J[:, free])
    return P
