# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Singular values and gains of methods, and the table of the page."""

import itertools

import numpy as np
import pytest

from dls_ik.model.robot import RobotModel
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task
from dls_ik.viewer.gains import ArmGains, CurrentGains, directional_gains
from dls_ik.viewer.panels import gain_table
from dls_ik.viewer.session import MIN_GAIN_ERROR, local_session

ROBOT = RobotModel.wam()
TIME = itertools.count(1000.0, 0.01)  # clock of the sessions [s]
Q = np.array([0.3, 0.6, 0.2, 1.6, -1.5, 0.05, 0.2])  # the wrist is close to its singularity


@pytest.mark.parametrize("method", ["jp", "dls", "svf", "tpinv", "jf"])
def test_gains_are_those_of_the_damped_inverse(method):
    stepper = Stepper(ROBOT, method, Q)
    inverse = stepper.inverse(ROBOT.fk(Q))
    gain = directional_gains(stepper, Q, 1e-4)
    np.testing.assert_allclose(gain, inverse.gain, rtol=1e-6, atol=1e-9)
    if method == "jp":
        np.testing.assert_allclose(gain, 1.0 / inverse.s)


def test_gains_include_the_bound_of_selective_damping():
    small, large = (directional_gains(Stepper(ROBOT, "sdls", Q), Q, size) for size in (1e-6, 0.2))
    np.testing.assert_allclose(small, directional_gains(Stepper(ROBOT, "jp", Q), Q, 1e-6))
    assert large[-1] < 0.5 * small[-1]


def test_a_session_gives_the_gains_of_all_methods_at_the_first_arm_and_moves_as_without_them():
    session, _ = local_session(ROBOT, ["jp", "dls", "sdls+clamp"], has_presets=False)
    session.set_bare(True)
    T = session.target.copy()
    T[2, 3] -= 0.1
    session.drag_target(T)
    with_gains, without = [], []
    for found, is_asked in ((without, False), (with_gains, True)):
        session.place(Q)
        session.drag_target(T)
        for _ in range(20):
            (first, *others) = session.step(next(TIME))
            found.append([view.sample.q for view in (first, *others)])
            if is_asked:
                conditioning = session.gains(first)
    np.testing.assert_array_equal(with_gains, without)
    assert np.ptp(with_gains, axis=0).max() > 0.01  # the arms move
    s = np.linalg.svd(Stepper(ROBOT, "jp", first.sample.q).jacobian(), compute_uv=False)
    np.testing.assert_allclose(conditioning.s, s)
    assert conditioning.size == max(first.sample.position_error, MIN_GAIN_ERROR)
    assert [arm.name for arm in conditioning.arms] == ["jp", "dls", "sdls+clamp"]
    np.testing.assert_allclose(conditioning.arms[0].gain, 1.0 / s)
    damping = Stepper(ROBOT, "dls", Q).options.lambda_
    np.testing.assert_allclose(conditioning.arms[1].gain, s / (s * s + damping**2))
    session.close()


def test_a_task_has_the_singular_values_of_its_rows():
    robot = RobotModel.from_name("planar_2r")
    session, _ = local_session(robot, ["dls"], Task.position_only(), has_presets=False)
    for bare in (False, True):
        session.set_bare(bare)
        session.place(np.array([0.4, 0.9]))
        (view,) = session.step(next(TIME))
        conditioning = session.gains(view)
        assert len(conditioning.s) == len(conditioning.arms[0].gain) == 2
    session.close()


def test_the_table_has_a_row_for_each_singular_value_and_a_column_for_each_known_gain():
    s = np.array([0.9, 0.004])
    arms = (
        ArmGains("<jp>", 1.0 / s),
        ArmGains("node", None),
        ArmGains("dls", np.array([1.0, 0.5])),
    )
    table = gain_table(CurrentGains(s, 0.02, arms))
    assert table.count("<tr>") == 3
    assert "A &lt;jp&gt;" in table
    assert "C dls" in table
    assert "node" not in table
    assert all(f">{number}<" in table for number in ("0.900", "0.00400", "250.", "1.11", "0.500"))
    assert "20 mm" in table
    assert "not known" in gain_table(CurrentGains(s, 0.02, (ArmGains("node", None),)))
