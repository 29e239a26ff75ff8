# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One attempt: steps of a method from a start until the pose is reached or progress stops.

Each function serves the fast path (`table` given) and the general path (`general` given); see
:mod:`dls_ik.core.search`.
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
LONG_ITERATIONS_FACTOR = 8  # a long attempt has this many times max_iterations
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
    """Write the scaled error at `q` (n,) to `work.e`.

    Args:
        T_d: (k, 4, 4) desired poses; the fast path reads its target from `work`.

    Returns:
        The largest position error [m] and rotation error [rad] of all tips.
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
    """Write the Jacobian of the scaled error at the configuration evaluated last to `work.J`."""
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
    """Move `q` (n,) by one step of the method, for the error evaluated at `q`.

    Args:
        error: Norm of the scaled error [m].
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
    """Iterate `q` toward the pose until the pose is reached or the attempt fails.

    Args:
        T_d: (k, 4, 4) desired poses.
        is_long: Continue for as long as the error decreases, as a stretched arm needs.
        q: (n,) joint positions, read and written [rad or m].
        out: (2,) position error [m] and rotation error [rad] at the last q, written.

    Returns:
        ATTEMPT_REACHED, ATTEMPT_SLOW or ATTEMPT_OUT_OF_ITERATIONS, and the number of steps.
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
