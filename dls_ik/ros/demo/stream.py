"""Part two: targets streamed at a steady rate, and how well the recorded motion follows them."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple

import numpy as np
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.client import TargetPublisher
from dls_ik.ros.demo.poses import HOME, IndependentCheck
from dls_ik.ros.frames import pose_errors

# The arm's initial position: drawn back and turned, away from limits and singularities.
READY = (-0.6, -0.2, 0.3, 2.3, -0.3, 0.2, 0.4)

# The eight lies in a plane above the table; no joint needs more than half of its top speed.
WIDTH, LENGTH = 0.1, 0.25  # [m] from its centre, along x and along y of the base
LAP = 5.0  # [s]

APPROACH_SPEED = 0.8  # [rad/s] of the fastest joint
REST = 0.5  # [s] before the eight
RUN_IN = 1.0  # [s] on the eight, from rest to full speed
PATIENCE = 5.0  # [s] for the first joint states
LINGER = 0.25  # [s] for the last joint states
MAX_LAG = 0.5  # [s]
MAX_POINTS = 1000  # of a motion that are compared with the whole figure
SPEED_WINDOW = 10  # joint states between two positions for a speed, since single stamps jitter


class TargetPath(NamedTuple):
    """Poses to send one after the other."""

    poses: Array  # (k, 4, 4) T_base_tip
    counted: int  # index of the first one that counts


def target_path(robot: RobotModel, start: Array, rate: float, duration: float) -> TargetPath:
    """Return the approach from joint values (n,), the run-in, and the eight for a duration [s]."""
    rest = np.repeat(robot.fk(HOME)[None], int(REST * rate), axis=0)
    times = np.arange(-RUN_IN, duration, 1.0 / rate)
    eight = figure_of_eight(robot.fk(HOME), times)
    poses = np.concatenate([approach(robot, start, rate), rest, eight])
    return TargetPath(poses, len(poses) - round(duration * rate))


def approach(robot: RobotModel, start: Array, rate: float) -> Array:
    """Return poses (k, 4, 4) of a minimum-jerk motion from joint values (n,) to HOME."""
    way = np.array(HOME) - start
    duration = 1.875 * np.abs(way).max() / APPROACH_SPEED  # 1.875: peak over mean speed
    share = np.linspace(0.0, 1.0, 2 + int(duration * rate))
    smooth = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return robot.fk(start + smooth[:, None] * way)


def figure_of_eight(centre: Array, times: Array) -> Array:
    """Return poses (k, 4, 4) of constant orientation, at full speed from time 0 on [s]."""
    running = np.maximum(times, 0.0)
    run_in = np.minimum(times, 0.0) + RUN_IN
    phase = 2.0 * pi / LAP * (running + 0.5 * run_in**2 / RUN_IN)
    poses = np.repeat(centre[None], len(times), axis=0)
    poses[:, 0, 3] += WIDTH * np.sin(2.0 * phase)
    poses[:, 1, 3] += LENGTH * np.sin(phase)
    return poses


class ReceivedState(NamedTuple):
    """One message on ``joint_states``; times [s] are on the steady clock."""

    received: float
    stamp: float  # when the node computed it
    q: Array  # (n,)


class StateRecorder:
    """Keeps the joint states that arrive on the node of a client."""

    def __init__(self, node: Any, joint_names: tuple[str, ...]) -> None:
        self.states: list[ReceivedState] = []
        self._names = joint_names
        qos = qos_profile_sensor_data
        self._subscription = node.create_subscription(JointState, "joint_states", self._keep, qos)

    def start(self) -> Array:
        """Wait for joint states, and return where the arm is (n,).

        Raises:
            DlsIkError: none came.
        """
        deadline = time.monotonic() + PATIENCE
        while not self.states:
            if time.monotonic() > deadline:
                raise DlsIkError(f"no joint_states came from the node within {PATIENCE:g} s")
            time.sleep(0.05)
        return self.states[-1].q

    def _keep(self, message: Any) -> None:
        received, wall = time.monotonic(), time.time()
        values = dict(zip(message.name, message.position, strict=False))
        if all(name in values for name in self._names):
            stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
            q = np.array([values[name] for name in self._names])
            self.states.append(ReceivedState(received, received - (wall - stamp), q))


class StreamRecording(NamedTuple):
    """Sent targets and received states, on a steady clock that is 0 where counting begins."""

    sent: Array  # (k,) [s] below 0 before counting begins
    targets: Array  # (k, 4, 4) T_base_tip
    received: Array  # (m,) [s]
    stamps: Array  # (m,) [s] when the node computed them
    q: Array  # (m, n)


def stream(
    publisher: TargetPublisher,
    recorder: StateRecorder,
    path: TargetPath,
    frame: str,
    rate: float,
    every_second: Callable[[], None],
) -> StreamRecording:
    """Send every target at its time, and record the joint states from where counting begins.

    Raises:
        DlsIkError: no joint states came meanwhile.
    """
    begin = time.monotonic()
    sent = []
    for k, T in enumerate(path.poses):
        time.sleep(max(begin + k / rate - time.monotonic(), 0.0))
        sent.append(time.monotonic())
        publisher.send_pose(T, frame)
        if k % round(rate) == 0:
            every_second()
    time.sleep(LINGER)
    zero = sent[path.counted]
    states = [state for state in list(recorder.states) if state.received >= zero]
    if len(states) < 2:
        raise DlsIkError("the node stopped sending joint_states while the targets were streamed")
    received, stamps, q = (np.array(column) for column in zip(*states, strict=True))
    return StreamRecording(np.array(sent) - zero, path.poses, received - zero, stamps - zero, q)


class RecordedMotion(NamedTuple):
    """The motion of the arm while targets were sent, at the m instants when joint states came."""

    times: Array  # (m,) [s]
    stamps: Array  # (m,) [s] when the node computed them
    q: Array  # (m, n)
    tip: Array  # (m, 3) [m] by the independent kinematics
    goal: Array  # (m, 3) [m] position of the target


@dataclass(frozen=True)
class Spread:
    """Distribution of one quantity."""

    mean: float
    median: float
    p99: float
    max: float


@dataclass(frozen=True)
class Tracking:
    """The figures of a motion.

    - position error: from the tip, when its joint states arrive, to the target at that instant,
      interpolated between two messages
    - path error: to the nearest position of the target during the last half second, which leaves
      out the lag
    - lag: shift in time for which the paths of tip and target are closest
    - figure error: to the nearest point of the whole figure; missed: from points of the figure to
      the nearest of the tip's path. Neither depends on time.
    - latency: from sending a target to receiving the first joint states computed after that, by
      their stamp; includes the wait for the next cycle of the node
    - delivery: its last part, from the stamp of joint states to receiving them
    """

    targets: int  # sent
    states: int  # received
    duration: float  # [s] of sending
    state_rate: float  # [Hz]
    lag: float  # [s]
    position_error: Spread  # [m]
    path_error: Spread  # [m]
    figure_error: Spread  # [m]
    missed: Spread  # [m]
    heard_until: float  # share of the targets that were sent before the last joint states came
    rotation_error: Spread  # [rad]
    latency: Spread  # [s]
    delivery: Spread  # [s]
    target_interval: Spread  # [s] between two sent
    state_interval: Spread  # [s] between two received


@dataclass(frozen=True)
class JointUse:
    """Range and speed of one joint during a motion."""

    name: str
    lower: float  # limits [rad or m]
    upper: float
    least: float  # positions [rad or m]
    greatest: float
    top_speed: float  # [rad/s or m/s]
    velocity: float  # its limit [rad/s or m/s]

    @property
    def room(self) -> float:
        """Least distance to a limit; negative beyond it."""
        return min(self.least - self.lower, self.upper - self.greatest)


def evaluate(
    recording: StreamRecording, check: IndependentCheck
) -> tuple[RecordedMotion, Tracking]:
    """Compute the motion and its figures by independent kinematics."""
    during = recording.received <= recording.sent[-1]
    times, q = recording.received[during], recording.q[during]
    poses = np.array([check.pose(values) for values in q])
    goal = _goal(recording, times)
    motion = RecordedMotion(times, recording.stamps[during], q, poses[:, :3, 3], goal)
    duration = float(recording.sent[-1])
    sent = recording.sent[recording.sent >= 0.0]
    figures = Tracking(
        targets=len(sent),
        states=len(times),
        duration=duration,
        state_rate=len(times) / duration,
        lag=_lag(recording, motion),
        position_error=spread(np.linalg.norm(motion.tip - motion.goal, axis=1)),
        path_error=spread(_path_errors(recording, motion)),
        figure_error=spread(_figure_errors(recording, motion)),
        missed=spread(_missed(recording, motion)),
        heard_until=float((sent <= recording.received[-1]).mean()),
        rotation_error=spread(_rotation_errors(recording, times, poses)),
        latency=spread(_latencies(recording, sent)),
        delivery=spread(recording.received - recording.stamps),
        target_interval=spread(np.diff(sent)),
        state_interval=spread(np.diff(times)),
    )
    return motion, figures


def joint_uses(robot: RobotModel, motion: RecordedMotion) -> list[JointUse]:
    """Return range and speed of every joint."""
    k = min(SPEED_WINDOW, len(motion.q) - 1)
    elapsed = motion.stamps[k:] - motion.stamps[:-k]
    speeds = (np.abs(motion.q[k:] - motion.q[:-k]) / elapsed[:, None]).max(axis=0)
    columns = (
        robot.lower,
        robot.upper,
        motion.q.min(axis=0),
        motion.q.max(axis=0),
        speeds,
        robot.velocity,
    )
    rows = np.array(columns).T.tolist()
    return [JointUse(name, *row) for name, row in zip(robot.joint_names, rows, strict=True)]


def _lag(recording: StreamRecording, motion: RecordedMotion) -> float:
    """Return the shift [s] of least mean distance."""

    def distance(lag: float) -> float:
        goal = _goal(recording, motion.times - lag)
        return float(np.linalg.norm(motion.tip - goal, axis=1).mean())

    return min(np.arange(0.0, MAX_LAG, 5e-4).tolist(), key=distance)


def _path_errors(recording: StreamRecording, motion: RecordedMotion) -> Array:
    """Return distances (m,) [m] from the tip to the recent path of the target.

    If none was sent recently, as on a busy machine, the last one counts.
    """
    last = np.maximum(np.searchsorted(recording.sent, motion.times, side="right"), 1)
    first = np.minimum(np.searchsorted(recording.sent, motion.times - MAX_LAG), last - 1)
    path = recording.targets[:, :3, 3]
    return np.array(
        [distance_to_path(p, path[a:b]) for p, a, b in zip(motion.tip, first, last, strict=True)]
    )


def _figure_errors(recording: StreamRecording, motion: RecordedMotion) -> Array:
    """Return distances (k,) [m] from points of the tip's path to the figure, at any time."""
    figure = recording.targets[recording.sent <= LAP, :3, 3]
    return np.array([distance_to_path(p, figure) for p in _thinned(motion.tip)])


