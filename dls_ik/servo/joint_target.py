# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint trajectory as the target of a controller, with tolerances and an end."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from dls_ik.core.types import Array
from dls_ik.servo.joint_spline import JointSpline

LAG_TIMEOUT = 0.5  # [s] a command that lags behind the trajectory for this time is blocked
MAX_LAG_TIME = 0.1  # [s] the trajectory waits if a lag exceeds the full speed times this
MAX_LAG_SPEED = 10.0  # [rad/s or m/s] largest full speed that this rule assumes
AT_GOAL_TOLERANCE = 1e-6  # [rad or m] the command has reached the goal within this distance
MAX_START_DISTANCE = 0.05  # [rad or m] largest distance of the arm from the start of a trajectory


class MotionEnd(enum.Enum):
    """Reason why a joint trajectory has ended."""

    DONE = enum.auto()
    PATH_TOLERANCE = enum.auto()  # a joint was farther from the trajectory than permitted
    GOAL_TOLERANCE = enum.auto()  # a joint did not reach its goal in time
    BLOCKED = enum.auto()  # the limits, or a pair of links or objects, stopped the command
    PREEMPTED = enum.auto()  # another target arrived
    STOPPED = enum.auto()  # a pause, a reset, a fault or a cancel stopped the arm
    REFUSED = enum.auto()  # the arm was not at the start of the trajectory


class Tolerances(NamedTuple):
    """Permitted distances of n joints from a trajectory and from its goal."""

    path: Array  # (n,) [rad or m]; infinite: any distance
    goal: Array  # (n,) [rad or m]
    goal_time: float  # [s] time after the end of the trajectory until the goal must be reached


class MotionState(NamedTuple):
    """State of a trajectory in a cycle: desired and actual motion of n joints."""

    time: float  # [s] time along the trajectory
    q: Array  # (n,) desired positions [rad or m]
    v: Array  # (n,) desired velocities [rad/s or m/s]
    a: Array  # (n,) desired accelerations [rad/s^2 or m/s^2]
    actual: Array  # (n,) measured positions, or commanded positions without a measurement


