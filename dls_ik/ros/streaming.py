"""The streaming loop: targets in, commands out, in a thread of its own."""

import threading
import time
import traceback

from rclpy.node import Node

from dls_ik.ros.echo import Echo
from dls_ik.ros.frames import Frames
from dls_ik.ros.joint_states import TOPIC as JOINT_STATES
from dls_ik.ros.joint_states import JointStates
from dls_ik.ros.logs import Throttle
from dls_ik.ros.outputs import OUTPUTS, Output
from dls_ik.ros.pacing import Pacer
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.parameters.outputs import JOINT_STATE
from dls_ik.ros.status import StatusReport
from dls_ik.ros.stream import Stream
from dls_ik.ros.stream_services import StreamServices
from dls_ik.ros.targets import TOPICS, Arrival, Targets
from dls_ik.servo import ServoOutput


class Streaming:
    """Runs a stream at the rate of the parameters, and publishes what comes of it."""

    def __init__(self, node: Node, parameters: Parameters, frames: Frames) -> None:
        self._node = node
        self._rate = parameters.rate
        self._log = Throttle(node)
        self._status = StatusReport(node)
        self._output_type = OUTPUTS[parameters.output_type]
        topic = parameters.output_topic or self._output_type.default_topic
        self._publisher = node.create_publisher(self._output_type.message_type, topic, 1)
        self._output: Output | None = None
        self._names: tuple[str, ...] = ()  # of the joints in the output
        shows = parameters.output_type == JOINT_STATE
        shares = shows and self.topic == node.resolve_topic_name(JOINT_STATES)
        self._echo = Echo() if shares else None
        states = JointStates(node, self._echo)
        self.stream = Stream(states, frames, self._log, shows, shares)
        StreamServices(node, self.stream)
        self._targets = Targets()
        self._targets.subscribe(node)
        self._thread = threading.Thread(target=self._run, name="streaming", daemon=True)

    @property
    def topic(self) -> str:
        """Where commands go out, as it is after remapping."""
        return str(self._publisher.topic_name)

    @property
    def target_topics(self) -> str:
        """Where targets come in, as they are after remapping."""
        return ", ".join(map(self._node.resolve_topic_name, TOPICS))

    def start(self) -> None:
        """Begin to cycle."""
        self._thread.start()

    def stop(self) -> None:
        """End the loop and wait for its end."""
        self._targets.close()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        pacer = Pacer(self._rate, time.monotonic())
        while self._targets.wait(*pacer.window()):
            now, stamp = time.monotonic(), self._node.get_clock().now().nanoseconds
            arrival = self._targets.take()
            self._guarded_cycle(stamp, now, pacer.began(now, arrival), arrival)

    def _guarded_cycle(self, stamp: int, now: float, dt: float, arrival: Arrival | None) -> None:
        """A cycle whose faults are reported, so that the loop outlives them."""
        try:
            self._cycle(stamp, now, dt, arrival)
        except Exception:  # noqa: BLE001  whatever it is, the next cycle may do
            self._log.warn("fault", f"a cycle of the stream failed:\n{traceback.format_exc()}")

    def _cycle(self, stamp: int, now: float, dt: float, arrival: Arrival | None) -> None:
        outcome = self.stream.cycle(now, stamp, dt, arrival)
        if outcome.is_command and outcome.output is not None:
            self._publish(outcome.names, outcome.output, stamp)
        self._status.report(outcome.state, outcome.words)

    def _publish(self, names: tuple[str, ...], output: ServoOutput, stamp: int) -> None:
        if self._output is None or names is not self._names:
            self._names = names
            self._output = self._output_type(names, 1.0 / self._rate)
        message = self._output.fill(output.q, output.velocity, stamp)
        if self._echo is not None:
            self._echo.remember(message)
        self._publisher.publish(message)
