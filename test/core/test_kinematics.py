# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of forward kinematics and Jacobian of random arms; test/model compares with KDL."""

import numpy as np
import pytest
from arms import random_arm
from oracle import difference_jacobian

KINDS = {
    "5": ["revolute"] * 5,
    "6 with a slide": ["prismatic", *["revolute"] * 5],
    "7 turning": ["continuous"] * 7,
    "6 and a follower": [*["revolute"] * 3, "mimic", *["revolute"] * 3],
    "9": ["revolute", "prismatic", *["continuous"] * 3, *["revolute"] * 4],
}


@pytest.mark.parametrize("name", KINDS)
def test_jacobian_is_the_derivative(name):
    rng = np.random.default_rng(3)
    arm = random_arm(rng, *KINDS[name])
    for q in arm.random(5, rng):
        differences = difference_jacobian(arm.fk, q)
        np.testing.assert_allclose(arm.jacobian(q), differences, atol=1e-8)


@pytest.mark.parametrize("name", KINDS)
def test_pose_is_rigid_far_from_zero(name):
    rng = np.random.default_rng(4)
    arm = random_arm(rng, *KINDS[name])
    for q in 1e3 * rng.normal(size=(20, arm.n)):
        R = arm.fk(q)[:3, :3]
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-14)
        assert np.linalg.det(R) > 0.0
