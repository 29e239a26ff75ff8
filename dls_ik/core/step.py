# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One step of closed-loop inverse kinematics by a formula that is common to all methods.

The formula is dq = z + C P (e - J z), with the error e and its Jacobian J. The limit strategy gives
the motion z, the scale C of the columns of J, and the activation of each joint's limit. P is the
inverse of J C by the damping law. Step bounds limit the correction of the error.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core import damping, limits, objectives
from dls_ik.core import damping_policies as policies
from dls_ik.core.error_clamping import clamp_error
from dls_ik.core.halley import bend_jacobian
from dls_ik.core.inverses import (
    filter_columns,
    invert_free_columns,
    invert_whole,
    needs_whole_inverse,
    remaining_error,
)
from dls_ik.core.jit import allocating, kernel
from dls_ik.core.linalg import copy, copy_matrix, scale_columns, singular_values
from dls_ik.core.optimal_damping import optimal_step
from dls_ik.core.priorities import finish_priorities, solve_objective, start_priorities
from dls_ik.core.saturation import bounded_step
from dls_ik.core.sqp import solver_of_attempt, sqp_step
from dls_ik.core.step_bounds import bound_step, method_at
from dls_ik.core.task import hold, jacobian_there, observe, release
from dls_ik.core.types import (
    Array,
    Chain,
    GeneralProblem,
    Grouping,
    Memory,
    Method,
    MethodParams,
    StepMethod,
    StepScratch,
    Workspace,
)
from dls_ik.core.workspace import workspace


@kernel
def general_step(
    chain: Chain, method: Method, general: GeneralProblem, T_d: Array, q: Array, work: Workspace
) -> None:
    """Compute the step of a method from the error and the Jacobian; write it to ``work.dq``.

    Task rows with an error within their tolerance are ignored. With the limit strategy `active`,
    the step is solved again with such a row if the step would move the error of this row out of the
    tolerance.

    Args:
        chain: The chain of the arm.
        method: Damping law, limit strategy and step bound.
        general: The task and the parameters of the method.
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
        work: The scaled error `e` and its Jacobian `J` are read and overwritten; the step is
            written to `dq`.
    """
    if general.task.has_tolerance:
        _step_within_tolerances(chain, method, general, T_d, q, work)
    else:
        _step(chain, method, general, T_d, q, work)


@allocating
def _step_within_tolerances(
    chain: Chain, method: Method, general: GeneralProblem, T_d: Array, q: Array, work: Workspace
) -> None:
    """Run :func:`general_step` for a task with tolerances."""
    task, r = general.task, work.e.shape[0]
    e, J, held = work.e.copy(), work.J.copy(), np.zeros(r, np.bool_)
    again = True
    while again:
        copy(e, work.e)
        copy_matrix(J, work.J)
        release(task, e, held, work.J)
        _step(chain, method, general, T_d, q, work)
        again = method.limits == limits.ACTIVE and hold(task, J, work.full_error, work.dq, e, held)


@kernel
def _step(
    chain: Chain, method: Method, general: GeneralProblem, T_d: Array, q: Array, work: Workspace
) -> None:
    """Write the step for all rows of the task: equation (1) of Colome & Torras 2012.

    The arguments are those of :func:`general_step`.
    """
    params, limit, memory, scratch = general.params, work.limit, work.memory, work.step
    grouping = Grouping(general.task.group, general.translational)
    method = solver_of_attempt(method_at(method, params, work.e), memory)
    step_method = StepMethod(method, params, grouping)
    # Clamp the error; evaluate the limit strategy and the objective.
    clamp_error(params, grouping.group, work.J, memory, work.e)
    limits.activate(chain, method, general, T_d, q, work)
    if method.damping == damping.LM:
        damping.scale_by_bias(method, general.bias, work.e, limit.scale)
    J, e, v, B, left, W = work.J, work.e, scratch.v, scratch.B, scratch.left, scratch.W
    v.fill(0.0)
    if limits.has_objective(method):
        H = objectives.gradient(chain, general, T_d, q, work, v)
        if method.limits == limits.TA:
            _augment(J, e, v, H, method.mu, params.w_c, scratch)
            J, e = scratch.J, scratch.e
        away = method.limits == limits.GP and params.bug_compatible
        if method.limits == limits.SRTP:
            solve_objective(params, method.mu, H, v)
            copy(v, limit.motion)
        else:
            for j in range(v.shape[0]):
                v[j] *= method.mu if away else -method.mu
    if params.policy == policies.POLICY_OPTIMAL:
        optimal_step(step_method, J, e, limit.activation, v, memory, work.dq)
    else:
        # Compute lambda^2 by the law and its policy.
        scale_columns(J, limit.scale, B)
        weight = 1.0
        if method.limits == limits.GWLN:
            limits.weigh_columns(B, limit.axis)
        lambda2 = policies.law_damping(method, params, B, e, memory)
        if params.policy == policies.POLICY_ACCURACY:
            weight = _accuracy_weight(params, B)
        if method.limits == limits.GP:
            lambda2 = limits.gp_activate(params, general.joint_weights, lambda2, v, limit)
            if params.form == limits.FORM_WEIGHTED:
                scale_columns(J, limit.scale, B)
        is_whole = needs_whole_inverse(method, params, limit.activation)
        if is_whole and damping.is_filter(method):
            filter_columns(method, B)
            J = scratch.J
            for i in range(J.shape[0]):
                for j in range(J.shape[1]):
                    J[i, j] = B[i, j] / limit.scale[j]
            if method.limits == limits.GWLN:
                limits.unweigh_columns(J, limit.axis)
        if is_whole:
            policies.weight_matrix(general.direction, weight, W)
        if weight != 1.0:
            policies.weight_columns(B, general.direction, weight)
        # Apply the inverse, and repeat this while the active set holds further joints.
        start_priorities(chain, step_method, general, lambda2, work)
        if method.limits == limits.QUIK:
            bend_jacobian(chain, step_method, general, T_d, lambda2, work)
        again = not limits.bounds_step(method) and method.limits != limits.SQP
        if limits.bounds_step(method):
            bounded_step(chain, step_method, general, q, lambda2, work)
        elif method.limits == limits.SQP:
            sqp_step(chain, q, work)
        while again:
            if is_whole:
                invert_whole(step_method, J, B, W, e, lambda2, limit, work.dq)
            else:
                remaining_error(J, e, limit.motion, left)
                if weight != 1.0:
                    policies.weight_vector(left, general.direction, weight)
                invert_free_columns(step_method, B, e, left, lambda2, work)
            again = limits.revise(method, chain, q, work.dq, limit)
        finish_priorities(method.limits, work)
    # Bound and scale the step.
    bound_step(method, params, grouping.translational, work.dq)
    for j in range(q.shape[0]):
        work.dq[j] *= method.alpha
    if method.limits == limits.JC_AS_RUN:
        limits.add_path_to_limits(chain, q, work.dq)
    memory.steps[0] += 1


