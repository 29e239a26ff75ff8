# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Teleoperation without ROS: input devices, deadman switch, clutch, filters and speed limits."""

from dls_ik.teleop.config import TeleopConfig, load_config
from dls_ik.teleop.control import Teleop, TeleopCommand
from dls_ik.teleop.device import Device, DeviceState

__all__ = ["Device", "DeviceState", "Teleop", "TeleopCommand", "TeleopConfig", "load_config"]
