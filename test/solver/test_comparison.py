# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Comparison of methods along paths: published figures, test paths, invalid arguments."""

import re

import numpy as np
import pytest
from robots import ROOT, TEST_URDF, URDF

from benchmarks.tracking import paths
from dls_ik import (
    FrameTask,
    IkSolver,
    PostureTask,
    RobotModel,
    Stepper,
    SwivelTask,
    Task,
    TaskStack,
)
from dls_ik.errors import MethodError, OptionError, RobotModelError
from dls_ik.solver.comparison import compare_on_path
from dls_ik.solver.hard_paths import PosePath, default_task, reach_path, singular_path

WAM = RobotModel.wam()
STREAMED = ("jp", "jd", "svf", "dls", "sd", "sdls+clamp", "odls")


def test_the_wam_path_and_its_figures_match_benchmarks_and_docs():
    path, known = singular_path(WAM), paths()["wrist"]
    np.testing.assert_allclose(path.start, known.start(), atol=1e-12)
    np.testing.assert_allclose(path.Ts[[0, 700]], [known.pose(0.0), known.pose(7.0)], atol=1e-15)
    peaks = compare_on_path(WAM, STREAMED, path).peaks()
    page = (ROOT / "docs" / "lab" / "choosing.md").read_text()
    for name in STREAMED:
        row = re.findall(rf"^\| `{re.escape(name)}` \| (\S+) \| (\S+) \| (\S+) \|", page, re.M)[-1]
        peak = peaks[name]
        found = (peak.fastest_joint, 1e3 * peak.largest_error, 1e3 * peak.rms_error)
        for figure, printed in zip(found, row, strict=True):
            assert figure == pytest.approx(float(printed), abs=0.06 if "." in printed else 0.6)


ARMS = {
    "puma560": RobotModel.from_name("puma560"),
    "ur10e": RobotModel.from_urdf(TEST_URDF / "ur10e.urdf"),
    "planar_2r": RobotModel.from_name("planar_2r"),
}


@pytest.mark.parametrize("name", ARMS)
def test_methods_differ_on_the_paths_of_all_arms(name):
    robot = ARMS[name]
    task = default_task(robot)
    path = singular_path(robot, task)
    assert (path.about == "past a singularity") == (robot.n >= 6)
    if robot.n == 2:
        np.testing.assert_array_equal(singular_path(robot, task).Ts, path.Ts)
    peaks = compare_on_path(robot, ["jp", "svf", "svf+sd"], path, task).peaks()
    assert peaks["jp"].fastest_joint > 2.0 * peaks["svf+sd"].fastest_joint
    assert peaks["jp"].condition > 100.0
    assert np.linalg.norm(robot.fk(path.start)[:3, 3] - path.Ts[0, :3, 3]) < 1e-5
    if path.about == "past a singularity":
        assert robot.within_limits(path.start)
        assert IkSolver(robot).solve_path(path.Ts[:630:7], path.start).success.all()


def test_the_unreachable_path_leaves_the_workspace_by_half_its_width():
    path = reach_path(WAM)
    lost = [not IkSolver(WAM).solve(path.Ts[i], timeout=5.0).success for i in (0, 314, 628)]
    assert lost == [False, True, False]


@pytest.mark.parametrize("task", [None, Task.position_only(), Task.pointing("z"), Task("xz", "y")])
def test_condition_numbers_equal_those_of_the_stepper(task):
    Ts = WAM.fk(WAM.random(3, np.random.default_rng(2)))
    start = np.array([0.2, 0.6, 0.1, 1.5, 0.3, 0.4, 0.1])
    run = compare_on_path(WAM, ["jd"], PosePath("", Ts, 0.1, start), task).along["jd"]
    assert len(run.q) == len(run.condition) == len(run.step) + 1 == 4
    for q, T, condition in zip(run.q[1:], Ts, run.condition[1:], strict=True):
        J = Stepper(WAM, "jd", q, task=task).jacobian(T)
        assert condition == pytest.approx(np.linalg.cond(J), rel=1e-9)
    far = [np.linalg.norm(WAM.fk(q)[:3, 3] - T[:3, 3]) for q, T in zip(run.q[1:], Ts, strict=True)]
    np.testing.assert_allclose(run.position_error[1:], far)
    np.testing.assert_allclose(
        run.margin, np.minimum(run.q - WAM.lower, WAM.upper - run.q).min(axis=1)
    )


def test_a_run_stops_at_its_target_and_duplicate_methods_are_refused():
    compared = compare_on_path(WAM, ["ED", "ed", "jt"], singular_path(WAM), steps=12)
    assert list(compared.along) == ["ed", "jt"]
    errors = compared.at_target["ed"].error
    assert errors[-1] <= compared.tolerance < errors[-2]
    assert compared.peaks()["ed"].iterations == len(errors) - 1
    assert compared.peaks()["jt"].iterations is None


def test_invalid_comparisons_are_refused():
    path = singular_path(WAM)
    for names, error, words in (
        ([], OptionError, "methods is empty"),
        (["kdl_lma"], MethodError, "single steps"),
        (["svg"], MethodError, "did you mean svf"),
    ):
        with pytest.raises(error, match=words):
            compare_on_path(WAM, names, path)
    with pytest.raises(OptionError, match="2 poses"):
        compare_on_path(WAM, ["jp"], path._replace(Ts=path.Ts[:1]))
    with pytest.raises(RobotModelError, match="one tip"):
        singular_path(RobotModel.from_urdf(URDF / "y_shape.urdf", tip=("E0", "E1")))


def test_speeds_and_errors_are_those_of_the_second_lap():
    path = singular_path(WAM)
    found = compare_on_path(WAM, ["sd"], path)
    run, peak = found.along["sd"], found.peaks()["sd"]
    assert 0 < path.first_counted < len(path.Ts)
    assert peak.fastest_joint == run.step[path.first_counted :].max() / path.dt
    assert peak.largest_error == run.position_error[path.first_counted + 1 :].max()
    assert peak.fastest_joint < 0.95 * run.step.max() / path.dt  # the first lap is another one
    assert peak.largest_error < 0.95 * run.position_error.max()


def test_lower_levels_move_in_the_null_space_of_every_method():
    start = np.array([0.1, 0.6, 0.2, 1.6, 0.1, 0.5, 0.1])
    still = PosePath("rest", np.repeat(WAM.fk(start)[None], 300, axis=0), 0.01, start)
    turned = TaskStack(Task(), SwivelTask(0.4), PostureTask({"wam_j1": 0.0}))
    found = compare_on_path(WAM, ["jp", "svf", "sdls+clamp"], still, turned)
    for name, run in found.along.items():
        assert run.position_error.max() < 1e-5, name
        assert run.level_errors[-1, 1] < 1e-5 < run.level_errors[1, 1], name
        assert run.step.max() <= WAM.velocity.max() * still.dt + 1e-9
        assert len(found.peaks()[name].levels) == 3
    assert found.task == Task()
    plain = compare_on_path(WAM, ["jp"], still, Task())
    assert plain.along["jp"].level_errors.shape == (301, 0)
    assert plain.peaks()["jp"].levels == ()


def test_stacks_that_follow_no_target_are_not_compared():
    elbow = FrameTask("wam_link4", (0.1, 0.2, 0.6), Task.position_only())
    for stack in (TaskStack(elbow, Task()), TaskStack([Task(), elbow])):
        with pytest.raises(OptionError, match="must be the task of the tip alone; got"):
            compare_on_path(WAM, ["jp"], singular_path(WAM), stack)
