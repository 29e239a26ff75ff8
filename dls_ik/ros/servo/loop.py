"""The streaming loop: targets in, commands out, in a thread of its own; its pace, its services."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from rclpy.node import Node
from std_srvs.srv import SetBool, Trigger

from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import Parameters
from dls_ik.ros.process import SIM_TIME
from dls_ik.ros.servo.cycle import MAX_IN_STEP_PERIODS, Action, ServoCycle
from dls_ik.ros.servo.markers import Markers
from dls_ik.ros.servo.monitor import CycleReport, Monitor
from dls_ik.ros.servo.outputs import Outputs
from dls_ik.ros.servo.rivals import RivalMonitor, publisher_names
from dls_ik.ros.servo.state_monitor import CurrentStateMonitor
from dls_ik.ros.servo.target_buffer import TARGET_TOPICS, Arrival, TargetBuffer
from dls_ik.ros.servo.target_marker import build_marker
from dls_ik.ros.subscriptions import CHECK_PERIOD, call_every
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.motion import StopPath
from dls_ik.text import listing

CLOCK_SPREAD, TRIES = 5e-4, 4  # [s] between two readings of clocks, and number of attempts
LOST = "cycles take longer than their period: the loop has ordinary priority from now on"
SHUTTING_DOWN = "the node is shutting down"
STOPPING = 4.0  # [s] for the arm to come to rest before the node ends; ros2 launch waits 5 s

# Pace
IN_STEP = 0.1  # targets come at the rate of the loop if their interval is this near to the period
EARLY, SOONEST = 0.9, 0.25  # periods from a cycle to the next: in step with targets, and otherwise
GAIN = 0.2  # of the running mean of intervals
PATIENCE = 100  # cycles in a row without a pause between them

PAUSE, RESET = "~/pause", "~/reset"
KILLED = "one that was killed is forgotten after a while"


class IntervalEstimator:
    """Running mean of the time between targets."""

    def __init__(self) -> None:
        self._last = -math.inf
        self._interval = math.inf

    def update(self, arrival: Arrival) -> None:
        """Take an arrival into account."""
        interval = (arrival.time - self._last) / arrival.number
        self._last = arrival.time
        if math.isfinite(self._interval):
            interval = self._interval + GAIN * (interval - self._interval)
        self._interval = interval

    def interval(self, now: float) -> float:
        """Return the mean time between targets [s]; infinite while none arrive."""
        if now - self._last > 3.0 * self._interval:
            self._interval = math.inf
        return self._interval


class CycleWindow(NamedTuple):
    """Time of the next cycle, on the steady clock."""

    earliest: float  # [s]
    latest: float  # [s] until then it waits for a target


class Pacer:
    """Plans cycles on absolute deadlines.

    A stream of targets at about the rate of the loop would be followed with a lag of up to one
    period, depending on the phase of the two clocks. So while there is such a stream, a cycle
    begins when its target arrives, at most a quarter of a period late and a tenth early.
    """

    def __init__(self, rate: float, now: float) -> None:
        self.period = 1.0 / rate  # [s]
        self._last = now
        self._deadline = now + self.period
        self._targets = IntervalEstimator()

    def window(self) -> CycleWindow:
        """Return when the next cycle may begin."""
        if self._is_in_step():
            return CycleWindow(
                self._last + EARLY * self.period, self._last + MAX_IN_STEP_PERIODS * self.period
            )
        begin = max(self._deadline, self._last + SOONEST * self.period)
        return CycleWindow(begin, begin)

    def begin(self, now: float, arrival: Arrival | None) -> float:
        """Begin a cycle with the target it found, and plan the next one.

        Returns:
            The gap: the time since the last cycle [s].
        """
        was_in_step = self._is_in_step()
        if arrival is not None:
            self._targets.update(arrival)
        gap, self._last = now - self._last, now
        if was_in_step or now - self._deadline > self.period:
            self._deadline = now
        self._deadline += self.period
        return gap

    def withdraw(self, gap: float) -> None:
        """Let the last cycle not count, as its command did not go out: the next gap holds it."""
        self._last -= gap

    def _is_in_step(self) -> bool:
        """Return whether targets came at about the rate of the loop, as of the last cycle."""
        return abs(self._targets.interval(self._last) / self.period - 1.0) < IN_STEP


class Priority:
    """Real-time priority of the loop's thread, for as long as the loop leaves time for others.

    A loop whose cycles take longer than their period never sleeps, and at this priority would keep
    a processor from all other threads.
    """

    def __init__(self, priority: int) -> None:
        self._priority = priority  # of SCHED_FIFO, 1 to 99; 0: an ordinary thread
        self._restless = 0  # cycles in a row without a pause

    def take(self) -> str:
        """Give it to the calling thread, but not to threads that this one starts.

        Returns:
            The outcome, in words.
        """
        if not self._priority:
            return "the loop has ordinary priority, as thread_priority is 0"
        try:
            _schedule(os.SCHED_FIFO, self._priority)
        except (AttributeError, OSError) as error:
            why = getattr(error, "strerror", None) or "not available on this system"
            wanted, self._priority = self._priority, 0
            return f"the loop has ordinary priority: real-time priority {wanted}: {why}"
        return f"the loop has real-time priority {self._priority}"

    def is_lost(self, has_pause: bool) -> bool:
        """Note whether there is a pause before the next cycle; give up where there never is one.

        Returns:
            True once, when it was given up.
        """
        self._restless = 0 if has_pause or not self._priority else self._restless + 1
        if self._restless < PATIENCE:
            return False
        self._priority = 0
        _schedule(os.SCHED_OTHER, 0)
        return True


def _schedule(policy: int, priority: int) -> None:
    """Schedule the calling thread; threads that it starts are ordinary."""
    os.sched_setscheduler(0, policy | os.SCHED_RESET_ON_FORK, os.sched_param(priority))


class ControlServices:
    """Services to pause, resume and reset the controller in its next cycle."""

    def __init__(self, node: Node, cycle: ServoCycle) -> None:
        self._cycle = cycle
        node.create_service(SetBool, PAUSE, self._pause)
        node.create_service(Trigger, RESET, self._reset)

    def _pause(self, request: Any, response: Any) -> Any:
        if request.data:
            words = "paused: the arm stops, and targets are passed over"
            return self._submit(response, Controller.pause, words)
        return self._submit(response, Controller.resume, "continues with the next target")

    def _reset(self, request: Any, response: Any) -> Any:
        return self._submit(response, Controller.reset, "reset: waiting for a target")

    def _submit(self, response: Any, action: Action, words: str) -> Any:
        """Submit an action, or answer that there is no arm."""
        response.success = self._cycle.has_arm
        response.message = words if response.success else ServoState.NO_ROBOT.explanation
        if response.success:
            self._cycle.submit(action)
        return response


class ConflictMonitor:
    """Warns of other nodes of the same name, and of other publishers of commands or targets.

    Args:
        topics: of the commands that no other node is to publish.
    """

    def __init__(self, node: Node, log: Throttle, topics: Iterable[str]) -> None:
        self._node, self._log, self._topics = node, log, tuple(topics)
        self._counts: dict[str, int] = {}  # as reported last
        call_every(node, CHECK_PERIOD, self._check)

    def _check(self) -> None:
        node = self._node
        name = node.get_fully_qualified_name()
        own = node.get_name(), node.get_namespace()
        count = node.get_node_names_and_namespaces().count(own)
        self._report(
            f"nodes are called {name}",
            count,
            "each moves the arm, and either may answer a request; give them names or namespaces "
            "of their own",
        )
        for topic in self._topics:
            others = node.count_publishers(topic) - max(1, count)
            what = f"publishers send commands on {topic}"
            self._report(what, others + 1, "the arm gets them all")
        for topic in map(node.resolve_topic_name, TARGET_TOPICS):
            count = node.count_publishers(topic)
            if count > 1:
                names = listing(publisher_names(node, topic))
                words = f"{count} publishers on {topic} ({names}): the newest target counts"
                self._log.once(words, words)

    def _report(self, what: str, count: int, consequence: str) -> None:
        """Warn when there are several, and log when that is over."""
        before, self._counts[what] = self._counts.get(what, 1), count
        logger = self._node.get_logger()
        if count > max(1, before):
            logger.warning(f"{count} {what}: {consequence} ({KILLED})")
        elif count <= 1 < before:
            logger.info(f"no longer several {what}")


def stamp_clock(node: Node) -> Callable[[], int]:
    """Return a function that returns the time of stamps [ns]: system time, or that of a simulation.

    A clock of rclpy takes 2 us to read.
    """
    if not node.get_parameter(SIM_TIME).value:
        return time.time_ns
    return lambda: int(node.get_clock().now().nanoseconds)


class ServoLoop:
    """Runs cycles at the rate of the parameters, and publishes their commands and reports.

    Attributes:
        cycle: run at each deadline, or when a target arrives.
        targets: the newest target.
        monitor: status, diagnostics and markers, and the last report.
    """

    def __init__(self, node: Node, parameters: Parameters, frames: Frames) -> None:
        self._node = node
        self._rate = parameters.rate
        self._stamp = stamp_clock(node)
        self._priority = Priority(parameters.thread_priority)
        self._log = Throttle(node)
        self._outputs = outputs = Outputs(node, parameters)
        self._states = CurrentStateMonitor(node, outputs.echo, outputs.display_only)
        self.cycle = ServoCycle(
            self._states, frames, self._log, outputs.display_only, outputs.has_stop_trajectory
        )
        self.monitor = Monitor(node, parameters, self._states, self.cycle.lag)
        Markers(node, lambda: self.monitor.report)
        ControlServices(node, self.cycle)
        foreign = [topic for topic in outputs.topics if topic != self._states.topic]
        ConflictMonitor(node, self._log, foreign)
        self.targets = targets = TargetBuffer(node, self._log)
        RivalMonitor(node, targets.rivals)
        targets.subscribe(parameters.twist_frame)
        self._marker = build_marker(
            node, parameters, lambda: self.monitor.report, targets.store, self.cycle.submit
        )
        self._published: Arm | None = None  # that the outputs are for
        self._stop: StopPath | None = None  # that the last cycle sent
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="streaming", daemon=True)

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics of the commands, after remapping."""
        return self._outputs.topics

    @property
    def target_topics(self) -> str:
        """Topics of the targets, after remapping."""
        return ", ".join(map(self._node.resolve_topic_name, TARGET_TOPICS))

    def start(self) -> None:
        """Begin to cycle."""
        self._thread.start()

    def use(self, arm: Arm) -> None:
        """Use this arm from the next cycle on.

        Raises:
            OptionError: the outputs are for other joints.
        """
        joints = self._outputs.joints(arm.robot.joint_names)
        self._states.rename(joints.robot_names)
        self._states.keep_only(arm.tree.mimic_of, self.cycle.joints)
        self.cycle.use(arm)

    def stop(self) -> None:
        """Let the arm come to rest; end the loop and wait for its end."""
        if self._thread.is_alive():
            self.cycle.submit(partial(Controller.pause, reason=SHUTTING_DOWN))
            self._is_ending = True
            self._thread.join(STOPPING)
        self.targets.close()
        if self._thread.is_alive():
            self._thread.join()
        self._outputs.deliver()
        if self._marker is not None:
            self._marker.close()

    def _run(self) -> None:
        self._log.info("priority", self._priority.take())
        pacer = Pacer(self._rate, time.monotonic())
        window = pacer.window()
        while self.targets.wait(*window):
            now, stamp = self._read_clocks()
            arrival = self.targets.take()
            gap = pacer.begin(now, arrival)
            if not self._run_cycle(now, stamp, gap, arrival):
                pacer.withdraw(gap)
            self.monitor.meter.cycle(window.latest, now, time.monotonic())
            window = pacer.window()
            if self._priority.is_lost(window.latest > time.monotonic()):
                self._log.warn("priority lost", LOST)
            if self._is_ending and not self.cycle.moves:
                break

    def _read_clocks(self) -> tuple[float, int]:
        """Read steady time [s] and the time of stamps [ns] at one moment.

        Where the thread was put aside between the two, commands would be stamped late or early.
        """
        for _ in range(TRIES):
            before, stamp = time.monotonic(), self._stamp()
            now = time.monotonic()
            if now - before < CLOCK_SPREAD:
                break
        return now, stamp

    def _run_cycle(self, now: float, stamp: int, gap: float, arrival: Arrival | None) -> bool:
        """Run a cycle; exceptions are reported, so that the loop outlives them.

        Returns:
            False if its command did not go out, as it came too late, or the cycle failed.
        """
        is_over = False  # and its command, if it has one, went out
        try:
            report = self.cycle.run(now, stamp, gap, arrival)
            is_late = report.is_command and self.cycle.is_too_late(report, time.monotonic() - now)
            if not is_late:
                self._stop = self._publish(report, stamp) if report.is_command else None
            is_over = not is_late
            self._states.discover(now)
            self.monitor.publish(report, now, stamp)
        except Exception as error:  # noqa: BLE001  whatever it is, the next cycle may do
            self._log.failed("fault", "a cycle of the stream failed", error)
            with suppress(Exception):  # maybe the same again
                failure = CycleReport(ServoState.FAULT, f"a cycle failed: {error!r}")
                self.monitor.publish(failure, now, stamp)
        if not is_over:
            self._withdraw()
        return is_over

    def _withdraw(self) -> None:
        try:
            self.cycle.roll_back(self._stop)
        except Exception as error:  # noqa: BLE001  as above
            self._log.failed("withdraw", "a cycle could not be taken back", error)

    def _publish(self, report: CycleReport, stamp: int) -> StopPath | None:
        """Publish a command; return the stop sent with it, if there is one."""
        arm, output = report.arm, report.output
        if arm is None or output is None:
            return None
        if arm is not self._published:
            self._outputs.use(arm.robot.joint_names)
            self._published = arm
        outputs, period = self._outputs, 1.0 / self._rate
        knots = None
        if outputs.has_trajectory:
            knots = arm.controller.trajectory(period, outputs.points)
        outputs.publish(output.q, output.velocity, stamp, knots)
        return arm.controller.stop_path(period) if outputs.has_stop_trajectory else None
