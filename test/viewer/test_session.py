# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The session without a page: arms side by side, presets, recordings, and measures."""

import csv
import io
import itertools
import sys
import threading
from html.parser import HTMLParser

import numpy as np
import pytest

from dls_ik.core.limits import activation
from dls_ik.errors import MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.task import Task
from dls_ik.viewer.panels import StatusLine, gain_table
from dls_ik.viewer.plots import (
    AMBER_RGB,
    ARM_COLOURS,
    CURVES,
    GREEN_RGB,
    RED_RGB,
    CurveHistory,
    css,
    csv_header,
    joint_bars,
    limit_colour,
    measure,
    velocity_ellipsoid,
)
from dls_ik.viewer.presets import make_presets, start_configuration
from dls_ik.viewer.replay import joint_path
from dls_ik.viewer.session import ArmView, Session, default_task, local_session
from dls_ik.viewer.source import LocalSource, Sample

DT = 0.01
TIME = itertools.count(1000.0, DT)  # clock of sessions that several steps of a test share [s]


ROBOT = RobotModel.wam()


@pytest.fixture(scope="module")
def presets():
    return make_presets(ROBOT, start_configuration(ROBOT))


@pytest.fixture
def session():
    start = start_configuration(ROBOT)

    def make_second(method, q):
        source = LocalSource(ROBOT, method, start=start)
        source.place(start if q is None else q)
        return source

    made = Session(LocalSource(ROBOT, "ctp+sd+svf", start=start), make_second)
    made.drag_target(ROBOT.fk(start))
    yield made
    made.close()


def run(session, steps, begin=0):
    for k in range(begin, begin + steps):
        seen = session.step(k * DT)
    return seen


def test_added_arm_starts_at_the_configuration_of_the_first_arm(session):
    T = session.target.copy()
    T[1, 3] += 0.2
    session.drag_target(T)
    (first,) = run(session, 30)
    with pytest.raises(MethodError, match="unknown method"):
        session.set_method(1, "nonsense")
    session.set_method(1, "dls")
    both = run(session, 1, 30)
    assert [seen.name for seen in both] == ["ctp+sd+svf", "dls"]
    np.testing.assert_allclose(both[1].sample.q, first.sample.q, atol=2.1 * DT)
    np.testing.assert_allclose(both[1].sample.T_target, T)
    session.set_methods(("ctp", "jp", "sd", "svf"))
    assert [seen.name for seen in run(session, 1, 31)] == ["ctp", "jp", "sd", "svf"]
    session.set_method(2, None)
    assert [seen.name for seen in run(session, 1, 32)] == ["ctp", "jp", "svf"]


def test_preset_moves_all_arms_to_its_start_and_runs_until_a_drag(session, presets):
    preset = presets[0]
    session.play(preset)
    assert session.bare
    for arm, method in zip(run(session, 1), preset.methods, strict=True):
        assert arm.name == method
        np.testing.assert_allclose(arm.sample.q, preset.start, atol=1e-6)
    run(session, 300, 1)
    assert not np.allclose(session.target, preset.Ts[0])
    session.reset()
    again = run(session, 1, 301)
    assert session.preset is preset
    np.testing.assert_allclose(again[0].sample.q, preset.start, atol=1e-6)
    session.drag_target(session.target)
    assert session.preset is None


def test_slow_motion_and_pause_change_only_the_clock(session, presets):
    clock = itertools.count()

    def course(speed, calls):
        session.speed = speed
        session.play(presets[0])
        begin, found = session._ticks, {}
        for _ in range(calls):
            sample = session.step(next(clock) * DT)[0].sample
            found[round(sample.time / DT) - begin] = sample.q
        return found

    real, slow = course(1.0, 120), course(0.2, 500)
    assert max(slow) == pytest.approx(0.2 * 500, abs=2)
    for k in range(100):
        np.testing.assert_array_equal(real[k], slow[k])
    session.pause(True)
    before = session.step(100.0)[0].sample
    assert session.step(101.0)[0].sample is before
    session.place(ROBOT.clip(np.zeros(7)))  # shown although the clock stands still
    np.testing.assert_array_equal(session.step(102.0)[0].sample.q, ROBOT.clip(np.zeros(7)))
    np.testing.assert_allclose(session.target, ROBOT.fk(ROBOT.clip(np.zeros(7))))


def test_reset_restores_the_start_configuration_without_a_target(session):
    (before,) = run(session, 1)
    T = session.target.copy()
    T[2, 3] += 0.1
    session.drag_target(T)
    run(session, 100, 1)
    session.reset()
    (after,) = run(session, 2, 101)
    np.testing.assert_allclose(after.sample.q, before.sample.q)
    assert after.sample.T_target is None


def test_replay_shows_the_path_at_its_times_and_then_the_arms(session):
    q = ROBOT.clip(np.zeros(7))
    path = joint_path(ROBOT, [1.0, 1.5, 3.0], [q, q + 0.1, q + 0.4], "lift")
    session.show_path(path)
    for k in range(100):
        (shown,) = session.step(k * DT)
    assert shown.name == "lift"
    np.testing.assert_allclose(shown.sample.q, q + 0.1 + 0.2 * (session.replay_time - DT - 0.5))
    assert shown.measures.speed == pytest.approx(0.2)
    session.seek(0.25)
    np.testing.assert_allclose(session.step(0.99)[0].sample.q, q + 0.05)
    session.show_path(None)
    assert session.step(1.0)[0].name == "ctp+sd+svf"


