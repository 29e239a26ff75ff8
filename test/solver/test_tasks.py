# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tasks: parameters for the kernels, invalid tasks, and solutions."""

import numpy as np
import pytest
from robots import URDF, joint, urdf

from dls_ik import IkSolver, RobotModel, Status, Task
from dls_ik.core.task import ROTATION_FREE, ROTATION_SWING, ROTATION_TWIST, ROTATION_VECTOR
from dls_ik.errors import MethodError, OptionError, PoseError
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.problem import build_details
from dls_ik.solver.task import build_task, checked_tasks, is_full_pose

WAM, PUMA = RobotModel.wam(), RobotModel.from_name("puma560")
FORK = RobotModel.from_urdf(
    urdf("a b c", joint("j", parent="a", child="b"), joint("k", parent="a", child="c")),
    tip=("b", "c"),
)

W = 0.5


def test_the_default_is_the_full_pose():
    built = build_task(WAM, None, W)
    np.testing.assert_array_equal(built.tip, 0)
    np.testing.assert_array_equal(built.component, range(6))
    np.testing.assert_array_equal(built.weight, [1, 1, 1, W, W, W])
    np.testing.assert_array_equal(built.group, [0, 0, 0, 1, 1, 1, 2])  # group 2 is that of TA
    assert (built.in_target[0], built.rotation_kind[0]) == (False, ROTATION_VECTOR)


@pytest.mark.parametrize(
    ("task", "components", "groups", "turning", "in_target"),
    [
        (Task.pose(), [0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 1], ROTATION_VECTOR, False),
        (Task.position_only(), [0, 1, 2], [0, 0, 0], ROTATION_FREE, False),
        (Task.pointing(), [0, 1, 2, 3, 4], [0, 0, 0, 1, 1], ROTATION_SWING, True),
        (Task.pointing("x"), [0, 1, 2, 4, 5], [0, 0, 0, 1, 1], ROTATION_SWING, True),
        (Task("", "y", "target"), [4], [0], ROTATION_TWIST, True),
        (Task("zx", ""), [0, 2], [0, 0], ROTATION_FREE, False),
        (Task("y", "zy"), [1, 4, 5], [0, 1, 1], ROTATION_SWING, False),
    ],
)
def test_error_rows_match_the_task_components(task, components, groups, turning, in_target):
    built = build_task(WAM, task, W)
    np.testing.assert_array_equal(built.component, components)
    np.testing.assert_array_equal(built.group, [*groups, max(groups) + 1])
    np.testing.assert_array_equal(built.weight, np.where(np.array(components) >= 3, W, 1.0))
    assert (built.rotation_kind[0], built.in_target[0]) == (turning, in_target)
    assert task.rows == len(components)


def test_axes_and_weights_keep_their_order():
    for axis in "xyz":
        assert build_task(WAM, Task.pointing(axis), W).axis[0] == "xyz".index(axis)
        assert build_task(WAM, Task("x", axis), W).axis[0] == "xyz".index(axis)
    built = build_task(WAM, Task("zx", "y", weights=[1, 2, 3]), W)
    np.testing.assert_array_equal(built.component, [0, 2, 4])
    np.testing.assert_array_equal(built.weight, [1.0, 2.0, 3.0 * W])
    assert Task("zyx", "yx") == Task("xyz", "xy")
    assert hash(Task(weights=np.ones(6))) == hash(Task(weights=[1] * 6))


