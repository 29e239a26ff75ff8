"""Targets as they arrive: the loop receives them, and applies the newest.

The age of a target is judged here only: its delay on the way where it arrives, and its age where it
is applied.
"""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped, Twist, TwistStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import Header

from dls_ik.core.types import Array
from dls_ik.errors import PoseError, StaleTargetError
from dls_ik.ros.arm import Arm
from dls_ik.ros.cdr import PoseStampedView
from dls_ik.ros.endpoints import type_name
from dls_ik.ros.frames import (
    Frames,
    JointValues,
    base_from_root,
    matrix_from_pose,
    nanoseconds,
    quaternion_note,
    strip_slash,
)
from dls_ik.ros.receiver import MessageReceiver
from dls_ik.ros.servo.freshness import (
    DelayEstimator,
    Freshness,
    stamp_advice,
    target_age,
    target_freshness,
    transit_time,
)
from dls_ik.ros.servo.rivals import RivalTargets
from dls_ik.ros.subscriptions import (
    CHECK_PERIOD,
    call_every,
    read_bytes,
    subscribe_bounded,
    with_time,
)
from dls_ik.ros.util import Throttle

TOPICS = {"target_pose": PoseStamped, "target_twist": TwistStamped, "target_trajectory": PoseArray}
TWIST = "target_twist"
POSES = (PoseStampedView, PoseStamped)  # as received, and as others store them
MARKER_FEEDBACK = "~/target/feedback"  # of the interactive marker, which stores its targets
NEWEST = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)  # hears reliable ones too
WHOLE = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)  # there is no next one to come
MOST_POSES = 10_000  # to read ten times as many would block all threads for 0.6 s
POSE_BYTES, HEADER_BYTES = 56, 1024  # of a serialized PoseArray; header: with a name of any length


class OversizedTrajectory(NamedTuple):
    """In the place of a trajectory that was not read."""

    header: Header
    poses: int  # about


SOURCES: Mapping[type, str] = {
    PoseStampedView: "target_pose",
    PoseStamped: "target_pose",
    TwistStamped: "target_twist",
    PoseArray: "target_trajectory",
    OversizedTrajectory: "target_trajectory",
}


class Arrival(NamedTuple):
    """The newest target since the last one was taken."""

    message: Any  # of one of the types of TOPICS, or OversizedTrajectory
    time: float  # [s] steady
    number: int  # how many arrived since then
    delay: float | None = None  # [s] on the way; None: not known

    @property
    def stamp(self) -> int:
        """Stamp of the message [ns]; 0 if it has none."""
        return nanoseconds(self.message.header.stamp)

    def freshness(self, now: float, since_stall: float, target_timeout: float) -> Freshness:
        """Return ACCEPT or IGNORE, see :mod:`dls_ik.ros.servo.freshness`; all times in [s]."""
        transit = 0.0 if self.stamp else self.delay
        return target_freshness(since_stall, now - self.time, transit, target_timeout)

    def age(self, now: float, clock: int) -> float:
        """Return the age of the target [s], see :func:`.freshness.target_age`.

        Args:
            now: Time on the steady clock [s].
            clock: The same by the clock of the stamps [ns]; 0 if it is simulated and not yet known.

        Raises:
            StaleTargetError: If the target has a stamp, but there is no clock to compare it with.
        """
        is_twist = isinstance(self.message, TwistStamped)
        return target_age(self.stamp, clock, now - self.time, is_twist)


