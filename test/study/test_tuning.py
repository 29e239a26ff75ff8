# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik tune``: scores, intervals, the search for the best value, refusals, the command."""

from itertools import pairwise

import numpy as np
import pytest
from cli_runner import document, refusal, run

from dls_ik import IkSolver, Stepper, Task
from dls_ik.errors import DlsIkError
from dls_ik.model.rotations import rotation_about, transform
from dls_ik.study import StudyRobot, Tuning, study_pairs, tune
from dls_ik.study.definition import study_of
from dls_ik.study.pictures import tuning_picture
from dls_ik.study.track import line_poses, track_targets
from dls_ik.study.tuning import _best_of

ARM = StudyRobot("planar_2r", "planar_2r")


def of_planar(**changes):
    given = {"pairs": 40, "task": "position", **changes}
    return Tuning(ARM, "dls", "lambda_", **given)


def test_shares_are_those_of_the_solver():
    result = tune(of_planar(values=(0.1, 0.5)))
    robot = ARM.load()
    starts, goals = study_pairs(robot, "far", 40)
    for point in result.points:
        solver = IkSolver(robot, "dls", task=Task.position_only(), lambda_=point.value)
        solved = [solver.solve(T, q).success for T, q in zip(robot.fk(goals), starts, strict=True)]
        assert point.score.value == np.mean(solved)
        assert point.score.low < point.score.value < point.score.high


def test_best_value_is_refined_and_checked_on_other_pairs():
    result = tune(of_planar(criterion="iterations"))
    values = [point.value for point in result.points]
    scores = [point.score.value for point in result.points]
    assert values == sorted(set(values))
    assert len(values) > 13  # the grid and values between
    assert result.best_point.score.value == min(scores)
    assert result.best.low <= result.best.value <= result.best.high
    assert result.best.value in result.as_good
    assert result.check.seed == 1
    assert result.check.default.value == 0.1
    again = tune(of_planar(criterion="iterations"))
    assert again.points == result.points
    assert again.best == result.best  # the bootstrap has a seed


def test_grid_is_extended_at_ends_that_are_left_open():
    given = {"pairs": 10, "task": "position", "case": "near"}
    given |= {"criterion": "tracking", "steps": 10}
    free = tune(Tuning(ARM, "ed", "error_gain", **given))
    assert free.points[0].value < 0.5 / 30.0 / 10.0  # less damping follows more closely
    assert free.points[-1].value == 15.0
    closed = tune(Tuning(ARM, "ed", "error_gain", low=0.1, **given))
    assert closed.points[0].value == 0.1
    assert closed.is_at_end


def test_tracking_error_is_that_of_single_steps():
    entries = {"robots": ["planar_2r"], "methods": ["dls"], "pairs": 3, "task": "position"}
    study = study_of(entries)
    error, reversals = track_targets(study, 10)
    robot = ARM.load()
    starts, goals = study_pairs(robot, "far", 3)
    for i in range(3):
        stepper = Stepper(robot, "dls", starts[i], task=Task.position_only())
        first, last = (robot.fk(q)[:3, 3] for q in (starts[i], goals[i]))
        found, steps = [], []
        for k in range(1, 11):
            T = np.eye(4)
            T[:3, 3] = first + 0.1 * k * (last - first)
            steps.append(stepper.step(T))
            found.append(np.linalg.norm(robot.fk(stepper.q)[:3, 3] - T[:3, 3]))
        assert error[i, 0] == pytest.approx(np.mean(found), rel=1e-9)
        turned = [old * new < 0.0 for old, new in pairwise(steps)]
        assert reversals[i, 0] == pytest.approx(np.mean(turned))


def test_line_of_poses_turns_about_a_fixed_axis():
    axis = np.array([0.6, 0.0, 0.8])
    first = transform(rotation_about(axis, 0.2), np.array([1.0, 0.0, 0.0]))
    last = transform(rotation_about(axis, 2.2), np.array([0.0, 2.0, 0.0]))
    poses = line_poses(first, last, 4)
    for k, T in enumerate(poses, start=1):
        expected = transform(
            rotation_about(axis, 0.2 + 0.5 * k), np.array([1.0 - 0.25 * k, 0.5 * k, 0.0])
        )
        np.testing.assert_allclose(T, expected, atol=1e-12)


