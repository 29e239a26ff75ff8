"""The demonstration asks for what it claims: its poses, its path, its checks."""

import sys

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
pytest.importorskip("rich", reason="needs rich")
pytest.importorskip("matplotlib", reason="needs matplotlib")

from dls_ik.model import RobotModel
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.ros.demo.ask import HOME, REACH, TOOL, independent_check, pose_errors, poses
from dls_ik.ros.demo.node import code_name, quaternion
from dls_ik.ros.demo.options import parse_options
from dls_ik.ros.demo.stream import LENGTH, READY, WIDTH, targets

ROBOT = RobotModel.wam()
POSES = poses(ROBOT)
RATE = 100.0
STEP = 0.1  # [rad] of the grid over joints 2, 3 and 4


# The poses


def wrists(*joints):
    """Distance from the first axis, and height, of the wrist (k, 2); joint 1 changes neither."""
    q = np.zeros((joints[0].size, ROBOT.n))
    q[:, 1:4] = np.array([values.ravel() for values in joints]).T
    T = ROBOT.fk(q)
    wrist = T[:, :3, 3] - TOOL * T[:, :3, 2]
    return np.column_stack([np.hypot(wrist[:, 0], wrist[:, 1]), wrist[:, 2]])


def grid(joint, step):
    return np.arange(ROBOT.lower[joint], ROBOT.upper[joint] + step, step)


def wrist_of(pose):
    x, y, z = pose.T[:3, 3] - TOOL * pose.T[:3, 2]
    return np.array([np.hypot(x, y), z])


def test_a_dozen_poses_with_names_of_their_own():
    assert len({pose.name for pose in POSES}) == len(POSES) == 12
    assert sum(pose.reachable for pose in POSES) == 8


def test_unreachable_poses_are_unreachable():
    """No wrist on a grid is nearer than a joint moves it from one grid point to the next."""
    elbow = grid(3, 1e-3)
    reach = np.linalg.norm(wrists(np.zeros_like(elbow), np.zeros_like(elbow), elbow), axis=1)
    assert reach.max() == pytest.approx(REACH, abs=1e-6)
    around = wrists(*np.meshgrid(grid(1, STEP), grid(2, STEP), grid(3, STEP)))
    forearm = np.hypot(0.3, 0.045)
    coarse = 0.5 * STEP * (2.0 * REACH + forearm)
    for pose in POSES:
        if pose.reachable:
            continue
        length = np.linalg.norm(wrist_of(pose))
        too_far, too_near = length - reach.max(), reach.min() - length
        elsewhere = np.linalg.norm(around - wrist_of(pose), axis=1).min()
        assert max(too_far - 1e-3 * forearm, too_near - 1e-3 * forearm, elsewhere - coarse) > 5e-3


def test_the_stretched_pose_is_a_millimetre_from_full_reach():
    pose = next(pose for pose in POSES if "stretched" in pose.name)
    assert REACH - np.linalg.norm(wrist_of(pose)) == pytest.approx(1e-3, abs=2e-4)


# The path


def test_targets_begin_where_the_arm_is_and_count_the_eight_only():
    sent = targets(ROBOT, np.array(READY), RATE, 10.0)
    np.testing.assert_allclose(sent.poses[0], ROBOT.fk(READY), atol=1e-12)
    assert len(sent.poses) - sent.counted == 1000
    centre = ROBOT.fk(HOME)[:3, 3]
    away = sent.poses[sent.counted :, :3, 3] - centre
    np.testing.assert_allclose(away.max(axis=0), [WIDTH, LENGTH, 0.0], atol=1e-3)
    np.testing.assert_allclose(away.min(axis=0), [-WIDTH, -LENGTH, 0.0], atol=1e-3)


def test_targets_are_smooth():
    sent = targets(ROBOT, np.array(READY), RATE, 10.0)
    way = sent.poses[:, :3, 3]
    assert np.linalg.norm(np.diff(way, axis=0), axis=1).max() * RATE < 0.75  # [m/s]
    assert np.linalg.norm(np.diff(way, 2, axis=0), axis=1).max() * RATE**2 < 4.0  # [m/s2]


# The independent check and the messages


@pytest.mark.parametrize("angle", [0.0, 1e-9, 1e-3, 2.0, np.pi - 1e-9, np.pi])
def test_pose_errors_are_right_at_every_angle(angle):
    T = transform(rotation_from_rpy(0.3, -0.4, 2.0), np.array([1.0, 2.0, 3.0]))
    turned = T @ transform(rotation_from_rpy(angle, 0.0, 0.0), np.array([0.0, 3e-4, 4e-4]))
    assert pose_errors(T, turned) == pytest.approx((5e-4, angle), abs=1e-12)


def test_both_kinds_of_check_agree(monkeypatch):
    here = independent_check(ROBOT)
    monkeypatch.setitem(sys.modules, "PyKDL", None)
    plain = independent_check(ROBOT)
    assert plain.name == "NumPy"
    for q in ROBOT.random(np.random.default_rng(0), 20):
        np.testing.assert_allclose(here.pose(q), plain.pose(q), atol=1e-12)


@pytest.mark.parametrize("rpy", [(0, 0, 0), (np.pi, 0, 0), (0, 0, np.pi), (0.1, -1.5, 3.0)])
def test_quaternion(rpy):
    R = rotation_from_rpy(*rpy)
    x, y, z, w = quaternion(R)
    v = np.array([x, y, z])
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    np.testing.assert_allclose(
        (w * w - v @ v) * np.eye(3) + 2 * np.outer(v, v) + 2 * w * cross, R, atol=1e-12
    )


def test_code_names():
    assert [code_name(code) for code in (1, -31, 12345)] == [
        "SUCCESS",
        "NO_IK_SOLUTION",
        "code 12345",
    ]


def test_options():
    options = parse_options([])
    assert (options.seconds, options.rate, str(options.output)) == (10.0, 100.0, "demo_output")


@pytest.mark.parametrize(
    "words", [["--rate", "5"], ["--rate", "nan"], ["--seconds", "x"], ["--output"], ["bogus"]]
)
def test_wrong_options_leave_with_2(words, capsys):
    with pytest.raises(SystemExit) as end:
        parse_options(words)
    assert end.value.code == 2
    assert words[0] in capsys.readouterr().err
