# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The controller as a source: it moves to its target, and keeps its state after a refusal."""

from dataclasses import fields

import numpy as np
import pytest

from dls_ik.errors import MethodError, OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.servo.options import ControllerOptions
from dls_ik.solver import plugins
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import SolverOptions
from dls_ik.viewer.source import (
    FOLLOWERS,
    TUNABLE,
    TUNABLE_ALWAYS,
    LocalSource,
    slider_range,
    tunable_parameters,
)

DT = 0.01
START = np.array([0.1, 0.5, 0.2, 1.4, 0.0, -0.6, 0.3])


@pytest.fixture
def source():
    made = LocalSource(RobotModel.wam(), start=START)
    yield made
    made.close()


def run(source, seconds, begin=0.0):
    samples = [source.step(begin + k * DT) for k in range(round(seconds / DT))]
    return samples[-1]


def moved(T, xyz):
    shifted = T.copy()
    shifted[:3, 3] += xyz
    return shifted


def test_arm_rests_at_its_start_without_a_target(source):
    sample = run(source, 0.5)
    np.testing.assert_array_equal(sample.q, START)
    assert sample.T_target is None
    assert np.isnan(sample.position_error)


def test_single_target_is_reached_and_held(source):
    target = moved(source.robot.fk(START), [0.05, 0.3, -0.05])
    source.set_target(target)
    samples = [source.step(k * DT) for k in range(400)]
    speeds = np.abs([sample.velocity for sample in samples])
    assert np.max(speeds) > 0.1
    assert (speeds <= source.robot.velocity + 1e-9).all()
    sample = samples[-1]
    assert sample.state == "REACHED"
    np.testing.assert_allclose(sample.T_tip, target, atol=1e-5)
    np.testing.assert_allclose(sample.T_tip, source.robot.fk(sample.q), atol=1e-12)
    source.reset()
    np.testing.assert_array_equal(run(source, 0.1, begin=4.0).q, START)


def test_offered_methods_are_accepted_with_parameters_in_range(source):
    for method in FOLLOWERS:
        source.set_method(method)
        assert source.method == parse_method(method).name
        np.testing.assert_array_equal(source.step(0.0).q, START)
        for parameter in tunable_parameters(method, {}):
            if parameter.choices:
                assert parameter.value in parameter.choices
            else:
                assert parameter.low <= parameter.value <= parameter.high
                assert parameter.description


def test_a_method_is_changed_on_the_way_without_a_jump(source):
    source.set_target(moved(source.robot.fk(START), [0.0, 0.3, 0.0]))
    before = run(source, 0.3)
    source.set_method("sdls+clamp")
    after = source.step(0.3)
    assert (np.abs(after.q - before.q) <= source.robot.velocity * DT + 1e-9).all()


def test_refused_options_change_nothing_and_accepted_ones_are_shown(source):
    with pytest.raises(MethodError, match="unknown method 'nonsense'"):
        source.set_method("nonsense")
    with pytest.raises(MethodError, match="svf needs nu > sigma0"):
        source.set_parameter("sigma0", 1.0)
    with pytest.raises(OptionError, match="alpha"):
        source.set_parameter("alpha", 7.0)
    assert source.method == "ctp+sd+svf"
    source.set_parameter("margin", 0.2)
    values = {p.name: p.value for p in source.parameters}
    assert (values["sigma0"], values["margin"]) == (0.01, 0.2)


def test_tunable_parameters_are_existing_options():
    known = {f.name for f in (*fields(SolverOptions), *fields(ControllerOptions))}
    assert {name for names in (*TUNABLE.values(), TUNABLE_ALWAYS) for name in names} <= known


def test_slider_range_is_scaled_to_its_value():
    assert slider_range(0.01, 1e-12, 1e6) == pytest.approx((1e-4, 0.05))
    assert slider_range(0.05, 1e-6, 0.5) == pytest.approx((1e-3, 0.3))
    assert slider_range(1.0, 1e-6, 1.0) == pytest.approx((1e-3, 1.0))
    assert slider_range(0.0, 0.0, 1e3) == (0.0, 1.0)


@pytest.mark.parametrize("bare", [False, True])
def test_failing_plugin_is_named_and_the_default_method_continues(source, own_plugins, bare):
    assert "late" not in source.methods

    def late(J, e, state):
        if state.iteration > 20:
            raise ValueError("out of luck")
        return 0.2 * J.T @ e

    plugins.register_method("late", late, "late.py")
    assert "late" in source.methods
    source.set_method("late")
    source.set_bare(bare)
    goal = moved(source.robot.fk(START), [0.05, 0.0, -0.05])
    source.set_target(goal)
    assert run(source, 0.1).message != ""
    assert source.method == "late"
    sample = run(source, 4.0, 0.1)
    assert source.method == "ctp+sd+svf"
    assert "'late' (late.py) raises ValueError: out of luck" in sample.message
    assert sample.position_error < 1e-3
    source.set_method("jd")
    assert "late" not in source.step(9.0).message
