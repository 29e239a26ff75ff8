# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Measurements of the demonstration: answers of ``compute_ik``, and motion along streamed targets.

Answers and motion are checked with independent forward kinematics, which the solver does not use.
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

# Joint positions [rad] with bent elbow and the tool pointing down. They are the seed of every
# request; the tip is then at the centre of the figure of eight.
HOME_POSITIONS = (0.0, 0.5, 0.0, 1.7, 0.0, pi - 2.2, 0.0)

TOOL = 0.06  # [m] distance between wrist and tip
# Maximum distance between shoulder and wrist. Upper arm and forearm have an elbow offset of 45 mm.
REACH = float(np.hypot(0.55, 0.045) + np.hypot(0.3, 0.045))  # [m]
REQUEST_TIMEOUT = 1.0  # [s] timeout of a request, long enough on a busy machine
MAX_SOLUTION_ERROR = 1e-6  # [m] and [rad] maximum errors of a solution, the default of the node
POSE_ROUNDING = (
    1e-9  # [m] and [rad] rounding errors of quaternions and of the independent kinematics
)

_REACHABLE = {
    "above the table, tool down": (0.5, 0.4, 0.0, 1.9, 0.0, pi - 2.3, 0.0),
    "to the right and low, tool down": (-0.9, 1.1, 0.0, 1.3, 0.0, pi - 2.4, 0.3),
    "to the left, tool outwards": (1.2, 0.4, 0.2, 1.9, -0.3, -0.6, 0.5),
    "overhead": (0.3, -0.2, 0.1, 0.5, -0.4, 0.3, -0.2),
    "behind, first joint at its limit": (2.59, 0.8, -0.3, 1.5, 0.2, 0.5, 0.0),
    "1 mm less than the stretched arm": (-0.4, 1.2, 0.3, 0.131, 0.2, 0.3, 0.0),
    "forearm folded on upper arm": (0.6, -0.3, 0.4, 3.09, 0.5, -0.9, 1.0),
    "all wrist joints at limits": (-0.3, 0.6, 0.2, 1.4, -4.79, 1.59, 2.19),
}
_UNREACHABLE = {  # position of the wrist [m], direction of the tool
    "1 cm beyond the stretched arm": ((REACH + 0.01) * np.array([0.8, 0.0, 0.6]), (0.8, 0.0, 0.6)),
    "close enough, but tool turned back": ((REACH + 0.03, 0.0, 0.0), (-1.0, 0.0, 0.0)),
    "wrist in the shoulder": ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "straight down through the base": ((0.0, 0.0, -0.8), (0.0, 0.0, -1.0)),
}


class DemoPose(NamedTuple):
    """Pose that the demonstration requests from ``compute_ik``, and whether it is reachable."""

    name: str
    T: Array  # (4, 4) T_base_tip
    reachable: bool


def demo_poses(robot: RobotModel) -> list[DemoPose]:
    """Return eight poses that the WAM can reach, then four that it provably cannot reach.

    Each reachable pose is computed by forward kinematics from joint positions within the limits.
    Each unreachable pose needs a wrist position that the first four joints cannot reach; the wrist
    is the intersection of the last three joint axes, 60 mm behind the tip.
    """
    poses = [DemoPose(name, robot.fk(q), True) for name, q in _REACHABLE.items()]
    for name, ends in _UNREACHABLE.items():
        wrist, tool = np.array(ends)
        poses.append(DemoPose(name, transform(rotation_from_z(tool), wrist + TOOL * tool), False))
    return poses


class IndependentCheck(NamedTuple):
    """Forward kinematics that is independent of the solver, and the name of its library."""

    name: str
    pose: Callable[[Array], Array]  # function of q (n,) that returns T_base_tip (4, 4)


def independent_check(robot: RobotModel) -> IndependentCheck:
    """Return the forward kinematics of PyKDL, or of NumPy if PyKDL is not installed.

    The NumPy version multiplies the 4x4 matrices of the joints.
    """
    try:
        return IndependentCheck("PyKDL", _kdl_pose(robot))
    except DlsIkError:
        return IndependentCheck("NumPy", lambda q: robot.link_pose(robot.tip, q))


