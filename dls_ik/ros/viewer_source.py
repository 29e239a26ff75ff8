"""A running node as a source of the viewer: shows what the node reports, and sends it targets."""

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
from dls_ik.ros.client.target_publisher import state_name
from dls_ik.ros.declare import declared
from dls_ik.ros.frames import Frames, fill_pose, pose_errors, tf2_lookup
from dls_ik.ros.params import ROS_NAMES, Parameters
from dls_ik.ros.robot_source import MAX_BYTES as MAX_DESCRIPTION
from dls_ik.ros.robot_source import QOS as DESCRIPTION
from dls_ik.ros.robot_source import TOPIC as DESCRIPTION_TOPIC
from dls_ik.ros.robot_source import DescribedRobot, ForeignFileError, named_robot, served_robot
from dls_ik.ros.services.executor import LatestOnlyExecutor
from dls_ik.ros.servo.outputs import arrange
from dls_ik.ros.subscriptions import merge_bounded, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.ros.viewer_scene import NodeScene
from dls_ik.servo import ServoState
from dls_ik.viewer.source import FOLLOWERS, Sample, TunableParameter, tunable_parameters

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

NODE = "dls_ik"
SILENCE = 1.0  # [s] after which the node counts as gone; it publishes its status every cycle
MARGIN = 0.1  # [s] beyond the node's target_timeout
NO_TARGET = (ServoState.NO_ROBOT, ServoState.WAITING)
# Best effort receives from reliable publishers too. Several may share joint_states.
JOINTS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
LATEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)


class NodeStatus(NamedTuple):
    """The last status of the node."""

    state: ServoState
    message: str
    time: float  # [s] when it arrived, on the steady clock


STATE_OF_CODE = {-1: ServoState.FAULT, 2: ServoState.STALLED}  # if the message tells no state


def state_from_status(code: int, message: str) -> ServoState:
    """Return the state that a ``moveit_msgs/ServoStatus`` describes."""
    name = state_name(code, message)
    if name in ServoState.__members__:
        return ServoState[name]
    return STATE_OF_CODE.get(code, ServoState.WAITING)


class LatestMessages:
    """Keeps the latest message of each topic.

    Args:
        node: of the viewer.
        name: of the node that is shown.
        found: called in the thread of the callbacks when a status arrives after a silence.
    """

    def __init__(self, node: Node, name: str, found: Callable[[], None]) -> None:
        self.status: NodeStatus | None = None
        self.target: Any = None  # geometry_msgs/PoseStamped
        self.description = ""  # URDF
        self.joints: dict[str, tuple[float, float]] = {}  # position, velocity; driver's names
        self._found = found
        subscribe = partial(subscribe_bounded, node, log=Throttle(node))
        subscribe(JointState, "joint_states", self._keep_joints, JOINTS)
        subscribe(PoseStamped, "target_pose", self._keep_target, LATEST)
        description = partial(subscribe, max_bytes=MAX_DESCRIPTION)
        description(String, DESCRIPTION_TOPIC, self._keep_description, DESCRIPTION)
        if ServoStatus is not None:
            subscribe(ServoStatus, f"{name}/status", self._keep_status, LATEST)

    def is_silent(self, now: float) -> bool:
        """Return True if no status arrived for a while."""
        return self.status is None or now - self.status.time > SILENCE

    def find_joints(self, names: Sequence[str]) -> tuple[Array, Array] | None:
        """Return positions and velocities (n,) of joints; None if one is not known yet."""
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
        news = dict(zip(names, zip(positions, velocities, strict=True), strict=True))
        self.joints = merge_bounded(self.joints, news)

    def _keep_target(self, message: Any, _: int = 0) -> None:
        self.target = message

    def _keep_description(self, message: Any, _: int = 0) -> None:
        self.description = message.data

    def _keep_status(self, message: Any, _: int = 0) -> None:
        now = time.monotonic()
        was_silent = self.is_silent(now)
        state = state_from_status(message.code, message.message)
        self.status = NodeStatus(state, message.message, now)
        if was_silent:
            self._found()


PARAMETERS = declared(Parameters)
CHANGEABLE = tuple(f.name for f in PARAMETERS.values() if not f.metadata["read_only"])
SIM_TIME = "use_sim_time"


