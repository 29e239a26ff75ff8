"""One attempt: steps of a method from a start until the pose is reached, or no more progress made.

Each function serves both paths: one of `table` and `general` is None, as in
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

REACHED, SLOW, OUT_OF_ITERATIONS = range(3)
LONG_STEPS, LONG_RATIO = 8, 0.95  # times max_iterations; in place of the stall ratio


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
    """Write the scaled error at `q`; return the largest position [m] and rotation error [rad].

    Args:
        T_d: (k, 4, 4) desired poses; the fast path has its target in `work`.
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
    """Write the Jacobian of the scaled error at the configuration last observed."""
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
    """Move `q` by a step of the method for the error observed there.

    Args:
        error: norm of the scaled error [m].
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
    """Step `q` toward the pose until it is reached or the attempt is given up.

    Args:
        T_d: (k, 4, 4) desired poses, q: (n,) in and out [rad or m].
        is_long: go on while the error falls, as needed where the arm is stretched out.
        out: (2,) position [m] and rotation error [rad] at the last q.

    Returns:
        REACHED, SLOW or OUT_OF_ITERATIONS, and the number of steps made.
    """
    if limits.clips(method):
        limits.clip_to_limits(chain.lower, chain.upper, q)
    if general is not None:
        forget(work.memory)
    most, ratio = stop.max_iterations, stop.stall_ratio
    if is_long:
        most, ratio = LONG_STEPS * most, LONG_RATIO
    last, slow = 1e300, 0
    iteration = 0
    while True:
        out[0], out[1] = error_at(chain, stop, table, general, T_d, q, work)
        error = norm(work.e)
        if is_reached(stop, out[0], out[1], error):
            return REACHED, iteration
        if iteration >= most:
            return OUT_OF_ITERATIONS, iteration
        slow = slow + 1 if error > ratio * last else 0
        if stop.stall_count > 0 and slow >= stop.stall_count:
            return SLOW, iteration
        last = error
        make_step(chain, method, stop, table, general, T_d, error, q, work)
        iteration += 1
