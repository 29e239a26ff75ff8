"""One step of closed-loop inverse kinematics, for every method: its choices put together.

dq = z + C P (e - J z) for every combination: the limit strategy gives z, the scale C of the columns
and how far each joint is held, the damping law gives P, the bounds shorten what comes of the error.
In this order: rows inside their tolerance are left out; the error is bounded; the strategy says
what is held, moved and weighted; the law and its policy give the inverse; the step is bounded.
"""

import numpy as np

from dls_ik.core import damping, limits, objectives
from dls_ik.core import damping_policies as policies
from dls_ik.core.error_clamping import clamp_error
from dls_ik.core.inverses import (
    filter_columns,
    invert_free_columns,
    invert_whole,
    needs_whole_inverse,
    remaining_error,
)
from dls_ik.core.jit import kernel, spliced
from dls_ik.core.linalg import copy, scaled_columns, singular_values
from dls_ik.core.optimal_damping import optimal_step
from dls_ik.core.step_bounds import bound_step
from dls_ik.core.task import hold, jacobian_there, observe, release
from dls_ik.core.types import Array, Chain, Details, Goal, Memory, Method, Workspace
from dls_ik.core.workspace import workspace


@kernel
def general_step(
    chain: Chain, method: Method, details: Details, T_d: Array, q: Array, work: Workspace
) -> None:
    """Write the step for the error ``work.e`` and Jacobian ``work.J``, both scaled, to ``work.dq``.

    ``work.e`` and ``work.J`` are spoilt. Rows inside their tolerance are left out; the active set
    of the active set takes in again those that the step would bring out of it.

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
    clamp_error(settings, group, work.J, memory, work.e)
    J, e, v, c = work.J, work.e, np.zeros(q.shape[0]), np.ones(q.shape[0])
    limits.activate(chain, method, q, work, c)
    if limits.has_objective(method):
        H = objectives.gradient(chain, details, T_d, q, work, v)
        if method.limits == limits.TA:
            J, e, group = limits.ta_augmented(J, e, group, v, H, method.mu, settings.w_c)
        for j in range(v.shape[0]):
            v[j] *= -method.mu
    if settings.policy == policies.OPTIMAL:
        optimal_step(
            method, settings, group, J, e, work.h, v, details.translational, memory, work.dq
        )
    else:
        B, weight = scaled_columns(J, c), 1.0
        lambda2 = policies.law_damping(method, settings, B, e, memory)
        if settings.policy == policies.ACCURACY:
            weight = policies.accuracy_weight(settings, singular_values(B), q.shape[0])
        if method.limits == limits.GP:
            lambda2 = limits.gp_activate(settings, details.joint_weights, lambda2, v, work.z, c)
            if settings.form == limits.WEIGHTED:
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
                policies.apply_accuracy_weight(B, left, details.direction, weight)
                invert_free_columns(
                    method, settings, group, B, e, left, lambda2, work.h, work.z, c,
                    details.translational, work.dq,
                )  # fmt: skip
            again = limits.revise(method, chain, q, work.dq, work.h, work.z)
    bound_step(method, settings, details.translational, work.dq)
    for j in range(q.shape[0]):
        work.dq[j] *= method.alpha
    memory.steps[0] += 1


# Steps one after another, for those who look at each ----------------------------------------------


@kernel
def run_steps(
    chain: Chain,
    method: Method,
    goal: Goal,
    details: Details,
    memory: Memory,
    Ts: Array,
    qs: Array,
    errors: Array,
    damping: Array,
) -> None:
    """Make s steps; the last of fewer targets stays.

    Args:
        memory: in and out, of the method.
        Ts: (t, k, 4, 4) target of each step.
        qs: (s + 1, n) in: the start first, out: where each step led.
        errors: (s + 1, r) out: scaled errors at qs, of the step from there.
        damping: (s, 2) out: lambda^2 and the iterations it took.
    """
    work = workspace(chain, details, memory)
    steps = damping.shape[0]
    for i in range(steps + 1):
        T_d = Ts[min(i, Ts.shape[0] - 1)]
        observe(chain, details, T_d, qs[i], work)
        errors[i] = work.e
        if i == steps:
            break
        jacobian_there(chain, details, T_d, work)
        general_step(chain, method, details, T_d, qs[i], work)
        for j in range(qs.shape[1]):
            qs[i + 1, j] = qs[i, j] + work.dq[j]
        if limits.clips(method):
            limits.clip(chain.lower, chain.upper, qs[i + 1])
        damping[i, 0], damping[i, 1] = memory.lambda2[0], memory.steps[1]
        observe(chain, details, T_d, qs[i + 1], work)
        memory.left[:] = work.e


@kernel
def look_at(
    chain: Chain,
    method: Method,
    goal: Goal,
    details: Details,
    memory: Memory,
    T_d: Array,
    q: Array,
    e: Array,
    J: Array,
) -> None:
    """Write the scaled error e (r,) and Jacobian J (r, n) of the task at q (n,)."""
    work = workspace(chain, details, memory)
    observe(chain, details, T_d, q, work)
    jacobian_there(chain, details, T_d, work)
    e[:] = work.e
    J[:] = work.J


@kernel
def step_for(
    chain: Chain,
    method: Method,
    goal: Goal,
    details: Details,
    memory: Memory,
    T_d: Array,
    q: Array,
    e: Array,
    J: Array,
    dq: Array,
) -> None:
    """Write the step dq (n,) of a method for a scaled error e (r,) and Jacobian J (r, n) given."""
    work = workspace(chain, details, memory)
    observe(chain, details, T_d, q, work)
    work.e[:] = e
    work.J[:] = J
    general_step(chain, method, details, T_d, q, work)
    dq[:] = work.dq
