"""The stream of a soak: sends a moving target, and checks every command."""

import time
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from sensor_msgs.msg import JointState

from benchmarks.idle_loop import Lateness
from benchmarks.stream_client import Inbox
from dls_ik import RobotModel
from dls_ik.ros.frames import fill_pose

START = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])  # [rad] of the WAM
SWING = np.array([0.5, 0.3, 0.3, 0.5, 0.4, 0.4, 0.6])  # [rad] to either side
PERIODS = np.array([7.0, 5.0, 11.0, 6.0, 9.0, 4.0, 3.0])  # [s] of each joint's swing
TIGHT = 1e-9  # [rad] beyond a limit


class Commands:
    """Sends the current target and reads commands; its node is in no executor.

    Args:
        name: namespace of the node.
        rate: of the node [Hz].
    """

    def __init__(self, node: Node, name: str, rate: float) -> None:
        self._robot = RobotModel.wam()
        self._lateness = Lateness(1.0 / rate)
        self._message = PoseStamped()
        self._targets = node.create_publisher(PoseStamped, f"/{name}/target_pose", 1)
        self._commands = Inbox(node, JointState, f"/{name}/joint_states")
        self._reports = Inbox(node, DiagnosticArray, "/diagnostics")
        self._begin = time.monotonic()
        self.cycles = self.overruns = 0  # that the node counts
        self.q = START

    @property
    def is_connected(self) -> bool:
        """True if the node has subscribed to targets."""
        return bool(self._targets.get_subscription_count())

    def send(self) -> None:
        """Send the target of now, which the arm can reach and follow."""
        phase = 2.0 * np.pi * (time.monotonic() - self._begin) / PERIODS
        self._T = self._robot.fk(START + SWING * np.sin(phase))
        fill_pose(self._message.pose, self._T)
        self._targets.publish(self._message)

    def look(self) -> dict[str, Any]:
        """Check the messages since the last call.

        Returns:
            Lateness of the cycles [s], number of commands and of those out of bounds, distance of
            the newest from the target [m], and the counts of the node.
        """
        heard = self._commands.take()
        for message in self._reports.take():
            values = {pair.key: pair.value for pair in message.status[0].values}
            self.cycles, self.overruns = int(values["cycles"]), int(values["overruns"])
        late = self._lateness.of(m.header.stamp.sec + 1e-9 * m.header.stamp.nanosec for m in heard)
        broken = 0
        if heard:
            q, v = (np.array([getattr(m, f) for m in heard]) for f in ("position", "velocity"))
            inside = self._robot.within_limits(q, TIGHT)
            slow = (np.abs(v) <= self._robot.velocity * (1.0 + 1e-9)).all(axis=1)
            broken, self.q = int((~(inside & slow)).sum()), q[-1]
        away = float(np.linalg.norm(self._robot.fk(self.q)[:3, 3] - self._T[:3, 3]))
        counts = {"cycles": self.cycles, "overruns": self.overruns}
        return {"late": late, "commands": len(heard), "broken": broken, "away": away, **counts}
