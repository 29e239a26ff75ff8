# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Planned motions as messages."""

from collections.abc import Callable
from typing import Any

import numpy as np
from moveit_msgs.msg import RobotState, RobotTrajectory
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dls_ik.core.types import Array
from dls_ik.ros.planning.setting import Setting
from dls_ik.ros.services.request import driven_joints
from dls_ik.servo.joint_spline import JointSpline
from dls_ik.solver.trajectory import NANOSECONDS_PER_SECOND

MAX_MESSAGE_INTERVAL = 0.1  # [s] largest time between two points of a trajectory message


def trajectory_from_spline(spline: JointSpline, setting: Setting) -> Any:
    """Return a trajectory as a ``moveit_msgs/RobotTrajectory``.

    The points have accelerations only if the spline has them. Between points with accelerations,
    drivers interpolate by polynomials of degree 5, which would not reproduce a motion whose
    acceleration jumps at the points. Positions are sampled at the rounded times of the message,
    since rounding after sampling would change the accelerations in short intervals.
    """
    message = JointTrajectory(joint_names=list(setting.robot.joint_names))
    message.header.frame_id = setting.robot.tree.root
    times = dense_times(spline)
    for nanoseconds in np.rint(times * NANOSECONDS_PER_SECOND).astype(np.int64).tolist():
        q, v, a = spline.at(nanoseconds / NANOSECONDS_PER_SECOND)
        point = JointTrajectoryPoint(positions=q.tolist(), velocities=v.tolist())
        if spline.a is not None:
            point.accelerations = a.tolist()
        sec, nanosec = divmod(nanoseconds, NANOSECONDS_PER_SECOND)
        point.time_from_start.sec, point.time_from_start.nanosec = sec, nanosec
        message.points.append(point)
    return RobotTrajectory(joint_trajectory=message)


def dense_times(spline: JointSpline, interval: float = MAX_MESSAGE_INTERVAL) -> Array:
    """Return the times [s] of all points, and of added points at most `interval` [s] apart."""
    parts = [
        np.linspace(a, b, max(int(np.ceil((b - a) / interval)), 1), endpoint=False)
        for a, b in zip(spline.times[:-1], spline.times[1:], strict=True)
    ]
    return np.concatenate([*parts, spline.times[-1:]])


def start_message(setting: Setting) -> Any:
    """Return the start of a motion as a ``moveit_msgs/RobotState`` of all movable joints."""
    tree = setting.robot.tree
    complete = tree.values({**setting.context.values, **setting.robot.named(setting.start)})
    state = RobotState()
    state.joint_state.header.frame_id = tree.root
    state.joint_state.name = driven_joints(tree)
    state.joint_state.position = [complete[name] for name in state.joint_state.name]
    return state


def limit_link_speed(
    spline: JointSpline, pose: Callable[[Array], Array], max_speed: float
) -> JointSpline:
    """Return a trajectory, slowed down as a whole so that a link keeps a maximum speed.

    Args:
        spline: Trajectory.
        pose: Function that returns the pose (4, 4) of the link at joint positions (n,).
        max_speed: Maximum linear speed [m/s]; 0 or less: no limit.
    """
    if not max_speed > 0.0:
        return spline
    times = dense_times(spline, 0.02)
    points = np.array([pose(spline.at(t)[0])[:3, 3] for t in times.tolist()])
    steps = np.maximum(np.diff(times), 1e-9)
    fastest = float((np.linalg.norm(np.diff(points, axis=0), axis=1) / steps).max(initial=0.0))
    return spline.stretched(max(1.0, fastest / max_speed))