class TargetBuffer:
    """The newest target, and a way for the loop to wait for one.

    The loop takes the messages by itself, while it waits.
    """

    def __init__(self, node: Node, log: Throttle) -> None:
        self._node, self._log = node, log
        self._receiver = MessageReceiver(node, log)
        self._lock = threading.Lock()
        self._is_closed = False
        self._delays = DelayEstimator()
        self._newest: Arrival | None = None
        self.rivals = RivalTargets()

    def subscribe(self, twist_frame: str = "") -> None:
        """Store the messages of all topics; the newest counts, whatever its type.

        Args:
            twist_frame: of a ``geometry_msgs/Twist``.
        """
        node, log, receiver = self._node, self._log, self._receiver
        subscribe_bounded(
            node, PoseStamped, "target_pose", self._keep, NEWEST, log, receiver=receiver
        )
        store = with_time(self._store_trajectory)
        node.create_subscription(PoseArray, "target_trajectory", store, WHOLE, raw=True)
        TwistSubscription(node, log, twist_frame, self._keep, receiver)

    def store(self, message: Any, sent: int = 0) -> None:
        """Keep a target of the interactive marker, and wake the loop; from any thread."""
        self._keep(message, sent, MARKER_FEEDBACK)
        self._receiver.wake()

    def take(self) -> Arrival | None:
        """Return the newest target, once."""
        with self._lock:
            newest, self._newest = self._newest, None
            return newest

    def wait(self, earliest: float, latest: float) -> bool:
        """Receive targets until there is one, but not before `earliest` nor after `latest` [s].

        Returns:
            False once it is closed, without further waiting.
        """
        while not self._is_closed:
            self._receiver.receive(self._left(earliest, latest))
            if self._left(earliest, latest) == 0.0:
                break
        if self._is_closed:
            self._receiver.release()
        return not self._is_closed

    def close(self) -> None:
        """Wake the loop for the last time."""
        self._is_closed = True
        self._receiver.close()

    def _left(self, earliest: float, latest: float) -> float:
        """Return how long to wait on [s]."""
        end = max(earliest, latest) if self._newest is None else earliest
        return max(0.0, end - time.monotonic())

    def _keep(self, message: Any, sent: int = 0, topic: str = "") -> None:
        """Keep a target.

        Args:
            message: Target.
            sent: Time when the target was sent, by the clock of its publisher [ns]; 0: unknown.
            topic: Topic that the target arrived on; empty: the topic of its type.
        """
        with self._lock:
            number = self._newest.number + 1 if self._newest else 1
            now = time.monotonic()
            delay = transit_time(sent, time.time_ns(), self._delays.delay(sent, now))
            self._newest = Arrival(message, now, number, delay)
        self.rivals.note(topic or SOURCES[type(message)], now)

    def _store_trajectory(self, data: bytes, sent: int = 0) -> None:
        """Keep a serialized trajectory, which is read only if it is not too long."""
        if len(data) > MOST_POSES * POSE_BYTES + HEADER_BYTES:
            self._keep(OversizedTrajectory(Header(), len(data) // POSE_BYTES), sent)
        else:
            name = self._node.resolve_topic_name("target_trajectory")
            message = read_bytes(self._node, data, PoseArray, name, self._log)
            if message is not None:
                self._keep(message, sent)
        self._receiver.wake()


class TwistSubscription:
    """Reads twists with a header, or without one where such are sent, as by joysticks.

    A process has one type for a topic, so it is the one that publishers have, with a header where
    they differ.
    """

    def __init__(
        self,
        node: Node,
        log: Throttle,
        frame: str,
        store: Callable[..., None],
        receiver: MessageReceiver,
    ) -> None:
        self._node, self._log, self._frame, self._store = node, log, frame, store
        self._receiver = receiver
        self._topic = node.resolve_topic_name(TWIST)
        self._kind: Any = TwistStamped
        self._subscription: Any = None
        self._subscribe()
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        sent = {info.topic_type for info in self._node.get_publishers_info_by_topic(self._topic)}
        kind = next((k for k in (TwistStamped, Twist) if type_name(k) in sent), self._kind)
        if self._subscription is None:
            self._kind = kind
            self._subscribe()
            frame = f", along the axes of {self._frame or 'the root'} (twist_frame)"
            words = f"{type_name(kind)} is read on {self._topic}{frame if kind is Twist else ''}"
            self._log.info(words, words)
        elif kind is not self._kind:  # the next check subscribes, when this one is gone
            self._receiver.destroy_subscription(self._subscription)
            self._subscription = None

    def _subscribe(self) -> None:
        store = self._store if self._kind is TwistStamped else self._store_bare
        self._subscription = subscribe_bounded(
            self._node, self._kind, TWIST, store, NEWEST, self._log, receiver=self._receiver
        )

    def _store_bare(self, message: Any, sent: int = 0) -> None:
        stamped = TwistStamped(twist=message)
        stamped.header.frame_id = self._frame
        self._store(stamped, sent)


def apply_target(
    arm: Arm, message: Any, frames: Frames, joint_values: JointValues, now: float, age: float
) -> None:
    """Let the controller follow a message that is `age` [s] old, now [s].

    Args:
        joint_values: of all joints of the robot, for frames that move with them.

    Raises:
        DlsIkError: a message that is not valid, or that comes too late, or at the wrong time.
    """
    try:
        _follow(arm, message, frames, joint_values, now, age)
    except StaleTargetError as error:
        raise StaleTargetError(f"{error}: {stamp_advice(age)}") from error


def _follow(
    arm: Arm, message: Any, frames: Frames, joint_values: JointValues, now: float, age: float
) -> None:
    tree, base = arm.tree, arm.robot.base

    def T_base_frame() -> Array:
        T_root_frame = frames.T_root_frame(message.header.frame_id, tree, joint_values)
        return base_from_root(T_root_frame, tree, base, joint_values)

    if isinstance(message, POSES):
        T_base_tip = frames.pose_in_base(message, tree, base, joint_values)
        arm.controller.follow_pose(T_base_tip, now, age)
    elif isinstance(message, TwistStamped):
        v, w = message.twist.linear, message.twist.angular
        is_own = strip_slash(message.header.frame_id) == arm.robot.tip
        R = None if is_own else T_base_frame()[:3, :3]
        arm.controller.follow_twist(np.array([v.x, v.y, v.z, w.x, w.y, w.z]), now, R, age)
    else:
        _check_length(message)
        T = T_base_frame()
        Ts = np.array([T @ matrix_from_pose(pose) for pose in message.poses])
        arm.controller.follow_trajectory(Ts, arm.parameters.trajectory_period, now, age)


def _check_length(message: PoseArray | OversizedTrajectory) -> None:
    if isinstance(message, OversizedTrajectory):
        raise PoseError(
            f"a trajectory has at most {MOST_POSES} poses, this one about {message.poses}: give "
            "fewer, with a longer trajectory_period"
        )
    if not message.poses:
        raise PoseError("the trajectory has no poses")


def target_note(message: Any) -> str:
    """Return a remark on a target that was taken, such as on a quaternion that was normalised."""
    if isinstance(message, POSES):
        return quaternion_note([message.pose])
    return quaternion_note(message.poses) if isinstance(message, PoseArray) else ""