class JointFollower(Protocol):
    """Limiter or guard of a command."""

    @property
    def q(self) -> Array:
        """Command (n,) [rad or m]."""

    @property
    def rate(self) -> Array:
        """Velocity of the command at the end of the last cycle (n,) [rad/s or m/s]."""

    def stopping_point(self) -> Array:
        """Return the joint positions (n,) at which the command comes to rest if it stops now."""

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Move the command toward a reference for one cycle."""

    def drive(self, v: Array, dt: float) -> None:
        """Move the command toward a velocity for one cycle."""


class JointTarget:
    """Joint trajectory that a command follows within its limits.

    While the command lags, for example in front of an obstacle, the trajectory waits, so that the
    arm does not leave its path. The trajectory ends once: at its goal, if a tolerance is violated,
    if the command is blocked, or if another event ends it. At the goal the arm holds.

    Args:
        spline: Trajectory of all n joints.
        names: (n,) names of the joints.
        velocity: (n,) velocity limits [rad/s or m/s].
        tolerances: Permitted distances.
        on_end: Function that is called once with the reason of the end and a message.
        delay: Time until the start of the trajectory [s].

    Attributes:
        state: State in the last cycle; None before the first cycle.
        reference: (n,) desired joint positions in the last cycle [rad or m].
    """

    needs_command = True
    description = "a joint trajectory"

    def __init__(
        self,
        spline: JointSpline,
        names: tuple[str, ...],
        velocity: Array,
        tolerances: Tolerances,
        on_end: Callable[[MotionEnd, str], None],
        delay: float = 0.0,
    ) -> None:
        self.spline, self.names, self.tolerances = spline, names, tolerances
        self._max_lag = MAX_LAG_TIME * np.minimum(velocity, MAX_LAG_SPEED) + 1e-3
        self._on_end, self._delay = on_end, delay
        self.state: MotionState | None = None
        self.reference = spline.q[0]
        self.has_ended = False
        self.sampled = self._start = 0.0
        self._time = self._lag_time = self._late_time = 0.0
        self._is_interrupted = False

    @property
    def limit_activation(self) -> Array:
        """Zeros (n,), because a trajectory lies within the position limits."""
        return np.zeros_like(self.reference)

    def start_error(self, q: Array) -> str:
        """Return why the trajectory cannot start at a command q (n,); empty if it can."""
        j = int(np.abs(q - self.spline.q[0]).argmax())
        if abs(q[j] - self.spline.q[0, j]) <= MAX_START_DISTANCE:
            return ""
        return (
            f"the trajectory starts with joint {self.names[j]!r} at {self.spline.q[0, j]:.4g}, and "
            f"the arm is at {q[j]:.4g}; start within {MAX_START_DISTANCE:g} of the current position"
        )

    def advance(self, limiter: JointFollower, now: float, dt: float) -> None:
        """Move the reference and the command for one cycle of `dt` [s], which ends at `now` [s].

        The first call replaces the start of the trajectory by the state of the command.
        """
        if self.state is None:
            self.spline = self.spline.starting_at(limiter.q, limiter.rate)
            self.reference, self._start = limiter.q.copy(), now - dt + self._delay
        self.sampled = now
        waits = bool((np.abs(limiter.q - self.reference) > self._max_lag).any())
        is_started = now >= self._start and not self._is_interrupted
        self._is_interrupted = False
        if is_started and not waits:
            self._time += dt
        q, v, a = self.spline.at(self._time)
        self.reference = q
        limiter.advance(q, v if is_started and not waits else np.zeros_like(v), dt)
        self._lag_time = self._lag_time + dt if waits else 0.0
        if self._time > self.spline.duration:
            self._late_time += dt
        self.state = MotionState(self._time, q, v, a, limiter.q)

    def judge(self, measured: Array | None, command: Array, cause: str) -> str:
        """End the trajectory if it is complete, or return why it has failed.

        Args:
            measured: (n,) measured joint positions [rad or m]; None: no measurement.
            command: (n,) command [rad or m].
            cause: Text that names what limits the command; empty if nothing does.

        Returns:
            Reason of the failure, after which the arm must stop; empty without a failure.
        """
        if self.state is None or self.has_ended:
            return ""
        actual = command if measured is None else measured
        self.state = self.state._replace(actual=actual)
        if reason := self._off_path(actual):
            return self._fail(MotionEnd.PATH_TOLERANCE, reason)
        if self._lag_time >= LAG_TIMEOUT:
            words = cause or "the limits of the joints keep the command from following"
            at = f"{self._time:.3g} s of {self.spline.duration:.3g} s"
            return self._fail(MotionEnd.BLOCKED, f"the motion is blocked at {at}: {words}")
        if self._time < self.spline.duration:
            return ""
        goal = self.spline.q[-1]
        away = np.abs(actual - goal)
        if (np.abs(command - goal) <= AT_GOAL_TOLERANCE).all() and (
            away <= self.tolerances.goal
        ).all():
            self.end(MotionEnd.DONE, "")
            return ""
        if self._late_time <= self.tolerances.goal_time:
            return ""
        j = int((away - self.tolerances.goal).argmax())
        return self._fail(
            MotionEnd.GOAL_TOLERANCE,
            f"joint {self.names[j]!r} is {away[j]:.4g} from its goal {self.tolerances.goal_time:g} "
            f"s after the end of the trajectory; the goal tolerance is {self.tolerances.goal[j]:g}",
        )

    def end(self, reason: MotionEnd, message: str) -> None:
        """End the trajectory; do nothing if it has ended."""
        if not self.has_ended:
            self.has_ended = True
            self._on_end(reason, message)

    def interrupt(self) -> None:
        """Delay the trajectory by one cycle, because the command does not move."""
        self._is_interrupted = True

    def _fail(self, reason: MotionEnd, message: str) -> str:
        self.end(reason, message)
        return message

    def _off_path(self, actual: Array) -> str:
        if self.state is None:
            return ""
        away = np.abs(actual - self.state.q)
        if (away <= self.tolerances.path).all():
            return ""
        j = int((away - self.tolerances.path).argmax())
        return (
            f"joint {self.names[j]!r} is {away[j]:.4g} from the trajectory at {self._time:.3g} s; "
            f"the path tolerance is {self.tolerances.path[j]:g}"
        )
