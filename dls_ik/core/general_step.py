"""One step of closed-loop inverse kinematics, for every method: its choices put together.

dq = z + C P (e - J z) for every combination: the limit strategy gives z, the scale C of the columns
and how far each joint is held, the damping law gives P, the bounds shorten what comes of the error.
In this order: rows inside their tolerance are left out; the error is bounded; the strategy says
what is held, moved and weighted; the law and its policy give the inverse; the step is bounded.
"""

import numpy as np

from dls_ik.core import damping, limits, objectives, policy, reach, step
from dls_ik.core.free_columns import invert_free_columns
from dls_ik.core.inverse import remaining_error
from dls_ik.core.jit import kernel, spliced
from dls_ik.core.limits import ctp, gp, jw, ta, tp
from dls_ik.core.linalg import copy
from dls_ik.core.optimal_step import optimal_step
from dls_ik.core.policy import accuracy
from dls_ik.core.slack import hold, release
from dls_ik.core.strength import law_damping, scaled_columns, singular_values
from dls_ik.core.types import Array, Chain, Details, Method, Workspace
from dls_ik.core.whole_inverse import filter_columns, invert_whole, needs_whole_inverse


@kernel
def general_step(
    chain: Chain, method: Method, details: Details, T_d: Array, q: Array, work: Workspace
) -> None:
    """Write the step for the error ``work.e`` and Jacobian ``work.J``, both scaled, to ``work.dq``.

    ``work.e`` and ``work.J`` are spoilt. Rows inside their tolerance are left out; the active set
    of :mod:`dls_ik.core.limits.active` takes in again those that the step would bring out of it.

    Args:
        T_d: (k, 4, 4) desired poses, q: (n,) joint values [rad or m].
    """
    task = details.task
    r = work.e.shape[0] if task.has_slack else 0
    e, J, held = np.empty(r), np.empty((r, q.shape[0])), np.zeros(r, np.bool_)
    if task.has_slack:
        copy(work.e, e)
        J[:] = work.J
    again = True
    while again:
        again = False
        if task.has_slack:
            copy(e, work.e)
            work.J[:] = J
            release(task, e, held, work.J)
        _step(chain, method, details, T_d, q, work)
        if task.has_slack and method.limits == limits.ACTIVE:
            again = hold(task, J, work.whole, work.dq, e, held)


@spliced
def _step(
    chain: Chain, method: Method, details: Details, T_d: Array, q: Array, work: Workspace
) -> None:
    """:func:`general_step` for rows that all count: equation (1) of Colome & Torras 2012."""
    settings, group, memory = details.settings, details.task.group, work.memory
    reach.bound(settings, group, work.J, memory, work.e)
    J, e, v, c = work.J, work.e, np.zeros(q.shape[0]), np.ones(q.shape[0])
    _activate(chain, method, q, work, c)
    if limits.has_objective(method):
        H = objectives.gradient(chain, details, T_d, q, work, v)
        if method.limits == limits.TA:
            J, e, group = ta.augmented(J, e, group, v, H, method.mu, settings.w_c)
        for j in range(v.shape[0]):
            v[j] *= -method.mu
    if settings.policy == policy.OPTIMAL:
        optimal_step(
            method, settings, group, J, e, work.h, v, details.translational, memory, work.dq
        )
    else:
        B, weight = scaled_columns(J, c), 1.0
        lambda2 = law_damping(method, settings, B, e, memory)
        if settings.policy == policy.ACCURACY:
            weight = accuracy.weight(settings, singular_values(B), q.shape[0])
        if method.limits == limits.GP:
            lambda2 = gp.activate(settings, details.joint_weights, lambda2, v, work.z, c)
            if settings.form == gp.WEIGHTED:
                B = scaled_columns(J, c)
        whole = needs_whole_inverse(method, settings)
        if whole and damping.is_filter(method):
            filter_columns(method, B)
            J = scaled_columns(B, 1.0 / c)
        left = np.empty(e.shape[0])
        again = True
        while again:
            remaining_error(J, e, work.z, left)
            if whole:
                invert_whole(
                    method, settings, group, J, B, e, left, lambda2, weight, work.h, work.z, c,
                    details.direction, details.translational, work.dq,
                )  # fmt: skip
            else:
                accuracy.apply_weight(B, left, details.direction, weight)
                invert_free_columns(
                    method, settings, group, B, e, left, lambda2, work.h, work.z, c,
                    details.translational, work.dq,
                )  # fmt: skip
            again = limits.revise(method, chain, q, work.dq, work.h, work.z)
    step.bound(method, settings, details.translational, work.dq)
    for j in range(q.shape[0]):
        work.dq[j] *= method.alpha
    memory.steps[0] += 1


@spliced
def _activate(chain: Chain, method: Method, q: Array, work: Workspace, c: Array) -> None:
    """Write h, z and c (n,) of the strategy."""
    work.z.fill(0.0)
    limits.activate(method, chain, q, work.J, work.e, work.h)
    if method.limits == limits.CTP:
        ctp.activate(method, chain, q, work.J, work.e, work.h, work.z)
    elif method.limits == limits.TP:
        tp.activate(method, chain, q, work.h, work.z)
    elif method.limits == limits.JW:
        jw.activate(chain, q, work.memory, c)
