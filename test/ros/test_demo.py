# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The demonstration asks for what it claims, its figures are right, and its verdict follows."""

import io
import json
import sys

import numpy as np
import pytest

pytest.importorskip("rich", reason="needs rich")
pytest.importorskip("matplotlib", reason="needs matplotlib")

from matplotlib.colors import to_rgba
from rich.console import Console

from dls_ik import IkSolver, PlanningScene
from dls_ik.errors import Code
from dls_ik.model import RobotModel
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.plot.canvas import BLUE, RED
from dls_ik.ros.demo.__main__ import main
from dls_ik.ros.demo.measure import (
    EIGHT_LENGTH,
    EIGHT_WIDTH,
    HOME_POSITIONS,
    REACH,
    READY,
    TOOL,
    IndependentCheck,
    PoseCheck,
    StreamRecording,
    demo_poses,
    evaluate,
    independent_check,
    joint_uses,
    target_path,
)
from dls_ik.ros.demo.obstacle import (
    MIN_DISTANCE,
    SIZE,
    Encounter,
    arm_shapes,
    box_distances,
    box_pose,
    draw_encounter,
    evaluate_encounter,
    obstacle_plan,
)
from dls_ik.ros.demo.report import (
    Load,
    criteria,
    has_passed,
    print_answers,
    print_criteria,
    print_tracking,
    save_report,
)
from dls_ik.ros.frames import pose_errors

ROBOT = RobotModel.wam()
POSES = demo_poses(ROBOT)
RATE = 100.0
STEP = 0.1  # [rad] step of the grid over joints 2, 3 and 4
FK = IndependentCheck("fk", ROBOT.fk)


# The poses


def wrists(*joints):
    """Distance from the first axis, and height, of the wrist (k, 2); joint 1 changes neither."""
    q = np.zeros((joints[0].size, ROBOT.n))
    q[:, 1:4] = np.array([values.ravel() for values in joints]).T
    T = ROBOT.fk(q)
    wrist = T[:, :3, 3] - TOOL * T[:, :3, 2]
    return np.column_stack([np.hypot(wrist[:, 0], wrist[:, 1]), wrist[:, 2]])


def grid(joint, step):
    return np.arange(ROBOT.lower[joint], ROBOT.upper[joint] + step, step)


def wrist_of(pose):
    x, y, z = pose.T[:3, 3] - TOOL * pose.T[:3, 2]
    return np.array([np.hypot(x, y), z])


def test_poses_marked_unreachable_are_out_of_reach_on_a_joint_grid():
    """Every wrist on the grid is farther away than a joint moves it between grid points."""
    assert sum(pose.reachable for pose in POSES) == 8
    assert len({pose.name for pose in POSES}) == 12
    elbow = grid(3, 1e-3)
    reach = np.linalg.norm(wrists(np.zeros_like(elbow), np.zeros_like(elbow), elbow), axis=1)
    assert reach.max() == pytest.approx(REACH, abs=1e-6)
    around = wrists(*np.meshgrid(grid(1, STEP), grid(2, STEP), grid(3, STEP)))
    forearm = np.hypot(0.3, 0.045)
    coarse = 0.5 * STEP * (2.0 * REACH + forearm)
    for pose in POSES:
        if pose.reachable:
            continue
        length = np.linalg.norm(wrist_of(pose))
        too_far, too_near = length - reach.max(), reach.min() - length
        elsewhere = np.linalg.norm(around - wrist_of(pose), axis=1).min()
        assert max(too_far - 1e-3 * forearm, too_near - 1e-3 * forearm, elsewhere - coarse) > 5e-3


# The path


def test_target_path_starts_at_the_arm_and_evaluates_only_the_figure_eight():
    sent = target_path(ROBOT, np.array(READY), RATE, 10.0)
    np.testing.assert_allclose(sent.poses[0], ROBOT.fk(READY), atol=1e-12)
    assert len(sent.poses) - sent.first_evaluated == 1000
    centre = ROBOT.fk(HOME_POSITIONS)[:3, 3]
    away = sent.poses[sent.first_evaluated :, :3, 3] - centre
    np.testing.assert_allclose(away.max(axis=0), [EIGHT_WIDTH, EIGHT_LENGTH, 0.0], atol=1e-3)
    np.testing.assert_allclose(away.min(axis=0), [-EIGHT_WIDTH, -EIGHT_LENGTH, 0.0], atol=1e-3)

    assert np.linalg.norm(np.diff(sent.poses[:, :3, 3], axis=0), axis=1).max() * RATE < 0.75
    assert np.linalg.norm(np.diff(sent.poses[:, :3, 3], 2, axis=0), axis=1).max() * RATE**2 < 4.0


