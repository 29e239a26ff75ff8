# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Watched node: its commands and statuses, and checks that the commands are calm."""

import time

import numpy as np
import pytest
from commands import Limits, assert_steps, assert_told
from geometry_msgs.msg import PoseArray, PoseStamped, TwistStamped
from moveit_msgs import msg as moveit
from ros_client import SEND_AGAIN, SOON, Client, NodeProcess
from ros_streamer import ALONE, HOME, motion, positions
from ros_wam import WAM
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from dls_ik.ros.frames import pose_from_matrix
from dls_ik.servo.targets import MIN_STREAM_POSES

if not hasattr(moveit, "ServoStatus"):
    pytest.skip("this moveit_msgs has no ServoStatus", allow_module_level=True)

ACCELERATION = 8.0  # [rad/s^2] acceleration limit of every joint
JITTER = 0.01  # [s] error of a stamp if the loop is preempted between its clocks
LEAST = 3 * MIN_STREAM_POSES  # messages of a stream, of which a busy node may miss some
KINDS = {"target_pose": PoseStamped, "target_twist": TwistStamped, "target_trajectory": PoseArray}


def has_ended(message):
    """Return whether a status reports the end of a stream."""
    return "no target received" in message or "the stream has ended" in message


def arguments(namespace, **parameters):
    """Return the command line of a node with the acceleration limits of this file."""
    given = {"robot": "wam", "acceleration": [ACCELERATION], **parameters}
    words = ["-r", f"__ns:=/{namespace}"]
    for name, value in given.items():
        words += ["-p", f"{name}:={value}"]
    return words


