"""``dls-ik call``: what it sends, what it prints, and its exit codes."""

import os
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from dls_ik.cli.main import main
from dls_ik.cli.pose import pose_of
from dls_ik.model.rotations import rotation_from_rpy

FOUND, NO_SOLUTION, BAD_INPUT, MISSING = 0, 1, 2, 3


def invoke(*arguments):
    return CliRunner().invoke(main, ["call", *map(str, arguments)])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "either --xyz"),
        (("--xyz", 1, 2, 3, "--fk", "a=1"), "either --xyz"),
        (("--xyz", 1, 2), "--xyz"),
        (("--xyz", 1, 2, "x"), "'x'"),
        (("--xyz", 1, 2, 3, "--rpy", 0, 0, 0, "--quat", 0, 0, 0, 1), "not both"),
        (("--xyz", 1, 2, 3, "--quat", 0, 0, 0, 0), "no direction"),
        (("--xyz", 1, 2, 3, "--seed", "0.1"), "NAME=VALUE"),
        (("--xyz", 1, 2, 3, "--seed", "a=b"), "'a=b'"),
        (("--xyz", 1, 2, 3, "--seed", "a=nan"), "'a=nan'"),
        (("--xyz", 1, 2, 3, "--timeout", -1), "timeout"),
    ],
)
def test_bad_input_is_one_line(arguments, said):
    result = invoke(*arguments)
    assert result.exit_code == BAD_INPUT
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert said in result.stderr


def test_rotations():
    rpy = (0.3, -0.4, 2.5)
    T = pose_of((1.0, 2.0, 3.0), rpy, None)
    np.testing.assert_allclose(T[:3, 3], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(T[:3, :3], rotation_from_rpy(*rpy))
    third = pose_of((0.0, 0.0, 0.0), None, (1.0, 1.0, 1.0, 1.0))  # x to y to z to x
    np.testing.assert_allclose(third[:3, :3], np.eye(3)[[2, 0, 1]], atol=1e-15)
    np.testing.assert_allclose(pose_of((0.0, 0.0, 0.0), None, (0.0, 0.0, 0.0, 2.0)), np.eye(4))


def test_nobody_there():
    pytest.importorskip("rclpy", reason="needs rclpy")
    pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
    words = ["call", "--xyz", "0", "0", "0", "--service", "/nobody/ik", "--patience", "0.1"]
    ended = subprocess.run(
        [sys.executable, "-m", "dls_ik.cli", *words], capture_output=True, text=True, check=False
    )
    assert ended.returncode == MISSING, ended.stderr
    assert ended.stdout == ""
    assert "no service /nobody/ik (moveit_msgs/srv/GetPositionIK)" in ended.stderr


@pytest.mark.parametrize(
    ("command", "variables", "said"),
    [
        ("call", {"ROS_DOMAIN_ID": "abc"}, "ROS_DOMAIN_ID is 'abc', not a number from 0 to 232"),
        ("stream", {"ROS_DOMAIN_ID": "999"}, "ROS_DOMAIN_ID is '999'"),
        ("call", {"ROS_LOG_DIR": "/proc/nowhere"}, "/proc/nowhere"),
        (
            "call",
            {
                "ROS_SECURITY_ENABLE": "true",
                "ROS_SECURITY_STRATEGY": "Enforce",
                "ROS_SECURITY_KEYSTORE": "/nowhere",
            },
            "/nowhere",
        ),
    ],
)
def test_ros_that_cannot_be_joined_is_one_line(command, variables, said):
    pytest.importorskip("rclpy", reason="needs rclpy")
    pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
    words = [command, "--xyz", "0", "0", "0", "--patience", "0.1"]
    ended = subprocess.run(
        [sys.executable, "-m", "dls_ik.cli", *words], env={**os.environ, **variables},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stdout) == (MISSING, ""), ended.stderr
    assert ended.stderr.count("\n") == 1
    assert ended.stderr.startswith("dls-ik: ")
    assert said in ended.stderr
