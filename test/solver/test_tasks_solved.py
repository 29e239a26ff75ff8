"""Tasks through the solver: what counts is reached, what does not is left to the arm."""

import numpy as np
import pytest
from robots import URDF

from dls_ik import IkSolver, RobotModel, Status, Task
from dls_ik.errors import MethodError, OptionError, PoseError

WAM, PUMA = RobotModel.wam(), RobotModel.from_name("puma560")
Y = RobotModel.from_urdf(URDF / "y_shape.urdf", tip=("E0", "E1"))


@pytest.mark.parametrize("robot", [WAM, PUMA], ids=["wam", "puma560"])
@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_a_pointing_tool_points(robot, axis):
    rng = np.random.default_rng(1)
    Ts, seeds = robot.fk(robot.random(rng, 50)), robot.random(rng, 50)
    found = IkSolver(robot, task=Task.pointing(axis)).solve_batch(Ts, seeds)
    assert found.success.all()
    reached, k = robot.fk(found.q), "xyz".index(axis)
    np.testing.assert_allclose(reached[:, :3, 3], Ts[:, :3, 3], atol=1e-6)
    np.testing.assert_allclose(reached[:, :3, k], Ts[:, :3, k], atol=1e-6)
    turned = np.abs(reached[:, :3, (k + 1) % 3] - Ts[:, :3, (k + 1) % 3]).max(axis=1)
    assert np.median(turned) > 1e-2  # about it the tool is free


def test_position_of_two_axes_leaves_the_third():
    rng = np.random.default_rng(2)
    T = WAM.fk(WAM.random(rng))
    found = IkSolver(WAM, "dls", task=Task(position="xz", rotation="")).solve(T, np.full(7, 0.3))
    off = WAM.fk(found.q)[:3, 3] - T[:3, 3]
    assert found.position_error == pytest.approx(np.hypot(off[0], off[2]), abs=1e-12)
    assert found.rotation_error == 0.0
    assert abs(off[1]) > 1e-3


@pytest.mark.parametrize("name", ["auto", "sdls+clamp", "dls", "odls"])
def test_two_tips_are_brought_to_their_places_together(name):
    rng = np.random.default_rng(3)
    goals = Y.fk(0.5 * rng.normal(size=(20, Y.n)))
    solver = IkSolver(Y, name, task=Task.position_only(), max_restarts=20)
    found = solver.solve_batch(goals, np.full(Y.n, 0.1))
    assert goals.shape == (20, 2, 4, 4)
    assert found.success.mean() > 0.9
    away = Y.fk(found.q)[..., :3, 3] - goals[..., :3, 3]
    assert np.linalg.norm(away[found.success], axis=-1).max() <= 1e-6


def test_each_tip_has_a_task_of_its_own():
    goals = Y.fk(np.full(Y.n, 0.3))
    goals[1, :3, 3] += 10.0  # far out of reach, and of no account
    task = [Task.position_only(), Task(position="", rotation="z")]
    assert IkSolver(Y, task=task).solve(goals).status is Status.SUCCESS
    assert IkSolver(Y, task=Task.position_only()).solve(goals).status is Status.TIMED_OUT


def test_a_task_with_the_call_goes_before_the_solvers():
    rng = np.random.default_rng(4)
    T = WAM.fk(WAM.random(rng))
    T[:3, :3] = WAM.fk(WAM.random(rng))[:3, :3]
    solver = IkSolver(WAM, "ed", task=Task.position_only())
    free = solver.solve(T, np.full(7, 0.2))
    exact = solver.solve(T, np.full(7, 0.2), task=Task.pose())
    assert free.rotation_error == 0.0 < exact.rotation_error + exact.iterations
    assert not np.array_equal(free.q, exact.q)
    np.testing.assert_array_equal(exact.q, IkSolver(WAM, "ed").solve(T, np.full(7, 0.2)).q)


def test_bad_input_is_refused():
    with pytest.raises(OptionError, match="2"):
        IkSolver(Y, task=[Task.pose()])
    with pytest.raises(OptionError, match=r"dls_ik\.Task"):
        IkSolver(WAM, task="position")
    with pytest.raises(PoseError, match="2"):
        IkSolver(Y, task=Task.position_only()).solve(np.eye(4))
    with pytest.raises(MethodError, match="redundancy"):
        IkSolver(PUMA, "ta")
    assert IkSolver(PUMA, "ta", task=Task.position_only()).method == "ta"
    with pytest.raises(MethodError, match="redundancy"):
        IkSolver(PUMA, "ta", task=Task.position_only()).solve(np.eye(4), task=Task.pose())