@allocating
def _augment(
    J: Array, e: Array, gradient: Array, H: float, mu: float, w_c: float, scratch: StepScratch
) -> None:
    """Write the result of :func:`limits.ta_augmented` to the fields `J` and `e` of `scratch`."""
    J_v, e_v = limits.ta_augmented(J, e, gradient, H, mu, w_c)
    copy_matrix(J_v, scratch.J)
    copy(e_v, scratch.e)


@allocating
def _accuracy_weight(params: MethodParams, B: Array) -> float:
    """Return the result of :func:`policies.accuracy_weight` for the matrix B (r, n)."""
    return policies.accuracy_weight(params, singular_values(B), B.shape[1])


# Single steps, for teaching, comparison and reproduction -----------------------------------------


class StepRecord(NamedTuple):
    """Results of s steps; all arrays are written."""

    errors: Array  # (s + 1, r) scaled error at the start of each step, and after the last [m]
    damping: Array  # (s, 2) lambda^2 of each step, and the number of iterations that determined it
    dq: Array  # (n,) last step, before joints are clipped to their limits [rad or m]


@allocating
def run_steps(
    chain: Chain,
    method: Method,
    general: GeneralProblem,
    memory: Memory,
    Ts: Array,
    given: Array,
    qs: Array,
    record: StepRecord,
) -> None:
    """Make s steps of a method, and record the joint positions, errors and damping factors.

    Args:
        chain: The chain of the arm.
        method: Damping law, limit strategy and step bound.
        general: The task and further inputs of the steps.
        memory: State of the method, read and written.
        Ts: (t, k, 4, 4) desired poses of each step; if t < s, the last ones are used for all
            further steps.
        given: (r, 1 + n) scaled error and Jacobian, in its first column and in the others, that
            replace those at the joint positions in a single step; (0, 1 + n) if they are not given.
        qs: (s + 1, n) joint positions [rad or m]: the first row is the start, the others are
            written.
        record: Written.
    """
    work = workspace(chain, general, memory)
    steps = record.damping.shape[0]
    for i in range(steps + 1):
        T_d = Ts[min(i, Ts.shape[0] - 1)]
        observe(chain, general, T_d, qs[i], work)
        record.errors[i] = work.e
        if i == steps:
            break
        jacobian_there(chain, general, T_d, work)
        for k in range(given.shape[0]):
            work.e[k] = given[k, 0]
            copy(given[k, 1:], work.J[k])
        general_step(chain, method, general, T_d, qs[i], work)
        for j in range(qs.shape[1]):
            record.dq[j] = work.dq[j]
            qs[i + 1, j] = qs[i, j] + work.dq[j]
        if limits.clips(method):
            limits.clip_to_limits(chain.lower, chain.upper, qs[i + 1])
        record.damping[i, 0], record.damping[i, 1] = memory.lambda2[0], memory.steps[1]
        if given.shape[0] == 0:
            observe(chain, general, T_d, qs[i + 1], work)
            memory.remaining[:] = work.e


@allocating
def error_and_jacobian(
    chain: Chain, general: GeneralProblem, memory: Memory, T_d: Array, q: Array, e: Array, J: Array
) -> None:
    """Write the scaled error of the task and its Jacobian at one configuration.

    Args:
        chain: The chain of the arm.
        general: Contains the definition of the task.
        memory: State of a method; not read or written, but needed to make the scratch arrays.
        T_d: (k, 4, 4) desired poses.
        q: (n,) joint positions [rad or m].
        e: (r,) scaled error, written [m].
        J: (r, n) Jacobian of the scaled error, written.
    """
    work = workspace(chain, general, memory)
    observe(chain, general, T_d, q, work)
    jacobian_there(chain, general, T_d, work)
    e[:] = work.e
    J[:] = work.J
