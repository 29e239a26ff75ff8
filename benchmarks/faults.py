"""Reactions of the arm to faults: times until it stands and moves again, and jumps.

A simulated arm without a bound on its speed follows the trajectories of a node (100 Hz, 60 points,
8 rad/s^2), whose target swings to and fro at 0.3 m/s, sent at 50 Hz by a client that never stops.

told: until the status says so. stands: until the joints of the arm are at rest, by its own joint
states, or the commands where it tells none; with 40 ms to be sure. resumed: from the end of the
fault (the node is ready, is continued, is reset, hears the driver) until the arm moves. jump: the
largest step from one command to the next, or from the arm to the first command, relative to its
bound; the bound is the velocity limit times the time between them, and one period more for the
jitter of the stamps.
"""

import signal
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np
import rclpy
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import ServoStatus
from rclpy.executors import SingleThreadedExecutor
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from benchmarks.common import Table, columns, finish, guarded, parser
from benchmarks.processes import Process, ros_node
from dls_ik import DlsIkError, RobotModel
from dls_ik.ros.client.ik_client import stamped_pose
from dls_ik.ros.util import stay_alone

RATE, ACCELERATION, POINTS = 100, 8.0, 60  # [Hz], [rad/s^2], of a trajectory
START = [0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0]  # [rad] of the WAM
SWING, PULSE = 0.12, 2.5  # [m], [rad/s] of the motion to and fro
PATIENCE = 60.0  # [s]
STILL = 1e-4  # [rad/s] from joint states
Row = tuple[float | None, float | None, float | None, float, float]
COLUMNS = columns(
    "fault; times :d; told [s], median; stands [s], median (largest); resumed [s], median "
    "(largest); largest jump [rad] :.4f; its bound [rad] :.4f"
)


class FaultRig:
    """The processes, and a client in this one; a context."""

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
        self.states: list[tuple[float, Any, Any]] = []  # when [s], positions, velocities
        self.commands: list[tuple[float, Any, Any]] = []  # by their stamps [s]
        self.words = ""
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
        """Start another node, after the one before ended."""
        self.node = self._stack.enter_context(Process(self.command))
        self.node.wait_ready()

    def until(self, is_so: Callable[[], bool], what: str) -> float:
        """Wait, and return how long [s]; raise a DlsIkError after a minute."""
        begin = time.perf_counter()
        while not is_so():
            if time.perf_counter() - begin > PATIENCE:
                raise DlsIkError(f"{what}: not within {PATIENCE:g} s; status: {self.words}")
            self._executor.spin_once(timeout_sec=0.002)
        return time.perf_counter() - begin

    def spin(self, duration: float) -> None:
        """Spin for a time [s]."""
        end = time.perf_counter() + duration
        self.until(lambda: time.perf_counter() >= end, "a while")

    def moves(self) -> bool:
        """Test if the arm moves."""
        return bool(self.states) and bool(np.abs(self.states[-1][2]).max() > 0.05)

    def stands(self) -> bool:
        """Test if the arm has been at rest for ten readings."""
        recent = np.array([v for _, _, v in self.states[-10:]])
        return len(recent) == 10 and bool(np.abs(recent).max() < STILL)

    def trigger(self, name: str) -> None:
        """Call a service without arguments."""
        self._call(Trigger, name, Trigger.Request())

    def silence(self, data: bool) -> None:
        """Stop or resume the joint states of the arm."""
        self._call(SetBool, "sim_arm/silence", SetBool.Request(data=data))

    def clear(self) -> None:
        """Delete the recorded states and commands."""
        self.states.clear()
        self.commands.clear()

    def _call(self, kind: Any, name: str, request: Any) -> None:
        client = self._node.create_client(kind, name)
        self.until(client.service_is_ready, name)
        future = client.call_async(request)
        self.until(future.done, name)

    def _connect(self) -> None:
        context = rclpy.Context()
        rclpy.init(args=[], context=context)
        self._stack.callback(context.try_shutdown)
        node = rclpy.create_node("benchmark", context=context, namespace=f"/{self._name}")
        self._node, self._executor = node, SingleThreadedExecutor(context=context)
        self._executor.add_node(node)
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
        self.words = message.message


def stream_ceases(rig: FaultRig) -> Row:
    """No more targets come."""
    rig.is_streaming = False
    told = rig.until(lambda: "ceased" in rig.words or "at the target" in rig.words, "told")
    stood = told + rig.until(rig.stands, "standstill")
    rig.is_streaming = True
    return (told, stood, rig.until(rig.moves, "motion"), *worst(rig))


def node_killed(rig: FaultRig) -> Row:
    """SIGKILL; another node is started."""
    rig.node.signal(signal.SIGKILL)
    stood = rig.until(rig.stands, "standstill")
    before = worst(rig)
    q = rig.states[-1][1]
    rig.commands.clear()
    rig.start_again()
    resumed = rig.until(rig.moves, "motion")
    return (None, stood, resumed, *worse(before, worse(first(rig, q), worst(rig))))


