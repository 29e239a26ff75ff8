# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Measurements of the demonstration: answers of ``compute_ik``, and motion along streamed targets.

Answers and motion are checked by independent kinematics, which the solver does not use.
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

# Seed of every request and centre of the figure of eight: elbow bent, tool straight down.
HOME = (0.0, 0.5, 0.0, 1.7, 0.0, pi - 2.2, 0.0)

TOOL = 0.06  # [m] distance between wrist and tip
# Maximum distance of shoulder and wrist: upper arm and forearm, each with its offset of 45 mm.
REACH = float(np.hypot(0.55, 0.045) + np.hypot(0.3, 0.045))  # [m]
TIMEOUT = 1.0  # [s] timeout of a request, long enough on a busy machine
TOLERANCE = 1e-6  # [m] and [rad], the node's default
ROUNDING = 1e-9  # rounding of the quaternion and of the independent kinematics

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
    """Pose that is requested."""

    name: str
    T: Array  # (4, 4) T_base_tip
    reachable: bool


def demo_poses(robot: RobotModel) -> list[DemoPose]:
    """Return eight poses that the WAM can reach, then four that it provably cannot.

    A reachable pose is the forward kinematics of joint positions within the limits. An unreachable
    pose needs a wrist position that the first four joints cannot reach. The wrist is the
    intersection of the last three joint axes, 60 mm behind the tip.
    """
    poses = [DemoPose(name, robot.fk(q), True) for name, q in _REACHABLE.items()]
    for name, ends in _UNREACHABLE.items():
        wrist, tool = np.array(ends)
        poses.append(DemoPose(name, transform(rotation_from_z(tool), wrist + TOOL * tool), False))
    return poses


class IndependentCheck(NamedTuple):
    """Independent forward kinematics, which the solver does not use."""

    name: str
    pose: Callable[[Array], Array]  # (n,) -> (4, 4) T_base_tip


def independent_check(robot: RobotModel) -> IndependentCheck:
    """Return the kinematics of PyKDL if it is installed, else products of 4x4 matrices."""
    try:
        return IndependentCheck("PyKDL", _kdl_pose(robot))
    except DlsIkError:
        return IndependentCheck("NumPy", lambda q: robot.link_pose(robot.tip, q))


def _kdl_pose(robot: RobotModel) -> Callable[[Array], Array]:
    chain = kdl_chain(robot)
    import PyKDL  # kdl_chain raises if it is missing

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
    """Answer of the node for a pose, and the results of the independent check."""

    pose: DemoPose
    code: int  # value of MoveItErrorCodes
    q: Array | None  # (n,) [rad]
    position_error: float  # [m]; NaN without an answer
    rotation_error: float  # [rad]; NaN without an answer
    inside_limits: bool  # no joint beyond a limit
    round_trip: float  # [s]
    solve_time: float  # [s] solver time of the same request in this process

    @property
    def is_reached(self) -> bool:
        """Whether the joint positions reach the pose, inside the limits."""
        errors = (self.position_error, self.rotation_error)  # comparisons with NaN are False
        return self.inside_limits and all(error <= TOLERANCE + ROUNDING for error in errors)

    @property
    def is_right(self) -> bool:
        """Whether the code and the joint positions are correct."""
        if self.pose.reachable:
            return self.code == Code.SUCCESS and self.is_reached
        return self.code == Code.NO_IK_SOLUTION


def ask_poses(
    client: IkClient, robot: RobotModel, poses: Sequence[DemoPose], check: IndependentCheck
) -> Iterator[PoseCheck]:
    """Yield the checked answer of ``compute_ik`` for each pose.

    Raises:
        DlsIkError: If the node does not answer.
    """
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


# Stream

# Initial joint positions of the arm: drawn back and turned, away from limits and singularities.
READY = (-0.6, -0.2, 0.3, 2.3, -0.3, 0.2, 0.4)

# The eight lies in a plane above the table; no joint needs more than half of its maximum speed.
WIDTH, LENGTH = 0.1, 0.25  # [m] half sizes of the eight along x and y of the base
LAP = 5.0  # [s]

