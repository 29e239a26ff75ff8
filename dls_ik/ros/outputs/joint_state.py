"""Commands as joint states."""

from typing import Any

from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.ros.outputs.fields import set_time, writable
from dls_ik.ros.outputs.spec import OutputSpec
from dls_ik.servo.limiter import StopPath


class JointStateOutput:
    """Positions and velocities by name, for robot_state_publisher and RViz."""

    message_type = JointState
    default_topic = "joint_states"

    def __init__(self, spec: OutputSpec) -> None:
        self._message = JointState(name=list(spec.names))
        self._position = writable(self._message, "position", len(spec.names))
        self._velocity = writable(self._message, "velocity", len(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
        """The message of a command at a time [ns]."""
        self._position[:] = q
        self._velocity[:] = velocity
        set_time(self._message.header.stamp, stamp)
        return self._message
