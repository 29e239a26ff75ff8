"""Closed-loop inverse kinematics: one attempt from one start."""

from math import sqrt

from dls_ik.core import limits
from dls_ik.core.jit import inlined
from dls_ik.core.joint_step import joint_step
from dls_ik.core.kinematics import forward, jacobian
from dls_ik.core.se3 import norm3, pose_error
from dls_ik.core.types import Array, Chain, Goal, Method, Workspace

REACHED, SLOW, OUT_OF_ITERATIONS = range(3)


@inlined
def observe(chain: Chain, goal: Goal, T_d: Array, q: Array, work: Workspace) -> tuple[float, float]:
    """Write the scaled error at `q`; return the position [m] and rotation error [rad]."""
    forward(chain, q, work.axes, work.T)
    pose_error(T_d, work.T, work.relative, work.e)
    position, rotation = norm3(work.e), norm3(work.e[3:])
    for i in range(3, 6):
        work.e[i] *= goal.rotation_weight
    return position, rotation


@inlined
def scaled_jacobian(chain: Chain, goal: Goal, work: Workspace) -> None:
    """Write the Jacobian of the scaled error at the configuration last observed."""
    jacobian(chain, work.axes, work.T, work.J)
    for i in range(3, 6):
        for j in range(work.J.shape[1]):
            work.J[i, j] *= goal.rotation_weight


@inlined
def clip(chain: Chain, q: Array) -> None:
    """Bring every joint value into its limits, in place."""
    for j in range(q.shape[0]):
        q[j] = min(max(q[j], chain.lower[j]), chain.upper[j])


@inlined
def attempt(
    chain: Chain, method: Method, goal: Goal, T_d: Array, q: Array, work: Workspace, out: Array
) -> tuple[int, int]:
    """Step `q` toward the pose until it is reached or the attempt is given up.

    Args:
        T_d: (4, 4) or (3, 4) desired pose, q: (n,) in and out [rad or m].
        out: (2,) position [m] and rotation error [rad] at the last q.

    Returns:
        REACHED, SLOW or OUT_OF_ITERATIONS, and the number of steps made.
    """
    if limits.clips(method):
        clip(chain, q)
    last, slow = 1e300, 0
    iteration = 0
    while True:
        out[0], out[1] = observe(chain, goal, T_d, q, work)
        if out[0] <= goal.position_tolerance and out[1] <= goal.rotation_tolerance:
            return REACHED, iteration
        if iteration >= goal.max_iterations:
            return OUT_OF_ITERATIONS, iteration
        error = sqrt(out[0] * out[0] + (goal.rotation_weight * out[1]) ** 2)
        slow = slow + 1 if error > goal.stall_ratio * last else 0
        if goal.stall_count > 0 and slow >= goal.stall_count:
            return SLOW, iteration
        last = error
        scaled_jacobian(chain, goal, work)
        joint_step(chain, method, q, work)
        for j in range(q.shape[0]):
            q[j] += work.dq[j]
        if limits.clips(method):
            clip(chain, q)
        iteration += 1