def _kdl_pose(robot: RobotModel) -> Callable[[Array], Array]:
    chain = kdl_chain(robot)
    import PyKDL  # kdl_chain has already raised an error if PyKDL is missing

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
    """Answer of the node to the request of a pose, and the results of the independent check."""

    pose: DemoPose
    code: int  # value of MoveItErrorCodes
    q: Array | None  # (n,) joint positions [rad]; None if the node found no solution
    position_error: float  # [m]; NaN without a solution
    rotation_error: float  # [rad]; NaN without a solution
    inside_limits: bool  # whether no joint is beyond a limit
    round_trip: float  # [s] time between request and answer

    @property
    def is_reached(self) -> bool:
        """Whether the joint positions are within the limits and MAX_SOLUTION_ERROR of the pose."""
        errors = (self.position_error, self.rotation_error)  # comparisons with NaN are False
        return self.inside_limits and all(
            error <= MAX_SOLUTION_ERROR + POSE_ROUNDING for error in errors
        )

    @property
    def is_right(self) -> bool:
        """Whether the answer is correct.

        The node must solve a reachable pose within tolerance and limits, and answer
        NO_IK_SOLUTION for an unreachable pose.
        """
        if self.pose.reachable:
            return self.code == Code.SUCCESS and self.is_reached
        return self.code == Code.NO_IK_SOLUTION


def ask_poses(
    client: IkClient, robot: RobotModel, poses: Sequence[DemoPose], check: IndependentCheck
) -> Iterator[PoseCheck]:
    """Request poses from ``compute_ik``, and yield the checked answers.

    Args:
        client: Client of the node.
        robot: Robot.
        poses: Requested poses.
        check: Kinematics for the check of the solutions.

    Raises:
        DlsIkError: If the node does not answer.
    """
    seed = np.array(HOME_POSITIONS)
    # The first call takes longer, because it connects to the service; its duration is not measured.
    client.solve(poses[0].T, seed, frame=robot.base, timeout=REQUEST_TIMEOUT)
    for pose in poses:
        begin = time.perf_counter()
        answer = client.solve(pose.T, seed, frame=robot.base, timeout=REQUEST_TIMEOUT)
        round_trip = time.perf_counter() - begin
        q = answer.array(robot.joint_names) if answer.success else None
        if q is None or not np.isfinite(q).all():
            yield PoseCheck(pose, answer.code, q, np.nan, np.nan, False, round_trip)
        else:
            errors = pose_errors(pose.T, check.pose(q))
            inside = bool(robot.within_limits(q))
            yield PoseCheck(pose, answer.code, q, *errors, inside, round_trip)


# Stream

# Initial joint positions of the arm [rad], far from joint limits and singularities.
READY = (-0.6, -0.2, 0.3, 2.3, -0.3, 0.2, 0.4)

# The figure of eight is horizontal; no joint needs more than half of its maximum speed.
EIGHT_WIDTH, EIGHT_LENGTH = 0.1, 0.25  # [m] half sizes of the eight along x and y of the base
LAP = 5.0  # [s] time for one lap of the figure

APPROACH_SPEED = 0.8  # [rad/s] maximum joint speed of the approach
CENTRE_REST_TIME = 0.5  # [s] pause at the centre between the approach and the figure of eight
RUN_IN = 1.0  # [s] time for the acceleration along the figure to full speed
FIRST_STATE_TIMEOUT = 5.0  # [s] maximum time until the first joint states arrive
LAST_STATE_TIME = 0.25  # [s] time for which recording continues after the last target
MAX_STREAM_LAG = 0.5  # [s] maximum lag of the tip behind the target that the evaluation considers
MAX_COMPARED_POINTS = 1000  # maximum number of points of a motion compared with the whole figure
SPEED_WINDOW = 10  # number of joint states over which a speed is averaged, as stamps jitter


class TargetPath(NamedTuple):
    """Sequence of k target poses, of which the last are evaluated."""

    poses: Array  # (k, 4, 4) T_base_tip
    first_evaluated: int  # index of the first target pose that is evaluated


def target_path(robot: RobotModel, start: Array, rate: float, duration: float) -> TargetPath:
    """Return target poses for an approach, a pause, an acceleration and the figure of eight.

    Args:
        robot: Robot.
        start: (n,) initial joint positions [rad].
        rate: Rate of the targets [Hz].
        duration: Duration of the figure of eight at full speed, the evaluated part [s].
    """
    rest = np.repeat(robot.fk(HOME_POSITIONS)[None], int(CENTRE_REST_TIME * rate), axis=0)
    times = np.arange(-RUN_IN, duration, 1.0 / rate)
    eight = figure_of_eight(robot.fk(HOME_POSITIONS), times)
    poses = np.concatenate([approach(robot, start, rate), rest, eight])
    return TargetPath(poses, len(poses) - round(duration * rate))


