# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The servo loop: a thread that runs cycles, its timing and priority, and its control services."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from dls_ik.core.types import Array
from dls_ik.ros.arm import Arm
from dls_ik.ros.compatibility import MOVEIT_SERVO, public_name
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import Parameters
from dls_ik.ros.process import SIM_TIME
from dls_ik.ros.servo.cycle import MAX_IN_STEP_PERIODS, SILENT_STATES, Action, ServoCycle
from dls_ik.ros.servo.drive_velocity import DriveVelocity
from dls_ik.ros.servo.markers import Markers
from dls_ik.ros.servo.monitor import CycleReport, Monitor
from dls_ik.ros.servo.outputs import Outputs
from dls_ik.ros.servo.redundancy import RedundancyTopics, RelativePoseTopic
from dls_ik.ros.servo.rivals import RivalMonitor, publisher_names
from dls_ik.ros.servo.state_monitor import CurrentStateMonitor
from dls_ik.ros.servo.target_buffer import (
    COMMAND_TYPES,
    TOPIC_OF_TYPE,
    Arrival,
    TargetBuffer,
    target_topics,
)
from dls_ik.ros.servo.target_marker import build_marker
from dls_ik.ros.subscriptions import CHECK_PERIOD, call_every
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.motion import StopPath
from dls_ik.servo.options import motion_limits
from dls_ik.text import listing

try:
    from moveit_msgs.srv import ServoCommandType
except ImportError:  # Humble
    ServoCommandType = None

MAX_CLOCK_SPREAD = 5e-4  # [s] maximum time between readings that count as simultaneous
MAX_CLOCK_READS = 4  # maximum number of attempts to read both clocks within MAX_CLOCK_SPREAD
PRIORITY_LOST = (
    "cycles take longer than their period: the loop has ordinary priority from now on; reduce the "
    "parameter rate"
)
SHUTTING_DOWN = "the node is shutting down"
ARM_STOP_TIMEOUT = 4.0  # [s] time to stop the arm before the node exits; ros2 launch waits 5 s

# Timing of the cycles
# Largest relative difference between the rates of targets and loop at which targets start cycles.
MAX_RATE_DIFFERENCE = 0.1
MIN_IN_STEP_PERIODS = 0.9  # [periods] minimum time between two cycles that targets start
MIN_PERIODS = 0.25  # [periods] minimum time between any two cycles
INTERVAL_GAIN = 0.2  # weight of the newest interval in the running mean
MAX_BUSY_CYCLES = 100  # consecutive cycles without a pause before real-time priority is given up
# Prefixes of the names of Fast DDS threads that send, receive or process events.
MIDDLEWARE_THREAD_NAMES = ("dds.udp", "dds.shm", "dds.tcp", "dds.asyn", "dds.ev")

PAUSE_SERVICE, RESET_SERVICE = "~/pause", "~/reset"
START_SERVICE, STOP_SERVICE = "~/start_servo", "~/stop_servo"  # names in MoveIt Servo of Humble
COMMAND_TYPE_SERVICE = "~/switch_command_type"  # name in MoveIt Servo
KILLED_NODES = "a node that was killed may be counted for up to 20 s"


class IntervalEstimator:
    """Estimates the mean time between the arrivals of targets."""

    def __init__(self) -> None:
        self._last = -math.inf
        self._interval = math.inf

    def update(self, arrival: Arrival) -> None:
        """Update the mean with a new arrival."""
        interval = (arrival.time - self._last) / arrival.number
        self._last = arrival.time
        if math.isfinite(self._interval):
            interval = self._interval + INTERVAL_GAIN * (interval - self._interval)
        self._interval = interval

    def interval(self, now: float) -> float:
        """Return the mean time between targets [s]; infinite if no targets arrive."""
        if now - self._last > 3.0 * self._interval:
            self._interval = math.inf
        return self._interval


