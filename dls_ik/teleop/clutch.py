# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Target poses from the pose of a device, relative to the poses at which a clutch was closed."""

from __future__ import annotations

import numpy as np

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array
from dls_ik.model.rotations import rotation_from_rpy
from dls_ik.servo.targets import rotated
from dls_ik.teleop.config import TOOL_FRAME, TeleopConfig
from dls_ik.teleop.device import DeviceState
from dls_ik.teleop.filters import OneEuroFilter, PoseMedian

NOTE_TIME = 2.0  # [s] time for which the note about a jump is shown


class PoseMotion:
    """Target poses that repeat the motion of a device while a clutch is closed.

    Closing the clutch stores the poses of the device and the tip. The target is the stored pose of
    the tip, moved by the scaled motion of the device since then; closing the clutch therefore does
    not move the arm. The clutch is closed again, at the current poses of the device and the target,
    after the device has jumped, after its pose has not changed for `freeze_time`, when the speed or
    the frame changes, and when the target would be farther than `lead` from the tip.

    Args:
        config: Configuration with filters, scales, frame and bounds.

    Attributes:
        is_ready: Whether a pose of the device is known.
        note: Message for the operator, for example about a jump of the device; may be empty.
    """

    def __init__(self, config: TeleopConfig) -> None:
        self._config = config
        self._R = rotation_from_rpy(*config.rpy)
        self._median = PoseMedian(config.median)
        self._euro = OneEuroFilter(config.min_cutoff, config.beta)
        self._count = -1
        self._setting = (1.0, config.frame == TOOL_FRAME)  # speed, and use of the tool's axes
        self._changed = self._jumped = -np.inf  # [s] time of the last change and of the last jump
        # Newest pose (4, 4) of the device: received, after the median filter, after both filters.
        self._raw = self._T_median = self._T = np.eye(4)
        # Poses (4, 4) of the device and the tip at which the clutch was closed; None: it is open.
        self._anchor: tuple[Array, Array] | None = None
        self._target = np.eye(4)
        self.is_ready = False
        self.note = ""

    def open(self) -> None:
        """Open the clutch."""
        self._anchor, self.note = None, ""

    def close(self, tip: Array) -> None:
        """Close the clutch at a pose T_root_tip (4, 4) and at the current pose of the device."""
        self._target = tip.copy()
        self._anchor = (self._T, self._target)

    def receive(self, state: DeviceState) -> None:
        """Filter a new pose of the device, also while the clutch is open; ignore a known pose."""
        if state.pose is None or state.num_poses == self._count:
            return
        now = state.received
        self._count = state.num_poses
        is_same = self.is_ready and np.array_equal(state.pose, self._raw)
        starts_anew = not self.is_ready or (not is_same and self._is_frozen(now))
        if not is_same:
            self._changed, self._raw = now, state.pose
        if not starts_anew:
            median = self._median.filter(state.pose)
            if starts_anew := self._is_beyond(difference(self._T_median, median)):
                self._jumped = now
        if starts_anew:
            self._median.reset()
            self._euro.reset()
            median = self._median.filter(state.pose)
        self._T_median, self._T = median, self._euro.filter(median, now)
        self.is_ready = True
        if starts_anew:
            self._close_anew()

    def target(self, tip: Array, now: float, dt: float, speed: float, in_tool: bool) -> Array:
        """Return the next target T_root_tip (4, 4); while the clutch is open, return `tip`.

        The target moves toward the pose that the device asks for, within the speed limits, and
        stays within `lead` [m] and `lead_angle` [rad] of the tip.

        Args:
            tip: (4, 4) pose T_root_tip of the command.
            now: Current time [s].
            dt: Time since the last call [s].
            speed: Factor of the scales and of the speed limits, above 0 and at most 1.
            in_tool: Whether motions along the axes of the device move the tip along the axes of the
                tool; otherwise motions along the axes of the device's world move it along those of
                the root.
        """
        if self._anchor is None:
            return tip
        if (speed, in_tool) != self._setting:
            self._setting = speed, in_tool
            self._close_anew()
        config, self.note = self._config, self._note(now)
        step = difference(self._target, self._wanted(*self._anchor))
        limits = config.linear_speed * speed * dt, config.angular_speed * speed * dt
        target = moved(self._target, step * _bounded_share(step, *limits))
        ahead = difference(tip, target)
        share = _bounded_share(ahead, config.lead, config.lead_angle)
        self._target = target
        if share < 1.0:
            self._target = moved(tip, share * ahead)
            self._close_anew()
            self.note = "the arm cannot follow and the clutch slips; move back or more slowly"
        return self._target

    def _close_anew(self) -> None:
        """Close the clutch at the current poses of target and device, unless it is open."""
        if self._anchor is not None:
            self._anchor = (self._T, self._target)

    def _wanted(self, device: Array, tip: Array) -> Array:
        """Return the pose (4, 4) of the tip that the motion of the device asks for.

        Args:
            device: (4, 4) pose of the device at which the clutch was closed.
            tip: (4, 4) pose of the tip at which the clutch was closed.
        """
        (speed, in_tool), R = self._setting, self._R
        if in_tool:
            R = tip[:3, :3] @ R @ device[:3, :3].T
        V = rotated(R, difference(device, self._T))
        V[:3] *= self._config.scale * speed
        V[3:] *= self._config.rotation_scale * speed
        return moved(tip, V)

    def _is_frozen(self, now: float) -> bool:
        return 0.0 < self._config.freeze_time < now - self._changed

    def _is_beyond(self, step: Array) -> bool:
        """Return whether a motion (6,) between two poses is a jump of the device."""
        return _bounded_share(step, self._config.jump, self._config.jump_angle) < 1.0

    def _note(self, now: float) -> str:
        if self._is_frozen(now):
            return "the poses of the device do not change"
        return "the device has jumped; jump ignored" if now - self._jumped < NOTE_TIME else ""


def _bounded_share(step: Array, length: float, angle: float) -> float:
    """Return the factor, at most 1, by which a motion must be scaled to be within bounds.

    Args:
        step: (6,) translation [m] and rotation vector [rad].
        length: Maximum length of the translation [m].
        angle: Maximum angle of the rotation [rad].
    """
    sizes = float(np.linalg.norm(step[:3])), float(np.linalg.norm(step[3:]))
    pairs = zip(sizes, (length, angle), strict=True)
    return min(1.0 if size <= bound else bound / size for size, bound in pairs)