class NodeParameters:
    """The parameters of a node, by its name, as they were last read."""

    def __init__(self, node: Node, name: str) -> None:
        self._get = ServiceClient(node, GetParameters, f"{name}/get_parameters")
        self._set = ServiceClient(
            node, SetParametersAtomically, f"{name}/set_parameters_atomically"
        )
        self.current = Parameters()
        self.use_sim_time = True  # until known: then stamps of this machine's clock are not sent

    def read(self, wait: float = 0.0) -> Parameters:
        """Read the parameters of the node, which may start within a time [s].

        Raises:
            ServiceMissingError: If no node offers the service.
            NoAnswerError: If the node does not answer.
            DlsIkError: If a value is not valid here, because the node has another version.
        """
        values = self._values(PARAMETERS, wait)
        values |= self._values(Parameters().further(values))
        self.use_sim_time = bool(self._values([SIM_TIME]).get(SIM_TIME, True))
        self.current = Parameters().changed(values)
        return self.current

    def write(self, name: str, value: Any) -> None:
        """Change a parameter.

        Raises:
            OptionError: If the node refuses the value; the message gives the reason.
            ServiceMissingError: If no node offers the service.
            NoAnswerError: If the node does not answer.
        """
        message = Parameter(name, value=value).to_parameter_msg()
        result = self._set.call(parameters=[message]).result
        if not result.successful:
            raise OptionError(result.reason or f"the node refuses {name} {value!r}")
        self.read()

    def _values(self, names: Iterable[str], wait: float = 0.0) -> dict[str, Any]:
        asked = list(names)
        if not asked:
            return {}
        found = self._get.call(wait, names=asked).values
        if len(found) != len(asked):
            return {}  # a node that lacks one of the parameters returns no values at all
        values = zip(asked, map(parameter_value_to_python, found), strict=True)
        return {name: value for name, value in values if value is not None}


