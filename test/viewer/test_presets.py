# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Presets behave as their names say, for several robots, through the session of the page."""

import functools
import itertools
import re

import numpy as np
import pytest
from robots import ROOT, TEST_URDF

from dls_ik.model.robot import RobotModel
from dls_ik.solver.hard_paths import BARE_STEP_DURATION
from dls_ik.solver.method import parse_method
from dls_ik.viewer.presets import PATH_END_REST_TIME, make_presets, start_configuration
from dls_ik.viewer.scene import extent
from dls_ik.viewer.session import default_task, local_session
from dls_ik.viewer.shapes import LinkBoxes, described_shapes

CLOCK = itertools.count()  # unit BARE_STEP_DURATION; it never goes back
ROBOTS = ("wam", "puma560", "planar_2r")
SINGULARITY, REACH, LIMIT = "Through a singularity", "Out of reach", "Into a joint limit"


@functools.cache
def session_of(name):
    path = ROOT / "examples" / "robots" / f"{name}.urdf"
    robot = RobotModel.from_urdf(path) if path.exists() else RobotModel.from_name(name)
    session, presets = local_session(robot, task=default_task(robot))
    return session, {preset.title: preset for preset in presets}


@pytest.fixture(params=ROBOTS)
def case(request):
    return session_of(request.param)


def play(session, title, presets, until=None):
    """Return the views of a preset at each step, until a time [s], by default one period."""
    session.play(presets[title])
    steps = round((until or presets[title].period) / BARE_STEP_DURATION)
    return list(
        zip(*(session.step(next(CLOCK) * BARE_STEP_DURATION) for _ in range(steps)), strict=True)
    )


def peaks(arms):
    return {views[-1].name: views[-1].peak for views in arms}


def test_each_preset_starts_at_the_arm_on_a_closed_continuous_path(case):
    session, presets = case
    robot = session.robot
    assert list(presets) == [SINGULARITY, REACH, LIMIT]
    for preset in presets.values():
        assert preset.watch.endswith(".")
        assert all(parse_method(name).name == name for name in preset.methods)
        assert robot.within_limits(preset.start)
        T = robot.fk(preset.start)
        np.testing.assert_allclose(preset.pose(0.0)[:3, 3], T[:3, 3], atol=2e-3)
        times = np.arange(0.0, 1.5 * preset.period, 0.01)
        points = np.array([preset.pose(t)[:3, 3] for t in times])
        assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() < 0.05


def test_singularity_preset_gives_the_pseudoinverse_the_fastest_joints(case):
    session, presets = case
    preset = presets[SINGULARITY]
    arms = play(session, SINGULARITY, presets)
    found = peaks(arms)
    assert tuple(found) == preset.methods
    plain = found.pop("jp")
    assert plain > 5.0
    assert plain > 2.5 * max(found.values())
    assert f"ask for {max(found.values()):.2g} rad/s at most" in preset.watch
    said = re.search(
        r"asks a joint for (.*) rad/s \(fastest joint\) on passes 1 to (\d)", preset.watch
    )
    numbers = said[1].replace(" and", ",").split(", ")
    assert len(numbers) == int(said[2])
    speeds = [view.measures.speed for view in arms[0]]
    for number, seen in zip(numbers, np.array_split(speeds, len(numbers)), strict=True):
        assert number == f"{max(seen):.3g}"
    if session.robot.name == "wam7":  # the table of docs/lab/choosing.md
        assert plain == pytest.approx(14.7, abs=0.1)
        assert found["svf+sd"] == pytest.approx(2.6, abs=0.1)
        assert "A joint to spare does not help" in preset.watch
    else:
        assert "no joint to spare" in preset.watch


def test_reach_preset_keeps_damped_methods_slow_and_the_pseudoinverse_fast(case):
    session, presets = case
    arms = play(session, REACH, presets, until=6.0)
    tips = session.robot.fk(session.robot.random(20000, np.random.default_rng(5)))[:, :3, 3]
    nearest = np.linalg.norm(tips - presets[REACH].pose(5.5)[:3, 3], axis=1).min()
    assert nearest > 0.05
    last = {views[-1].name: max(view.measures.speed for view in views[-20:]) for views in arms}
    assert last["jp"] > 10.0 * last["sdls+clamp"]
    assert all(views[-1].sample.position_error > 0.05 for views in arms)


def test_limit_preset_reaches_the_limit_and_redundant_joints_compensate(case):
    session, presets = case
    robot = session.robot
    arms = play(session, LIMIT, presets, until=5.5)
    errors = {}
    for views in arms:
        q = np.array([view.sample.q for view in views])
        room = np.minimum(q - robot.lower, robot.upper - q) / (robot.upper - robot.lower)
        assert room.min() >= -1e-12
        assert room.min() < 0.06
        errors[views[-1].name] = max(view.sample.position_error for view in views)
    if robot.n == 7:
        assert errors["ctp+sd+svf"] < 0.7 * errors["jp"]


@pytest.mark.parametrize("name", [*ROBOTS, "desktop_arm"])
def test_limit_preset_text_states_the_measured_errors(name):
    session, presets = session_of.__wrapped__(name)  # closed below, and not shared
    preset = presets[LIMIT]
    session.play(preset)
    half = preset.period / 2.0  # the target arrives at the far end
    for _ in range(round((half + PATH_END_REST_TIME) / BARE_STEP_DURATION)):
        views = session.step(next(CLOCK) * BARE_STEP_DURATION)
        for source in session._sources:
            source.wait_for_planner()
    off = [1e3 * view.sample.position_error for view in views]
    session.close()
    said = re.search(r"A is (\d+) mm off and B (\d+) mm", preset.watch)
    assert [float(text) for text in said.groups()] == pytest.approx(off, abs=3.0, rel=0.03)
    assert ("make up for the joint:" in preset.watch) == (off[1] < 5.0)


def test_a_robot_without_limits_has_no_preset_for_one():
    rows = [{"a": 0.3, "alpha": 0.7, "d": 0.1, "kind": "continuous"}] * 6
    robot = RobotModel.from_dh(rows)
    titles = [preset.title for preset in make_presets(robot, np.full(6, 0.4))]
    assert titles == [SINGULARITY, REACH]


@pytest.mark.parametrize("name", ["wam", "ur10e", "sawyer", "fetch"])
def test_an_arm_starts_above_the_floor(name):
    robot = RobotModel.wam() if name == "wam" else RobotModel.from_urdf(TEST_URDF / f"{name}.urdf")
    shapes = described_shapes(robot)
    boxes, (floor, _) = LinkBoxes(robot, shapes), extent(robot, shapes)
    q = start_configuration(robot, lambda q: boxes.heights(q) - floor)
    rng = np.random.default_rng(1)
    best = np.max([boxes.heights(other) for other in robot.random(200, rng)], axis=0)
    assert (boxes.heights(q) >= np.minimum(best, floor) - 2e-3).all()
    assert np.min([boxes.heights(other) for other in robot.random(200, rng)]) < floor - 0.1
