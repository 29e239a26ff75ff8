"""A joint trajectory and what it came from, as the text of files."""

from __future__ import annotations

import csv
import io
from typing import Any, NamedTuple

from dls_ik.cli.pose_file import PoseFile
from dls_ik.cli.timing import Timing
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.solver.result import IkPathResult, Status


class Trajectory(NamedTuple):
    """b poses, the joint values that reach them, and when."""

    robot: RobotModel
    given: PoseFile
    result: IkPathResult
    timing: Timing

    @property
    def q(self) -> Array:
        """(b, n) joint values [rad or m]."""
        return self.result.q


def csv_text(trajectory: Trajectory) -> str:
    """One line a pose, below a header of t [s] and the joints [rad or m]; all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t", *trajectory.robot.joint_names])
    for t, q in zip(trajectory.timing.t.tolist(), trajectory.q.tolist(), strict=True):
        writer.writerow([repr(t), *map(repr, q)])
    return text.getvalue()


def document(trajectory: Trajectory) -> dict[str, Any]:
    """What a JSON file of a trajectory says."""
    robot, result = trajectory.robot, trajectory.result
    return {
        "robot": robot.name,
        "base": robot.base,
        "tip": robot.tip,
        "times": trajectory.timing.source,
        "joint_names": robot.joint_names,
        "t": trajectory.timing.t,
        "positions": result.q,
        "success": result.success,
        "status": [str(Status(int(status))) for status in result.status],
        "position_error": result.position_error,
        "rotation_error": result.rotation_error,
    }
