# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Simulated environment of servo cycles: a clock that the test advances, and a driver."""

import math

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from rclpy.serialization import serialize_message
from robots import URDF
from sensor_msgs.msg import JointState

from dls_ik import RobotModel
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, pose_from_matrix
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo import state_monitor
from dls_ik.ros.servo.cycle import ServoCycle
from dls_ik.ros.servo.state_monitor import DISCOVERY_TIME, CurrentStateMonitor, Echo
from dls_ik.ros.servo.target_buffer import Arrival
from dls_ik.ros.util import Throttle

DT = 0.01
AHEAD = 5000.0  # [s] lead of the driver's clock


class FakeNode:
    """Minimal node with joint states and a log."""

    def __init__(self):
        self.publishers, self.listeners, self.lines = 0, [], []
        self.timers = []

    def resolve_topic_name(self, name):
        return f"/{name}"

    def create_timer(self, period, callback, clock):
        self.look_out = callback

    def create_guard_condition(self, callback):
        self.look_out = callback

    def count_publishers(self, topic):
        return self.publishers

    def create_subscription(self, kind, topic, callback, qos, raw):
        self.listeners.append(callback)
        return callback

    def destroy_subscription(self, listener):
        self.listeners.remove(listener)

    def get_logger(self):
        return self

    def warning(self, line):
        self.lines.append(line)

    info = warning


class World:
    """Servo cycles of a planar arm, with a driver and a clock that `run` advances."""

    def __init__(
        self, monkeypatch, display_only=True, shares=True, has_stop_trajectory=False, **parameters
    ):
        self.now = 1000.0
        self.epoch = None  # [ns] time of the stamps when `now` is 0; None: no clock
        monkeypatch.setattr(state_monitor.time, "monotonic", lambda: self.now)
        self.node = FakeNode()
        self.node.publishers = int(shares)
        self.echo = Echo() if shares else None
        self.states = CurrentStateMonitor(self.node, self.echo, display_only)
        log = Throttle(self.node, clock=lambda: self.now)
        self.stream = ServoCycle(self.states, Frames(), log, display_only, has_stop_trajectory)
        self.robot = RobotModel.from_urdf(URDF / "planar_2r.urdf")
        given = {"acceleration": [math.inf], **parameters}
        self.arm = Arm(self.robot, Parameters().changed(given))
        self.stream.use(self.arm)
        self.now += 2.0 * DISCOVERY_TIME
        self.last = None  # [s] time of the last cycle

    def add_driver(self, q, names=("joint1", "joint2")):
        self.node.publishers += 1
        self.node.look_out()
        self.driver = JointState(name=list(names), position=list(map(float, q)))

    def run(self, cycles=1, target=None, driver=False, lag=0.0):
        """Run cycles, each with a target or none; return the report of the last cycle.

        Args:
            driver: Whether its joint states arrive in each cycle.
            lag: Time since the driver sent the joint states [s].
        """
        for _ in range(cycles):
            self.now += DT
            if driver:
                sent = round(1e9 * (self.now + AHEAD - lag))
                for listener in self.node.listeners:
                    listener(serialize_message(self.driver), {"source_timestamp": sent})
            arrival = None if target is None else Arrival(target, self.now, 1)
            outcome = self.cycle(arrival)
        return outcome

    def cycle(self, arrival=None, stamp=None):
        """Run a cycle now."""
        gap = DT if self.last is None else self.now - self.last
        self.last = self.now
        return self.stream.run(self.now, self.stamp if stamp is None else stamp, gap, arrival)

    @property
    def stamp(self):
        """Time now by the clock of the stamps [ns]."""
        return 0 if self.epoch is None else self.epoch + round(1e9 * self.now)

    def target(self, q, frame=""):
        stamped = PoseStamped(pose=pose_from_matrix(self.robot.fk(q)))
        stamped.header.frame_id = frame
        return stamped


def controlled(monkeypatch, **given):
    """Return a world whose commands move an arm, instead of being displayed."""
    return World(monkeypatch, display_only=False, shares=False, **given)


def near(q, tolerance=1e-5):
    return pytest.approx(np.asarray(q, float), abs=tolerance)
