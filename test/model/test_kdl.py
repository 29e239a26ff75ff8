# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Chains in Orocos KDL have the same poses and Jacobians."""

import sys

import numpy as np
import pytest
from arms import PUBLISHED, published
from hypothesis import HealthCheck, assume, given, settings
from random_robots import random_robots
from robots import CONFIG, LIMIT, URDF, joint, urdf

from dls_ik.errors import ChainError, DlsIkError, RobotModelError
from dls_ik.model import RobotModel
from dls_ik.model.kdl import kdl_chain

kdl = pytest.importorskip("PyKDL", reason="PyKDL is not installed")


def kdl_arrays(chain, q):
    """Return the forward kinematics (4, 4) and the Jacobian (6, n) of KDL."""
    joints, frame, J = kdl.JntArray(len(q)), kdl.Frame(), kdl.Jacobian(len(q))
    for i, value in enumerate(q):
        joints[i] = value
    assert kdl.ChainFkSolverPos_recursive(chain).JntToCart(joints, frame) >= 0
    assert kdl.ChainJntToJacSolver(chain).JntToJac(joints, J) >= 0
    T = np.array([[frame[i, j] for j in range(4)] for i in range(3)] + [[0, 0, 0, 1]])
    return T, np.array([[J[i, j] for j in range(len(q))] for i in range(6)])


def assert_same(robot, q, atol):
    T, J = kdl_arrays(kdl_chain(robot), q)
    np.testing.assert_allclose(robot.fk(q), T, atol=atol)
    np.testing.assert_allclose(robot.jacobian(q), J, atol=atol)


SHIPPED = {name: RobotModel.from_name(name) for name in ("wam", "puma560", "planar_2r")}
ROBOTS = {**SHIPPED, "wam7_dh": RobotModel.from_dh(CONFIG / "wam7_dh.yaml")}


@pytest.mark.parametrize("name", [*ROBOTS, *PUBLISHED])
def test_fk_and_jacobian_of_known_arms_match_kdl(name):
    robot = ROBOTS[name] if name in ROBOTS else published(name)
    for q in robot.random(50, np.random.default_rng(0)):
        assert_same(robot, q, 1e-12)


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(random_robots())
def test_fk_and_jacobian_of_random_robots_match_kdl(drawn):
    assume("mimic" not in drawn.text)
    try:
        robot = RobotModel.from_urdf(drawn.text, tip=drawn.links[-1])
    except ChainError:
        assume(False)
    assert_same(robot, np.array([drawn.values[name] for name in robot.joint_names]), 1e-11)


@pytest.mark.parametrize(("multiplier", "base"), [(1, "a"), (-2, "a"), (-2, "b")])
def test_mimic_joints_are_refused(multiplier, base):
    follower = LIMIT + f'<mimic joint="m" multiplier="{multiplier}"/>'
    text = urdf("a b c", joint("m"), joint("f", parent="b", child="c", detail=follower))
    with pytest.raises(RobotModelError, match="'c' has mimic joints"):
        kdl_chain(RobotModel.from_urdf(text, base))


def test_one_tip_gives_a_segment_per_joint_several_are_refused():
    robot = RobotModel.from_urdf(URDF / "y_shape.urdf", tip=("E0", "E1"))
    with pytest.raises(RobotModelError, match=r"one tip.*2: E0, E1"):
        kdl_chain(robot)
    chain = kdl_chain(RobotModel.from_urdf(URDF / "wam7.urdf"))
    assert chain.getNrOfSegments() == chain.getNrOfJoints() == 7
    assert chain.getSegment(3).getJoint().getName() == "wam_j4"


def test_a_missing_library_is_reported_with_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "PyKDL", None)
    with pytest.raises(DlsIkError, match="python3-pykdl"):
        kdl_chain(RobotModel.from_urdf(URDF / "planar_2r.urdf"))