class CycleWindow(NamedTuple):
    """Time window in which the next cycle starts, on the steady clock."""

    earliest: float  # [s]
    latest: float  # [s]; without a target the cycle starts at this time


class Pacer:
    """Plans when cycles start: at absolute deadlines, or when targets arrive.

    If targets arrive at approximately the rate of the loop, each target starts a cycle, between 0.9
    and 1.25 periods after the previous cycle. With fixed deadlines, each target would wait for up
    to one period, depending on the phase between the targets and the loop. If targets arrive at
    another rate or not at all, cycles start at fixed deadlines.

    Args:
        rate: Rate of the loop [Hz].
        now: Current time on the steady clock [s].
    """

    def __init__(self, rate: float, now: float) -> None:
        self.period = 1.0 / rate  # [s]
        self._last = now
        self._deadline = now + self.period
        self._targets = IntervalEstimator()

    def window(self) -> CycleWindow:
        """Return the time window in which the next cycle starts."""
        if self._is_in_step():
            earliest, latest = MIN_IN_STEP_PERIODS * self.period, MAX_IN_STEP_PERIODS * self.period
            return CycleWindow(self._last + earliest, self._last + latest)
        start = max(self._deadline, self._last + MIN_PERIODS * self.period)
        return CycleWindow(start, start)

    def start_cycle(self, now: float, arrival: Arrival | None) -> float:
        """Record the start of a cycle, and plan the next cycle.

        Args:
            now: Start of the cycle on the steady clock [s].
            arrival: Target of the cycle; None if no target arrived.

        Returns:
            Time since the last cycle [s].
        """
        was_in_step = self._is_in_step()
        if arrival is not None:
            self._targets.update(arrival)
        gap, self._last = now - self._last, now
        if was_in_step or now - self._deadline > self.period:
            self._deadline = now
        self._deadline += self.period
        return gap

    def roll_back(self, gap: float) -> None:
        """Undo the record of the last cycle, because its command was not published.

        The next result of :meth:`start_cycle` then includes the time before this cycle.

        Args:
            gap: Result of :meth:`start_cycle` for this cycle [s].
        """
        self._last -= gap

    def _is_in_step(self) -> bool:
        """Return whether targets arrive at approximately the rate of the loop."""
        return abs(self._targets.interval(self._last) / self.period - 1.0) < MAX_RATE_DIFFERENCE


class Priority:
    """Real-time priority of the loop and of the middleware, given up if the loop never sleeps.

    A target reaches the loop through threads of the middleware in the same process. With ordinary
    priority, these threads would wait for other busy programs, and the loop for these threads. They
    get a priority below that of the loop, so that messages cannot delay a cycle.

    If cycles take longer than their period, the loop never sleeps. With real-time priority, its
    thread would then block a processor for all other threads.

    Args:
        priority: Priority of SCHED_FIFO, 1 to 99; 0 for an ordinary thread.
    """

    def __init__(self, priority: int) -> None:
        self._priority = priority
        self._busy_cycles = 0  # consecutive cycles without a pause
        self._middleware_threads: list[int] = []  # identifiers of threads with real-time priority

    def acquire(self) -> str:
        """Give the calling thread its priority, and middleware threads the next lower priority.

        Threads that these threads start later have ordinary priority.

        Returns:
            Message for the log: the priority that the threads have, and why.
        """
        if not self._priority:
            return "the loop has ordinary priority, as thread_priority is 0"
        try:
            _schedule(0, os.SCHED_FIFO, self._priority)
        except (AttributeError, OSError) as error:
            why = getattr(error, "strerror", None) or "not available on this system"
            wanted, self._priority = self._priority, 0
            return f"the loop has ordinary priority; real-time priority {wanted} failed: {why}"
        below = max(self._priority - 1, 1)
        for thread in middleware_threads():
            with suppress(OSError):  # raised if the thread has just ended
                _schedule(thread, os.SCHED_FIFO, below)
                self._middleware_threads.append(thread)
        return (
            f"the loop has real-time priority {self._priority}, "
            f"and {len(self._middleware_threads)} threads of the middleware have {below}"
        )

    def give_up_if_busy(self, has_pause: bool) -> bool:
        """Give up real-time priority after `MAX_BUSY_CYCLES` cycles in a row without a pause.

        Args:
            has_pause: Whether the loop sleeps before the next cycle.

        Returns:
            True if this call has given up the priority.
        """
        self._busy_cycles = 0 if has_pause or not self._priority else self._busy_cycles + 1
        if self._busy_cycles < MAX_BUSY_CYCLES:
            return False
        self.give_up()
        return True

    def give_up(self) -> None:
        """Give the calling thread and the threads of the middleware ordinary priority."""
        self._priority = 0
        for thread in (0, *self._middleware_threads):
            with suppress(OSError):  # raised if the thread has ended
                _schedule(thread, os.SCHED_OTHER, 0)
        self._middleware_threads = []


