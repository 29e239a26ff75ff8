# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint motions that a running node executes, within its limits and collision-free."""

import time
from typing import Any

import numpy as np
from rclpy.action import ActionClient

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.ros.arm import controller_options
from dls_ik.ros.client.connection import NoAnswerError, ServiceMissingError, wait_until
from dls_ik.ros.client.constraints import pose_constraints
from dls_ik.ros.client.target_publisher import ignore_sigint
from dls_ik.ros.planning.setting import DEFAULT_VELOCITY
from dls_ik.ros.recording.running_node import RunningNode
from dls_ik.ros.servo.outputs import set_time
from dls_ik.servo import ControllerOptions
from dls_ik.servo.joint_motion import MotionLimits
from dls_ik.servo.joint_spline import JointSpline
from dls_ik.servo.options import motion_limits
from dls_ik.servo.spline_timing import time_segments
from dls_ik.solver.trajectory import NANOSECONDS_PER_SECOND

# Actions in the namespace of the node
FOLLOW_NAME = "follow_joint_trajectory"
MOVE_NAME = "move_to_pose"
SAME_POSITION = 1e-4  # [rad or m] joint positions with a smaller difference are equal
RESULT_TIMEOUT = 30.0  # [s] maximum time after the planned end of a motion until its result
PLANNING_TIMEOUT = 120.0  # [s] maximum time until the result of a motion that the node plans
COLLISION_WORDS = "would collide"  # part of the node's message about a colliding trajectory


class MotionRefusedError(DlsIkError):
    """A motion that the node refused or aborted; the message gives its reason."""


def positions_of(source: RunningNode) -> Array:
    """Return the current joint positions (n,) of the arm of a node [rad or m]."""
    found = source.positions()
    return np.array([found[name] for name in source.message_names])


def is_at(source: RunningNode, q: Array) -> bool:
    """Return whether all joints of a node's arm are within SAME_POSITION of q (n,) [rad or m]."""
    return bool(np.abs(positions_of(source) - q).max() < SAME_POSITION)