APPROACH_SPEED = 0.8  # [rad/s] maximum joint speed of the approach
REST_TIME = 0.5  # [s] pause at the centre between the approach and the eight
RUN_IN = 1.0  # [s] acceleration along the eight, up to full speed
FIRST_STATE_TIMEOUT = 5.0  # [s]
LAST_STATE_TIME = 0.25  # [s] recording continues after the last target
MAX_STREAM_LAG = 0.5  # [s]
MAX_COMPARED_POINTS = 1000  # points of a motion that are compared with the whole figure
SPEED_WINDOW = 10  # joint states between the two positions of a speed, as single stamps jitter


class TargetPath(NamedTuple):
    """Sequence of target poses."""

    poses: Array  # (k, 4, 4) T_base_tip
    counted: int  # index of the first pose that is evaluated


def target_path(robot: RobotModel, start: Array, rate: float, duration: float) -> TargetPath:
    """Return the approach, the run-in and the eight.

    Args:
        robot: Robot.
        start: (n,) initial joint positions [rad].
        rate: Rate of the targets [Hz].
        duration: Duration of the eight at full speed [s].
    """
    rest = np.repeat(robot.fk(HOME)[None], int(REST_TIME * rate), axis=0)
    times = np.arange(-RUN_IN, duration, 1.0 / rate)
    eight = figure_of_eight(robot.fk(HOME), times)
    poses = np.concatenate([approach(robot, start, rate), rest, eight])
    return TargetPath(poses, len(poses) - round(duration * rate))


def approach(robot: RobotModel, start: Array, rate: float) -> Array:
    """Return poses (k, 4, 4) of a minimum-jerk motion from joint positions (n,) to HOME."""
    way = np.array(HOME) - start
    duration = 1.875 * np.abs(way).max() / APPROACH_SPEED  # 1.875: peak over mean speed
    share = np.linspace(0.0, 1.0, 2 + int(duration * rate))
    smooth = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return robot.fk(start + smooth[:, None] * way)


def figure_of_eight(centre: Array, times: Array, begin: float = 0.0) -> Array:
    """Return poses (k, 4, 4) along the eight, with constant orientation.

    Args:
        centre: (4, 4) ``T_base_tip`` at the centre of the eight.
        times: (k,) [s] from `-RUN_IN` (at rest) on; the speed is full from time 0.
        begin: Phase at rest [rad].
    """
    running = np.maximum(times, 0.0)
    run_in = np.minimum(times, 0.0) + RUN_IN
    phase = begin + 2.0 * pi / LAP * (running + 0.5 * run_in**2 / RUN_IN)
    poses = np.repeat(centre[None], len(times), axis=0)
    poses[:, 0, 3] += WIDTH * np.sin(2.0 * phase)
    poses[:, 1, 3] += LENGTH * np.sin(phase)
    return poses


class StateRecorder:
    """Recorder of the joint states that the node of a client receives.

    Attributes:
        states: Time of arrival and time of computation of each state [s] by the steady clock, and
            its joint positions (n,).
    """

    def __init__(self, node: Any, joint_names: tuple[str, ...]) -> None:
        self.states: list[tuple[float, float, Array]] = []
        self._names = joint_names
        qos = qos_profile_sensor_data
        self._subscription = node.create_subscription(JointState, "joint_states", self._keep, qos)

    def start(self) -> Array:
        """Wait for joint states, and return the current joint positions (n,) [rad].

        Raises:
            DlsIkError: If no joint states arrive within `FIRST_STATE_TIMEOUT`.
        """
        if not wait_until(lambda: self.states, time.monotonic() + FIRST_STATE_TIMEOUT):
            raise DlsIkError(f"no joint_states came from the node within {FIRST_STATE_TIMEOUT:g} s")
        return self.states[-1][2]

    def _keep(self, message: Any) -> None:
        received, wall = time.monotonic(), time.time()
        values = dict(zip(message.name, message.position, strict=False))
        if all(name in values for name in self._names):
            stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
            q = np.array([values[name] for name in self._names])
            self.states.append((received, received - (wall - stamp), q))


