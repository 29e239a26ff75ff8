# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Source of the viewer that shows the state of a running node and sends targets to the node."""

import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, OptionError
from dls_ik.ros.client.connection import NoAnswerError, OwnNode, ServiceClient, ServiceMissingError
from dls_ik.ros.declare import declared
from dls_ik.ros.frames import Frames, fill_pose, pose_errors, tf2_lookup
from dls_ik.ros.params import ROS_NAMES, Parameters
from dls_ik.ros.process import SIM_TIME
from dls_ik.ros.robot_source import (
    DESCRIPTION_QOS,
    DESCRIPTION_TOPIC,
    MAX_DESCRIPTION_BYTES,
    DescribedRobot,
    ForeignFileError,
    first_ends,
    named_robot,
    served_robot,
)
from dls_ik.ros.services.executor import LatestOnlyExecutor
from dls_ik.ros.servo.outputs import arrange_joints
from dls_ik.ros.subscriptions import merge_bounded, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.ros.viewer_redundancy import read_redundancy, redundancy_parameters
from dls_ik.ros.viewer_scene import NodeScene
from dls_ik.servo import ServoState
from dls_ik.text import quoted
from dls_ik.viewer.redundancy import Redundancy
from dls_ik.viewer.source import FOLLOWERS, Sample, TunableParameter, tunable_parameters

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # moveit_msgs older than 2.3
    ServoStatus = None

NODE_NAME = "dls_ik"
STATUS_TIMEOUT = 1.0  # [s] maximum time between two status messages of a running node
REPEAT_DELAY = 0.1  # [s] added to target_timeout: time from the last pose to its repetition
STATES_WITHOUT_TARGET = (ServoState.NO_ROBOT, ServoState.WAITING)
# A best-effort subscription also receives messages of reliable publishers.
JOINT_STATES_QOS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
LATEST_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class NodeStatus(NamedTuple):
    """Latest status of the node."""

    state: ServoState
    message: str
    time: float  # [s] arrival time on the steady clock


# States by code of a status; used if the text of the status does not describe a state.
STATE_OF_CODE = {-1: ServoState.FAULT, 2: ServoState.STALLED}


def state_from_status(code: int, message: str) -> ServoState:
    """Return the state that a ``moveit_msgs/ServoStatus`` describes.

    Args:
        code: Code of the status.
        message: Text of the status.
    """
    state = ServoState.from_message(code, message)
    return STATE_OF_CODE.get(code, ServoState.WAITING) if state is None else state


class LatestMessages:
    """Latest message of each topic of a node.

    Args:
        node: ROS node of the viewer.
        name: Name of the node that is shown.
        found: Function that is called when the first status arrives, or the first status after
            STATUS_TIMEOUT without a status. It is called in the thread of the callbacks.
    """

    def __init__(self, node: Node, name: str, found: Callable[[], None]) -> None:
        self.status: NodeStatus | None = None
        self.target: Any = None  # geometry_msgs/PoseStamped
        self.description = ""  # URDF; empty: none received
        # Position [rad or m] and velocity [rad/s or m/s] by the driver's name of the joint.
        self.joints: dict[str, tuple[float, float]] = {}
        self._found = found
        subscribe = partial(subscribe_bounded, node, log=Throttle(node))
        subscribe(JointState, "joint_states", self._keep_joints, JOINT_STATES_QOS)
        subscribe(PoseStamped, "target_pose", self._keep_target, LATEST_QOS)
        description = partial(subscribe, max_bytes=MAX_DESCRIPTION_BYTES)
        description(String, DESCRIPTION_TOPIC, self._keep_description, DESCRIPTION_QOS)
        if ServoStatus is not None:
            subscribe(ServoStatus, f"{name}/status", self._keep_status, LATEST_QOS)

    def has_timed_out(self, now: float) -> bool:
        """Return whether no status has arrived for STATUS_TIMEOUT at the steady time `now` [s]."""
        return self.status is None or now - self.status.time > STATUS_TIMEOUT

    def find_joints(self, names: Sequence[str]) -> tuple[Array, Array] | None:
        """Return the last received state of joints.

        Args:
            names: (n,) names that the driver uses for the joints.

        Returns:
            Positions (n,) [rad or m] and velocities (n,) [rad/s or m/s]; None if no position of one
            of the joints has arrived yet.
        """
        joints = self.joints
        if not joints.keys() >= set(names):
            return None
        positions, velocities = np.array([joints[name] for name in names]).T
        return positions, velocities

    def _keep_joints(self, message: Any, _: int = 0) -> None:
        names, positions, velocities = message.name, message.position, message.velocity
        if len(names) != len(positions) or not np.isfinite(positions).all():
            return
        if len(velocities) != len(names):
            velocities = np.zeros(len(names))
        received = dict(zip(names, zip(positions, velocities, strict=True), strict=True))
        self.joints = merge_bounded(self.joints, received)

    def _keep_target(self, message: Any, _: int = 0) -> None:
        self.target = message

    def _keep_description(self, message: Any, _: int = 0) -> None:
        self.description = message.data

    def _keep_status(self, message: Any, _: int = 0) -> None:
        now = time.monotonic()
        had_timed_out = self.has_timed_out(now)
        state = state_from_status(message.code, message.message)
        self.status = NodeStatus(state, message.message, now)
        if had_timed_out:
            self._found()


