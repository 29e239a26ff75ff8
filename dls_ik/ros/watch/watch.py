"""All that is published for those who watch."""

from collections.abc import Callable, Mapping

from rclpy.node import Node

from dls_ik.model.robot import RobotModel
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.watch.diagnostics import Diagnostics
from dls_ik.ros.watch.markers import Markers
from dls_ik.ros.watch.seen import NOTHING, Seen
from dls_ik.ros.watch.status import StatusReport
from dls_ik.ros.watch.tip import Tip
from dls_ik.ros.watch.tip_pose import TipPose
from dls_ik.ros.watch.trail import Trail
from dls_ik.servo.output import ServoOutput
from dls_ik.servo.state import ServoState


class Watch:
    """Publishes status and tip each cycle; diagnostics and markers by timers of the node.

    Args:
        heard: the values of joints by name, as drivers publish them.
        lag: how late the arm follows its commands [s], NaN where that is not known.
    """

    def __init__(
        self,
        node: Node,
        parameters: Parameters,
        heard: Callable[[], Mapping[str, float]],
        lag: Callable[[], float],
    ) -> None:
        self._heard = heard
        self._duration = parameters.trail
        self._status = StatusReport(node)
        self._tip_pose = TipPose(node)
        self._markers = Markers(node)
        self._diagnostics = Diagnostics(node, parameters.rate, lag)
        self.meter = self._diagnostics.meter
        self._trail: Trail | None = None
        self.seen = NOTHING  # the last cycle, for other threads

    def cycle(
        self,
        robot: RobotModel | None,
        output: ServoOutput | None,
        state: ServoState,
        words: str,
        now: float,
        stamp: int,
    ) -> None:
        """Tell of a cycle.

        Args:
            robot: the arm that the output is for; None: there is none yet.
            output: the command, where there is one; its arrays are not changed any more.
            state, words: what the arm does; empty words: those of the state.
            now: on the steady clock [s].
            stamp: the time of the command [ns].
        """
        self._status.report(state, words)
        trail = self._trail_of(robot)
        if trail is not None and output is not None:
            trail.sample(now, output.q)
            self._tip_pose.report(trail.tip, output.q, stamp)
        self.seen = Seen(state, words, output, trail)
        self._markers.seen = self._diagnostics.seen = self.seen

    def _trail_of(self, robot: RobotModel | None) -> Trail | None:
        if robot is None:
            self._trail = None
        elif self._trail is None or self._trail.tip.robot is not robot:
            self._trail = Trail(Tip(robot, self._heard), self._duration)
        return self._trail