def _schedule(thread: int, policy: int, priority: int) -> None:
    """Set policy and priority of a thread, but not of threads that it starts later.

    Args:
        thread: Identifier of the thread in Linux; 0 for the calling thread.
        policy: Scheduling policy of the operating system, such as SCHED_FIFO.
        priority: Priority within the policy.
    """
    os.sched_setscheduler(thread, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))


def middleware_threads() -> list[int]:
    """Return the identifiers of the threads with which Fast DDS sends and receives messages.

    The list is empty for another middleware, for versions of Fast DDS that do not name their
    threads, and on systems other than Linux.
    """
    found = []
    for comm in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # raised if the thread has just ended
            if comm.read_text(encoding="utf-8").startswith(MIDDLEWARE_THREAD_NAMES):
                found.append(int(comm.parent.name))
    return found


class ControlServices:
    """Services of the node that pause, resume and reset the controller, in the next cycle.

    Args:
        node: Node of the services.
        cycle: Cycle of the servo loop.
        compatibility: Value of the parameter `compatibility`, which selects names and services.
    """

    def __init__(self, node: Node, cycle: ServoCycle, compatibility: str = "") -> None:
        self._cycle = cycle
        node.create_service(SetBool, public_name(PAUSE_SERVICE, compatibility), self._pause)
        node.create_service(Trigger, RESET_SERVICE, self._reset)
        if compatibility == MOVEIT_SERVO:  # MoveIt Servo of Humble has these services
            node.create_service(Trigger, START_SERVICE, lambda _, answer: self._start(answer))
            node.create_service(Trigger, STOP_SERVICE, lambda _, answer: self._stop(answer))

    def _pause(self, request: Any, response: Any) -> Any:
        return self._stop(response) if request.data else self._start(response)

    def _stop(self, response: Any) -> Any:
        words = "paused: the arm stops, and targets are ignored"
        return self._submit(response, Controller.pause, words)

    def _start(self, response: Any) -> Any:
        words = "resumed: the arm continues with the next target"
        return self._submit(response, Controller.resume, words)

    def _reset(self, request: Any, response: Any) -> Any:
        return self._submit(response, Controller.reset, "reset: waiting for a target")

    def _submit(self, response: Any, action: Action, words: str) -> Any:
        """Submit an action for the next cycle, and return the response of the service.

        Without a robot the action is dropped, and the response reports a failure.

        Args:
            response: Response to fill.
            action: Action on the controller.
            words: Message of the response on success.
        """
        response.success = self._cycle.has_arm
        response.message = words if response.success else ServoState.NO_ROBOT.explanation
        if response.success:
            self._cycle.submit(action)
        return response


