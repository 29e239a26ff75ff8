"""The stream in the words of ``diagnostic_msgs``: a level, and names with values.

==============================================  =====
state                                           level
==============================================  =====
NO_ROBOT, WAITING, STALE, a loop at a halt      STALE
REFUSED, FAULT                                  ERROR
codes 1 to 6: singularity, joint bound          WARN
code 0, with every tenth cycle late or more     WARN
code 0: following, reached, paused              OK
==============================================  =====
"""

import math
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus

from dls_ik.model.robot import RobotModel
from dls_ik.ros.watch.meter import LoopFigures
from dls_ik.servo.output import ServoOutput
from dls_ik.servo.state import ServoState
from dls_ik.servo.supervision import suggested_deviation

HELD = 0.5  # from which a joint counts as held
SILENT = (ServoState.NO_ROBOT, ServoState.WAITING, ServoState.STALE)
LATE = 0.1  # share of late cycles from which the rate is not kept


def verdict(state: ServoState, words: str, loop: LoopFigures) -> tuple[Any, str]:
    """The level, and a sentence about it."""
    words = words or state.explanation
    if not loop.recent_cycles:
        return DiagnosticStatus.STALE, "the loop is at a halt"
    if state in SILENT:
        return DiagnosticStatus.STALE, words
    if state.code < 0:
        return DiagnosticStatus.ERROR, words
    if state.code > 0:
        return DiagnosticStatus.WARN, words
    if loop.recent_overruns >= LATE * loop.recent_cycles:
        late = f"{loop.recent_overruns} of {loop.recent_cycles} cycles began late"
        return DiagnosticStatus.WARN, f"{words}; {late}"
    return DiagnosticStatus.OK, words


def loop_values(loop: LoopFigures, rate: float) -> dict[str, str]:
    """How the loop keeps its rate [Hz]."""
    return {
        "rate asked [Hz]": f"{rate:g}",
        "rate measured [Hz]": f"{loop.rate:.1f}",
        "cycles": str(loop.cycles),
        "overruns": str(loop.overruns),
        "mean cycle time [ms]": f"{1e3 * loop.mean:.3f}",
        "worst cycle time [ms]": f"{1e3 * loop.worst:.3f}",
    }


def motion_values(robot: RobotModel, output: ServoOutput) -> dict[str, str]:
    """How the arm follows; what is not known is nan."""
    distances = np.minimum(output.q - robot.lower, robot.upper - output.q)
    nearest = int(np.argmin(distances))
    names = robot.joint_names
    held = [name for name, held in zip(names, output.held, strict=True) if held > HELD]
    each = zip(names, distances, strict=True)
    return {
        "target age [s]": f"{output.target_age:.3f}",
        "position error [m]": f"{output.position_error:.3g}",
        "rotation error [rad]": f"{output.rotation_error:.3g}",
        "least singular value": f"{output.least_singular_value:.4g}",
        "condition": f"{output.condition:.4g}",
        "held joints": ", ".join(held) or "none",
        "least distance to a limit [rad or m]": f"{distances[nearest]:.4f}",
        "joint nearest to a limit": names[nearest],
        **{f"distance to a limit, {name} [rad or m]": f"{d:.4f}" for name, d in each},
    }


def lag_values(robot: RobotModel, lag: float) -> dict[str, str]:
    """How late the arm follows its commands [s], and what that means for its supervision."""
    if math.isnan(lag):
        return {"lag of the arm [s]": "not known: no joint states, or no motion yet"}
    speeds = robot.velocity[np.isfinite(robot.velocity)]
    if not len(speeds):
        return {"lag of the arm [s]": f"{lag:.3f}"}
    return {
        "lag of the arm [s]": f"{lag:.3f}",
        "max_deviation for that lag [rad or m]": f"{suggested_deviation(speeds.max(), lag):.2f}",
    }
