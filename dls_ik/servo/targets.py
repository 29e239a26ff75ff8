# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets of the controller: a pose or a stream of poses, a twist, or a trajectory.

A target computes the desired pose of the tip for each cycle. All times are on a monotonic clock, in
seconds. The functions whose names begin with ``checked`` validate arguments of public methods.
"""

import math
from collections import deque
from collections.abc import Callable, Sequence
from itertools import pairwise
from numbers import Real
from statistics import median
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import OptionError, PoseError
from dls_ik.model.joint import real_array
from dls_ik.model.pose import PoseLike
from dls_ik.model.rotations import transform
from dls_ik.servo.trajectory_plan import TrajectoryPlan
from dls_ik.solver.poses import batch_poses, checked_pose
from dls_ik.text import quoted

SAME_POSE_TOLERANCE = 1e-4  # [m and 1] difference of matrix entries up to which poses are equal
STATIC_TIME = 0.25  # [s] time without change after which a target counts as static
REPEATED_STATIC_TIME = 0.1  # [s] shorter time that suffices if messages repeat the pose meanwhile
MAX_EXTRAPOLATION = 1.5  # longest extrapolation, in intervals between poses
MIN_STREAM_POSES = 5  # fewer poses in a row are not a stream, but single poses
MIN_MESSAGE_INTERVAL = 1e-4  # [s] shorter times between two messages are not measured
MESSAGE_TOLERANCE = 0.01  # [intervals] a message counts as missing this much before it is due
MIN_REPEATS = 5  # messages with the same pose that show that a stream rests
TWIST_GAIN = 10.0  # [1/s] K_p in :class:`TwistTarget`
MIN_TWIST_SHARE = 0.1  # a tip that moves by a smaller share of the twist counts as blocked
LOOKAHEAD_SHARE_NEAR_OBSTACLE = 0.02  # share of the lookahead used while a pair limits the motion
MAX_CYCLE_MOTION = 1.0  # [m and rad] largest motion in a cycle; half a turn would be ambiguous
START_POSE_TOLERANCE = 1e-3  # [m and rad] largest distance of the tip that is at the first pose


def checked_time(name: str, value: Any) -> float:
    """Return a time or age [s] as a float, after checking that it is finite.

    Raises:
        OptionError: If the value is not a finite number.
    """
    time = _to_float(value)
    if not -math.inf < time < math.inf:
        raise OptionError(f"{name} must be a finite time [s]; got {quoted(value)}")
    return time


def checked_duration(dt: Any) -> float:
    """Return a duration [s] as a float, after checking that it is positive and finite.

    Raises:
        OptionError: If the value is not a finite positive number.
    """
    duration = _to_float(dt)
    if not 0.0 < duration < math.inf:
        raise OptionError(f"dt must be a finite time above 0 [s]; got {quoted(dt)}")
    return duration


def checked_period(period: Any) -> float:
    """Return the time between two poses of a trajectory [s] as a float, after checking its range.

    Raises:
        OptionError: If the value is not a number from 0.001 to 3600.
    """
    interval = _to_float(period)
    if not 1e-3 <= interval <= 3600.0:
        raise OptionError(f"period must be from 0.001 to 3600 [s]; got {quoted(period)}")
    return interval


def _to_float(value: Any) -> float:
    """Convert a real number to float; return NaN for any other value."""
    if type(value) is float:  # the usual case; the check against an abstract class takes 2 us
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def checked_twist(V: ArrayLike, R: ArrayLike | None) -> Array:
    """Return a validated twist (6,) with components along the base axes.

    Args:
        V: (6,) linear and angular velocity [m/s, rad/s], with components along the axes R.
        R: (3, 3) orientation of the axes in the base frame; None: V is not rotated.

    Raises:
        PoseError: If the twist is not six finite numbers of at most `MAX_POSE_COORDINATE`, or R is
            not a rotation.
    """
    twist = _to_array(V, "a twist must be 6 numbers, linear then angular velocity")
    if twist.shape != (6,):
        raise PoseError(
            "a twist must be 6 numbers, linear then angular velocity; got an array of shape "
            f"{twist.shape}"
        )
    if not (np.abs(twist) <= MAX_POSE_COORDINATE).all():
        raise PoseError(
            f"a twist must be finite and at most {MAX_POSE_COORDINATE:g} [m/s, rad/s]; got {twist}"
        )
    return twist.copy() if R is None else rotated(_checked_rotation(R), twist)


def _checked_rotation(R: ArrayLike) -> Array:
    rotation = _to_array(R, "the axes of a twist must be a 3x3 rotation matrix")
    if rotation.shape != (3, 3):
        raise PoseError(
            "the axes of a twist must be a 3x3 rotation matrix; got an array of shape "
            f"{rotation.shape}"
        )
    return checked_pose(transform(rotation))[:3, :3]


def checked_trajectory(Ts: PoseLike) -> Array:
    """Return the poses of a trajectory as an array (m, 4, 4), after checking them.

    Raises:
        PoseError: If there is no pose, or a pose is invalid; the message gives its index.
    """
    try:
        poses = batch_poses(Ts, 1)[:, 0]
    except PoseError as error:
        raise PoseError(f"a trajectory must be an array (m, 4, 4) of poses: {error}") from error
    if not len(poses):
        raise PoseError("a trajectory must be an array (m, 4, 4) of at least one pose; got none")
    return np.array([_checked_member(T, k) for k, T in enumerate(poses)])


def _checked_member(T: Array, k: int) -> Array:
    try:
        return checked_pose(T)
    except PoseError as error:
        raise PoseError(f"pose {k} of the trajectory: {error}") from error


def _to_array(values: Any, requirement: str) -> Array:
    try:
        return real_array(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise PoseError(f"{requirement}; got {quoted(values)}") from error


def is_same(T_a: Array, T_b: Array, length_unit: float = 1.0) -> bool:
    """Return whether poses (..., 4, 4) are equal up to `SAME_POSE_TOLERANCE`.

    Args:
        T_a: (..., 4, 4) first poses.
        T_b: (..., 4, 4) second poses.
        length_unit: Length units of the poses per metre.
    """
    change = T_a - T_b
    if length_unit != 1.0:
        change[..., :3, 3] /= length_unit
    return max(map(abs, change.ravel().tolist())) <= SAME_POSE_TOLERANCE


def rotated(R: Array, V: Array) -> Array:
    """Rotate a twist: return its components (6,) along the base axes.

    Args:
        R: (3, 3) orientation of the axes of V in the base frame.
        V: (6,) twist with components along the axes R.
    """
    return np.concatenate([R @ V[:3], R @ V[3:]])


class Target(Protocol):
    """A desired pose as a function of time."""

    @property
    def sampled(self) -> float:
        """Time when the newest data were sampled [s]."""

    @property
    def is_velocity(self) -> bool:
        """Return whether local motion starts each step at the command."""

    @property
    def needs_command(self) -> bool:
        """Return whether `tip` in :meth:`pose` must return the pose at the command.

        Otherwise it returns the pose at the joint positions that the command follows.
        """

    def pose(self, now: float, dt: float, tip: Callable[[], Array]) -> Array:
        """Return the desired T_base_tip (4, 4) at the end of a cycle; call once per cycle.

        Args:
            now: Current time [s].
            dt: Duration of the cycle [s].
            tip: Function that returns the current T_base_tip (4, 4); see `needs_command`.
        """

    def has_timed_out(self, now: float) -> bool:
        """Return whether the target is a stream, and its last message is older than the timeout."""

    def is_static(self, now: float) -> bool:
        """Return whether the desired pose has stopped, so that the arm may take any path to it."""


class StreamMotion(NamedTuple):
    """Motion of a stream of poses."""

    velocity: Array  # (6,) median of the recent velocities [m/s, rad/s]
    interval: float  # median of the recent intervals between arrivals [s]


def stream_motion(recent: Sequence[tuple[Array, float, float]], timeout: float) -> StreamMotion:
    """Return the motion of a stream; one pose with a large error does not affect the medians.

    Args:
        recent: At least two poses (4, 4), with their times of sampling and of arrival [s].
        timeout: Longest time between two poses of a stream [s].
    """
    velocities, intervals = [], []
    for (T_a, sampled_a, arrived_a), (T_b, sampled_b, arrived_b) in pairwise(recent):
        velocities.append(velocity_between(T_a, T_b, sampled_b - sampled_a, timeout))
        intervals.append(arrived_b - arrived_a)
    interval = max(median(intervals), MIN_MESSAGE_INTERVAL)
    return StreamMotion(np.asarray(np.median(velocities, axis=0)), interval)


def velocity_between(T_a: Array, T_b: Array, between: float, timeout: float) -> Array:
    """Return the velocity (6,) between two poses [m/s, rad/s]; zero if the time is unusable.

    Args:
        T_a: (4, 4) first pose.
        T_b: (4, 4) second pose.
        between: Time between the two poses [s].
        timeout: Longest usable time [s].
    """
    return difference(T_a, T_b) / between if 1e-4 < between <= timeout else np.zeros(6)


class PoseTarget:
    """A single pose that remains the target until the next pose, or the newest pose of a stream.

    A run of poses is a sequence in which each pose arrives at most `timeout` after the previous
    pose. A run of at least `MIN_STREAM_POSES` poses is a stream, which times out when no pose has
    arrived for longer than `timeout`. The poses of a shorter run are single poses, which never time
    out.

    Args:
        timeout: Longest time between two poses of a stream [s].
        feed_forward: Whether to extrapolate between messages by the velocity of the last two poses.
        length_unit: Length units of the poses per metre.
        bridge_time: Time without messages for which a stream continues at its last velocity [s].

    Attributes:
        arrived: Time of arrival of the newest pose [s].
    """

    is_velocity = False
    needs_command = False

    def __init__(
        self,
        timeout: float,
        feed_forward: bool,
        length_unit: float = 1.0,
        bridge_time: float = 0.0,
    ) -> None:
        self.timeout, self.feed_forward, self.bridge_time = timeout, feed_forward, bridge_time
        self._unit = length_unit
        self._T: Array = np.eye(4)
        self._reference: Array = self._T  # first pose since the last change
        # Poses (4, 4) of the current run, with their times of sampling and of arrival [s]
        self._recent: deque[tuple[Array, float, float]] = deque(maxlen=MIN_STREAM_POSES + 1)
        self._motion: StreamMotion | None = None  # computed from the recent poses if needed
        self._velocity: Array | None = None  # (6,) mean twist between the last two poses
        self._first_use: float | None = None  # [s] first cycle that used the newest pose
        self.arrived = self.sampled = self._changed = -math.inf
        self._count = 0  # poses of the current run
        self._repeats = 0  # messages with the same pose since the last change

    @property
    def last(self) -> Array:
        """The newest pose (4, 4), without extrapolation."""
        return self._T

    def take(self, T: Array, sampled: float, now: float) -> None:
        """Store a received pose as the newest pose.

        Args:
            T: (4, 4) T_base_tip.
            sampled: Time when the pose was sampled [s].
            now: Time of arrival [s].
        """
        continues = now - self.arrived <= self.timeout
        self._count = self._count + 1 if continues else 1
        if not continues or not is_same(T, self._reference, self._unit):
            self._changed, self._reference, self._repeats = now, T, 0
        else:
            self._repeats += 1
        if not continues:
            self._recent.clear()
        self._recent.append((T, sampled, now))
        self._T, self.arrived, self.sampled = T, now, sampled
        self._motion = self._velocity = self._first_use = None

    def pose(self, now: float, dt: float, tip: Callable[[], Array]) -> Array:
        """Return the newest pose (4, 4), or the pose to which the stream has probably moved.

        The pose is extrapolated to `now` if `feed_forward` is set, or if messages of a stream are
        missing and `bridge_time` is not zero.
        """
        if not (self.feed_forward or self.bridge_time) or len(self._recent) < 2:
            return self._T
        if self._first_use is None:
            self._first_use = now
        velocity, ahead = self._missing_motion(now)
        if self.feed_forward and ahead == 0.0:
            T_a, sampled_a, arrived_a = self._recent[-2]
            T_b, sampled_b, arrived_b = self._recent[-1]
            ahead = min(max(now - sampled_b, 0.0), MAX_EXTRAPOLATION * (arrived_b - arrived_a))
            if self._velocity is None:
                self._velocity = velocity_between(T_a, T_b, sampled_b - sampled_a, self.timeout)
            velocity = self._velocity
        return moved(self._T, velocity * ahead) if ahead > 0.0 else self._T

    def _missing_motion(self, now: float) -> tuple[Array, float]:
        """Return the velocity (6,) of the stream and the time [s] for which messages are missing.

        The time is 0 if no message is missing, or missing messages are not bridged.
        """
        since = 0.0 if self._first_use is None else now - self._first_use
        if since <= 0.0 or not self.bridge_time or self._count < MIN_STREAM_POSES:
            return np.zeros(6), 0.0
        if self._motion is None:
            self._motion = stream_motion(self._recent, self.timeout)
        velocity, interval = self._motion
        missing = math.floor(since / interval + MESSAGE_TOLERANCE)
        late = now - self.sampled if self.feed_forward else missing * interval
        return velocity, min(max(late, 0.0), self.bridge_time) if missing > 0 else 0.0

    def finish(self) -> None:
        """Treat the newest pose as a single pose, which neither moves nor times out."""
        self._count = 1
        self._recent.clear()

    def has_timed_out(self, now: float) -> bool:
        """Return whether a stream of poses has timed out; single poses never time out."""
        return self._count >= MIN_STREAM_POSES and now - self.arrived > self.timeout

    def is_static(self, now: float) -> bool:
        """Return whether the newest pose has been the same for `STATIC_TIME`.

        `REPEATED_STATIC_TIME` suffices if at least `MIN_REPEATS` messages have repeated the pose.
        Without messages, the time is longer, because those of a moving stream may have been lost.
        """
        repeated = self.arrived - self._changed
        is_repeated = repeated >= REPEATED_STATIC_TIME and self._repeats >= MIN_REPEATS
        return is_repeated or now - self._changed >= STATIC_TIME


class TwistTarget:
    """A twist, followed by resolved motion rate control (Deo & Walker 1993).

    The tip pose x_a moves at the velocity x' = x'_d + K_p (x_d - x_a), where x'_d is the twist and
    x_d is the integral of the twist. The distance from x_a to x_d is limited to `lookahead`, so
    that the tip does not catch up after it was blocked: a twist demands only a velocity.

    Args:
        timeout: Time after the last twist at which the target times out [s].
        lookahead: Largest distance of x_d from the tip [m].
        rotation_weight: Length that corresponds to 1 rad of lookahead [m/rad].
        length_unit: Length units of the twist per metre.

    Attributes:
        allowed_share: Function that returns the factor, at most 1, by which a twist (6,) must be
            reduced to the tip's speed limits; None: no limits.
        is_near_obstacle: Whether a nearby pair of links or objects slows or deflects the tip.
    """

    is_velocity = True
    needs_command = True

    def __init__(
        self, timeout: float, lookahead: float, rotation_weight: float, length_unit: float = 1.0
    ) -> None:
        self.timeout, self.lookahead = timeout, lookahead
        self._weights = np.array([1.0 / length_unit] * 3 + [rotation_weight] * 3)  # [m] per unit
        self._units = np.array([length_unit] * 3 + [1.0] * 3)
        self.allowed_share: Callable[[Array], float] | None = None
        self._V: Array = np.zeros(6)
        self._in_tool = False
        self._x_d: Array | None = None  # (4, 4) integral of the twist
        self._x_a: Array | None = None  # (4, 4) pose of the tip in the last cycle
        self.is_near_obstacle = False
        self._arrived = self.sampled = -math.inf

    def take(self, V: Array, in_tool: bool, sampled: float, now: float) -> None:
        """Store a received twist as the current twist.

        Args:
            V: (6,) linear and angular velocity of the tip [m/s, rad/s].
            in_tool: Whether the components of V are along the current axes of the tip, not along
                the base axes.
            sampled: Time when the twist was sampled [s].
            now: Time of arrival [s].
        """
        self._V, self._in_tool, self._arrived, self.sampled = V, in_tool, now, sampled

    def pose(self, now: float, dt: float, tip: Callable[[], Array]) -> Array:
        """Return the desired T_base_tip (4, 4) at the end of the cycle."""
        x_a = tip()
        V = rotated(x_a[:3, :3], self._V) if self._in_tool else self._V
        step = V * (dt if self.allowed_share is None else self.allowed_share(V) * dt)
        longest = float(np.abs(step / self._units).max())
        if longest > MAX_CYCLE_MOTION:
            step = step * (MAX_CYCLE_MOTION / longest)
        ahead = self._ahead(x_a)
        share = 1.0 if self._is_blocked(x_a, step) else min(TWIST_GAIN * dt, 1.0)
        self._x_d, self._x_a = moved(moved(x_a, ahead), step), x_a
        return moved(x_a, step + share * ahead)

    def has_timed_out(self, now: float) -> bool:
        """Return whether no twist has arrived for longer than the timeout."""
        return now - self._arrived > self.timeout

    def is_static(self, now: float) -> bool:
        """Return False, so that no joint motion replaces the motion by a twist."""
        return False

    def _is_blocked(self, x_a: Array, step: Array) -> bool:
        """Return whether the tip moved much less in the last cycle than the twist demands.

        For a blocked tip, :meth:`pose` returns x_d itself instead of a pose that approaches x_d
        with the gain K_p. While the tip rests, the desired pose then rests too.

        Args:
            x_a: (4, 4) current pose of the tip.
            step: (6,) motion that the twist demands in a cycle [m, rad].
        """
        if self._x_a is None:
            return False
        made, wanted = self._weights * difference(self._x_a, x_a), self._weights * step
        return float(made @ wanted) < MIN_TWIST_SHARE * float(wanted @ wanted)

    def _ahead(self, x_a: Array) -> Array:
        """Return the motion (6,) from the tip pose x_a to x_d [m, rad], limited to `lookahead`."""
        if self._x_d is None:
            return np.zeros(6)
        ahead = difference(x_a, self._x_d)
        length = float(np.linalg.norm(self._weights * ahead))
        limit = self.lookahead * (LOOKAHEAD_SHARE_NEAR_OBSTACLE if self.is_near_obstacle else 1.0)
        return ahead * (limit / length) if length > limit else ahead


class TrajectoryTarget:
    """Trajectory of poses at equal time intervals.

    The tip moves to the first pose on any path, and then passes each later pose at its time.
    Between two poses the tip moves along a line and turns about one axis, at constant velocity. The
    last pose remains the desired pose.

    Args:
        Ts: (m, 4, 4) poses T_base_tip.
        period: Time between two poses [s].
        start: Earliest time at which the tip leaves the first pose [s].
        length_unit: Length units of the poses per metre.

    Attributes:
        plan: How the arm can follow the trajectory; None until the planner has answered.
        is_waiting: Whether the tip must not leave the first pose, because the arm moves to the
            start of the planned joint path.
    """

    is_velocity = False
    needs_command = True

    def __init__(self, Ts: Array, period: float, start: float, length_unit: float = 1.0) -> None:
        self.plan: TrajectoryPlan | None = None
        self.is_waiting = False
        self._poses = Ts
        self._Ts: list[Array] = list(Ts)
        self._legs = np.array([difference(a, b) for a, b in pairwise(Ts)])  # (m - 1, 6)
        self._tolerance = START_POSE_TOLERANCE * np.array([length_unit] * 3 + [1.0] * 3)  # (6,)
        self._period, self._start = period, start
        self._started: float | None = None  # [s] time when the tip left the first pose
        self._is_interrupted = False
        self._is_guided = False
        self.sampled = start

    @property
    def poses(self) -> Array:
        """Poses T_base_tip (m, 4, 4) of the trajectory; not a copy."""
        return self._poses

    @property
    def num_poses(self) -> int:
        """Number of poses."""
        return len(self._Ts)

    @property
    def first_pose(self) -> Array:
        """First pose T_base_tip (4, 4) of the trajectory."""
        return self._Ts[0]

    @property
    def note(self) -> str:
        """Reason why local motion cannot follow all poses from the current joint positions.

        The text is empty if there is no plan or no such reason, and after the arm has reached the
        start of the planned joint path.
        """
        plan = self.plan
        if plan is None or (self._is_guided and not self.is_waiting):
            return ""
        return plan.reason if plan.is_final else f"{plan.reason}; searching for other branches"

    def wait(self) -> None:
        """Return to the first pose, and wait there until :meth:`release`."""
        self.is_waiting, self._is_guided, self._started = True, True, None

    def release(self, is_guided: bool) -> None:
        """Start the trajectory as soon as the tip is at the first pose.

        Args:
            is_guided: Whether the arm is at the start of the planned joint path, and follows it.
        """
        self.is_waiting, self._is_guided = False, is_guided

    def guide(self, now: float) -> Array | None:
        """Return the joint positions of the planned path at a time.

        Args:
            now: Time [s].

        Returns:
            Joint positions (n,) [rad or m]; None if local motion follows the trajectory.
        """
        plan = self.plan
        if not self._is_guided or plan is None or plan.guide is None:
            return None
        started = self._started
        return plan.guide.positions(0.0 if started is None else (now - started) / self._period)

    def interrupt(self) -> None:
        """Delay the trajectory by the time from the last call of :meth:`pose` to the next call."""
        self._is_interrupted = True

    def pose(self, now: float, dt: float, tip: Callable[[], Array]) -> Array:
        """Return the pose (4, 4) of the trajectory at the time `now` [s]."""
        if self._is_interrupted:
            self._postpone(max(now - self.sampled, 0.0))
        self.sampled = now
        if self._started is None:
            left = difference(tip(), self._Ts[0])
            is_early = now < self._start or self.is_waiting
            if is_early or (np.abs(left) > self._tolerance).any():
                return self._Ts[0]
            self._started = now
        done = max(0.0, now - self._started) / self._period
        leg = int(done)
        if leg >= len(self._legs):
            return self._Ts[-1]
        return moved(self._Ts[leg], self._legs[leg] * (done - leg))

    def has_timed_out(self, now: float) -> bool:
        """Return False: a trajectory arrives in one message, so it cannot time out."""
        return False

    def is_static(self, now: float) -> bool:
        """Return whether the first or last pose has been the desired pose for `STATIC_TIME`."""
        if self._started is None:
            return now - self._start >= STATIC_TIME
        return now - self._started >= len(self._legs) * self._period + STATIC_TIME

    def _postpone(self, duration: float) -> None:
        self._is_interrupted = False
        self._start += duration
        if self._started is not None:
            self._started += duration
