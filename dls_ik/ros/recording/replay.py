# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Replay of recorded targets and joint positions to a running node."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from rclpy.qos import QoSProfile, ReliabilityPolicy

from dls_ik.core.cubic_spline import spline_slopes
from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array
from dls_ik.ros.client.connection import ServiceMissingError, wait_until
from dls_ik.ros.client.target_publisher import NodeMonitor, StreamOutcome, run_stream
from dls_ik.ros.frames import fill_pose, matrix_from_pose
from dls_ik.ros.recording.definitions import message_class
from dls_ik.ros.recording.files import RecordingError
from dls_ik.ros.recording.recording import RecordedTarget, Recording
from dls_ik.ros.recording.running_node import RunningNode
from dls_ik.ros.recording.topics import (
    JOG_KIND,
    JOINTS_KIND,
    PLAIN_TWIST_KIND,
    POSE_KIND,
    POSES_KIND,
    TARGET_ROLE,
    TWIST_KIND,
)
from dls_ik.ros.servo.target_buffer import MAX_POSES
from dls_ik.servo.joint_motion import MotionLimits
from dls_ik.servo.joint_spline import JointSpline
from dls_ik.text import listing

# Minimum time between points of a trajectory [s]; with closer points, noise exceeds the limits.
MIN_KNOT_INTERVAL = 0.05
MAX_REPLAYED_POINTS = 9000  # points of a trajectory; the node accepts 10 000
PERIOD_ROUNDING = 1e-9  # [periods] rounding error of the number of periods of a trajectory
REST_PERIOD = 0.05  # [s] period of checks after the last target
MAX_SETTLE_TIME = 30.0  # [s] maximum time after the last target until the arm is at rest
STATES_IN_MOTION = ("FOLLOWING", "JOINT_MOTION", "NEAR_SINGULARITY", "LEAVING_SINGULARITY",
                    "NEAR_COLLISION", "JOINT_BOUND", "UNKNOWN")  # fmt: skip


def match_topics(recording: Recording, source: RunningNode) -> dict[tuple[str, str], str]:
    """Return a topic of the node for each pair of topic and type of the recorded targets.

    This is the recorded topic if the node reads it; otherwise the topic of the same name in the
    namespace of the node; otherwise the only topic of the same type that the node reads.

    Raises:
        RecordingError: If the node reads none of these topics.
    """
    found = {}
    recorded_space = recording.info.namespace
    for topic, kind in dict.fromkeys((each.topic, each.kind) for each in recording.targets):
        usable = [name for name, each in source.topics(TARGET_ROLE) if _agree(kind, each)]
        local = topic.removeprefix(recorded_space).lstrip("/")
        named = f"/{source.namespace.strip('/')}/{local}".replace("//", "/")
        same_kind = [name for name, each in source.topics(TARGET_ROLE) if each == kind]
        choices = [name for name in (topic, named) if name in usable]
        if not choices and len(same_kind) == 1:
            choices = same_kind
        if not choices:
            raise RecordingError(
                f"{source.full_name} does not read {topic} ({kind}) of {recording.path}; its "
                f"topics of this type: {listing(same_kind)}"
            )
        found[topic, kind] = choices[0]
    return found


def _agree(recorded: str, read: str) -> bool:
    """Return whether the recorded type is the type `read` by the node, or both are twists."""
    return recorded == read or {recorded, read} == {TWIST_KIND, PLAIN_TWIST_KIND}


def schedule(
    targets: Sequence[RecordedTarget], speed: float, timeout: float
) -> list[RecordedTarget]:
    """Return the messages to send, at times from the start [s], without stamps.

    Twists and joint velocities are multiplied by the speed. At speeds below 1, poses of a stream
    are interpolated and twists, velocities and joint positions are repeated, so that the stream
    does not time out. The node passes the poses of trajectories (PoseArray) at a fixed period.
    Trajectories are therefore resampled, to more poses at speeds below 1 and to fewer above 1.

    Args:
        targets: Recorded targets.
        speed: Factor of the speed.
        timeout: Time without a message after which a stream has ended [s].
    """
    begin = targets[0].time
    sent = []
    for each, after in pairwise([*targets, None]):
        assert each is not None  # noqa: S101  only the last element is None
        t = (each.time - begin) / speed
        sent.append(each._replace(time=t, message=_prepared(each, speed)))
        if after is not None and speed < 1.0 and each.topic == after.topic:
            gap = after.time - each.time
            if gap <= timeout and each.kind == after.kind:
                sent += _between(sent[-1], after, gap / speed, math.ceil(1.0 / speed))
    return sent


