"""What a node says of its stream, as it came."""

import time
from collections import deque
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, qos_profile_sensor_data
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.ros.bounded import subscribe_bounded, with_news
from dls_ik.ros.conversions import matrix_from_pose
from dls_ik.ros.logs import Throttle
from dls_ik.servo.state import ServoState

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

QUEUE = QoSProfile(depth=10)
UNKNOWN = "UNKNOWN"  # a state that no message names
RECENT = 4  # cycles whose messages may come in another order


class Row(NamedTuple):
    """One cycle of the node, as it was heard."""

    time: float  # steady [s]
    state: str  # a name of ServoState, or UNKNOWN
    words: str
    frame: str  # of the tip: the root of the robot
    tip: Array  # (4, 4) T_root_tip
    target: Array | None  # (4, 4) what was sent last, in the root frame; None: no pose there
    q: dict[str, float]  # [rad or m] by joint, of the same cycle where the node says so
    stamp: tuple[int, int] = (0, 0)  # of the tip, which joint_states of that cycle have too

    def errors(self) -> tuple[float, float]:
        """From tip to target, [m] and [rad]; nan where there is no target."""
        if self.target is None:
            return np.nan, np.nan
        turn = self.tip[:3, :3].T @ self.target[:3, :3]
        sine = 0.5 * np.array(
            [turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]
        )
        cosine = 0.5 * (np.trace(turn) - 1.0)
        rotation = float(np.arctan2(np.linalg.norm(sine), cosine))
        return float(np.linalg.norm(self.tip[:3, 3] - self.target[:3, 3])), rotation


class Heard:
    """Keeps a row for every pose of the tip that comes; other messages give what goes with it."""

    def __init__(self, node: Node, name: str) -> None:
        self.rows: list[Row] = []
        self.target: tuple[str, Array] | None = None  # what was sent last, with its frame
        self.state, self.words, self.state_time = UNKNOWN, "", -np.inf
        self.q: dict[str, float] = {}
        self._lately: deque[tuple[tuple[int, int], dict[str, float]]] = deque(maxlen=RECENT)
        subscribe = partial(subscribe_bounded, node, log=Throttle(node))
        if ServoStatus is not None:
            subscribe(ServoStatus, f"{name}/status", self._take_status, QUEUE)
        subscribe(PoseStamped, f"{name}/tip_pose", self._take_tip, QUEUE)
        subscribe(JointState, "joint_states", self._take_joints, qos_profile_sensor_data)

    def _take_status(self, message: Any, _: int = 0) -> None:
        self.state, self.words = state_name(message.code, message.message), message.message
        self.state_time = time.monotonic()

    def _take_joints(self, message: Any, _: int = 0) -> None:
        self.q = with_news(self.q, dict(zip(message.name, message.position, strict=False)))
        stamp = _stamp(message)
        self._lately.append((stamp, self.q))
        for i in range(len(self.rows) - 1, max(len(self.rows) - RECENT, 0) - 1, -1):
            if self.rows[i].stamp == stamp:  # they came after the tip of their cycle
                self.rows[i] = self.rows[i]._replace(q=self.q)

    def _take_tip(self, message: Any, _: int = 0) -> None:
        frame, tip = message.header.frame_id, matrix_from_pose(message.pose)
        target = None
        if self.target is not None and self.target[0] in ("", frame):
            target = self.target[1]
        stamp = _stamp(message)
        q = next((q for known, q in self._lately if known == stamp), self.q)
        now = time.monotonic()
        self.rows.append(Row(now, self.state, self.words, frame, tip, target, q, stamp))


def _stamp(message: Any) -> tuple[int, int]:
    return message.header.stamp.sec, message.header.stamp.nanosec


def state_name(code: int, words: str) -> str:
    """The state that a status is about: the node sends a number and a sentence."""
    for state in ServoState:
        if state.code == code and words.startswith(state.explanation):
            return state.name
    alike = [state.name for state in ServoState if state.code == code]
    return alike[0] if len(alike) == 1 else UNKNOWN
