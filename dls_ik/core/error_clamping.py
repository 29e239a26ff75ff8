# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Error bounds, which limit the error that one step corrects.

Each bound has a section with its formula and source. To add a bound, write its section, its id, its
name in `CLAMPING_IDS`, and its branch in :func:`clamp_error`.
"""

from math import inf, isnan, sqrt

import numpy as np

from dls_ik.core.jit import allocating, kernel
from dls_ik.core.linalg import copy, svd
from dls_ik.core.types import Array, Indices, Memory, MethodParams

NO_ERROR_CLAMPING, CLAMP, HALVE = range(3)
CLAMPING_IDS = {"none": NO_ERROR_CLAMPING, "clamp": CLAMP, "halve": HALVE}


@allocating
def clamp_error(params: MethodParams, group: Indices, J: Array, memory: Memory, e: Array) -> None:
    """Shorten the scaled error by the bound ``params.reach``; store the original in the memory.

    Args:
        params: The error bound and its parameters.
        group: (r,) group of each row; the rows of a group form one vector.
        J: (r, n) Jacobian of the scaled error.
        memory: Values of the previous step, read; the original error is written to `e`.
        e: (r,) scaled error, read and written [m].
    """
    before = e.copy()
    if params.reach == CLAMP:
        clamp_groups(params, group, memory, e)
    elif params.reach == HALVE:
        halve_unreachable(J, params.halving, e)
    copy(before, memory.e)
    memory.remaining.fill(np.nan)


# CLAMP --------------------------------------------------------------------------------------------
# ClampMag: the length of the error of each tip is limited to D_max.
#
# e_i = ClampMag(t_i - s_i, D_max), with the target t_i and the position s_i of tip i (Buss & Kim
# 2004, section 3). The position and the rotation of a tip are separate vectors. With the parameter
# `adaptive`, the limit is infinite at the first step; later it is D_max plus the increase of the
# error in the last step, as in the published code. The text adds the decrease of the error instead.
# After a jump of the target by more than D_max the limit is infinite for one step, as in the text.


@allocating
def clamp_groups(params: MethodParams, group: Indices, memory: Memory, e: Array) -> None:
    """Shorten the error vector of every group of rows to its maximum length.

    Args:
        params: D_max and the options of the bound CLAMP (ClampMag of Buss & Kim 2004).
        group: (r,) group of each row; the rows of a group form one vector.
        memory: Holds the error of the previous step, for an adaptive maximum length.
        e: (r,) scaled error, read and written [m].
    """
    before = e.copy()
    for i in range(e.shape[0]):
        g = group[i]
        length = _group_norm(group, before, g)
        farthest = params.D_max
        if params.adaptive:
            farthest = inf
            if memory.steps[0] > 0:
                last = _last_norm(params, group, memory, g)
                left = (
                    length
                    if isnan(memory.remaining[0])
                    else _group_norm(group, memory.remaining, g)
                )
                added = last - left if params.by_approach else left - last
                jump = _group_change(group, before, memory.remaining, g)
                if not jump > params.D_max or params.bug_compatible:
                    farthest = params.D_max + max(0.0, added)
        if length > farthest:
            e[i] *= farthest / length


@kernel
def _group_norm(group: Indices, e: Array, g: int) -> float:
    """Return the norm of the vector that the rows of group g of e (r,) form."""
    total = 0.0
    for i in range(e.shape[0]):
        if group[i] == g:
            total += e[i] * e[i]
    return sqrt(total)


@kernel
def _group_change(group: Indices, e: Array, remaining: Array, g: int) -> float:
    """Return how far the target of group g has moved since the last step [m]; NaN if unknown.

    Args:
        group: (r,) group of each row.
        e: (r,) scaled error from the target [m].
        remaining: (r,) scaled error from the target of the last step, at the same configuration.
        g: Number of the group.
    """
    total = 0.0
    for i in range(e.shape[0]):
        if group[i] == g:
            total += (e[i] - remaining[i]) * (e[i] - remaining[i])
    return sqrt(total)


@kernel
def _last_norm(params: MethodParams, group: Indices, memory: Memory, g: int) -> float:
    """Return the norm of the error of group g at the previous step [m].

    With ``params.bug_compatible``, rows g to g + 2 are used instead of the rows of group g, as in
    the published code.
    """
    if not params.bug_compatible:
        return _group_norm(group, memory.e, g)
    total = 0.0
    for i in range(g, min(g + 3, memory.e.shape[0])):
        total += memory.e[i] * memory.e[i]
    return sqrt(total)


# HALVE --------------------------------------------------------------------------------------------
# The error is halved repeatedly until its component that no joint motion can correct is small.
#
# e := e / 2 is repeated while norm((I - J J+) e) > tolerance (Tabaczynski 2005, section 2.2, which
# prints J+ J instead of J J+ by mistake). The text of the paper describes the halving; its
# listing of the code does not halve the error.


NEGLIGIBLE_SHARE = 1e-10  # singular values up to this share of the largest one count as zero


@allocating
def halve_unreachable(J: Array, tolerance: float, e: Array) -> None:
    """Halve the error repeatedly until its component outside the range of J is small enough.

    Args:
        J: (r, n) Jacobian of the scaled error.
        tolerance: Maximum norm of the component outside the range of J [m].
        e: (r,) scaled error, read and written [m].
    """
    r = e.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(J.shape)
    svd(J, Ut, s, Vt)
    left = e.copy()
    for k in range(r):
        if s[k] > NEGLIGIBLE_SHARE * s[0]:
            along = 0.0
            for i in range(r):
                along += Ut[k, i] * e[i]
            for i in range(r):
                left[i] -= along * Ut[k, i]
    out_of_reach = 0.0
    for i in range(r):
        out_of_reach += left[i] * left[i]
    out_of_reach = sqrt(out_of_reach)
    if not out_of_reach < np.inf:
        return
    while out_of_reach > tolerance:
        out_of_reach *= 0.5
        for i in range(r):
            e[i] *= 0.5