def _prepared(target: RecordedTarget, speed: float) -> Any:
    """Return a copy of a message for the replay.

    The copy has no stamp, so that the node does not discard it as stale. Its velocities are
    multiplied by `speed`, and poses of a trajectory are resampled.
    """
    message = deepcopy(target.message)
    if hasattr(message, "header"):
        message.header.stamp = Time()
    if target.kind == POSES_KIND and speed != 1.0 and message.poses:
        message.poses = _resampled(message.poses, speed)
    if target.kind == JOG_KIND:
        message.velocities = [speed * v for v in message.velocities]
    if target.kind in (TWIST_KIND, PLAIN_TWIST_KIND) and speed != 1.0:
        twist = message.twist if target.kind == TWIST_KIND else message
        for vector in (twist.linear, twist.angular):
            vector.x, vector.y, vector.z = speed * vector.x, speed * vector.y, speed * vector.z
    return message


def _resampled(poses: Sequence[Any], speed: float) -> list[Any]:
    """Resample the poses of a trajectory, so that the same period gives another speed.

    As in the node, interpolated poses are on a straight line, and their orientations turn about a
    fixed axis. The last pose is kept. Corners at recorded poses that are not sampled are cut, by at
    most the motion in one period.

    Args:
        poses: Recorded poses (geometry_msgs/Pose), at least one.
        speed: Factor of the speed.
    """
    Ts = [matrix_from_pose(pose) for pose in poses]
    count = math.ceil((len(poses) - 1) / speed - PERIOD_ROUNDING) + 1
    if count > MAX_POSES:
        raise RecordingError(
            f"a trajectory of {len(poses)} poses has {count} at speed {speed:g}, and the node "
            f"accepts {MAX_POSES}; use a higher --speed, or --what joints"
        )
    found = []
    for k in range(count):
        at = min(k * speed, len(poses) - 1.0)
        leg = min(int(at), max(len(poses) - 2, 0))
        T = Ts[leg]
        if at > leg:
            T = moved(T, difference(T, Ts[leg + 1]) * (at - leg))
        pose = deepcopy(poses[leg])
        fill_pose(pose, T)
        found.append(pose)
    return found


def _between(
    first: RecordedTarget, after: RecordedTarget, gap: float, count: int
) -> Iterator[RecordedTarget]:
    """Yield `count` - 1 messages between two messages that are sent `gap` seconds apart.

    Poses in the same frame are interpolated; other messages are repeated.
    """
    is_pose = first.kind == POSE_KIND and (
        first.message.header.frame_id == after.message.header.frame_id
    )
    if first.kind == JOG_KIND and len(first.message.displacements):
        return  # a repeated displacement would be a second motion
    if first.kind == POSES_KIND:
        return  # a repeated trajectory would start again
    for k in range(1, count):
        message = first.message
        if is_pose:
            T, goal = matrix_from_pose(message.pose), matrix_from_pose(after.message.pose)
            message = deepcopy(message)
            fill_pose(message.pose, moved(T, difference(T, goal) * (k / count)))
        yield first._replace(time=first.time + gap * k / count, message=message)


class TargetReplayer:
    """Publisher of recorded targets.

    Args:
        source: Connection to the node.
        topics: Topic of the node by recorded topic and type.

    Attributes:
        monitor: Monitor of the node.
        sent: Number of sent targets.

    Raises:
        ServiceMissingError: If no node reads one of the topics.
    """

    def __init__(self, source: RunningNode, topics: dict[tuple[str, str], str]) -> None:
        self.monitor: NodeMonitor = source.monitor
        self.sent = 0
        self._period = source.parameters.trajectory_period
        reliable = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
        create = source.node.create_publisher
        self._publishers = {
            key: create(message_class(key[1]), name, reliable) for key, name in topics.items()
        }
        self._stops = [
            create(message_class(TWIST_KIND), name, reliable)
            for name, _ in source.topics(TARGET_ROLE, TWIST_KIND)
        ]
        deadline = time.monotonic() + source.patience
        for publisher in (*self._publishers.values(), *self._stops):
            if not wait_until(publisher.get_subscription_count, deadline):
                raise ServiceMissingError(f"no node reads {publisher.topic_name}")

    def run(self, targets: Sequence[RecordedTarget], update: Callable[[], None]) -> StreamOutcome:
        """Send targets at their times, then wait until the arm is at rest; Ctrl-C stops the arm.

        Args:
            targets: Messages of :func:`schedule`.
            update: Function that is called after each message.
        """
        last = targets[-1]
        end = last.time
        if last.kind == POSES_KIND:  # the arm passes the poses after the message
            end += self._period * max(len(last.message.poses) - 1, 0)
        has_goal = last.kind in (POSE_KIND, POSES_KIND, JOINTS_KIND)

        def messages() -> Iterator[float]:
            for each in targets:
                yield each.time
                self._publishers[each.topic, each.kind].publish(each.message)
                self.sent += 1
            t = last.time + REST_PERIOD
            while t < end + MAX_SETTLE_TIME:
                yield t
                if t > end + 1.0 and self.monitor.state not in STATES_IN_MOTION:
                    return
                t += REST_PERIOD

        return run_stream(self, messages(), end, end + MAX_SETTLE_TIME, update, has_goal)

    def stop(self) -> None:
        """Stop the arm by a twist of 0, which also ends a motion to a pose."""
        for publisher in self._stops:
            publisher.publish(message_class(TWIST_KIND)())


