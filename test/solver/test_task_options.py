"""Tasks: what they say to the kernels, and what is refused with which words."""

import numpy as np
import pytest
from oracle import rigid, rotation
from robots import joint, urdf

from dls_ik.core.task import FREE, SWING, TWIST, VECTOR
from dls_ik.errors import OptionError, PoseError
from dls_ik.model import RobotModel
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.task import Task, build_task, checked_tasks, is_full_pose

WAM = RobotModel.wam()
FORK = RobotModel.from_urdf(
    urdf("a b c", joint("j", parent="a", child="b"), joint("k", parent="a", child="c")),
    tip=("b", "c"),
)
W = 0.5
GOOD = rigid(rotation([1, 2, 3], 0.7), [0.1, 0.2, 0.3])


def test_by_default_it_is_the_full_pose():
    built = build_task(WAM, None, W)
    np.testing.assert_array_equal(built.tip, 0)
    np.testing.assert_array_equal(built.component, range(6))
    np.testing.assert_array_equal(built.weight, [1, 1, 1, W, W, W])
    np.testing.assert_array_equal(built.group, [0, 0, 0, 1, 1, 1])
    assert built.groups == 2
    assert (built.in_target[0], built.turning[0]) == (False, VECTOR)


@pytest.mark.parametrize(
    ("task", "components", "groups", "turning", "in_target"),
    [
        (Task.pose(), [0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 1], VECTOR, False),
        (Task.position_only(), [0, 1, 2], [0, 0, 0], FREE, False),
        (Task.pointing(), [0, 1, 2, 3, 4], [0, 0, 0, 1, 1], SWING, True),
        (Task.pointing("x"), [0, 1, 2, 4, 5], [0, 0, 0, 1, 1], SWING, True),
        (Task("", "y", "target"), [4], [0], TWIST, True),
        (Task("zx", ""), [0, 2], [0, 0], FREE, False),
        (Task("y", "zy"), [1, 4, 5], [0, 1, 1], SWING, False),
    ],
)
def test_rows(task, components, groups, turning, in_target):
    built = build_task(WAM, task, W)
    np.testing.assert_array_equal(built.component, components)
    np.testing.assert_array_equal(built.group, groups)
    np.testing.assert_array_equal(built.weight, np.where(np.array(components) >= 3, W, 1.0))
    assert built.groups == max(groups) + 1
    assert (built.turning[0], built.in_target[0]) == (turning, in_target)
    assert task.rows == len(components)


@pytest.mark.parametrize("axis", "xyz")
def test_the_axis_that_points_or_is_turned_about(axis):
    assert build_task(WAM, Task.pointing(axis), W).axis[0] == "xyz".index(axis)
    assert build_task(WAM, Task("x", axis), W).axis[0] == "xyz".index(axis)


def test_weights_are_for_rows_in_order():
    built = build_task(WAM, Task("zx", "y", weights=[1, 2, 3]), W)
    np.testing.assert_array_equal(built.component, [0, 2, 4])
    np.testing.assert_array_equal(built.weight, [1.0, 2.0, 3.0 * W])


def test_order_of_axes_makes_no_difference():
    assert Task("zyx", "yx") == Task("xyz", "xy")
    assert hash(Task(weights=np.ones(6))) == hash(Task(weights=[1] * 6))


def test_one_task_for_all_tips_or_one_each():
    built = build_task(FORK, Task.position_only(), W)
    np.testing.assert_array_equal(built.tip, [0, 0, 0, 1, 1, 1])
    np.testing.assert_array_equal(built.group, [0, 0, 0, 1, 1, 1])
    built = build_task(FORK, [Task("", "z"), Task.pointing()], W)
    np.testing.assert_array_equal(built.tip, [0, 1, 1, 1, 1, 1])
    np.testing.assert_array_equal(built.component, [5, 0, 1, 2, 3, 4])
    np.testing.assert_array_equal(built.group, [0, 1, 1, 1, 2, 2])
    np.testing.assert_array_equal(built.turning, [TWIST, SWING])
    np.testing.assert_array_equal(built.in_target, [False, True])
    assert len(build_task(FORK, None, W).tip) == 12


