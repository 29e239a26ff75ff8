# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A SpaceMouse or a gamepad moves the tip through ROS 2, along the axes of the tool.

    python examples/09_jog_through_ros.py [made_up|spacemouse|gamepad]

Needs `pip install pyspacemouse` or `pygame-ce`; not tried on devices; the node takes m/s and rad/s.
"""

import signal
import subprocess
import sys
import time

import numpy as np

from dls_ik.ros.client import TargetPublisher

AT_STOP = np.array([0.1, 0.1, 0.1, 0.4, 0.4, 0.4])  # [m/s, rad/s]
REST, HELD = 0.08, 4  # share of the range that counts as rest; button that must be held
command = [sys.executable, "-m", "dls_ik.ros.node", "--ros-args", "-p", "robot:=wam"]


def spacemouse():
    """Yield x, y, z, roll, pitch and yaw, from -1 to 1."""
    import pyspacemouse

    device = pyspacemouse.open(axis_convention=pyspacemouse.AxisConvention.ROS)
    while True:
        yield [device.read()[name] for name in ("x", "y", "z", "roll", "pitch", "yaw")]


def gamepad():
    """Yield the same: the left stick moves to and fro, the right one up, down and around."""
    import pygame

    pygame.init()
    stick = pygame.joystick.Joystick(0)
    while True:
        pygame.event.pump()
        right, back, turn, down = (stick.get_axis(k) for k in (0, 1, 3, 4))
        yield [-back, -right, -down, 0, 0, -turn] if stick.get_button(HELD) else [0] * 6


def made_up():
    """Yield three seconds without a device: down, and up half as far."""
    yield from [[0, 0, -1, 0, 0, 0.5]] * 100 + [[0, 0, 1, 0, 0, 0.5]] * 50


source = {"spacemouse": spacemouse, "gamepad": gamepad}.get(sys.argv[-1], made_up)
with subprocess.Popen(command) as ik_node, TargetPublisher(patience=90) as publisher:
    try:
        begin = publisher.wait().tip
        for axes in map(np.array, source()):
            publisher.send_twist(AT_STOP * axes * (abs(axes) > REST), "wam_tip")
            time.sleep(0.02)
        publisher.stop()
        way = np.linalg.norm(publisher.monitor.rows[-1].tip[:3, 3] - begin[:3, 3])
        print(f"the tip is {1e3 * way:.0f} mm from where it was")
    finally:
        ik_node.send_signal(signal.SIGINT)
