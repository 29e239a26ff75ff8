# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""KDL solvers as methods of IkSolver: answers and refused options."""

import numpy as np
import pytest
from oracle_ik import pose_error

from dls_ik import IkSolver, RobotModel, Status, Stepper, Task
from dls_ik.errors import MethodError, PoseError
from dls_ik.servo import LocalIk
from dls_ik.solver.method import KDL_METHODS

pytest.importorskip("PyKDL")
WAM = RobotModel.wam()


@pytest.mark.parametrize("name", KDL_METHODS)
def test_answers_reach_their_pose(name):
    rng = np.random.default_rng(1)
    Ts, seeds = WAM.fk(WAM.random(60, rng)), WAM.random(60, rng)
    found = IkSolver(WAM, name, max_restarts=20).solve_batch(Ts, seeds)
    reached = np.isin(found.status, [Status.SUCCESS, Status.OUTSIDE_LIMITS])
    assert reached.mean() > 0.9
    np.testing.assert_array_equal(found.success, reached & WAM.within_limits(found.q))
    for T, q in zip(Ts[reached], found.q[reached], strict=True):
        missing = pose_error(T, WAM.fk(q))
        assert np.linalg.norm(missing[:3]) <= 1e-6
        assert np.linalg.norm(missing[3:]) <= 1e-6
    assert (found.restarts[reached] > 0).any() == (name == "kdl_nr_jl")  # the others need none


def test_newton_reports_answers_outside_the_limits():
    rng = np.random.default_rng(2)
    found = IkSolver(WAM, "kdl_nr").solve_batch(WAM.fk(WAM.random(40, rng)), WAM.random(40, rng))
    outside = found.status == Status.OUTSIDE_LIMITS
    assert outside.mean() > 0.5
    assert not WAM.within_limits(found.q[outside]).any()
    assert IkSolver(WAM, "kdl_nr_jl").solve(WAM.fk(np.zeros(7))).status != Status.OUTSIDE_LIMITS


@pytest.mark.parametrize("name", KDL_METHODS)
def test_errors_of_a_failure_belong_to_its_joint_positions(name):
    far = WAM.fk(np.zeros(7)) + 3.0 * np.eye(4, k=3)
    for restarts in (0, 3):
        missed = IkSolver(WAM, name, max_restarts=restarts).solve(far, np.full(7, 0.3), 60.0)
        assert missed.restarts == restarts
        assert not missed.success
        error = pose_error(far, WAM.fk(missed.q))
        assert missed.position_error == pytest.approx(np.linalg.norm(error[:3]))
        assert missed.rotation_error == pytest.approx(np.linalg.norm(error[3:]), abs=1e-9)


def test_single_and_batch_answers_are_equal():
    solver, rng = IkSolver(WAM, "kdl_lma"), np.random.default_rng(3)
    T, seed = WAM.fk(WAM.random(rng=rng)), WAM.random(rng=rng)
    np.testing.assert_array_equal(solver.solve(T, seed).q, solver.solve_batch([T], seed).q[0])


def test_matrices_that_are_not_rotations_are_refused():
    T, seed = WAM.fk(np.full(7, 0.3)), np.zeros(7)
    scaled = T.copy()
    scaled[:3, :3] *= 1.3
    solver = IkSolver(WAM, "kdl_lma")
    with pytest.raises(PoseError, match="rotation"):
        solver.solve(scaled, seed)
    found = solver.solve_batch([T, scaled], seed)
    assert found.statuses == (Status.SUCCESS, Status.REFUSED)


@pytest.mark.parametrize("name", KDL_METHODS)
def test_unsupported_options_are_refused_with_the_reason(name):
    for made in (
        lambda: IkSolver(RobotModel.from_name("planar_2r"), name),
        lambda: IkSolver(WAM, name, task=Task.position_only()),
        lambda: IkSolver(WAM, name).solve(np.eye(4), task=Task.pointing()),
        lambda: Stepper(WAM, name),
        lambda: LocalIk(WAM, name),
    ):
        with pytest.raises(MethodError, match=name):
            made()
    solver, T = IkSolver(WAM, name), WAM.fk(np.zeros(7))
    for wish in (
        {"solve_type": "distance"},
        {"solve_type": "manipulability"},
        {"max_joint_change": 1},
    ):
        for ask in (
            lambda wish=wish: IkSolver(WAM, name, **wish),
            lambda wish=wish: solver.solve(T, **wish),
            lambda wish=wish: solver.solve_batch(T[None], **wish),
        ):
            with pytest.raises(MethodError, match="first solution"):
                ask()
