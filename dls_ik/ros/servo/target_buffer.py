# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reception of targets: a buffer stores the newest target until a cycle passes it on.

The functions of this module transform a target to the base frame, and pass it to the controller.
"""

import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped, Twist, TwistStamped
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from dls_ik.core.types import Array
from dls_ik.errors import FrameError, OptionError, PoseError, StaleTargetError
from dls_ik.ros.arm import Arm
from dls_ik.ros.cdr import PoseStampedView
from dls_ik.ros.compatibility import public_name
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
from dls_ik.ros.servo.joint_messages import JointJog, follow_joint_message
from dls_ik.ros.servo.rivals import RivalTargets
from dls_ik.ros.subscriptions import (
    CHECK_PERIOD,
    call_every,
    read_bytes,
    subscribe_bounded,
    with_time,
)
from dls_ik.ros.util import Throttle
from dls_ik.text import listing, quoted

TARGET_TOPICS = {
    "target_pose": PoseStamped,
    "target_twist": TwistStamped,
    "target_trajectory": PoseArray,
}
JOINT_TOPICS: dict[str, Any] = {"target_joint": JointState} | (
    {} if JointJog is None else {"target_joint_jog": JointJog}
)
JOINT_MESSAGES = tuple(JOINT_TOPICS.values())
TWIST_TOPIC = "target_twist"
RELATIVE_TOPIC = "target_relative"  # pose of the second tip in the frame of the first
POSE_TYPES = (PoseStampedView, PoseStamped)  # received messages; arguments of `TargetBuffer.store`
MARKER_FEEDBACK_TOPIC = "~/target/feedback"  # named in warnings as the source of marker targets
# A stream needs only its newest message. A best-effort subscription also receives messages of
# reliable publishers.
STREAM_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
# Reliable, because a trajectory is sent only once.
TRAJECTORY_QOS = QoSProfile(depth=1, reliability=ReliabilityPolicy.RELIABLE)
MAX_POSES = 10_000  # limit of a trajectory; 100,000 poses would block all threads for 0.6 s
# Sizes in a serialized PoseArray [bytes]. The header includes the longest valid frame name.
BYTES_PER_POSE, MAX_HEADER_BYTES = 56, 1024


Address: TypeAlias = tuple[str | None, str | None]  # tip, and link to which a pose is relative


class OversizedTrajectory(NamedTuple):
    """Target in place of a trajectory with too many poses, which is not deserialized."""

    header: Header
    poses: int  # approximate number of poses


TOPIC_OF_TYPE: Mapping[type, str] = {
    PoseStampedView: "target_pose",
    PoseStamped: "target_pose",
    TwistStamped: "target_twist",
    PoseArray: "target_trajectory",
    OversizedTrajectory: "target_trajectory",
    **{kind: topic for topic, kind in JOINT_TOPICS.items()},
}
# Topics of targets that `~/switch_command_type` selects, by the names of its constants.
COMMAND_TYPES = {
    "JOINT_JOG": "target_joint_jog",
    "TWIST": "target_twist",
    "POSE": "target_pose",
}


class Arrival(NamedTuple):
    """Newest target in the buffer, and the times of its message."""

    message: Any  # target message, or OversizedTrajectory
    time: float  # [s] arrival of the message, steady clock
    number: int  # number of targets that arrived since the buffer was last emptied
    delay: float | None = None  # [s] time between sending and receiving; None: unknown
    tip: str | None = None  # tip that follows the target; None: the only tip
    reference: str | None = None  # link to which a pose is relative; None: no relative pose
    others: "tuple[Arrival, ...]" = ()  # newest targets of other tips

    @property
    def stamp(self) -> int:
        """Stamp of the message [ns]; 0 if the message has no stamp."""
        return nanoseconds(self.message.header.stamp)

    def freshness(self, now: float, since_stall: float, target_timeout: float) -> Freshness:
        """Return whether to ACCEPT or IGNORE the target, see :func:`.freshness.target_freshness`.

        Args:
            now: Current time on the steady clock [s].
            since_stall: Time since the last stall of the loop ended [s]; infinite if there was
                none.
            target_timeout: Parameter `target_timeout` of the node [s].
        """
        transit = 0.0 if self.stamp else self.delay
        return target_freshness(since_stall, now - self.time, transit, target_timeout)

    def age(self, now: float, clock: int) -> float:
        """Return the age of the target [s], see :func:`.freshness.target_age`.

        Args:
            now: Current time on the steady clock [s].
            clock: Current ROS time [ns]; 0 if simulated time is used and not known yet.

        Raises:
            StaleTargetError: If the target has a stamp, but ROS time is not known yet.
        """
        is_velocity = isinstance(self.message, TwistStamped) or _is_jog(self.message)
        return target_age(self.stamp, clock, now - self.time, is_velocity)


class TargetBuffer:
    """Receives targets, stores the newest target, and lets the servo loop wait for a target.

    With several tips, it stores the newest target of each tip. The thread that calls :meth:`wait`
    receives the messages itself, without an executor.

    Args:
        node: Node of the subscriptions.
        log: Log of the node.
        tips: Names of the tips that follow targets, if there are several.
        compatibility: Value of the parameter `compatibility`, which selects the names of topics.

    Attributes:
        topics: Message types of targets by topic.
        command_type: Name in COMMAND_TYPES of the only type of targets that is accepted; empty: all
            types. Trajectories and joint positions are always accepted.
    """

    def __init__(
        self, node: Node, log: Throttle, tips: Sequence[str] = (), compatibility: str = ""
    ) -> None:
        self._node, self._log, self._tips = node, log, tuple(tips)
        self._compatibility = compatibility
        self.topics = target_topics(tips, compatibility)
        self.command_type = ""
        self._receiver = MessageReceiver(node, log)
        self._lock = threading.Lock()
        self._is_closed = False
        self._delays = DelayEstimator()
        self._newest: dict[Address, Arrival] = {}
        self.rivals = RivalTargets()

    def subscribe(self, twist_frame: str = "") -> None:
        """Subscribe to all topics of targets.

        Args:
            twist_frame: Frame of ``geometry_msgs/Twist`` messages, which have no header; empty: the
                root link.
        """
        node, log, receiver = self._node, self._log, self._receiver
        for tip in self._tips or (None,):
            keep = self._keep if tip is None else self._keeper((tip, None))
            names = (public_name(name, self._compatibility) for name in TARGET_TOPICS)
            pose, twist, trajectory = (topic_of(name, tip) for name in names)
            subscribe_bounded(node, PoseStamped, pose, keep, STREAM_QOS, log, receiver=receiver)
            store = partial(self._store_trajectory, topic=trajectory, address=(tip, None))
            node.create_subscription(
                PoseArray, trajectory, with_time(store), TRAJECTORY_QOS, raw=True
            )
            TwistSubscription(node, log, twist_frame, keep, receiver, twist)
        for name, kind in JOINT_TOPICS.items():
            topic = public_name(name, self._compatibility)
            subscribe_bounded(node, kind, topic, self._keep, STREAM_QOS, log, receiver=receiver)

    def store(self, message: Any, sent: int = 0) -> None:
        """Store a target of the interactive marker, and wake the loop; callable from any thread.

        With several tips, it is a target of the first tip.

        Args:
            message: Target message.
            sent: Send time on the system clock of the publisher [ns]; 0 if unknown.
        """
        address = (self._tips[0] if self._tips else None), None
        self._keep(message, sent, MARKER_FEEDBACK_TOPIC, address)
        self._receiver.wake()

    def store_relative(self, message: Any, sent: int = 0) -> None:
        """Store a pose of the second tip in the frame of the first, and wake the loop.

        Args:
            message: ``PoseStamped``.
            sent: Send time on the system clock of the publisher [ns]; 0 if unknown.
        """
        self._keep(message, sent, RELATIVE_TOPIC, (self._tips[1], self._tips[0]))
        self._receiver.wake()

    def take(self) -> Arrival | None:
        """Return the newest target, and empty the buffer; None if the buffer is empty.

        The result contains the newest targets of the other tips as `others`.
        """
        with self._lock:
            if not self._newest:
                return None
            *others, newest = sorted(self._newest.values(), key=lambda each: each.time)
            self._newest = {}
        return newest._replace(others=tuple(others)) if others else newest

    def wait(self, earliest: float, latest: float) -> bool:
        """Receive targets until the buffer has a target, but return within a time window.

        Args:
            earliest: Time before which the method does not return, on the steady clock [s].
            latest: Time at which the method returns without a target, on the steady clock [s].

        Returns:
            True; False if the buffer is closed, which ends the wait at once.
        """
        while not self._is_closed:
            self._receiver.receive(self._remaining(earliest, latest))
            if self._remaining(earliest, latest) == 0.0:
                break
        if self._is_closed:
            self._receiver.release()
        return not self._is_closed

    def close(self) -> None:
        """Close the buffer; :meth:`wait` then returns at once."""
        self._is_closed = True
        self._receiver.close()

    def _remaining(self, earliest: float, latest: float) -> float:
        """Return for how long :meth:`wait`, with the same arguments, must still wait [s]."""
        end = earliest if self._newest else max(earliest, latest)
        return max(0.0, end - time.monotonic())

    def _keeper(self, address: Address) -> Callable[..., None]:
        """Return a function like :meth:`_keep` for targets with an address."""
        return lambda message, sent=0: self._keep(message, sent, address=address)

    def _keep(
        self, message: Any, sent: int = 0, topic: str = "", address: Address = (None, None)
    ) -> None:
        """Store a target as the newest target of its address.

        Args:
            message: Target message.
            sent: Send time on the system clock of the publisher [ns]; 0 if unknown.
            topic: Topic on which the target arrived; empty: the topic for messages of its type.
            address: Tip of the target, and link to which it is relative.
        """
        name = topic or TOPIC_OF_TYPE[type(message)]
        if self._is_other_type(name):
            return
        with self._lock:
            before = self._newest.get(address)
            number = before.number + 1 if before else 1
            now = time.monotonic()
            delay = transit_time(sent, time.time_ns(), self._delays.delay(sent, now))
            self._newest[address] = Arrival(message, now, number, delay, *address)
        if not self._tips:  # different tips may have targets of different types
            self.rivals.note(public_name(name, self._compatibility), now)

    def _is_other_type(self, name: str) -> bool:
        """Return whether targets of a topic are not accepted; log a warning if so.

        Args:
            name: Name of the topic without `compatibility`.
        """
        accepted = self.command_type
        if not accepted or name not in COMMAND_TYPES.values() or name == COMMAND_TYPES[accepted]:
            return False
        topic = self._node.resolve_topic_name(public_name(name, self._compatibility))
        self._log.warn(
            f"type of {name}",
            f"ignored a target on {topic}: ~/switch_command_type has selected {accepted}; select "
            "the type of this topic first",
        )
        return True

    def _store_trajectory(
        self, data: bytes, sent: int = 0, *, topic: str, address: Address
    ) -> None:
        """Deserialize and store a trajectory; if it is too long, store an OversizedTrajectory.

        Args:
            data: Serialized ``geometry_msgs/PoseArray``.
            sent: Send time on the system clock of the publisher [ns]; 0 if unknown.
            topic: Name of the topic.
            address: Tip of the target, and link to which it is relative.
        """
        if len(data) > MAX_POSES * BYTES_PER_POSE + MAX_HEADER_BYTES:
            large = OversizedTrajectory(Header(), len(data) // BYTES_PER_POSE)
            self._keep(large, sent, address=address)
        else:
            name = self._node.resolve_topic_name(topic)
            message = read_bytes(self._node, data, PoseArray, name, self._log)
            if message is not None:
                self._keep(message, sent, address=address)
        self._receiver.wake()


class TwistSubscription:
    """Subscription to target twists, with or without a header; joystick nodes send no header.

    A process can subscribe to a topic with one type only. The subscription uses the type of the
    publishers; if the publishers have different types, it uses the type with a header.

    Args:
        node: Node of the subscription.
        log: Log of the node.
        frame: Frame of twists without a header; empty: the root link.
        store: Function that stores a ``TwistStamped`` and its send time [ns].
        receiver: Receiver of the messages.
        topic: Name of the topic.
    """

    def __init__(
        self,
        node: Node,
        log: Throttle,
        frame: str,
        store: Callable[..., None],
        receiver: MessageReceiver,
        topic: str = TWIST_TOPIC,
    ) -> None:
        self._node, self._log, self._frame, self._store = node, log, frame, store
        self._receiver = receiver
        self._name, self._topic = topic, node.resolve_topic_name(topic)
        self._kind: Any = TwistStamped
        self._subscription: Any = None
        self._subscribe()
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        """Change the type of the subscription if the publishers use the other type.

        The first check destroys the subscription, and the next check subscribes again.
        """
        sent = {info.topic_type for info in self._node.get_publishers_info_by_topic(self._topic)}
        kind = next((k for k in (TwistStamped, Twist) if type_name(k) in sent), self._kind)
        if self._subscription is None:
            self._kind = kind
            self._subscribe()
            frame = f", along the axes of {self._frame or 'the root'} (twist_frame)"
            words = (
                f"subscribed to {self._topic} as {type_name(kind)}{frame if kind is Twist else ''}"
            )
            self._log.info(words, words)
        elif kind is not self._kind:  # the next check subscribes with the other type
            self._receiver.destroy_subscription(self._subscription)
            self._subscription = None

    def _subscribe(self) -> None:
        store = self._store if self._kind is TwistStamped else self._store_unstamped
        self._subscription = subscribe_bounded(
            self._node,
            self._kind,
            self._name,
            store,
            STREAM_QOS,
            self._log,
            receiver=self._receiver,
        )

    def _store_unstamped(self, message: Any, sent: int = 0) -> None:
        stamped = TwistStamped(twist=message)
        stamped.header.frame_id = self._frame
        self._store(stamped, sent)


def _is_jog(message: Any) -> bool:
    """Return whether a message contains joint velocities or displacements."""
    return JointJog is not None and isinstance(message, JointJog)


def target_topics(tips: Sequence[str], compatibility: str = "") -> dict[str, Any]:
    """Return the message type of each topic of targets by its name.

    Args:
        tips: Names of the tips that follow targets, if there are several.
        compatibility: Value of the parameter `compatibility`, which selects the names of topics.

    Raises:
        OptionError: If two tips have the same topics.
    """
    of_tips = {public_name(name, compatibility): kind for name, kind in TARGET_TOPICS.items()}
    of_joints = {public_name(name, compatibility): kind for name, kind in JOINT_TOPICS.items()}
    if not tips:
        return of_tips | of_joints
    topics = {topic_of(name, tip): kind for tip in tips for name, kind in of_tips.items()}
    if len(topics) < len(tips) * len(of_tips):
        raise OptionError(
            f"the tips {listing(tips)} differ only in characters that are not valid in names of "
            "topics; rename a link, or give the group other tips"
        )
    return {**topics, **of_joints, RELATIVE_TOPIC: PoseStamped}


def topic_of(name: str, tip: str | None) -> str:
    """Return the topic of the targets of a tip, such as ``target_pose/left_tip``.

    Args:
        name: Topic of targets of a single tip.
        tip: Name of the tip, whose invalid characters are replaced by underscores; None: the only
            tip.
    """
    if tip is None:
        return name
    token = re.sub(r"[^A-Za-z0-9_]", "_", tip)
    return f"{name}/{'_' if token[:1].isdigit() else ''}{token}"


def apply_target(
    arm: Arm, arrival: Arrival, frames: Frames, joint_values: JointValues, now: float, age: float
) -> None:
    """Pass a target to the controller of an arm.

    Args:
        arm: Arm that follows the target.
        arrival: The target; its message may be an OversizedTrajectory.
        frames: Transforms of the frames of targets.
        joint_values: Joint positions of the robot by name, for frames that move with the robot.
        now: Current time on the steady clock [s].
        age: Age of the target [s], see :meth:`Arrival.age`.

    Raises:
        PoseError: If the target is not valid.
        JointValueError: If joint velocities or positions are not valid.
        StaleTargetError: If the stamp is too old, or in the future.
        HeldError: If the controller is paused or in a fault.
        FrameError: If the frame of the target is unknown.
        OptionError: If the tip of the target is free.
    """
    try:
        _follow(arm, arrival, frames, joint_values, now, age)
    except StaleTargetError as error:
        raise StaleTargetError(f"{error}: {stamp_advice(age)}") from error


def _follow(
    arm: Arm, arrival: Arrival, frames: Frames, joint_values: JointValues, now: float, age: float
) -> None:
    """Transform a target to the base frame of the chain, and pass it to the controller.

    The arguments are those of :func:`apply_target`.
    """
    tree, base, message, tip = arm.tree, arm.robot.base, arrival.message, arrival.tip

    def T_base_frame() -> Array:
        T_root_frame = frames.T_root_frame(message.header.frame_id, tree, joint_values)
        return base_from_root(T_root_frame, tree, base, joint_values)

    if arrival.reference is not None:
        frame = strip_slash(message.header.frame_id)
        if frame not in ("", arrival.reference):
            raise FrameError(
                f"poses on {RELATIVE_TOPIC} are in the frame of {arrival.reference!r}: leave "
                f"frame_id empty, or set it to this link; got {quoted(frame)}"
            )
        T = matrix_from_pose(message.pose)
        arm.controller.follow_pose(T, now, age, tip, arrival.reference)
    elif isinstance(message, POSE_TYPES):
        T_base_tip = frames.pose_in_base(message, tree, base, joint_values)
        arm.controller.follow_pose(T_base_tip, now, age, tip)
    elif isinstance(message, JOINT_MESSAGES):
        follow_joint_message(
            arm.controller, message, arm.parameters.command_scale().joint, now, age
        )
    elif isinstance(message, TwistStamped):
        v, w = message.twist.linear, message.twist.angular
        is_tip_frame = strip_slash(message.header.frame_id) == (tip or arm.robot.tip)
        R = None if is_tip_frame else T_base_frame()[:3, :3]
        scale = arm.parameters.command_scale()
        units = np.repeat([scale.linear, scale.rotational], 3)
        V = units * np.array([v.x, v.y, v.z, w.x, w.y, w.z])
        arm.controller.follow_twist(V, now, R, age, tip)
    else:
        _check_length(message)
        T = T_base_frame()
        Ts = np.array([T @ matrix_from_pose(pose) for pose in message.poses])
        arm.controller.follow_trajectory(Ts, arm.parameters.trajectory_period, now, age, tip)


def _check_length(message: PoseArray | OversizedTrajectory) -> None:
    if isinstance(message, OversizedTrajectory):
        raise PoseError(
            f"the trajectory has approximately {message.poses} poses, more than {MAX_POSES}: send "
            "fewer poses, with a longer trajectory_period"
        )
    if not message.poses:
        raise PoseError("the trajectory has no poses; send at least one")


def target_note(message: Any) -> str:
    """Return a remark on an accepted target, such as a quaternion that was normalised.

    The remark is empty if there is nothing to remark on.
    """
    if isinstance(message, POSE_TYPES):
        return quaternion_note([message.pose])
    return quaternion_note(message.poses) if isinstance(message, PoseArray) else ""
