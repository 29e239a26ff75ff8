"""The session without a page: arms side by side, presets, recordings, and what is measured."""

import csv
import io
from html.parser import HTMLParser

import numpy as np
import pytest

from dls_ik.core.limits import activation
from dls_ik.errors import MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.panels import StatusLine
from dls_ik.viewer.plots import (
    AMBER,
    CURVES,
    GREEN,
    RED,
    CurveHistory,
    csv_header,
    joint_bars,
    limit_colour,
    measure,
    velocity_ellipsoid,
)
from dls_ik.viewer.session import ArmView, Session, make_presets, start_configuration
from dls_ik.viewer.source import LocalSource, Sample

DT = 0.01


ROBOT = RobotModel.wam()


@pytest.fixture(scope="module")
def presets():
    return make_presets(ROBOT)


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


def test_a_second_arm_begins_where_the_first_one_is(session):
    T = session.target.copy()
    T[1, 3] += 0.2
    session.drag_target(T)
    (first,) = run(session, 30)
    with pytest.raises(MethodError, match="unknown method"):
        session.compare("nonsense")
    session.compare("dls")
    both = run(session, 1, 30)
    assert [seen.name for seen in both] == ["ctp+sd+svf", "dls"]
    np.testing.assert_allclose(both[1].sample.q, first.sample.q, atol=2.1 * DT)
    np.testing.assert_allclose(both[1].sample.T_target, T)
    session.compare(None)
    assert len(run(session, 1, 31)) == 1


def test_a_preset_puts_both_arms_to_its_start_with_its_methods(session, presets):
    preset = presets[0]
    session.play(preset)
    seen = run(session, 5)
    assert tuple(s.name for s in seen) == preset.methods
    for arm in seen:
        np.testing.assert_allclose(arm.sample.q, preset.start, atol=1e-6)
    run(session, 300, 5)
    assert not np.allclose(session.target, preset.Ts[0])


def test_a_preset_begins_again_where_it_began_until_a_hand_is_on_the_target(session, presets):
    preset = presets[-1]
    session.play(preset)
    session.step(0.0)
    for _ in range(2):
        again = session.step(preset.period + 0.01)
    for arm in again:
        np.testing.assert_allclose(arm.sample.q, preset.start, atol=0.05)
    session.drag_target(session.target)
    assert session.preset is None


def test_reset_goes_back(session, presets):
    (before,) = run(session, 1)
    session.play(presets[1])
    run(session, 200, 1)
    session.reset()
    for arm in run(session, 2, 201):
        np.testing.assert_allclose(arm.sample.q, before.sample.q)
        assert arm.sample.T_target is None


def test_a_recording_has_a_row_for_each_arm_and_step_with_units(session):
    session.compare("dls")
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
    session.reset()  # no target: empty cells
    session.start_recording()
    run(session, 1, 7)
    line = next(csv.DictReader(io.StringIO(session.stop_recording().decode())))
    assert line["target x [m]"] == line["position error [m]"] == ""


def test_what_is_measured_is_of_the_jacobian_and_the_margin_of_the_method(session):
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


def test_the_ellipsoid_is_what_unit_joint_velocities_give():
    robot = RobotModel.wam()
    q = robot.random(np.random.default_rng(3))
    axes, lengths = velocity_ellipsoid(robot, q)
    np.testing.assert_allclose(axes @ axes.T, np.eye(3), atol=1e-12)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    J = robot.jacobian(q)[:3]
    np.testing.assert_allclose(axes @ np.diag(lengths**2) @ axes.T, J @ J.T, atol=1e-12)
    flat = RobotModel.from_name("planar_2r")
    assert velocity_ellipsoid(flat, np.array([0.3, 0.4]))[1][2] == pytest.approx(0.0)


def test_bars_show_every_joint_and_colours_how_near_a_limit_it_is():
    near = {0.0: GREEN, 1.3: GREEN, 1.5: AMBER, 1.81: RED, 2.0: RED, 2.5: RED, -1.99: RED}
    for q, colour in near.items():
        assert limit_colour(q, -2.0, 2.0) == colour
        assert limit_colour(q, -np.inf, np.inf) == GREEN
    assert "90.0&deg;" in joint_bars(ROBOT, [np.full(7, np.pi / 2)])
    assert joint_bars(ROBOT, [np.zeros(7)] * 2).count("wam_j") == 14


class Tags(HTMLParser):
    """The elements of a text, and the names of their attributes."""

    def __init__(self, content):
        super().__init__()
        self.seen, self.attributes = set(), set()
        self.feed(content)

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attrs)


class Gui:
    """A place for the page's text."""

    def add_html(self, content):
        self.content = content
        return self


def test_names_and_messages_of_others_are_not_html():
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
    assert len(history.data(2, 1)[0]) < len(speeds)
    assert history.data(2, 1)[1].max() == 1.9
    assert history.data(3, 1)[1].min() == pytest.approx(0.05)


def test_history_has_a_line_for_each_arm_and_begins_anew_with_another_number(session):
    run(session, 50)
    times, *lines = session.history.data(0, 1)
    assert len(lines) == 1
    assert times[-1] == 0.0
    session.compare("dls")
    run(session, 50, 50)
    assert all(len(session.history.data(k, 2)) == 3 for k in range(len(CURVES)))
    assert np.isnan(CurveHistory().data(0, 2)[1:]).all()
