# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Actions of ``ik_node``, selected by its parameters."""

from collections.abc import Callable

from control_msgs.action import FollowJointTrajectory
from moveit_msgs.action import MoveGroup
from rclpy.node import Node

from dls_ik.ros.actions.follow import FOLLOW_ACTION, FollowJointTrajectoryAction
from dls_ik.ros.actions.goals import GoalServer
from dls_ik.ros.actions.motion import MotionContext
from dls_ik.ros.actions.move_group import MoveGroupInterface
from dls_ik.ros.actions.move_to_pose import POSE_ACTION, MoveToPoseAction
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import Parameters
from dls_ik.ros.services.scene_monitor import PlanningSceneMonitor
from dls_ik.ros.servo.cycle import ServoCycle
from dls_ik.ros.util import Throttle


class MotionActions:
    """Servers of the actions of a node.

    Args:
        node: ROS node.
        parameters: Parameters of the node.
        arm: Function that returns the arm in use, or raises a RequestError without an arm.
        cycle: Cycle of the servo loop, which moves the arm.
        frames: Lookup of frames.
        scenes: Planning scene of the robot in use.
    """

    def __init__(
        self,
        node: Node,
        parameters: Parameters,
        arm: Callable[[], Arm],
        cycle: ServoCycle,
        frames: Frames,
        scenes: PlanningSceneMonitor,
    ) -> None:
        self._goals = GoalServer(node, Throttle(node))
        context = MotionContext(node, arm, cycle, frames, scenes)
        interface = MoveGroupInterface(context)
        if parameters.motion_actions:
            follow = FollowJointTrajectoryAction(context)
            self._goals.serve(FollowJointTrajectory, FOLLOW_ACTION, follow.run)
            self._goals.serve(MoveGroup, POSE_ACTION, MoveToPoseAction(interface).run)
        if parameters.move_group_interface:
            interface.serve(self._goals)

    def start(self) -> None:
        """Start the thread that receives goals."""
        self._goals.start()

    def close(self) -> None:
        """Cancel all goals, and stop receiving goals."""
        self._goals.close()
