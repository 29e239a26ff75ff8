# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Closed-loop inverse kinematics in 40 lines of NumPy: damped least squares on the Barrett WAM.

The robot model gives the pose and the Jacobian; all the rest of the method is here. The solver
adds joint limits, restarts, and every other method, in kernels.
"""

import numpy as np

from dls_ik import RobotModel

robot = RobotModel.wam()
rng = np.random.default_rng(1)
q = robot.random(rng=rng)  # (7,) start configuration [rad]
T_d = robot.fk(robot.random(rng=rng))  # (4, 4) target pose T_base_tip [m]
w = 0.5  # [m/rad] a rotation error of 2 rad counts as 1 m


def rotation_vector(R):
    """Axis times angle [rad] of a rotation by less than half a turn."""
    vee = 0.5 * np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    sine = np.linalg.norm(vee)
    angle = np.arctan2(sine, 0.5 * (np.trace(R) - 1.0))
    return vee if sine < 1e-12 else angle / sine * vee


for iteration in range(250):
    T = robot.fk(q)
    rotation = rotation_vector(T_d[:3, :3] @ T[:3, :3].T)
    e = np.concatenate([T_d[:3, 3] - T[:3, 3], w * rotation])  # (6,) scaled error [m]
    print(f"{iteration:3d}  |e| = {np.linalg.norm(e):.2e} m")
    if np.linalg.norm(e) < 1e-6:
        break
    J = robot.jacobian(q)  # (6, 7) linear rows first
    J[3:] *= w
    lambda2 = 0.5 * (e @ e)  # the farther away, the heavier the damping: ED of Colome & Torras 2012
    q = q + J.T @ np.linalg.solve(J @ J.T + lambda2 * np.eye(6), e)

inside = robot.within_limits(q)
print(f"q = {np.round(q, 4)}, {'inside' if inside else 'not inside'} the joint limits")
