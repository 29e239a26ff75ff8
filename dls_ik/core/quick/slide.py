"""Along the solutions of one pose to the one nearest the seed: what redundancy is good for."""

from dls_ik.core.jit import inlined, spliced
from dls_ik.core.loop import is_reached, norm
from dls_ik.core.quick.kinematics import arm_jacobian_there, observe_arm
from dls_ik.core.quick.step import solve_damped
from dls_ik.core.se3 import norm3
from dls_ik.core.types import Arm, Array, Goal, QuickWork, Starts

STEPS, CORRECTIONS = 30, 6  # at most; of these the last ones only take off the error
LARGEST = 0.5  # that a joint moves in a step, in the joint metric
ENOUGH = 0.01  # largest change at which the slide has ended
FAR = 0.2  # [rad] scaled error above which a step only takes off the error, as a rotation


@spliced
def slide(arm: Arm, goal: Goal, starts: Starts, seed: Array, q: Array, work: QuickWork) -> int:
    """Move a solution `q` (n,) toward the seed (n,) while it stays one; return the steps made.

    Each step is dq = z + P (e - J z), z the way to the seed and P the inverse in the joint metric:
    of all motions that take off the error, to first order, the one that ends nearest the seed.
    """
    n, steps, error, arrived = q.shape[0], 0, 0.0, False
    far = FAR * goal.rotation_weight  # [m]
    if n <= 6:
        return 0
    for steps in range(STEPS):
        arrived = arrived or steps >= STEPS - CORRECTIONS
        toward = 0.0 if arrived or error > far else 1.0
        arm_jacobian_there(arm, goal.rotation_weight, work)
        toward_seed(starts.joint_weights, seed, q, toward, work.J, work.z, work.e)
        slide_step(arm.lower, arm.upper, starts.joint_weights, q, work)
        largest = shorten(starts.joint_weights, work.dq)
        for j in range(n):
            q[j] = min(max(q[j] + work.dq[j], arm.lower[j]), arm.upper[j])
        position, rotation = observe_arm(arm, goal.rotation_weight, q, work)
        error = norm3(work.e) + norm3(work.e[3:])
        if arrived and is_reached(goal, position, rotation, norm(work.e)):
            break
        arrived = arrived or (toward == 1.0 and largest < ENOUGH)
    return steps + 1


@inlined
def toward_seed(
    weights: Array, seed: Array, q: Array, share: float, J: Array, z: Array, e: Array
) -> None:
    """Write z (n,), take J z off e, and scale the columns of J (n, 6) to the joint metric."""
    largest = LARGEST
    for j in range(q.shape[0]):
        z[j] = share * (seed[j] - q[j])
        largest = max(largest, abs(z[j]) * weights[j] ** 0.5)
    for j in range(q.shape[0]):
        z[j] *= LARGEST / largest
        scale = weights[j] ** -0.5
        for i in range(6):
            e[i] -= J[j, i] * z[j]
            J[j, i] *= scale


@inlined
def shorten(weights: Array, dq: Array) -> float:
    """Scale dq (n,) to the largest change of a joint, in the metric; return what it was."""
    largest = 0.0
    for j in range(dq.shape[0]):
        largest = max(largest, abs(dq[j]) * weights[j] ** 0.5)
    if largest > LARGEST:
        for j in range(dq.shape[0]):
            dq[j] *= LARGEST / largest
    return largest


@spliced
def slide_step(lower: Array, upper: Array, weights: Array, q: Array, work: QuickWork) -> None:
    """Write dq = z + P (e - J z); joints that it takes past a limit go to it."""
    work.h.fill(0.0)
    again = True
    while again:
        solve_damped(0.0, work)
        again = hold_beyond(lower, upper, weights, q, work.J, work.z, work.e, work.h, work.dq)
    for j in range(q.shape[0]):
        if work.h[j] == 0.0:
            work.dq[j] = work.z[j] + work.dq[j] * weights[j] ** -0.5


@inlined
def hold_beyond(
    lower: Array, upper: Array, weights: Array, q: Array, J: Array, z: Array, e: Array, h: Array,
    dq: Array,
) -> bool:  # fmt: skip
    """Hold the joints that z + P (e - J z) takes past a limit at it; say whether there was one."""
    again = False
    for j in range(q.shape[0]):
        if h[j] == 0.0:
            there = q[j] + z[j] + dq[j] * weights[j] ** -0.5
            limit = min(max(there, lower[j]), upper[j])
            if limit != there:
                h[j], dq[j], again = 1.0, limit - q[j], True
                for i in range(6):
                    e[i] -= J[j, i] * weights[j] ** 0.5 * (dq[j] - z[j])
    return again
