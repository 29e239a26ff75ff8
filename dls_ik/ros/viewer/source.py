"""A source that is a running node: what it says is shown, and targets are sent to it."""

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.rotations import inverse
from dls_ik.ros.client.connection import NoAnswerError, OwnHost, Service, ServiceMissingError
from dls_ik.ros.client.robot import Described, ForeignFileError, robot_named, served
from dls_ik.ros.client.streamer import pose_errors
from dls_ik.ros.frames import Frames, fill_pose, tf2_lookup
from dls_ik.ros.outputs.outputs import arrange
from dls_ik.ros.services.executor import LatestOnlyExecutor
from dls_ik.ros.viewer.monitor import CHANGEABLE, Heard, Settings
from dls_ik.servo import ServoState
from dls_ik.viewer.local import LocalSource, tunable
from dls_ik.viewer.source import Parameter, Sample

MARGIN = 0.1  # [s] beyond the node's timeout
NODE = "dls_ik"
NO_TARGET = (ServoState.NO_ROBOT, ServoState.WAITING)


class Targets:
    """Sends poses as they come, which makes a stream, and the last one once more by itself.

    A stream that ceases stops the arm where it is; a pose by itself stays in force.
    """

    def __init__(self, node: Node, frame: str) -> None:
        self._node, self._frame = node, frame
        self._publisher = node.create_publisher(PoseStamped, "target_pose", 1)
        self._lock = threading.Lock()
        self._last: Array | None = None  # to be sent once more
        self._sent = 0.0  # [s] steady

    def send(self, T: Array, stamped: bool) -> None:
        """Send a pose (4, 4), stamped with the time of this machine or as of now."""
        with self._lock:
            self._last = T.copy()
            self._publish(T, stamped)

    def settle(self, timeout: float, stamped: bool) -> None:
        """Send the last pose by itself, once, if none was sent for the node's timeout [s]."""
        with self._lock:
            if self._last is None or time.monotonic() < self._sent + timeout + MARGIN:
                return
            self._publish(self._last, stamped)
            self._last = None

    def forget(self) -> None:
        """Send nothing more of itself."""
        with self._lock:
            self._last = None

    def _publish(self, T: Array, stamped: bool) -> None:
        message = PoseStamped()
        message.header.frame_id = self._frame
        if stamped:
            message.header.stamp = self._node.get_clock().now().to_msg()
        fill_pose(message.pose, T)
        self._publisher.publish(message)
        self._sent = time.monotonic()