def test_one_task_for_all_tips_or_one_per_tip():
    built = build_task(FORK, Task.position_only(), W)
    np.testing.assert_array_equal(built.tip, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(built.group, [0, 0, 0, 1, 1, 1, 2])
    built = build_task(FORK, [Task("", "z"), Task.pointing()], W)
    np.testing.assert_array_equal(built.tip, [0, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(built.component, [5, 0, 1, 2, 3, 4])
    np.testing.assert_array_equal(built.group, [0, 1, 1, 1, 2, 2, 3])
    np.testing.assert_array_equal(built.rotation_kind, [ROTATION_TWIST, ROTATION_SWING])
    np.testing.assert_array_equal(built.in_target, [False, True])
    assert len(build_task(FORK, None, W).tip) == 12


def test_arrays_are_read_only_and_float():
    for task in (None, Task("x", ""), Task("", "z"), Task(position_tolerance=0.1)):
        built = build_task(WAM, task, W)
        dtypes = [array.dtype for array in built if isinstance(array, np.ndarray)]
        poses = [np.int64, np.int64, float, np.int64, bool, np.int64, np.int64]
        assert dtypes == [*poses, bool, float, float, bool]
        assert not any(a.flags.writeable for a in built if isinstance(a, np.ndarray))


@pytest.mark.parametrize(
    ("task", "full"),
    [(None, True), (Task(), True), ([Task.pose()], True), (Task.pointing(), False),
     (Task(frame="target"), False), (Task(weights=[2] * 6), False)],
)  # fmt: skip
def test_is_full_pose_holds_only_for_one_unrestricted_tip(task, full):
    assert is_full_pose(WAM, task) == full
    assert not is_full_pose(FORK, None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"position": "xyw"}, ["position", "'xyw'", "x, y, z"]),
        ({"position": "xx"}, ["position", "'xx'", "at most once"]),
        ({"position": "X"}, ["position", "'X'"]),
        ({"rotation": "roll"}, ["rotation", "'roll'"]),
        ({"rotation": None}, ["rotation", "None"]),
        ({"position": ["x", "y"]}, ["position", "['x', 'y']"]),
        ({"position": "", "rotation": ""}, ["give at least one axis", "empty"]),
        ({"frame": "tool"}, ["'base' or 'target'", "'tool'"]),
        ({"frame": 3}, ["'base' or 'target'", "3"]),
        ({"weights": [1.0] * 5}, ["weights", "row (6)", "[1.0, "]),
        ({"weights": [1, 1, 1, 1, 1, 0]}, ["weights", "from 1e-09 to 1e+09"]),
        ({"weights": [1, 1, 1, 1, 1, -1]}, ["weights", "from 1e-09 to 1e+09"]),
        ({"weights": [1, 1, 1, 1, 1, np.nan]}, ["weights", "from 1e-09 to 1e+09"]),
        ({"weights": [1, 1, 1, 1, 1, np.inf]}, ["weights", "from 1e-09 to 1e+09"]),
        ({"weights": [1, 1, 1, 1, 1, 1e228]}, ["weights", "1e+228"]),
        ({"weights": [1, 1, 1, 1, 1, 1e-228]}, ["weights", "1e-228"]),
        ({"weights": "111111"}, ["weights", "'111111'"]),
        ({"weights": 2.0}, ["weights", "2.0"]),
        ({"weights": ["heavy"] * 6}, ["weights", "heavy"]),
        ({"position": "x", "rotation": "", "weights": [1, 2]}, ["weights", "row (1)"]),
    ],
)
def test_invalid_tasks_are_refused(given, words):
    with pytest.raises(OptionError) as caught:
        Task(**given)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("pose", ["dls_ik.Task", "'pose'"]),
        (3, ["dls_ik.Task", "3"]),
        ([Task(), "pose"], ["dls_ik.Task"]),
        ([Task()], ["each of the 2", "b, c", "got 1"]),
        ([], ["each of the 2", "got 0"]),
    ],
)
def test_tasks_that_do_not_fit_the_robot_are_refused(task, words):
    with pytest.raises(OptionError) as caught:
        checked_tasks(FORK, task)
    assert [word for word in words if word not in str(caught.value)] == []


WHEEL = RobotModel.from_urdf(
    urdf(
        "a b c",
        joint("turn", "continuous", parent="a", child="b"),
        joint("j", "prismatic", parent="b", child="c"),
    )
)


def task_parameters(robot=WAM, task=None, **options):
    return build_details(robot, parse_method("jp"), SolverOptions(**options), task)


@pytest.mark.parametrize("robot", [WAM, WHEEL], ids=["wam", "wheel"])
def test_the_default_posture_is_mid_range(robot):
    lower, upper = robot.finite_limits()
    middle = [
        0.5 * (a + b) if limited else 0.0
        for a, b, limited in zip(lower, upper, robot.limited, strict=True)
    ]
    np.testing.assert_array_equal(task_parameters(robot, Task("x", "")).reference, middle)
    own = np.linspace(0.1, 0.2, robot.n)
    np.testing.assert_array_equal(
        task_parameters(robot, Task("x", ""), reference=tuple(own)).reference, own
    )


@pytest.mark.parametrize("task", [None, Task.position_only(), Task("zx", "y")])
def test_default_direction_is_the_last_row_and_given_ones_are_normalised(task):
    r = 6 if task is None else task.rows
    np.testing.assert_array_equal(task_parameters(WAM, task).direction, [*np.zeros(r - 1), 1.0])
    given = task_parameters(WAM, task, direction=(3.0, 4.0, *np.zeros(r - 2))).direction
    np.testing.assert_allclose(given, [0.6, 0.8, *np.zeros(r - 2)], atol=1e-15)


def test_lengths_are_in_the_length_unit_of_the_robot():
    given = task_parameters(WAM, obstacle=(0.1, -0.2, 0.3), influence=0.4, length_unit=1000.0)
    np.testing.assert_array_equal(given.obstacle, [100.0, -200.0, 300.0])
    assert given.params.influence == 400.0


