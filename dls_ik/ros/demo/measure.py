# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Both parts of the demonstration, poses for ``compute_ik`` and streamed targets, measured.

Answers and motion are judged by kinematics that the solver does not use.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import pi
from typing import Any, NamedTuple

import numpy as np
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.errors import Code, DlsIkError
from dls_ik.model.kdl import kdl_chain
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import rotation_from_z, transform
from dls_ik.ros.client import IkClient, TargetPublisher
from dls_ik.ros.client.connection import wait_until
from dls_ik.ros.frames import pose_errors
from dls_ik.solver.solver import IkSolver

# Elbow bent, tool straight down: the seed of every request, and the centre of the figure of eight.
HOME = (0.0, 0.5, 0.0, 1.7, 0.0, pi - 2.2, 0.0)

TOOL = 0.06  # [m] from wrist to tip
# Greatest distance from shoulder to wrist: both arms' lengths, each over its offset of 45 mm.
REACH = float(np.hypot(0.55, 0.045) + np.hypot(0.3, 0.045))  # [m]
TIMEOUT = 1.0  # [s] of a request, enough on a busy machine
TOLERANCE = 1e-6  # [m] and [rad], the node's default
ROUNDING = 1e-9  # of a quaternion and of another library's products

_REACHABLE = {
    "above the table, tool down": (0.5, 0.4, 0.0, 1.9, 0.0, pi - 2.3, 0.0),
    "to the right and low, tool down": (-0.9, 1.1, 0.0, 1.3, 0.0, pi - 2.4, 0.3),
    "to the left, tool outwards": (1.2, 0.4, 0.2, 1.9, -0.3, -0.6, 0.5),
    "overhead": (0.3, -0.2, 0.1, 0.5, -0.4, 0.3, -0.2),
    "behind, waist at its limit": (2.59, 0.8, -0.3, 1.5, 0.2, 0.5, 0.0),
    "arm stretched, 1 mm to spare": (-0.4, 1.2, 0.3, 0.131, 0.2, 0.3, 0.0),
    "forearm folded on upper arm": (0.6, -0.3, 0.4, 3.09, 0.5, -0.9, 1.0),
    "all wrist joints at limits": (-0.3, 0.6, 0.2, 1.4, -4.79, 1.59, 2.19),
}
_UNREACHABLE = {  # position of the wrist [m], direction of the tool
    "1 cm beyond the stretched arm": ((REACH + 0.01) * np.array([0.8, 0.0, 0.6]), (0.8, 0.0, 0.6)),
    "near enough, but tool turned back": ((REACH + 0.03, 0.0, 0.0), (-1.0, 0.0, 0.0)),
    "inside its own shoulder": ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "straight down through its base": ((0.0, 0.0, -0.8), (0.0, 0.0, -1.0)),
}


class DemoPose(NamedTuple):
    """A pose to ask for."""

    name: str
    T: Array  # (4, 4) T_base_tip
    reachable: bool


def demo_poses(robot: RobotModel) -> list[DemoPose]:
    """Return eight poses that the WAM reaches, then four that it provably does not.

    A reachable pose is the forward kinematics of joint values within the limits. An unreachable one
    needs a position of the wrist (where the axes of the last three joints meet, 60 mm behind the
    tip) that the first four joints cannot reach.
    """
    poses = [DemoPose(name, robot.fk(q), True) for name, q in _REACHABLE.items()]
    for name, ends in _UNREACHABLE.items():
        wrist, tool = np.array(ends)
        poses.append(DemoPose(name, transform(rotation_from_z(tool), wrist + TOOL * tool), False))
    return poses


class IndependentCheck(NamedTuple):
    """Forward kinematics that the solver does not use."""

    name: str
    pose: Callable[[Array], Array]  # (n,) -> (4, 4) T_base_tip


def independent_check(robot: RobotModel) -> IndependentCheck:
    """Return PyKDL's kinematics if it is installed, else products of 4x4 matrices."""
    try:
        return IndependentCheck("PyKDL", _kdl_pose(robot))
    except DlsIkError:
        return IndependentCheck("NumPy", lambda q: robot.link_pose(robot.tip, q))


