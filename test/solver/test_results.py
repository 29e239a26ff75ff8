"""Results at a prompt and as conditions, and in words."""

import inspect

import numpy as np
import pytest
from arms import published

from dls_ik import IkSolver, RobotModel, Status, Stepper, Task
from dls_ik.servo import Controller, LocalIk

WAM, YOUBOT = RobotModel.wam(), published("youbot")
T = WAM.fk(np.full(7, 0.3))
FAR = T + 3.0 * np.eye(4, k=3)
SOLVER = IkSolver(WAM)


def test_an_answer_is_true_if_it_is_a_success():
    assert SOLVER.solve(T)
    assert not SOLVER.solve(FAR)
    near = SOLVER.solve(FAR, approximate=True)
    assert near
    assert near.status is Status.UNREACHABLE
    assert bool(SOLVER.solve_batch(T[None])[0]) is True


def test_answers_for_many_are_no_condition():
    for many in (SOLVER.solve_batch([T, FAR]), SOLVER.solve_path([T])):
        with pytest.raises(ValueError, match=r"use \.success\.all\(\) or"):
            bool(many)
    assert SOLVER.solve_batch([T, T]).success.all()


def test_they_are_short_at_a_prompt():
    found, missed = SOLVER.solve(T), SOLVER.solve(FAR)
    assert repr(found).startswith("IkResult(SUCCESS, q=[")
    assert repr(missed).startswith("IkResult(UNREACHABLE, q=[")
    assert repr(SOLVER.solve(FAR, approximate=True)).startswith("IkResult(approximate, UNREACH")
    assert max(len(repr(found)), len(repr(missed))) < 200
    many = SOLVER.solve_batch([T, T, FAR])
    assert repr(many) == f"IkBatchResult(2 of 3 solved, {1e3 * many.duration:.3g} ms)"
    path = SOLVER.solve_path([T, T])
    assert repr(path) == f"IkPathResult(2 of 2 solved, 0 jumps, {1e3 * path.duration:.3g} ms)"
    assert many.statuses == (Status.SUCCESS, Status.SUCCESS, Status.UNREACHABLE)
    assert repr(many.statuses[0]) == "Status.SUCCESS"


def test_so_are_those_that_find_them():
    pointing = IkSolver(WAM, "ED", task=Task.pointing(), max_restarts=10)
    expected = {
        WAM: "RobotModel(wam7, wam_base to wam_tip, 7 joints)",
        SOLVER: "IkSolver(wam7, auto)",
        pointing: "IkSolver(wam7, ed, task=Task(rotation='xy', frame='target'), max_restarts=10)",
        Controller(WAM): "Controller(wam7, ctp+sd+svf, WAITING)",
        LocalIk(WAM): "LocalIk(wam7, ctp+sd+svf)",
        Stepper(WAM, "sd"): "Stepper(wam7, sd)",
        Task(): "Task()",
    }
    assert [repr(each) for each in expected] == list(expected.values())


@pytest.mark.parametrize("kind", [RobotModel, IkSolver, Stepper, LocalIk, Controller])
def test_signatures_name_their_types(kind):
    methods = [each for name, each in vars(kind).items() if inspect.isfunction(each)]
    for method in methods:
        assert "numpy._typing" not in str(inspect.signature(method)), method


def test_what_is_said_is_of_what_was_asked():
    beyond = SOLVER.solve(FAR)
    assert SOLVER.explain(beyond) == Status.UNREACHABLE.explanation
    assert min(len(status.explanation) for status in Status) > 20
    assert not any("seed" in Status(s).explanation for s in (Status.UNREACHABLE, Status.TIMED_OUT))
    seed = np.full(7, 2.5)
    apart = SOLVER.solve(T, WAM.upper + 3.0, max_joint_change=1.0)
    assert apart.status is Status.FAR_FROM_SEED
    assert "max_joint_change of the seed" in SOLVER.explain(apart)
    heedless = IkSolver(WAM, "jp").solve(T, np.full(7, 0.31), max_joint_change=1e-4)
    assert heedless.status is Status.FAR_FROM_SEED
    assert SOLVER.explain(SOLVER.solve(T, seed)) == Status.SUCCESS.explanation


def test_an_arm_with_few_joints_is_asked_for_less():
    solver, tilted = IkSolver(YOUBOT), YOUBOT.fk(np.full(5, 0.3))
    tilted[:3, :3] = tilted[:3, [1, 2, 0]]
    words = solver.explain(solver.solve(tilted))
    for hint in ("5 joints", "6 numbers", "Task.position_only()", "Task.pointing('z')"):
        assert hint in words
    pointing = Task.pointing("z")
    assert "5 joints" not in solver.explain(solver.solve(tilted, task=pointing), pointing)
    assert "joints" not in solver.explain(solver.solve(YOUBOT.fk(np.full(5, 0.3))))
    loose = Task(rotation_tolerance=0.1)
    assert "joints" not in IkSolver(YOUBOT, task=loose).explain(solver.solve(tilted))
