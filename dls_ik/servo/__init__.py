"""Following a target without ROS: state, target, elapsed time -> command."""

from dls_ik.servo.servo import DEFAULT_METHOD, Servo, ServoOutput
from dls_ik.servo.status import ServoCode

__all__ = ["DEFAULT_METHOD", "Servo", "ServoCode", "ServoOutput"]
