# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik call`` and ``stream`` without a node: exit codes, and the poses to send."""

import numpy as np
import pytest
from programs import run_command

from dls_ik.cli.stream import circle, sampled
from dls_ik.model.rotations import rotation_from_rpy

MISSING = 3
LOCKED = {"ENABLE": "true", "STRATEGY": "Enforce", "KEYSTORE": "/nowhere"}


@pytest.mark.parametrize(
    ("command", "variables", "said"),
    [
        ("call --service /nobody/ik", {}, "no service /nobody/ik (moveit_msgs/srv/GetPositionIK)"),
        (
            "call",
            {"ROS_DOMAIN_ID": "abc"},
            "ROS_DOMAIN_ID must be a number from 0 to 232; got 'abc'",
        ),
        ("stream", {"ROS_LOG_DIR": "/proc/nowhere"}, "/proc/nowhere"),
        ("call", {f"ROS_SECURITY_{name}": value for name, value in LOCKED.items()}, "/nowhere"),
    ],
)
def test_missing_service_or_ros_failure_gives_a_one_line_error(command, variables, said):
    pytest.importorskip("rclpy", reason="needs rclpy")
    pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
    words = [*command.split(), "--xyz", "0", "0", "0", "--patience", "0.1"]
    ended = run_command(*words, **variables)
    assert (ended.returncode, ended.stdout) == (MISSING, ""), ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith("dls-ik: ")
    assert said in ended.stderr


def test_timed_poses_are_resampled_at_the_given_rate():
    turn = np.eye(4)
    turn[:3, :3], turn[0, 3] = rotation_from_rpy(0, 0, 1.0), 1.0
    times, poses = sampled(np.array([7.0, 8.0, 8.5]), np.array([np.eye(4), turn, turn]), rate=4.0)
    np.testing.assert_allclose(times, [0, 0.25, 0.5, 0.75, 1, 1.25, 1.5])
    np.testing.assert_allclose(poses[:, 0, 3], [0, 0.25, 0.5, 0.75, 1, 1, 1])
    np.testing.assert_allclose(poses[2, :3, :3], rotation_from_rpy(0, 0, 0.5), atol=1e-9)
    times, poses = sampled(None, np.array([np.eye(4), turn]), rate=2.0)
    np.testing.assert_allclose(times, [0, 0.5])
    times, poses = sampled(np.array([0.0]), np.eye(4)[None], rate=2.0)
    assert poses.shape == (len(times), 4, 4)


@pytest.mark.parametrize(("plane", "axes"), [("xy", (0, 1)), ("xz", (0, 2)), ("yz", (1, 2))])
def test_a_circle_begins_and_ends_at_its_centre(plane, axes):
    centre = np.eye(4)
    centre[:3, 3] = 0.3, 0.2, 0.1
    times, poses = circle(centre, 0.1, period=2.0, laps=1.5, plane=plane, rate=100.0)
    away = poses[:, :3, 3] - centre[:3, 3]
    distance = np.linalg.norm(away, axis=1)
    assert times[-1] == pytest.approx(4.0)  # includes half a second before and after the laps
    np.testing.assert_allclose(distance[[0, -1]], 0.0, atol=1e-12)
    np.testing.assert_allclose(distance[(times > 0.5) & (times < 3.5)], 0.1)
    (fixed,) = {0, 1, 2} - set(axes)
    assert not away[:, fixed].any()
    np.testing.assert_allclose(poses[:, :3, :3], np.broadcast_to(np.eye(3), (len(poses), 3, 3)))
    steps = np.linalg.norm(np.diff(away, axis=0), axis=1)
    assert steps.max() < 2.0 * np.pi * 0.1 / 2.0 / 100.0 * 1.6  # no jump