def test_a_recording_has_a_row_for_each_arm_and_step_with_units(session):
    session.set_method(1, "dls")
    run(session, 3)
    session.start_recording()
    seen = run(session, 4, 3)
    lines = list(csv.DictReader(io.StringIO(session.stop_recording().decode())))
    assert len(lines) == 8
    assert list(lines[0]) == csv_header(session.robot)
    for text, arm in zip(lines[-2:], seen, strict=True):
        assert text["arm"] == arm.name
        assert float(text["time [s]"]) == pytest.approx(arm.sample.time)
        q = [float(text[f"q {name} [rad]"]) for name in session.robot.joint_names]
        np.testing.assert_allclose(q, arm.sample.q, rtol=1e-8)
        assert float(text["tip x [m]"]) == pytest.approx(arm.sample.T_tip[0, 3])
    assert session.stop_recording() is None
    session.reset()  # no target, so cells are empty
    session.start_recording()
    run(session, 1, 7)
    line = next(csv.DictReader(io.StringIO(session.stop_recording().decode())))
    assert line["target x [m]"] == line["position error [m]"] == ""


def test_measures_use_the_weighted_jacobian_and_the_method_margin(session):
    (arm,) = run(session, 1)
    robot = session.robot
    J = robot.jacobian(arm.sample.q)
    J[3:] *= 0.5
    s = np.linalg.svd(J, compute_uv=False)
    assert arm.measures.least_singular_value == pytest.approx(s[-1])
    assert arm.measures.condition == pytest.approx(s[0] / s[-1])
    at_limit = arm.sample._replace(q=robot.upper)
    np.testing.assert_array_equal(measure(robot, at_limit).activation, 1.0)
    session.sources[0].set_parameter("margin", 0.4)
    (changed,) = run(session, 1, 1)
    rows = zip(changed.sample.q, robot.lower, robot.upper, strict=True)
    expected = [activation(*row, 0.4) for row in rows]
    np.testing.assert_allclose(changed.measures.activation, expected)


def test_velocity_ellipsoid_is_the_image_of_unit_joint_velocities():
    robot = RobotModel.wam()
    q = robot.random(rng=np.random.default_rng(3))
    axes, lengths = velocity_ellipsoid(robot, q)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    J = robot.jacobian(q)[:3]
    np.testing.assert_allclose(axes @ np.diag(lengths**2) @ axes.T, J @ J.T, atol=1e-12)
    flat = RobotModel.from_name("planar_2r")
    assert velocity_ellipsoid(flat, np.array([0.3, 0.4]))[1][2] == pytest.approx(0.0)


def test_joint_bars_show_every_joint_coloured_by_limit_distance():
    near = {
        0.0: GREEN_RGB,
        1.3: GREEN_RGB,
        1.5: AMBER_RGB,
        1.81: RED_RGB,
        2.0: RED_RGB,
        2.5: RED_RGB,
        -1.99: RED_RGB,
    }
    for q, colour in near.items():
        assert limit_colour(q, -2.0, 2.0) == colour
        assert limit_colour(q, -np.inf, np.inf) == GREEN_RGB
    assert "90.0&deg;" in joint_bars(ROBOT, [np.full(7, np.pi / 2)])
    both = joint_bars(ROBOT, [np.zeros(7)] * 2)
    assert all(both.count(name) == 1 for name in ROBOT.joint_names)
    assert all(both.count(f"background:{css(colour)}") == 7 for colour in ARM_COLOURS[:2])


def test_position_task_ignores_rotation_and_shows_no_rotation_error():
    robot = RobotModel.from_name("planar_2r")
    session, presets = local_session(robot, ["dls"], Task.position_only(), has_presets=False)
    assert presets == ()
    T = robot.fk(np.array([0.4, 0.9]))
    T[:3, :3] = np.eye(3)  # orientation that the arm cannot have there
    for bare in (False, True):
        session.place(np.array([0.1, 0.5]))
        session.set_bare(bare)
        session.drag_target(T)
        (arm,) = [session.step(next(TIME)) for _ in range(400)][-1]
        assert arm.sample.position_error < 1e-4
        assert np.isnan(arm.sample.rotation_error)
        J = robot.jacobian(arm.sample.q)[:3]
        s = np.linalg.svd(J, compute_uv=False)
        assert arm.measures.least_singular_value == pytest.approx(s[1])
    session.close()


