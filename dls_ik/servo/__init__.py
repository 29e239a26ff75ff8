# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Target following without ROS: a controller with one command and one state per cycle."""

from dls_ik.servo.controller import Controller
from dls_ik.servo.local_ik import DEFAULT_METHOD, LocalIk, ServoStep
from dls_ik.servo.options import ControllerOptions, gentle_acceleration
from dls_ik.servo.state import ServoOutput, ServoState

__all__ = [
    "DEFAULT_METHOD",
    "Controller",
    "ControllerOptions",
    "LocalIk",
    "ServoOutput",
    "ServoState",
    "ServoStep",
    "gentle_acceleration",
]
