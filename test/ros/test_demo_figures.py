"""The figures of the demonstration are right, and its verdict follows from them."""

import io
import json
import os
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
pytest.importorskip("rich", reason="needs rich")
pytest.importorskip("matplotlib", reason="needs matplotlib")

from rich.console import Console

from dls_ik.model import RobotModel
from dls_ik.ros.demo.ask import HOME, Answer, IndependentCheck, poses
from dls_ik.ros.demo.node import NO_IK_SOLUTION, SUCCESS
from dls_ik.ros.demo.report import (
    answers_table,
    criteria_lines,
    joints_table,
    save_report,
    timing_table,
    tracking_table,
)
from dls_ik.ros.demo.stream import Recording, distance_to_way, joint_uses, motion_of
from dls_ik.ros.demo.verdict import Load, LoadMeter, criteria, has_passed

ROBOT = RobotModel.wam()
POSES = poses(ROBOT)
RATE = 100.0


def straight_recording(delay, stale=0.0):
    """Joint 1 turns at 0.5 rad/s and follows its targets after a delay, in messages of 2 ms."""
    sent = np.arange(-1.0, 4.0, 0.01)
    received = sent[100:] + 0.005
    start = np.array(HOME)

    def at(times):
        return start + np.outer(0.5 * times, np.eye(7)[0])

    targets = ROBOT.fk(at(sent))
    return Recording(sent, targets, received, received - 0.002 - stale, at(received - delay))


def plain_check():
    return IndependentCheck("fk", ROBOT.fk)


def test_tracking_finds_a_known_lag():
    _, tracking = motion_of(straight_recording(delay=0.03), plain_check())
    assert tracking.lag == pytest.approx(0.03, abs=6e-4)
    assert tracking.path_error.max < 1e-5
    radius = np.linalg.norm(ROBOT.fk(HOME)[:2, 3])
    assert tracking.position_error.mean == pytest.approx(0.03 * 0.5 * radius, rel=0.02)
    assert tracking.state_rate == pytest.approx(100.0, rel=0.01)


def test_a_pause_in_sending_longer_than_any_lag_is_measured_from_the_last_target():
    whole = straight_recording(delay=0.0)
    kept = (whole.sent < 1.0) | (whole.sent > 2.0)
    paused = whole._replace(sent=whole.sent[kept], targets=whole.targets[kept])
    _, tracking = motion_of(paused, plain_check())
    radius = np.linalg.norm(ROBOT.fk(HOME)[:2, 3])
    assert tracking.path_error.max == pytest.approx(2.0 * radius * np.sin(0.25), rel=0.05)


def test_latency_waits_for_a_state_that_was_computed_later():
    _, tracking = motion_of(straight_recording(delay=0.0), plain_check())
    assert tracking.latency.median == pytest.approx(0.005)
    assert tracking.delivery.p99 == pytest.approx(0.002)
    _, tracking = motion_of(straight_recording(delay=0.0, stale=0.004), plain_check())
    assert tracking.latency.median == pytest.approx(0.015)  # not from the state before


def test_joint_uses():
    motion, _ = motion_of(straight_recording(delay=0.0), plain_check())
    first, second, *_ = joint_uses(ROBOT, motion)
    assert first.top_speed == pytest.approx(0.5)
    assert first.room == pytest.approx(ROBOT.upper[0] - 2.0, abs=0.02)
    assert second.top_speed == 0.0
    assert second.room == pytest.approx(1.5)


def test_where_states_are_lost_no_joint_is_called_faster():
    whole = straight_recording(delay=0.0)
    kept = np.delete(np.arange(len(whole.q)), [50, 51, 52, 90, 91])
    parts = {name: getattr(whole, name)[kept] for name in ("received", "stamps", "q")}
    motion, _ = motion_of(whole._replace(**parts), plain_check())
    assert joint_uses(ROBOT, motion)[0].top_speed == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("point", "distance"), [((0.5, 0.2, 0), 0.2), ((-1, 0, 0), 1.0), ((1, 3, 0), 2.0)]
)
def test_distance_to_way(point, distance):
    way = np.array([[0.0, 0, 0], [0.0, 0, 0], [1.0, 0, 0], [1.0, 1.0, 0]])
    assert distance_to_way(np.array(point), way) == pytest.approx(distance)


def good_answers():
    errors = [
        (SUCCESS, np.array(HOME), 1e-7, 1e-7, True),
        (NO_IK_SOLUTION, None, np.nan, np.nan, 0),
    ]
    return [Answer(pose, *errors[not pose.reachable], 1e-3, 1e-4) for pose in POSES]


