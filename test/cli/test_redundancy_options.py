# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Options of the redundancy: stacks, swivel angle, posture, frozen joints, joint weights."""

import json

import numpy as np
import pytest
from cli_runner import document, refusal, run
from robots import ROOT

from dls_ik import IkSolver, PostureTask, RobotModel, SwivelTask, Task, TaskStack

POSE = ("--xyz", 0.4, 0.2, 0.5, "--quat", 0, 1, 0, 0)
SEED = (0.0, 0.6, 0.0, 1.6, 0.0, 0.5, 0.0)
SEEDED = ("--seed", ",".join(map(str, SEED)))
CIRCLE = ROOT / "examples" / "circle.csv"
STACK = """
levels:
  - {kind: tip}
  - {kind: swivel, angle: 0.3}
  - {kind: posture, positions: {wam_j1: 0.0}}
"""
LEVELS = TaskStack(Task(), SwivelTask(0.3), PostureTask({"wam_j1": 0.0}))


@pytest.fixture(scope="module")
def robot():
    return RobotModel.wam()


@pytest.fixture
def stack_file(tmp_path):
    path = tmp_path / "stack.yaml"
    path.write_text(STACK, encoding="utf-8")
    return path


def test_file_and_options_of_a_stack_give_the_answer_of_the_library(robot, stack_file):
    given = document("solve", "wam", *POSE, *SEEDED, "--stack", stack_file)
    by_options = document("solve", "wam", *POSE, *SEEDED, "--swivel", 0.3, "--posture", "wam_j1=0")
    in_degrees = document(
        "solve", "wam", *POSE, "--deg", "--swivel", np.degrees(0.3), "--posture", "wam_j1=0",
        "--seed", ",".join(map(str, np.degrees(SEED))),
    )  # fmt: skip
    result = IkSolver(robot).solve(np.array(given["target"]["matrix"]), SEED, task=LEVELS)
    for found in (given, by_options, in_degrees):
        (answer,) = found["answers"]
        np.testing.assert_allclose([*answer["joints"].values()], result.q, atol=1e-9)
        tasks, errors = zip(*(level.values() for level in answer["levels"]), strict=True)
        assert tasks == ("tip", "swivel angle", "posture")
        np.testing.assert_allclose(errors, result.level_errors, atol=1e-9)


def test_errors_of_the_levels_are_printed(stack_file):
    text = run("solve", "wam", *POSE, "--stack", stack_file).stdout
    lines = {line[:7]: line[9:] for line in text.splitlines()}
    assert lines["level 1"].endswith(": tip")
    assert lines["level 3"].endswith(": posture")
    table = run(
        "solve", "wam", *POSE, "--stack", stack_file, "--method", "auto,svf+sd", columns=140
    ).stdout
    assert "level 1  level 2  level 3" in table
    listed = run("solve", "wam", *POSE, "--stack", stack_file, "--all", 2, columns=140).stdout
    assert "level 1  level 2  level 3" in listed
    found = document("solve", "wam", *POSE, "--stack", stack_file, "--all", 2)
    assert [len(level["error"]) for level in found["levels"]] == [len(found["solutions"])] * 3


def test_frozen_joints_stay_at_the_seed_or_at_their_value(robot):
    (answer,) = document("solve", "wam", *POSE, *SEEDED, "--frozen", "wam_j1")["answers"]
    assert answer["success"]
    assert answer["joints"]["wam_j1"] == SEED[0]
    assert answer["distance_to_limit"]["wam_j1"] == robot.upper[0]
    (answer,) = document("solve", "wam", *POSE, "--frozen", "wam_j3=0.2")["answers"]
    assert answer["joints"]["wam_j3"] == 0.2
    assert answer["success"]


def test_weights_decide_which_solution_is_the_nearest(robot):
    near = (*POSE, *SEEDED, "--solve-type", "nearest")
    changes = []
    for more in ((), ("--weights", "wam_j1=1000")):
        (answer,) = document("solve", "wam", *near, *more)["answers"]
        changes.append(abs(answer["joints"]["wam_j1"] - SEED[0]))
    assert changes[1] < 0.5 * changes[0]


def test_weights_apply_to_the_posture(robot):
    posture = ("--posture", "wam_j1=0.5,wam_j3=0.5")
    errors = []
    for weights in ("wam_j1=100", "wam_j3=100"):
        (answer,) = document("solve", "wam", *POSE, *SEEDED, *posture, "--weights", weights)[
            "answers"
        ]
        errors.append([abs(answer["joints"][name] - 0.5) for name in ("wam_j1", "wam_j3")])
    assert errors[0][0] < errors[1][0]
    assert errors[1][1] < errors[0][1]