def node_stopped(rig: FaultRig) -> Row:
    """SIGSTOP for two seconds."""
    rig.node.sleep()
    stood = rig.until(rig.stands, "standstill")
    rig.spin(2.0 - stood)
    q, before = rig.states[-1][1], worst(rig)
    rig.commands.clear()
    rig.node.wake()
    resumed = rig.until(rig.moves, "motion")
    return (None, stood, resumed, *worse(before, worse(first(rig, q), worst(rig))))


def driver_silent(rig: FaultRig) -> Row:
    """Joint states cease, and come again; a required driver needs a reset then."""
    rig.silence(True)
    told = rig.until(lambda: "joint states" in rig.words, "told")
    stood = told + rig.until(lambda: not rig.commands[-1][2].any(), "standstill")
    rig.spin(0.5)
    before = worst(rig)
    rig.clear()
    rig.silence(False)
    if "fault" in rig.words:
        rig.until(lambda: len(rig.states) > 10, "joint states")
        rig.trigger("dls_ik/reset")
    return (told, stood, rig.until(rig.moves, "motion"), *worse(before, worst(rig)))


def node_ended(rig: FaultRig) -> Row:
    """SIGINT in motion; another node is started."""
    rig.node.signal(signal.SIGINT)
    stood = rig.until(rig.stands, "standstill")
    rig.until(lambda: rig.node.process.poll() is not None, "the end of the node")
    q, before = rig.states[-1][1], worst(rig)
    rig.commands.clear()
    rig.start_again()
    return (None, stood, rig.until(rig.moves, "motion"), *worse(before, first(rig, q)))


FAULTS: dict[str, tuple[str, Callable[[FaultRig], Row]]] = {
    "the stream of targets ceases": ("auto", stream_ceases),
    "node killed": ("auto", node_killed),
    "node stopped for 2 s": ("auto", node_stopped),
    "node ended by SIGINT": ("auto", node_ended),
    "driver silent, feedback_mode: auto": ("auto", driver_silent),
    "driver silent, feedback_mode: required": ("required", driver_silent),
}


def worst(rig: FaultRig) -> tuple[float, float]:
    """Return the largest step between commands relative to its bound, and the bound [rad]."""
    steps = zip(rig.commands, rig.commands[1:], strict=False)
    found = (0.0, 1.0)
    for (t0, q0, _), (t1, q1, _) in steps:
        found = worse(found, step(rig, q0, q1, t1 - t0))
    return found


def first(rig: FaultRig, q: Any) -> tuple[float, float]:
    """Return the step of the first command from the arm (n,), and the bound [rad]."""
    rig.until(lambda: bool(rig.commands), "commands")
    return step(rig, q, rig.commands[0][1], 1.0 / RATE)


def step(rig: FaultRig, q0: Any, q1: Any, elapsed: float) -> tuple[float, float]:
    """Return the step and the bound of the joint with the largest ratio of both."""
    moved = np.abs(q1 - q0)
    bound = rig.robot.velocity * (elapsed + 1.0 / RATE)
    j = int(np.argmax(moved / bound))
    return float(moved[j]), float(bound[j])


def worse(a: tuple[float, float], b: tuple[float, float]) -> tuple[float, float]:
    """Return the one that is larger relative to its bound."""
    return max(a, b, key=lambda pair: pair[0] / pair[1])


def measured(repeats: int) -> list[Sequence[Any]]:
    """Return the rows of all faults."""
    found: dict[str, list[Row]] = {name: [] for name in FAULTS}
    for driver in ("auto", "required"):
        with FaultRig(f"faults_{driver}", driver) as rig:
            for name, (wanted, act) in FAULTS.items():
                for _ in range(repeats if wanted == driver else 0):
                    rig.until(rig.moves, "motion")
                    rig.spin(1.0)
                    rig.clear()
                    rig.spin(0.3)
                    rig.until(rig.moves, "motion")
                    found[name].append(act(rig))
    return [[name, len(rows), *summary(rows)] for name, rows in found.items()]


def summary(rows: list[Row]) -> list[Any]:
    """Return medians and largest times, and the worst jump."""
    told = [row[0] for row in rows if row[0] is not None]
    stood = [row[1] for row in rows if row[1] is not None]
    resumed = [row[2] for row in rows if row[2] is not None]
    jumps = [(row[3], row[4]) for row in rows]
    jump = max(jumps, key=lambda pair: pair[0] / pair[1])
    return [f"{np.median(told):.2f}" if told else None, span(stood), span(resumed), *jump]


def span(times: list[Any]) -> str:
    """Format the median and the largest."""
    return f"{np.median(times):.2f} ({max(times):.2f})"


def main() -> None:
    """Measure and show."""
    given = parser(__doc__, repeats=5).parse_args()
    stay_alone()
    rows = measured(given.repeats)
    finish(given, [Table("Faults", COLUMNS, rows)])


if __name__ == "__main__":
    guarded(main)
