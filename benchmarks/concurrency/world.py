"""The node, the state known of it, and the loop in which all tasks run.

A task is a generator that yields what it waits for: a number of seconds, a call of a service, whose
answer it gets, or a condition.
"""

import signal
import time
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path
from typing import Any

import rclpy
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.context import Context
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.signals import SignalHandlerOptions
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

from benchmarks.concurrency.checks import ACCELERATION, Commands, History, Ledger
from benchmarks.processes import Process, ros_node
from benchmarks.stream_client import Inbox
from dls_ik.ros.client.ik_client import DEPTH

# Tasks

PATIENCE = 60.0  # [s] after which what is waited for counts as never to come


class HangError(Exception):
    """Something that must come did not."""


class Call:
    """A request on its way to the node.

    Args:
        what: it is, for people.
        future: of rclpy.
    """

    def __init__(self, what: str, future: Any) -> None:
        self.what, self.future = what, future
        self.sent = time.time()  # on the clock of stamps [s]

    def __call__(self) -> bool:
        """Test if it is answered."""
        return bool(self.future.done())


Awaited = float | Call | Callable[[], bool]
Steps = Generator[Awaited, Any, None]


class Task:
    """A generator on its way."""

    def __init__(self, name: str, steps: Steps) -> None:
        self.name = name
        self._steps = steps
        self._since = time.monotonic()
        self._awaited: Awaited = 0.0

    @property
    def awaits_answer(self) -> bool:
        """True while a call of it is under way."""
        return isinstance(self._awaited, Call)

    def step(self, finishing: bool = False) -> None:
        """Go on if what it waits for is there.

        Args:
            finishing: only take answers, and begin nothing.

        Raises:
            HangError: it waits for too long.
        """
        awaited = self._awaited
        waited = time.monotonic() - self._since
        if isinstance(awaited, float | int):
            if waited >= awaited and not finishing:
                self._go(None)
        elif awaited():
            self._go(awaited.future.result() if isinstance(awaited, Call) else None)
        elif waited > PATIENCE:
            what = awaited.what if isinstance(awaited, Call) else "a condition"
            raise HangError(f"{self.name} waited {PATIENCE:g} s for {what}")

    def _go(self, answer: Any) -> None:
        self._awaited = self._steps.send(answer)
        self._since = time.monotonic()


# World

NAME, RATE = "concurrency", 200.0  # namespace, [Hz]
DRIVER = "driver"  # the frame of messages that are not of the node
FAULTS = ("Traceback", "internal error", "FATAL", "a callback failed", "cycle of the stream failed")
LONGEST = 300.0  # [s] that there may be not enough
DUMP = 3.0  # [s] for the node to write down where its threads are
SERVICES = {
    "compute_ik": GetPositionIK,
    "compute_fk": GetPositionFK,
    "dls_ik/pause": SetBool,
    "dls_ik/reset": Trigger,
    "dls_ik/get_parameters": GetParameters,
    "dls_ik/set_parameters_atomically": SetParametersAtomically,
}


class World:
    """A context in which the node runs, and tasks work on it."""

    def __init__(self) -> None:
        self.ledger, self.history = Ledger(), History()
        self.commands = Commands(self.history, self.ledger, 1.0 / RATE)
        command = ros_node("dls_ik.ros.node", NAME, rate=RATE, acceleration=[ACCELERATION])
        self.process = Process(command, PYTHONFAULTHANDLER="1")
        self.log: list[str] = []
        self._tasks: list[Task] = []

    def __enter__(self) -> "World":
        """Start the node; it waits for a robot."""
        self.process.__enter__()
        self._context = Context()
        rclpy.init(args=[], context=self._context, signal_handler_options=SignalHandlerOptions.NO)
        self.node = Node("worker", context=self._context, namespace=NAME)
        self._executor = SingleThreadedExecutor(context=self._context)
        self._executor.add_node(self.node)
        ways = QoSProfile(depth=DEPTH)
        self._clients = {
            n: self.node.create_client(k, n, qos_profile=ways) for n, k in SERVICES.items()
        }
        self._listener = Node("listener", context=self._context, namespace=NAME)
        self._inbox = Inbox(self._listener, JointState, "joint_states")
        return self

    def __exit__(self, *_: Any) -> None:
        """End the node."""
        self._executor.shutdown()
        for node in (self.node, self._listener):
            node.destroy_node()
        self._context.try_shutdown()
        self.process.__exit__(None, None, None)
        self._read_log()

    def add(self, name: str, steps: Steps) -> None:
        """Let a task begin."""
        self._tasks.append(Task(name, steps))

    def call(self, service: str, request: Any, what: str = "") -> Call:
        """Send a request, to be yielded."""
        self.ledger.done[f"calls of {service}"] += 1
        return Call(what or service, self._clients[service].call_async(request))

    def is_served(self) -> bool:
        """Test if all services are available."""
        return all(client.service_is_ready() for client in self._clients.values())

    def run(self, duration: float, enough: Callable[[Ledger], bool] = lambda _: True) -> None:
        """Let the tasks work for a time [s], and until there was enough; then wait for all answers.

        A task that waits in vain ends it; the log of the node then has where its threads were.
        """
        end = time.monotonic() + duration
        try:
            while self.process.is_running:
                now = time.monotonic()
                if now > end and (enough(self.ledger) or now > end + LONGEST):
                    break
                self._turn(finishing=False)
        except KeyboardInterrupt:
            pass
        except HangError as error:
            self._hung(error)
            return
        self._finish()

    def _finish(self) -> None:
        try:
            while any(task.awaits_answer for task in self._tasks) and self.process.is_running:
                self._turn(finishing=True)
        except HangError as error:
            self._hung(error)

    def wait_until(self, condition: Callable[[], bool], patience: float) -> None:
        """Run callbacks until something holds.

        Raises:
            HangError: it does not come to be.
        """
        deadline = time.monotonic() + patience
        while not condition():
            if time.monotonic() > deadline or not self.process.is_running:
                raise HangError("the node is not ready; it said: " + " | ".join(self.log[-5:]))
            self._turn(finishing=True)

    def _turn(self, finishing: bool) -> None:
        self._executor.spin_once(timeout_sec=0.002)
        self._read_log()
        self._read_commands()
        for task in self._tasks:
            if not finishing or task.awaits_answer:
                task.step(finishing)

    def _read_commands(self) -> None:
        for message in self._inbox.take():
            if message.header.frame_id != DRIVER:
                self.commands.take(message)

    def _read_log(self) -> None:
        for line in self.process.lines():
            self.log.append(line)
            self.history.hear(line)

    def _hung(self, error: HangError) -> None:
        """Note it, and let the node write down where its threads are, which ends it."""
        where = thread_states(self.process.process.pid)
        self.process.signal(signal.SIGABRT)
        time.sleep(DUMP)
        self._read_log()
        dump = "\n".join(self.log[-200:])
        self.ledger.check(False, "every call is answered", f"{error}; threads {where};\n{dump}")


def thread_states(pid: int) -> str:
    """The threads of a process, and what each is doing."""
    found = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
        with suppress(OSError):  # it has ended
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            found.append(f"{(task / 'comm').read_text().strip()} {state}")
    return ", ".join(found)
