# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One attempt: repeated steps of a method from a start configuration toward the desired poses.

Each function serves the fast path, if `table` is given, and the general path, if `general` is
given. The other argument is None, as :mod:`dls_ik.core.search` explains.
"""

from dls_ik.core import limits
from dls_ik.core.fast.kinematics import arm_jacobian_there, observe_arm
from dls_ik.core.fast.step import fast_step
from dls_ik.core.jit import force_inline
from dls_ik.core.linalg import norm
from dls_ik.core.step import general_step
from dls_ik.core.task import is_reached, jacobian_there, observe
from dls_ik.core.types import (
    AnyChain,
    AnyWorkspace,
    Array,
    ChainTable,
    GeneralProblem,
    Method,
    StopCriteria,
)
from dls_ik.core.workspace import forget

ATTEMPT_REACHED, ATTEMPT_SLOW, ATTEMPT_OUT_OF_ITERATIONS = range(3)
LONG_ITERATIONS_FACTOR = 8  # maximum number of steps of a long attempt, relative to max_iterations
LONG_STALL_RATIO = 0.95  # stall ratio of a long attempt


@force_inline
def error_at(
    chain: AnyChain,
    stop: StopCriteria,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    q: Array,
    work: AnyWorkspace,
) -> tuple[float, float]:
    """Write the scaled error at the joint positions `q` (n,) [rad or m] to `work.e`.

    In the scaled error, rotations are multiplied by ``stop.rotation_weight`` [m/rad].

    Args:
        T_d: (k, 4, 4) desired poses of the general path; the fast path reads ``work.target``.

    Returns:
        The largest position error [m] and the largest rotation error [rad] of all tips.
    """
    position, rotation = 0.0, 0.0
    if general is not None:
        position, rotation = observe(chain, general, T_d, q, work)
    if table is not None:
        position, rotation = observe_arm(chain, stop.rotation_weight, q, work)
    return position, rotation


@force_inline
def write_jacobian(
    chain: AnyChain,
    stop: StopCriteria,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    work: AnyWorkspace,
) -> None:
    """Write the Jacobian of the scaled error to `work.J`.

    The Jacobian belongs to the joint positions of the previous call of :func:`error_at`, whose
    kinematics are stored in `work`.
    """
    if general is not None:
        jacobian_there(chain, general, T_d, work)
    if table is not None:
        arm_jacobian_there(chain, stop.rotation_weight, work)


@force_inline
def make_step(
    chain: AnyChain,
    method: Method,
    stop: StopCriteria,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    error: float,
    q: Array,
    work: AnyWorkspace,
) -> None:
    """Add one step of the method to the joint positions `q` (n,) [rad or m].

    Args:
        error: Norm of the scaled error [m] that :func:`error_at` wrote to `work` for this `q`.
    """
    write_jacobian(chain, stop, table, general, T_d, work)
    if general is not None:
        general_step(chain, method, general, T_d, q, work)
    if table is not None:
        fast_step(chain, method, error, q, work)
    for j in range(q.shape[0]):
        q[j] += work.dq[j]
    if limits.clips(method):
        limits.clip_to_limits(chain.lower, chain.upper, q)


@force_inline
def attempt(
    chain: AnyChain,
    method: Method,
    stop: StopCriteria,
    table: ChainTable | None,
    general: GeneralProblem | None,
    T_d: Array,
    is_long: bool,
    q: Array,
    work: AnyWorkspace,
    out: Array,
) -> tuple[int, int]:
    """Move `q` by steps of a method until the desired poses are reached or the attempt fails.

    An attempt fails if the error decreases too slowly or the maximum number of steps is reached.

    Args:
        chain: The chain of the arm.
        method: Damping law, limit strategy and step bound.
        stop: Tolerances within which a pose counts as reached, and criteria of failure.
        table: Table of start configurations on the fast path; None on the general path.
        general: Task and parameters on the general path; None on the fast path.
        T_d: (k, 4, 4) desired poses.
        is_long: Whether to allow more steps and a slower decrease of the error. If an arm must be
            stretched to reach a pose, the error decreases slowly.
        q: (n,) start configuration; replaced by the last configuration [rad or m].
        work: Scratch arrays, with the state of the method.
        out: (2,) position error [m] and rotation error [rad] at the last configuration, written.

    Returns:
        ATTEMPT_REACHED, ATTEMPT_SLOW (slow decrease) or ATTEMPT_OUT_OF_ITERATIONS, and the number
        of steps.
    """
    if limits.clips(method):
        limits.clip_to_limits(chain.lower, chain.upper, q)
    if general is not None:
        forget(work.memory)
    max_iterations, ratio = stop.max_iterations, stop.stall_ratio
    if is_long:
        max_iterations, ratio = LONG_ITERATIONS_FACTOR * max_iterations, LONG_STALL_RATIO
    last, num_slow = 1e300, 0
    iteration = 0
    while True:
        out[0], out[1] = error_at(chain, stop, table, general, T_d, q, work)
        error = norm(work.e)
        if is_reached(stop, out[0], out[1], error):
            return ATTEMPT_REACHED, iteration
        if iteration >= max_iterations:
            return ATTEMPT_OUT_OF_ITERATIONS, iteration
        num_slow = num_slow + 1 if error > ratio * last else 0
        if stop.stall_count > 0 and num_slow >= stop.stall_count:
            return ATTEMPT_SLOW, iteration
        last = error
        make_step(chain, method, stop, table, general, T_d, error, q, work)
        iteration += 1