# The independent check, the options


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 2.0, np.pi - 1e-9, np.pi])
def test_pose_errors_are_right_at_every_angle(angle):
    T = transform(rotation_from_rpy(0.3, -0.4, 2.0), np.array([1.0, 2.0, 3.0]))
    turned = T @ transform(rotation_from_rpy(angle, 0.0, 0.0), np.array([0.0, 3e-4, 4e-4]))
    assert pose_errors(T, turned) == pytest.approx((5e-4, angle), abs=1e-12)


def test_pykdl_and_numpy_checks_compute_equal_poses(monkeypatch):
    here = independent_check(ROBOT)
    monkeypatch.setitem(sys.modules, "PyKDL", None)
    plain = independent_check(ROBOT)
    assert plain.name == "NumPy"
    for q in ROBOT.random(20, np.random.default_rng(0)):
        np.testing.assert_allclose(here.pose(q), plain.pose(q), atol=1e-12)


@pytest.mark.parametrize(
    "words", [["--rate", "5"], ["--rate", "nan"], ["--seconds", "x"], ["--output"], ["bogus"]]
)
def test_invalid_options_exit_with_code_2(words, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)
    assert end.value.code == 2
    assert words[0] in capsys.readouterr().err


# The box


def encounter(distance):
    """The arm at a distance from the box while this is there, and on the figure afterwards."""
    times = np.arange(0.0, 5.0, 0.1)
    error = np.where(times < 3.0, 0.05, 0.0)
    at, away = np.zeros((len(times), 3)), np.full(len(times), distance)
    q = np.tile(HOME_POSITIONS, (len(times), 1))
    return Encounter(times, at, at, away, "wam_link7", (1.0, 3.0), 0.5, error, q)


PAST_BOX = encounter(MIN_DISTANCE)


def test_box_distances_equal_those_of_coal():
    pytest.importorskip("coal", reason="needs coal")
    T_box = box_pose(ROBOT)
    scene = PlanningScene(ROBOT)
    scene.add_box("box", SIZE, T_box)
    seeds = np.array(HOME_POSITIONS) + np.random.default_rng(1).uniform(-0.6, 0.6, (40, 7))
    seeds[:, 0] += 0.4
    found = np.min([box_distances(part, seeds, ROBOT, T_box) for part in arm_shapes(ROBOT)], 0)
    exact = [
        max(0.0, min(d for pair, d in scene.clearance(q).items() if "box" in pair)) for q in seeds
    ]
    np.testing.assert_allclose(found, exact, atol=2e-5)
    assert (found > 0.0).sum() > 10
    assert (found == 0.0).sum() > 3


def test_motion_through_the_box_fails_the_criteria():
    plan = obstacle_plan(ROBOT, 0.3, RATE)
    assert plan.box_disappears - plan.box_appears == 5.0
    poses = plan.path.poses[plan.path.first_evaluated :]
    times = np.arange(len(poses)) / RATE
    solver, q = IkSolver(ROBOT), [np.array(HOME_POSITIONS)]
    for T in poses:
        q.append(solver.solve(T, q[-1], solve_type="distance").q)
    recording = StreamRecording(times, poses, times, times, np.array(q[1:]))
    found = evaluate_encounter(recording, plan, ROBOT, FK)
    assert found.min_box_distance == 0.0
    assert found.inside > 0.3
    assert found.error_after_box < 1e-6
    assert not has_passed([*criteria_of(found)])
    assert has_passed([*criteria_of(PAST_BOX)])


@pytest.mark.parametrize("pause", [0.0, 3.0])
def test_box_published_late_is_evaluated_only_while_it_is_present(pause):
    """The arm, which follows the figure, is in the way of the box before it appears."""
    plan = obstacle_plan(ROBOT, 0.3, RATE)
    poses = plan.path.poses[plan.path.first_evaluated :]
    k = np.arange(len(poses))
    sent = k / RATE + np.where(k < plan.box_appears * RATE / 2.0, 0.0, pause)
    q = np.repeat(np.array(HOME_POSITIONS)[None], len(poses), axis=0)
    found = evaluate_encounter(StreamRecording(sent, poses, sent, sent, q), plan, ROBOT, FK)
    there = k[found.is_there]
    assert there[0] == round(plan.box_appears * RATE)
    assert there[-1] == round(plan.box_disappears * RATE)
    errors = np.linalg.norm(poses[:, :3, 3] - FK.pose(q[0])[:3, 3], axis=1)
    lap = errors[: round((plan.box_disappears - plan.box_appears) * RATE)]
    assert found.error.max() == pytest.approx(lap.min(), abs=2e-3), "the figure is a whole lap"


