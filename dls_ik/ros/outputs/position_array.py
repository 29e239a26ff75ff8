"""Commands as bare positions."""

from typing import Any

from std_msgs.msg import Float64MultiArray

from dls_ik.core.types import Array
from dls_ik.ros.outputs.fields import writable
from dls_ik.ros.outputs.spec import OutputSpec
from dls_ik.servo.limiter import StopPath


class PositionArrayOutput:
    """Positions without names, for a forward or position controller, whose order must be given."""

    message_type = Float64MultiArray
    default_topic = "forward_position_controller/commands"

    def __init__(self, spec: OutputSpec) -> None:
        self._message = Float64MultiArray()
        self._position = writable(self._message, "data", len(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
        """The message of a command."""
        self._position[:] = q
        return self._message
