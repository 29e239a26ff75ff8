# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Counters of the loop, diagnostics, the tip and its trail, and markers."""

import math

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.serialization import deserialize_message, serialize_message
from robots import URDF, joint, urdf
from visualization_msgs.msg import Marker

from dls_ik import RobotModel
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.ros.frames import matrix_from_pose
from dls_ik.ros.servo.markers import MarkerMessage, colour_of
from dls_ik.ros.servo.monitor import (
    CycleReport,
    LoopFigures,
    LoopMeter,
    diagnostic_level,
    motion_diagnostics,
)
from dls_ik.ros.servo.tip import MAX_TRAIL_POINTS, Tip, Trail
from dls_ik.servo.scene_state import NearPair
from dls_ik.servo.state import ServoOutput, ServoState
from dls_ik.servo.workspace import BoxBound, HalfSpace, SphereBound

OK, WARN, ERROR, STALE = (
    DiagnosticStatus.OK,
    DiagnosticStatus.WARN,
    DiagnosticStatus.ERROR,
    DiagnosticStatus.STALE,
)
CALM = LoopFigures(500, 3, 100, 0, 99.9, 0.001, 0.002)
NAN = math.nan


def test_meter_counts_recent_and_all_cycles():
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


def test_meter_without_cycles_has_a_nan_mean_and_level_stale():
    figures = LoopMeter(0.01, 100.0).read(101.0)
    assert figures[:5] == (0, 0, 0, 0, 0.0)
    assert math.isnan(figures.mean)
    assert diagnostic_level(CycleReport(ServoState.FOLLOWING), figures)[0] == STALE


LEVELS = {
    STALE: (ServoState.NO_ROBOT, ServoState.STALE),
    OK: (
        ServoState.WAITING,
        ServoState.FOLLOWING,
        ServoState.REACHED,
        ServoState.JOINT_MOTION,
        ServoState.PAUSED,
        ServoState.TIMED_OUT,
    ),
    ERROR: (ServoState.REFUSED, ServoState.FAULT),
}


@pytest.mark.parametrize("state", ServoState)
def test_diagnostic_level_and_message_follow_the_state(state):
    level = next((level for level, states in LEVELS.items() if state in states), WARN)
    assert diagnostic_level(CycleReport(state), CALM) == (level, state.explanation)
    assert diagnostic_level(CycleReport(state, "why"), CALM)[1] == "why"


def test_idle_is_ok_unless_joint_states_are_missing_or_targets_are_held():
    idle = CycleReport(ServoState.WAITING)
    assert diagnostic_level(idle, CALM)[0] == OK
    assert diagnostic_level(idle._replace(awaits_states=True), CALM)[0] == STALE
    assert diagnostic_level(idle._replace(are_targets_held=True), CALM)[0] == WARN


def test_late_cycles_cause_a_warning():
    lagging, following = CALM._replace(recent_overruns=10), CycleReport(ServoState.FOLLOWING)
    level, words = diagnostic_level(following, lagging)
    assert level == WARN
    assert "10 of 100 cycles started late" in words
    assert diagnostic_level(CycleReport(ServoState.REFUSED), lagging)[0] == ERROR
    assert diagnostic_level(following, CALM._replace(recent_overruns=9))[0] == OK


def test_motion_diagnostics_report_errors_limits_and_held_joints():
    robot = RobotModel.wam()
    q, held = robot.clip(np.zeros(robot.n)), np.zeros(robot.n)
    q[1], held[3] = robot.upper[1] - 0.125, 0.6
    figures = (1e-3, 2e-3, 0.25, 12.0)
    output = ServoOutput(q, 0 * q, ServoState.FOLLOWING, "", None, *figures, held, 0.5)
    values = motion_diagnostics(robot, output)
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


def test_unknown_motion_values_are_shown_as_nan_or_none():
    robot = RobotModel.wam()
    q = np.zeros(robot.n)
    output = ServoOutput(q, q, ServoState.WAITING, "", None, NAN, NAN, NAN, NAN, q + NAN, NAN)
    values = motion_diagnostics(robot, output)
    assert values["condition"] == values["target age [s]"] == "nan"
    assert values["held joints"] == "none"


RAIL = urdf(
    "world rail foot arm hand",
    joint("slide", "prismatic", "world", "rail", axis="0 1 0"),
    joint("stand", "fixed", "rail", "foot", '<origin xyz="0 0 0.5"/>'),
    joint("turn", "revolute", "foot", "arm", '<limit lower="-2" upper="2" velocity="1"/>'),
    joint("end", "fixed", "arm", "hand", '<origin xyz="1 0 0"/>'),
)


@pytest.fixture
def planar():
    return Tip(RobotModel.from_urdf(URDF / "planar_2r.urdf"), dict)


def sent(message):
    return deserialize_message(serialize_message(message), type(message))


def test_tip_is_in_the_root_frame_when_the_base_moves():
    heard = {"stranger": 7.0}
    tip = Tip(RobotModel.from_urdf(RAIL, "foot", "hand"), lambda: heard)
    assert tip.frame == "world"
    assert tip.poses(np.zeros(1))[:3, 3] == pytest.approx([1.0, 0.0, 0.5])
    heard["slide"] = 0.25
    both = tip.poses(np.array([[0.0], [np.pi / 2]]))[:, :3, 3]
    assert both == pytest.approx(np.array([[1.0, 0.25, 0.5], [0.0, 1.25, 0.5]]))
    assert tip.in_root(np.eye(4))[:3, 3] == pytest.approx([0.0, 0.25, 0.5])


