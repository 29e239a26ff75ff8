# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Streaming through ROS 2: the node is started, poses go in, joint states come out.

The node is what `ros2 run dls_ik ik_node --ros-args -p robot:=wam` starts. A hundred times a second
a pose on a circle goes to `target_pose`; at last one pose stays, and the arm comes to it. Beside a
real arm the commands go to its driver instead: see docs/streaming.md.
"""

import signal
import subprocess
import sys
import time

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import JointState

from dls_ik import RobotModel
from dls_ik.ros.frames import pose_from_matrix

robot = RobotModel.wam()
start = [0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0]  # [rad]
options = ["-p", "robot:=wam", "-p", f"initial_positions:={start}"]
command = [sys.executable, "-m", "dls_ik.ros.node", "--ros-args", *options]

q = {}  # commanded positions by joint


def remember(message):
    """Keep what the node says of the joints."""
    q.update(zip(message.name, message.position, strict=True))


with rclpy.init(), subprocess.Popen(command) as ik_node:
    try:
        node = rclpy.create_node("circle")
        node.create_subscription(JointState, "joint_states", remember, 10)
        targets = node.create_publisher(PoseStamped, "target_pose", 1)
        while not (q and targets.get_subscription_count()):  # half a minute the very first time
            rclpy.spin_once(node, timeout_sec=0.1)
            if ik_node.poll() is not None:
                sys.exit("the node has ended")

        T = robot.fk(start)
        center = T[:3, 3] - [0.0, 0.1, 0.0]
        for angle in np.linspace(0.0, 2.0 * np.pi, 400):
            T[:3, 3] = center + 0.1 * np.array([0.0, np.cos(angle), np.sin(angle)])
            targets.publish(PoseStamped(pose=pose_from_matrix(T)))
            end = time.monotonic() + 0.01
            while (left := end - time.monotonic()) > 0.0:
                rclpy.spin_once(node, timeout_sec=left)
        error = np.inf
        while error > 1e-4:  # [m]
            rclpy.spin_once(node)
            tip = robot.fk([q[name] for name in robot.joint_names])
            error = np.linalg.norm(tip[:3, 3] - T[:3, 3])
        print(f"at the target, {1e3 * error:.3f} mm away")
    finally:
        ik_node.send_signal(signal.SIGINT)