def _missed(recording: StreamRecording, motion: RecordedMotion) -> Array:
    """Return distances (k,) [m] from points of the figure to the tip's path, at any time."""
    is_counted = (recording.sent >= 0.0) & (recording.sent <= LAP)
    return np.array(
        [distance_to_path(p, motion.tip) for p in _thinned(recording.targets[is_counted, :3, 3])]
    )


def _thinned(points: Array) -> Array:
    """Return at most MAX_POINTS of points (k, 3), evenly spaced."""
    return points[:: 1 + len(points) // MAX_POINTS]


def distance_to_path(point: Array, path: Array) -> float:
    """Return the distance from a point (3,) to the polyline through points (k, 3)."""
    start, step = path[:-1], np.diff(path, axis=0)
    squares = np.maximum((step**2).sum(axis=1), 1e-30)
    share = np.clip(((point - start) * step).sum(axis=1) / squares, 0.0, 1.0)
    nearest = np.vstack([path[-1:], start + share[:, None] * step])
    return float(np.linalg.norm(point - nearest, axis=1).min())


def _goal(recording: StreamRecording, times: Array) -> Array:
    """Return positions (m, 3) of the target, interpolated between messages."""
    axes = recording.targets[:, :3, 3].T
    return np.array([np.interp(times, recording.sent, axis) for axis in axes]).T


def _rotation_errors(recording: StreamRecording, times: Array, poses: Array) -> Array:
    """Return angles (m,) [rad] to the target sent last; the eight has one orientation."""
    last = recording.targets[np.searchsorted(recording.sent, times, side="right") - 1]
    return np.array([pose_errors(*pair)[1] for pair in zip(last, poses, strict=True)])


def _latencies(recording: StreamRecording, sent: Array) -> Array:
    first = np.searchsorted(recording.stamps, sent)
    answered = first < len(recording.received)
    return recording.received[first[answered]] - sent[answered]


def spread(values: Array) -> Spread:
    """Return mean, median, 99th percentile and maximum of values."""
    median, p99 = np.percentile(values, (50.0, 99.0)).tolist()
    return Spread(float(values.mean()), median, p99, float(values.max()))