def test_trail_keeps_points_for_its_duration(planar):
    trail = Trail(planar, 1.0)
    assert trail.points(0.0).shape == (0, 3)
    for k in range(300):
        trail.sample(0.01 * k, np.array([0.001 * k, 0.0]))
    points = trail.points(3.0)
    angles = np.arctan2(points[:, 1], points[:, 0])
    assert (np.diff(angles) > 0.0).all()
    assert angles[0] >= 0.2 - 1e-9
    assert angles[-1] == pytest.approx(0.3, abs=0.003)
    assert len(points) == pytest.approx(50, abs=2)
    assert len(trail.points(3.5)) == pytest.approx(25, abs=2)
    assert len(trail.points(5.0)) == 0


def test_trail_has_a_maximum_length_and_may_be_off(planar):
    long, none = Trail(planar, 60.0), Trail(planar, 0.0)
    for k in range(60000):
        long.sample(0.001 * k, np.zeros(2))
        none.sample(0.001 * k, np.zeros(2))
    assert MAX_TRAIL_POINTS - 5 < len(long.points(60.0)) <= MAX_TRAIL_POINTS
    assert len(none.points(60.0)) == 0


def test_markers_show_target_tip_and_trail_in_the_state_colour():
    T_tip, T_target = np.eye(4), RobotModel.wam().fk(np.full(7, 0.3))
    T_tip[:3, 3] = [0.1, 0.2, 0.3]
    trail = np.arange(9.0).reshape(3, 3)
    message = MarkerMessage("world", 1.0)
    message.fill(ServoState.FAULT, T_tip, None, trail[:1])
    filled = sent(message.fill(ServoState.FOLLOWING, T_tip, T_target, trail))
    target, tip, line, *nearest = filled.markers
    assert all(m.action == Marker.DELETE for m in nearest)
    assert {m.header.frame_id for m in (target, tip, line)} == {"world"}
    assert len({(m.ns, m.id) for m in (target, tip, line)}) == 3
    assert all(m.action == Marker.ADD and m.lifetime.sec == 1 for m in (target, tip, line))
    assert matrix_from_pose(target.pose) == pytest.approx(T_target)
    assert len(target.points) == len(target.colors) == 6
    assert matrix_from_pose(tip.pose) == pytest.approx(T_tip)
    assert [[p.x, p.y, p.z] for p in line.points] == trail.tolist()
    assert matrix_from_pose(line.pose) == pytest.approx(np.eye(4))
    assert tip.color == sent(colour_of(ServoState.FOLLOWING))


def test_markers_without_content_are_deleted():
    message = MarkerMessage("world", 1.0)
    filled = message.fill(ServoState.WAITING, np.eye(4), None, np.zeros((1, 3)))
    target, tip, line, *_ = sent(filled).markers
    assert (target.action, tip.action, line.action) == (Marker.DELETE, Marker.ADD, Marker.DELETE)


def test_markers_show_the_closest_pair_and_workspace_bounds():
    T = transform(rotation_from_rpy(0.1, 0.2, 0.3), np.array([0.4, 0.5, 0.6]))
    bounds = [
        BoxBound(np.array([1.0, 2.0, 3.0]), T, name="cell"),
        SphereBound(0.7, T, name="ball"),
        HalfSpace(np.array([0.0, 1.0, 0.0]), 0.2, name="side"),
    ]
    points = np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0.35]])
    pair = NearPair(("crate", "hand"), 0.05, points, np.array([0.0, 0.0, 1.0]))
    message = MarkerMessage("world", 1.0, bounds)
    filled = message.fill(ServoState.BLOCKED, np.eye(4), None, np.zeros((0, 3)), pair)
    found = {m.ns: m for m in sent(filled).markers}
    line, text = found["nearest"], found["nearest distance"]
    assert [[p.x, p.y, p.z] for p in line.points] == points.tolist()
    assert text.text == "crate - hand: 50 mm"
    assert line.color == sent(colour_of(ServoState.FAULT)), "red: it is blocked"
    cell, ball, side = (found[f"bound {name}"] for name in ("cell", "ball", "side"))
    assert (cell.scale.x, cell.scale.y, cell.scale.z) == (1.0, 2.0, 3.0)
    assert matrix_from_pose(cell.pose) == pytest.approx(T)
    assert (ball.type, ball.scale.x) == (Marker.SPHERE, 1.4)
    assert matrix_from_pose(side.pose)[:3, 2] == pytest.approx([0.0, 1.0, 0.0])
    assert side.pose.position.y == pytest.approx(0.2)
    gone = message.fill(ServoState.FOLLOWING, np.eye(4), None, np.zeros((0, 3)))
    assert {m.ns for m in gone.markers if m.action == m.DELETE} >= {"nearest", "nearest distance"}


def test_states_have_different_colours():
    told = ("FOLLOWING", "JOINT_MOTION", "NEAR_SINGULARITY", "JOINT_BOUND", "FAULT", "PAUSED")
    assert len({str(colour_of(ServoState[name])) for name in told}) == len(told)
    assert colour_of(ServoState.FOLLOWING) == colour_of(ServoState.REACHED)
    assert all(colour_of(state).a == 1.0 for state in ServoState)
