# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""RobotKinematics of LeRobot: its conventions, and its weighted error compared with SciPy's."""

import numpy as np
import pytest
from robots import ROOT
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

from dls_ik import Pose, RobotKinematics, RobotModel
from dls_ik.errors import ChainError, JointValueError, OptionError, PoseError

ARM = ROOT / "examples" / "robots" / "desktop_arm.urdf"
NAMES = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]
KINEMATICS = RobotKinematics(ARM)
ROBOT = KINEMATICS.robot
HERE = np.array([10.0, -30.0, 40.0, 20.0, 15.0, 33.0])


def weighted_residuals(q, T, weights):
    """Return the weighted residuals of joint positions [rad]."""
    F = ROBOT.fk(q)
    turn = Rotation.from_matrix(T[:3, :3] @ F[:3, :3].T).as_rotvec()
    return np.concatenate([(F[:3, 3] - T[:3, 3]), turn]) * np.sqrt(np.repeat(weights, 3))


def near_poses(count, seed=0):
    """Return joint positions [deg] with the gripper, and unreachable poses close to them."""
    rng = np.random.default_rng(seed)
    for q in 0.8 * ROBOT.random(count, rng):
        T = ROBOT.fk(q)
        T[:3, :3] = Rotation.from_rotvec(0.05 * rng.normal(size=3)).as_matrix() @ T[:3, :3]
        T[:3, 3] += 0.005 * rng.normal(size=3)
        yield np.append(np.degrees(q), 20.0), T


def test_forward_kinematics_uses_degrees_and_joint_order_of_lerobot():
    assert KINEMATICS.joint_names == NAMES
    T = KINEMATICS.forward_kinematics(HERE)
    np.testing.assert_array_equal(T, ROBOT.fk(np.radians(HERE[:5])))
    np.testing.assert_array_equal(KINEMATICS.forward_kinematics([*HERE, 7.0]), T)
    arm_alone = RobotKinematics(str(ARM), "gripper_frame_link", NAMES[:5])
    np.testing.assert_array_equal(arm_alone.forward_kinematics(HERE), T)
    turned = RobotKinematics(ARM, joint_names=NAMES[::-1])
    np.testing.assert_array_equal(turned.forward_kinematics(HERE[::-1]), T)


def test_reachable_poses_are_reached_and_other_values_kept():
    T = KINEMATICS.forward_kinematics(HERE)
    start = np.append(HERE, 99.0) + np.array([3.0, 4.0, -2.0, 5.0, 1.0, 0.0, 0.0])
    kept = start.copy()
    found = KINEMATICS.inverse_kinematics(start, T)
    np.testing.assert_array_equal(start, kept)
    np.testing.assert_allclose(found, np.append(HERE, 99.0), atol=1e-4)
    assert KINEMATICS.inverse_kinematics(start.astype(np.float32), T).dtype == np.float64
    arm_alone = RobotKinematics(ARM, joint_names=NAMES[:5])
    np.testing.assert_array_equal(arm_alone.inverse_kinematics(start, T), found)
    turned = RobotKinematics(ARM, joint_names=NAMES[::-1])
    np.testing.assert_array_equal(turned.inverse_kinematics(start[5::-1], T), found[5::-1])
    assert KINEMATICS.inverse_kinematics(list(start), Pose.from_matrix(T)).shape == (7,)


@pytest.mark.parametrize("weights", [(1.0, 0.01), (1.0, 1.0), (2.0, 0.002), (0.0, 1.0)])
def test_the_weighted_error_is_a_local_minimum(weights):
    for start, T in near_poses(40):
        q = np.radians(KINEMATICS.inverse_kinematics(start, T, *weights)[:5])
        assert ROBOT.within_limits(q, 1e-12)
        error = np.linalg.norm(weighted_residuals(q, T, weights))
        begin, bounds = (
            np.clip(q, ROBOT.lower + 1e-9, ROBOT.upper - 1e-9),
            (ROBOT.lower, ROBOT.upper),
        )
        least = least_squares(
            weighted_residuals, begin, args=(T, weights), bounds=bounds, xtol=1e-12
        )
        assert error <= 1.01 * np.sqrt(2.0 * least.cost) + 1e-6
        assert np.degrees(np.abs(q - np.radians(start[:5]))).max() < 60.0  # no other branch


