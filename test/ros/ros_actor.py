# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Client of actions, and goals of joint trajectories."""

import numpy as np
from action_msgs.msg import GoalStatus
from control_msgs.action import FollowJointTrajectory
from rclpy.action import ActionClient
from ros_client import READY
from ros_wam import WAM
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

SUCCEEDED, CANCELED, ABORTED = (
    GoalStatus.STATUS_SUCCEEDED, GoalStatus.STATUS_CANCELED, GoalStatus.STATUS_ABORTED,
)  # fmt: skip


class Sent:
    """Goal that was sent, with its feedback."""

    def __init__(self, actor, goal):
        self.client, self.feedback = actor.client, []
        call = actor.action.send_goal_async(goal, lambda m: self.feedback.append(m.feedback))
        self.client.spin_until(call.done, what="the answer to a goal")
        self.handle = call.result()
        self.call = self.handle.get_result_async() if self.handle.accepted else None

    def wait(self):
        """Return the final status and the result."""
        self.client.spin_until(self.call.done, what="the result of a goal")
        return self.call.result().status, self.call.result().result

    def cancel(self):
        call = self.handle.cancel_goal_async()
        self.client.spin_until(call.done, what="the answer to a cancel")
        return call.result()


class Actor:
    """Client of one action."""

    def __init__(self, client, kind, name):
        self.client, self.action = client, ActionClient(client.node, kind, name)
        client.spin_until(self.action.server_is_ready, READY, what=f"action {name}")

    def send(self, goal):
        return Sent(self, goal)

    def run(self, goal):
        return self.send(goal).wait()


def duration(message, seconds):
    message.sec, message.nanosec = divmod(round(seconds * 1e9), 10**9)


def trajectory(times, q, v=None, names=WAM.joint_names):
    """Return a trajectory message through positions (m, n), with velocities or without."""
    message = JointTrajectory(joint_names=list(names))
    for k, (time, row) in enumerate(zip(times, q, strict=True)):
        point = JointTrajectoryPoint(positions=[float(x) for x in row])
        point.velocities = [] if v is None else [float(x) for x in v[k]]
        duration(point.time_from_start, time)
        message.points.append(point)
    return message


def follow(times, q, v=None, **fields):
    """Return a goal of FollowJointTrajectory."""
    return FollowJointTrajectory.Goal(trajectory=trajectory(times, np.asarray(q), v), **fields)
