"""Closed-loop inverse kinematics: one attempt from one start."""

from math import sqrt

from dls_ik.core import limits
from dls_ik.core.jit import spliced
from dls_ik.core.joint_step import joint_step
from dls_ik.core.kinematics import forward, jacobian
from dls_ik.core.se3 import norm3, pose_error
from dls_ik.core.task import task_error, task_jacobian
from dls_ik.core.types import Array, Chain, Details, Goal, Method, Workspace
from dls_ik.core.workspace import forget

REACHED, SLOW, OUT_OF_ITERATIONS = range(3)


@spliced
def observe(
    chain: Chain,
    goal: Goal,
    quick: bool | None,
    details: Details | None,
    T_d: Array,
    q: Array,
    work: Workspace,
) -> tuple[float, float]:
    """Write the scaled error at `q`; return the largest position [m] and rotation error [rad].

    Args:
        quick, details: as for :func:`dls_ik.core.joint_step.joint_step`.
        T_d: (k, 4, 4) desired poses.
    """
    forward(chain, q, work.axes, work.T)
    position, rotation = 0.0, 0.0
    if details is not None:
        position, rotation = task_error(details.task, T_d, work.T, work.relative, work.e)
    if quick is not None:
        pose_error(T_d[0], work.T[0], work.relative, work.e)
        position, rotation = norm3(work.e), norm3(work.e[3:])
        for i in range(3, 6):
            work.e[i] *= goal.rotation_weight
    return position, rotation


@spliced
def scaled_jacobian(
    chain: Chain,
    goal: Goal,
    quick: bool | None,
    details: Details | None,
    T_d: Array,
    work: Workspace,
) -> None:
    """Write the Jacobian of the scaled error at the configuration last observed."""
    if details is not None:
        task_jacobian(chain, details.task, T_d, work.axes, work.T, work.relative, work.J)
    if quick is not None:
        jacobian(chain, work.axes, work.T, work.J)
        for i in range(3, 6):
            for j in range(work.J.shape[1]):
                work.J[i, j] *= goal.rotation_weight


@spliced
def is_reached(goal: Goal, position: float, rotation: float, error: float) -> bool:
    """Whether all errors are within their tolerances; `error` is the norm of the scaled one."""
    within = position <= goal.position_tolerance and rotation <= goal.rotation_tolerance
    return within and error <= goal.error_tolerance


@spliced
def norm(e: Array) -> float:
    """Length of e (r,)."""
    total = 0.0
    for i in range(e.shape[0]):
        total += e[i] * e[i]
    return sqrt(total)


@spliced
def clip(chain: Chain, q: Array) -> None:
    """Bring every joint value into its limits, in place."""
    for j in range(q.shape[0]):
        q[j] = min(max(q[j], chain.lower[j]), chain.upper[j])


@spliced
def attempt(
    chain: Chain,
    method: Method,
    goal: Goal,
    quick: bool | None,
    details: Details | None,
    T_d: Array,
    q: Array,
    work: Workspace,
    out: Array,
) -> tuple[int, int]:
    """Step `q` toward the pose until it is reached or the attempt is given up.

    Args:
        T_d: (k, 4, 4) desired poses, q: (n,) in and out [rad or m].
        out: (2,) position [m] and rotation error [rad] at the last q.

    Returns:
        REACHED, SLOW or OUT_OF_ITERATIONS, and the number of steps made.
    """
    if limits.clips(method):
        clip(chain, q)
    forget(work.memory)
    last, slow = 1e300, 0
    iteration = 0
    while True:
        out[0], out[1] = observe(chain, goal, quick, details, T_d, q, work)
        error = norm(work.e)
        if is_reached(goal, out[0], out[1], error):
            return REACHED, iteration
        if iteration >= goal.max_iterations:
            return OUT_OF_ITERATIONS, iteration
        slow = slow + 1 if error > goal.stall_ratio * last else 0
        if goal.stall_count > 0 and slow >= goal.stall_count:
            return SLOW, iteration
        last = error
        scaled_jacobian(chain, goal, quick, details, T_d, work)
        joint_step(chain, method, quick, details, T_d, q, work)
        for j in range(q.shape[0]):
            q[j] += work.dq[j]
        if limits.clips(method):
            clip(chain, q)
        iteration += 1
