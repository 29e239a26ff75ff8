"""Commands as messages, each of one message that is filled again every cycle."""

from array import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Duration
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dls_ik.core.types import Array
from dls_ik.ros.parameters.outputs import JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY


def writable(message: Any, name: str, n: int) -> Array:
    """A view (n,) of a field of doubles: to write into it costs 0.15 us, a new list some 10."""
    setattr(message, name, array("d", bytes(8 * n)))
    return np.frombuffer(getattr(message, name))  # the message may hold a copy of what it is given


class JointStateOutput:
    """Positions and velocities by name, for robot_state_publisher and RViz."""

    message_type = JointState
    default_topic = "joint_states"

    def __init__(self, names: Sequence[str], period: float) -> None:
        self._message = JointState(name=list(names))
        self._position = writable(self._message, "position", len(names))
        self._velocity = writable(self._message, "velocity", len(names))

    def fill(self, q: Array, velocity: Array, stamp: int) -> Any:
        """The message of a command at a time [ns]."""
        self._position[:] = q
        self._velocity[:] = velocity
        time = self._message.header.stamp
        time.sec, time.nanosec = divmod(stamp, 10**9)
        return self._message


class JointTrajectoryOutput:
    """One point, a cycle ahead, for a joint_trajectory_controller.

    Without velocities, which must be zero at the last point; without a stamp, which means now.
    """

    message_type = JointTrajectory
    default_topic = "joint_trajectory_controller/joint_trajectory"

    def __init__(self, names: Sequence[str], period: float) -> None:
        sec, nanosec = divmod(round(period * 1e9), 10**9)
        point = JointTrajectoryPoint(time_from_start=Duration(sec=sec, nanosec=nanosec))
        self._position = writable(point, "positions", len(names))
        self._message = JointTrajectory(joint_names=list(names), points=[point])

    def fill(self, q: Array, velocity: Array, stamp: int) -> Any:
        """The message of a command."""
        self._position[:] = q
        return self._message


class PositionArrayOutput:
    """Positions in the order of the chain, for a forward or position controller."""

    message_type = Float64MultiArray
    default_topic = "forward_position_controller/commands"

    def __init__(self, names: Sequence[str], period: float) -> None:
        self._message = Float64MultiArray()
        self._position = writable(self._message, "data", len(names))

    def fill(self, q: Array, velocity: Array, stamp: int) -> Any:
        """The message of a command."""
        self._position[:] = q
        return self._message


Output = JointStateOutput | JointTrajectoryOutput | PositionArrayOutput
OUTPUTS: dict[str, type[Output]] = {
    JOINT_STATE: JointStateOutput,
    JOINT_TRAJECTORY: JointTrajectoryOutput,
    POSITION_ARRAY: PositionArrayOutput,
}
