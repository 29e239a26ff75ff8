# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Stacks of tasks with priorities: errors and Jacobians of all rows.

The rows of all levels are written one below the other. The kinds of rows:

ROW_FRAME: a component of the pose error of a frame, see core/task.py. The target is given in the
base frame or in another frame of the robot, whose motion then counts too.
ROW_LINEAR: c . q = v, for a posture or a coupling of joints.
ROW_SWIVEL: the swivel angle of the elbow of a 7-joint arm.
ROW_MASS: a component of the centre of mass.
ROW_OBJECTIVE: a component of the gradient of an objective H, see core/objectives.py. The n rows of
an objective have the error -grad H and the identity as Jacobian.

core/stack_motion.py computes steps that reduce these errors.
"""

from math import atan2, floor, pi, sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core import objectives
from dls_ik.core.jit import allocating, kernel
from dls_ik.core.kinematics import compose, forward, jacobian
from dls_ik.core.linalg import copy
from dls_ik.core.task import rows_from_tips, task_error
from dls_ik.core.types import Array, Chain, Indices, TaskParams

ROW_FRAME, ROW_LINEAR, ROW_SWIVEL, ROW_MASS, ROW_OBJECTIVE = range(5)
SHOULDER, ELBOW, WRIST = range(3)  # the first three points, if there is a swivel angle
# [m] minimum distance of the elbow from the line shoulder-wrist for a defined swivel angle
MIN_SWIVEL_RADIUS = 1e-6


class StackParams(NamedTuple):
    """Tasks of all levels: m rows, which refer to k frames and p points of the robot."""

    frames: Chain  # its k tips are the tips of the robot and the frames of further tasks
    # Its p tips are shoulder, elbow, wrist (for a swivel angle), centres of mass; unused if p is 0
    points: Chain
    task: TaskParams  # rows of the frames
    reference: Indices  # (k,) index of the frame in which a target is given, -1 for the base
    kind: Indices  # (m,) kind of each row, ROW_...
    number: Indices  # (m,) row of `task`, row of `linear`, or id of the objective
    part: Indices  # (m,) component of a centre of mass (0 to 2), or joint of an objective
    weight: Array  # (m,) factor of each row; unused for frames, whose weights are in `task`
    ends: Indices  # (l,) index after the last row of each level
    linear: Array  # (u, n) coefficients c of the linear rows
    value: Array  # (u,) desired values v of the linear rows
    swivel: Array  # (4,) desired swivel angle [rad], then the direction `up` of the angle 0
    mass: Array  # (p,) share of the robot's mass at each point; 0 for shoulder, elbow, wrist
    center: Array  # (3,) desired centre of mass minus the share of links that do not move [m]


@allocating
def stack_rows(stack: StackParams, T_d: Array, q: Array, e: Array, A: Array, cost: Array) -> None:
    """Write the errors and the Jacobians of all rows.

    Args:
        stack: The tasks.
        T_d: (k, 4, 4) desired poses of the frames, in the base frame or in the reference frame.
        q: (n,) joint positions [rad or m].
        e: (m,) scaled errors: the errors times their weights; written. Those of rotations are in
            [m], with the rotation weight, those of other rows in the unit of the row.
        A: (m, n) Jacobians: a small step dq changes e to e - A dq, but for objectives, whose rows
            are the identity times the weight; written.
        cost: (l,) cost of each level: half the squared norm of its rows without objectives, plus
            weight^2 H of its objectives; written.
    """
    n, k, r = A.shape[1], T_d.shape[0], stack.task.tip.shape[0]
    elements = stack.frames.prismatic.shape[0]
    axes, T, relative = np.empty((elements, 2, 3)), np.empty((k, 3, 4)), np.empty((3, 3))
    targets, J_tips = T_d.copy(), np.empty((6 * k, n))
    frame_e, full, frame_J = np.empty(r), np.empty(r), np.empty((r, n))
    forward(stack.frames, q, axes, T)
    jacobian(stack.frames, axes, T, J_tips)
    _refer(stack.reference, T, targets, J_tips)
    task_error(stack.task, targets, T, relative, full, frame_e)
    rows_from_tips(stack.task, targets, T, J_tips, relative, frame_J)
    p = stack.mass.shape[0]
    P, J_points = np.empty((p, 3, 4)), np.empty((6 * p, n))
    if p > 0:
        axes = np.empty((stack.points.prismatic.shape[0], 2, 3))
        forward(stack.points, q, axes, P)
        jacobian(stack.points, axes, P, J_points)
    gradient, start, H = np.empty(n), 0, 0.0
    for level in range(stack.ends.shape[0]):
        cost[level] = 0.0
        for i in range(start, stack.ends[level]):
            kind, index, part, weight = (
                stack.kind[i],
                stack.number[i],
                stack.part[i],
                stack.weight[i],
            )
            if kind == ROW_FRAME:
                e[i] = frame_e[index]
                copy(frame_J[index], A[i])
            elif kind == ROW_LINEAR:
                e[i] = weight * stack.value[index]
                for j in range(n):
                    A[i, j] = weight * stack.linear[index, j]
                    e[i] -= A[i, j] * q[j]
            elif kind == ROW_SWIVEL:
                angle = swivel_angle(stack.swivel[1:], P, J_points, A[i])
                e[i] = weight * (stack.swivel[0] - angle)
                e[i] -= weight * 2.0 * pi * floor((stack.swivel[0] - angle + pi) / (2.0 * pi))
                for j in range(n):
                    A[i, j] *= weight
            elif kind == ROW_MASS:
                e[i] = weight * stack.center[part]
                for j in range(n):
                    A[i, j] = 0.0
                for a in range(p):
                    e[i] -= weight * stack.mass[a] * P[a, part, 3]
                    for j in range(n):
                        A[i, j] += weight * stack.mass[a] * J_points[6 * a + part, j]
            else:
                if part == 0:
                    H = _objective(stack, index, targets, q, gradient)
                    cost[level] += weight * weight * H
                e[i] = -weight * gradient[part]
                for j in range(n):
                    A[i, j] = weight if j == part else 0.0
            if kind != ROW_OBJECTIVE:
                cost[level] += 0.5 * e[i] * e[i]
        start = stack.ends[level]


@allocating
def _refer(reference: Indices, T: Array, targets: Array, J_tips: Array) -> None:
    """Express targets that are given in another frame of the robot in the base frame.

    The motion of the reference frame at the origin of the frame is subtracted: the Jacobian becomes
    that of the motion relative to the reference frame.

    Args:
        reference: (k,) index of the frame in which each target is given, -1 for the base.
        T: (k, 3, 4) poses of the frames.
        targets: (k, 4, 4) desired poses, changed.
        J_tips: (6 k, n) geometric Jacobians of the frames, changed for frames with a reference.
    """
    product, motion = np.empty((3, 4)), J_tips.copy()
    for p in range(reference.shape[0]):
        r = reference[p]
        if r < 0:
            continue
        compose(T[r], targets[p, :3], product)
        targets[p, :3] = product
        x, y, z = T[p, 0, 3] - T[r, 0, 3], T[p, 1, 3] - T[r, 1, 3], T[p, 2, 3] - T[r, 2, 3]
        for j in range(J_tips.shape[1]):
            wx, wy, wz = motion[6 * r + 3, j], motion[6 * r + 4, j], motion[6 * r + 5, j]
            J_tips[6 * p, j] -= motion[6 * r, j] + wy * z - wz * y
            J_tips[6 * p + 1, j] -= motion[6 * r + 1, j] + wz * x - wx * z
            J_tips[6 * p + 2, j] -= motion[6 * r + 2, j] + wx * y - wy * x
            J_tips[6 * p + 3, j] -= wx
            J_tips[6 * p + 4, j] -= wy
            J_tips[6 * p + 5, j] -= wz


@kernel
def swivel_angle(up: Array, P: Array, J_points: Array, row: Array) -> float:
    """Return the swivel angle of the elbow, and write its derivatives.

    The elbow of a 7-joint arm can move on a circle about the line from the shoulder to the wrist
    (Tolani, Goswami & Badler 2000). The swivel angle is the angle on this circle, right-handed
    about the direction from the shoulder to the wrist. It is 0 where the elbow is displaced from
    the line as far as possible in the direction `up`.

    Args:
        up: (3,) unit vector in the base frame.
        P: (3 or more, 3, 4) frames at the shoulder, the elbow and the wrist.
        J_points: (18 or more, n) geometric Jacobians of these frames.
        row: (n,) derivatives by the joint positions, written; zero where the angle is undefined.

    Returns:
        The swivel angle [rad]; 0 where it is undefined.
    """
    # With a = (W - S) / |W - S| and v = E - S, the angle is atan2(Y, X) for
    # X = v . up - (a . v) (a . up) and Y = v . (a x up).
    ax, ay, az = (
        P[WRIST, 0, 3] - P[SHOULDER, 0, 3],
        P[WRIST, 1, 3] - P[SHOULDER, 1, 3],
        P[WRIST, 2, 3] - P[SHOULDER, 2, 3],
    )
    length = sqrt(ax * ax + ay * ay + az * az)
    vx, vy, vz = (
        P[ELBOW, 0, 3] - P[SHOULDER, 0, 3],
        P[ELBOW, 1, 3] - P[SHOULDER, 1, 3],
        P[ELBOW, 2, 3] - P[SHOULDER, 2, 3],
    )
    for j in range(row.shape[0]):
        row[j] = 0.0
    if length < MIN_SWIVEL_RADIUS:
        return 0.0
    ax, ay, az = ax / length, ay / length, az / length
    ux, uy, uz = up[0], up[1], up[2]
    nx, ny, nz = ay * uz - az * uy, az * ux - ax * uz, ax * uy - ay * ux
    av, au, vu = (
        ax * vx + ay * vy + az * vz,
        ax * ux + ay * uy + az * uz,
        vx * ux + vy * uy + vz * uz,
    )
    X, Y = vu - av * au, vx * nx + vy * ny + vz * nz
    square = X * X + Y * Y
    radius = MIN_SWIVEL_RADIUS**2 * (nx * nx + ny * ny + nz * nz)
    if square <= radius or radius < MIN_SWIVEL_RADIUS**4:
        return 0.0
    for j in range(row.shape[0]):
        sx, sy, sz = J_points[0, j], J_points[1, j], J_points[2, j]
        dvx, dvy, dvz = J_points[6, j] - sx, J_points[7, j] - sy, J_points[8, j] - sz
        wx, wy, wz = J_points[12, j] - sx, J_points[13, j] - sy, J_points[14, j] - sz
        along = ax * wx + ay * wy + az * wz
        dax, day, daz = (
            (wx - along * ax) / length,
            (wy - along * ay) / length,
            (wz - along * az) / length,
        )
        dX = dvx * ux + dvy * uy + dvz * uz
        dX -= (dax * vx + day * vy + daz * vz + ax * dvx + ay * dvy + az * dvz) * au
        dX -= av * (dax * ux + day * uy + daz * uz)
        dY = dvx * nx + dvy * ny + dvz * nz
        dY += vx * (day * uz - daz * uy) + vy * (daz * ux - dax * uz) + vz * (dax * uy - day * ux)
        row[j] = (X * dY - Y * dX) / square
    return atan2(Y, X)


@allocating
def _objective(
    stack: StackParams, objective: int, targets: Array, q: Array, gradient: Array
) -> float:
    """Write the gradient (n,) of an objective of the joint positions q (n,); return its value.

    Args:
        stack: Gives the limits of the joints, and the rows of the frames for the manipulability.
        objective: Id of the objective in core/objectives.py.
        targets: (k, 4, 4) desired poses in the base frame.
        q: (n,) joint positions [rad or m].
        gradient: (n,) written.
    """
    if objective == objectives.OBJECTIVE_LIMITS:
        return objectives.limits_gradient(stack.frames, q, gradient)
    if objective == objectives.OBJECTIVE_CENTRING:
        return objectives.centring_gradient(stack.frames, q, gradient)
    return objectives.manipulability_gradient(stack.frames, stack.task, targets, q, gradient)