def test_the_picture_shows_the_closest_link_and_the_minimum_distance():
    """The red line ends in the closest points of another library, at the instant that it finds."""
    pytest.importorskip("coal", reason="needs coal")
    plan, scene = obstacle_plan(ROBOT, 0.3, RATE), PlanningScene(ROBOT)
    scene.add_box("box", SIZE, box_pose(ROBOT))
    poses = plan.path.poses[plan.path.first_evaluated :]
    times = np.arange(len(poses)) / RATE
    q = np.tile(HOME_POSITIONS, (len(poses), 1))
    q[:, 0] += 0.1 * np.sin(times)
    found = evaluate_encounter(StreamRecording(times, poses, times, times, q), plan, ROBOT, FK)
    there = np.flatnonzero((times >= plan.box_appears) & (times <= plan.box_disappears))
    distances = [
        min(d for pair, d in scene.clearance(q[k]).items() if "box" in pair) for k in there
    ]
    assert found.closest == there[np.argmin(distances)]
    figure = draw_encounter(found)
    arm, link, distance, _ = figure.axes
    (ends,) = [line.get_xydata() for line in link.lines if line.get_color() == RED]
    length = np.linalg.norm(ends[1] - ends[0])
    assert 0.0 < 1e-2 * length <= min(distances) + 1e-4
    nearest = scene.distance(q[found.closest])
    assert "box" in nearest.names
    expected = 1e2 * np.array(sorted(nearest.points[:, [1, 0]].tolist()))
    np.testing.assert_allclose(sorted(ends.tolist()), expected, atol=0.05)
    assert f"{1e3 * min(distances):.1f} mm" in [text.get_text() for text in link.texts]
    (point,) = [line for line in distance.lines if line.get_marker() == "o"]
    assert point.get_xdata()[0] == times[found.closest]
    blue = [each for each in arm.collections if is_filled(each, BLUE)]
    assert len(blue) == 2 * sum(part[0] == found.link for part in arm_shapes(ROBOT))


def is_filled(polygons, colour):
    return np.allclose(polygons.get_facecolor()[0], to_rgba(colour))


def criteria_of(encounter):
    motion, tracking = evaluate(straight_recording(0.01), FK)
    return criteria(good_answers(), tracking, joint_uses(ROBOT, motion), encounter, RATE)


# The figures


def straight_recording(delay, stale=0.0):
    """Joint 1 turns at 0.5 rad/s and follows its targets after a delay, in messages of 2 ms."""
    sent = np.arange(-1.0, 4.0, 0.01)
    received = sent[100:] + 0.005
    start = np.array(HOME_POSITIONS)

    def at(times):
        return start + np.outer(0.5 * times, np.eye(7)[0])

    targets = ROBOT.fk(at(sent))
    return StreamRecording(sent, targets, received, received - 0.002 - stale, at(received - delay))


def test_tracking_finds_a_known_lag():
    _, tracking = evaluate(straight_recording(delay=0.03), FK)
    assert tracking.lag == pytest.approx(0.03, abs=6e-4)
    assert tracking.path_error.max < 1e-5
    radius = np.linalg.norm(ROBOT.fk(HOME_POSITIONS)[:2, 3])
    assert tracking.position_error.mean == pytest.approx(0.03 * 0.5 * radius, rel=0.02)
    assert tracking.state_rate == pytest.approx(100.0, rel=0.01)


def test_path_error_in_a_long_target_gap_refers_to_the_last_target():
    whole = straight_recording(delay=0.0)
    kept = (whole.sent < 1.0) | (whole.sent > 2.0)
    paused = whole._replace(sent=whole.sent[kept], targets=whole.targets[kept])
    _, tracking = evaluate(paused, FK)
    radius = np.linalg.norm(ROBOT.fk(HOME_POSITIONS)[:2, 3])
    assert tracking.path_error.max == pytest.approx(2.0 * radius * np.sin(0.25), rel=0.05)


def test_latency_ignores_states_computed_before_the_target():
    _, tracking = evaluate(straight_recording(delay=0.0), FK)
    assert tracking.latency.median == pytest.approx(0.005)
    assert tracking.delivery.p99 == pytest.approx(0.002)
    _, tracking = evaluate(straight_recording(delay=0.0, stale=0.004), FK)
    assert tracking.latency.median == pytest.approx(0.015)  # not from the state before


def test_lost_joint_states_do_not_increase_reported_joint_speeds():
    whole = straight_recording(delay=0.0)
    kept = np.delete(np.arange(len(whole.q)), [50, 51, 52, 90, 91])
    parts = {name: getattr(whole, name)[kept] for name in ("received", "stamps", "q")}
    for recording in (whole, whole._replace(**parts)):
        motion, _ = evaluate(recording, FK)
        first, second, *_ = joint_uses(ROBOT, motion)
        assert first.top_speed == pytest.approx(0.5)
        assert first.margin == pytest.approx(ROBOT.upper[0] - 2.0, abs=0.02)
        assert (second.top_speed, second.margin) == (0.0, pytest.approx(1.5))