def found(answers, recording):
    motion, tracking = motion_of(recording, plain_check())
    return criteria(answers, tracking, joint_uses(ROBOT, motion), RATE)


def test_all_checks_hold_when_all_is_well():
    assert all(check.holds for check in found(good_answers(), straight_recording(0.01)))


@pytest.mark.parametrize(
    ("index", "change"),
    [
        (0, {"code": NO_IK_SOLUTION}),
        (0, {"position_error": 1.1e-6}),
        (0, {"rotation_error": np.nan}),
        (0, {"inside": False}),
        (11, {"code": SUCCESS}),
        (11, {"code": 99999}),
    ],
)
def test_one_wrong_answer_is_enough_to_fail(index, change):
    answers = good_answers()
    answers[index] = answers[index]._replace(**change)
    failed = [check for check in found(answers, straight_recording(0.01)) if not check.holds]
    assert len(failed) == 1
    assert ("unreachable" in failed[0].text) == (index == 11)


def test_an_arm_that_stands_still_fails():
    recording = straight_recording(0.01)
    still = recording._replace(q=np.repeat(recording.q[:1], len(recording.q), axis=0))
    failed = [check.text for check in found(good_answers(), still) if not check.holds]
    assert len(failed) == 4
    assert failed[0].startswith("the tip drew the figure")
    assert all(text.startswith("tip within") for text in failed[1:])


def test_a_node_that_falls_silent_fails():
    recording = straight_recording(0.01)
    half = len(recording.received) // 2
    silent = recording._replace(
        received=recording.received[:half], stamps=recording.stamps[:half], q=recording.q[:half]
    )
    failed = [check.text for check in found(good_answers(), silent) if not check.holds]
    assert [text[:20] for text in failed] == [
        "the tip drew the fig", "joint states came un", "joint states came at",
    ]  # fmt: skip
    assert "until 50% of the targets" in failed[1]
    assert "at 50.1 Hz" in failed[2]


def test_what_comes_late_does_not_decide():
    """As on a busy machine: the arm is 0.2 s behind, and every second state is lost."""
    recording = straight_recording(0.2)
    late = recording._replace(
        received=recording.received[::2], stamps=recording.stamps[::2], q=recording.q[::2]
    )
    checks = found(good_answers(), late)
    assert sum(not check.holds for check in checks) == 3
    assert all(check.by_the_clock for check in checks if not check.holds)
    assert has_passed(checks)
    stray = recording._replace(q=recording.q + 0.3)
    assert not has_passed(found(good_answers(), stray))


def test_the_load_is_that_of_other_programs():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as other:
        theirs, ours = LoadMeter(), LoadMeter(other.pid)
        while LoadMeter(other.pid)._before[1] - ours._before[1] < 0.5:
            time.sleep(0.02)
        loads = theirs.result(), ours.result()
        other.kill()
    assert 0.0 <= loads[1].others < loads[0].others <= 1.0
    assert f"of {os.cpu_count()} cores" in str(loads[0])
    assert Load(2, 9.0, None).is_busy
    assert not Load(2, 0.1, 0.1).is_busy


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_tables_fit_60_columns_of_any_terminal(encoding):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=60)
    motion, tracking = motion_of(straight_recording(0.01), plain_check())
    uses = joint_uses(ROBOT, motion)
    checks = criteria(good_answers(), tracking, uses, RATE)
    console.print(answers_table(console, good_answers(), "PyKDL"))
    console.print(tracking_table(tracking))
    console.print(timing_table(tracking))
    console.print(joints_table(console, uses))
    console.print(criteria_lines(console, checks))
    file.flush()
    text = file.buffer.getvalue().decode(encoding)
    assert all(len(line) <= 60 for line in text.splitlines())
    for word in ("NO_IK_SOLUTION", "1e-07 rad", "wam_j7", "99 %", "2.6"):
        assert word in text
    assert "\u2026" not in text  # nothing was cut off


def test_report_is_json_that_every_program_reads(tmp_path):
    motion, tracking = motion_of(straight_recording(0.01), plain_check())
    uses = joint_uses(ROBOT, motion)
    checks = criteria(good_answers(), tracking, uses, RATE)
    load = Load(2, 1.0, 0.5)
    save_report(tmp_path / "new" / "report.json", good_answers(), tracking, uses, checks, load)
    report = json.loads((tmp_path / "new" / "report.json").read_text(), parse_constant=pytest.fail)
    assert report["passed"] is True
    assert report["load"]["is_busy"] is True
    assert report["answers"][11]["position_error"] is None
    assert report["joints"][0]["name"] == "wam_j1"
    assert report["tracking"]["latency"]["median"] == pytest.approx(0.005)
