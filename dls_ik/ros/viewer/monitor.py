"""State and parameters of the node that is shown, as it tells them; the callbacks store."""

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
from geometry_msgs.msg import PoseStamped
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.ros.client.connection import Service
from dls_ik.ros.params import Parameters
from dls_ik.ros.params.declare import declared
from dls_ik.ros.robot_source import MAX_BYTES as MOST_DESCRIPTION
from dls_ik.ros.robot_source import QOS as DESCRIPTION
from dls_ik.ros.robot_source import TOPIC as DESCRIPTION_TOPIC
from dls_ik.ros.subscriptions import merge_bounded, subscribe_bounded
from dls_ik.ros.util import Throttle
from dls_ik.servo import ServoState

try:
    from moveit_msgs.msg import ServoStatus
except ImportError:  # before moveit_msgs 2.3
    ServoStatus = None

# Best effort hears reliable publishers too. Several may share joint_states, so its depth is not 1.
JOINTS = QoSProfile(depth=10, reliability=ReliabilityPolicy.BEST_EFFORT)
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
OF_CODE = {  # where the words are not those of a state
    -1: ServoState.FAULT,
    1: ServoState.NEAR_SINGULARITY,
    2: ServoState.STALLED,
    3: ServoState.LEAVING_SINGULARITY,
    6: ServoState.JOINT_BOUND,
}
KNOWN = declared(Parameters)
CHANGEABLE = tuple(name for name, field in KNOWN.items() if not field.metadata["read_only"])
SIMULATED = "use_sim_time"


class Status(NamedTuple):
    """What the node says that it does, and when that was [s], on the steady clock."""

    state: ServoState
    words: str
    time: float


class Heard:
    """The newest of everything.

    Args:
        name: of the node that is shown.
        came: called, in the thread of the callbacks, when it is heard after a silence.
    """

    SILENCE = 1.0  # [s] from which the node counts as gone; it tells its status every cycle

    def __init__(self, node: Node, name: str, came: Callable[[], None]) -> None:
        self.status: Status | None = None
        self.target: Any = None  # geometry_msgs/PoseStamped
        self.description = ""  # URDF
        self._joints: dict[str, tuple[float, float]] = {}  # position and velocity by name
        self._came = came
        self.status_topic = node.resolve_topic_name(f"{name}/status")
        subscribe = partial(subscribe_bounded, node, log=Throttle(node))
        subscribe(JointState, "joint_states", self._keep_joints, JOINTS)
        subscribe(PoseStamped, "target_pose", self._keep_target, NEWEST)
        keep, most = self._keep_description, MOST_DESCRIPTION
        subscribe(String, DESCRIPTION_TOPIC, keep, DESCRIPTION, max_bytes=most)
        if ServoStatus is not None:
            subscribe(ServoStatus, self.status_topic, self._keep_status, NEWEST)

    def is_silent(self, now: float) -> bool:
        """Whether nothing was heard of the node for a while."""
        return self.status is None or now - self.status.time > self.SILENCE

    def values(self) -> dict[str, float]:
        """The last position of each joint, as drivers call them."""
        return {name: position for name, (position, _) in self._joints.copy().items()}

    def joints(
        self, names: tuple[str, ...], called: Mapping[str, str]
    ) -> tuple[Array, Array] | None:
        """Positions and velocities (n,) of joints, if all were heard of; `called` by drivers."""
        known = self._joints
        rows = [known.get(called.get(name, name)) for name in names]
        found = [row for row in rows if row is not None]
        if len(found) < len(names):
            return None
        values = np.array(found)
        return values[:, 0], values[:, 1]

    def _keep_joints(self, message: Any, _: int = 0) -> None:
        names, positions, velocities = message.name, message.position, message.velocity
        if len(names) != len(positions) or not np.isfinite(positions).all():
            return
        if len(velocities) != len(names):
            velocities = np.zeros(len(names))
        news = dict(zip(names, zip(positions, velocities, strict=True), strict=True))
        self._joints = merge_bounded(self._joints, news)

    def _keep_target(self, message: Any, _: int = 0) -> None:
        self.target = message

    def _keep_description(self, message: Any, _: int = 0) -> None:
        self.description = message.data

    def _keep_status(self, message: Any, _: int = 0) -> None:
        now = time.monotonic()
        came = self.is_silent(now)
        self.status = Status(state_of(message.code, message.message), message.message, now)
        if came:
            self._came()


def state_of(code: int, words: str) -> ServoState:
    """The state that a ``moveit_msgs/ServoStatus`` tells of."""
    for state in ServoState:
        if state.code == code and words.startswith(state.explanation):
            return state
    return OF_CODE.get(code, ServoState.WAITING)


class Settings:
    """The parameters as the node had them when they were last read.

    Args:
        name: of the node that is shown.
    """

    def __init__(self, node: Node, name: str) -> None:
        self._get = Service(node, GetParameters, f"{name}/get_parameters")
        self._set = Service(node, SetParametersAtomically, f"{name}/set_parameters_atomically")
        self.current = Parameters()
        self.are_known = False
        self.is_simulated = True  # until it is known that stamps are those of this machine's clock

    def read(self, wait: float = 0.0) -> Parameters:
        """Ask the node, which may come within a time [s].

        Raises:
            ServiceMissingError, NoAnswerError: the node does not say.
            DlsIkError: what it says is not valid here: it is of another version.
        """
        given = self._values(KNOWN, wait)
        given |= self._values(Parameters().further(given), 0.0)
        self.is_simulated = bool(self._values([SIMULATED], 0.0).get(SIMULATED, True))
        self.current = cast(Parameters, Parameters().changed(given))
        self.are_known = True
        return self.current

    def write(self, name: str, value: Any) -> None:
        """Change a parameter.

        Raises:
            OptionError: the node refuses it; the reason.
            ServiceMissingError, NoAnswerError: the node does not answer.
        """
        message = Parameter(name, value=value).to_parameter_msg()
        result = self._set.call(parameters=[message]).result
        if not result.successful:
            raise OptionError(result.reason or f"the node refuses {name} {value!r}")
        self.read()

    def _values(self, names: Iterable[str], wait: float) -> dict[str, Any]:
        asked = list(names)
        if not asked:
            return {}
        values = [parameter_value_to_python(v) for v in self._get.call(wait, names=asked).values]
        if len(values) != len(asked):
            return {}  # a node with other parameters says nothing at all
        return {n: v for n, v in zip(asked, values, strict=True) if v is not None}
