# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Singularities, axes, reach and ready configurations, compared with geometry."""

import math

import numpy as np
import pytest
from arms import published
from oracle import difference_jacobian

from dls_ik import RobotModel
from dls_ik.model.analysis import (
    POSE_ROWS,
    POSITION_ROWS,
    analysed_rows,
    conditioning,
    joint_axes,
    ready_configuration,
    singularities,
)
from dls_ik.model.reach import tip_extent
from dls_ik.servo import Controller

# The WAM's elbow is 45 mm off the line from shoulder to wrist, 0.55 m and 0.3 m away.
STRETCHED = math.atan2(0.045, 0.55) + math.atan2(0.045, 0.3)


@pytest.fixture(scope="module")
def wam():
    robot = RobotModel.wam()
    return robot, singularities(robot)


@pytest.fixture(scope="module")
def puma():
    robot = RobotModel.from_name("puma560")
    return robot, singularities(robot)


def test_the_stretched_elbow_of_the_wam_loses_motion_along_the_arm(wam):
    robot, found = wam
    (elbow,) = [family for family in found.families if family.joints == (3,)]
    assert elbow.q[3] == pytest.approx(STRETCHED, abs=1e-6)
    assert (found.rank, elbow.rank, elbow.tied) == (6, 5, ())
    wrist = robot.link_pose("wam_link6", elbow.q)[:3, 3]  # intersection of the axes of the wrist
    np.testing.assert_allclose(np.abs(elbow.loss.force @ wrist), np.linalg.norm(wrist), rtol=1e-6)
    np.testing.assert_allclose(np.cross(elbow.loss.point, elbow.loss.force), 0.0, atol=1e-6)
    np.testing.assert_allclose(elbow.loss.moment, 0.0, atol=1e-6)


def test_shoulder_and_wrist_singularities_of_the_wam_are_found(wam):
    _, found = wam
    pairs = [(f.joints, f.q[list(f.joints)]) for f in found.families if len(f.joints) == 2]
    shoulder = [values for joints, values in pairs if joints == (1, 2)]
    assert sorted(values[1] for values in shoulder) == pytest.approx([-math.pi / 2, math.pi / 2])
    assert {joints for joints, _ in pairs} <= {(1, 2), (1, 5), (3, 5), (4, 5)}


def test_the_puma_has_the_three_textbook_singularities(puma):
    robot, found = puma
    wrist, elbow, shoulder = (
        next(f for f in found.families if f.joints == joints) for joints in ((4,), (2,), (1, 2))
    )
    assert wrist.q[4] == pytest.approx(0.0, abs=1e-6)
    assert not wrist.loss.force.any()
    assert elbow.loss.force.any()
    assert shoulder.tied == (1, 2)
    assert np.linalg.matrix_rank(robot.jacobian(shoulder.q), tol=1e-6) == 5


@pytest.mark.parametrize("arm", ["wam", "puma"])
def test_the_lost_wrench_needs_no_joint_torque(arm, request):
    robot, found = request.getfixturevalue(arm)
    assert found.families
    for family in found.families:
        tip = robot.fk(family.q)[:3, 3]
        about_tip = np.cross(family.loss.point - tip, family.loss.force) + family.loss.moment
        J = difference_jacobian(robot.fk, family.q)
        np.testing.assert_allclose(
            J[:3].T @ family.loss.force + J[3:].T @ about_tip, 0.0, atol=1e-5
        )


def test_no_family_is_found_without_singularities_within_the_limits():
    flat = RobotModel.from_name("planar_2r").narrowed([-1.0, 0.5], [1.0, 1.0])
    found = singularities(flat, POSITION_ROWS)
    assert (found.rank, found.families) == (2, ())
    assert found.least > 0.01
    assert flat.within_limits(found.worst)
    J = flat.jacobian(found.worst)[:2]  # the plane of the arm
    weakest = np.linalg.svd(J)[0][:, 1]
    assert abs(weakest @ found.weak.force[:2]) == pytest.approx(1.0, abs=1e-6)


