# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint velocities and joint positions as targets of a controller, one message or a stream.

Both targets move the command directly, without inverse kinematics. All times are on a monotonic
clock, in seconds.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import JointValueError
from dls_ik.model.joint import TURN, JointValues, some_by_name
from dls_ik.model.robot import RobotModel
from dls_ik.servo.joint_target import JointFollower, JointTarget
from dls_ik.text import listing

AT_LIMIT_TOLERANCE = 1e-4  # [rad or m] a joint this close to a position limit counts as at it
MESSAGE_INTERVAL_GAIN = 0.1  # weight of the newest interval between messages in the running mean
# Time in which the reference moves to a new position of a stream, in intervals between messages. A
# value above 1 keeps the reference in motion although messages arrive irregularly.
INTERPOLATION_INTERVALS = 1.5


class JointVelocityTarget:
    """Velocities of all joints, in force until the next message or until the timeout.

    Args:
        robot: Robot that follows the target.
        timeout: Time after the last message at which the target times out [s].
    """

    needs_command = True
    description = "joint velocities"

    def __init__(self, robot: RobotModel, timeout: float) -> None:
        self.timeout = timeout
        self._lower, self._upper = robot.lower, robot.upper
        self._v: Array = np.zeros(robot.n)
        self._q: Array | None = None  # command after the last cycle
        self.arrived = self.sampled = -math.inf

    @property
    def reference(self) -> None:
        """None, because velocities demand no joint positions."""
        return

    @property
    def limit_activation(self) -> Array:
        """Activation (n,): 1 for joints at a position limit whose velocity points outward, or 0."""
        if self._q is None:
            return np.zeros_like(self._v)
        return _blocked_joints(self._q, self._v, self._lower, self._upper)

    def take(self, v: Array, sampled: float, now: float) -> None:
        """Store received velocities as the current velocities.

        Args:
            v: (n,) velocities [rad/s or m/s].
            sampled: Time when the velocities were sampled [s].
            now: Time of arrival [s].
        """
        self._v, self.sampled, self.arrived = v, sampled, now

    def advance(self, limiter: JointFollower, now: float, dt: float) -> None:
        """Move the command for one cycle of `dt` [s], which ends at `now` [s]."""
        limiter.drive(self._v, dt)
        self._q = limiter.q

    def has_timed_out(self, now: float) -> bool:
        """Return whether no message has arrived for longer than the timeout."""
        return now - self.arrived > self.timeout


class JointPositionTarget:
    """Positions of the joints: a single configuration, or the newest one of a stream.

    The command moves to a single configuration as fast as the limits allow. Between two messages of
    a stream the reference of the command moves at a constant velocity, so that the command lags by
    approximately one interval between messages. The last positions stay in force.

    Args:
        robot: Robot that follows the target.
        timeout: Longest time between two messages of a stream [s].
    """

    needs_command = True
    description = "joint positions"

    def __init__(self, robot: RobotModel, timeout: float) -> None:
        self.timeout = timeout
        self._lower, self._upper = robot.lower, robot.upper
        self._wanted: Array = np.full(robot.n, np.nan)  # received values; NaN: none
        self._goal: Array = self._wanted  # clipped values
        self._origin: Array = self._wanted  # reference at the last arrival
        self._reference: Array = self._wanted
        self._interval = math.inf  # [s] mean time between messages of a stream
        self._duration = 0.0  # [s] time in which the reference moves from its origin to the goal
        self.arrived = self.sampled = -math.inf

    @property
    def reference(self) -> Array:
        """Joint positions (n,) that the command follows [rad or m]."""
        return self._reference

    @property
    def limit_activation(self) -> Array:
        """Activation (n,): 1 for joints at the limit that their received position exceeds, or 0."""
        return _blocked_joints(self._reference, self._wanted - self._goal, self._lower, self._upper)

    def take(self, q: Array, sampled: float, now: float) -> None:
        """Store received positions as the newest positions.

        Args:
            q: (n,) positions [rad or m]; NaN for joints that keep their last target.
            sampled: Time when the positions were sampled [s].
            now: Time of arrival [s].
        """
        interval = now - self.arrived
        is_stream = interval <= self.timeout
        if not is_stream:
            self._interval = math.inf
        elif math.isfinite(self._interval):
            self._interval += MESSAGE_INTERVAL_GAIN * (interval - self._interval)
        else:
            self._interval = interval
        self._wanted = np.where(np.isnan(q), self._wanted, q)
        self._goal = np.clip(self._wanted, self._lower, self._upper)
        self._origin = self._reference
        self._duration = INTERPOLATION_INTERVALS * self._interval if is_stream else 0.0
        self.sampled, self.arrived = sampled, now

    def advance(self, limiter: JointFollower, now: float, dt: float) -> None:
        """Move the command for one cycle of `dt` [s], which ends at `now` [s]."""
        is_open = np.isnan(self._wanted)
        if is_open.any():  # joints without a target stop
            stop = limiter.stopping_point()
            self._wanted = np.where(is_open, stop, self._wanted)
            self._goal = np.where(is_open, stop, self._goal)
            self._origin = np.where(np.isnan(self._origin), stop, self._origin)
        since = now - self.arrived
        if since < self._duration:
            v = (self._goal - self._origin) / self._duration
            self._reference = self._origin + since * v
        else:
            self._reference, v = self._goal, np.zeros_like(self._goal)
        limiter.advance(self._reference, v, dt)

    def has_timed_out(self, now: float) -> bool:
        """Return False: the last positions stay in force."""
        return False


