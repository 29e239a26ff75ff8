# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik fk``: poses in all their forms, compared with products of DH matrices."""

import numpy as np
import pytest
import yaml
from cli_runner import document, run

from dls_ik import RobotModel
from dls_ik.model.files import share_file

DH = share_file("config", "wam7_dh.yaml")
Q = (0.1, 0.6, 0.0, 1.6, 0.0, 0.5, 0.2)
WORDS = ",".join(map(str, Q))


def rows():
    keys = ("a", "alpha", "d")
    return [[row[key] for key in keys] for row in yaml.safe_load(DH.read_text())["rows"]]


@pytest.mark.parametrize("robot", ["wam", DH])
def test_fk_pose_is_the_product_of_the_dh_matrices(robot):
    (pose,) = document("fk", robot, "--q", WORDS)["poses"].values()
    np.testing.assert_allclose(pose["matrix"], dh_matrix(Q), atol=1e-12)
    np.testing.assert_allclose(pose["xyz"], dh_matrix(Q)[:3, 3], atol=1e-12)


def dh_matrix(q):
    """Return the product of the DH matrices (4, 4) in the standard convention."""
    T = np.eye(4)
    for (a, alpha, d), theta in zip(rows(), q, strict=True):
        c, s, ca, sa = np.cos(theta), np.sin(theta), np.cos(alpha), np.sin(alpha)
        T = T @ [
            [c, -s * ca, s * sa, a * c],
            [s, c * ca, -c * sa, a * s],
            [0, sa, ca, d],
            [0, 0, 0, 1],
        ]
    return T


def test_values_by_name_and_in_order_are_the_same():
    names = RobotModel.wam().joint_names
    named = [f"{name}={value}" for name, value in zip(names, Q, strict=True)]
    in_order = document("fk", "wam", "--q", WORDS)
    assert document("fk", "wam", "--q", ",".join(named)) == in_order
    assert (
        document("fk", "wam", "--q", named[1], "--q", ",".join([named[0], *named[2:]])) == in_order
    )


def test_printed_fk_pose_is_accepted_by_solve():
    shown = run("fk", "wam", "--q", WORDS).stdout.splitlines()
    lines = {line.split()[0]: line.split()[1:] for line in shown if not line.startswith(" ")}
    rotation = ["--quat", *lines["quat"]]
    answer = document(
        "solve", "wam", "--xyz", *lines["xyz"], *rotation, "--seed", WORDS, "--task", "pose"
    )["answers"][0]
    np.testing.assert_allclose(list(answer["joints"].values()), Q, atol=1e-3)


def test_link_option_returns_the_poses_of_those_links():
    robot = RobotModel.wam()
    poses = document("fk", "wam", "--q", WORDS, "--link", "wam_link4", "--link", "wam_tip")["poses"]
    assert list(poses) == ["wam_link4", "wam_tip"]
    np.testing.assert_array_equal(poses["wam_link4"]["matrix"], robot.link_pose("wam_link4", Q))


def test_random_uses_the_seed_and_joints_beyond_limits_are_reported():
    answers = document("fk", "wam", "--random", 5, "--seed", 3)
    robot = RobotModel.wam()
    q = np.array([list(answer["joints"].values()) for answer in answers])
    np.testing.assert_array_equal(q, robot.random(5, np.random.default_rng(3)))
    poses = [answer["poses"]["wam_tip"]["matrix"] for answer in answers]
    np.testing.assert_allclose(poses, robot.fk(q), atol=1e-12)
    result = run("fk", "wam", "--q", "wam_j1=3")
    assert result.stderr == "dls-ik: joints beyond their limits: wam_j1\n"
