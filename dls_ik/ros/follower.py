"""What the arm does in a cycle: rest, start, follow, hold. No ROS, and time is an argument."""

import math
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo import Servo, ServoCode
from dls_ik.solver.poses import checked_pose

AT_REST = 0.5  # [s] without a new target and without motion
STANDSTILL = 1e-3  # [rad/s or m/s]


class Motion(NamedTuple):
    """The command of a cycle."""

    names: tuple[str, ...]  # (n,) of the joints
    q: Array  # (n,) [rad or m]
    velocity: Array  # (n,) [rad/s or m/s]
    code: ServoCode
    position_error: float  # [m] NaN without a target
    rotation_error: float  # [rad]
    T_d: Array | None  # (4, 4) T_base_tip that is followed; None: none


class Follower:
    """Follows targets by a servo, from where the arm really is.

    Until the first target the command is where the arm is measured to be. While targets come, each
    command goes on from the one before, because a measurement lags. When the arm has come to rest,
    the next target starts it from the measurement again.
    """

    def __init__(self, servo: Servo, start: Array) -> None:
        servo.reset(start)
        self._servo = servo
        self._target: Array | None = None
        self._last_event = -math.inf
        self.started = False  # there was a target that was not refused
        self.refused = False  # and the last one was

    @property
    def robot(self) -> RobotModel:
        """The robot that is moved."""
        return self._servo.robot

    @property
    def command(self) -> Array:
        """The last command (n,) [rad or m]."""
        return self._servo.command

    def use(self, servo: Servo) -> None:
        """Go on with another servo of the same robot, from the same command."""
        servo.reset(self._servo.command)
        self._servo = servo

    def aim(self, T_base_tip: Array, now: float, measured: Array | None) -> None:
        """Take a new target (4, 4); at rest start from the measurement, where there is one.

        Raises:
            PoseError: not a pose; nothing changes.
        """
        target = checked_pose(T_base_tip)
        if measured is not None and now - self._last_event > AT_REST:
            self._servo.reset(measured)
        self._target = target
        self.refused = False
        self._last_event = now
        self.started = True

    def hold(self) -> None:
        """Stand still, because a target was refused."""
        self._target = None
        self.refused = True

    def rest(self, measured: Array) -> None:
        """Before the first target: be where the arm is measured to be."""
        if not self.started:
            self._servo.reset(measured)

    def cycle(self, now: float, dt: float) -> Motion:
        """Advance by `dt` [s] toward the target, which stays in force until there is another."""
        before = self._servo.command
        out = self._servo.step(self._target, dt)
        velocity = (out.q - before) / dt
        if float(np.max(np.abs(velocity))) > STANDSTILL:
            self._last_event = now
        code = ServoCode.INVALID if self.refused else out.code
        errors = (out.position_error, out.rotation_error)
        return Motion(self.robot.joint_names, out.q, velocity, code, *errors, self._target)
