"""The streaming loop: targets in, commands out, in a thread of its own."""

import threading
import time

from rclpy.node import Node

from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo.control_services import ConflictMonitor, ControlServices
from dls_ik.ros.servo.cycle import ServoCycle
from dls_ik.ros.servo.monitor import Monitor
from dls_ik.ros.servo.outputs import Outputs
from dls_ik.ros.servo.pacing import Pacer, Priority
from dls_ik.ros.servo.report import CycleReport
from dls_ik.ros.servo.state_monitor import CurrentStateMonitor
from dls_ik.ros.servo.targets import TOPICS, Arrival, TargetBuffer
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller, ServoState

CLOCK_SPREAD, TRIES = 5e-4, 4  # [s] between two readings of clocks, and number of attempts
LOST = "cycles take longer than their period: the loop has ordinary priority from now on"
STOPPING = 2.0  # [s] for the arm to come to rest before the node ends


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
        self._priority = Priority(parameters.thread_priority)
        self._log = Throttle(node)
        self._outputs = outputs = Outputs(node, parameters)
        self._states = CurrentStateMonitor(node, outputs.echo, outputs.display_only)
        self.cycle = ServoCycle(
            self._states, frames, self._log, outputs.display_only, outputs.has_stop_trajectory
        )
        self.monitor = Monitor(node, parameters, self._states.values, self.cycle.lag)
        ControlServices(node, self.cycle)
        foreign = [topic for topic in outputs.topics if topic != self._states.topic]
        ConflictMonitor(node, self._log, foreign)
        self.targets = TargetBuffer()
        self.targets.subscribe(node, self._log, parameters.twist_frame)
        self._published: Arm | None = None  # that the outputs are for
        self._is_ending = False
        self._thread = threading.Thread(target=self._run, name="streaming", daemon=True)

    @property
    def topics(self) -> tuple[str, ...]:
        """Topics of the commands, after remapping."""
        return self._outputs.topics

    @property
    def target_topics(self) -> str:
        """Topics of the targets, after remapping."""
        return ", ".join(map(self._node.resolve_topic_name, TOPICS))

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
        self._states.keep_only(arm.tree.mimic_of)
        self.cycle.use(arm)

    def stop(self) -> None:
        """Let the arm come to rest; end the loop and wait for its end."""
        if self._thread.is_alive():
            self.cycle.submit(Controller.pause)
            self._is_ending = True
            self._thread.join(STOPPING)
        self.targets.close()
        if self._thread.is_alive():
            self._thread.join()
        self._outputs.deliver()

    def _run(self) -> None:
        self._log.info("priority", self._priority.take())
        pacer = Pacer(self._rate, time.monotonic())
        window = pacer.window()
        while self.targets.wait(*window):
            now, stamp = self._read_clocks()
            arrival = self.targets.take()
            self._run_cycle(now, stamp, pacer.begin(now, arrival), arrival)
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
            before, stamp = time.monotonic(), self._node.get_clock().now().nanoseconds
            now = time.monotonic()
            if now - before < CLOCK_SPREAD:
                break
        return now, stamp

    def _run_cycle(self, now: float, stamp: int, gap: float, arrival: Arrival | None) -> None:
        """Run a cycle; exceptions are reported, so that the loop outlives them."""
        try:
            report = self.cycle.run(now, stamp, gap, arrival)
            if report.is_command and not self.cycle.is_old(report, time.monotonic() - now):
                self._publish(report, stamp)
            self.monitor.publish(report, now, stamp)
        except Exception as error:  # noqa: BLE001  whatever it is, the next cycle may do
            self._log.failed("fault", "a cycle of the stream failed", error)
            failure = CycleReport(ServoState.FAULT, f"a cycle failed: {error!r}")
            self.monitor.publish(failure, now, stamp)

    def _publish(self, report: CycleReport, stamp: int) -> None:
        arm, output = report.arm, report.output
        if arm is None or output is None:
            return
        if arm is not self._published:
            self._outputs.use(arm.robot.joint_names)
            self._published = arm
        has_stop = self._outputs.has_stop_trajectory
        stop = arm.controller.stop_path(1.0 / self._rate) if has_stop else None
        self._outputs.publish(output.q, output.velocity, stamp, stop)