class JointMotion:
    """Client of the actions by which a node moves its arm.

    Args:
        source: Connection to the node.

    Raises:
        ServiceMissingError: If the node does not serve ``~/follow_joint_trajectory``.
        DlsIkError: If the robot of the node is not known.
    """

    def __init__(self, source: RunningNode) -> None:
        from control_msgs.action import FollowJointTrajectory

        self._source, self.robot = source, source.described.robot
        self._goal_type = FollowJointTrajectory.Goal
        self._follow = ActionClient(
            source.node, FollowJointTrajectory, f"{source.name}/{FOLLOW_NAME}"
        )
        patience = source.patience if source.parameters.motion_actions else 0.0
        deadline = time.monotonic() + patience
        if not wait_until(self._follow.server_is_ready, deadline):
            raise ServiceMissingError(
                f"no action {source.full_name}/{FOLLOW_NAME}; start the node with "
                "motion_actions:=true, and install control_msgs; a replay of targets with "
                "--no-start needs no action"
            )
        self.limits = joint_limits(source)

    def positions(self) -> Array:
        """Return the current joint positions (n,) [rad or m]."""
        return positions_of(self._source)

    def move_to(self, q: Array) -> str:
        """Move to joint positions, straight if possible, otherwise around obstacles.

        Args:
            q: (n,) joint positions [rad or m].

        Returns:
            Reason why the motion was not straight; empty for a straight motion.

        Raises:
            MotionRefusedError: If the node finds no motion, or aborts it.
        """
        if is_at(self._source, q):
            return ""
        try:
            self.follow(self._straight(q))
            return ""
        except MotionRefusedError as error:
            if COLLISION_WORDS not in str(error):
                raise
            reason = str(error)
        self._move_tip(self.robot.fk(q))
        if not is_at(self._source, q):
            self.follow(self._straight(q))
        return f"not straight: {reason}"

    def follow(self, spline: JointSpline) -> None:
        """Move along a trajectory from the current positions, and wait for the end.

        Raises:
            MotionRefusedError: If the node refuses the trajectory, or aborts the motion.
        """
        goal = self._goal_type()
        fill_trajectory(goal.trajectory, self.robot.joint_names, spline)
        result = self._run(self._follow, goal, spline.duration + RESULT_TIMEOUT)
        if result.error_code:
            raise MotionRefusedError(result.error_string or f"code {result.error_code}")

    def _straight(self, q: Array) -> JointSpline:
        """Return the fastest straight motion from the current positions to q (n,) [rad or m]."""
        return time_segments(np.array([self.positions(), q]), self.limits)

    def _move_tip(self, T: Array) -> None:
        """Move the tip to a pose ``T_base_tip`` (4, 4) by ~/move_to_pose.

        Raises:
            MotionRefusedError: If the node does not serve the action, or refuses the goal.
        """
        from moveit_msgs.action import MoveGroup
        from moveit_msgs.msg import MotionPlanRequest

        source = self._source
        action = ActionClient(source.node, MoveGroup, f"{source.name}/{MOVE_NAME}")
        if not wait_until(action.server_is_ready, time.monotonic() + source.patience):
            raise MotionRefusedError(
                f"no action {source.full_name}/{MOVE_NAME}, which plans around obstacles; start "
                "the node with motion_actions:=true"
            )
        constraints = pose_constraints(T, self.robot.tip, self.robot.base)
        request = MotionPlanRequest(goal_constraints=[constraints], allowed_planning_time=5.0)
        result = self._run(action, MoveGroup.Goal(request=request), PLANNING_TIMEOUT)
        if result.error_code.val != result.error_code.SUCCESS:
            reason = getattr(result.error_code, "message", "")
            raise MotionRefusedError(reason or f"code {result.error_code.val}")

    def _run(self, action: Any, goal: Any, timeout: float) -> Any:
        """Send a goal, and return its result; Ctrl-C cancels the goal, so that the arm stops.

        Raises:
            NoAnswerError: If no result arrives within `timeout` [s].
            MotionRefusedError: If the goal is not accepted.
        """
        sent = action.send_goal_async(goal)
        if not wait_until(sent.done, time.monotonic() + self._source.patience):
            raise NoAnswerError(
                f"the node does not answer a goal within {self._source.patience:g} s"
            )
        handle = sent.result()
        if not handle.accepted:
            raise MotionRefusedError("the node rejects the goal; its log has the reason")
        ended = handle.get_result_async()
        try:
            if not wait_until(ended.done, time.monotonic() + timeout):
                raise NoAnswerError(f"no result of a motion within {timeout:.3g} s")
        except BaseException:
            with ignore_sigint():  # a second Ctrl-C must not keep the arm from being stopped
                handle.cancel_goal_async()
                wait_until(ended.done, time.monotonic() + self._source.patience)
            raise
        return ended.result().result


def joint_limits(source: RunningNode) -> MotionLimits:
    """Return the limits of joint motions, computed from the robot and parameters of a node.

    Raises:
        DlsIkError: If the parameter `scale` is 0, or the robot of the node is not known.
    """
    robot, parameters = source.described.robot, source.parameters
    options = ControllerOptions(**controller_options(robot, parameters))
    if options.scale == 0.0:
        raise DlsIkError("the parameter scale of the node is 0; set it above 0 to move the arm")
    acceleration, jerk = motion_limits(options, robot)
    velocity = np.where(np.isfinite(robot.velocity), robot.velocity, DEFAULT_VELOCITY)
    return MotionLimits(options.scale * velocity, options.scale * acceleration, jerk)


def fill_trajectory(message: Any, names: tuple[str, ...], spline: JointSpline) -> None:
    """Fill a ``trajectory_msgs/JointTrajectory`` with the points of a trajectory.

    The first point is left out, since the motion starts at the current position.
    """
    from trajectory_msgs.msg import JointTrajectoryPoint

    message.joint_names = list(names)
    for t, q, v in zip(spline.times[1:], spline.q[1:], spline.v[1:], strict=True):
        point = JointTrajectoryPoint(positions=q.tolist(), velocities=v.tolist())
        set_time(point.time_from_start, round(float(t) * NANOSECONDS_PER_SECOND))
        message.points.append(point)