def joint_trajectory(
    recording: Recording, names: Sequence[str], speed: float, limits: MotionLimits
) -> tuple[JointSpline, float]:
    """Return the recorded joint positions as a trajectory within limits.

    Args:
        recording: Recording with joint positions.
        names: (n,) joint names of the node from base to tip, as in messages.
        speed: Factor of the speed.
        limits: Limits of the node.

    Returns:
        Trajectory, and the factor by which it was slowed down to keep the limits, at least 1.

    Raises:
        RecordingError: If the recording has no motion of these joints.
    """
    times, q = recording.times, recording.q
    if recording.has_joints(names):
        q = q[:, [recording.joint_names.index(name) for name in names]]
        interval = max(MIN_KNOT_INTERVAL, (times[-1] - times[0]) / MAX_REPLAYED_POINTS)
        knots = np.unique(((times - times[0]) // interval).astype(int), return_index=True)[1]
        knots = np.unique([*knots, len(times) - 1])
        # The last position replaces a knot just before it.
        if len(knots) > 2 and times[knots[-1]] - times[knots[-2]] < 0.5 * interval:
            knots = np.delete(knots, -2)
        times, q = (times[knots] - times[0]) / speed, q[knots]
    else:
        q = q[:0]
    if len(q) < 2 or np.ptp(q, axis=0).max() == 0.0:
        raise RecordingError(f"{recording.path} has no motion of the joints to replay")
    splines = [JointSpline(times, q, v) for v in (_smooth_slopes(times, q), _mean_slopes(times, q))]
    factors = [_slow_down(spline, limits) for spline in splines]
    best = int(np.argmin(factors))
    return splines[best].stretched(factors[best]), factors[best]


def _mean_slopes(times: Array, q: Array) -> Array:
    """Return velocities (k, n) at knots: means of the two adjacent intervals, zero at the ends."""
    v = np.zeros_like(q)
    v[1:-1] = (q[2:] - q[:-2]) / (times[2:] - times[:-2])[:, None]
    return v


def _smooth_slopes(times: Array, q: Array) -> Array:
    """Return velocities (k, n) at knots with which accelerations are continuous.

    The motion starts and ends at rest. If the recorded acceleration jumps, as in motions at the
    acceleration limits, the maximum acceleration is approximately 1.2 times the recorded maximum;
    with :func:`_mean_slopes` it is 1.6 to 2 times the recorded maximum.

    Args:
        times: (k,) times of the knots, at least two [s].
        q: (k, n) joint positions at the knots [rad or m].
    """
    first, last = times[1] - times[0], times[-1] - times[-2]
    s = np.concatenate(
        [times[0] - first * np.array([2, 1]), times, times[-1] + last * np.array([1, 2])]
    )
    slopes = spline_slopes(s, np.concatenate([q[:1], q[:1], q, q[-1:], q[-1:]]))
    v: Array = slopes[2:-2].copy()
    v[0] = v[-1] = 0.0
    return v


def _slow_down(spline: JointSpline, limits: MotionLimits) -> float:
    """Return the smallest factor (at least 1) that stretches a motion until it keeps limits."""
    velocity, acceleration = spline.peaks(limits.velocity, limits.acceleration)
    return max(1.0, velocity.ratio, math.sqrt(acceleration.ratio))
