# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Batches, paths and several solutions with a task stack, against single calls with the stack."""

import numpy as np
import pytest

from dls_ik import (
    FrameTask,
    IkSolver,
    PlanningScene,
    PostureTask,
    RobotModel,
    Status,
    SwivelTask,
    Task,
    TaskStack,
)
from dls_ik.core.stack_motion import compare_levels
from dls_ik.errors import JointValueError, OptionError

WAM = RobotModel.wam()
HOME = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
STACK = TaskStack(Task(), SwivelTask(0.3), PostureTask(HOME))
PATH = WAM.fk(HOME + np.linspace(0.0, 0.4, 12)[:, None] * np.ones(7))  # (12, 4, 4)


@pytest.fixture(scope="module")
def solver():
    return IkSolver(WAM, task=STACK)


def test_batch_equals_single_calls_for_any_number_of_threads(solver):
    seeds = np.tile(HOME, (len(PATH), 1))
    batch, again = (solver.solve_batch(PATH, seeds, threads=k) for k in (1, 2))
    np.testing.assert_array_equal(batch.q, again.q)
    assert batch.success.all()
    for i in (0, 5, 11):
        one = solver.solve(PATH[i], HOME)
        np.testing.assert_array_equal(batch.q[i], one.q)
        assert batch[i].level_errors == one.level_errors
    of_call = IkSolver(WAM).solve_batch(PATH, HOME, task=STACK)
    np.testing.assert_array_equal(of_call.q, batch.q)


def test_rows_that_cannot_be_solved_do_not_stop_a_batch_or_a_path(solver):
    Ts = PATH[:4].copy()
    Ts[1], Ts[2, :3, 3] = np.nan, 9.0
    wanted = (Status.SUCCESS, Status.REFUSED, Status.UNREACHABLE, Status.SUCCESS)
    for result in (solver.solve_batch(Ts), solver.solve_path(Ts)):
        assert result.statuses == wanted
        assert np.isnan(result.q[1]).all()
        assert result.level_errors.shape == (4, 3)
        assert result.level_errors[2, 0] > 1.0
    with pytest.raises(JointValueError, match="4 poses need 4 seeds or one for all; got 2"):
        solver.solve_batch(Ts, np.tile(HOME, (2, 1)))


def test_each_answer_of_a_path_is_the_one_that_the_previous_answer_leads_to(solver):
    counted = []
    result = solver.solve_path(PATH, HOME, progress=lambda done, all_of: counted.append(done))
    assert result.success.all()
    assert counted == [*range(1, len(PATH) + 1)]
    before = HOME
    for T, q in zip(PATH, result.q, strict=True):
        np.testing.assert_array_equal(solver.solve(T, before).q, q)
        before = q
    assert not result.jumps.any()
    strict = solver.solve_path(PATH, HOME, max_joint_step=1e-4)
    assert strict.jumps[1:].all()
    with pytest.raises(OptionError, match="max_joint_step must be a number above 0"):
        solver.solve_path(PATH, HOME, max_joint_step=0)


def test_answers_of_a_path_and_a_list_are_collision_free_in_a_scene():
    scene = PlanningScene(WAM)
    solver = IkSolver(WAM, task=STACK, scene=scene)
    result = solver.solve_path(PATH[:3], HOME)
    assert result.contacts == (None, None, None)
    assert not scene.snapshot.in_collision(solver.solve_all(PATH[0], 3)[:]).any()


def test_solutions_are_distinct_minima_the_best_first(solver):
    found = solver.solve_all(PATH[6], 5)
    assert 1 < len(found) <= 5
    np.testing.assert_allclose(WAM.fk(found.q), np.tile(PATH[6], (len(found), 1, 1)), atol=1e-5)
    for one, other in zip(found.level_errors, found.level_errors[1:], strict=False):
        assert compare_levels(one**2, other**2) >= 0
    gaps = np.abs(found.q[:, None] - found.q).max(axis=2)
    assert (gaps[np.triu_indices(len(found), 1)] > 0.1).all()
    best = np.array(solver.solve(PATH[6]).level_errors)
    np.testing.assert_allclose(found.level_errors[0], best, atol=1e-6)
    for q, errors in zip(found, found.level_errors, strict=True):  # each is a local minimum
        np.testing.assert_allclose(solver.solve(PATH[6], q).level_errors, errors, atol=1e-6)


def test_no_solution_of_an_unreachable_pose_and_none_if_a_level_above_prevents_it(solver):
    far = PATH[0].copy()
    far[:3, 3] = 9.0
    assert solver.solve_all(far).shape == (0, 7)
    elbow = FrameTask("wam_link4", (-0.5, 0.0, 0.2), Task.position_only())
    assert not solver.solve_all(PATH[0], task=TaskStack(elbow, Task()))


def test_closest_configuration_answers_if_it_is_asked_for(solver):
    far = PATH[0].copy()
    far[0, 3] += 0.6
    assert not solver.solve(far).success
    close = solver.solve(far, approximate=True)
    assert close.success
    assert close.status is not Status.SUCCESS
    plain = IkSolver(WAM).solve(far, approximate=True)
    np.testing.assert_allclose(close.position_error, plain.position_error, atol=0.01)
    assert solver.solve_batch(far[None], approximate=True).success.all()


def test_joint_change_limits_are_refused_in_batches(solver):
    with pytest.raises(OptionError, match="max_joint_change cannot be combined"):
        solver.solve_batch(PATH, HOME, max_joint_change=0.1)