class Watched:
    """Node and its client in a namespace."""

    process = NodeProcess
    topic = "joint_states"  # topic of the commands

    def __init__(self, namespace, **parameters):
        initial = {"initial_positions": HOME.tolist(), **parameters}
        self.node = self.process(*arguments(namespace, **initial))
        self.client = Client(namespace)
        self.heard = self.client.listen(JointState, self.topic, 1000)
        self.statuses = self.client.listen(moveit.ServoStatus, "dls_ik/status", 1000)
        self._publishers = {}
        self._sent = self._arrived = -np.inf  # monotonic times [s]

    def __enter__(self):
        self.node.wait_for_line("ready")
        for topic, kind in KINDS.items():
            self._publishers[topic] = self.client.publisher(kind, topic, 1)
        self.client.spin_until(lambda: self.statuses, what="a status")
        return self

    def __exit__(self, *_):
        self.client.__exit__()
        self.node.__exit__()

    @property
    def commands(self):
        return [message for message in self.heard if message.header.frame_id != "driver"]

    @property
    def q(self):
        return positions(self.commands[-1])

    def send(self, message):
        topic = next(t for t, kind in KINDS.items() if isinstance(message, kind))
        self._publishers[topic].publish(message)
        self._sent = time.monotonic()

    def send_alone(self, message):
        """Send a message that is not the next of a stream, of an arm whose driver says where it is.

        A driver in this process lags by the messages that this process has not received yet.
        """
        since = max(self._sent, self._arrived)
        self.client.spin_for(max(0.0, since + ALONE - time.monotonic()))
        self.send(message)

    def stamp(self, ahead=0.0):
        """Return the current time plus an offset [s] for the header of a message."""
        at = self.client.node.get_clock().now().nanoseconds + round(ahead * 1e9)
        return divmod(at, 10**9)

    def stream(self, message_at, duration, period=0.02):
        """Send a message each period, made from the time since the begin [s]."""
        for k in range(round(duration / period)):
            self.send(message_at(k * period))
            self.client.spin_for(period)

    def stream_until(self, message_at, condition, period=0.02):
        """Stream until a condition holds, and at least long enough for a stream."""
        begin, sent = time.monotonic(), 0
        while sent < LEAST or not condition():
            t = time.monotonic() - begin
            assert t < SOON, f"streamed for {SOON} s"
            self.send(message_at(t))
            sent += 1
            self.client.spin_for(period)

    def ceases(self, stream):
        """Send a whole stream; repeat it if a gap made its last poses single poses."""
        for _ in range(10):
            stream()
            del self.statuses[:]
            begin = time.monotonic()

            def ended(since=begin):
                last = self.statuses[-1].message if self.statuses else ""
                is_goal = "at the target" in last and time.monotonic() - since > 3.0
                return has_ended(last) or is_goal

            self.client.spin_until(ended, what="the end of the stream")
            if has_ended(self.statuses[-1].message):
                return
        raise AssertionError("the stream never ended")

    def says_that_the_stream_ended(self):
        """Wait for a new status that reports the end of the stream."""
        del self.statuses[:]
        self.client.spin_until(
            lambda: any(has_ended(status.message) for status in self.statuses),
            what="the end of the stream",
        )

    def says(self, *words, within=SOON):
        """Wait for a new status that contains all words."""
        del self.statuses[:]
        self.client.spin_until(
            lambda: any(all(w in s.message for w in words) for s in self.statuses),
            within,
            f"a status with {words}",
        )

    def answers(self, send, *words):
        """Send a message, wait for a status with all words; send again only if a status asks."""

        def send_anew():
            del self.statuses[:]
            send()

        def is_answered():
            heard = [s.message for s in self.statuses if SEND_AGAIN not in s.message]
            return any(all(word in message for word in words) for message in heard)

        self.client.send_until(send_anew, is_answered, f"a status with {words}")

    def goes(self, T, tolerance=1e-4):
        """Send a single pose, and wait until the arm reaches it."""
        self.client.send_until(
            lambda: self.send_alone(pose(T)),
            lambda: self.error(T) < tolerance,
            "the arm at its target",
        )
        self._arrived = time.monotonic()

    def arrives(self, T, tolerance=1e-4):
        self.client.spin_until(lambda: self.error(T) < tolerance, what="the arm at its target")
        self._arrived = time.monotonic()

    def goes_by_stamp(self, T, stamp):
        """Send a stamped pose until the arm reaches it; repeated, as a message may be late."""
        sent = -np.inf

        def is_there():
            nonlocal sent
            if time.monotonic() - sent > 3.0:
                self.send(pose(T, stamp=stamp()))
                sent = time.monotonic()
            return self.error(T) < 1e-4

        self.client.spin_until(is_there, what="the arm at its target")
        self._arrived = time.monotonic()

    def stands(self):
        """Wait until the command is at rest."""
        self.client.spin_until(
            lambda: len(c := self.commands) > 3 and not any(np.any(m.velocity) for m in c[-3:]),
            what="the arm at rest",
        )

    def error(self, T):
        return np.abs(WAM.fk(self.q) - T).max() if self.commands else np.inf

    def moves(self, speed=0.3):
        """Wait until a joint reaches a speed [rad/s]."""
        self.client.spin_until(lambda: self.is_moving(speed), what="motion")

    def is_moving(self, speed=0.3):
        """Return whether a joint reaches a speed [rad/s]."""
        return bool(self.commands) and max(np.abs(self.commands[-1].velocity)) > speed

    def pause(self, data=True):
        return self.client.call(SetBool, "dls_ik/pause", SetBool.Request(data=data))

    def reset(self):
        return self.client.call(Trigger, "dls_ik/reset", Trigger.Request())

    def assert_calm(self, acceleration=ACCELERATION, start=None):
        """Check that all commands so far keep all limits and have no jumps.

        Args:
            start: (n,) where the first one begins, if that is known.
        """
        self.client.spin_until(lambda: len(self.commands) > 3, what="commands")
        t, q, v = motion(self.commands)
        assert_told(t, q, v, Limits.of(WAM, acceleration), JITTER)
        elapsed = np.diff(t)[:, None] + JITTER
        assert_steps(np.diff(q, axis=0), WAM.velocity * elapsed + 1e-9, elapsed, "jump")
        if start is not None:
            assert (np.abs(q[0] - start) <= WAM.velocity * 0.1).all()

    def assert_alive(self):
        """Check that the process is alive and follows a valid target without a jump."""
        assert self.node.process.poll() is None, self.node.output
        self.goes(WAM.fk(HOME))
        self.assert_calm()
        assert "Traceback" not in self.node.output, self.node.output
        del self.heard[:]


def pose(T, frame="", stamp=(0, 0)):
    message = PoseStamped(pose=pose_from_matrix(T))
    return headed(message, frame, stamp)


def twist(linear=(0.0, 0.0, 0.0), angular=(0.0, 0.0, 0.0), frame="", stamp=(0, 0)):
    message = TwistStamped()
    v, w = message.twist.linear, message.twist.angular
    (v.x, v.y, v.z), (w.x, w.y, w.z) = linear, angular
    return headed(message, frame, stamp)


def trajectory(Ts, frame="", stamp=(0, 0)):
    return headed(PoseArray(poses=[pose_from_matrix(T) for T in Ts]), frame, stamp)


def headed(message, frame="", stamp=(0, 0)):
    message.header.frame_id = frame
    message.header.stamp.sec, message.header.stamp.nanosec = stamp
    return message


def shifted(x=0.0, y=0.0, z=0.0):
    """Return the tip pose at HOME, moved [m] in the base frame."""
    T = WAM.fk(HOME).copy()
    T[:3, 3] += x, y, z
    return T
