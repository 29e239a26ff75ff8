# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The step of the fast path, and the motion of a solution toward the seed.

The damping laws are JP, JD and ED, and joint limits are ignored or treated by the strategy JC or by
the active set of ``method="auto"``. The step is dq = z + P (e - J z), with z the motion of held
joints to their limits and P the damped inverse of the columns of the other, free joints.
"""

from dls_ik.core import damping, limits
from dls_ik.core.fast.kinematics import arm_jacobian_there, observe_arm
from dls_ik.core.inverses import (
    LEAST_PIVOT,
    apply_factored,
    apply_singular,
    damped_gains,
    factor_normal,
)
from dls_ik.core.jit import force_inline, kernel
from dls_ik.core.linalg import norm, svd
from dls_ik.core.se3 import norm3
from dls_ik.core.task import is_reached
from dls_ik.core.types import Array, FastWorkspace, Method, SerialChain, Starts, StopCriteria


@force_inline
def fast_step(
    arm: SerialChain, method: Method, error: float, q: Array, work: FastWorkspace
) -> None:
    """Compute the step of a method from the error and the Jacobian; write it to ``work.dq``.

    Args:
        arm: The chain; its joint limits are used.
        method: Damping law, limit strategy, and gain alpha by which the step is multiplied.
        error: Norm of the scaled error [m].
        q: (n,) joint positions [rad or m].
        work: The scaled error `e` and its Jacobian `J` are read; `e`, the activations `h` (1 for
            joints held at a limit, else 0) and `dq` are overwritten.
    """
    work.h.fill(0.0)
    if limits.clips(method):
        hold_pushed(arm.lower, arm.upper, q, work.J, work.e, work.h, work.dq)
    lambda2 = damping.fast_lambda_squared(method, error)
    solve_free(arm.lower, arm.upper, limits.revises(method), lambda2, q, work)
    if method.alpha != 1.0:
        for j in range(q.shape[0]):
            work.dq[j] *= method.alpha


@force_inline
def solve_free(
    lower: Array, upper: Array, revises: bool, lambda2: float, q: Array, work: FastWorkspace
) -> None:
    """Write the damped step of the free joints to ``work.dq``.

    Free joints have the activation 0 in ``work.h``. If `revises` is true, each free joint that the
    step would move beyond a limit is moved to this limit and held there, and the step of the other
    free joints is solved again, until no joint would pass a limit.

    Args:
        lower, upper: (n,) limits [rad or m].
        revises: Whether joints that would pass a limit are held.
        lambda2: Squared damping factor lambda^2.
        q: (n,) joint positions [rad or m].
        work: The scaled error `e`, its Jacobian `J` and the activations `h` are read; `e`, `h` and
            the step `dq` are written.
    """
    again = True
    while again:
        again = False
        solve_damped(lambda2, work)
        if revises:
            again = hold_passing(lower, upper, q, work.J, work.e, work.h, work.dq)


@force_inline
def solve_damped(lambda2: float, work: FastWorkspace) -> None:
    """Write dq = P e for the free joints, with P the damped inverse of their columns of J.

    Args:
        lambda2: lambda^2 of the damping law.
        work: `e`, `J` and the activations `h` (0 for free joints) are read; `dq` is written.
    """
    enough = work.dq.shape[0] >= 6
    if enough and solve_normal(work.J, work.h, work.e, lambda2, work.y):
        apply_transposed(work.J, work.h, work.y, work.dq)
    else:
        solve_few(work.J, work.h, work.e, lambda2, work.dq, work.memory)


@force_inline
def hold_pushed(
    lower: Array, upper: Array, q: Array, J: Array, e: Array, h: Array, dq: Array
) -> None:
    """Hold each joint at or beyond a limit if J^T e would move the joint farther outward.

    Args:
        lower, upper: (n,) limits [rad or m].
        q: (n,) joint positions [rad or m].
        J: (n, 6) transposed Jacobian of the scaled error.
        e: (6,) scaled error [m].
        h: (n,) activations, set to 1 for joints that become held; other entries are unchanged.
        dq: (n,) step, set to 0 for joints that become held; other entries are unchanged.
    """
    for j in range(q.shape[0]):
        outward = 1.0 if q[j] >= upper[j] else (-1.0 if q[j] <= lower[j] else 0.0)
        if outward != 0.0 and outward * along(J, j, e) > 0.0:
            h[j], dq[j] = 1.0, 0.0


@force_inline
def hold_passing(
    lower: Array, upper: Array, q: Array, J: Array, e: Array, h: Array, dq: Array
) -> bool:
    """Hold at a limit every free joint that the step `dq` would move beyond this limit.

    Args:
        lower, upper: (n,) limits [rad or m].
        q: (n,) joint positions [rad or m].
        J: (n, 6) transposed Jacobian of the scaled error.
        e: (6,) scaled error [m], read and written: the error that the motions of held joints to
            their limits correct is subtracted.
        h: (n,) activations, 0 for free joints; set to 1 for joints that become held.
        dq: (n,) step; set to the motion to the limit for joints that become held [rad or m].

    Returns:
        Whether any joint became held.
    """
    again = False
    for j in range(q.shape[0]):
        there = min(max(q[j] + dq[j], lower[j]), upper[j])
        if h[j] == 0.0 and there != q[j] + dq[j]:
            h[j], dq[j], again = 1.0, there - q[j], True
            for i in range(6):
                e[i] -= J[j, i] * dq[j]
    return again


@force_inline
def along(J: Array, j: int, y: Array) -> float:
    """Return the dot product of row j of the transposed Jacobian J (n, 6) with y (6,)."""
    return (
        J[j, 0] * y[0] + J[j, 1] * y[1] + J[j, 2] * y[2]
        + J[j, 3] * y[3] + J[j, 4] * y[4] + J[j, 5] * y[5]
    )  # fmt: skip


@force_inline
def apply_transposed(J: Array, h: Array, y: Array, dq: Array) -> None:
    """Write dq[j] = J[j] . y for the free joints, those with h[j] = 0.

    Args:
        J: (n, 6) transposed Jacobian.
        h: (n,) activations.
        y: (6,) vector.
        dq: (n,) step, written for free joints.
    """
    for j in range(dq.shape[0]):
        if h[j] == 0.0:
            dq[j] = along(J, j, y)


@kernel
def solve_few(J: Array, h: Array, e: Array, lambda2: float, dq: Array, memory: Array) -> None:
    """Write dq = P e for the free joints where :func:`solve_normal` would lose digits.

    The normal equations with six rows are inaccurate if few joints are free and close to
    singularities. This function factors the smaller of the two normal matrices of the free columns,
    or, if that matrix is also inaccurate, uses the singular values of the free columns.

    Args:
        J: (n, 6) transposed Jacobian of the scaled error.
        h: (n,) activations; joints with h = 0 are free.
        e: (6,) scaled error [m].
        lambda2: lambda^2 of the damping law.
        dq: (n,) step, written for free joints.
        memory: (13 n + 48,) scratch.
    """
    k = 0
    for j in range(h.shape[0]):
        k += 1 if h[j] == 0.0 else 0
    if k == 0:
        return
    B, Vt = memory[: 6 * k].reshape(6, k), memory[6 * k : 12 * k].reshape(6, k)
    x, rest = memory[12 * k : 13 * k], memory[13 * k : 13 * k + 48]
    A, y, s = rest[:36].reshape(6, 6), rest[36:42], rest[42:]
    column = 0
    for j in range(h.shape[0]):
        if h[j] == 0.0:
            for i in range(6):
                B[i, column] = J[j, i]
            column += 1
    if factor_normal(B, lambda2, A):
        apply_factored(B, A, e, y, x)
    else:
        svd(B, A, s, Vt)
        damped_gains(s, lambda2, s)
        apply_singular(A, s, Vt, e, x)
    column = 0
    for j in range(h.shape[0]):
        if h[j] == 0.0:
            dq[j] = x[column]
            column += 1


@force_inline
def solve_normal(J: Array, h: Array, e: Array, lambda2: float, y: Array) -> bool:
    """Solve (J J^T + lambda^2 I) y = e by a factorisation L D L^T.

    The 21 different entries of the symmetric matrix are local variables. They stay in registers,
    which takes a third of the time of loops over an array. The right side is eliminated together
    with the rows.

    Args:
        J: (n, 6) transposed Jacobian; the formula uses its transpose.
        h: (n,) activations; rows of J with h not zero are ignored.
        e: (6,) right side.
        lambda2: lambda^2 of the damping law.
        y: (6,) solution, written.

    Returns:
        False, without a solution, if a pivot is too small relative to the largest diagonal entry.
    """
    # Compute the lower triangle of J J^T + lambda^2 I.
    a00 = a11 = a22 = a33 = a44 = a55 = lambda2
    a10 = a20 = a21 = a30 = a31 = a32 = a40 = a41 = a42 = a43 = 0.0
    a50 = a51 = a52 = a53 = a54 = 0.0
    for j in range(J.shape[0]):
        if h[j] != 0.0:
            continue
        c0, c1, c2, c3, c4, c5 = J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5]
        a00 += c0 * c0
        a10, a11 = a10 + c1 * c0, a11 + c1 * c1
        a20, a21, a22 = a20 + c2 * c0, a21 + c2 * c1, a22 + c2 * c2
        a30, a31, a32, a33 = a30 + c3 * c0, a31 + c3 * c1, a32 + c3 * c2, a33 + c3 * c3
        a40, a41, a42 = a40 + c4 * c0, a41 + c4 * c1, a42 + c4 * c2
        a43, a44 = a43 + c4 * c3, a44 + c4 * c4
        a50, a51, a52 = a50 + c5 * c0, a51 + c5 * c1, a52 + c5 * c2
        a53, a54, a55 = a53 + c5 * c3, a54 + c5 * c4, a55 + c5 * c5
    b0, b1, b2, b3, b4, b5 = e[0], e[1], e[2], e[3], e[4], e[5]
    least = LEAST_PIVOT * max(a00, a11, a22, a33, a44, a55)

    # Eliminate column by column.
    if not a00 > least:
        return False
    d0 = 1.0 / a00
    l10, l20, l30, l40, l50 = a10 * d0, a20 * d0, a30 * d0, a40 * d0, a50 * d0
    a11 -= l10 * a10
    a21, a22 = a21 - l20 * a10, a22 - l20 * a20
    a31, a32, a33 = a31 - l30 * a10, a32 - l30 * a20, a33 - l30 * a30
    a41, a42, a43, a44 = a41 - l40 * a10, a42 - l40 * a20, a43 - l40 * a30, a44 - l40 * a40
    a51, a52, a53 = a51 - l50 * a10, a52 - l50 * a20, a53 - l50 * a30
    a54, a55 = a54 - l50 * a40, a55 - l50 * a50
    b1, b2, b3, b4, b5 = b1 - l10 * b0, b2 - l20 * b0, b3 - l30 * b0, b4 - l40 * b0, b5 - l50 * b0

    if not a11 > least:
        return False
    d1 = 1.0 / a11
    l21, l31, l41, l51 = a21 * d1, a31 * d1, a41 * d1, a51 * d1
    a22 -= l21 * a21
    a32, a33 = a32 - l31 * a21, a33 - l31 * a31
    a42, a43, a44 = a42 - l41 * a21, a43 - l41 * a31, a44 - l41 * a41
    a52, a53, a54, a55 = a52 - l51 * a21, a53 - l51 * a31, a54 - l51 * a41, a55 - l51 * a51
    b2, b3, b4, b5 = b2 - l21 * b1, b3 - l31 * b1, b4 - l41 * b1, b5 - l51 * b1

    if not a22 > least:
        return False
    d2 = 1.0 / a22
    l32, l42, l52 = a32 * d2, a42 * d2, a52 * d2
    a33 -= l32 * a32
    a43, a44 = a43 - l42 * a32, a44 - l42 * a42
    a53, a54, a55 = a53 - l52 * a32, a54 - l52 * a42, a55 - l52 * a52
    b3, b4, b5 = b3 - l32 * b2, b4 - l42 * b2, b5 - l52 * b2

    if not a33 > least:
        return False
    d3 = 1.0 / a33
    l43, l53 = a43 * d3, a53 * d3
    a44 -= l43 * a43
    a54, a55 = a54 - l53 * a43, a55 - l53 * a53
    b4, b5 = b4 - l43 * b3, b5 - l53 * b3

    if not a44 > least:
        return False
    d4 = 1.0 / a44
    l54 = a54 * d4
    a55 -= l54 * a54
    b5 -= l54 * b4
    if not a55 > least:
        return False

    # Substitute backward.
    y5 = b5 / a55
    y4 = b4 * d4 - l54 * y5
    y3 = b3 * d3 - l43 * y4 - l53 * y5
    y2 = b2 * d2 - l32 * y3 - l42 * y4 - l52 * y5
    y1 = b1 * d1 - l21 * y2 - l31 * y3 - l41 * y4 - l51 * y5
    y0 = b0 * d0 - l10 * y1 - l20 * y2 - l30 * y3 - l40 * y4 - l50 * y5
    y[0], y[1], y[2], y[3], y[4], y[5] = y0, y1, y2, y3, y4, y5
    return True


# Motion along the solutions -----------------------------------------------------------------------
# A redundant arm has a continuum of solutions for a pose. The arm moves along these solutions to
# the solution closest to the seed. Closeness is measured in the joint metric: the motion of each
# joint is multiplied by the square root of the weight of this joint.


# maximum number of steps; final steps that only correct the error
MAX_FAST_SLIDE_STEPS, NUM_CORRECTION_STEPS = 30, 6
MAX_SLIDE_MOTION = 0.5  # maximum motion of a joint in a step, in the joint metric
MIN_SLIDE_MOTION = (
    0.01  # motion of a joint, in the joint metric, below which the solution is close enough
)
# [rad] scaled error, as a rotation, above which a step only corrects the error
MAX_SLIDE_ERROR = 0.2


@force_inline
def slide(
    arm: SerialChain, stop: StopCriteria, starts: Starts, seed: Array, q: Array, work: FastWorkspace
) -> int:
    """Move a solution `q` along the self-motion of a redundant arm toward the seed.

    Each step is dq = z + P (e - J z), with z the path to the seed and P the pseudoinverse of the
    Jacobian J in the joint metric. To first order, dq ends closer to the seed than every other
    motion that corrects the error e. Arms with up to six joints do not move.

    Args:
        arm: The chain.
        stop: Tolerances of the pose.
        starts: Weights of the joint metric.
        seed: (n,) joint positions [rad or m].
        q: (n,) solution, read and written [rad or m].
        work: Holds the target and the kinematics of :func:`observe_arm` at q.

    Returns:
        The number of steps.
    """
    n, steps, error, arrived = q.shape[0], 0, 0.0, False
    far = MAX_SLIDE_ERROR * stop.rotation_weight  # [m]
    if n <= 6:
        return 0
    for steps in range(MAX_FAST_SLIDE_STEPS):
        arrived = arrived or steps >= MAX_FAST_SLIDE_STEPS - NUM_CORRECTION_STEPS
        toward = 0.0 if arrived or error > far else 1.0
        arm_jacobian_there(arm, stop.rotation_weight, work)
        toward_seed(starts.joint_weights, seed, q, toward, work.J, work.z, work.e)
        slide_step(arm.lower, arm.upper, starts.joint_weights, q, work)
        largest = shorten(starts.joint_weights, work.dq)
        for j in range(n):
            q[j] = min(max(q[j] + work.dq[j], arm.lower[j]), arm.upper[j])
        position, rotation = observe_arm(arm, stop.rotation_weight, q, work)
        error = norm3(work.e) + norm3(work.e[3:])
        if arrived and is_reached(stop, position, rotation, norm(work.e)):
            break
        arrived = arrived or (toward == 1.0 and largest < MIN_SLIDE_MOTION)
    return steps + 1


@force_inline
def toward_seed(
    weights: Array, seed: Array, q: Array, share: float, J: Array, z: Array, e: Array
) -> None:
    """Write the motion z toward the seed, subtract J z from e, and scale J to the joint metric.

    A step of :func:`slide` is dq = z + P (e - J z), with P the pseudoinverse of the Jacobian J. In
    the joint metric, the motion of a joint is multiplied by the square root of its weight.

    Args:
        weights: (n,) weights of the joints in the joint metric.
        seed: (n,) joint positions of the seed [rad or m].
        q: (n,) joint positions [rad or m].
        share: 1 to move toward the seed; 0 to set z to zero, so that the step only corrects e.
        J: (n, 6) transposed Jacobian, read and written: row j is divided by sqrt(weights[j]).
        z: (n,) motion toward the seed, written [rad or m]; shortened so that no joint moves by more
            than MAX_SLIDE_MOTION in the joint metric.
        e: (6,) scaled error [m], read and written: J z is subtracted.
    """
    largest = MAX_SLIDE_MOTION
    for j in range(q.shape[0]):
        z[j] = share * (seed[j] - q[j])
        largest = max(largest, abs(z[j]) * weights[j] ** 0.5)
    for j in range(q.shape[0]):
        z[j] *= MAX_SLIDE_MOTION / largest
        scale = weights[j] ** -0.5
        for i in range(6):
            e[i] -= J[j, i] * z[j]
            J[j, i] *= scale


@force_inline
def shorten(weights: Array, dq: Array) -> float:
    """Scale the whole step dq so that no joint moves by more than MAX_SLIDE_MOTION.

    Motions are measured in the joint metric, |dq[j]| sqrt(weights[j]).

    Args:
        weights: (n,) weights of the joints in the joint metric.
        dq: (n,) step, read and written [rad or m].

    Returns:
        The largest motion of a joint in the joint metric, before dq is scaled.
    """
    largest = 0.0
    for j in range(dq.shape[0]):
        largest = max(largest, abs(dq[j]) * weights[j] ** 0.5)
    if largest > MAX_SLIDE_MOTION:
        for j in range(dq.shape[0]):
            dq[j] *= MAX_SLIDE_MOTION / largest
    return largest


@force_inline
def slide_step(lower: Array, upper: Array, weights: Array, q: Array, work: FastWorkspace) -> None:
    """Write the step dq = z + P (e - J z) of :func:`slide` to ``work.dq``.

    z is the motion toward the seed, e the scaled error, and P the pseudoinverse of the Jacobian J.
    Each joint that dq would move beyond a limit is moved to the limit instead, and dq is solved
    again for the other joints.

    Args:
        lower, upper: (n,) limits [rad or m].
        weights: (n,) weights of the joints in the joint metric.
        q: (n,) joint positions [rad or m].
        work: Contains z, the remaining error e - J z in `e`, and the scaled J, which
            :func:`toward_seed` has written.
    """
    work.h.fill(0.0)
    again = True
    while again:
        solve_damped(0.0, work)
        again = hold_beyond(lower, upper, weights, q, work)
    for j in range(q.shape[0]):
        if work.h[j] == 0.0:
            work.dq[j] = work.z[j] + work.dq[j] * weights[j] ** -0.5


@force_inline
def hold_beyond(lower: Array, upper: Array, weights: Array, q: Array, work: FastWorkspace) -> bool:
    """Hold at a limit every free joint that z + P (e - J z) would move beyond this limit.

    In the joint metric, the motion of joint j is multiplied by sqrt(weights[j]), and row j of the
    transposed Jacobian is divided by it. P is the pseudoinverse of the Jacobian.

    Args:
        lower, upper: (n,) limits [rad or m].
        weights: (n,) weights of the joints in the joint metric.
        q: (n,) joint positions [rad or m].
        work: Contains the transposed Jacobian `J` in the joint metric, the motion `z` toward the
            seed, and in `dq`, for free joints, P (e - J z) in the joint metric. For joints that
            become held, the activation in `h` is set to 1, `dq` is set to the motion to the limit
            [rad or m], and the error that this motion corrects is subtracted from `e`.

    Returns:
        Whether any joint became held.
    """
    J, z, e, h, dq, again = work.J, work.z, work.e, work.h, work.dq, False
    for j in range(q.shape[0]):
        if h[j] == 0.0:
            there = q[j] + z[j] + dq[j] * weights[j] ** -0.5
            limit = min(max(there, lower[j]), upper[j])
            if limit != there:
                h[j], dq[j], again = 1.0, limit - q[j], True
                for i in range(6):
                    e[i] -= J[j, i] * weights[j] ** 0.5 * (dq[j] - z[j])
    return again