def test_the_stretched_arm_in_a_plane_is_singular():
    robot = RobotModel.from_name("planar_2r")
    assert analysed_rows(robot) == (POSITION_ROWS,)
    found = singularities(robot, POSITION_ROWS)
    assert {family.joints for family in found.families} == {(1,)}
    angles = [abs(family.q[1]) for family in found.families]
    assert sorted(angles) == pytest.approx([0.0, math.pi], abs=1e-6)
    for family in found.families:
        tip = robot.fk(family.q)[:3, 3]
        along = family.q[0]
        line = family.loss.force @ [-math.sin(along), math.cos(along), 0.0]
        assert line == pytest.approx(0.0, abs=1e-6)  # the arm loses the motion along its links
        np.testing.assert_allclose(np.cross(family.loss.point - tip, family.loss.force), 0.0)


def test_the_position_is_analysed_where_a_pose_cannot_be_reached():
    assert analysed_rows(RobotModel.wam()) == (POSE_ROWS,)
    five = published("youbot")
    assert analysed_rows(five) == (POSE_ROWS, POSITION_ROWS)
    assert len(singularities(five, POSITION_ROWS).families) > 0


def test_tied_joints_make_one_family_for_each_position_of_the_others():
    found = singularities(published("xarm7"))
    keys = [(f.joints, f.tied) for f in found.families]
    for joints, tied in set(keys):
        assert keys.count((joints, tied)) <= 4, (joints, tied)
    assert any(f.tied and len(f.tied) < len(f.joints) for f in found.families)


def test_conditioning_matches_the_singular_values():
    robot = RobotModel.wam()
    measured = conditioning(robot, samples=50, random_seed=3)
    q = robot.random(50, np.random.default_rng(3))
    for i in (0, 49):
        J = difference_jacobian(robot.fk, q[i]) * np.array([[1.0]] * 3 + [[0.5]] * 3)
        s = np.linalg.svd(J, compute_uv=False)
        assert measured.least[i] == pytest.approx(s[5], rel=1e-5)
        assert measured.condition[i] == pytest.approx(s[0] / s[5], rel=1e-5)
    assert measured.rank == 6


def test_intersecting_and_parallel_axes_are_found():
    assert joint_axes(RobotModel.wam()).meeting == ((0, 1, 2), (4, 5, 6))
    puma = joint_axes(RobotModel.from_name("puma560"))
    assert puma.meeting == ((3, 4, 5),)
    assert puma.parallel == ((1, 2),)
    assert joint_axes(RobotModel.from_name("planar_2r")).parallel == ((0, 1),)


def test_reach_is_between_its_bounds():
    extent = tip_extent(RobotModel.wam())
    assert extent.least <= extent.seen[0] <= extent.seen[1] <= extent.most
    assert extent.most == pytest.approx(
        math.hypot(0.55, 0.045) + math.hypot(0.3, 0.045) + 0.06, abs=2e-3
    )
    flat = tip_extent(RobotModel.from_name("planar_2r"))
    assert flat.most == pytest.approx(2.0)


def inverse_condition(robot, q):
    s = np.linalg.svd(robot.jacobian(q), compute_uv=False)
    return s[-1] / s[0]


@pytest.mark.parametrize("name", ["wam", "puma560", "gen3", "fr3"])
def test_the_ready_configuration_is_away_from_singularities_and_limits(name):
    robot = published(name) if name in ("gen3", "fr3") else RobotModel.from_name(name)
    q = ready_configuration(robot)
    assert inverse_condition(robot, q) > max(
        0.05, 2.0 * inverse_condition(robot, robot.clip(0.0 * q))
    )
    assert robot.within_limits(q)
    assert np.abs(q).max() <= 2.0
    np.testing.assert_array_equal(q, ready_configuration(robot.narrowed(-9.0, 9.0)))
    for axis in np.vstack([np.eye(3), -np.eye(3)]):
        assert_follows(Controller(robot), q, axis)
    planar = RobotModel.from_name("planar_2r")
    np.testing.assert_array_equal(ready_configuration(planar), [0.0, 0.0])  # it moves well there


def assert_follows(controller, q, axis):
    """Check that the first motion follows a base axis at 0.1 m/s without lag."""
    T = controller.robot.fk(q).copy()
    controller.seed(q)
    for k in range(1, 50):
        T[:3, 3] += 0.001 * axis
        controller.follow_pose(T, 0.01 * k)
        out = controller.cycle(0.01 * k, 0.01)
        assert out.position_error < 1e-3, (k, axis)
