# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Results: truth value, text, and table in notebooks."""

import inspect
from html.parser import HTMLParser

import numpy as np
import pytest
from arms import published

from dls_ik import IkSolver, RobotModel, Status, Stepper, Task
from dls_ik.model import shipped_urdf
from dls_ik.servo import Controller, LocalIk

WAM, YOUBOT = RobotModel.wam(), published("youbot")
T = WAM.fk(np.full(7, 0.3))
FAR = T + 3.0 * np.eye(4, k=3)
SOLVER = IkSolver(WAM)


def test_a_result_is_true_on_success():
    assert SOLVER.solve(T)
    assert not SOLVER.solve(FAR)
    near = SOLVER.solve(FAR, approximate=True)
    assert near
    assert near.status is Status.UNREACHABLE
    assert bool(SOLVER.solve_batch(T[None])[0]) is True


def test_batch_results_have_no_truth_value():
    for many in (SOLVER.solve_batch([T, FAR]), SOLVER.solve_path([T])):
        with pytest.raises(ValueError, match=r"use \.success\.all\(\) or"):
            bool(many)
    assert SOLVER.solve_batch([T, T]).success.all()


def test_results_have_a_short_repr():
    found, missed = SOLVER.solve(T), SOLVER.solve(FAR)
    assert repr(found).startswith("IkResult(SUCCESS, q=[")
    assert repr(missed).startswith("IkResult(UNREACHABLE, q=[")
    assert repr(SOLVER.solve(FAR, approximate=True)).startswith("IkResult(approximate, UNREACH")
    assert max(len(repr(found)), len(repr(missed))) < 200
    many = SOLVER.solve_batch([T, T, FAR])
    spent = f"{1e3 * many.duration:.3g} ms"
    assert repr(many) == f"IkBatchResult(2 of 3 solved, 1 UNREACHABLE, {spent})"
    path = SOLVER.solve_path([T, T])
    assert repr(path) == f"IkPathResult(2 of 2 solved, 0 jumps, {1e3 * path.duration:.3g} ms)"
    assert many.statuses == (Status.SUCCESS, Status.SUCCESS, Status.UNREACHABLE)
    assert repr(many.statuses[0]) == "Status.SUCCESS"


def test_solvers_have_a_short_repr():
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
def test_signatures_have_type_names(kind):
    methods = [each for each in vars(kind).values() if inspect.isfunction(each)]
    for method in methods:
        assert "numpy._typing" not in str(inspect.signature(method)), method


class Cells(HTMLParser):
    """Parser that collects table cells and checks that every element is closed."""

    def __init__(self, text):
        super().__init__()
        self.rows, self.open, self.tags = [], [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if {"td", "th"} & set(self.open):
            self.rows[-1][-1] += data


def test_notebooks_show_results_as_tables():
    results = (
        SOLVER.solve(T),
        SOLVER.solve_batch([T, FAR, T * np.nan] * 3),
        SOLVER.solve_path([T] * 3),
    )
    pages = [Cells(each._repr_html_()) for each in results]
    assert [(len(page.rows), len(page.open)) for page in pages] == [(8, 0), (6, 0), (8, 0)]
    one, many, path = pages
    assert one.rows[3][:2] == ["wam_j3", f"{results[0].q[2]:.4f} rad"]
    assert [row[1] for row in many.rows[1:4]] == ["SUCCESS", "UNREACHABLE", "REFUSED"]
    assert path.rows[7][:4] == [
        "wam_j7",
        *[f"{path_q:.4f} rad" for path_q in results[2].q[[0, 2], 6]],
        "0.0000 rad",
    ]
    empty = SOLVER.solve_path(np.empty((0, 4, 4)))
    assert not Cells(empty._repr_html_()).rows
    script = RobotModel.from_urdf(
        shipped_urdf("wam").read_text().replace("wam_j1", "&lt;script&gt;")
    )
    assert "<script>" in script.joint_names
    solver = IkSolver(script)
    for each in (solver.solve(T), solver.solve_batch([T]), solver.solve_path([T])):
        page = Cells(each._repr_html_())
        assert "script" not in page.tags
        assert "<script>" in str(page.rows)


def test_explanations_name_the_cause_of_a_failure():
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


def test_explanations_suggest_a_smaller_task_for_few_joints():
    solver, tilted = IkSolver(YOUBOT), YOUBOT.fk(np.full(5, 0.3))
    tilted[:3, :3] = tilted[:3, [1, 2, 0]]
    failed = solver.solve(tilted)
    assert "5 joints" in solver.explain(failed)
    words = solver.explain(failed, T=tilted)
    for task in (Task.position_only(), Task.pointing("z")):
        name = "position_only()" if not task.rotation else "pointing('z')"
        assert (f"task=Task.{name}" in words) == solver.solve(tilted, task=task).success
    assert "6 components" in words
    assert "task=Task.position_only()" in words
    far = tilted.copy()
    far[0, 3] = 5.0
    assert "neither position nor pointing" in solver.explain(solver.solve(far), T=far)
    pointing = Task.pointing("z")
    assert "5 joints" not in solver.explain(solver.solve(tilted, task=pointing), pointing)
    assert "joints" not in solver.explain(solver.solve(YOUBOT.fk(np.full(5, 0.3))))
    loose = Task(rotation_tolerance=0.1)
    assert "joints" not in IkSolver(YOUBOT, task=loose).explain(solver.solve(tilted))
