# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Topics that set targets of the task stack: swivel angle, posture, and relative pose of tips."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64

from dls_ik.errors import DlsIkError, PoseError
from dls_ik.ros.frames import matrix_from_pose, strip_slash
from dls_ik.ros.servo.target_buffer import RELATIVE_TOPIC, STREAM_QOS
from dls_ik.ros.subscriptions import subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller

SWIVEL_TOPIC, POSTURE_TOPIC = "~/swivel", "~/posture"
SWIVEL_PARAMETER, POSTURE_PARAMETER = "swivel", "posture"
RELATIVE_PARAMETER = "relative_pose"
NEWEST_QOS = QoSProfile(depth=1)

Submit = Callable[[Callable[[Controller], None]], None]


class RedundancyTopics:
    """Takes a swivel angle from ``~/swivel`` and a posture from ``~/posture``.

    A message sets the parameter of the same name if it is empty, which adds a level to the task
    stack of the controller. Otherwise it changes only the target of this level, while the motion
    continues; the parameter keeps its value.

    Args:
        node: Node of the subscriptions and parameters.
        submit: Function that submits an action on the controller for the next cycle.
        joint_names: Function that returns the joint names of the arm in use; () without an arm.
        log: Log of the node.
    """

    def __init__(
        self,
        node: Node,
        submit: Submit,
        joint_names: Callable[[], Sequence[str]],
        log: Throttle,
    ) -> None:
        self._node, self._submit = node, submit
        self._joint_names, self._log = joint_names, log
        subscribe_bounded(node, Float64, SWIVEL_TOPIC, self._take_swivel, NEWEST_QOS, log)
        subscribe_bounded(node, JointState, POSTURE_TOPIC, self._take_posture, NEWEST_QOS, log)

    def _take_swivel(self, message: Any, _: int = 0) -> None:
        angle = float(message.data)
        if not math.isfinite(angle):
            self._log.warn("swivel", f"ignored a swivel angle that is not finite: {angle}")
        elif self._is_set(SWIVEL_PARAMETER):
            self._change(lambda controller: controller.set_swivel(angle))
        else:
            self._set(SWIVEL_PARAMETER, [angle])

    def _take_posture(self, message: Any, _: int = 0) -> None:
        names, positions = list(message.name), [float(value) for value in message.position]
        known = self._joint_names()
        if len(names) != len(positions) or not all(map(math.isfinite, positions)):
            self._log.warn(
                "posture form",
                f"ignored a posture with {len(names)} names and {len(positions)} positions: there "
                "must be a finite position for each name",
            )
            return
        given = dict(zip(names, positions, strict=True))
        if not known:
            self._log.warn("posture form", "ignored a posture: there is no arm yet")
            return
        strange = [name for name in names if name not in known]
        if strange:
            self._log.warn(
                "posture joint",
                f"ignored a posture for joint {strange[0]!r}; joints are {', '.join(known)}",
            )
        elif self._is_set(POSTURE_PARAMETER):
            self._change(lambda controller: controller.set_posture(given))
        elif set(given) != set(known):
            self._log.warn(
                "first posture",
                "ignored a posture: the first one must have a position of each joint: "
                f"{', '.join(known)}",
            )
        else:
            self._set(POSTURE_PARAMETER, [given[name] for name in known])

    def _is_set(self, name: str) -> bool:
        """Return whether a parameter has a value, so that the stack has a level for it."""
        return bool(self._node.get_parameter(name).value)

    def _set(self, name: str, values: list[float]) -> None:
        """Set a parameter; log a warning with the reason if it is refused."""
        set_numbers(self._node, name, values, f"~/{name}", self._log)

    def _change(self, action: Callable[[Controller], None]) -> None:
        """Submit a change for the next cycle; log a warning if the controller refuses it."""

        def change(controller: Controller) -> None:
            try:
                action(controller)
            except DlsIkError as error:
                self._log.warn("redundancy", f"ignored a change of the task stack: {error}")

        self._submit(change)


class RelativePoseTopic:
    """Receives poses of the second tip in the frame of the first on ``target_relative``.

    The first message sets the parameter ``relative_pose`` if it is empty, which adds a level to the
    task stack of the controller. Further messages are targets, as those of other topics.

    Args:
        node: Node of the subscription and the parameter.
        store: Function that stores a target and its send time [ns].
        tips: Names of the tips that follow targets.
        log: Log of the node.
    """

    def __init__(
        self, node: Node, store: Callable[[Any, int], None], tips: Sequence[str], log: Throttle
    ) -> None:
        self._node, self._store, self._tips, self._log = node, store, tips, log
        subscribe_bounded(node, PoseStamped, RELATIVE_TOPIC, self._take, STREAM_QOS, log)

    def _take(self, message: Any, sent: int = 0) -> None:
        if not self._node.get_parameter(RELATIVE_PARAMETER).value:
            frame, pose = strip_slash(message.header.frame_id), message.pose
            try:
                if frame not in ("", self._tips[0]):
                    raise PoseError(
                        f"it must be in the frame of {self._tips[0]!r}; got frame_id {frame!r}"
                    )
                matrix_from_pose(pose)
            except PoseError as error:
                self._log.warn("relative", f"ignored a pose on {RELATIVE_TOPIC}: {error}")
                return
            p, o = pose.position, pose.orientation
            length = math.hypot(o.x, o.y, o.z, o.w)
            rotation = [o.x / length, o.y / length, o.z / length, o.w / length]
            values = [p.x, p.y, p.z, *rotation]
            if not set_numbers(self._node, RELATIVE_PARAMETER, values, RELATIVE_TOPIC, self._log):
                return
        self._store(message, sent)


def set_numbers(node: Node, name: str, values: list[float], topic: str, log: Throttle) -> bool:
    """Set a parameter, and return whether it was accepted; log the reason if it is refused.

    Args:
        node: Node of the parameter.
        name: Name of the parameter.
        values: Value of the parameter.
        topic: Topic of the message that gave the value.
        log: Log of the node.
    """
    result = node.set_parameters([Parameter(name, Parameter.Type.DOUBLE_ARRAY, values)])[0]
    if not result.successful:
        log.warn(name, f"ignored a message on {topic}: {result.reason}")
    return bool(result.successful)
