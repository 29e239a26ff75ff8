"""The presets are what they are called, for several robots."""

import functools

import numpy as np
import pytest

from dls_ik.model.robot import RobotModel
from dls_ik.solver.method import parse_method
from dls_ik.viewer.session import make_presets
from dls_ik.viewer.source import LocalSource

ROBOTS = ("wam", "puma560", "planar_2r")
DT = 0.02


@functools.cache
def presets_of(name):
    robot = RobotModel.from_name(name)
    return robot, {preset.title: preset for preset in make_presets(robot)}


@pytest.fixture(params=ROBOTS)
def case(request):
    return presets_of(request.param)


def follow(robot, preset, method):
    """Samples of one way, to the end of its rest."""
    source = LocalSource(robot, method, start=preset.start)
    samples = []
    for k in range(int((preset.duration + 1.8) / DT)):
        source.set_target(preset.pose(k * DT))
        samples.append(source.step(k * DT))
    source.close()
    return samples


def unrest(samples):
    """Sum of all changes of joint velocity."""
    return np.abs(np.diff([sample.velocity for sample in samples], axis=0)).sum()


def worst(samples):
    return np.max([sample.position_error for sample in samples])


def test_each_begins_at_the_arm_and_goes_to_and_fro_without_a_jump(case):
    robot, presets = case
    for preset in presets.values():
        assert preset.watch.endswith(".")
        assert all(parse_method(name).name == name for name in preset.methods)
        assert robot.within_limits(preset.start)
        np.testing.assert_allclose(preset.pose(0.0), robot.fk(preset.start), atol=1e-9)
        times = np.arange(0.0, 3 * preset.duration, 0.01)
        points = np.array([preset.pose(t)[:3, 3] for t in times])
        assert np.linalg.norm(np.diff(points, axis=0), axis=1).max() < 0.05
        turn = preset.pose(preset.duration + 1.5)
        np.testing.assert_allclose(turn, preset.Ts[-1], atol=1e-9)
        back = preset.pose(2 * preset.duration + 2.5)
        np.testing.assert_allclose(back, preset.Ts[0], atol=1e-9)


def test_the_singularity_is_on_a_way_that_can_be_gone(case):
    robot, presets = case
    if robot.n < 6:
        assert "Through a singularity" not in presets  # two columns of six rows have rank 2
        return
    samples = follow(robot, presets["Through a singularity"], "jp")
    least = [np.linalg.svd(robot.jacobian(s.q), compute_uv=False)[-1] for s in samples]
    assert min(least) < 0.03
    assert max(least) > 0.1
    assert worst(samples) < 0.03
    if robot.n == 7:
        damped = follow(robot, presets["Through a singularity"], "dls")
        assert unrest(samples) > 2.0 * unrest(damped), "it is telling"


def test_out_of_reach_is_out_of_reach(case):
    robot, presets = case
    preset = presets["Out of reach"]
    tips = robot.fk(robot.random(np.random.default_rng(5), 20000))[:, :3, 3]
    nearest = np.linalg.norm(tips - preset.Ts[-1, :3, 3], axis=1).min()
    assert nearest > 0.05
    assert follow(robot, preset, "dls")[-1].position_error > 0.05


def test_the_limit_is_met_and_the_arm_stays_inside(case):
    robot, presets = case
    preset = presets["Into a joint limit"]
    errors = {}
    for method in preset.methods:
        samples = follow(robot, preset, method)
        q = np.array([s.q for s in samples])
        room = np.minimum(q - robot.lower, robot.upper - q) / (robot.upper - robot.lower)
        assert room.min() >= -1e-12
        assert room.min() < 0.03
        errors[method] = worst(samples)
    if robot.n == 7:
        assert errors["ctp+sd+svf"] < 0.7 * errors["jp"], "it is telling"


def test_a_robot_without_limits_has_no_preset_for_one():
    rows = [{"a": 0.3, "alpha": 0.7, "d": 0.1, "kind": "continuous"}] * 6
    titles = [preset.title for preset in make_presets(RobotModel.from_dh(rows))]
    assert titles == ["Through a singularity", "Out of reach"]