def test_zero_orientation_weight_reaches_the_position():
    for start, T in near_poses(20, 1):
        found = KINEMATICS.inverse_kinematics(start, T, orientation_weight=0.0)
        place = KINEMATICS.forward_kinematics(found)[:3, 3]
        np.testing.assert_allclose(place, T[:3, 3], atol=2e-6)
        by_place = KINEMATICS.inverse_kinematics(start, T[:3, 3], 1.0, 0.0)
        np.testing.assert_array_equal(by_place, found)


def test_successive_calls_follow_a_circle_smoothly():
    q = HERE.copy()
    centre = KINEMATICS.forward_kinematics(q)
    for angle in np.linspace(0.0, 2.0 * np.pi, 200):
        T = centre.copy()
        T[:3, 3] += 0.03 * np.array([0.0, np.sin(angle), np.cos(angle) - 1.0])
        before, q = q, KINEMATICS.inverse_kinematics(q, T)
        assert np.abs(q - before).max() < 1.0  # [deg]
        assert np.linalg.norm(KINEMATICS.forward_kinematics(q)[:3, 3] - T[:3, 3]) < 4e-3


def test_prismatic_joints_are_in_metres_in_tree_order():
    rail = '<link name="r"/><joint name="a" type="prismatic"><parent link="r"/><child link="m"/>'
    rail += '<axis xyz="1 0 0"/><limit lower="0" upper="1"/></joint><link name="m"/>'
    turn = '<joint name="b" type="continuous"><axis xyz="0 0 1"/><parent link="m"/>'
    turn += '<child link="t"/></joint>'
    text = f'<robot name="x">{rail}{turn}<link name="t"/></robot>'
    kinematics = RobotKinematics(text, "t")
    T = kinematics.forward_kinematics([0.25, 90.0])
    np.testing.assert_allclose(T[:3, [0, 3]], [[0, 0.25], [1, 0], [0, 0]], atol=1e-15)
    np.testing.assert_allclose(kinematics.inverse_kinematics([0.2, 80.0], T), [0.25, 90], atol=1e-3)


NOT_MOVED = NAMES[1:]


@pytest.mark.parametrize(
    ("make", "kind", "said"),
    [
        (lambda: RobotKinematics(ARM, "tool0"), ChainError, "tool0"),
        (
            lambda: RobotKinematics(ARM, joint_names=["elbow"]),
            JointValueError,
            "did you mean elbow_",
        ),
        (
            lambda: RobotKinematics(ARM, joint_names=NOT_MOVED),
            JointValueError,
            "missing: 'shoulder_pan'",
        ),
        (
            lambda: KINEMATICS.forward_kinematics(HERE[:5]),
            JointValueError,
            r"expected at least 6 .*\(5,\)",
        ),
        (lambda: KINEMATICS.forward_kinematics(["a"] * 6), JointValueError, "numbers"),
        (lambda: KINEMATICS.forward_kinematics(HERE * np.nan), JointValueError, "shoulder_pan"),
        (lambda: KINEMATICS.inverse_kinematics(HERE, np.eye(3)), PoseError, "4x4"),
        (
            lambda: KINEMATICS.inverse_kinematics(HERE, np.eye(4), -1.0),
            OptionError,
            "position_w.*-1",
        ),
        (
            lambda: KINEMATICS.inverse_kinematics(HERE, np.eye(4), 1.0, "x"),
            OptionError,
            "orientation",
        ),
        (lambda: KINEMATICS.inverse_kinematics(HERE, np.eye(4), 0, 0), OptionError, "both be 0"),
    ],
)
def test_invalid_input_is_refused(make, kind, said):
    with pytest.raises(kind, match=said):
        make()


def test_the_gripper_of_the_cookbook_arm_is_ignored():
    assert RobotModel.from_urdf(ARM).tip == "gripper_frame_link"
    assert repr(KINEMATICS) == "RobotKinematics(desktop_arm, gripper_frame_link, 6 joints)"