PARAMETERS = declared(Parameters)
CHANGEABLE = tuple(f.name for f in PARAMETERS.values() if not f.metadata["read_only"])


class NodeParameters:
    """Parameters of another node, read and written by its parameter services.

    Args:
        node: ROS node of the viewer.
        name: Name of the other node.

    Attributes:
        current: Values that were read last.
        use_sim_time: Whether the other node uses simulated time.
    """

    def __init__(self, node: Node, name: str) -> None:
        self._get = ServiceClient(node, GetParameters, f"{name}/get_parameters")
        self._set = ServiceClient(
            node, SetParametersAtomically, f"{name}/set_parameters_atomically"
        )
        self.current = Parameters()
        # True until the parameter is read, so that no stamps of the wrong clock are sent.
        self.use_sim_time = True

    def read(self, wait: float = 0.0) -> Parameters:
        """Read and return the parameters of the node.

        Args:
            wait: Maximum time until the service of the node is available [s].

        Raises:
            ServiceMissingError: If no node offers the service.
            NoAnswerError: If the node does not answer.
            DlsIkError: If a value is not valid, for example because the node has another version.
        """
        values = self._values(PARAMETERS, wait)
        values |= self._values(Parameters().dynamic_fields(values))
        self.use_sim_time = bool(self._values([SIM_TIME]).get(SIM_TIME, True))
        self.current = Parameters().changed(values)
        return self.current

    def write(self, name: str, value: Any) -> None:
        """Change a parameter of the node.

        Args:
            name: Name of the parameter in ROS.
            value: New value.

        Raises:
            OptionError: If the node refuses the value; the message gives the reason.
            ServiceMissingError: If no node offers the service.
            NoAnswerError: If the node does not answer.
        """
        self.write_all([Parameter(name, value=value)])

    def write_all(self, values: Sequence[Parameter]) -> None:
        """Change parameters of the node, all or none.

        Args:
            values: Names and new values.

        Raises:
            OptionError: If the node refuses a value; the message gives the reason.
            ServiceMissingError: If no node offers the service.
            NoAnswerError: If the node does not answer.
        """
        messages = [each.to_parameter_msg() for each in values]
        result = self._set.call(parameters=messages).result
        if not result.successful:
            given = ", ".join(f"{each.name} {each.value!r}" for each in values)
            raise OptionError(result.reason or f"the node refuses {given}")
        self.read()

    def _values(self, names: Iterable[str], wait: float = 0.0) -> dict[str, Any]:
        asked = list(names)
        if not asked:
            return {}
        found = self._get.call(wait, names=asked).values
        if len(found) != len(asked):
            return {}  # rclpy returns no values at all if the node lacks one of the parameters
        values = zip(asked, map(parameter_value_to_python, found), strict=True)
        return {name: value for name, value in values if value is not None}


