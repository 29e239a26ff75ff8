# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik solve``: answers against the library and forward kinematics, exit codes, pictures."""

import json

import numpy as np
import pytest
from cli_runner import BAD_INPUT, NO_SOLUTION, document, refusal, run
from robots import ROOT

from dls_ik import IkSolver, PlanningScene, RobotModel
from dls_ik.cli.solve import Question, draw_comparison, solve_by_each

POSE = ("--xyz", 0.4, 0.2, 0.5, "--quat", 0, 1, 0, 0)
FAR = ("--xyz", 0.4, 0.2, 1.5)
SEED = "0,0.6,0,1.6,0,0.5,0"


@pytest.fixture(scope="module")
def robot():
    return RobotModel.wam()


def values(answer):
    return np.array(list(answer["joints"].values()))


def test_answer_reaches_the_pose_and_equals_the_library(robot):
    found = document("solve", "wam", *POSE, "--seed", SEED)
    (answer,) = found["answers"]
    T = np.array(found["target"]["matrix"])
    np.testing.assert_allclose(robot.fk(values(answer)), T, atol=2e-6)
    again = IkSolver(robot).solve(T, [float(x) for x in SEED.split(",")])
    np.testing.assert_array_equal(values(answer), again.q)
    assert answer["largest_change"] == np.abs(again.q - list(found["seed"].values())).max()
    room = np.minimum(again.q - robot.lower, robot.upper - again.q)
    np.testing.assert_array_equal(list(answer["distance_to_limit"].values()), room)


def test_several_methods_are_compared_in_one_table():
    found = document("solve", "wam", *POSE, "--method", "auto, svf+sd", "--seed", SEED)
    assert [answer["method"] for answer in found["answers"]] == ["auto", "svf+sd"]
    assert all(answer["success"] for answer in found["answers"])
    wide = run("solve", "wam", *POSE, "--method", "auto,svf+sd", "--seed", SEED, columns=100).stdout
    assert "change: largest joint change from the seed [rad or m]" in wide
    assert wide.splitlines()[5:7] == [
        "auto    error damping, an active set of limits, restarts",
        "svf+sd  singular value filtering + selective damping",
    ]
    assert len(wide.splitlines()) == 8
    (row,) = (
        line
        for line in run(
            "solve", "wam", *POSE, "--method", "auto,sd", "--seed", SEED, columns=160
        ).stdout.splitlines()
        if line.startswith("sd ")
    )
    assert row.split()[1:4] == ["selective", "damping", "SUCCESS"]
    narrow = run("solve", "wam", *POSE, "--method", "auto,svf+sd", columns=50).stdout
    assert "  iterations" in narrow
    assert all(len(line) <= 50 for line in narrow.splitlines())


def test_exit_code_and_reason_where_one_method_of_several_fails():
    few = ("--set", "max_iterations=3", "--seed", SEED, "--timeout", "60")
    result = run("solve", "wam", *POSE, "--method", "auto,jt", *few, code=NO_SOLUTION)
    assert result.stderr.startswith("dls-ik: jt: MAX_RESTARTS: no attempt reached the pose")
    assert result.stderr.count("\n") == 1


def test_unreachable_pose_returns_the_closest_configuration(robot):
    found = document("solve", "wam", *FAR, code=NO_SOLUTION)
    (answer,) = found["answers"]
    assert answer["status"] == "UNREACHABLE"
    off = robot.fk(values(answer))[:3, 3] - found["target"]["xyz"]
    assert np.linalg.norm(off) == pytest.approx(answer["position_error"])
    assert document("solve", "wam", *FAR, "--approximate")["answers"][0]["success"]


def test_the_tolerances_that_a_near_miss_proposes_accept_it():
    """3.14 instead of pi tilts the gripper sideways, which five joints cannot follow."""
    down = ("--xyz", 0.25, 0.1, 0.05, "--rpy", 0, 3.14, 0, "--task", "pointing")
    asked = ("solve", str(ROOT / "examples" / "robots" / "desktop_arm.urdf"), *down)
    error = run(*asked, code=NO_SOLUTION).stderr
    proposed = error.rpartition("; ")[2].removesuffix(" would accept it\n").split()
    assert proposed[0] == "--set", error
    run(*asked, *proposed)
    assert "--set" not in run("solve", "wam", *FAR, code=NO_SOLUTION).stderr


@pytest.mark.parametrize(
    ("task", "kept"), [("position", []), ("pointing", [2]), ("pointing-x", [0])]
)
def test_task_option_constrains_only_its_parts_of_the_pose(robot, task, kept):
    found = document("solve", "wam", *POSE, "--task", task)
    T, goal = robot.fk(values(found["answers"][0])), np.array(found["target"]["matrix"])
    np.testing.assert_allclose(T[:3, 3], goal[:3, 3], atol=2e-6)
    np.testing.assert_allclose(T[:3, kept], goal[:3, kept], atol=2e-6)


