# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint positions of episodes: the same again after poses, gaps with reasons."""

import numpy as np
import pytest

from dls_ik import DlsIkError, RobotModel
from dls_ik.errors import OptionError, PoseError
from dls_ik.solver.episodes import episode_joints

PUMA = RobotModel.from_name("puma560")
WAM = RobotModel.wam()
STARTS = {
    PUMA: np.array([0.3, 0.8, -0.6, 0.4, 0.9, 0.2]),
    WAM: np.array([0.3, 0.6, -0.2, 1.5, 0.4, 0.5, 0.5]),
}


def episode(robot, frames=200):
    """Return smooth joint positions (frames, n) away from singularities and limits."""
    phase = np.arange(robot.n)
    t = np.linspace(0.0, 5.0, frames)[:, None]
    motion = 0.25 * (np.sin(t * np.linspace(0.5, 1.5, robot.n) + phase) - np.sin(phase))
    q = STARTS[robot] + motion
    assert robot.within_limits(q).all()
    return q


def test_six_joints_come_back_from_poses_and_all_poses_from_joints():
    for whole in (False, True):
        q = episode(PUMA)
        found = episode_joints(PUMA, PUMA.fk(q), q[0], whole=whole)
        assert found.success
        assert np.abs(found.q - q).max() < 1e-9
    for robot in (PUMA, WAM):
        T = robot.fk(episode(robot))
        found = episode_joints(robot, T, STARTS[robot])
        assert found.success
        assert np.abs(robot.fk(found.q) - T).max() < 1e-9
        assert np.abs(np.diff(found.q, axis=0)).max() < 0.1


def test_poses_in_single_precision_are_reached_within_the_tolerance():
    q = episode(PUMA)
    found = episode_joints(PUMA, PUMA.fk(q).astype(np.float32), q[0])
    assert found.success
    assert np.abs(found.q - q).max() < 1e-6
    assert found.position_error.max() < 1e-6


def test_gaps_name_their_frames_and_reasons():
    q = episode(PUMA)
    T = PUMA.fk(q)
    T[50:53] = np.nan
    T[100:110, :3, 3] *= 5.0
    found = episode_joints(PUMA, T, q[0])
    assert not found.success
    assert [(gap.first, gap.last) for gap in found.gaps] == [(50, 52), (100, 109)]
    assert "not a finite rigid transform" in found.gaps[0].reason
    assert "closest configuration is off by" in found.gaps[1].reason
    assert np.isfinite(found.q).all()
    np.testing.assert_array_equal(found.q[52], found.q[49])
    assert np.isnan(found.position_error[50])
    T = PUMA.fk(np.vstack([q[:20], q[150:170]]))
    (gap,) = episode_joints(PUMA, T, q[0], max_joint_step=0.1).gaps
    assert (gap.first, gap.last) == (20, 20)
    assert "jumps by" in gap.reason


def test_episode_of_invalid_poses_only_is_one_gap():
    found = episode_joints(PUMA, np.full((3, 4, 4), np.nan))
    assert [(gap.first, gap.last) for gap in found.gaps] == [(0, 2)]
    assert PUMA.within_limits(found.q).all()


@pytest.mark.parametrize(
    ("poses", "keywords", "error", "words"),
    [
        (np.eye(4), {}, PoseError, "shape"),
        (np.empty((0, 4, 4)), {}, PoseError, "b > 0"),
        (np.eye(4)[None], {"tolerance": 0.0}, OptionError, "above 0"),
        (np.eye(4)[None], {"nonsense": 1}, DlsIkError, "nonsense"),
    ],
)
def test_bad_input_is_refused(poses, keywords, error, words):
    with pytest.raises(error, match=words):
        episode_joints(PUMA, poses, **keywords)