class DragPublisher:
    """Publisher of target poses while the user drags the target, which repeats the last pose.

    When a stream of poses ends, the arm stops before it reaches the last pose. In contrast, the arm
    moves all the way to a single pose. Therefore the last pose is sent again as a single pose after
    the stream has timed out.

    Args:
        node: ROS node of the viewer.
        frame: Frame of the poses.
    """

    def __init__(self, node: Node, frame: str) -> None:
        self._node, self._frame = node, frame
        self._publisher = node.create_publisher(PoseStamped, "target_pose", 1)
        self._lock = threading.Lock()
        self._last: Array | None = None  # (4, 4) pose to send again; None: no pose
        self._sent = 0.0  # steady time of the last message [s]

    def send(self, T: Array, stamped: bool) -> None:
        """Publish a target pose.

        Args:
            T: (4, 4) target pose ``T_frame_tip``.
            stamped: Whether the message gets a stamp of this machine's clock; if False, its stamp
                is 0.
        """
        with self._lock:
            self._last = T.copy()
            self._publish(T, stamped)

    def repeat_last(self, timeout: float, stamped: bool) -> None:
        """Publish the last pose once more, if the stream of poses has timed out.

        Args:
            timeout: Parameter ``target_timeout`` of the node [s].
            stamped: Whether the message gets a stamp of this machine's clock; if False, its stamp
                is 0.
        """
        with self._lock:
            if self._last is None or time.monotonic() < self._sent + timeout + REPEAT_DELAY:
                return
            self._publish(self._last, stamped)
            self._last = None

    def forget(self) -> None:
        """Discard the last pose, so that it is not sent again."""
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
    """Source of the viewer that shows and commands a running ``ik_node`` (named ``dls_ik``).

    The node may start after the viewer, stop, and start again.

    Args:
        described: Robot to show; None: the robot that `own` returns, or without `own` the robot of
            the node.
        namespace: Namespace of the node.
        patience: Maximum time until the node is available [s].
        own: Function that returns the robot to show; it is called with the names of the base and
            the tip of the node.

    Raises:
        ServiceMissingError, NoAnswerError: If `described` is not given, and the robot of the node
            is not available.
        RobotModelError: If the robot of the node is not usable.
    """

    methods = FOLLOWERS
    can_place = False
    is_remote = True
    bare = None
    level_errors: tuple[float, ...] = ()  # the node does not publish them

    def __init__(
        self,
        described: DescribedRobot | None = None,
        namespace: str = "",
        patience: float = 10.0,
        own: Callable[[str | None, str | None], DescribedRobot] | None = None,
    ) -> None:
        self._host = OwnNode(namespace, "dls_ik_viewer")
        node = self._host.node
        self.name = node.resolve_service_name(NODE_NAME)
        self._problem = ""
        self._executor = LatestOnlyExecutor(self._fail)
        self._parameters = NodeParameters(node, NODE_NAME)
        self._latest = LatestMessages(node, NODE_NAME, self._read_later)
        self._pause = ServiceClient(node, SetBool, f"{NODE_NAME}/pause")
        self._reset = ServiceClient(node, Trigger, f"{NODE_NAME}/reset")
        self._frames = Frames(tf2_lookup(node))
        try:
            found = described or served_robot(
                lambda: self._parameters.read(patience), lambda: self._latest.description, own
            )
        except BaseException:
            self.close()
            raise
        self.robot, self.urdf = found
        self._drag = DragPublisher(node, self.robot.base)
        self.scene = NodeScene(node, self.robot)
        self._rest = self.robot.clip(np.zeros(self.robot.n))

    @property
    def method(self) -> str:
        """Name of the method with which the node follows targets."""
        return self._parameters.current.stream_method

    @property
    def redundancy(self) -> Redundancy:
        """Levels and frozen joints by the parameters of the node that were read last."""
        return read_redundancy(self._parameters.current, self.robot)

    @property
    def parameters(self) -> Sequence[TunableParameter]:
        """Parameters of the method that can be changed while the node runs."""
        current = self._parameters.current
        values = {**current.solver_options(), "when_stuck": current.when_stuck}
        rows = tunable_parameters(current.stream_method, values)
        return tuple(row for row in rows if row.name in CHANGEABLE)

    def set_target(self, T: Array) -> None:
        """Publish a target pose T (4, 4) of the tip in the base frame."""
        self._drag.send(T, not self._parameters.use_sim_time)

    def step(self, now: float) -> Sample:
        """Return the latest state of the node; also publish pending targets and scene changes.

        Args:
            now: Time of the returned sample [s].
        """
        parameters = self._parameters
        self._drag.repeat_last(parameters.current.target_timeout, not parameters.use_sim_time)
        self.scene.step(time.monotonic())
        joints = self._latest.find_joints(self._driver_names())
        q, velocity = joints or (self._rest, np.zeros(self.robot.n))
        state, message = self._state(joints is not None)
        T_tip, T_target = self.robot.fk(q), self._target(state, q)
        errors = (math.nan, math.nan) if T_target is None else pose_errors(T_target, T_tip)
        return Sample(now, q, velocity, T_tip, T_target, *errors, state.name, message)

    def set_method(self, method: str) -> None:
        """Change the method with which the node follows targets (parameter ``stream_method``)."""
        self._parameters.write("stream_method", method)

    def set_parameter(self, name: str, value: Any) -> None:
        """Change a parameter of the node.

        Args:
            name: Field name or name in ROS.
            value: New value.
        """
        self._parameters.write(ROS_NAMES.get(name, name), value)

    def set_bare(self, bare: bool) -> None:
        """Raise an error, because a node cannot follow targets without its limits.

        Raises:
            DlsIkError: If this method is called.
        """
        raise DlsIkError(
            f"steps without limits are not available: {self.name} always respects its limits"
        )

    def set_redundancy(self, wanted: Redundancy) -> None:
        """Change the parameters of the node for its levels and frozen joints.

        Raises:
            OptionError: If a node cannot have these levels, or the node refuses them.
            ServiceMissingError: If no node offers the service.
            NoAnswerError: If the node does not answer.
        """
        self._parameters.write_all(redundancy_parameters(wanted, self.robot))

    def place(self, q: Array) -> None:
        """Raise an error, because the arm of a node only follows targets.

        Raises:
            DlsIkError: If this method is called.
        """
        raise DlsIkError(
            f"joint positions of the arm of {self.name} cannot be set; the arm only follows targets"
        )

    def pause(self, paused: bool) -> None:
        """Pause the node if `paused` is True, otherwise resume it.

        Raises:
            DlsIkError: If the node does not answer or refuses.
        """
        self._drag.forget()
        _require_success(self._pause.call(data=paused))

    def reset(self) -> None:
        """Call the reset service of the node, which clears the target and faults of the node.

        Raises:
            DlsIkError: If the node does not answer or refuses.
        """
        self._drag.forget()
        _require_success(self._reset.call())

    def gains(self, q: Array, size: float) -> None:
        """Return None, because the viewer does not know all options of the node's method."""

    def close(self) -> None:
        """Destroy the ROS node of the viewer."""
        self._executor.close()
        if hasattr(self, "scene"):  # the attribute is missing if the constructor found no robot
            self.scene.close()
        self._host.close()

    def _fail(self, error: Exception) -> None:
        self._problem = f"internal error: {error!r}"

    def _driver_names(self) -> list[str]:
        """Return the names (n,) that the driver uses for the joints of the chain."""
        current, names = self._parameters.current, self.robot.joint_names
        try:
            joints = arrange_joints(names, current.output_joints, current.output_names)
        except DlsIkError:  # the parameters belong to another robot
            return list(names)
        theirs = {ours: theirs for theirs, ours in joints.robot_names.items()}
        return [theirs.get(name, name) for name in names]

    def _state(self, has_joints: bool) -> tuple[ServoState, str]:
        """Return the state of the node, and a text that describes the state.

        Args:
            has_joints: Whether joint states of the arm were received.
        """
        status, now = self._latest.status, time.monotonic()
        if status is None:
            return ServoState.NO_ROBOT, f"waiting for {self.name}: no status received yet"
        if self._latest.has_timed_out(now):
            age = f"{now - status.time:.0f} s"
            return ServoState.STALE, f"no status from {self.name} for {age}; waiting for the node"
        note = "" if has_joints else "; no joint states received yet"
        return status.state, (self._problem or status.message) + note

    def _target(self, state: ServoState, q: Array) -> Array | None:
        """Return the latest target of the node, which any sender may have published.

        Args:
            state: State of the node.
            q: (n,) joint positions of the chain, for targets in frames of links [rad or m].

        Returns:
            Target pose ``T_base_tip`` (4, 4); None if there is no target, or if its frame is
            unknown.
        """
        message, robot = self._latest.target, self.robot
        if message is None or state in STATES_WITHOUT_TARGET:
            return None
        if self._latest.has_timed_out(time.monotonic()):
            return None
        driven, joints = robot.tree.mimic_of, self._latest.joints
        values = {name: position for name, (position, _) in joints.items() if name in driven}
        values.update(zip(robot.joint_names, q.tolist(), strict=True))
        try:
            return self._frames.pose_in_base(message, robot.tree, robot.base, values)
        except DlsIkError:
            return None

    def _different_ends(self, base: str | None, tip: str | None) -> str:
        """Return an error message if the node uses another base or tip link than the web page.

        The message is empty if the links are equal or not set.

        Args:
            base: Base link in the parameters of the node; None: not set.
            tip: Tip link in the parameters of the node; None: not set.
        """
        shown = {"base": self.robot.base, "tip": self.robot.tip}
        ends = {name: end for name, end in (("base", base), ("tip", tip)) if end}
        if all(end == shown[name] for name, end in ends.items()):
            return ""
        names = " and ".join(f"{name} {quoted(end)}" for name, end in ends.items())
        options = " ".join(f"--{name} {end}" for name, end in ends.items())
        return f"the node uses {names}; start the viewer again with {options}"

    def _read_later(self) -> None:
        self._executor.submit(self._read_parameters)

    def _read_parameters(self) -> None:
        """Read the parameters of the node, and record a problem that the viewer shows.

        This is called when the node has started.
        """
        problem = ""
        try:
            parameters = self._parameters.read(1.0)
            problem = self._different_ends(*first_ends(parameters))
            found = None if problem else named_robot(parameters)
            if found is not None and found.robot.joint_names != self.robot.joint_names:
                problem = f"the node now uses another robot: {found.robot.name}"
        except ForeignFileError:  # the file may be the one that the user gave to the viewer
            pass
        except DlsIkError as error:
            problem = str(error)
            is_missing = isinstance(error, (ServiceMissingError, NoAnswerError))
            # If the node still publishes its status, it is only busy: try again.
            if is_missing and not self._latest.has_timed_out(time.monotonic()):
                self._read_later()
        self._problem = problem


def _require_success(response: Any) -> None:
    if not response.success:
        raise DlsIkError(response.message or "the node refused the request without a reason")