def test_path_with_a_stack_and_a_frozen_joint(tmp_path, robot):
    out = tmp_path / "out.json"
    facts = document(
        "path", "wam", CIRCLE, "--rate", 20, "--out", out, "--posture", "wam_j1=0.3",
        "--frozen", "wam_j3=0.5",
    )  # fmt: skip
    assert facts["reached"] == facts["poses"]
    assert [level["tasks"] for level in facts["levels"]] == ["tip", "posture"]
    q = np.array(json.loads(out.read_text(encoding="utf-8"))["positions"])
    np.testing.assert_array_equal(q[:, 2], 0.5)
    assert facts["nearest_limit"]["joint"] != "wam_j3"  # limits of the robot, not of the frozen one
    assert (
        "level 2" in run("path", "wam", CIRCLE, "--rate", 20, "--out", out, "--swivel", 0.2).stdout
    )


def test_compare_locks_joints():
    found = document("compare", "wam", "--method", "svf", "--frozen", "wam_j3=0.2")
    assert "wam_j3" not in found["start"]
    along = document(
        "compare", "wam", "--method", "svf", "--path", CIRCLE, *SEEDED, "--frozen", "wam_j3"
    )
    assert [*along["start"].values()] == [x for j, x in enumerate(SEED) if j != 2]


REFUSED = {
    "--stack none.yaml": "cannot read the stack none.yaml: No such file",
    "--stack FILE --swivel 0.1": "--stack and --swivel cannot be combined; add the level {kind: "
    "swivel, angle: ...} to the file",
    "--stack FILE --posture wam_j1=0": "--stack and --posture cannot be combined",
    "--stack FILE --task position": "--stack and --task cannot be combined; add the level {kind: "
    "tip, ...} to the file",
    "--posture 1,2": "--posture: expected 7 joint positions",
    "--posture elbow=1": "--posture: unknown joint elbow",
    "--frozen wam_j33": "--frozen: unknown joint 'wam_j33'; joints: wam_j1, wam_j2",
    "--frozen wam_j3=2.9": "--frozen: wam_j3 at 2.9 rad is outside its limits, -2.8 to 2.8",
    "--frozen wam_j1,wam_j1": "--frozen: joint 'wam_j1' is given twice",
    "--frozen wam_j1,wam_j2,wam_j3,wam_j4,wam_j5,wam_j6,wam_j7": "all 7 joints are frozen",
    "--weights wam_j1=2": "--weights has no effect without --posture, --solve-type nearest or",
    "--weights 1,2 --all 2": "--weights: expected 7 weights (wam_j1, wam_j2,",
    "--weights arm=2 --all 2": "--weights: unknown joint 'arm'",
    "--weights wam_j1=0 --all 2": "joint_weights must be at least",
    "--weights wam_j1=2 --all 2 --set joint_weights=1": "--weights and --set joint_weights are the",
    "--swivel 0.1 --plot a.png": "--plot draws single steps of methods, which know no levels",
    "--swivel nan": "angle of a SwivelTask must be a finite number; got nan",
}


@pytest.mark.parametrize("given", REFUSED)
def test_options_that_do_not_fit_are_refused(given, stack_file):
    words = given.replace("FILE", str(stack_file)).split()
    assert REFUSED[given] in refusal("solve", "wam", *POSE, *words)


def test_compare_moves_the_lower_levels_with_each_method(stack_file):
    along = ("compare", "wam", "--method", "svf,jp", "--path", CIRCLE, *SEEDED, "--rate", 20)
    by_file, by_options = (
        document(*along, "--stack", stack_file),
        document(*along, "--swivel", 0.3, "--posture", "wam_j1=0", "--weights", "wam_j1=1"),
    )
    assert by_file == by_options
    for method in by_file["methods"]:
        assert method["rms_error"] < 3e-3
        assert method["levels"][1] < 0.2  # the elbow moves from 0 to 0.3 rad
    assert all(method["levels"] == [] for method in document(*along)["methods"])
    assert "level 2  level 3" in run(*along, "--stack", stack_file, columns=140).stdout


def test_compare_has_no_joint_weights():
    assert "--weights has no effect without --posture, because bare steps" in refusal(
        "compare", "wam", "--weights", "wam_j1=2"
    )


def test_stack_for_another_robot_is_refused(stack_file):
    message = refusal(
        "solve", "planar_2r", "--xyz", 1, 0, 0, "--task", "pose", "--stack", stack_file
    )
    assert "the swivel angle needs an arm with 7 joints" in message


def test_view_refuses_levels_of_a_node_and_of_another_robot():
    assert "cannot be combined with --ros; set the parameters swivel, posture" in refusal(
        "view", "--ros", "--swivel", 0.3
    )
    message = refusal("view", "planar_2r", "--swivel", 0.3, "--no-browser", "--port", 0)
    assert "the swivel angle needs an arm with 7 joints" in message
