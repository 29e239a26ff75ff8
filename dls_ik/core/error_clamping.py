# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Error bounds: how much of the error one step is to take off.

A bound has a section with its formula and source. To add one, write its section, its id, its name
in `IDS`, and its branch in :func:`clamp_error`.
"""

from math import inf, isnan, sqrt

import numpy as np

from dls_ik.core.jit import allocating, kernel
from dls_ik.core.linalg import copy, svd
from dls_ik.core.types import Array, Indices, Memory, MethodParams

NONE, CLAMP, HALVE = range(3)
IDS = {"none": NONE, "clamp": CLAMP, "halve": HALVE}


@allocating
def clamp_error(params: MethodParams, group: Indices, J: Array, memory: Memory, e: Array) -> None:
    """Shorten the error e (r,) in place; remember it as it was.

    Args:
        group: (r,) which rows make one vector, J: (r, n).
    """
    before = e.copy()
    if params.reach == CLAMP:
        clamp_groups(params, group, memory, e)
    elif params.reach == HALVE:
        halve_unreachable(J, params.halving, e)
    copy(before, memory.e)
    memory.remaining.fill(np.nan)


# CLAMP --------------------------------------------------------------------------------------------
# ClampMag: a target far away is brought nearer, tip by tip.
#
# e_i = ClampMag(t_i - s_i, D_max) (Buss & Kim 2004, section 3). Adaptive: D_max grows by as much as
# the last step led away from the target that it had, and is infinite at the first step, as in the
# published code; in the text it grows by as much as the step came nearer. A tip's rotation is one
# more such vector.


@allocating
def clamp_groups(params: MethodParams, group: Indices, memory: Memory, e: Array) -> None:
    """Shorten the error of every group to its D_max, in place.

    Args:
        group: (r,) which rows make one vector, e: (r,) scaled error [m].
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
    total = 0.0
    for i in range(e.shape[0]):
        if group[i] == g:
            total += e[i] * e[i]
    return sqrt(total)


@kernel
def _last_norm(params: MethodParams, group: Indices, memory: Memory, g: int) -> float:
    """Return the norm of a group's error at the step before.

    Bug-compatible: the published code takes the rows g to g + 2, not those of the group.
    """
    if not params.bug_compatible:
        return _group_norm(group, memory.e, g)
    total = 0.0
    for i in range(g, min(g + 3, memory.e.shape[0])):
        total += memory.e[i] * memory.e[i]
    return sqrt(total)


# HALVE --------------------------------------------------------------------------------------------
# The error is halved while too much of it is unreachable.
#
# While norm((I - J J+) e) > tolerance: e := e / 2 (Tabaczynski 2005, algorithm of 2.2, where the
# text's J+ J is meant as J J+; he describes it and leaves it out of his code).


NEGLIGIBLE = 1e-10  # share of the largest singular value below which a direction cannot be moved in


@allocating
def halve_unreachable(J: Array, tolerance: float, e: Array) -> None:
    """Halve e (r,) in place until its part outside the range of J (r, n) is within `tolerance`."""
    r = e.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(J.shape)
    svd(J, Ut, s, Vt)
    left = e.copy()
    for k in range(r):
        if s[k] > NEGLIGIBLE * s[0]:
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