def test_fewer_reversals_cost_accuracy():
    free = tune(of_planar(criterion="tracking", pairs=10, steps=30))
    share = min(point.reversals for point in free.points)
    smooth = tune(of_planar(criterion="tracking", pairs=10, steps=30, max_reversals=share))
    assert smooth.best_point.score.value >= free.best_point.score.value
    chosen = smooth.best_point
    assert chosen.reversals <= share or share == 0.0


def test_values_that_solve_no_pair_are_all_equally_good():
    result = tune(of_planar(values=(30.0, 40.0), pairs=10, options=(("max_iterations", 3),)))
    assert [point.score.value for point in result.points] == [0.0, 0.0]
    assert result.as_good == (30.0, 40.0)


def test_curve_of_values_that_solve_no_pair_is_refused():
    options = (("max_iterations", 3),)
    result = tune(of_planar(values=(30.0, 40.0), pairs=10, options=options, criterion="iterations"))
    with pytest.raises(DlsIkError, match="no value of lambda_ solved a pair"):
        tuning_picture(result)


def test_grid_of_a_length_is_not_rounded_to_whole_numbers():
    tuning = Tuning(ARM, "dls+clamp", "D_max", pairs=10, low=0.05, high=0.4, task="position")
    assert all(0.0 < point.value < 1.0 for point in tune(tuning).points)


def test_middle_of_equal_costs_is_best():
    costs = np.array([[1.0, 0.0, 0.0, 0.0, 2.0], [np.inf, np.inf, np.inf, np.inf, np.inf]])
    assert _best_of(costs).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"option": "lamda"}, "did you mean lambda_"),
        ({"option": "position_tolerance"}, "decides what counts as solved"),
        ({"option": "policy"}, "is not a number"),
        ({"option": "max_iterations"}, "never solves fewer pairs"),
        ({"option": "stall_count"}, "give the ends of the grid, or values"),
        ({"option": "margin"}, "margin changes no answer of dls"),
        ({"options": (("lambda_", 0.1),)}, "cannot be set to a value too"),
        ({"criterion": "speed"}, "unknown criterion 'speed'"),
        ({"case": "close"}, "unknown case 'close'"),
        ({"pairs": 2}, "pairs must be an integer of at least 10"),
        ({"values": (0.1,)}, "give 2 to 200 different values"),
        ({"values": (0.1, -1.0)}, "must be a number from 0"),
        ({"values": (0.1, 0.2), "low": 0.1}, "either values, or the ends"),
        ({"low": 2.0, "high": 1.0}, "needs a positive smallest value"),
        ({"option": "stall_ratio", "criterion": "tracking"}, "belongs to the search for one pose"),
        ({"criterion": "tracking", "steps": 0}, "steps must be from 1"),
        ({"criterion": "tracking", "method": "sqp", "option": "Delta_tolerance"}, "no target"),
    ],
)
def test_what_makes_no_sense_is_refused(changes, words):
    given = {"method": "dls", "option": "lambda_", "pairs": 10, "task": "position", **changes}
    with pytest.raises(DlsIkError, match=words.replace("(", r"\(")):
        tune(Tuning(ARM, **given))


def test_values_that_the_method_excludes_are_left_out_of_a_grid():
    tuning = Tuning(StudyRobot("wam", "wam"), "svf", "sigma0", pairs=10)
    assert max(point.value for point in tune(tuning).points) < 0.2  # 2 > nu * sigma0


# Command


def test_command_prints_curve_and_picture(tmp_path):
    words = ("tune", "planar_2r", "--task", "position", "--pairs", 20)
    printed = run(*words, "--plot", tmp_path / "curve.png", columns=100).stdout
    assert "planar_2r, dls: lambda_ by solved, 20 pairs, case far, seed 0" in printed
    assert "best" in printed
    assert "other pairs" in printed
    assert (tmp_path / "curve.png").stat().st_size > 1000
    found = document(*words, "--values", "0.1,0.5,1")
    assert [each["value"] for each in found["curve"]] == [0.1, 0.5, 1.0]
    assert found["best"]["value"] in (0.1, 0.5, 1.0)
    assert "unknown option 'nonsense'" in refusal(*words, "--option", "nonsense")
