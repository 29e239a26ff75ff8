"""The streaming loop: targets in, commands out, in a thread of its own."""

import threading
import time

from rclpy.node import Node

from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.marker_target import build_marker
from dls_ik.ros.outputs import Outputs
from dls_ik.ros.params import Parameters
from dls_ik.ros.stream.cycle import Outcome, Stream
from dls_ik.ros.stream.joint_states import JointStates
from dls_ik.ros.stream.neighbours import Neighbours
from dls_ik.ros.stream.orders import Orders
from dls_ik.ros.stream.pacing import Pacer
from dls_ik.ros.stream.priority import Priority
from dls_ik.ros.stream.targets import TOPICS, Arrival, Targets
from dls_ik.ros.util import Throttle
from dls_ik.ros.watch import Watch
from dls_ik.servo import Controller, ServoState

MOMENT, TRIES = 5e-4, 4  # [s] in which two clocks are read, and how often that is tried
LOST = "cycles take longer than their period: the loop has ordinary priority from now on"
STOPPING = 2.0  # [s] for the arm to come to rest before the node ends


class Streaming:
    """Runs a stream at the rate of the parameters, and publishes what comes of it."""

    def __init__(self, node: Node, parameters: Parameters, frames: Frames) -> None:
        self._node = node
        self._rate = parameters.rate
        self._priority = Priority(parameters.thread_priority)
        self._log = Throttle(node)
        self._outputs = Outputs(node, parameters)
        self._states = JointStates(node, self._outputs.echo)
        self._watch = Watch(node, parameters, self._states.values, lambda: self.stream.lag())
        self._arm: Arm | None = None  # that the outputs are for
        shows, shares = self._outputs.shows, self._outputs.echo is not None
        goes_on = self._outputs.goes_on
        self.stream = Stream(self._states, frames, self._log, shows, shares, goes_on)
        Orders(node, self.stream)
        Neighbours(node, [t for t in self._outputs.topics if t != self._states.topic])
        self._targets = Targets()
        self._targets.subscribe(node, self._log, parameters.twist_frame)
        self._marker = build_marker(
            node, parameters, lambda: self._watch.seen, self._targets.store, self.stream.order
        )
        self._ends = False
        self._thread = threading.Thread(target=self._run, name="streaming", daemon=True)

    @property
    def topics(self) -> tuple[str, ...]:
        """Where commands go out, as it is after remapping."""
        return self._outputs.topics

    @property
    def target_topics(self) -> str:
        """Where targets come in, as they are after remapping."""
        return ", ".join(map(self._node.resolve_topic_name, TOPICS))

    def start(self) -> None:
        """Begin to cycle."""
        self._thread.start()

    def use(self, arm: Arm) -> None:
        """Go on with this arm from the next cycle.

        Raises:
            OptionError: the outputs are for other joints.
        """
        joints = self._outputs.joints(arm.robot.joint_names)
        self._states.rename(joints.robot_names)
        self._states.keep_only(arm.tree.mimic_of)
        self.stream.use(arm)

    def stop(self) -> None:
        """Let the arm come to rest; end the loop and wait for its end."""
        if self._thread.is_alive():
            self.stream.order(Controller.pause)
            self._ends = True
            self._thread.join(STOPPING)
        self._targets.close()
        if self._thread.is_alive():
            self._thread.join()
        self._outputs.deliver()
        if self._marker is not None:
            self._marker.close()

    def _run(self) -> None:
        self._log.info("priority", self._priority.take())
        pacer = Pacer(self._rate, time.monotonic())
        window = pacer.window()
        while self._targets.wait(*window):
            now, stamp = self._clocks()
            arrival = self._targets.take()
            self._guarded_cycle(stamp, now, pacer.began(now, arrival), arrival)
            self._watch.meter.cycle(window.latest, now, time.monotonic())
            window = pacer.window()
            if self._priority.is_lost(window.latest > time.monotonic()):
                self._log.warn("priority lost", LOST)
            if self._ends and not self.stream.moves:
                break

    def _clocks(self) -> tuple[float, int]:
        """Steady time [s] and the time of stamps [ns], of one moment.

        Where the thread was put aside between the two, commands would be stamped late or early.
        """
        for _ in range(TRIES):
            before, stamp = time.monotonic(), self._node.get_clock().now().nanoseconds
            now = time.monotonic()
            if now - before < MOMENT:
                break
        return now, stamp

    def _guarded_cycle(self, stamp: int, now: float, dt: float, arrival: Arrival | None) -> None:
        """A cycle whose faults are reported, so that the loop outlives them."""
        try:
            self._cycle(stamp, now, dt, arrival)
        except Exception as error:  # noqa: BLE001  whatever it is, the next cycle may do
            self._log.failed("fault", "a cycle of the stream failed", error)
            words = f"a cycle failed: {error!r}"
            self._watch.cycle(None, None, ServoState.FAULT, words, now, stamp)

    def _cycle(self, stamp: int, now: float, dt: float, arrival: Arrival | None) -> None:
        outcome = self.stream.cycle(now, stamp, dt, arrival)
        if outcome.is_command and not self.stream.is_old(outcome, time.monotonic() - now):
            self._publish(outcome, stamp)
        robot = None if outcome.arm is None else outcome.arm.robot
        self._watch.cycle(robot, outcome.output, outcome.state, outcome.words, now, stamp)

    def _publish(self, outcome: Outcome, stamp: int) -> None:
        arm, output = outcome.arm, outcome.output
        if arm is None or output is None:
            return
        if arm is not self._arm:
            self._outputs.use(arm.robot.joint_names)
            self._arm = arm
        stop = arm.controller.stop_path(1.0 / self._rate) if self._outputs.goes_on else None
        self._outputs.publish(output.q, output.velocity, stamp, stop)