class StreamRecording(NamedTuple):
    """Sent targets and received states; time 0 is the first evaluated target."""

    sent: Array  # (k,) [s] send times, below 0 before the first evaluated target
    targets: Array  # (k, 4, 4) T_base_tip
    received: Array  # (m,) [s] arrival times of the states
    stamps: Array  # (m,) [s] times at which the node computed the states
    q: Array  # (m, n) [rad]


def stream(
    publisher: TargetPublisher,
    recorder: StateRecorder,
    path: TargetPath,
    frame: str,
    rate: float,
    every_second: Callable[[], None],
    events: Mapping[int, Callable[[], None]] | None = None,
) -> StreamRecording:
    """Send every target at its time, and record the joint states from the first evaluated target.

    Args:
        publisher: Publisher of the targets.
        recorder: Recorder of the joint states.
        path: Targets.
        frame: Frame of the targets.
        rate: Rate of the targets [Hz].
        every_second: Function called once per second of targets.
        events: Functions called before a target is sent, by the index of the target.

    Raises:
        DlsIkError: If no joint states arrive during the stream.
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
    time.sleep(LAST_STATE_TIME)
    zero = sent[path.counted]
    states = [state for state in list(recorder.states) if state[0] >= zero]
    if len(states) < 2:
        raise DlsIkError("the node stopped sending joint_states while the targets were streamed")
    received, stamps, q = (np.array(column) for column in zip(*states, strict=True))
    return StreamRecording(np.array(sent) - zero, path.poses, received - zero, stamps - zero, q)


class RecordedMotion(NamedTuple):
    """Motion of the arm during the stream, at the m arrival times of joint states."""

    times: Array  # (m,) [s] arrival times
    stamps: Array  # (m,) [s] times at which the node computed the states
    q: Array  # (m, n) [rad]
    tip: Array  # (m, 3) [m] tip position by the independent kinematics, in the base frame
    goal: Array  # (m, 3) [m] interpolated target position, in the base frame


@dataclass(frozen=True)
class Spread:
    """Distribution of one quantity."""

    mean: float
    median: float
    p99: float
    max: float


@dataclass(frozen=True)
class Tracking:
    """Statistics of a motion.

    - position error: distance of the tip, when its joint states arrive, and the target at the same
      time, interpolated between two messages
    - path error: distance of the tip to the path of the target during the last half second, which
      excludes the lag
    - lag: time shift with the smallest mean distance of tip and target
    - figure error: distance of the tip to the whole figure, at any time
    - missed: distance of the points of the figure to the path of the tip, at any time; the last
      half second of targets is left out
    - latency: time between sending a target and receiving the first joint states with a later
      stamp; includes the wait for the next cycle of the node
    - delivery: time between the stamp of joint states and their arrival, the last part of latency
    """

    targets: int  # number of targets sent
    states: int  # number of joint states received
    duration: float  # [s] duration of sending
    state_rate: float  # [Hz]
    lag: float  # [s]
    position_error: Spread  # [m]
    path_error: Spread  # [m]
    figure_error: Spread  # [m]
    missed: Spread  # [m]
    heard_until: float  # share of the targets that were sent before the last joint states arrived
    rotation_error: Spread  # [rad]
    latency: Spread  # [s]
    delivery: Spread  # [s]
    target_interval: Spread  # [s] intervals of sent targets
    state_interval: Spread  # [s] intervals of received joint states


@dataclass(frozen=True)
class JointUse:
    """Range and speed of one joint during a motion."""

    name: str
    lower: float  # limits [rad or m]
    upper: float
    least: float  # minimum position [rad or m]
    greatest: float  # maximum position [rad or m]
    top_speed: float  # maximum speed [rad/s or m/s]
    velocity: float  # velocity limit [rad/s or m/s]

    @property
    def room(self) -> float:
        """Minimum distance to a limit [rad or m]; negative beyond the limit."""
        return min(self.least - self.lower, self.upper - self.greatest)


def evaluate(
    recording: StreamRecording, check: IndependentCheck
) -> tuple[RecordedMotion, Tracking]:
    """Return the motion and its statistics, by independent kinematics."""
    sent, stamps, targets = recording.sent, recording.stamps, recording.targets
    during = recording.received <= sent[-1]
    times, q = recording.received[during], recording.q[during]
    poses = np.array([check.pose(values) for values in q])
    tip, goal = poses[:, :3, 3], _goal(recording, times)
    motion = RecordedMotion(times, stamps[during], q, tip, goal)
    last = targets[np.searchsorted(sent, times, side="right") - 1]  # the orientation is constant
    rotation_errors = [pose_errors(*pair)[1] for pair in zip(last, poses, strict=True)]
    counted = sent[sent >= 0.0]
    answer = np.searchsorted(stamps, counted)  # first state computed later
    answered = answer < len(stamps)
    path, duration = targets[:, :3, 3], float(sent[-1])
    arrived = duration - MAX_STREAM_LAG  # the tip may not have reached later targets yet
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
    """Return the range and the maximum speed of every joint."""
    k = min(SPEED_WINDOW, len(motion.q) - 1)
    elapsed = motion.stamps[k:] - motion.stamps[:-k]
    speeds = (np.abs(motion.q[k:] - motion.q[:-k]) / elapsed[:, None]).max(axis=0)
    ends = (robot.lower, robot.upper, motion.q.min(axis=0), motion.q.max(axis=0))
    rows = np.array([*ends, speeds, robot.velocity]).T.tolist()
    return [JointUse(name, *row) for name, row in zip(robot.joint_names, rows, strict=True)]


def _lag(recording: StreamRecording, motion: RecordedMotion) -> float:
    """Return the time shift [s] with the smallest mean distance of tip and target."""

    def distance(lag: float) -> float:
        goal = _goal(recording, motion.times - lag)
        return float(np.linalg.norm(motion.tip - goal, axis=1).mean())

    return min(np.arange(0.0, MAX_STREAM_LAG, 5e-4).tolist(), key=distance)


def _path_errors(recording: StreamRecording, motion: RecordedMotion) -> Array:
    """Return distances (m,) [m] from the tip to the recent path of the target.

    If no target was sent recently, as on a busy machine, the last target is the path.
    """
    last = np.maximum(np.searchsorted(recording.sent, motion.times, side="right"), 1)
    first = np.minimum(np.searchsorted(recording.sent, motion.times - MAX_STREAM_LAG), last - 1)
    path = recording.targets[:, :3, 3]
    return np.array(
        [distance_to_path(p, path[a:b]) for p, a, b in zip(motion.tip, first, last, strict=True)]
    )


def _distances(points: Array, path: Array) -> Array:
    """Return distances (k,) [m] of points (m, 3) to a path, at any time.

    About `MAX_COMPARED_POINTS` evenly spaced points are used if there are more.
    """
    thinned = points[:: 1 + len(points) // MAX_COMPARED_POINTS]
    return np.array([distance_to_path(p, path) for p in thinned])


def distance_to_path(point: Array, path: Array) -> float:
    """Return the distance [m] from a point (3,) to the polyline through points (k, 3)."""
    start, step = path[:-1], np.diff(path, axis=0)
    squares = np.maximum((step**2).sum(axis=1), 1e-30)
    share = np.clip(((point - start) * step).sum(axis=1) / squares, 0.0, 1.0)
    nearest = np.vstack([path[-1:], start + share[:, None] * step])
    return float(np.linalg.norm(point - nearest, axis=1).min())


def _goal(recording: StreamRecording, times: Array) -> Array:
    """Return target positions (m, 3) [m], interpolated between messages."""
    axes = recording.targets[:, :3, 3].T
    return np.array([np.interp(times, recording.sent, axis) for axis in axes]).T


def spread(values: Array) -> Spread:
    """Return mean, median, 99th percentile and maximum of values."""
    median, p99 = np.percentile(values, (50.0, 99.0)).tolist()
    return Spread(float(values.mean()), median, p99, float(values.max()))
