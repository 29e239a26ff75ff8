"""Closed-loop inverse kinematics: one attempt from one start."""

from dls_ik.core import limits
from dls_ik.core.fast.kinematics import arm_jacobian_there, observe_arm
from dls_ik.core.fast.step import quick_step
from dls_ik.core.jit import spliced
from dls_ik.core.linalg import norm
from dls_ik.core.step import general_step
from dls_ik.core.task import is_reached, jacobian_there, observe
from dls_ik.core.types import Array, Details, Goal, Method, Scratch, Structure, Table
from dls_ik.core.workspace import forget

REACHED, SLOW, OUT_OF_ITERATIONS = range(3)
PATIENT_STEPS, PATIENT_RATIO = 8, 0.95  # times max_iterations; in place of the stall ratio


@spliced
def error_at(
    chain: Structure,
    goal: Goal,
    quick: Table | None,
    details: Details | None,
    T_d: Array,
    q: Array,
    work: Scratch,
) -> tuple[float, float]:
    """Write the scaled error at `q`; return the largest position [m] and rotation error [rad].

    Args:
        chain, work: of the one kind or of the other, as below.
        quick, details: one of them is None: Numba leaves out the branch of what is None, so that
            each of the two kinds of solvers is compiled without the other.
        T_d: (k, 4, 4) desired poses; the quick path has its target in `work`.
    """
    position, rotation = 0.0, 0.0
    if details is not None:
        position, rotation = observe(chain, details, T_d, q, work)
    if quick is not None:
        position, rotation = observe_arm(chain, goal.rotation_weight, q, work)
    return position, rotation


@spliced
def write_jacobian(
    chain: Structure,
    goal: Goal,
    quick: Table | None,
    details: Details | None,
    T_d: Array,
    work: Scratch,
) -> None:
    """Write the Jacobian of the scaled error at the configuration last observed."""
    if details is not None:
        jacobian_there(chain, details, T_d, work)
    if quick is not None:
        arm_jacobian_there(chain, goal.rotation_weight, work)


@spliced
def make_step(
    chain: Structure,
    method: Method,
    goal: Goal,
    quick: Table | None,
    details: Details | None,
    T_d: Array,
    error: float,
    q: Array,
    work: Scratch,
) -> None:
    """Move `q` by a step of the method for what was observed there.

    Args:
        error: norm of the scaled error [m].
    """
    write_jacobian(chain, goal, quick, details, T_d, work)
    if details is not None:
        general_step(chain, method, details, T_d, q, work)
    if quick is not None:
        quick_step(chain, method, error, q, work)
    for j in range(q.shape[0]):
        q[j] += work.dq[j]
    if limits.clips(method):
        limits.clip(chain.lower, chain.upper, q)


@spliced
def attempt(
    chain: Structure,
    method: Method,
    goal: Goal,
    quick: Table | None,
    details: Details | None,
    T_d: Array,
    patient: bool,
    q: Array,
    work: Scratch,
    out: Array,
) -> tuple[int, int]:
    """Step `q` toward the pose until it is reached or the attempt is given up.

    Args:
        T_d: (k, 4, 4) desired poses, q: (n,) in and out [rad or m].
        patient: to go on as long as it gets anywhere, as it takes where the arm is stretched out.
        out: (2,) position [m] and rotation error [rad] at the last q.

    Returns:
        REACHED, SLOW or OUT_OF_ITERATIONS, and the number of steps made.
    """
    if limits.clips(method):
        limits.clip(chain.lower, chain.upper, q)
    if details is not None:
        forget(work.memory)
    most, ratio = goal.max_iterations, goal.stall_ratio
    if patient:
        most, ratio = PATIENT_STEPS * most, PATIENT_RATIO
    last, slow = 1e300, 0
    iteration = 0
    while True:
        out[0], out[1] = error_at(chain, goal, quick, details, T_d, q, work)
        error = norm(work.e)
        if is_reached(goal, out[0], out[1], error):
            return REACHED, iteration
        if iteration >= most:
            return OUT_OF_ITERATIONS, iteration
        slow = slow + 1 if error > ratio * last else 0
        if goal.stall_count > 0 and slow >= goal.stall_count:
            return SLOW, iteration
        last = error
        make_step(chain, method, goal, quick, details, T_d, error, q, work)
        iteration += 1
