"""The shapes of Buss & Kim, where their effectors and targets are."""

from math import sqrt

import numpy as np
import pytest

from dls_ik.model import RobotModel, share_file
from dls_ik.reproduce import double_y

r, h = 1.0 / sqrt(2.0), sqrt(3.0) / 2.0
RIGHT, LEFT = np.array([r / 2, -0.5 + r / 2]), np.array([-r / 2, -0.5 + r / 2])
# Joint: where it is at zero, as multiples k of the branches' directions from b and c.
BRANCHES = {
    5: RIGHT,
    8: RIGHT + 0.5 * np.array([h, 0.5]),
    9: RIGHT + np.array([h, 0.5]),
    15: RIGHT + np.array([h, h]),
    17: LEFT,
    20: LEFT + 0.5 * np.array([-h, h]),
    27: LEFT + np.array([-h, 0.5]),
}


def test_double_y_has_25_joints_in_four_branches():
    robot = double_y.load()
    assert robot.n == 25
    assert robot.tips == double_y.TIPS
    assert robot.continuous.all()
    numbers = sorted(int(name.removeprefix("joint_")) for name in robot.joint_names)
    assert numbers == [n for n in range(28) if n not in (11, 16, 23)]


def test_effectors_of_the_double_y_at_zero():
    tips = double_y.load().fk(np.zeros(25))[:, :2, 3]
    expected = [
        RIGHT + 1.5 * np.array([h, 0.5]),
        RIGHT + 1.5 * np.array([h, h]),
        LEFT + 1.5 * np.array([-h, h]),
        LEFT + 1.5 * np.array([-h, 0.5]),
    ]
    np.testing.assert_allclose(tips, expected, atol=1e-12)


@pytest.mark.parametrize("joint", BRANCHES)
def test_joints_of_the_double_y_at_zero(joint):
    place = double_y.load().link_pose(f"link_{joint}", np.zeros(25))
    np.testing.assert_allclose(place[:3, 3], [*BRANCHES[joint], 0.0], atol=1e-12)
    np.testing.assert_allclose(place[:3, :3], np.eye(3), atol=1e-12)


def test_no_joint_of_a_branch_moves_another():
    J = double_y.load().jacobian(np.full(25, 0.3)).reshape(4, 6, 25)[:, :3]
    moves = np.linalg.norm(J, axis=1) > 1e-12  # (4, 25)
    names = double_y.load().joint_names
    shared = {name for name, tips in zip(names, moves.T, strict=True) if tips.all()}
    assert shared <= {"joint_0", "joint_1", "joint_2"}
    assert not moves[:2, names.index("joint_18")].any()
    assert not moves[[1, 2, 3], names.index("joint_9")].any()


def test_y_shape():
    robot = RobotModel.from_urdf(share_file("urdf", "y_shape.urdf"), tip=("E0", "E1"))
    assert robot.n == 7
    tips = robot.fk(np.zeros(7))[:, :3, 3]
    np.testing.assert_allclose(tips, [[0.7, 2.0, 0.0], [-0.8, 1.9, 0.0]], atol=1e-12)
    moved = robot.fk(np.array([0.3, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))[:, :3, 3]
    root = np.array([0.0, -0.5, 0.0])
    np.testing.assert_allclose(
        np.linalg.norm(moved - root, axis=1), np.linalg.norm(tips - root, axis=1), atol=1e-12
    )


def test_targets():
    poses = double_y.targets(np.array([0.0, 0.1]))
    assert poses.shape == (2, 4, 4, 4)
    np.testing.assert_allclose(poses[0, :, :3, 3][[0, 3]], [[2.0, 0.5, 0.3], [-1.6, 0.3, -0.2]])
    second = [0.5 + 0.8 * np.sin(0.4), 0.4 + 0.6 * np.sin(0.4), -0.2 + 2.0 * np.sin(0.3)]
    np.testing.assert_allclose(poses[1, 1, :3, 3], second)
