# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Trajectories of poses that the running node plans before the arm follows them."""

from importlib.util import find_spec

import numpy as np
import pytest
from branch_line import LINE, START, WAM
from ros_streamer import motion
from ros_watched import Watched, trajectory

from dls_ik.servo.trajectory_plan import TrajectoryPlanner

pytestmark = [pytest.mark.ros]
MAX_DISTANCE = 5e-3  # [m] distance of the tip from the line
ELSEWHERE = "pose 6 (of 0 to 19) is not reachable on the current branch of solutions"


def distances(tips):
    """Return the distances (m,) of the tips (m, 3) from the line [m]."""
    start, end = LINE[0, :3, 3], LINE[-1, :3, 3]
    along = np.clip((tips - start) @ (end - start) / np.sum((end - start) ** 2), 0.0, 1.0)
    return np.linalg.norm(tips - start - along[:, None] * (end - start), axis=1)


def send_until_told(arm, *words):
    """Send the line until a status contains all words."""
    arm.answers(lambda: arm.send_alone(trajectory(LINE)), *words)


@pytest.fixture
def kernels():
    """The kernels of whole paths, which a node does not compile itself, are in the disk cache."""
    assert TrajectoryPlanner(WAM, None).search(LINE, START).guide is not None


def test_node_says_which_pose_it_misses_or_moves_to_another_branch(private_domain, kernels):
    with Watched("branch", initial_positions=START.tolist(), when_stuck="hold") as arm:
        if find_spec("coal"):
            arm.node.wait_for_line("planning scene built")
        send_until_told(arm, ELSEWHERE, "; a joint motion would lead to a branch")
        arm.client.set_parameters(when_stuck="joint_motion")
        del arm.heard[:]
        send_until_told(arm, "current branch of solutions; moving to a branch")
        arm.arrives(LINE[-1])
        arm.says("at the target")
        arm.assert_calm()
        q = motion(arm.commands)[1]
        tips = WAM.fk(q)[:, :3, 3]
        at_start = np.linalg.norm(tips - LINE[0, :3, 3], axis=1) < 1e-3
        left = np.flatnonzero(at_start)[-1]
        assert np.abs(q[left] - START).max() > 0.5, "another branch"
        assert distances(tips[left:]).max() < MAX_DISTANCE