def approach(robot: RobotModel, start: Array, rate: float) -> Array:
    """Return poses (k, 4, 4) of a minimum-jerk joint motion to HOME_POSITIONS.

    Args:
        robot: Robot.
        start: (n,) initial joint positions [rad].
        rate: Rate of the poses [Hz].
    """
    way = np.array(HOME_POSITIONS) - start
    duration = 1.875 * np.abs(way).max() / APPROACH_SPEED  # 1.875: ratio of maximum and mean speed
    share = np.linspace(0.0, 1.0, 2 + int(duration * rate))
    smooth = share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    return robot.fk(start + smooth[:, None] * way)


def figure_of_eight(centre: Array, times: Array, begin: float = 0.0) -> Array:
    """Return poses ``T_base_tip`` (k, 4, 4) along the figure of eight, with constant orientation.

    Args:
        centre: (4, 4) ``T_base_tip`` at the centre of the figure.
        times: (k,) times of the poses [s]. The motion starts from rest at time `-RUN_IN`, and has
            full speed from time 0 on.
        begin: Phase at which the motion starts [rad].
    """
    running = np.maximum(times, 0.0)
    run_in = np.minimum(times, 0.0) + RUN_IN
    phase = begin + 2.0 * pi / LAP * (running + 0.5 * run_in**2 / RUN_IN)
    poses = np.repeat(centre[None], len(times), axis=0)
    poses[:, 0, 3] += EIGHT_WIDTH * np.sin(2.0 * phase)
    poses[:, 1, 3] += EIGHT_LENGTH * np.sin(phase)
    return poses


class StateRecorder:
    """Recorder of the joint states that arrive on ``joint_states``.

    Args:
        node: ROS node that subscribes to the topic.
        joint_names: (n,) recorded joints; messages without all of them are ignored.

    Attributes:
        states: A tuple for each message: arrival time and stamp, both on the steady clock [s], and
            the joint positions (n,) [rad].
    """

    def __init__(self, node: Any, joint_names: tuple[str, ...]) -> None:
        self.states: list[tuple[float, float, Array]] = []
        self._names = joint_names
        qos = qos_profile_sensor_data
        self._subscription = node.create_subscription(JointState, "joint_states", self._keep, qos)

    def start(self) -> Array:
        """Wait for the first joint states, and return the current joint positions (n,) [rad].

        Raises:
            DlsIkError: If no joint states arrive within `FIRST_STATE_TIMEOUT`.
        """
        if not wait_until(lambda: self.states, time.monotonic() + FIRST_STATE_TIMEOUT):
            raise DlsIkError(f"the node published no joint_states within {FIRST_STATE_TIMEOUT:g} s")
        return self.states[-1][2]

    def _keep(self, message: Any) -> None:
        received, wall = time.monotonic(), time.time()
        values = dict(zip(message.name, message.position, strict=False))
        if all(name in values for name in self._names):
            stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
            q = np.array([values[name] for name in self._names])
            self.states.append((received, received - (wall - stamp), q))


class StreamRecording(NamedTuple):
    """The k sent targets and m received joint states of a stream.

    Time 0 is the send time of the first evaluated target.
    """

    sent: Array  # (k,) [s] send times; negative before the first evaluated target
    targets: Array  # (k, 4, 4) T_base_tip
    received: Array  # (m,) [s] arrival times of the joint states
    stamps: Array  # (m,) [s] times at which the node computed the joint states
    q: Array  # (m, n) [rad] joint positions


