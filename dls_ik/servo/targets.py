"""Targets of the controller: a pose or a stream of poses, a twist, a trajectory.

A target gives the pose to be at, at any time on the steady clock [s]. Checks of their arguments are
in the first section, and are called by the public methods of the controller only.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from numbers import Real
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.se3 import FARTHEST, difference, moved
from dls_ik.core.types import Array
from dls_ik.errors import OptionError, PoseError
from dls_ik.model.joint import real_array
from dls_ik.model.pose import PoseLike
from dls_ik.model.rotations import transform
from dls_ik.solver.poses import batch_poses, checked_pose
from dls_ik.text import quoted

SAME = 1e-4  # [m and 1] entries of two poses that are the same target, in spite of noise
STANDING = 0.25  # [s] without change, after which a target stands still
LONGEST_EXTRAPOLATION = 1.5  # intervals between poses
MIN_STREAM_POSES = 5  # fewer poses in a row are single poses, sent again or corrected
K_P = 10.0  # [1/s] of a twist
BLOCKED = 0.1  # share of the twist: a slower tip is blocked
BESIDE = 0.02  # share of the lookahead where something near slows or turns the tip
LONGEST = 1.0  # [m and rad] that a pose is moved by in one cycle; half a turn would lead back
AT_START = 1e-3  # [m and rad] near enough to the first pose of a trajectory


def checked_time(name: str, value: Any) -> float:
    """Return a finite time or age [s], or raise an OptionError."""
    time = _number(value)
    if not math.isfinite(time):
        raise OptionError(f"{name} is a finite time [s], not {quoted(value)}")
    return time


def checked_duration(dt: Any) -> float:
    """Return a time above zero [s], or raise an OptionError."""
    duration = _number(dt)
    if not 0.0 < duration < math.inf:
        raise OptionError(f"dt is a time above 0 [s], not {quoted(dt)}")
    return duration


def checked_period(period: Any) -> float:
    """Return a time between poses [s], or raise an OptionError."""
    interval = _number(period)
    if not 1e-3 <= interval <= 3600.0:
        raise OptionError(f"period is a time from 0.001 to 3600 [s], not {quoted(period)}")
    return interval


def _number(value: Any) -> float:
    """Convert to float; NaN for anything but a real number."""
    if type(value) is float:  # nearly always; an abstract class takes 2 us to ask
        return value
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def checked_twist(V: ArrayLike, R: ArrayLike | None) -> Array:
    """Return a twist (6,) along the base axes, given along axes R (3, 3), or raise a PoseError."""
    twist = _numbers(V, "a twist is 6 numbers, linear first")
    if twist.shape != (6,):
        raise PoseError(f"a twist is 6 numbers, linear first, not an array {twist.shape}")
    if not (np.abs(twist) <= FARTHEST).all():
        raise PoseError(f"a twist is finite and at most {FARTHEST:g} [m/s, rad/s], not {twist}")
    return twist.copy() if R is None else rotated(_checked_rotation(R), twist)


def _checked_rotation(R: ArrayLike) -> Array:
    rotation = _numbers(R, "the axes of a twist are a 3x3 rotation")
    if rotation.shape != (3, 3):
        raise PoseError(f"the axes of a twist are a 3x3 rotation, not an array {rotation.shape}")
    return checked_pose(transform(rotation))[:3, :3]


def checked_trajectory(Ts: PoseLike) -> Array:
    """Return poses (m, 4, 4), at least one, or raise a PoseError that names the invalid one."""
    try:
        poses = batch_poses(Ts, 1)[:, 0]
    except PoseError as error:
        raise PoseError(f"a trajectory is an array (m, 4, 4) of poses: {error}") from error
    if not len(poses):
        raise PoseError(f"a trajectory is an array (m, 4, 4) of poses, not {poses.shape}")
    return np.array([_checked_member(T, k) for k, T in enumerate(poses)])


def _checked_member(T: Array, k: int) -> Array:
    try:
        return checked_pose(T)
    except PoseError as error:
        raise PoseError(f"pose {k} of the trajectory: {error}") from error


def _numbers(values: Any, valid: str) -> Array:
    try:
        return real_array(values)
    except (TypeError, ValueError, OverflowError) as error:
        raise PoseError(f"{valid}, not {quoted(values)}") from error


def is_same(T_a: Array, T_b: Array, length_unit: float = 1.0) -> bool:
    """Return whether two poses (4, 4) are one target; lengths are in so many units a metre."""
    apart = T_a - T_b
    apart[:3, 3] /= length_unit
    return max(map(abs, apart.ravel().tolist())) <= SAME


def rotated(R: Array, V: Array) -> Array:
    """Return a twist (6,) along the base axes, given along axes with the rotation R (3, 3)."""
    return np.concatenate([R @ V[:3], R @ V[3:]])


class Target(Protocol):
    """A pose to follow at any time."""

    sampled: float  # [s] when the newest of its data was taken
    is_velocity: bool  # it continues from the command, wherever that is
    needs_command: bool  # `tip` returns the pose of the command; else that of the reference

    def pose(self, now: float, dt: float, tip: Callable[[], Array]) -> Array:
        """Return the pose (4, 4) to be at, at the end of a cycle of `dt` [s]; once a cycle."""

    def has_timed_out(self, now: float) -> bool:
        """Return whether the stream of its messages has stopped."""

    def stands(self, now: float) -> bool:
        """Return whether it waits for the arm, which may come there by any way."""


class PoseTarget:
    """A pose that stays in force until the next one, or the newest pose of a stream.

    A stream is a run of at least `MIN_STREAM_POSES` poses, each of which arrived at most `timeout`
    after the pose before. The stream has ended when no pose arrived for longer than `timeout`.
    Shorter runs are single poses, which never time out; a later pose starts a new run.

    Args:
        timeout: Longest time between two poses of a stream [s].
        feed_forward: Extrapolate between messages by the velocity of the last two poses.
        length_unit: Units of the poses' lengths in a metre.

    Attributes:
        arrived: Time of arrival of the newest pose [s].
    """

    is_velocity = False
    needs_command = False

    def __init__(self, timeout: float, feed_forward: bool, length_unit: float = 1.0) -> None:
        self.timeout, self.feed_forward = timeout, feed_forward
        self._unit = length_unit
        self._T: Array = np.eye(4)
        self._reference: Array = self._T  # the pose that it has not left since it changed
        self._velocity = np.zeros(6)  # [m/s, rad/s]
        self._interval = math.inf  # [s] between the last two
        self.arrived = self.sampled = self._changed = -math.inf
        self._count = 0  # poses of the run

    @property
    def last(self) -> Array:
        """The newest pose (4, 4), without extrapolation."""
        return self._T

    def take(self, T: Array, sampled: float, now: float) -> None:
        """Take the next pose.

        Args:
            T: (4, 4) T_base_tip.
            sampled: Time when the pose was sampled [s].
            now: Time of arrival [s].
        """
        V = difference(self._T, T)
        interval = now - self.arrived
        continues = interval <= self.timeout
        self._count = self._count + 1 if continues else 1
        if not continues or not is_same(T, self._reference, self._unit):
            self._changed, self._reference = now, T
        between = sampled - self.sampled
        self._velocity = V / between if 1e-4 < between <= self.timeout else np.zeros(6)
        self._T, self.arrived, self.sampled, self._interval = T, now, sampled, interval

    def pose(self, now: float, dt: float, tip: Callable[[], Array]) -> Array:
        """Return the pose now (4, 4)."""
        if not self.feed_forward:
            return self._T
        ahead = min(max(now - self.sampled, 0.0), LONGEST_EXTRAPOLATION * self._interval)
        return moved(self._T, self._velocity * ahead) if ahead > 0.0 else self._T

    def finish(self) -> None:
        """Keep the newest pose in force as a single pose, without extrapolation."""
        self._count = 1
        self._velocity = np.zeros(6)

    def has_timed_out(self, now: float) -> bool:
        """Return whether the poses were a stream, and the stream has ended."""
        return self._count >= MIN_STREAM_POSES and now - self.arrived > self.timeout

    def stands(self, now: float) -> bool:
        """Return whether it has not changed for a while."""
        return now - self._changed >= STANDING


class TwistTarget:
    """Resolved motion rate: x' = x'_d + K_p (x_d - x_a) (Deo & Walker 1993).

    x_d is the pose that the twist would have led to, at most `lookahead` ahead of the tip: jogging
    asks for a velocity, so motion that was blocked is not made up for.

    Args:
        timeout: [s] a twist is in force without another one.
        lookahead: [m].
        rotation_weight: [m/rad] length that 1 rad of lookahead counts as.
        length_unit: units of the twist's lengths in a metre.

    Attributes:
        most: returns the share of a twist (6,) that the tip may have; None: all of it.
    """

    is_velocity = True
    needs_command = True

    def __init__(
        self, timeout: float, lookahead: float, rotation_weight: float, length_unit: float = 1.0
    ) -> None:
        self.timeout, self.lookahead = timeout, lookahead
        self._weights = np.array([1.0 / length_unit] * 3 + [rotation_weight] * 3)  # to metres
        self._units = np.array([length_unit] * 3 + [1.0] * 3)
        self.most: Callable[[Array], float] | None = None
        self._V: Array = np.zeros(6)
        self._in_tool = False
        self._x_d: Array | None = None
        self._x_a: Array | None = None  # of the last cycle
        self.is_hindered = False  # something near slows or turns the tip
        self._arrived = self.sampled = -math.inf

    def take(self, V: Array, in_tool: bool, sampled: float, now: float) -> None:
        """Take the next twist (6,) [m/s, rad/s] of the tip, linear first.

        Args:
            in_tool: along the axes of the tip as it turns; else along those of the base.
        """
        self._V, self._in_tool, self._arrived, self.sampled = V, in_tool, now, sampled

    def pose(self, now: float, dt: float, tip: Callable[[], Array]) -> Array:
        """Return the pose at the end of the cycle (4, 4)."""
        x_a = tip()
        V = rotated(x_a[:3, :3], self._V) if self._in_tool else self._V
        way = V * (dt if self.most is None else self.most(V) * dt)
        longest = float(np.abs(way / self._units).max())
        if longest > LONGEST:
            way = way * (LONGEST / longest)
        ahead = self._ahead(x_a)
        share = 1.0 if self._is_blocked(x_a, way) else min(K_P * dt, 1.0)
        self._x_d, self._x_a = moved(moved(x_a, ahead), way), x_a
        return moved(x_a, way + share * ahead)

    def has_timed_out(self, now: float) -> bool:
        """Return whether no twist arrived for longer than the timeout."""
        return now - self._arrived > self.timeout

    def stands(self, now: float) -> bool:
        """Return False: the arm moves by the twist, or not at all."""
        return False

    def _is_blocked(self, x_a: Array, way: Array) -> bool:
        """Return whether the tip hardly follows; then x_d stands too, and the tip settles."""
        if self._x_a is None:
            return False
        made, wanted = self._weights * difference(self._x_a, x_a), self._weights * way
        return float(made @ wanted) < BLOCKED * float(wanted @ wanted)

    def _ahead(self, x_a: Array) -> Array:
        """Return x_d - x_a (6,), no longer than the lookahead."""
        if self._x_d is None:
            return np.zeros(6)
        ahead = difference(x_a, self._x_d)
        length = float(np.linalg.norm(self._weights * ahead))
        most = self.lookahead * (BESIDE if self.is_hindered else 1.0)
        return ahead * (most / length) if length > most else ahead


class TrajectoryTarget:
    """Poses at equal times: to the first one by any way, then through the others on time.

    Between two poses the tip moves straight and turns about one axis, at constant rates. The last
    pose stands.

    Args:
        Ts: (m, 4, 4) poses.
        period: [s] between two of them.
        begin: [s] when the motion may begin.
        length_unit: units of the poses' lengths in a metre.
    """

    is_velocity = False
    needs_command = True

    def __init__(self, Ts: Array, period: float, begin: float, length_unit: float = 1.0) -> None:
        self._Ts: list[Array] = list(Ts)
        self._legs = np.array([difference(a, b) for a, b in pairwise(Ts)])  # (m - 1, 6)
        self._near = AT_START * np.array([length_unit] * 3 + [1.0] * 3)
        self._period, self._begin = period, begin
        self._started: float | None = None
        self._is_interrupted = False
        self.sampled = begin

    def interrupt(self) -> None:
        """Continue so much later as the next cycle is after the last one."""
        self._is_interrupted = True

    def pose(self, now: float, dt: float, tip: Callable[[], Array]) -> Array:
        """Return the pose now (4, 4)."""
        if self._is_interrupted:
            self._postpone(max(now - self.sampled, 0.0))
        self.sampled = now
        if self._started is None:
            if now < self._begin or (np.abs(difference(tip(), self._Ts[0])) > self._near).any():
                return self._Ts[0]
            self._started = now
        done = max(0.0, now - self._started) / self._period
        leg = int(done)
        if leg >= len(self._legs):
            return self._Ts[-1]
        return moved(self._Ts[leg], self._legs[leg] * (done - leg))

    def has_timed_out(self, now: float) -> bool:
        """Return False: a trajectory arrives as a whole."""
        return False

    def stands(self, now: float) -> bool:
        """Return whether the arm is still to come to its beginning, or to its end."""
        if self._started is None:
            return now - self._begin >= STANDING
        return now - self._started >= len(self._legs) * self._period + STANDING

    def _postpone(self, duration: float) -> None:
        self._is_interrupted = False
        self._begin += duration
        if self._started is not None:
            self._started += duration