def test_all_solutions_reach_the_pose_and_differ(robot):
    found = document("solve", "wam", *POSE, "--all", 4)
    q = np.array([list(each.values()) for each in found["solutions"]])
    assert len(q) == 4
    same_elbow = np.abs(q[:, None, 3] - q[:, 3]) < 1e-3
    assert found["families"][0] == 0
    for i, k in zip(*np.nonzero(np.equal.outer(found["families"], found["families"])), strict=True):
        assert same_elbow[i, k]
    assert max(found["position_errors"] + found["rotation_errors"]) <= 1e-6
    np.testing.assert_allclose(
        robot.fk(q), np.broadcast_to(found["target"]["matrix"], (4, 4, 4)), atol=2e-6
    )
    assert run("solve", "wam", *POSE, "--all", 2, columns=40).stdout.count("wam_j7") == 2
    shown = " ".join(run("solve", "wam", *POSE, "--all", 2).stdout.split())
    assert "solutions with the same family number are connected by self-motion" in shown
    assert "no solution" in run("solve", "wam", *FAR, "--all", 2, code=NO_SOLUTION).stderr


def test_set_option_changes_solver_options():
    loose = document("solve", "wam", *POSE, "--set", "position_tolerance=0.01", "--seed", SEED)
    tight = document("solve", "wam", *POSE, "--seed", SEED)
    assert loose["answers"][0]["iterations"] <= tight["answers"][0]["iterations"]
    for words in ("lambda=0.2", "soft=true", "joint_weights=1,1,1,1,1,1,2", "policy=constant"):
        document("solve", "wam", *POSE, "--method", "jd", "--set", words, "--seed", SEED)


def test_plot_and_json_can_be_combined(tmp_path):
    path = tmp_path / "methods.png"
    result = run(
        "solve", "wam", *POSE, "--method", "auto,svf", "--seed", SEED, "--plot", path, "--json"
    )
    assert path.read_bytes().startswith(b"\x89PNG")
    assert len(json.loads(result.stdout)["answers"]) == 2
    shown = run("solve", "wam", *POSE, "--seed", SEED, columns=60).stdout
    assert "wam_j7" in shown
    assert "SUCCESS" in shown
    assert all(len(line) <= 60 for line in shown.splitlines())


@pytest.mark.parametrize("seed", [None, np.array([0.3, 0.5, 0.0, 1.5, 0.2, -0.3, 0.0])])
def test_plotted_lines_end_at_the_error_of_the_solver(robot, seed):
    """For methods with restarts, the picture states that it shows the first attempt."""
    rng, lines = np.random.default_rng(3), 0
    for T in robot.fk(robot.random(3, rng)):
        question = Question(robot, T, seed, None, {}, {})
        results = solve_by_each(question, ["auto", "sdls", "jt"])
        figure = draw_comparison(question, results)
        for (name, result), line in zip(results.items(), figure.axes[0].lines, strict=True):
            drawn = line.get_ydata()
            if seed is None and name == "auto":
                assert line.get_label() == "auto (an attempt from mid-range)"
            elif result.restarts:
                assert line.get_label() == f"{name} (attempt 1 of {result.restarts + 1})"
            else:
                lines += 1
                assert line.get_label() == name
                assert len(drawn) == result.iterations + 1
                left = np.hypot(result.position_error, 0.5 * result.rotation_error)
                assert drawn[-1] == pytest.approx(left, rel=1e-6, abs=1e-9)
    assert lines >= 4


def test_robot_with_several_tips_needs_the_tip_option():
    from dls_ik.model.files import share_file

    said = refusal("solve", share_file("urdf", "y_shape.urdf"), *POSE, code=BAD_INPUT)
    assert "E0, E1; choose one: --tip E0" in said


SHELF = "shelf\n* board\n1\nbox\n0.3 0.8 0.02\n0.65 0 0.5\n0 0 0 1\n0 0 0 0\n.\n"


def test_answer_with_scene_reports_clearance_or_collision(tmp_path):
    pytest.importorskip("coal")
    file = tmp_path / "shelf.scene"
    file.write_text(SHELF)
    pose = ["--rpy", "0", "1.57", "0", "--scene", file, "--xyz", "0.62", "0.1"]
    (answer,) = document("solve", "wam", *pose, "0.3")["answers"]
    q = list(answer["joints"].values())
    board = PlanningScene(RobotModel.wam())
    board.load(file)
    closest = board.distance(q)
    assert answer["clearance"] == pytest.approx(closest.distance)
    assert closest.distance > 0.0
    assert answer["closest"] == [*closest.names]
    assert f"{1e3 * closest.distance:.1f} mm: " in run("solve", "wam", *pose, "0.3").stdout
    failed = run("solve", "wam", *pose, "0.5", code=NO_SOLUTION)
    assert "IN_COLLISION" in failed.stderr
    assert "most frequent collision: board - " in failed.stderr