class CommandTypeService:
    """Service ``~/switch_command_type`` of MoveIt Servo.

    Args:
        node: Node of the service.
        targets: Buffer that accepts only the selected type of targets after a call.
        cycle: Cycle of the servo loop; the arm stops when the type changes.
        selects: Whether the service selects a type. False: it succeeds without an effect, and the
            arm follows the newest target of any type.
    """

    def __init__(self, node: Node, targets: TargetBuffer, cycle: ServoCycle, selects: bool) -> None:
        self._targets, self._cycle, self._selects = targets, cycle, selects
        if ServoCommandType is None:
            return
        request = ServoCommandType.Request
        self._names = {int(getattr(request, name)): name for name in COMMAND_TYPES}
        node.create_service(ServoCommandType, COMMAND_TYPE_SERVICE, self._switch)

    def _switch(self, request: Any, response: Any) -> Any:
        name = self._names.get(request.command_type, "")
        response.success = bool(name) and COMMAND_TYPES[name] in TOPIC_OF_TYPE.values()
        if response.success and self._selects and self._targets.command_type != name:
            self._targets.command_type = name
            reason = f"~/switch_command_type has selected {name}"
            self._cycle.submit(partial(Controller.stop, reason=reason))
        return response


class ConflictMonitor:
    """Warns of other nodes with the same name, and of several publishers of commands or targets.

    Args:
        node: Node whose name and topics are checked periodically.
        log: Log of the node.
        topics: Topics of this node's commands, on which no other node should publish.
        targets: Topics of targets.
    """

    def __init__(
        self, node: Node, log: Throttle, topics: Iterable[str], targets: Iterable[str]
    ) -> None:
        self._node, self._log, self._topics = node, log, tuple(topics)
        self._targets = tuple(targets)
        self._counts: dict[str, int] = {}  # counts at the last check, by description
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        node = self._node
        name = node.get_fully_qualified_name()
        own = node.get_name(), node.get_namespace()
        count = node.get_node_names_and_namespaces().count(own)
        self._report(
            f"nodes have the name {name}",
            count,
            "each moves the arm, and any of them may answer a request; give each its own name or "
            "namespace",
        )
        for topic in self._topics:
            others = node.count_publishers(topic) - max(1, count)
            what = f"publishers send commands on {topic}"
            self._report(what, others + 1, "the arm receives all of them; stop the others")
        for topic in map(node.resolve_topic_name, self._targets):
            count = node.count_publishers(topic)
            if count > 1:
                names = listing(publisher_names(node, topic))
                words = (
                    f"{count} publishers on {topic} ({names}): the arm follows the newest target"
                )
                self._log.once(words, words)

    def _report(self, what: str, count: int, consequence: str) -> None:
        """Warn if several nodes or publishers conflict, and log when the conflict has ended.

        Args:
            what: Description of the nodes or publishers.
            count: Number of the nodes or publishers; a conflict if above 1.
            consequence: Consequence of a conflict, for the warning.
        """
        before, self._counts[what] = self._counts.get(what, 1), count
        logger = self._node.get_logger()
        if count > max(1, before):
            logger.warning(f"{count} {what}: {consequence} ({KILLED_NODES})")
        elif count <= 1 < before:
            logger.info(f"conflict resolved: no longer several {what}")


def stamp_clock(node: Node) -> Callable[[], int]:
    """Return a function that returns the current ROS time [ns], with which messages are stamped.

    ROS time is simulated time if the node uses it, otherwise system time. System time is read
    without the clock of rclpy, because reading the clock of rclpy takes 2 us.
    """
    if not node.get_parameter(SIM_TIME).value:
        return time.time_ns
    return lambda: int(node.get_clock().now().nanoseconds)


