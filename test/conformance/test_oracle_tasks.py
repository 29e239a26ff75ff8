"""The oracle beside closed forms worked out by hand: tasks, objectives and their geometry."""

from types import SimpleNamespace

import numpy as np
import oracle_objectives as objectives
import oracle_task
import pytest
from cases import PLANAR, WAM
from oracle import difference_jacobian, rotation
from oracle_ik import Oracle, error_and_jacobian
from oracle_task import Rows

from dls_ik.solver.options import SolverOptions


def planar(q):
    """J of the position in the plane of two links of 1 m."""
    s1, s12, c1, c12 = np.sin(q[0]), np.sin(q.sum()), np.cos(q[0]), np.cos(q.sum())
    return np.array([[-s1 - s12, -s12], [c1 + c12, c12]])


@pytest.mark.parametrize("q", [np.array([0.3, 0.7]), np.array([-1.0, 2.0])])
def test_two_links(q):
    """The closed form of J^-1 = 1 / sin q2 [[c12, s12], [-c1 - c12, -s1 - s12]]."""
    task = SimpleNamespace(position="xy", rotation="", frame="base", weights=None, tip=None)
    T_d = PLANAR.fk(q + np.array([0.1, -0.2]))
    oracle = Oracle("jp", PLANAR, SolverOptions(), task)
    e, J = oracle.error_and_jacobian(q, T_d)
    np.testing.assert_allclose(J, planar(q), atol=1e-14)
    c1, c12, s1, s12 = np.cos(q[0]), np.cos(q.sum()), np.sin(q[0]), np.sin(q.sum())
    inverse = np.array([[c12, s12], [-c1 - c12, -s1 - s12]]) / np.sin(q[1])
    np.testing.assert_allclose(oracle.step(q, J, e), inverse @ e, rtol=1e-12)


@pytest.mark.parametrize("frame", ["base", "target"])
@pytest.mark.parametrize("axes", ["xyz", "xy", "yz", "xz", "x", "y", "z"])
def test_rotation_errors_near_the_target_are_rows_of_the_rotation_vector(axes, frame):
    rng = np.random.default_rng(1)
    q = WAM.random(rng)
    task = SimpleNamespace(position="", rotation=axes, frame=frame, weights=None, tip=None)
    T_d = WAM.fk(q + 1e-5 * rng.normal(size=7))
    e = error_and_jacobian(WAM, T_d, q, 1.0, task)[0]
    full = oracle_task.pose_error(T_d, WAM.fk(q))[3:]
    full = T_d[:3, :3].T @ full if frame == "target" else full
    rows = ["xyz".index(axis) for axis in axes]
    np.testing.assert_allclose(e, full[rows], atol=1e-9)
    goal = WAM.fk(q)
    numeric = difference_jacobian(WAM.fk, q)[3:]
    numeric = goal[:3, :3].T @ numeric if frame == "target" else numeric
    np.testing.assert_allclose(
        error_and_jacobian(WAM, goal, q, 1.0, task)[1], numeric[rows], atol=1e-8
    )


def test_swing_and_twist():
    """Tipped by 0.3 about x after a turn by 0.8 about z: swing and twist tell them apart."""
    z, x = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    R = rotation(x, 0.3) @ rotation(z, 0.8)
    np.testing.assert_allclose(oracle_task.swing(R, z), swing_of(R), atol=1e-12)
    np.testing.assert_allclose(oracle_task.twist(R, z), 0.8 * z, atol=1e-12)
    R = rotation(z, 0.8)
    np.testing.assert_allclose(oracle_task.swing(R, z), 0.0, atol=1e-12)
    np.testing.assert_allclose(oracle_task.swing(rotation(x, 0.3), z), 0.3 * x, atol=1e-12)
    assert np.linalg.norm(oracle_task.swing(rotation(x, np.pi), z)) == pytest.approx(np.pi)


def swing_of(R):
    """What turns the direction R^T z onto z: about the axis between, by the angle between."""
    z = np.array([0.0, 0.0, 1.0])
    a = R.T @ z
    axis = np.cross(a, z) / np.linalg.norm(np.cross(a, z))
    turned = rotation(axis, np.arccos(a @ z)) @ a
    np.testing.assert_allclose(turned, z, atol=1e-12)
    return np.arccos(a @ z) * axis


@pytest.mark.parametrize("objective", ["limits", "centring", "posture", "obstacle"])
def test_gradients_are_those_of_the_values(objective):
    options = SolverOptions(objective=objective, obstacle=(0.1, 0.2, 0.3), influence=0.9)
    rows, rng = Rows(WAM), np.random.default_rng(3)
    q = 0.4 * (WAM.lower + WAM.upper) + 0.2 * WAM.random(rng)
    numeric = [
        (objectives.value(options, rows, q + h) - objectives.value(options, rows, q - h)) / 2e-6
        for h in 1e-6 * np.eye(7)
    ]
    assert np.abs(numeric).max() > 1e-3
    np.testing.assert_allclose(objectives.gradient(options, rows, q), numeric, rtol=1e-5, atol=1e-7)


def test_criterion_of_the_limits_is_0_in_the_middle_and_rises():
    rows = Rows(WAM)
    middle = 0.5 * (WAM.lower + WAM.upper)
    values = [objectives.value(SolverOptions(), rows, middle + share * (WAM.upper - middle))
              for share in (0.0, 0.3, 0.9, 0.99)]  # fmt: skip
    assert values[0] == pytest.approx(0.0, abs=1e-14)
    assert values == sorted(values)
    assert values[1] == pytest.approx(0.5 * 4.0 * (1 / (1 - 0.09) - 1))


def test_paths_end_at_the_tip_and_segments_have_distances():
    q = WAM.random(np.random.default_rng(4))
    (points,) = objectives.paths(WAM.chain, q)
    assert len(points) == 8
    np.testing.assert_allclose(points[-1], WAM.fk(q)[:3, 3], atol=1e-14)
    a, b = np.zeros(3), np.array([2.0, 0.0, 0.0])
    assert objectives.to_segment(np.array([1.0, 1.0, 0.0]), a, b) == 1.0
    assert objectives.to_segment(np.array([5.0, 4.0, 0.0]), a, b) == 5.0
    assert objectives.to_segment(np.array([0.0, 0.0, 3.0]), a, a) == 3.0
