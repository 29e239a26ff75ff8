"""Part two: targets streamed at a steady rate, and how well the recorded motion follows them."""

from collections.abc import Callable
from math import pi
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.demo.ask import HOME, IndependentCheck, pose_errors
from dls_ik.ros.demo.node import Client, State, now

# Where the node's arm begins: drawn back and turned, away from limits and singularities.
READY = (-0.6, -0.2, 0.3, 2.3, -0.3, 0.2, 0.4)

# The eight lies in a plane above the table; no joint needs more than half of its top speed.
WIDTH, LENGTH = 0.1, 0.25  # [m] from its centre, along x and along y of the base
LAP = 5.0  # [s]

APPROACH_SPEED = 0.8  # [rad/s] of the joint that moves most
HOLD = 0.5  # [s] at rest before the eight
RUN_IN = 1.0  # [s] from rest to full speed, on the eight already
PATIENCE = 5.0  # [s] for the first joint states
LINGER = 0.25  # [s] for the last ones
LONGEST_LAG = 0.5  # [s]
MOST_POINTS = 1000  # of a motion that are compared with the whole figure
WINDOW = 10  # joint states over which a speed is taken, as single stamps jitter


class Targets(NamedTuple):
    """Poses to send one after the other."""

    poses: Array  # (k, 4, 4) T_base_tip
    counted: int  # index of the first one that counts


def targets(robot: RobotModel, start: Array, rate: float, duration: float) -> Targets:
    """The approach from joint values (n,), the run-in, and the eight for a duration [s]."""
    before = [
        approach(robot, start, rate),
        np.repeat(robot.fk(HOME)[None], int(HOLD * rate), axis=0),
    ]
    times = np.arange(-RUN_IN, duration, 1.0 / rate)
    eight = figure_of_eight(robot.fk(HOME), times)
    poses = np.concatenate([*before, eight])
    return Targets(poses, len(poses) - round(duration * rate))


def approach(robot: RobotModel, start: Array, rate: float) -> Array:
    """Poses (k, 4, 4) on the straight way from joint values to HOME, as smooth as can be."""
    way = np.array(HOME) - start
    duration = 1.875 * np.abs(way).max() / APPROACH_SPEED  # 1.875: peak over mean of minimum jerk
    share = np.linspace(0.0, 1.0, 2 + int(duration * rate))
    smooth = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return robot.fk(start + smooth[:, None] * way)


def figure_of_eight(centre: Array, times: Array) -> Array:
    """Poses (k, 4, 4) that keep their orientation; at full speed from time 0 on [s]."""
    running = np.maximum(times, 0.0)
    run_in = np.minimum(times, 0.0) + RUN_IN
    phase = 2.0 * pi / LAP * (running + 0.5 * run_in**2 / RUN_IN)
    poses = np.repeat(centre[None], len(times), axis=0)
    poses[:, 0, 3] += WIDTH * np.sin(2.0 * phase)
    poses[:, 1, 3] += LENGTH * np.sin(phase)
    return poses


class Recording(NamedTuple):
    """What was sent and what came, on one steady clock that is 0 where counting begins."""

    sent: Array  # (k,) [s] below 0 on the way to where counting begins
    targets: Array  # (k, 4, 4) T_base_tip
    received: Array  # (m,) [s]
    stamps: Array  # (m,) [s] when the node says that it computed
    q: Array  # (m, n)


def starting_point(client: Client) -> Array:
    """Where the node says that the arm is, (n,).

    Raises:
        DlsIkError: the node sends no joint states.
    """
    deadline = now() + PATIENCE
    while not client.states:
        if now() > deadline:
            raise DlsIkError(f"no joint_states came from the node within {PATIENCE:g} s")
        client.spin_until(now() + 0.05)
    return client.states[-1].q


def stream(
    client: Client, targets: Targets, rate: float, every_second: Callable[[], None]
) -> Recording:
    """Send every target at its time; joint states are recorded where counting begins.

    Raises:
        DlsIkError: no joint states came meanwhile.
    """
    client.states.clear()
    begin = now()
    sent = []
    for k, T in enumerate(targets.poses):
        client.spin_until(begin + k / rate)
        sent.append(client.publish(T))
        if k % round(rate) == 0:
            every_second()
    client.spin_until(now() + LINGER)
    return _recording(np.array(sent), targets, client.states)


def _recording(sent: Array, targets: Targets, states: list[State]) -> Recording:
    zero = sent[targets.counted]
    counted = [state for state in states if state.received >= zero]
    if len(counted) < 2:
        raise DlsIkError("the node stopped sending joint_states while the targets were streamed")
    return Recording(
        sent - zero,
        targets.poses,
        np.array([state.received for state in counted]) - zero,
        np.array([state.stamp for state in counted]) - zero,
        np.array([state.q for state in counted]),
    )


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


def motion_of(recording: Recording, check: IndependentCheck) -> tuple[Motion, Tracking]:
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
