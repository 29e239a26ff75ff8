# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Actions of ``ik_node``, selected by its parameters."""

from control_msgs.action import FollowJointTrajectory
from moveit_msgs.action import MoveGroup

from dls_ik.ros.actions.follow import FOLLOW_ACTION, FollowJointTrajectoryAction
from dls_ik.ros.actions.goals import GoalServer
from dls_ik.ros.actions.motion import MotionContext
from dls_ik.ros.actions.move_group import POSE_ACTION, MoveGroupInterface, MoveToPoseAction
from dls_ik.ros.params import Parameters
from dls_ik.ros.util import Throttle


class MotionActions:
    """Servers of the actions of a node.

    Args:
        parameters: Parameters of the node.
        context: Node, arm, servo loop and scene.
    """

    def __init__(self, parameters: Parameters, context: MotionContext) -> None:
        self._goals = GoalServer(context.node, Throttle(context.node))
        self._interface = interface = MoveGroupInterface(context)
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
        self._interface.close()
