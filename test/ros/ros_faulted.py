# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Node with a simulated arm and a streaming client, and checks of the arm under faults."""

import time
from collections import deque

import numpy as np
from commands import Limits, assert_told, tail_violations
from geometry_msgs.msg import PoseStamped
from rcl_interfaces.srv import SetParametersAtomically
from rclpy.parameter import Parameter
from rclpy.qos import qos_profile_sensor_data
from ros_client import READY, Client, NodeProcess, SimArmProcess
from ros_streamer import HOME, TARGET_TIMEOUT, motion, points, positions
from ros_wam import WAM
from ros_watched import ACCELERATION, JITTER, arguments, moveit, pose, shifted
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

RATE = 50.0  # [Hz] rate of loop and joint states, possible on a busy machine
PERIOD = 1.0 / RATE
OTHER = "other"  # frame of joint states that are not of the arm
PATIENCE = 120.0  # [s] timeout on a busy machine
FIRST = 2.0 * PERIOD * WAM.velocity + 1e-6  # (n,) [rad] permitted offset of the first command
CONTROLLER = {
    "rate": RATE,
    "output_type": "joint_trajectory,joint_state",
    "output_topic": "joint_trajectory_controller/joint_trajectory,commands",
}


def sweep(t):
    """Return a pose that moves to and fro along y."""
    return shifted(0.0, 0.12 * np.sin(2.5 * t), 0.0)