AnyJointTarget: TypeAlias = JointTarget | JointVelocityTarget | JointPositionTarget
JOINT_TARGETS = (JointTarget, JointVelocityTarget, JointPositionTarget)


def checked_velocities(given: JointValues, robot: RobotModel, frozen: Sequence[str]) -> Array:
    """Return validated joint velocities (n,) [rad/s or m/s].

    Args:
        given: (n,) velocities, or velocities of some joints by name; the other joints rest.
        robot: Robot that moves.
        frozen: Names of joints that must not move.

    Raises:
        JointValueError: If a name is unknown, a value is not finite or above
            `MAX_POSE_COORDINATE`, the number of values is wrong, or a frozen joint would move.
    """
    v = _checked(given, robot, np.zeros(robot.n))
    pairs = zip(robot.joint_names, v.tolist(), strict=True)
    moved = [name for name, velocity in pairs if name in frozen and velocity != 0.0]
    if moved:
        raise JointValueError(
            f"joints {listing(moved)} must not move, because frozen_joints names them; leave them "
            "out, or remove them from frozen_joints"
        )
    return v


def checked_positions(
    given: JointValues, robot: RobotModel, frozen: Sequence[str], near: Array
) -> Array:
    """Return validated joint positions (n,) [rad or m]; NaN for joints that are not given.

    Positions of continuous joints are shifted by full turns to be as close to `near` as possible.

    Args:
        given: (n,) positions, or positions of some joints by name.
        robot: Robot that moves.
        frozen: Names of joints whose positions are ignored.
        near: (n,) current command [rad or m].

    Raises:
        JointValueError: If a name is unknown, a value is not finite or above
            `MAX_POSE_COORDINATE`, or the number of values is wrong.
    """
    q = _checked(given, robot, near)
    q = q + np.where(robot.continuous, np.round((near - q) / TURN) * TURN, 0.0)
    is_named = np.array([
        name not in frozen and (not isinstance(given, Mapping) or name in given)
        for name in robot.joint_names
    ])  # fmt: skip
    return np.where(is_named, q, np.nan)


def _checked(given: JointValues, robot: RobotModel, default: Array) -> Array:
    """Return validated values (n,) of all joints; joints that are not named have a default."""
    values: Any = given
    if isinstance(given, Mapping):
        named = dict(zip(robot.joint_names, default.tolist(), strict=True))
        some_by_name(given, robot.joint_names, None)  # refuses unknown names
        values = {**named, **given}
    checked = robot.validated_one(values)
    if not (np.abs(checked) <= MAX_POSE_COORDINATE).all():
        j = int(np.abs(checked).argmax())
        raise JointValueError(
            f"values of joints must be at most {MAX_POSE_COORDINATE:g}; joint "
            f"{robot.joint_names[j]!r} has {checked[j]:g}"
        )
    return checked.copy()


def _blocked_joints(q: Array, outward: Array, lower: Array, upper: Array) -> Array:
    """Return 1 for each joint at a position limit beyond which `outward` (n,) points, else 0."""
    at_upper = (outward > 0.0) & (q >= upper - AT_LIMIT_TOLERANCE)
    at_lower = (outward < 0.0) & (q <= lower + AT_LIMIT_TOLERANCE)
    return np.where(at_upper | at_lower, 1.0, 0.0)
