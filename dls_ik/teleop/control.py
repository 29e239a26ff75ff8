# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of the states of one device to targets of one arm: twists or poses of the tip."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.rotations import rotation_from_rpy
from dls_ik.servo.targets import rotated
from dls_ik.teleop.axes import AxisMotion
from dls_ik.teleop.clutch import PoseMotion
from dls_ik.teleop.config import ACTIONS, BASE_FRAME, TOOL_FRAME, TeleopConfig
from dls_ik.teleop.device import DeviceState

MAX_STEP_TIME = 0.1  # [s] a longer time between two steps moves the target as this time does
STOP_MESSAGES = 3  # number of zero twists that stop the arm; several, as a message may be lost
SPEED_STEP = 1.25  # factor of one press of "faster" or "slower"
MIN_SPEED_SHARE, MAX_SPEED_SHARE = 0.05, 1.0  # range of `Teleop.speed`


class TeleopCommand(NamedTuple):
    """Result of one step, in which at most one of `twist` and `pose` is set."""

    twist: Array | None = None  # (6,) twist along the axes of `frame` [m/s, rad/s]
    frame: str = ""  # frame of `twist`; empty: the root of the robot
    pose: Array | None = None  # (4, 4) target T_root_tip
    gripper: float | None = None  # value to send to the gripper
    is_active: bool = False  # whether the operator moves the arm
    note: str = ""  # text for the operator


class Teleop:
    """Deadman switch, clutch, scaling, filters and speed limits between a device and an arm.

    Pressing the deadman switch moves the arm only if the switch was released before. A switch that
    is held at the start, or after the device or the arm was lost, must be released and pressed
    again.

    Args:
        config: Configuration of the device.

    Attributes:
        speed: Share of the configured speeds, changed by the actions ``faster`` and ``slower``.
        in_tool: Whether the motion is along the axes of the tool, changed by the action ``frame``.
    """

    def __init__(self, config: TeleopConfig) -> None:
        self.config = config
        self.speed = 1.0
        self.in_tool = config.frame == TOOL_FRAME
        self._axes, self._motion = AxisMotion(config), PoseMotion(config)
        self._R = rotation_from_rpy(*config.rpy)
        self._pressed: frozenset[object] = frozenset()
        self._is_active = False
        self._must_release = True  # whether the switch must be released first
        self._stops = 0  # number of twists of 0 that are still to be sent
        self._time: float | None = None  # [s] time of the last step

    def step(
        self, state: DeviceState, tip: Array | None, now: float, problem: str = ""
    ) -> TeleopCommand:
        """Return the target for the current state of the device.

        Args:
            state: State of the device.
            tip: (4, 4) pose T_root_tip of the arm's command; None if unknown.
            now: Current time on a steady clock [s].
            problem: Reason why the arm cannot be moved; empty if it can.
        """
        dt = 0.0 if self._time is None else min(max(now - self._time, 0.0), MAX_STEP_TIME)
        self._time = now
        reason = self._problem(state, tip, now) or problem
        if reason or tip is None:
            self._release()
            self._must_release = True
            self._pressed = frozenset()
            return self._stopping(reason)
        self._motion.receive(state)
        actions = self._actions(state)
        is_held = not self.config.hold or not state.pressed.isdisjoint(self.config.hold)
        if "stop" in actions:
            self._must_release = True
        elif not is_held or not self.config.hold:
            self._must_release = False
        if not is_held or self._must_release:
            self._release()
            note = "release the button and press it again" if is_held else ""
            return self._stopping(note)
        gripper = self._gripper(actions)
        if self.config.has_pose:
            return self._follow(tip, now, dt)._replace(gripper=gripper)
        return self._jog(state, tip, now)._replace(gripper=gripper)

    def _problem(self, state: DeviceState, tip: Array | None, now: float) -> str:
        """Return the reason why the device or the arm cannot be used; empty if they can."""
        if state.problem:
            return state.problem
        if now - state.received > self.config.timeout:
            return f"no data from the device for {self.config.timeout:g} s"
        if not np.isfinite([*state.axes.values()]).all():
            return "the device sends values that are not finite"
        return "waiting for the pose of the tip" if tip is None else ""

    def _release(self) -> None:
        """Stop the arm; open the clutch, and ignore each axis until it has been at rest."""
        self._end()
        self._motion.open()
        self._axes.reset()

    def _end(self) -> None:
        if self._is_active:
            self._stops = STOP_MESSAGES
        self._is_active = False

    def _stopping(self, note: str) -> TeleopCommand:
        """Return one of the zero twists that stop the arm; without a target once all are sent."""
        if self._stops == 0:
            return TeleopCommand(note=note)
        self._stops -= 1
        return TeleopCommand(twist=np.zeros(6), note=note)

    def _actions(self, state: DeviceState) -> set[str]:
        """Return the actions whose buttons were pressed since the last step.

        The actions ``faster``, ``slower`` and ``frame`` are executed here.
        """
        new = state.pressed - self._pressed
        self._pressed = state.pressed
        actions = {name for name in ACTIONS if self.config.buttons.get(name) in new}
        if actions & {"faster", "slower"}:
            factor = SPEED_STEP if "faster" in actions else 1.0 / SPEED_STEP
            self.speed = min(max(self.speed * factor, MIN_SPEED_SHARE), MAX_SPEED_SHARE)
        if "frame" in actions:
            self.in_tool = not self.in_tool
        return actions

    def _gripper(self, actions: set[str]) -> float | None:
        if "open" in actions:
            return self.config.gripper_open
        return self.config.gripper_closed if "close" in actions else None

    def _jog(self, state: DeviceState, tip: Array, now: float) -> TeleopCommand:
        """Return a twist from the axes of the device."""
        config = self.config
        values = self._axes.values(state, now)
        if not config.hold and not values.any():
            self._end()
            return self._stopping(self._axes.note)
        self._is_active = True
        V = rotated(self._R, np.array([*_unit(values[:3]), *_unit(values[3:])]))
        V[:3] *= config.linear_speed * self.speed
        V[3:] *= config.angular_speed * self.speed
        if self.in_tool:
            return TeleopCommand(rotated(tip[:3, :3], V), is_active=True, note=self._axes.note)
        frame = "" if config.frame in (BASE_FRAME, TOOL_FRAME) else config.frame
        return TeleopCommand(V, frame, is_active=True, note=self._axes.note)

    def _follow(self, tip: Array, now: float, dt: float) -> TeleopCommand:
        """Return a target pose from the pose of the device."""
        if not self._motion.is_ready:
            return self._stopping("waiting for a pose of the device")
        if not self._is_active:
            self._motion.close(tip)
            self._is_active = True
        T = self._motion.target(tip, now, dt, self.speed, self.in_tool)
        return TeleopCommand(pose=T, is_active=True, note=self._motion.note)


def _unit(v: Array) -> Array:
    """Scale a vector (3,) to a length of at most 1."""
    result: Array = v / max(float(np.linalg.norm(v)), 1.0)
    return result
