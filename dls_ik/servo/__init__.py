"""Following a target without ROS: state, target, time -> command, status."""

from dls_ik.servo.controller import Controller
from dls_ik.servo.options import ControllerOptions
from dls_ik.servo.output import ServoOutput
from dls_ik.servo.servo import DEFAULT_METHOD, Servo, ServoStep
from dls_ik.servo.state import ServoState

__all__ = [
    "DEFAULT_METHOD",
    "Controller",
    "ControllerOptions",
    "Servo",
    "ServoOutput",
    "ServoState",
    "ServoStep",
]
