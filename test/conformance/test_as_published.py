# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of attempts against a direct version of the published code of Table V: error and JC."""

import numpy as np
import pytest
from cases import PUMA, WAM

from dls_ik import IkSolver, Stepper, Task
from dls_ik.errors import OptionError

RUN = {
    "rotation_error": "sine", "rotation_weight": 1.0, "error_tolerance": 5e-3, "max_iterations": 60,
    "position_tolerance": 1e3, "rotation_tolerance": np.pi, "bug_compatible": True, "timeout": 60.0,
}  # fmt: skip

FEW = 20  # number of steps; rounding may dominate later ones


def error(T_d, q, robot):
    """Return (dp, (n x n_d + s x s_d + a x a_d) / 2)."""
    T = robot.fk(q)
    turn = 0.5 * sum(np.cross(T[:3, i], T_d[:3, i]) for i in range(3))
    return np.append(T_d[:3, 3] - T[:3, 3], turn)


def joint_clamping(T_d, q, robot):
    """Set joints beyond a limit to it and hold them; e from before, J from after, no clipping."""
    made = -1
    while True:
        e, made = error(T_d, q, robot), made + 1
        if np.linalg.norm(e) <= RUN["error_tolerance"] or made == RUN["max_iterations"]:
            return q, made
        within = robot.clip(q)
        free = np.abs(within - q) <= 1e-12
        q = within.copy()
        q[free] += np.linalg.pinv(robot.jacobian(q)[:, free]) @ e


@pytest.mark.parametrize("robot", [WAM, PUMA], ids=lambda robot: robot.name)
def test_bug_compatible_joint_clamping_matches_the_published_code(robot):
    rng = np.random.default_rng(8)
    solver, outside, agreed = IkSolver(robot, "jc", **RUN), 0, 0
    for _ in range(40):
        T_d, q = robot.fk(robot.random(rng=rng)), robot.random(rng=rng)
        expected, made = joint_clamping(T_d, q, robot)
        if made > FEW:
            continue
        found = solver.solve(T_d, q)
        assert found.iterations == made
        np.testing.assert_allclose(found.q, expected, atol=1e-6)
        outside += np.abs(robot.clip(found.q) - found.q).max() > 1e-9
        agreed += 1
    assert agreed > 6
    assert outside > 0


def test_sine_error_is_used_in_steps_but_the_angle_is_reported():
    rng = np.random.default_rng(9)
    for _ in range(20):
        q, T_d = WAM.random(rng=rng), WAM.fk(WAM.random(rng=rng))
        stepper = Stepper(WAM, "jp", q, rotation_error="sine", rotation_weight=1.0)
        np.testing.assert_allclose(stepper.error(T_d), error(T_d, q, WAM), atol=1e-14)
        np.testing.assert_allclose(stepper.jacobian(T_d), WAM.jacobian(q), atol=1e-14)
    half = WAM.fk(np.zeros(7)) @ np.diag([-1.0, -1.0, 1.0, 1.0])
    found = IkSolver(WAM, "jp", rotation_error="sine").solve(half, np.zeros(7))
    assert not found.success  # the sine of half a turn is zero
    assert found.rotation_error == pytest.approx(np.pi, abs=1e-6)


@pytest.mark.parametrize(
    "task", [Task.pointing(), Task(angles="euler"), Task(rotation_tolerance=0.1)]
)
def test_a_sine_of_part_of_a_rotation_is_refused(task):
    with pytest.raises(OptionError, match="all three rotation axes"):
        IkSolver(WAM, "jp", task=task, rotation_error="sine")
    IkSolver(WAM, "jp", task=Task.position_only(), rotation_error="sine")
