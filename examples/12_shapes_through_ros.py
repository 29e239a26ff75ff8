# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Several effectors through ROS 2: the Y of Buss & Kim 2004, whose two tips follow a target each.

The node moves both tips by SDLS; each has its own topic, target_pose/E0 and target_pose/E1. The
figure compares the distances from the targets with those of `dls-ik reproduce`. With the argument
`double_y`, the shape has four tips.
"""

import signal
import subprocess
import sys
import time
from tempfile import mkdtemp

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from matplotlib.figure import Figure
from sensor_msgs.msg import JointState

from dls_ik.model import share_file
from dls_ik.reproduce.buss_kim_shapes import CODE_MENDED, DOUBLE_Y, Y, start
from dls_ik.ros.frames import pose_from_matrix

shape = DOUBLE_Y if "double_y" in sys.argv else Y
robot, Ts = shape.robot(), shape.targets(0.005 * np.arange(1, 501))  # (500, k, 4, 4)
command = f"""dls_ik.ros.node --ros-args -p robot:={share_file("urdf", shape.file)} -p rate:=50.0
    -p groups:=[all] -p group.all.tip:=[{",".join(shape.tips)}] -p stream_group:=all
    -p stream_method:=sdls+clamp -p free_axes:=[rx,ry,rz] -p acceleration:=[.inf]
    -p initial_positions:=[{",".join(["0.0"] * robot.n)}] -p stream_avoid_collisions:=none"""
q, found = {}, []  # commanded positions by joint; distances of the tips from their targets
with rclpy.init(), subprocess.Popen([sys.executable, "-m", *command.split()]) as ik_node:
    try:
        node = rclpy.create_node("shape")
        store = lambda states: q.update(zip(states.name, states.position, strict=True))  # noqa: E731
        node.create_subscription(JointState, "joint_states", store, 10)
        topics = [node.create_publisher(PoseStamped, f"target_pose/{tip}", 1) for tip in shape.tips]
        while not (q and all(topic.get_subscription_count() for topic in topics)):
            rclpy.spin_once(node, timeout_sec=0.1)
            if ik_node.poll() is not None:
                sys.exit("ik_node has exited; its messages give the reason")
        for T in Ts:
            for topic, pose in zip(topics, T, strict=True):
                topic.publish(PoseStamped(pose=pose_from_matrix(pose)))
            end = time.monotonic() + 0.02
            while (left := end - time.monotonic()) > 0.0:
                rclpy.spin_once(node, timeout_sec=left)
            tips = robot.fk([q[name] for name in robot.joint_names])
            found.append(np.linalg.norm((tips - T)[:, :3, 3], axis=1))
    finally:
        ik_node.send_signal(signal.SIGINT)
steps = start(robot, "SDLS", CODE_MENDED, shape).run(Ts, len(Ts))
paper = np.linalg.norm((robot.fk(steps.q[1:]) - Ts)[..., :3, 3], axis=-1)
axes = (figure := Figure(figsize=(7.0, 4.0), layout="constrained")).subplots(1, 2, sharey=True)
for panel, name, distances in zip(axes, ("ik_node", "reproduction"), (found, paper), strict=True):
    print(f"{name}: mean distances", *(f"{mean:.3f}" for mean in np.mean(distances[100:], axis=0)))
    panel.semilogy(distances)
    panel.set(title=f"{shape.name}, {name}", xlabel="target", ylabel="distance from the target")
figure.savefig(file := mkdtemp(prefix="dls_ik_") + "/shapes.png")
print(f"saved {file}")
