# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reactions of the arm to faults: times until rest and until the next motion, and command steps.

A simulated arm without speed limit follows the trajectories of a node (100 Hz, 60 points,
8 rad/s^2). The target swings to and fro at 0.3 m/s; a client sends it at 50 Hz without a stop.

- reported: time until the status reports the fault.
- at rest: time until the joints of the arm are at rest, by their joint states, or by the commands
  if there are no joint states; includes 40 ms of observation.
- moves again: time between the end of the fault (the node is ready, continued or reset, or receives
  joint states) and the next motion.
- largest step: step between successive commands, or between the arm and the first command, relative
  to its bound: the velocity limit times the time between them plus one period for stamp jitter.
"""

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import ServoStatus
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from benchmarks.client import client_node
from benchmarks.common import Table, columns, finish, guarded, parser
from benchmarks.processes import Process, ros_node
from dls_ik import DlsIkError, RobotModel
from dls_ik.ros.client.ik_client import stamped_pose

RATE, ACCELERATION, POINTS = 100, 8.0, 60  # [Hz], [rad/s^2], of a trajectory
START = [0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0]  # [rad] joint positions of the WAM
SWING, PULSE = 0.12, 2.5  # [m], [rad/s] of the motion to and fro
PATIENCE = 60.0  # [s]
STILL = 1e-4  # [rad/s] speed by joint states below which the arm is at rest
COLUMNS = columns(
    "fault; times :d; reported [s]; at rest [s], median (largest); moves again [s], median "
    "(largest); largest step [rad] :.4f; its bound [rad] :.4f"
)


class Step(NamedTuple):
    """Step between commands of the joint that is closest to its bound."""

    size: float  # [rad]
    bound: float  # [rad]

    @property
    def ratio(self) -> float:
        """The size relative to the bound."""
        return self.size / self.bound


class Reaction(NamedTuple):
    """Reaction to one fault: times [s] and the largest step."""

    reported: float | None
    at_rest: float
    moves_again: float
    step: Step


class FaultRig:
    """Context with the node and the simulated arm as processes, and a client in this process."""

    def __init__(self, name: str, driver: str) -> None:
        self.robot = RobotModel.wam()
        self._name, self._T = name, self.robot.fk(np.array(START))
        self.command = ros_node(
            "dls_ik.ros.node",
            name,
            robot="wam",
            rate=RATE,
            acceleration=[ACCELERATION],
            feedback_mode=driver,
            measurement_timeout=0.2,
            output_type="joint_trajectory,joint_state",
            output_topic="joint_trajectory_controller/joint_trajectory,commands",
            trajectory_points=POINTS,
        )
        arm = {"robot": "wam", "limit_velocity": "false", "initial_positions": START}
        self._arm_command = ros_node("dls_ik.ros.sim_arm.node", name, **arm)
        self.states: list[tuple[float, Any, Any]] = []  # times [s], positions, velocities
        self.commands: list[tuple[float, Any, Any]] = []  # stamp [s], positions and velocities
        self.status = ""
        self.is_streaming = True

    def __enter__(self) -> "FaultRig":
        self._stack = ExitStack()
        self.arm = self._stack.enter_context(Process(self._arm_command))
        self.node = self._stack.enter_context(Process(self.command))
        self.arm.wait_ready()
        self.node.wait_ready()
        self._connect()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start_again(self) -> None:
        """Start a new node after the exit of the previous node."""
        self.node = self._stack.enter_context(Process(self.command))
        self.node.wait_ready()

    def until(self, is_so: Callable[[], bool], what: str) -> float:
        """Wait for a condition and return the waiting time [s].

        Raises:
            DlsIkError: If the condition does not hold within a minute.
        """
        begin = time.perf_counter()
        while not is_so():
            if time.perf_counter() - begin > PATIENCE:
                raise DlsIkError(f"{what}: not within {PATIENCE:g} s; status: {self.status}")
            self._executor.spin_once(timeout_sec=0.002)
        return time.perf_counter() - begin

    def spin(self, duration: float) -> None:
        """Spin for a time [s]."""
        end = time.perf_counter() + duration
        self.until(lambda: time.perf_counter() >= end, "a while")

    def is_moving(self) -> bool:
        """Return whether the arm moves."""
        return bool(self.states) and bool(np.abs(self.states[-1][2]).max() > 0.05)

    def is_at_rest(self) -> bool:
        """Return whether the arm was at rest in the last ten readings."""
        recent = np.array([v for _, _, v in self.states[-10:]])
        return len(recent) == 10 and bool(np.abs(recent).max() < STILL)

    def call(self, kind: Any, name: str, **given: Any) -> None:
        """Call a service, and wait for its answer."""
        client = self._node.create_client(kind, name)
        self.until(client.service_is_ready, name)
        future = client.call_async(kind.Request(**given))
        self.until(future.done, name)

    def clear(self) -> None:
        """Delete the recorded states and commands."""
        self.states.clear()
        self.commands.clear()

    def worst_step(self, q: Any = None) -> Step:
        """Return the largest step between commands, and from the arm at `q` (n,) to the first."""
        pairs = pairwise(self.commands)
        steps = [self._step(q0, q1, t1 - t0) for (t0, q0, _), (t1, q1, _) in pairs]
        if q is not None:
            steps.append(self._step(q, self.commands[0][1], 1.0 / RATE))
        return largest([Step(0.0, 1.0), *steps])

    def _step(self, q0: Any, q1: Any, elapsed: float) -> Step:
        sizes, bounds = np.abs(q1 - q0), self.robot.velocity * (elapsed + 1.0 / RATE)
        j = int(np.argmax(sizes / bounds))
        return Step(float(sizes[j]), float(bounds[j]))

    def _connect(self) -> None:
        node, self._executor = self._stack.enter_context(client_node(namespace=self._name))
        self._node = node
        self._targets = node.create_publisher(PoseStamped, "target_pose", 1)
        quick = qos_profile_sensor_data
        node.create_subscription(JointState, "joint_states", self._hear_state, quick)
        node.create_subscription(JointState, "commands", self._hear_command, 100)
        node.create_subscription(ServoStatus, "dls_ik/status", self._hear_status, 10)
        node.create_timer(0.02, self._publish)

    def _publish(self) -> None:
        if self.is_streaming:
            T = self._T.copy()
            T[1, 3] += SWING * np.sin(PULSE * time.monotonic())
            message = stamped_pose(T, "")
            message.header.stamp = self._node.get_clock().now().to_msg()
            self._targets.publish(message)

    def _hear_state(self, message: Any) -> None:
        read = np.array(message.position), np.array(message.velocity)
        self.states.append((time.perf_counter(), *read))

    def _hear_command(self, message: Any) -> None:
        stamp = message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
        self.commands.append((stamp, np.array(message.position), np.array(message.velocity)))

    def _hear_status(self, message: Any) -> None:
        self.status = message.message


def largest(steps: Sequence[Step]) -> Step:
    """Return the step that is largest relative to its bound."""
    return max(steps, key=lambda step: step.ratio)


def stream_ceases(rig: FaultRig) -> Reaction:
    """Measure a stream of targets that stops."""
    rig.is_streaming = False
    ends = ("no target received", "the stream has ended", "at the target")
    reported = rig.until(lambda: any(words in rig.status for words in ends), "status")
    at_rest = reported + rig.until(rig.is_at_rest, "standstill")
    rig.is_streaming = True
    return Reaction(reported, at_rest, rig.until(rig.is_moving, "motion"), rig.worst_step())


def node_killed(rig: FaultRig) -> Reaction:
    """Measure SIGKILL of the node, followed by a new node."""
    rig.node.signal(signal.SIGKILL)
    return resumed(rig, rig.until(rig.is_at_rest, "standstill"), rig.start_again)


def node_stopped(rig: FaultRig) -> Reaction:
    """Measure SIGSTOP of the node for two seconds."""
    rig.node.sleep()
    at_rest = rig.until(rig.is_at_rest, "standstill")
    rig.spin(2.0 - at_rest)
    return resumed(rig, at_rest, rig.node.wake)


def node_ended(rig: FaultRig) -> Reaction:
    """Measure SIGINT of the node in motion, followed by a new node."""
    rig.node.signal(signal.SIGINT)
    at_rest = rig.until(rig.is_at_rest, "standstill")
    rig.until(lambda: not rig.node.is_running, "the end of the node")
    return resumed(rig, at_rest, rig.start_again)


def resumed(rig: FaultRig, at_rest: float, resume: Callable[[], None]) -> Reaction:
    """Clear the fault of a node whose arm is at rest, and return the reaction."""
    q, before = rig.states[-1][1], rig.worst_step()
    rig.commands.clear()
    resume()
    moves_again = rig.until(rig.is_moving, "motion")
    rig.until(lambda: bool(rig.commands), "commands")
    return Reaction(None, at_rest, moves_again, largest([before, rig.worst_step(q)]))


def driver_silent(rig: FaultRig) -> Reaction:
    """Measure joint states that stop and resume; a required driver then needs a reset."""
    rig.call(SetBool, "sim_arm/silence", data=True)
    reported = rig.until(lambda: "joint states" in rig.status, "status")
    at_rest = reported + rig.until(lambda: not rig.commands[-1][2].any(), "standstill")
    rig.spin(0.5)
    before = rig.worst_step()
    rig.clear()
    rig.call(SetBool, "sim_arm/silence", data=False)
    if "fault" in rig.status:
        rig.until(lambda: len(rig.states) > 10, "joint states")
        rig.call(Trigger, "dls_ik/reset")
    moves_again = rig.until(rig.is_moving, "motion")
    return Reaction(reported, at_rest, moves_again, largest([before, rig.worst_step()]))


FAULTS: dict[str, tuple[str, Callable[[FaultRig], Reaction]]] = {
    "the stream of targets ceases": ("auto", stream_ceases),
    "node killed": ("auto", node_killed),
    "node stopped for 2 s": ("auto", node_stopped),
    "node ended by SIGINT": ("auto", node_ended),
    "driver silent, feedback_mode: auto": ("auto", driver_silent),
    "driver silent, feedback_mode: required": ("required", driver_silent),
}


def measured(repeats: int) -> list[Sequence[Any]]:
    """Return the rows of all faults."""
    found: dict[str, list[Reaction]] = {name: [] for name in FAULTS}
    for driver in ("auto", "required"):
        with FaultRig(f"faults_{driver}", driver) as rig:
            for name, (wanted, act) in FAULTS.items():
                for _ in range(repeats if wanted == driver else 0):
                    rig.until(rig.is_moving, "motion")
                    rig.spin(1.0)
                    rig.clear()
                    rig.spin(0.3)
                    rig.until(rig.is_moving, "motion")
                    found[name].append(act(rig))
    return [row(name, reactions) for name, reactions in found.items()]


def row(name: str, reactions: list[Reaction]) -> list[Any]:
    """Return medians and largest times, and the largest step."""
    reported, at_rest, moves_again, steps = zip(*reactions, strict=True)
    words = None if None in reported else f"{np.median(reported):.2f}"
    spans = (f"{np.median(times):.2f} ({max(times):.2f})" for times in (at_rest, moves_again))
    return [name, len(reactions), words, *spans, *largest(steps)]


def main() -> None:
    """Measure all faults, and print the table."""
    given = parser(__doc__, repeats=5).parse_args()
    finish(given, [Table("Faults", COLUMNS, measured(given.repeats))])


if __name__ == "__main__":
    guarded(main)