def _kdl_pose(robot: RobotModel) -> Callable[[Array], Array]:
    chain = kdl_chain(robot)
    import PyKDL  # kdl_chain has checked that it is there

    solver = PyKDL.ChainFkSolverPos_recursive(chain)

    def pose(q: Array) -> Array:
        joints, frame = PyKDL.JntArray(chain.getNrOfJoints()), PyKDL.Frame()
        for i, value in enumerate(q):
            joints[i] = float(value)
        solver.JntToCart(joints, frame)
        rows: list[list[Any]] = [[frame[i, j] for j in range(4)] for i in range(3)]
        return np.array([*rows, [0.0, 0.0, 0.0, 1.0]])

    return pose


class PoseCheck(NamedTuple):
    """The answer of the node for a pose, and what the independent check found."""

    pose: DemoPose
    code: int  # of MoveItErrorCodes
    q: Array | None  # (n,)
    position_error: float  # [m]; NaN without an answer
    rotation_error: float  # [rad]
    inside_limits: bool  # no joint beyond a limit
    round_trip: float  # [s]
    solve_time: float  # [s] of the same request in this process

    @property
    def is_reached(self) -> bool:
        """True if the joint values bring the tip to the pose, inside the limits."""
        errors = (self.position_error, self.rotation_error)  # comparisons with NaN are False
        return self.inside_limits and all(error <= TOLERANCE + ROUNDING for error in errors)

    @property
    def is_right(self) -> bool:
        """True if code and joint values are as they should be."""
        if self.pose.reachable:
            return self.code == Code.SUCCESS and self.is_reached
        return self.code == Code.NO_IK_SOLUTION


def ask_poses(
    client: IkClient, robot: RobotModel, poses: Sequence[DemoPose], check: IndependentCheck
) -> Iterator[PoseCheck]:
    """Ask ``compute_ik`` for one pose after the other; DlsIkError if no answer comes."""
    solver, seed = IkSolver(robot), np.array(HOME)
    solver.solve(poses[0].T, seed)  # loads the kernels
    client.solve(poses[0].T, seed, frame=robot.base, timeout=TIMEOUT)  # connects
    for pose in poses:
        begin = time.perf_counter()
        answer = client.solve(pose.T, seed, frame=robot.base, timeout=TIMEOUT)
        times = time.perf_counter() - begin, solver.solve(pose.T, seed, TIMEOUT).duration
        q = answer.array(robot.joint_names) if answer.success else None
        if q is None or not np.isfinite(q).all():
            yield PoseCheck(pose, answer.code, q, np.nan, np.nan, False, *times)
        else:
            errors = pose_errors(pose.T, check.pose(q))
            inside = bool(robot.within_limits(q))
            yield PoseCheck(pose, answer.code, q, *errors, inside, *times)


# The stream

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


def figure_of_eight(centre: Array, times: Array, begin: float = 0.0) -> Array:
    """Return poses (k, 4, 4) of constant orientation, at full speed from time 0 on [s].

    Args:
        begin: phase where it starts from rest [rad].
    """
    running = np.maximum(times, 0.0)
    run_in = np.minimum(times, 0.0) + RUN_IN
    phase = begin + 2.0 * pi / LAP * (running + 0.5 * run_in**2 / RUN_IN)
    poses = np.repeat(centre[None], len(times), axis=0)
    poses[:, 0, 3] += WIDTH * np.sin(2.0 * phase)
    poses[:, 1, 3] += LENGTH * np.sin(phase)
    return poses


