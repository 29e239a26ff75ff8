# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Strategies with tasks of different priority: secondary tasks, and transitions at joint limits.

SRTP and AVOID add a secondary task with one row, grad^T dq = x, of lower priority than the pose.
IDV and CNS give the joint limits priority over the pose, as CTP does. The strategies compute the
motion z of the formula dq = z + C P (e - J z); core/limits.py has their ids.
"""

from math import cos, pi

import numpy as np

from dls_ik.core import limits
from dls_ik.core.inverses import add_correction, free_joints, remaining_error, round_excess
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.linalg import copy
from dls_ik.core.objectives import closest_link
from dls_ik.core.types import Array, Chain, GeneralProblem, MethodParams, StepMethod, Workspace

# SRTP ---------------------------------------------------------------------------------------------
# Singularity-robust task priority: the secondary task is solved on its own, and its solution is
# projected into the null space of the pose.
#
# dq = P e + (I - P J) J_c^* x with J_c = grad H^T and x = -mu |H| (Chiaverini 1997, (34)), which is
# the common formula with z = J_c^* x. The inverse of J_c (I - P J), which is singular where the two
# tasks conflict (algorithmic singularity), is not needed. J_c^* is the damped inverse of the row
# J_c. Its damping factor is that of numerical filtering, see :func:`secondary_damping`. The paper
# has any constraint as its secondary task; the objective H, with the rate -mu |H|, is a choice of
# this package.


@force_inline
def secondary_damping(params: MethodParams, square: float) -> float:
    """Return lambda^2 of the inverse of a secondary task with one row.

    lambda^2 is (1 - (s / epsilon)^2) lambda_max^2 if s < epsilon, else 0, as in the law JF.

    Args:
        params: Parameters epsilon and lambda_max.
        square: s^2, the squared length of the row.
    """
    share = square / (params.epsilon * params.epsilon)
    return (1.0 - share) * params.lambda_max * params.lambda_max if share < 1.0 else 0.0


@kernel
def solve_objective(params: MethodParams, mu: float, H: float, v: Array) -> None:
    """Replace the gradient v (n,) of an objective by the motion J_c^* x of the strategy SRTP.

    Args:
        params: Parameters epsilon and lambda_max of the damping.
        mu: Fraction of |H| by which the motion lowers the objective H.
        H: Value of the objective.
        v: (n,) gradient of H, replaced by the motion [rad or m].
    """
    square = 0.0
    for j in range(v.shape[0]):
        square += v[j] * v[j]
    square += secondary_damping(params, square)
    factor = -mu * abs(H) / square if square > 0.0 else 0.0
    for j in range(v.shape[0]):
        v[j] *= factor


# AVOID --------------------------------------------------------------------------------------------
# Obstacle avoidance by task priority: the point of the arm that is closest to an obstacle moves
# away from the obstacle, as far as the pose permits.
#
# dq = P e + a_h [J_o N]^+ (x - J_o P e) with N = I - P J (Maciejewski & Klein 1985). J_o is the
# derivative of the distance d of the closest point, one row, and x the motion away from the
# obstacle. The common formula gives this step for z = b J_o^T, where the factor b is such that
# J_o dq = x if a_h = 1. The gain a_h rises from 0 at the distance d_0 = influence to 1 at d_0 / 2.
# x is 0 above d_0 / 2, and mu d_0 / 2 min((d_0 / 2d)^2 - 1, 1) below. In the paper the gains also
# depend on the distance; their shapes, and the damping where pose and obstacle conflict, are
# choices of this package.

FULL_AVOIDANCE = 0.5  # fraction of the influence distance up to which the gain of the task is 1
LEAST_FREEDOM = 1e-12  # minimum J_o N J_o^T, relative to |J_o|^2; the task is ignored below it


@kernel
def avoidance_gain(distance: float, influence: float) -> float:
    """Return the gain a_h of the secondary task: 0 at the influence distance, 1 near the obstacle.

    Args:
        distance: Distance of the arm from the obstacle [m].
        influence: Distance below which the task has an effect [m].
    """
    near = FULL_AVOIDANCE * influence
    if distance >= influence:
        return 0.0
    if distance <= near:
        return 1.0
    return 0.5 * (1.0 + cos(pi * (distance - near) / (influence - near)))


@kernel
def avoidance_motion(mu: float, distance: float, influence: float) -> float:
    """Return x, the motion away from the obstacle in one step [m].

    Args:
        mu: Maximum motion, as a fraction of half the influence distance.
        distance: Distance of the arm from the obstacle [m].
        influence: Influence distance [m]; the motion is 0 from half this distance on.
    """
    near = FULL_AVOIDANCE * influence
    if distance >= near:
        return 0.0
    share = near * near - distance * distance
    return mu * near * min(share / max(distance * distance, 1e-300), 1.0)


@allocating
def avoid_obstacle(
    chain: Chain, step_method: StepMethod, general: GeneralProblem, lambda2: float, work: Workspace
) -> None:
    """Write the motion z of the strategy AVOID to ``work.limit.motion``.

    Args:
        chain: The chain of the arm.
        step_method: Damping law.
        general: Position of the obstacle, and its influence distance.
        lambda2: Squared damping factor lambda^2.
        work: The error `e`, the Jacobians `J` and `step.B`, and the forward kinematics are read.
    """
    limit, params, n = work.limit, general.params, work.dq.shape[0]
    row, moved, freed = np.empty(n), np.zeros(n), np.zeros(n)
    distance = closest_link(chain, general.obstacle, work.axes, work.T, row)
    gain = avoidance_gain(distance, params.influence)
    if gain == 0.0:
        return
    free = work.step.free[: free_joints(limit.activation, work.step.free)]
    r = work.e.shape[0]
    none, through = np.zeros(r), np.zeros(r)
    for i in range(r):
        for j in range(n):
            through[i] += work.J[i, j] * row[j]
    B, svd = work.step.B, work.last_svd
    add_correction(step_method, B, (work.e, work.e), lambda2, free, limit, svd, moved)  # P e
    add_correction(step_method, B, (none, through), lambda2, free, limit, svd, freed)  # P J J_o^T
    along, square, left = 0.0, 0.0, 0.0
    for j in range(n):
        along += row[j] * moved[j]
        square += row[j] * row[j]
        left += row[j] * (row[j] - freed[j])
    if not left > LEAST_FREEDOM * square:
        return
    x = avoidance_motion(step_method.method.mu, distance, params.influence)
    factor = gain * (x - along) / (left + secondary_damping(params, left))
    for j in range(n):
        limit.motion[j] = factor * row[j]


# IDV ----------------------------------------------------------------------------------------------
# Intermediate desired values: near its limit a joint follows a blend of the desired motion of its
# limit task and of the motion that it would make without this task.
#
# x_j = h_j z_j + (1 - h_j) dq_j, where dq is the step without the task of joint j (Lee, Mansard &
# Park 2012), and z_j = -mu (q_j - mid-range). The joint is then held at x_j, and the other joints
# correct the error. With h_j = 0 the joint moves as without its task, so that the step is
# continuous when a joint enters or leaves a margin, if the damping law minimises a norm (JP, JD,
# ED, IED, LM). If b joints have 0 < h < 1, one step is computed for each subset of their limit
# tasks, which takes 2^b inverses, as for CTP. The code has h and z of CTP; that z includes the
# factor h.


@allocating
def intermediate_values(
    step_method: StepMethod, lambda2: float, kept: Array, work: Workspace
) -> None:
    """Replace z by the intermediate desired values x of the strategy IDV; mark the joints as held.

    Args:
        step_method: Damping law.
        lambda2: Squared damping factor lambda^2.
        kept: (n,) copy of the activations h of the joint limits, written.
        work: The error `e` and the Jacobians `J` and `step.B` are read. In `limit`, the activation
            of each joint in a margin is set to 1, and the motion is replaced.
    """
    h, z, dq, B = work.limit.activation, work.limit.motion, work.dq, work.step.B
    n, left = h.shape[0], np.empty(work.e.shape[0])
    copy(h, kept)
    a, desired, between = h.copy(), z.copy(), np.empty(n, np.int64)
    count, num_between = round_excess(a), 0
    for j in range(n):
        if 0.0 < a[j] < 1.0:
            between[num_between] = j
            num_between += 1
    every = (1 << count) - 1
    # A row for each subset of the limit tasks (a bit mask), with the motions of these joints
    found = np.zeros((every + 1, count))
    for tasks in range(every + 1):
        for j in range(n):
            h[j] = 1.0 if a[j] == 1.0 else 0.0
            z[j] = desired[j] * h[j]
        for i in range(count):
            if (tasks >> i) & 1 == 1:
                j = between[i]
                h[j], z[j] = 1.0, desired[j] + (1.0 - a[j]) * found[tasks ^ (1 << i), i]
        if tasks == every:
            return  # the caller solves this step
        copy(z, dq)
        free = work.step.free[: free_joints(h, work.step.free)]
        remaining_error(work.J, work.e, z, left)
        errors = (work.e, left)
        add_correction(step_method, B, errors, lambda2, free, work.limit, work.last_svd, dq)
        for i in range(count):
            found[tasks, i] = dq[between[i]]


# CNS ----------------------------------------------------------------------------------------------
# Continuous null space: near its limit a joint makes only the share 1 - h of the step that corrects
# the error. One inverse suffices; the other joints do not compensate.
#
# dq = z + (I - H) P (e - J z), where I - H = I - V H V^T is the projector into the null space of
# the limit tasks, whose right singular vectors V are unit vectors, shaped by the activations
# (Dietrich, Albu-Schaeffer & Hirzinger 2012, for torques; here for joint motions). h and z are
# those of CTP.


@force_inline
def free_all(h: Array, kept: Array) -> None:
    """Copy the activations h (n,) to `kept` (n,), and set h to 0."""
    copy(h, kept)
    h.fill(0.0)


@force_inline
def shape_step(kept: Array, z: Array, dq: Array) -> None:
    """Multiply dq - z, the part of the step dq (n,) that corrects the error, by 1 - `kept` (n,)."""
    for j in range(dq.shape[0]):
        dq[j] = z[j] + (1.0 - kept[j]) * (dq[j] - z[j])


# Hooks of core/step.py ----------------------------------------------------------------------------


@kernel
def start_priorities(
    chain: Chain, step_method: StepMethod, general: GeneralProblem, lambda2: float, work: Workspace
) -> None:
    """Write the motion z of AVOID or IDV, or free the joints of CNS, before the step is solved.

    Args:
        chain: The chain of the arm.
        step_method: Limit strategy and damping law.
        general: Parameters of the strategy.
        lambda2: Squared damping factor lambda^2.
        work: As for :func:`avoid_obstacle` and :func:`intermediate_values`. `limit.axis` stores the
            activations until :func:`finish_priorities`.
    """
    strategy = step_method.method.limits
    if strategy == limits.AVOID:
        avoid_obstacle(chain, step_method, general, lambda2, work)
    elif strategy == limits.IDV:
        intermediate_values(step_method, lambda2, work.limit.axis, work)
    elif strategy == limits.CNS:
        free_all(work.limit.activation, work.limit.axis)


@kernel
def finish_priorities(strategy: int, work: Workspace) -> None:
    """Shape the step of CNS, and restore the activations of IDV and CNS.

    Args:
        strategy: Id of the limit strategy.
        work: `limit.axis` has the activations; `limit.activation` and `dq` are written.
    """
    if strategy == limits.CNS:
        shape_step(work.limit.axis, work.limit.motion, work.dq)
    if strategy == limits.IDV or strategy == limits.CNS:
        copy(work.limit.axis, work.limit.activation)
