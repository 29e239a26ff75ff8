"""Commands as trajectories."""

from typing import Any

import numpy as np
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dls_ik.core.types import Array
from dls_ik.ros.outputs.fields import SECOND, set_time, writable
from dls_ik.ros.outputs.spec import OutputSpec
from dls_ik.ros.outputs.stopping import cycles_to_stop, stop


class JointTrajectoryOutput:
    """The next points for a joint_trajectory_controller, without a stamp, which means now.

    One point is the command, a cycle ahead, without velocities, which must be zero at the last
    point. Of more points each is a cycle after the one before, and from the second on they slow
    down to a stop; a controller that hears of no other trajectory follows them to rest. A stop that
    takes longer than the points last ends in the last point, which comes as much later.
    """

    message_type = JointTrajectory
    default_topic = "joint_trajectory_controller/joint_trajectory"

    def __init__(self, spec: OutputSpec) -> None:
        self._spec = spec
        n = len(spec.names)
        points = [JointTrajectoryPoint() for _ in range(spec.points)]
        for k, point in enumerate(points):
            set_time(point.time_from_start, self._nanoseconds(k))
        self._positions = [writable(point, "positions", n) for point in points]
        self._velocities = [writable(p, "velocities", n) for p in points if spec.points > 1]
        self._last = points[-1]
        self._elapsed = np.arange(spec.points, dtype=float)
        self._message = JointTrajectory(joint_names=list(spec.names), points=points)

    def fill(self, q: Array, velocity: Array, stamp: int) -> Any:
        """The message of a command."""
        if self._velocities:
            self._fill_window(q, velocity)
        else:
            self._positions[0][:] = q
        return self._message

    def _fill_window(self, q: Array, velocity: Array) -> None:
        spec = self._spec
        limits = (spec.lower, spec.upper, spec.acceleration)
        cycles = cycles_to_stop(q, velocity, *limits, spec.period)
        last = max(spec.points - 1, cycles)
        self._elapsed[-1] = last
        set_time(self._last.time_from_start, self._nanoseconds(last))
        rows = stop(q, velocity, cycles, spec.period, self._elapsed)
        for fields, values in zip((self._positions, self._velocities), rows, strict=True):
            for field, row in zip(fields, values, strict=True):
                field[:] = row

    def _nanoseconds(self, k: int) -> int:
        """When the point `k` is due."""
        return round((k + 1) * self._spec.period * SECOND)
