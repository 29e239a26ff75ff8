# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Error bounds: the part of the error that one step corrects.

A bound has a section with its formula and source. To add one, write its section, its id, its name
in `CLAMPING_IDS`, and its branch in :func:`clamp_error`.
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
    """Shorten the error e (r,) in place; store the original error in the memory.

    Args:
        group: (r,) group of each row; the rows of a group form one vector.
        J: (r, n) scaled Jacobian.
    """
    before = e.copy()
    if params.reach == CLAMP:
        clamp_groups(params, group, memory, e)
    elif params.reach == HALVE:
        halve_unreachable(J, params.halving, e)
    copy(before, memory.e)
    memory.remaining.fill(np.nan)


# CLAMP --------------------------------------------------------------------------------------------
# ClampMag: the error of each tip is limited in length.
#
# e_i = ClampMag(t_i - s_i, D_max) (Buss & Kim 2004, section 3). Adaptive: as in the published code,
# D_max is infinite at the first step and grows by the increase of the error in the last step. In
# the text, D_max grows by the decrease of the error. The rotation of a tip is a further vector.


@allocating
def clamp_groups(params: MethodParams, group: Indices, memory: Memory, e: Array) -> None:
    """Shorten the error of every group to its D_max, in place.

    Args:
        group: (r,) group of each row; the rows of a group form one vector.
        e: (r,) scaled error [m].
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
                farthest = params.D_max + max(0.0, added)
        if length > farthest:
            e[i] *= farthest / length


@kernel
def _group_norm(group: Indices, e: Array, g: int) -> float:
    """Return the norm of the rows of group g of e (r,)."""
    total = 0.0
    for i in range(e.shape[0]):
        if group[i] == g:
            total += e[i] * e[i]
    return sqrt(total)


@kernel
def _last_norm(params: MethodParams, group: Indices, memory: Memory, g: int) -> float:
    """Return the norm of the error of a group at the previous step.

    Bug-compatible: the published code uses the rows g to g + 2 instead of the rows of the group.
    """
    if not params.bug_compatible:
        return _group_norm(group, memory.e, g)
    total = 0.0
    for i in range(g, min(g + 3, memory.e.shape[0])):
        total += memory.e[i] * memory.e[i]
    return sqrt(total)


# HALVE --------------------------------------------------------------------------------------------
# The error is halved while its unreachable part is too large.
#
# While norm((I - J J+) e) > tolerance: e := e / 2 (Tabaczynski 2005, algorithm of 2.2, whose J+ J
# must be J J+; the text describes this step, and the code omits it).


NEGLIGIBLE_SHARE = 1e-10  # singular values up to this share of the largest one count as zero


@allocating
def halve_unreachable(J: Array, tolerance: float, e: Array) -> None:
    """Halve e (r,) in place until its part outside the range of J (r, n) is within `tolerance`."""
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