def good_answers():
    errors = [
        (Code.SUCCESS, np.array(HOME_POSITIONS), 1e-7, 1e-7, True),
        (Code.NO_IK_SOLUTION, None, np.nan, np.nan, 0),
    ]
    return [PoseCheck(pose, *errors[not pose.reachable], 1e-3) for pose in POSES]


def found(answers, recording):
    motion, tracking = evaluate(recording, FK)
    return criteria(answers, tracking, joint_uses(ROBOT, motion), PAST_BOX, RATE)


def test_correct_answers_and_tracking_pass_all_checks():
    assert all(check.holds for check in found(good_answers(), straight_recording(0.01)))


@pytest.mark.parametrize(
    ("index", "change"),
    [
        (0, {"code": Code.NO_IK_SOLUTION}),
        (0, {"position_error": 1.1e-6}),
        (0, {"rotation_error": np.nan}),
        (0, {"inside_limits": False}),
        (11, {"code": Code.SUCCESS}),
        (11, {"code": 99999}),
    ],
)
def test_one_wrong_answer_is_enough_to_fail(index, change):
    answers = good_answers()
    answers[index] = answers[index]._replace(**change)
    failed = [check for check in found(answers, straight_recording(0.01)) if not check.holds]
    assert len(failed) == 1
    assert ("unreachable" in failed[0].text) == (index == 11)


def test_stationary_arm_fails_the_tip_tracking_checks():
    recording = straight_recording(0.01)
    still = recording._replace(q=np.repeat(recording.q[:1], len(recording.q), axis=0))
    failed = [check.text for check in found(good_answers(), still) if not check.holds]
    assert len(failed) == 4
    assert failed[0].startswith("the tip followed the whole figure")
    assert all(text.startswith("tip within") for text in failed[1:])


def test_joint_states_that_stop_halfway_fail_the_checks():
    recording = straight_recording(0.01)
    half = len(recording.received) // 2
    silent = recording._replace(
        received=recording.received[:half], stamps=recording.stamps[:half], q=recording.q[:half]
    )
    failed = [check.text for check in found(good_answers(), silent) if not check.holds]
    assert [text[:20] for text in failed] == [
        "the tip followed the", "joint states arrived", "joint states arrived",
    ]  # fmt: skip
    assert "until 50% of the targets" in failed[1]
    assert "at 50.1 Hz" in failed[2]


def test_timing_failures_alone_do_not_fail_the_demo():
    """As on a busy machine: the arm is 0.2 s behind, and every second state is lost."""
    recording = straight_recording(0.2)
    late = recording._replace(
        received=recording.received[::2], stamps=recording.stamps[::2], q=recording.q[::2]
    )
    checks = found(good_answers(), late)
    assert sum(not check.holds for check in checks) == 3
    assert all(check.depends_on_time for check in checks if not check.holds)
    assert has_passed(checks)
    stray = recording._replace(q=recording.q + 0.3)
    assert not has_passed(found(good_answers(), stray))


def test_answers_and_checks_are_printed_in_ascii():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    console = Console(file=file, width=80)
    answers, recording = good_answers(), straight_recording(0.01)
    answers[0] = answers[0]._replace(inside_limits=False)
    print_answers(console, answers)
    print_tracking(console, evaluate(recording, FK)[1])
    print_criteria(console, found(answers, recording))
    file.flush()
    lines = file.buffer.getvalue().decode("ascii").splitlines()
    assert all(len(line) <= 80 for line in lines)
    assert sum("SUCCESS (WRONG)" in line for line in lines) == 1
    assert sum(line.startswith("NO  7 of 8 reachable poses") for line in lines) == 1


def test_report_is_strict_json_without_nan(tmp_path):
    motion, tracking = evaluate(straight_recording(0.01), FK)
    uses = joint_uses(ROBOT, motion)
    checks = criteria(good_answers(), tracking, uses, PAST_BOX, RATE)
    load = Load(2, 4.0)
    file = tmp_path / "new" / "report.json"
    save_report(file, good_answers(), tracking, uses, PAST_BOX, checks, load)
    report = json.loads(file.read_text(), parse_constant=pytest.fail)
    assert report["passed"] is True
    assert report["load"]["is_busy"] is True
    assert report["answers"][11]["position_error"] is None
    assert report["joints"][0]["name"] == "wam_j1"
    assert report["tracking"]["latency"]["median"] == pytest.approx(0.005)