class StateRecorder:
    """Keeps the joint states that arrive on the node of a client.

    Attributes:
        states: when each was received and computed [s] on the steady clock, and its q (n,).
    """

    def __init__(self, node: Any, joint_names: tuple[str, ...]) -> None:
        self.states: list[tuple[float, float, Array]] = []
        self._names = joint_names
        qos = qos_profile_sensor_data
        self._subscription = node.create_subscription(JointState, "joint_states", self._keep, qos)

    def start(self) -> Array:
        """Wait for joint states, and return where the arm is (n,); DlsIkError if none come."""
        if not wait_until(lambda: self.states, time.monotonic() + PATIENCE):
            raise DlsIkError(f"no joint_states came from the node within {PATIENCE:g} s")
        return self.states[-1][2]

    def _keep(self, message: Any) -> None:
        received, wall = time.monotonic(), time.time()
        values = dict(zip(message.name, message.position, strict=False))
        if all(name in values for name in self._names):
            stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
            q = np.array([values[name] for name in self._names])
            self.states.append((received, received - (wall - stamp), q))


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
    events: Mapping[int, Callable[[], None]] | None = None,
) -> StreamRecording:
    """Send every target at its time, and record the joint states from where counting begins.

    DlsIkError if none come meanwhile.

    Args:
        events: what to do before a target is sent, by its index.
    """
    begin = time.monotonic()
    sent = []
    for k, T in enumerate(path.poses):
        time.sleep(max(begin + k / rate - time.monotonic(), 0.0))
        if events and k in events:
            events[k]()
        sent.append(time.monotonic())
        publisher.send_pose(T, frame)
        if k % round(rate) == 0:
            every_second()
    time.sleep(LINGER)
    zero = sent[path.counted]
    states = [state for state in list(recorder.states) if state[0] >= zero]
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
    - figure error: to the nearest point of the whole figure; missed: from points of the figure
      to the nearest of the tip's path, but for the last half second. Neither depends on time.
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
    sent, stamps, targets = recording.sent, recording.stamps, recording.targets
    during = recording.received <= sent[-1]
    times, q = recording.received[during], recording.q[during]
    poses = np.array([check.pose(values) for values in q])
    tip, goal = poses[:, :3, 3], _goal(recording, times)
    motion = RecordedMotion(times, stamps[during], q, tip, goal)
    last = targets[np.searchsorted(sent, times, side="right") - 1]  # of constant orientation
    rotation_errors = [pose_errors(*pair)[1] for pair in zip(last, poses, strict=True)]
    counted = sent[sent >= 0.0]
    answer = np.searchsorted(stamps, counted)  # first state computed later
    answered = answer < len(stamps)
    path, duration = targets[:, :3, 3], float(sent[-1])
    arrived = duration - MAX_LAG  # the tip is still on its way to later targets
    figures = Tracking(
        targets=len(counted),
        states=len(times),
        duration=duration,
        state_rate=len(times) / duration,
        lag=_lag(recording, motion),
        position_error=spread(np.linalg.norm(tip - goal, axis=1)),
        path_error=spread(_path_errors(recording, motion)),
        figure_error=spread(_distances(tip, path[sent <= LAP])),
        missed=spread(_distances(path[(sent >= 0.0) & (sent <= min(LAP, arrived))], tip)),
        heard_until=float((counted <= recording.received[-1]).mean()),
        rotation_error=spread(np.array(rotation_errors)),
        latency=spread(recording.received[answer[answered]] - counted[answered]),
        delivery=spread(recording.received - stamps),
        target_interval=spread(np.diff(counted)),
        state_interval=spread(np.diff(times)),
    )
    return motion, figures


def joint_uses(robot: RobotModel, motion: RecordedMotion) -> list[JointUse]:
    """Return range and speed of every joint."""
    k = min(SPEED_WINDOW, len(motion.q) - 1)
    elapsed = motion.stamps[k:] - motion.stamps[:-k]
    speeds = (np.abs(motion.q[k:] - motion.q[:-k]) / elapsed[:, None]).max(axis=0)
    ends = (robot.lower, robot.upper, motion.q.min(axis=0), motion.q.max(axis=0))
    rows = np.array([*ends, speeds, robot.velocity]).T.tolist()
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


def _distances(points: Array, path: Array) -> Array:
    """Return distances (k,) [m] from at most MAX_POINTS of points (m, 3) to a path, at any time."""
    thinned = points[:: 1 + len(points) // MAX_POINTS]
    return np.array([distance_to_path(p, path) for p in thinned])


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


def spread(values: Array) -> Spread:
    """Return mean, median, 99th percentile and maximum of values."""
    median, p99 = np.percentile(values, (50.0, 99.0)).tolist()
    return Spread(float(values.mean()), median, p99, float(values.max()))
