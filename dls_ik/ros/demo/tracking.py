"""How well a recorded motion followed its targets."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.ros.demo.check import Check, pose_errors
from dls_ik.ros.demo.path import LAP
from dls_ik.ros.demo.stream import Recording

LONGEST_LAG = 0.5  # [s]
MOST_POINTS = 1000  # of a motion that are compared with the whole figure
WINDOW = 10  # joint states over which a speed is taken, as single stamps jitter


class Motion(NamedTuple):
    """What the arm did while targets were sent, at the m instants when joint states came."""

    times: Array  # (m,) [s]
    stamps: Array  # (m,) [s] when the node says that it computed them
    q: Array  # (m, n)
    tip: Array  # (m, 3) [m] by the independent kinematics
    goal: Array  # (m, 3) [m] where the target was


class Spread(NamedTuple):
    """How the values of one quantity lie."""

    mean: float
    median: float
    p99: float
    max: float


class Tracking(NamedTuple):
    """The figures of a motion.

    The position error is from the tip, when its joint states arrive, to where the target is at
    that instant on its way between two messages. The path error is to the nearest place where the
    target was during the last half second: what is off the path, not merely late. The lag is the
    shift in time for which the tip's way and the target's lie closest.
    The figure error is to the nearest place of the whole figure, and what was missed is from
    places of the figure to the nearest of the tip's way: neither knows when the arm was where.
    Latency runs from sending a target to receiving the first joint states that were computed, by
    their stamp, after it was sent; waiting for the next cycle of the node's loop is part of it.
    Delivery is its last part, from the stamp of joint states to receiving them.
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


class JointUse(NamedTuple):
    """What a motion took of one joint's range."""

    name: str
    lower: float  # limits [rad or m]
    upper: float
    least: float  # positions [rad or m]
    greatest: float
    top_speed: float  # [rad/s or m/s]
    velocity: float  # its limit [rad/s or m/s]

    @property
    def room(self) -> float:
        """The least distance to a limit; negative beyond it."""
        return min(self.least - self.lower, self.upper - self.greatest)


def motion_of(recording: Recording, check: Check) -> tuple[Motion, Tracking]:
    """Judge a recording by an independent kinematics."""
    during = recording.received <= recording.sent[-1]
    times, q = recording.received[during], recording.q[during]
    poses = np.array([check.pose(values) for values in q])
    motion = Motion(times, recording.stamps[during], q, poses[:, :3, 3], _goal(recording, times))
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


def joint_uses(robot: RobotModel, motion: Motion) -> list[JointUse]:
    """What a motion took of every joint."""
    k = min(WINDOW, len(motion.q) - 1)
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


def _lag(recording: Recording, motion: Motion) -> float:
    """The shift [s] for which the mean distance is least."""

    def distance(lag: float) -> float:
        goal = _goal(recording, motion.times - lag)
        return float(np.linalg.norm(motion.tip - goal, axis=1).mean())

    return min(np.arange(0.0, LONGEST_LAG, 5e-4).tolist(), key=distance)


def _path_errors(recording: Recording, motion: Motion) -> Array:
    """From the tip to the nearest point of the target's recent way, (m,) [m].

    Where none was sent recently, as on a machine that is too busy: to the last that was.
    """
    last = np.maximum(np.searchsorted(recording.sent, motion.times, side="right"), 1)
    first = np.minimum(np.searchsorted(recording.sent, motion.times - LONGEST_LAG), last - 1)
    way = recording.targets[:, :3, 3]
    return np.array(
        [distance_to_way(p, way[a:b]) for p, a, b in zip(motion.tip, first, last, strict=True)]
    )


def _figure_errors(recording: Recording, motion: Motion) -> Array:
    """From places of the tip to the nearest of the figure, however late, (k,) [m]."""
    figure = recording.targets[recording.sent <= LAP, :3, 3]
    return np.array([distance_to_way(p, figure) for p in _some(motion.tip)])


def _missed(recording: Recording, motion: Motion) -> Array:
    """From places of the figure to the nearest of the tip's way, however late, (k,) [m]."""
    is_counted = (recording.sent >= 0.0) & (recording.sent <= LAP)
    return np.array(
        [distance_to_way(p, motion.tip) for p in _some(recording.targets[is_counted, :3, 3])]
    )


def _some(points: Array) -> Array:
    """At most MOST_POINTS of points (k, 3), evenly."""
    return points[:: 1 + len(points) // MOST_POINTS]


def distance_to_way(point: Array, way: Array) -> float:
    """From a point (3,) to the nearest one on straight lines through points (k, 3)."""
    start, step = way[:-1], np.diff(way, axis=0)
    squares = np.maximum((step**2).sum(axis=1), 1e-30)
    share = np.clip(((point - start) * step).sum(axis=1) / squares, 0.0, 1.0)
    nearest = np.vstack([way[-1:], start + share[:, None] * step])
    return float(np.linalg.norm(point - nearest, axis=1).min())


def _goal(recording: Recording, times: Array) -> Array:
    """Where the target was, (m, 3), straight from one message to the next."""
    axes = recording.targets[:, :3, 3].T
    return np.array([np.interp(times, recording.sent, axis) for axis in axes]).T


def _rotation_errors(recording: Recording, times: Array, poses: Array) -> Array:
    """Against the target sent last (m,) [rad]; the orientation of the eight is always the same."""
    last = recording.targets[np.searchsorted(recording.sent, times, side="right") - 1]
    return np.array([pose_errors(*pair)[1] for pair in zip(last, poses, strict=True)])


def _latencies(recording: Recording, sent: Array) -> Array:
    first = np.searchsorted(recording.stamps, sent)
    answered = first < len(recording.received)
    return recording.received[first[answered]] - sent[answered]


def spread(values: Array) -> Spread:
    """The mean, the median, the 99th percentile and the greatest of some values."""
    median, p99 = np.percentile(values, (50.0, 99.0)).tolist()
    return Spread(float(values.mean()), median, p99, float(values.max()))
