# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the default bound of the error (D_max), and of the pseudoinverse near the target."""

import numpy as np
import pytest

from dls_ik import IkSolver, RobotModel, Stepper
from dls_ik.model.chain import typical_link_length

WAM = RobotModel.wam()
# Lengths of the links of the WAM [m]: 0.552 (0.55 along and 0.045 across), 0.045, 0.3 and 0.06
WAM_LENGTH = (0.304525 + 0.002025 + 0.09 + 0.0036) / (0.304525**0.5 + 0.045 + 0.3 + 0.06)


@pytest.mark.parametrize(
    ("robot", "expected"),
    [
        (WAM, WAM_LENGTH),
        (RobotModel.from_dh([{"a": a, "kind": "continuous"} for a in (2.0, 1.0)]), 5.0 / 3.0),
    ],
)
def test_error_is_clamped_to_half_a_typical_link(robot, expected):
    length = typical_link_length(robot.chain)
    assert length == pytest.approx(expected)
    q = np.full(robot.n, 0.3)
    T = robot.fk(q)
    T[0, 3] += 100.0
    stepper = Stepper(robot, "dls+clamp", q)
    given = Stepper(robot, "dls+clamp", q, D_max=0.5 * length)
    np.testing.assert_array_equal(stepper.step(T), given.step(T))
    in_mm = Stepper(robot, "dls+clamp", q, length_unit=1000.0)
    assert in_mm.details.params.D_max == pytest.approx(0.5e-3 * length)


def test_robot_without_lengths_has_no_bound_of_the_error():
    wrist = RobotModel.from_dh([{"alpha": a, "kind": "continuous"} for a in (1.5, -1.5, 0.0)])
    assert Stepper(wrist, "dls+clamp").details.params.D_max == np.inf


def test_pseudoinverse_near_the_target_replaces_dls():
    q = np.full(WAM.n, 0.4)
    T = WAM.fk(q)
    T[0, 3] += 0.05
    far = Stepper(WAM, "dls+jp_near", q, switch_distance=0.04).step(T)
    np.testing.assert_array_equal(far, Stepper(WAM, "dls", q).step(T))
    near = Stepper(WAM, "dls+jp_near", q, switch_distance=0.06).step(T)
    np.testing.assert_allclose(near, Stepper(WAM, "jp", q).step(T), rtol=1e-12, atol=1e-14)


def test_pseudoinverse_ends_the_approach_of_dls_in_few_steps():
    rng = np.random.default_rng(2)
    goals = WAM.random(20, rng)
    starts = WAM.clip(goals + 0.2 * rng.standard_normal(goals.shape))
    found = {
        name: IkSolver(WAM, name, lambda_=0.3).solve_batch(WAM.fk(goals), starts)
        for name in ("dls", "dls+jp_near")
    }
    both = found["dls"].success & found["dls+jp_near"].success
    assert both.sum() >= 3
    steps = {name: result.iterations[both].mean() for name, result in found.items()}
    assert steps["dls+jp_near"] < 0.5 * steps["dls"]