def test_two_tips_have_a_target_each():
    robot = ROBOT.with_tip("wam_link4")
    session, presets = local_session(robot, ["ctp+sd+svf"], (Task(), Task.position_only()))
    assert presets == ()
    Ts = session.target.copy()
    Ts[0, 2, 3] += 0.03
    for bare in (False, True):
        session.set_bare(bare)
        session.drag_target(Ts[0], tip=0)
        np.testing.assert_array_equal(session.target[1], Ts[1])
        (arm,) = [session.step(next(TIME)) for _ in range(300)][-1]
        assert arm.sample.T_tip.shape == (2, 4, 4)
        np.testing.assert_allclose(arm.sample.T_tip[0, :3, 3], Ts[0, :3, 3], atol=0.02)
    session.start_recording()
    session.step(next(TIME))
    line = next(csv.DictReader(io.StringIO(session.stop_recording().decode())))
    assert float(line["tip wam_link4 x [m]"]) == pytest.approx(arm.sample.T_tip[1, 0, 3], abs=1e-3)
    session.close()


class Tags(HTMLParser):
    """Elements of a text, and the names of their attributes."""

    def __init__(self, content):
        super().__init__()
        self.seen, self.attributes = set(), set()
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attrs)


class Gui:
    """Recipient of the page's text."""

    def add_html(self, content):
        self.content = content
        return self


def test_html_in_names_and_messages_is_escaped():
    script = "'><img src=x onerror=alert(1)>"
    rows = [{"a": 1.0, "lower": -2, "upper": 2, "name": name} for name in (script, "<b>&")]
    page = Gui()
    sample = Sample(0.0, np.zeros(2), np.zeros(2), np.eye(4), None, 0.0, 0.0, "WAITING", script)
    StatusLine(page, note=script).show([ArmView(script, sample, None)])
    for content in (joint_bars(RobotModel.from_dh(rows), [np.zeros(2)]), page.content):
        assert "alert(1)" in content
        tags = Tags(content)
        assert tags.seen <= {"div", "span", "b", "br"}
        assert tags.attributes <= {"style", "title"}


def test_a_peak_between_two_rows_of_the_history_is_kept(session):
    (arm,) = run(session, 1)
    history = CurveHistory()
    speeds = [0.1, 0.2, 1.9, 0.2, 0.1, 0.1, 0.1, 0.1, 0.1, 0.1]
    for k, speed in enumerate(speeds):
        measures = arm.measures._replace(speed=speed, least_singular_value=1.0 - speed / 2)
        history.add(0.01 * k, [(arm.sample, measures)])
    assert len(history.data(0, 1)[0]) < len(speeds)
    assert history.data(0, 1)[1].max() == 1.9
    table = list(csv.DictReader(io.StringIO(history.table(["jp"]).decode())))
    assert max(float(row["Fastest joint [rad/s] A: jp"]) for row in table) == 1.9
    assert history.data(3, 1)[1].min() == pytest.approx(0.05)


def interrupted(read, change, prepare):
    """Call `read` once for each of its instructions, at which another thread calls `change`.

    Calls of `prepare` precede. A thread that waits for a lock goes on when `read` has ended.
    """
    for place in itertools.count():
        prepare()
        thread, passed, before = threading.Thread(target=change), 0, sys.gettrace()

        def trace(frame, event, _, place=place, thread=thread):
            nonlocal passed
            if "dls_ik" not in frame.f_code.co_filename:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                if passed == place:
                    thread.start()
                    thread.join(0.02)
                passed += 1
            return trace

        sys.settrace(trace)
        try:
            read()
        finally:
            sys.settrace(before)
        if thread.ident is None:  # there is no further instruction
            assert place > 10
            return
        thread.join()


def test_history_can_be_cleared_while_it_is_drawn(session):
    view, history = run(session, 2)[0], CurveHistory()

    def fill():
        for k in range(3):
            history.add(float(k), [(view.sample, view.measures)])

    interrupted(lambda: history.data(0, 1), history.clear, fill)


def test_replay_can_be_stopped_while_its_time_is_read(session):
    q = start_configuration(ROBOT)
    path = joint_path(ROBOT, [0.0, 1.0], [q, q + 0.1])
    interrupted(
        lambda: session.replay_time,
        lambda: session.show_path(None),
        lambda: session.show_path(path),
    )


def test_replay_of_an_arm_with_a_position_task_shows_no_gains_of_the_task():
    robot = ROBOT.locked({"wam_j3": 0.0, "wam_j5": 0.0})
    session, _ = local_session(robot, (), default_task(robot), has_presets=False)
    try:
        (view,) = session.step(0.0)
        assert len(session.gains(view).arms[0].gain) == 3
        q = view.sample.q
        session.show_path(joint_path(robot, [0.0, 1.0], [q, q + 0.1]))
        (view,) = session.step(0.02)
        shown = session.gains(view)
        assert len(shown.s) == 5
        assert shown.arms[0].gain is None
        assert "not known" in gain_table(shown)
    finally:
        session.close()


def test_history_has_a_curve_per_arm_and_restarts_if_their_number_changes(session):
    run(session, 50)
    times, *lines = session.history.data(0, 1)
    assert len(lines) == 1
    assert times[-1] == 0.0
    session.set_method(1, "dls")
    run(session, 50, 50)
    assert all(len(session.history.data(k, 2)) == 3 for k in range(len(CURVES)))
    assert np.isnan(CurveHistory().data(0, 2)[1:]).all()