class NodeSource:
    """Shows a node ``dls_ik``, which may come late, go, and come again.

    Args:
        described: what is shown; default: the robot of the node, which is waited for.
        own: gives what is shown from a base to a tip, which are asked of the node.
        namespace: of the node.
        patience: how long it is waited for [s].

    Raises:
        ServiceMissingError, NoAnswerError: no robot is given, and there is no node to say which.
        RobotModelError: the node's robot is not usable here.
    """

    methods = LocalSource.methods
    can_place = False
    is_remote = True

    def __init__(
        self,
        described: Described | None = None,
        namespace: str = "",
        patience: float = 10.0,
        own: Callable[[str | None, str | None], Described] | None = None,
    ) -> None:
        self._host = OwnHost(namespace, "dls_ik_viewer")
        node = self._host.node
        self.name = node.resolve_service_name(NODE)
        self._trouble = ""
        self._jobs = LatestOnlyExecutor(self._fail)
        self._settings = Settings(node, NODE)
        self._heard = Heard(node, NODE, lambda: self._jobs.submit(self._read_settings))
        self._pause = Service(node, SetBool, f"{NODE}/pause")
        self._reset = Service(node, Trigger, f"{NODE}/reset")
        self._frames = Frames(tf2_lookup(node))
        try:
            found = described or served(
                lambda: self._settings.read(patience), lambda: self._heard.description, own
            )
        except BaseException:
            self.close()
            raise
        self.robot, self.urdf = found
        self._targets = Targets(node, self.robot.base)
        self._rest = self.robot.clip(np.zeros(self.robot.n))

    @property
    def method(self) -> str:
        """That targets are followed with."""
        return self._settings.current.stream_method

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Those that the node lets change."""
        current = self._settings.current
        given = {**current.solver_options(), "when_stuck": current.when_stuck}
        rows = tunable(current.stream_method, given)
        return tuple(row for row in rows if row.name.rstrip("_") in CHANGEABLE)

    def aim(self, T: Array) -> None:
        """Send a pose (4, 4)."""
        self._targets.send(T, self._stamped)

    def step(self, now: float) -> Sample:
        """The newest that is known."""
        self._targets.settle(self._settings.current.target_timeout, self._stamped)
        found = self._heard.joints(self.robot.joint_names, self._called())
        q, velocity = found or (self._rest, np.zeros(self.robot.n))
        state, words = self._said(found is not None)
        T_tip, T_target = self.robot.fk(q), self._target(state, q)
        errors = (math.nan, math.nan) if T_target is None else pose_errors(T_target, T_tip)
        return Sample(now, q, velocity, T_tip, T_target, *errors, state.name, words)

    def use(self, method: str) -> None:
        """Let the node follow with another method."""
        self._settings.write("stream_method", method)

    def change(self, name: str, value: Any) -> None:
        """Change a parameter of the node."""
        self._settings.write(name.rstrip("_"), value)

    def place(self, q: Array) -> None:
        """It cannot be placed.

        Raises:
            DlsIkError: always.
        """
        raise DlsIkError(f"the arm of {self.name} goes where its targets are: it cannot be placed")

    def pause(self, paused: bool) -> None:
        """Let the node stop its arm and pass targets over, or go on.

        Raises:
            DlsIkError: it does not.
        """
        self._targets.forget()
        _expect_success(self._pause.call(data=paused))

    def reset(self) -> None:
        """Let the node forget its target and its faults.

        Raises:
            DlsIkError: it does not.
        """
        self._targets.forget()
        _expect_success(self._reset.call())

    def close(self) -> None:
        """Leave the ROS graph."""
        self._jobs.close()
        self._host.close()

    @property
    def _stamped(self) -> bool:
        return not self._settings.is_simulated

    def _called(self) -> dict[str, str]:
        """What drivers call the joints, where it is another name."""
        current = self._settings.current
        try:
            joints = arrange(self.robot.joint_names, current.output_joints, current.output_names)
        except DlsIkError:  # of another robot
            return {}
        return {ours: theirs for theirs, ours in joints.robot_names.items()}

    def _said(self, placed: bool) -> tuple[ServoState, str]:
        """The state, and a sentence."""
        status, now = self._heard.status, time.monotonic()
        if status is None:
            return ServoState.NO_ROBOT, f"waiting for {self.name}: nothing on its status yet"
        if self._heard.is_silent(now):
            silent = f"{self.name} is silent for {now - status.time:.0f} s: waiting for it"
            return ServoState.STALE, silent
        words = self._trouble or status.words
        if not placed:
            words = f"{words}; where its joints are is not known yet"
        return status.state, words

    def _target(self, state: ServoState, q: Array) -> Array | None:
        """(4, 4) T_base_tip of the last target that anybody sent; None where there is none."""
        message, robot = self._heard.target, self.robot
        silent = self._heard.is_silent(time.monotonic())
        if message is None or silent or state in NO_TARGET:
            return None
        names = robot.joint_names
        others = {n: p for n, p in self._heard.values().items() if n in robot.tree.mimic_of}
        values = {**others, **dict(zip(names, q.tolist(), strict=True))}
        try:
            T_root_tip = self._frames.pose_in_root(message, robot.tree, values)
        except DlsIkError:
            return None
        return inverse(robot.tree.pose(robot.base, values)) @ T_root_tip

    def _read_settings(self) -> None:
        """When the node came, or came again."""
        try:
            found = robot_named(self._settings.read(1.0))
        except ForeignFileError:  # it may well be the one that was given here
            found = None
        except (ServiceMissingError, NoAnswerError) as error:
            self._trouble = str(error)
            if not self._heard.is_silent(time.monotonic()):  # it is busy
                self._jobs.submit(self._read_settings)
            return
        except DlsIkError as error:
            self._trouble = str(error)
            return
        self._trouble = ""
        if found is not None and found.robot.joint_names != self.robot.joint_names:
            self._trouble = f"the node has another robot now: {found.robot.name}"

    def _fail(self, error: Exception) -> None:
        self._trouble = f"internal error: {error!r}"


def _expect_success(response: Any) -> None:
    if not response.success:
        raise DlsIkError(response.message or "the node refuses")
