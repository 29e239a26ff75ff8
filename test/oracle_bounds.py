# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of bounds: the share of the error that a step corrects, and the maximum step.

Buss & Kim 2004, sections 3 to 5; Tabaczynski 2005, 2.2; Colome & Torras 2012, section VI.
"""

import numpy as np


def clamped(o, e, groups, last, left):
    """Return ClampMag of every group of rows: the position of a tip, or its rotation.

    Args:
        last: the error before its bound at the step before, or None.
        left: what that step left of it, against the target of then.
    """
    e = e.copy()
    now = e.copy()
    for g in np.unique(groups):
        length, bound = np.linalg.norm(now[groups == g]), o.D_max
        if o.adaptive:
            bound = np.inf
            if last is not None:
                before = last[g : g + 3] if o.bug_compatible else last[groups == g]
                grown = np.linalg.norm(left[groups == g]) - np.linalg.norm(before)
                bound = o.D_max + max(0.0, -grown if o.adaptive_by == "approach" else grown)
                jump = np.linalg.norm((now - left)[groups == g])
                bound = np.inf if jump > o.D_max and not o.bug_compatible else bound
        if length > bound:
            e[groups == g] *= bound / length
    return e


def halved(o, e, J):
    """Halve the error until its part that is unreachable to first order is short enough."""
    U, s, _ = np.linalg.svd(J, full_matrices=False)
    U = U[:, s > 1e-10 * s[0]]
    while np.linalg.norm(e - U @ (U.T @ e)) > o.halving:
        e = e / 2.0
    return e


def selectively_damped(P, J, z, e, o, sized, pushes=False):
    """(7) and section VI: each direction bounded by gamma_s, the whole by gamma_max.

    Args:
        J: (r, n) whose inverse P (n, r) is. sized: (r, n) whose columns say how far each joint
            moves the tips. pushes: CTP, whose whole step is bounded in its norm, as published too.
    """
    dq = np.zeros(len(z))
    V, gains, Ut = np.linalg.svd(P, full_matrices=False)
    for v, g, u in zip(V.T, gains, Ut, strict=True):
        M = g * np.abs(v) @ np.linalg.norm(sized, axis=0)
        gamma = o.gamma_max * min(1.0, 1.0 / M) if M > 0.0 else o.gamma_max
        w = g * v * (u @ e)
        largest = w.max() if o.bug_compatible else np.abs(w).max()
        dq += w * gamma / largest if largest > gamma else w
    if o.bug_compatible:
        dq *= min(1.0, o.gamma_max / dq.max()) if dq.max() > 0.0 else 1.0
    dq += z - P @ (J @ z)
    return dq if o.bug_compatible and not pushes else in_norm(dq, o.gamma_max)


def sdls(P, J, z, e, o, sized, groups, slides):
    """(3) and (4) of Buss & Kim; what slides is not clamped.

    The motion z, which they have not, is not clamped by directions either: (7) of Colome & Torras.

    Args:
        sized: as above. groups: (r,) of the rows. slides: (n,) which joints only slide.
    """
    dq = z - P @ (J @ z)
    V, gains, Ut = np.linalg.svd(P, full_matrices=False)
    by_group = [groups == g for g in np.unique(groups)]
    for v, g, u in zip(V.T, gains, Ut, strict=True):
        N = sum(np.linalg.norm(u[rows]) for rows in by_group)
        M = sum(g * np.abs(v) @ np.linalg.norm(sized[rows], axis=0) for rows in by_group)
        gamma = o.gamma_max * min(1.0, N / M) if M > 0.0 else o.gamma_max
        dq += in_largest(g * v * (u @ e), gamma, ~slides, o.soft)
    if np.abs(dq[~slides]).max(initial=0.0) <= o.gamma_max:  # the published code, soft or not
        return dq
    return in_largest(dq, o.gamma_max, ~slides, o.soft)


def in_largest(w, bound, which, soft=False):
    """ClampMaxAbs of some components; softly as the published code has it."""
    largest = np.abs(w[which]).max(initial=0.0)
    scale = bound / (bound + largest) if soft else bound / max(bound, largest)
    return np.where(which, scale * w, w)


def in_norm(dq, bound):
    """ClampMag."""
    length = np.linalg.norm(dq)
    return dq * (bound / length) if length > bound else dq
