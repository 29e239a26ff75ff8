"""The same chain in Orocos KDL."""

import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from robots import CONFIG, LIMIT, URDF, joint, random_robots, urdf

from dls_ik.errors import ChainError, DlsIkError, RobotModelError
from dls_ik.model import RobotModel
from dls_ik.model.kdl import kdl_chain

kdl = pytest.importorskip("PyKDL", reason="PyKDL is not installed")


def kdl_arrays(chain, q):
    """KDL's forward kinematics (4, 4) and Jacobian (6, n)."""
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


@pytest.mark.parametrize("name", ["wam7.urdf", "wam7_dh.yaml", "puma560.urdf", "planar_2r.urdf"])
def test_shipped_robots(name):
    load = RobotModel.from_dh if name.endswith("yaml") else RobotModel.from_urdf
    robot = load((CONFIG if name.endswith("yaml") else URDF) / name)
    for q in robot.random(np.random.default_rng(0), 100):
        assert_same(robot, q, 1e-12)


@settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
@given(random_robots())
def test_random_robots(drawn):
    assume("mimic" not in drawn.text)
    try:
        robot = RobotModel.from_urdf(drawn.text, tip=drawn.links[-1])
    except ChainError:
        assume(False)
    assert_same(robot, np.array([drawn.values[name] for name in robot.joint_names]), 1e-11)


def test_one_segment_for_each_joint():
    chain = kdl_chain(RobotModel.from_urdf(URDF / "wam7.urdf"))
    assert chain.getNrOfSegments() == chain.getNrOfJoints() == 7
    assert chain.getSegment(3).getJoint().getName() == "wam_j4"


@pytest.mark.parametrize("multiplier", [1, -2])
def test_mimic_is_refused(multiplier):
    follower = LIMIT + f'<mimic joint="m" multiplier="{multiplier}"/>'
    text = urdf("a b c", joint("m"), joint("f", parent="b", child="c", detail=follower))
    with pytest.raises(RobotModelError, match="'c' has mimic joints"):
        kdl_chain(RobotModel.from_urdf(text))


def test_a_lone_follower_is_refused_too():
    follower = LIMIT + '<mimic joint="m" multiplier="-2"/>'
    text = urdf("a b c", joint("m"), joint("f", parent="b", child="c", detail=follower))
    with pytest.raises(RobotModelError, match="'c' has mimic joints"):
        kdl_chain(RobotModel.from_urdf(text, base="b"))


def test_missing_library_names_the_package(monkeypatch):
    monkeypatch.setitem(sys.modules, "PyKDL", None)
    with pytest.raises(DlsIkError, match="python3-pykdl"):
        kdl_chain(RobotModel.from_urdf(URDF / "planar_2r.urdf"))