class DragPublisher:
    """Publishes poses as they come, which is a stream, and the last one once more by itself.

    The arm stops when a stream ends, but follows a single pose all the way.
    """

    def __init__(self, node: Node, frame: str) -> None:
        self._node, self._frame = node, frame
        self._publisher = node.create_publisher(PoseStamped, "target_pose", 1)
        self._lock = threading.Lock()
        self._last: Array | None = None  # to be sent once more
        self._sent = 0.0  # [s] steady

    def send(self, T: Array, stamped: bool) -> None:
        """Send a pose (4, 4), with a stamp of this machine's clock or without."""
        with self._lock:
            self._last = T.copy()
            self._publish(T, stamped)

    def repeat_last(self, timeout: float, stamped: bool) -> None:
        """Send the last pose once more when the stream has ended: no pose for a timeout [s]."""
        with self._lock:
            if self._last is None or time.monotonic() < self._sent + timeout + MARGIN:
                return
            self._publish(self._last, stamped)
            self._last = None

    def forget(self) -> None:
        """Do not repeat the last pose."""
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
    """Shows a node ``dls_ik``, which may start late, end, and start again.

    Args:
        described: the robot to show; default: the node's, which is waited for.
        namespace: of the node.
        patience: time to wait for the node [s].
        own: returns the robot to show for the node's base and tip.

    Raises:
        ServiceMissingError, NoAnswerError: If no robot is given, and no node names one.
        RobotModelError: If the robot of the node is not usable here.
    """

    methods = FOLLOWERS
    can_place = False
    is_remote = True
    bare = None

    def __init__(
        self,
        described: DescribedRobot | None = None,
        namespace: str = "",
        patience: float = 10.0,
        own: Callable[[str | None, str | None], DescribedRobot] | None = None,
    ) -> None:
        self._host = OwnNode(namespace, "dls_ik_viewer")
        node = self._host.node
        self.name = node.resolve_service_name(NODE)
        self._trouble = ""
        self._executor = LatestOnlyExecutor(self._fail)
        self._parameters = NodeParameters(node, NODE)
        self._latest = LatestMessages(node, NODE, self._read_later)
        self._pause = ServiceClient(node, SetBool, f"{NODE}/pause")
        self._reset = ServiceClient(node, Trigger, f"{NODE}/reset")
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
        """Method that follows targets."""
        return self._parameters.current.stream_method

    @property
    def parameters(self) -> Sequence[TunableParameter]:
        """Parameters that can be changed while the node runs."""
        current = self._parameters.current
        values = {**current.solver_options(), "when_stuck": current.when_stuck}
        rows = tunable_parameters(current.stream_method, values)
        return tuple(row for row in rows if row.name in CHANGEABLE)

    def set_target(self, T: Array) -> None:
        """Send a pose (4, 4)."""
        self._drag.send(T, not self._parameters.use_sim_time)

    def step(self, now: float) -> Sample:
        """Return the latest state."""
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
        """Change the node's method."""
        self._parameters.write("stream_method", method)

    def set_parameter(self, name: str, value: Any) -> None:
        """Change a parameter of the node."""
        self._parameters.write(ROS_NAMES.get(name, name), value)

    def set_bare(self, bare: bool) -> None:
        """Refuse: the node keeps its limits.

        Raises:
            DlsIkError: If called; a node has no bare steps.
        """
        raise DlsIkError(f"{self.name} follows within its limits: it takes no bare steps")

    def place(self, q: Array) -> None:
        """Refuse: the arm of a node only follows targets.

        Raises:
            DlsIkError: If called; the arm of a node only follows targets.
        """
        raise DlsIkError(f"the arm of {self.name} goes where its targets are: it cannot be placed")

    def pause(self, paused: bool) -> None:
        """Pause the node, or resume."""
        self._drag.forget()
        _require_success(self._pause.call(data=paused))

    def reset(self) -> None:
        """Clear the node's target and faults."""
        self._drag.forget()
        _require_success(self._reset.call())

    def close(self) -> None:
        """Leave the ROS graph."""
        self._executor.close()
        if hasattr(self, "scene"):  # else no robot was found
            self.scene.close()
        self._host.close()

    def _fail(self, error: Exception) -> None:
        self._trouble = f"internal error: {error!r}"

    def _driver_names(self) -> list[str]:
        """Return the names (n,) that the driver has for the joints."""
        current, names = self._parameters.current, self.robot.joint_names
        try:
            joints = arrange(names, current.output_joints, current.output_names)
        except DlsIkError:  # parameters of another robot
            return list(names)
        theirs = {ours: theirs for theirs, ours in joints.robot_names.items()}
        return [theirs.get(name, name) for name in names]

    def _state(self, has_joints: bool) -> tuple[ServoState, str]:
        """Return the node's state and a sentence about it."""
        status, now = self._latest.status, time.monotonic()
        if status is None:
            return ServoState.NO_ROBOT, f"waiting for {self.name}: nothing on its status yet"
        if self._latest.is_silent(now):
            silence = f"{now - status.time:.0f} s"
            return ServoState.STALE, f"{self.name} is silent for {silence}: waiting for it"
        note = "" if has_joints else "; joint positions are not known yet"
        return status.state, (self._trouble or status.message) + note

    def _target(self, state: ServoState, q: Array) -> Array | None:
        """Return ``T_base_tip`` (4, 4) of the last target of anybody; None: no target."""
        message, robot = self._latest.target, self.robot
        if message is None or state in NO_TARGET or self._latest.is_silent(time.monotonic()):
            return None
        driven, joints = robot.tree.mimic_of, self._latest.joints
        values = {name: position for name, (position, _) in joints.items() if name in driven}
        values.update(zip(robot.joint_names, q.tolist(), strict=True))
        try:
            return self._frames.pose_in_base(message, robot.tree, robot.base, values)
        except DlsIkError:
            return None

    def _read_later(self) -> None:
        self._executor.submit(self._read_parameters)

    def _read_parameters(self) -> None:
        """Read the parameters of a node that has started."""
        trouble = ""
        try:
            found = named_robot(self._parameters.read(1.0))
            if found is not None and found.robot.joint_names != self.robot.joint_names:
                trouble = f"the node has another robot now: {found.robot.name}"
        except ForeignFileError:  # maybe the file that was named here
            pass
        except DlsIkError as error:
            trouble = str(error)
            is_missing = isinstance(error, (ServiceMissingError, NoAnswerError))
            if is_missing and not self._latest.is_silent(time.monotonic()):  # it is busy
                self._read_later()
        self._trouble = trouble


def _require_success(response: Any) -> None:
    if not response.success:
        raise DlsIkError(response.message or "the node refuses")