def test_the_inner_tolerance_is_slightly_smaller():
    built = build_task(WAM, Task(position_tolerance=(0.0, 0.1, 0.2)), 0.5)
    np.testing.assert_array_equal(built.inner_tolerance[[0, 3, 4, 5]], 0.0)
    assert (built.inner_tolerance[1:3] < built.tolerance[1:3]).all()
    assert (built.inner_tolerance[1:3] > 0.9 * built.tolerance[1:3]).all()


@pytest.mark.parametrize(("angles", "component"), [("euler", 4), ("vector", None)])
def test_slack_beyond_the_range_of_an_angle_is_unbounded(angles, component):
    """The second of three angles is within a quarter turn, the others within half a turn."""
    for k in (3, 4, 5):
        largest = np.pi / 2 if k == component else np.pi
        for slack, is_row in ((0.999 * largest, True), (largest, False)):
            each = np.zeros(3)
            each[k - 3] = slack
            built = build_task(WAM, Task(rotation_tolerance=tuple(each), angles=angles), 0.5)
            assert (k in built.component) == is_row


Y = RobotModel.from_urdf(URDF / "y_shape.urdf", tip=("E0", "E1"))


@pytest.mark.parametrize(("robot", "axis"), [(WAM, "x"), (PUMA, "y"), (WAM, "z"), (PUMA, "z")])
def test_pointing_task_aligns_its_axis_and_leaves_rotation_about_it_free(robot, axis):
    rng = np.random.default_rng(1)
    Ts, seeds = robot.fk(robot.random(50, rng)), robot.random(50, rng)
    found = IkSolver(robot, task=Task.pointing(axis)).solve_batch(Ts, seeds)
    assert found.success.all()
    reached, k = robot.fk(found.q), "xyz".index(axis)
    np.testing.assert_allclose(reached[:, :3, 3], Ts[:, :3, 3], atol=1e-6)
    np.testing.assert_allclose(reached[:, :3, k], Ts[:, :3, k], atol=1e-6)
    turned = np.abs(reached[:, :3, (k + 1) % 3] - Ts[:, :3, (k + 1) % 3]).max(axis=1)
    assert np.median(turned) > 1e-2  # the tool is free to rotate about the axis


@pytest.mark.parametrize("name", ["auto", "sdls+clamp", "dls", "odls"])
def test_two_tips_reach_their_targets_together(name):
    rng = np.random.default_rng(3)
    goals = Y.fk(0.5 * rng.normal(size=(20, Y.n)))
    solver = IkSolver(Y, name, task=Task.position_only(), max_restarts=20)
    found = solver.solve_batch(goals, np.full(Y.n, 0.1))
    assert goals.shape == (20, 2, 4, 4)
    assert found.success.mean() > 0.9
    away = Y.fk(found.q)[..., :3, 3] - goals[..., :3, 3]
    assert np.linalg.norm(away[found.success], axis=-1).max() <= 1e-6


def test_each_tip_has_a_separate_task():
    goals = Y.fk(np.full(Y.n, 0.3))
    goals[1, :3, 3] += 10.0  # far out of reach, but unconstrained
    task = [Task.position_only(), Task(position="", rotation="z")]
    assert IkSolver(Y, task=task).solve(goals).status is Status.SUCCESS
    assert IkSolver(Y, task=Task.position_only()).solve(goals).status is Status.UNREACHABLE


def test_the_task_of_a_call_replaces_that_of_the_solver():
    rng = np.random.default_rng(4)
    T = WAM.fk(WAM.random(rng=rng))
    T[:3, :3] = WAM.fk(WAM.random(rng=rng))[:3, :3]
    solver = IkSolver(WAM, "ed", task=Task.position_only())
    free = solver.solve(T, np.full(7, 0.2))
    exact = solver.solve(T, np.full(7, 0.2), task=Task.pose())
    assert free.rotation_error == 0.0 < exact.rotation_error + exact.iterations
    assert not np.array_equal(free.q, exact.q)
    np.testing.assert_array_equal(exact.q, IkSolver(WAM, "ed").solve(T, np.full(7, 0.2)).q)


def test_invalid_input_is_refused():
    for axis in ("", "xy", "w", None, 2):
        with pytest.raises(OptionError, match="'x', 'y' or 'z'"):
            Task.pointing(axis)
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


TWO_TIPS = {"y_shape": ("E0", "E1"), "two_wams": ("left_wam_tip", "right_wam_tip")}


@pytest.mark.parametrize("name", TWO_TIPS)
def test_auto_reaches_the_poses_of_two_tips(name):
    robot = RobotModel.from_urdf(URDF / f"{name}.urdf", tip=TWO_TIPS[name])
    rng = np.random.default_rng(3)
    Ts, seeds = robot.fk(robot.random(100, rng)), robot.random(100, rng)
    batch = IkSolver(robot).solve_batch(Ts, seeds)
    assert batch.success.all()
    assert robot.within_limits(batch.q).all()
    np.testing.assert_allclose(robot.fk(batch.q), Ts, atol=3e-6)
