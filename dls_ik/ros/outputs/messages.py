"""Messages of the outputs, each filled again every cycle."""

from array import array
from typing import Any, NamedTuple, Protocol

import numpy as np
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dls_ik.core.types import Array
from dls_ik.servo.limiter import StopPath

SECOND = 10**9  # [ns]
PAST = 1e-4  # [rad or m] that a cubic may lead a joint past a point


class OutputSpec(NamedTuple):
    """The joints as they stand in the outputs, and the pace of the loop."""

    names: tuple[str, ...]  # (n,) as drivers call them
    period: float  # [s] of the loop
    points: int  # of a trajectory


class Output(Protocol):
    """One message that is filled again every cycle."""

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
        """The message of a command (n,), (n,) at a time [ns]; the same object each time.

        Args:
            stop: from the command on, for a message that carries it.
        """


def writable(message: Any, name: str, n: int) -> Array:
    """A view (n,) of a field of doubles: to write into it costs 0.15 us, a new list some 10."""
    setattr(message, name, array("d", bytes(8 * n)))
    return np.frombuffer(getattr(message, name))  # the message may hold a copy of what it is given


def set_time(time: Any, nanoseconds: int) -> None:
    """Write into a ``builtin_interfaces`` Time or Duration."""
    time.sec, time.nanosec = divmod(nanoseconds, SECOND)


class JointStateOutput:
    """Positions and velocities by name, for robot_state_publisher and RViz."""

    message_type = JointState
    default_topic = "joint_states"

    def __init__(self, spec: OutputSpec) -> None:
        self._message = JointState(name=list(spec.names))
        self._position = writable(self._message, "position", len(spec.names))
        self._velocity = writable(self._message, "velocity", len(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
        """The message of a command at a time [ns]."""
        self._position[:] = q
        self._velocity[:] = velocity
        set_time(self._message.header.stamp, stamp)
        return self._message


class JointTrajectoryOutput:
    """The next points for a joint_trajectory_controller, without a stamp, which means now.

    One point is the command, a cycle ahead, without velocities, which must be zero at the last
    point. Of more points each is a cycle after the one before, and from the second on they slow
    down to a stop, the same one on which the loop goes on if its next cycle is late; a controller
    that hears of no other trajectory follows them to rest. A stop that takes longer than that is
    spread evenly over the points.
    """

    message_type = JointTrajectory
    default_topic = "joint_trajectory_controller/joint_trajectory"

    def __init__(self, spec: OutputSpec) -> None:
        self._period = spec.period
        n = len(spec.names)
        self._points = [JointTrajectoryPoint() for _ in range(spec.points)]
        self._positions = [writable(point, "positions", n) for point in self._points]
        self._velocities: list[Array] = []
        if spec.points > 1:
            self._velocities = [writable(point, "velocities", n) for point in self._points]
        self._cycles = np.arange(spec.points, dtype=float)
        self._interval = -1.0  # [s] between points, as it was filled last
        self._space(spec.period)
        self._message = JointTrajectory(joint_names=list(spec.names), points=self._points)

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
        """The message of a command."""
        self._positions[0][:] = q
        if self._velocities and stop is not None:
            self._fill_stop(stop)
        return self._message

    def _fill_stop(self, stop: StopPath) -> None:
        interval = max(self._period, stop.duration / (len(self._points) - 1))
        self._space(interval)
        times = interval * self._cycles
        times[-1] = np.inf  # where rounding would end just before
        q, v, _ = stop.at(times)
        if interval > self._period:
            _turn_no_joint_round(q, v, interval)
        for fields, values in ((self._positions, q), (self._velocities, v)):
            for field, row in zip(fields, values, strict=True):
                field[:] = row

    def _space(self, interval: float) -> None:
        """Let the points be due at an interval [s], the first of them a cycle ahead."""
        if interval == self._interval:
            return
        self._interval = interval
        for k, point in enumerate(self._points):
            set_time(point.time_from_start, round((self._period + k * interval) * SECOND))


def _turn_no_joint_round(q: Array, v: Array, interval: float) -> None:
    """Lower velocities (k, n) for which a cubic would lead a joint past the next point and back.

    Between points a controller takes a cubic, and points that are far apart may have a joint stop
    between them, near its limit. A cubic with end slopes of at most three times the mean one is
    monotone (Fritsch & Carlson 1980).
    """
    most = 3.0 * np.abs(np.diff(q, axis=0)) / interval
    past = (v[1:] == 0.0) & (4.0 / 27.0 * interval * (np.abs(v[:-1]) - most) > PAST)
    v[:-1] = np.where(past, np.clip(v[:-1], -most, most), v[:-1])


class PositionArrayOutput:
    """Positions without names, for a forward or position controller, whose order must be given."""

    message_type = Float64MultiArray
    default_topic = "forward_position_controller/commands"

    def __init__(self, spec: OutputSpec) -> None:
        self._message = Float64MultiArray()
        self._position = writable(self._message, "data", len(spec.names))

    def fill(self, q: Array, velocity: Array, stamp: int, stop: StopPath | None = None) -> Any:
        """The message of a command."""
        self._position[:] = q
        return self._message
