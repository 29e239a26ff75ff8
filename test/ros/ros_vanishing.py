# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Client process that sends goals and requests, says so, and waits to be killed.

Arguments: the namespace of the node, and the names of actions and services.
"""

import sys
import threading

from control_msgs.action import FollowJointTrajectory
from moveit_msgs.action import MoveGroup
from moveit_msgs.msg import MotionPlanRequest
from moveit_msgs.srv import GetCartesianPath, GetMotionPlan
from rclpy.action import ActionClient
from ros_actor import follow
from ros_client import Client
from ros_goals import long_path, pose_goal
from ros_streamer import HOME
from ros_wam import WAM

SENT = "sent"


def goals():
    """Return the type and the goal of each action."""
    moved = WAM.fk(HOME)
    moved[2, 3] += 0.03
    request = MotionPlanRequest(goal_constraints=[pose_goal(moved)], allowed_planning_time=5.0)
    move = MoveGroup.Goal(request=request)
    return {
        "dls_ik/follow_joint_trajectory": (FollowJointTrajectory, follow([2.0], [HOME + 0.2])),
        "dls_ik/move_to_pose": (MoveGroup, move),
    }


def requests():
    """Return the type and the request of each service."""
    plan = MotionPlanRequest(
        goal_constraints=[pose_goal(WAM.fk(HOME + 0.3))], allowed_planning_time=2.0
    )
    return {
        "plan_kinematic_path": (GetMotionPlan, GetMotionPlan.Request(motion_plan_request=plan)),
        "compute_cartesian_path": (GetCartesianPath, long_path()),
    }


def send(client, name):
    """Send the goal or the request of an action or a service."""
    if name in goals():
        kind, goal = goals()[name]
        action = ActionClient(client.node, kind, name)
        client.spin_until(action.server_is_ready, what=name)
        call = action.send_goal_async(goal)
        client.spin_until(call.done, what="an answer")
        assert call.result().accepted
        call.result().get_result_async()
    else:
        kind, request = requests()[name]
        service = client.node.create_client(kind, name)
        client.spin_until(service.service_is_ready, what=name)
        service.call_async(request)


def main(namespace, *names):
    client = Client(namespace, name="vanishing")
    for name in names:
        send(client, name)
    client.spin_for(0.1)
    print(SENT, flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