class ServoLoop:
    """Runs cycles in a thread, and publishes their commands and reports.

    Args:
        node: Node of all publishers, subscriptions and services.
        parameters: Parameters of the node.
        frames: Transforms of the frames of targets.

    Attributes:
        cycle: Computes a command in each cycle.
        targets: Buffer of the newest target.
        monitor: Publishes status, tip and diagnostics, and stores the last report.
    """

    def __init__(self, node: Node, parameters: Parameters, frames: Frames) -> None:
        self._node = node
        self._rate = parameters.rate
        self._stamp = stamp_clock(node)
        self._priority = Priority(parameters.thread_priority)
        self._log = Throttle(node)
        self._outputs = outputs = Outputs(node, parameters)
        self._states = CurrentStateMonitor(node, outputs.echo, outputs.display_only)
        self._drive = DriveVelocity(1.0 / parameters.rate)
        self.cycle = ServoCycle(
            self._states,
            frames,
            self._log,
            outputs.display_only,
            outputs.has_stop_trajectory,
            lambda: self._drive.moves,
        )
        self.monitor = Monitor(node, parameters, self._states, self.cycle.lag)
        Markers(node, lambda: self.monitor.report)
        compatibility = parameters.compatibility
        ControlServices(node, self.cycle, compatibility)
        foreign = [topic for topic in outputs.topics if topic != self._states.topic]
        tips = parameters.stream_tips()
        ConflictMonitor(node, self._log, foreign, target_topics(tips, compatibility))
        self.targets = targets = TargetBuffer(node, self._log, tips, compatibility)
        if compatibility or parameters.move_group_interface:
            CommandTypeService(node, targets, self.cycle, bool(compatibility))
        RivalMonitor(node, targets.rivals)
        targets.subscribe(parameters.twist_frame)
        RedundancyTopics(node, self.cycle.submit, self.cycle.joint_names, self._log)
        if tips:
            RelativePoseTopic(node, targets.store_relative, tips, self._log)
        self._marker = build_marker(
            node, parameters, lambda: self.monitor.report, targets.store, self.cycle.submit
        )
        self._published: Arm | None = None  # arm for whose joints the outputs are set up
        self._drive_limits: tuple[Array, Array] = np.zeros(0), np.zeros(0)
        self._stop: StopPath | None = None  # stop path that was published with the last command
        self._is_stopping = False
        self._thread = threading.Thread(target=self._run, name="streaming", daemon=True)

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics of the commands, after remapping."""
        return self._outputs.topics

    @property
    def target_topics(self) -> str:
        """Topics of the targets, after remapping, separated by commas."""
        return ", ".join(map(self._node.resolve_topic_name, self.targets.topics))

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def use(self, arm: Arm) -> None:
        """Use an arm from the next cycle on, or later if the previous arm must stop first.

        Raises:
            OptionError: If `output_joints`, `output_names` or the parameters of servos do not fit
                the joints of the chain.
        """
        joints = self._outputs.joints(arm.robot)
        self._states.rename(joints.robot_names)
        self._states.keep_only(arm.tree.mimic_of, self.cycle.joints)
        self.cycle.use(arm)

    def stop(self) -> None:
        """Stop the arm, then stop the thread, and wait until the last commands are delivered."""
        if self._thread.is_alive():
            self.cycle.submit(partial(Controller.pause, reason=SHUTTING_DOWN))
            self._is_stopping = True
            self._thread.join(ARM_STOP_TIMEOUT)
        self.targets.close()
        if self._thread.is_alive():
            self._thread.join()
        self._outputs.deliver()
        if self._marker is not None:
            self._marker.close()

    def _run(self) -> None:
        self._log.info("priority", self._priority.acquire())
        pacer = Pacer(self._rate, time.monotonic())
        window = pacer.window()
        while self.targets.wait(*window):
            now, stamp = self._read_clocks()
            arrival = self.targets.take()
            gap = pacer.start_cycle(now, arrival)
            if not self._run_cycle(now, stamp, gap, arrival):
                pacer.roll_back(gap)
            self.monitor.meter.cycle(window.latest, now, time.monotonic())
            window = pacer.window()
            if self._priority.give_up_if_busy(window.latest > time.monotonic()):
                self._log.warn("priority lost", PRIORITY_LOST)
            if self._is_stopping and not (self.cycle.moves or self._drive.moves):
                break

    def _read_clocks(self) -> tuple[float, int]:
        """Return the current time on the steady clock [s], and the current ROS time [ns].

        If the thread was preempted between the two readings, the clocks are read again, because
        stamps would be wrong.
        """
        for _ in range(MAX_CLOCK_READS):
            before, stamp = time.monotonic(), self._stamp()
            now = time.monotonic()
            if now - before < MAX_CLOCK_SPREAD:
                break
        return now, stamp

    def _run_cycle(self, now: float, stamp: int, gap: float, arrival: Arrival | None) -> bool:
        """Run a cycle, and publish its command and report; log an exception and continue.

        Returns:
            False if the command was not published because the command was too late or because the
            cycle raised an exception.
        """
        is_done = False  # becomes True when the command is published, or if there is no command
        try:
            report = self.cycle.run(now, stamp, gap, arrival)
            is_late = report.is_command and self.cycle.is_too_late(report, time.monotonic() - now)
            if not is_late:
                self._stop = self._publish(report, now, stamp) if report.is_command else None
                if not report.is_command:
                    self._stop_drives()
            is_done = not is_late
            self._states.discover(now)
            self.monitor.publish(report, now, stamp)
        except Exception as error:  # noqa: BLE001  the next cycle may succeed
            self._log.failed("fault", "a cycle of the servo loop failed", error)
            with suppress(Exception):  # the publisher may be the cause of the first error
                failure = CycleReport(ServoState.FAULT, f"a cycle failed: {error!r}")
                self.monitor.publish(failure, now, stamp)
            with suppress(Exception):  # drives would keep their last velocity
                self._stop_drives()
        if not is_done:
            self._roll_back()
        return is_done

    def _roll_back(self) -> None:
        """Roll back the last cycle, because its command was not published; log a failure."""
        try:
            self.cycle.roll_back(self._stop)
        except Exception as error:  # noqa: BLE001  the next cycle may succeed
            self._log.failed("roll back", "a failed cycle could not be rolled back", error)

    def _stop_drives(self) -> None:
        """Send decreasing velocities, down to zero, to drives that take velocities."""
        arm = self._published  # the arm for whose joints the outputs are set up
        if arm is not None and self._drive.moves:
            v = np.zeros(arm.robot.n)
            self._outputs.publish_drive(self._drive.next(v, None, self._drive_limits))

    def _drive_velocity(self, report: CycleReport, now: float) -> Array | None:
        """Return the velocity (n,) for drives that take velocities; None without such drives.

        Drift is not corrected in a state after which no further command follows.
        """
        arm, output = report.arm, report.output
        if arm is None or output is None or not self._outputs.has_velocity_array:
            return None
        is_last = report.state in SILENT_STATES
        deviation = None if is_last else arm.controller.deviation(now)
        return self._drive.next(output.velocity, deviation, self._drive_limits)

    def _publish(self, report: CycleReport, now: float, stamp: int) -> StopPath | None:
        """Publish the command of a report; return the stop path that is published with it.

        None is returned if the outputs include no stop trajectory.
        """
        arm, output = report.arm, report.output
        if arm is None or output is None:
            return None
        if arm is not self._published:
            self._outputs.use(arm.robot)
            self._published, self._drive_limits = arm, _drive_limits(arm)
        outputs, period = self._outputs, 1.0 / self._rate
        knots = None
        if outputs.has_trajectory:
            knots = arm.controller.trajectory(period, outputs.points)
        drive = self._drive_velocity(report, now)
        outputs.publish(output.q, output.velocity, stamp, knots, drive)
        return arm.controller.stop_path(period) if outputs.has_stop_trajectory else None


def _drive_limits(arm: Arm) -> tuple[Array, Array]:
    """Return the limits (n,) of velocities [rad/s or m/s] and accelerations of an arm."""
    return arm.robot.velocity, motion_limits(arm.controller.options, arm.robot)[0]