def test_arrays_are_read_only_and_of_one_type():
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
def test_is_full_pose(task, full):
    assert is_full_pose(WAM, task) == full
    assert not is_full_pose(FORK, None)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"position": "xyw"}, ["position", "'xyw'", "x, y, z"]),
        ({"position": "xx"}, ["position", "'xx'", "each once"]),
        ({"position": "X"}, ["position", "'X'"]),
        ({"rotation": "roll"}, ["rotation", "'roll'"]),
        ({"rotation": None}, ["rotation", "None"]),
        ({"position": ["x", "y"]}, ["position", "['x', 'y']"]),
        ({"position": "", "rotation": ""}, ["needs an axis", "empty"]),
        ({"frame": "tool"}, ["base or target", "'tool'"]),
        ({"frame": 3}, ["base or target", "3"]),
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
def test_bad_tasks_are_refused_with(given, words):
    with pytest.raises(OptionError) as caught:
        Task(**given)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize("axis", ["", "xy", "w", None, 2])
def test_bad_axis_that_points(axis):
    with pytest.raises(OptionError, match="x, y or z"):
        Task.pointing(axis)


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("pose", ["dls_ik.Task", "'pose'"]),
        (3, ["dls_ik.Task", "3"]),
        ([Task(), "pose"], ["dls_ik.Task"]),
        ([Task()], ["each of the 2", "b, c", "not 1"]),
        ([], ["each of the 2", "not 0"]),
    ],
)
def test_bad_tasks_for_a_robot_are_refused_with(task, words):
    with pytest.raises(OptionError) as caught:
        checked_tasks(FORK, task)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize("Ts", [GOOD, GOOD[None], [GOOD], GOOD.tolist(), [GOOD.tolist()]])
def test_the_pose_of_one_tip(Ts):
    poses = checked_poses(Ts, 1)
    assert (poses.shape, poses.dtype) == ((1, 4, 4), np.float64)
    assert poses.flags.carray
    np.testing.assert_array_equal(poses[0], GOOD)


def test_poses_of_several_tips():
    two = np.array([GOOD, np.eye(4)])
    assert checked_poses(two, 2) is two
    for Ts in ([GOOD, np.eye(4)], two.tolist(), np.asfortranarray(two)):
        poses = checked_poses(Ts, 2)
        assert poses.flags.carray
        np.testing.assert_array_equal(poses, two)


def test_a_slightly_inexact_rotation_is_made_exact():
    rough = np.array([GOOD, GOOD])
    rough[1, :3, :3] += 1e-5
    kept = rough.copy()
    R = checked_poses(rough, 2)[1, :3, :3]
    np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(rough, kept)


@pytest.mark.parametrize(
    ("Ts", "k", "words"),
    [
        ([GOOD, GOOD], 1, ["4x4", "(2, 4, 4)"]),
        ([], 1, ["4x4"]),
        (np.array(1.0), 1, ["4x4"]),
        ([[1.0, 0.0], [0.0]], 1, ["4x4"]),
        (GOOD, 2, ["2 tips", "2 poses", "(4, 4)"]),
        ([GOOD], 2, ["2 tips", "not 1"]),
        (np.array([GOOD] * 3), 2, ["2 tips", "(3, 4, 4)"]),
        (3.0, 2, ["2 tips", "3.0"]),
        (None, 2, ["2 tips", "None"]),
        ([GOOD, np.zeros((4, 4))], 2, ["pose 2 of 2", "last row"]),
        ([GOOD * np.nan, GOOD], 2, ["pose 1 of 2", "finite"]),
        ([GOOD, "home"], 2, ["pose 2 of 2", "'home'"]),
    ],
)
def test_bad_poses_are_refused_with(Ts, k, words):
    with pytest.raises(PoseError) as caught:
        checked_poses(Ts, k)
    assert [word for word in words if word not in str(caught.value)] == []
