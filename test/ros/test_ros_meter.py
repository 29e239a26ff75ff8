"""How the loop's pace is counted, and what diagnostics make of a cycle."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from diagnostic_msgs.msg import DiagnosticStatus

from dls_ik import RobotModel
from dls_ik.ros.servo.monitor import (
    LoopFigures,
    LoopMeter,
    diagnostic_level,
    loop_values,
    motion_values,
)
from dls_ik.servo.state import ServoOutput, ServoState

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK,
    DiagnosticStatus.WARN,
    DiagnosticStatus.ERROR,
    DiagnosticStatus.STALE,
)
CALM = LoopFigures(500, 3, 100, 0, 99.9, 0.001, 0.002)
NAN = math.nan


def test_meter_counts_what_is_new_and_what_is_all():
    meter = LoopMeter(0.01, 100.0)
    for k in range(50):
        began = 100.0 + 0.01 * k
        late = 0.02 if k == 7 else 0.009
        meter.cycle(began - late, began, began + (0.004 if k == 9 else 0.001))
    first = meter.read(100.5)
    assert first[:4] == (50, 1, 50, 1)
    assert first[4:] == pytest.approx((100.0, 53e-3 / 50, 0.004))
    meter.cycle(100.6, 100.6, 100.602)
    second = meter.read(101.0)
    assert second[:4] == (51, 1, 1, 0)
    assert second[4:] == pytest.approx((2.0, 0.002, 0.002))


def test_meter_of_a_loop_at_a_halt():
    figures = LoopMeter(0.01, 100.0).read(101.0)
    assert figures[:5] == (0, 0, 0, 0, 0.0)
    assert math.isnan(figures.mean)
    assert diagnostic_level(ServoState.FOLLOWING, "", figures)[0] == STALE


@pytest.mark.parametrize(
    ("state", "level"),
    [
        (ServoState.NO_ROBOT, STALE),
        (ServoState.WAITING, STALE),
        (ServoState.FOLLOWING, OK),
        (ServoState.REACHED, OK),
        (ServoState.JOINT_MOTION, OK),
        (ServoState.PAUSED, OK),
        (ServoState.NEAR_SINGULARITY, WARN),
        (ServoState.STALLED, WARN),
        (ServoState.UNREACHABLE, WARN),
        (ServoState.LEAVING_SINGULARITY, WARN),
        (ServoState.JOINT_BOUND, WARN),
        (ServoState.STALE, STALE),
        (ServoState.REFUSED, ERROR),
        (ServoState.FAULT, ERROR),
    ],
)
def test_level_of_every_state(state, level):
    assert diagnostic_level(state, "", CALM) == (level, state.explanation)
    assert diagnostic_level(state, "why", CALM)[1] == "why"


def test_a_loop_that_lags_is_a_warning():
    lagging = CALM._replace(recent_overruns=10)
    level, words = diagnostic_level(ServoState.FOLLOWING, "", lagging)
    assert level == WARN
    assert "10 of 100 cycles began late" in words
    assert diagnostic_level(ServoState.REFUSED, "", lagging)[0] == ERROR
    assert diagnostic_level(ServoState.FOLLOWING, "", CALM._replace(recent_overruns=9))[0] == OK


def test_values_of_the_loop():
    values = loop_values(CALM, 100.0)
    assert values["rate asked [Hz]"] == "100"
    assert values["rate measured [Hz]"] == "99.9"
    assert (values["cycles"], values["overruns"]) == ("500", "3")
    assert values["mean cycle time [ms]"] == "1.000"
    assert values["worst cycle time [ms]"] == "2.000"


def test_values_of_the_motion():
    robot = RobotModel.wam()
    q, held = robot.clip(np.zeros(robot.n)), np.zeros(robot.n)
    q[1], held[3] = robot.upper[1] - 0.125, 0.6
    figures = (1e-3, 2e-3, 0.25, 12.0)
    output = ServoOutput(q, 0 * q, ServoState.FOLLOWING, "", None, *figures, held, 0.5)
    values = motion_values(robot, output)
    assert values["held joints"] == robot.joint_names[3]
    assert float(values["least distance to a limit [rad or m]"]) == pytest.approx(0.0, abs=0.13)
    for name, value, low, high in zip(robot.joint_names, q, robot.lower, robot.upper, strict=True):
        distance = float(values[f"distance to a limit, {name} [rad or m]"])
        assert distance == pytest.approx(min(value - low, high - value), abs=1e-4)
    nearest = values["joint nearest to a limit"]
    least = values["least distance to a limit [rad or m]"]
    assert values[f"distance to a limit, {nearest} [rad or m]"] == least
    assert [values[k] for k in ("position error [m]", "rotation error [rad]")] == ["0.001", "0.002"]
    assert [values[k] for k in ("least singular value", "condition")] == ["0.25", "12"]
    assert values["target age [s]"] == "0.500"


def test_values_that_are_not_known():
    robot = RobotModel.wam()
    q = np.zeros(robot.n)
    output = ServoOutput(q, q, ServoState.WAITING, "", None, NAN, NAN, NAN, NAN, q + NAN, NAN)
    values = motion_values(robot, output)
    assert values["condition"] == values["target age [s]"] == "nan"
    assert values["held joints"] == "none"