def stream(
    publisher: TargetPublisher,
    recorder: StateRecorder,
    path: TargetPath,
    frame: str,
    rate: float,
    every_second: Callable[[], None],
    events: Mapping[int, Callable[[], None]] | None = None,
) -> StreamRecording:
    """Send targets at a constant rate, and return them with the joint states that arrive.

    Joint states that arrive before the first evaluated target are left out.

    Args:
        publisher: Publisher of the targets.
        recorder: Recorder of the joint states.
        path: Targets.
        frame: Frame of the targets.
        rate: Rate of the targets [Hz].
        every_second: Function that is called once for each second of targets.
        events: Functions by index of a target. A function is called immediately before the target
            with this index is sent.

    Raises:
        DlsIkError: If fewer than two joint states arrive during the evaluated part of the stream.
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
    zero = sent[path.first_evaluated]
    states = [state for state in list(recorder.states) if state[0] >= zero]
    if len(states) < 2:
        raise DlsIkError("the node stopped publishing joint_states during the stream of targets")
    received, stamps, q = (np.array(column) for column in zip(*states, strict=True))
    return StreamRecording(np.array(sent) - zero, path.poses, received - zero, stamps - zero, q)


class RecordedMotion(NamedTuple):
    """Motion of the arm until the last target of a stream, at m arrival times of joint states."""

    times: Array  # (m,) [s] arrival times of the joint states
    stamps: Array  # (m,) [s] times at which the node computed the joint states
    q: Array  # (m, n) [rad] joint positions
    tip: Array  # (m, 3) [m] tip positions in the base frame, by the independent kinematics
    goal: Array  # (m, 3) [m] target positions in the base frame, interpolated at the arrival times


@dataclass(frozen=True)
class Spread:
    """Mean, median, 99th percentile and maximum of a quantity."""

    mean: float
    median: float
    p99: float
    max: float


@dataclass(frozen=True)
class Tracking:
    """Statistics of a motion of the tip along streamed targets.

    The targets move along a figure, a closed curve. The tip positions are those of the received
    joint states.

    - position error: distance between tip and target when joint states arrive; the target is
      interpolated between two messages
    - path error: distance of the tip from the path of the targets that were sent in the last half
      second; unlike the position error, it does not grow if the tip lags behind the target
    - lag: delay of the target that minimizes the mean distance between tip and target
    - figure error: distance of the tip from the closest point of the figure
    - missed: distance of a point of the figure from the closest point of the path of the tip;
      targets of the last half second are ignored, because the tip may not have reached them
    - jump: maximum distance between consecutive targets, plus the maximum distance by which the
      target moved between consecutive joint states; if a busy machine delays messages, the target
      moves far between two of them, and the tip may take a shortcut
    - latency: time from sending a target to receiving the first joint states with a later stamp,
      which includes the time until the next cycle of the node
    - delivery: time from the stamp of joint states to their arrival, a part of the latency
    """

    targets: int  # number of targets sent
    states: int  # number of joint states received
    duration: float  # [s] time between the first evaluated target and the last target
    state_rate: float  # [Hz] rate of received joint states
    lag: float  # [s]
    position_error: Spread  # [m]
    path_error: Spread  # [m]
    figure_error: Spread  # [m]
    missed: Spread  # [m]
    jump: float  # [m]
    heard_until: float  # fraction of targets that were sent before the last joint states arrived
    rotation_error: Spread  # [rad]
    latency: Spread  # [s]
    delivery: Spread  # [s]
    target_interval: Spread  # [s] time between consecutive targets
    state_interval: Spread  # [s] time between arrivals of consecutive joint states


@dataclass(frozen=True)
class JointUse:
    """Range and speed of one joint during a motion."""

    name: str
    lower: float  # lower joint limit [rad or m]
    upper: float  # upper joint limit [rad or m]
    min_position: float  # minimum position [rad or m]
    max_position: float  # maximum position [rad or m]
    top_speed: float  # maximum speed [rad/s or m/s]
    velocity: float  # velocity limit [rad/s or m/s]

    @property
    def margin(self) -> float:
        """Minimum distance of the joint to a limit [rad or m]; negative if it exceeded a limit."""
        return min(self.min_position - self.lower, self.upper - self.max_position)


def evaluate(
    recording: StreamRecording, check: IndependentCheck
) -> tuple[RecordedMotion, Tracking]:
    """Return the motion of the arm in a recording, and the statistics of the motion.

    Args:
        recording: Sent targets and received joint states.
        check: Kinematics for the tip poses.
    """
    sent, stamps, targets = recording.sent, recording.stamps, recording.targets
    during = recording.received <= sent[-1]
    times, q = recording.received[during], recording.q[during]
    poses = np.array([check.pose(values) for values in q])
    tip, goal = poses[:, :3, 3], _goal(recording, times)
    motion = RecordedMotion(times, stamps[during], q, tip, goal)
    # Orientations are not interpolated, because the orientation of the figure is constant.
    last = targets[np.searchsorted(sent, times, side="right") - 1]
    rotation_errors = [pose_errors(*pair)[1] for pair in zip(last, poses, strict=True)]
    counted = sent[sent >= 0.0]
    answer = np.searchsorted(stamps, counted)  # for each target, first state with a later stamp
    answered = answer < len(stamps)
    path, duration = targets[:, :3, 3], float(sent[-1])
    arrived = duration - MAX_STREAM_LAG  # the tip may not have reached targets sent after this time
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
        jump=_longest_step(path[sent >= 0.0]) + _longest_step(goal[times >= 0.0]),
        heard_until=float((counted <= recording.received[-1]).mean()),
        rotation_error=spread(np.array(rotation_errors)),
        latency=spread(recording.received[answer[answered]] - counted[answered]),
        delivery=spread(recording.received - stamps),
        target_interval=spread(np.diff(counted)),
        state_interval=spread(np.diff(times)),
    )
    return motion, figures


def _longest_step(points: Array) -> float:
    """Return the maximum distance [m] between consecutive rows of the points (m, 3) [m]."""
    return float(np.linalg.norm(np.diff(points, axis=0), axis=1).max(initial=0.0))


def joint_uses(robot: RobotModel, motion: RecordedMotion) -> list[JointUse]:
    """Return the range and the maximum speed of every joint during a motion."""
    k = min(SPEED_WINDOW, len(motion.q) - 1)
    elapsed = motion.stamps[k:] - motion.stamps[:-k]
    speeds = (np.abs(motion.q[k:] - motion.q[:-k]) / elapsed[:, None]).max(axis=0)
    ends = (robot.lower, robot.upper, motion.q.min(axis=0), motion.q.max(axis=0))
    rows = np.array([*ends, speeds, robot.velocity]).T.tolist()
    return [JointUse(name, *row) for name, row in zip(robot.joint_names, rows, strict=True)]


def _lag(recording: StreamRecording, motion: RecordedMotion) -> float:
    """Return the lag of the tip behind the target [s].

    The lag is the shift of the target in time that minimizes the mean distance between tip and
    target.
    """

    def distance(lag: float) -> float:
        goal = _goal(recording, motion.times - lag)
        return float(np.linalg.norm(motion.tip - goal, axis=1).mean())

    return min(np.arange(0.0, MAX_STREAM_LAG, 5e-4).tolist(), key=distance)


def _path_errors(recording: StreamRecording, motion: RecordedMotion) -> Array:
    """Return the distances (m,) [m] of the tip from the path of recent targets.

    At each time of the motion, the path consists of the targets that were sent in the
    MAX_STREAM_LAG seconds before. If there are none, for example on a busy machine, it is the last
    sent target.
    """
    last = np.maximum(np.searchsorted(recording.sent, motion.times, side="right"), 1)
    first = np.minimum(np.searchsorted(recording.sent, motion.times - MAX_STREAM_LAG), last - 1)
    path = recording.targets[:, :3, 3]
    return np.array(
        [distance_to_path(p, path[a:b]) for p, a, b in zip(motion.tip, first, last, strict=True)]
    )


def _distances(points: Array, path: Array) -> Array:
    """Return the distances (k,) [m] of points (m, 3) from the polyline through `path` (l, 3).

    If m is larger than `MAX_COMPARED_POINTS`, only every second, third, ... point is compared, so
    that k does not exceed `MAX_COMPARED_POINTS`.
    """
    thinned = points[:: 1 + len(points) // MAX_COMPARED_POINTS]
    return np.array([distance_to_path(p, path) for p in thinned])


def distance_to_path(point: Array, path: Array) -> float:
    """Return the distance [m] from a point (3,) to the polyline through `path` (k, 3) [m]."""
    start, step = path[:-1], np.diff(path, axis=0)
    squares = np.maximum((step**2).sum(axis=1), 1e-30)
    share = np.clip(((point - start) * step).sum(axis=1) / squares, 0.0, 1.0)
    nearest = np.vstack([path[-1:], start + share[:, None] * step])
    return float(np.linalg.norm(point - nearest, axis=1).min())


def _goal(recording: StreamRecording, times: Array) -> Array:
    """Return target positions (m, 3) [m] at times (m,) [s], interpolated between sent targets."""
    axes = recording.targets[:, :3, 3].T
    return np.array([np.interp(times, recording.sent, axis) for axis in axes]).T


def spread(values: Array) -> Spread:
    """Return mean, median, 99th percentile and maximum of an array of values."""
    median, p99 = np.percentile(values, (50.0, 99.0)).tolist()
    return Spread(float(values.mean()), median, p99, float(values.max()))