class Rig:
    """Simulated arm that shows jumps, node, and client whose stream survives both.

    The commands are those of the trajectories, with stamps.
    """

    def __init__(self, namespace, **parameters):
        self.namespace = namespace
        initial = ["-p", f"initial_positions:={HOME.tolist()}", "-p", "limit_velocity:=false"]
        initial += ["-p", f"rate:={RATE}"]
        self.arm = SimArmProcess("-r", f"__ns:=/{namespace}", "-p", "robot:=wam", *initial)
        self.node = NodeProcess(*arguments(namespace, **{**CONTROLLER, **parameters}))
        self.limits = Limits.of(WAM, ACCELERATION, parameters.get("jerk", [np.inf])[0])
        self.client = Client(namespace)
        self.states = []
        quick = qos_profile_sensor_data
        self.client.node.create_subscription(JointState, "joint_states", self._hear, quick)
        self.commands = self.client.listen(JointState, "commands", 1000)
        self.trajectories = self.client.listen(
            JointTrajectory, "joint_trajectory_controller/joint_trajectory", 1000
        )
        self.statuses = self.client.listen(moveit.ServoStatus, "dls_ik/status", 100)
        self.targets = self.client.node.create_publisher(PoseStamped, "target_pose", 1)
        self.pose_at, self.is_stamped, self._begin = None, False, time.monotonic()
        self._sent = deque([-np.inf], 5)  # [s] time of the last targets
        self.client.node.create_timer(2.0 * PERIOD, self.publish)

    def __enter__(self):
        self.arm.wait_for_line("ready")
        self.node.wait_for_line("ready")
        self.client.spin_until(lambda: self.states and self.statuses, what="arm and node")
        return self

    def __exit__(self, *_):
        for each in (self.client, self.node, self.arm):
            each.__exit__()

    def start_again(self, **parameters):
        """Start another node and wait for its commands, while the client continues."""
        self.node.__exit__()
        del self.commands[:]
        self.node = NodeProcess(*arguments(self.namespace, **{**CONTROLLER, **parameters}))
        self.client.spin_until(lambda: self.commands, READY, "commands of the new node")

    def stream(self, pose_at=sweep, is_stamped=False):
        """Send targets from now on, whenever the client spins."""
        self.pose_at, self.is_stamped = pose_at, is_stamped

    def quiet(self):
        """Stop sending targets."""
        self.pose_at = None

    def _hear(self, message):
        if message.header.frame_id != OTHER:
            self.states.append(message)

    def goes(self, T):
        """Send a single pose repeatedly until the arm reaches it."""
        sent = -np.inf

        def is_there():
            nonlocal sent
            there = np.abs(WAM.fk(self.q) - T).max() < 1e-4
            if not there and time.monotonic() - sent > 3.0:
                self.targets.publish(pose(T))
                sent = time.monotonic()
            return there

        self.until(is_there, "the arm at its target")

    def publish(self):
        """Send the next target of the stream."""
        if self.pose_at is not None:
            now = self.client.node.get_clock().now().nanoseconds
            stamp = divmod(now, 10**9) if self.is_stamped else (0, 0)
            self.targets.publish(pose(self.pose_at(time.monotonic() - self._begin), stamp=stamp))
            self._sent.append(time.monotonic())

    def streams(self):
        """Wait until the targets form a stream, as a late target counts as a single one."""
        self.until(
            lambda: np.diff([*self._sent, time.monotonic()]).max() < 0.5 * TARGET_TIMEOUT,
            "targets without a gap",
        )

    @property
    def q(self):
        """Joint positions of the arm (n,) [rad]."""
        return positions(self.states[-1])

    def until(self, condition, what):
        """Spin until a condition holds, or fail with the status of the node."""
        try:
            self.client.spin_until(condition, PATIENCE, what)
        except AssertionError as error:
            words = self.statuses[-1].message if self.statuses else "nothing"
            raise AssertionError(f"{error}; status: {words}\n{self.node.output}") from None

    def follows(self):
        """Wait until the arm follows the stream from now on."""
        del self.states[:], self.commands[:]
        self.until(
            lambda: self._is_swept(self.states) and self._is_swept(self.commands),
            "the arm going to and fro",
        )

    def _is_swept(self, messages):
        """Return whether the tip moved along a part of the sweep."""
        tips = WAM.fk(np.array([positions(m) for m in messages[::2]] or [HOME]))[:, 1, 3]
        return np.ptp(tips) > 0.08 and np.abs(tips - WAM.fk(HOME)[1, 3]).min() < 0.03

    def rests(self):
        """Wait until the arm is at rest, and return its joint positions (n,)."""

        def is_still():
            recent = np.array([positions(s) for s in self.states[-15:]])
            return len(recent) == 15 and not np.ptp(recent, axis=0).any()

        del self.states[:]
        self.until(is_still, "the arm at rest")
        return self.q

    def falls_silent(self):
        """Wait until the commands stop."""

        def is_silent():
            count = len(self.commands)
            self.client.spin_for(0.5)
            return len(self.commands) == count

        self.until(is_silent, "no commands")

    def says(self, *words):
        """Wait for a new status that contains all words."""
        del self.statuses[:]
        self.until(
            lambda: any(all(w in s.message for w in words) for s in self.statuses),
            f"a status with {words}",
        )

    def says_lastingly(self, *either):
        """Wait until all statuses of half a second contain one of the words; return the word."""
        del self.statuses[:]
        enough = int(0.5 * RATE)

        def lasting():
            last = [s.message for s in self.statuses[-enough:]]
            return [w for w in either if [w in m for m in last] == [True] * enough]

        self.until(lasting, either)
        return lasting()[0]

    def trigger(self, name):
        assert self.client.call(Trigger, name, Trigger.Request()).success

    def silence(self, data=True):
        """Stop the joint states of the arm."""
        assert self.client.call(SetBool, "sim_arm/silence", SetBool.Request(data=data)).success

    def set_arm(self, **values):
        """Set parameters of the simulated arm."""
        parameters = [Parameter(name, value=v).to_parameter_msg() for name, v in values.items()]
        request = SetParametersAtomically.Request(parameters=parameters)
        name = "sim_arm/set_parameters_atomically"
        answer = self.client.call(SetParametersAtomically, name, request).result
        assert answer.successful, answer.reason

    def arm_restarts_at(self, q):
        """Move the arm elsewhere at once, and publish its joint states."""
        self.set_arm(initial_positions=np.asarray(q, float).tolist())
        self.trigger("sim_arm/reset")
        self.until(lambda: np.array_equal(self.q, q), "the arm elsewhere")

    def assert_begins_at(self, q):
        """Check that the first command since the last clear is at the arm's positions (n,)."""
        self.until(lambda: len(self.commands) > 3, "commands")
        first = positions(self.commands[0])
        assert (np.abs(first - q) <= FIRST).all(), f"begins {np.abs(first - q).max():.3f} rad off"
        self.assert_calm()

    def assert_calm(self):
        """Check that all commands since the last clear keep the limits and are continuous."""
        t, q, v = self.assert_limits()
        elapsed = np.diff(t)[:, None] + JITTER
        jumps = (np.abs(np.diff(q, axis=0)) / elapsed).max(axis=1)
        told = np.array([positions(s) for s in self.states])
        for k in np.flatnonzero(jumps > WAM.velocity.max() + 1e-6):
            near = np.abs(told - q[k + 1]).max(axis=1).min(initial=np.inf)
            words = f"{jumps[k]:.3f} rad/s from command to command, {near:.3f} rad from the arm"
            assert not v[k].any(), words
            assert near <= FIRST.max(), words  # it begins where the arm is

    def assert_limits(self):
        """All commands since they were cleared keep the limits, and so do the stops behind them.

        Returns:
            When (m,) [s], where and how fast (m, n) they are.
        """
        t, q, v = motion(self.commands)
        assert_told(t, q, v, self.limits, JITTER)
        for trajectory in self.trajectories:
            if len(trajectory.points) > 1:
                times, *rows = points(trajectory)
                found = tail_violations(([], rows[0][:0]), (times, *rows), self.limits)
                assert not found, found
        del self.trajectories[:]
        return t, q, v

    def assert_alive(self):
        for each in (self.node, self.arm):
            assert each.process.poll() is None, each.output
            assert "Traceback" not in each.output, each.output
