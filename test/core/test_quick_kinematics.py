"""Arms in cheap frames: forward kinematics, error and Jacobian are those of the chain."""

import numpy as np
import pytest
from arms import PUBLISHED, published, random_arm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernels import WAM
from oracle import rotation
from oracle_ik import pose_error

from dls_ik import IkSolver
from dls_ik.core.fast.kinematics import aim, arm_jacobian, observe_arm
from dls_ik.core.fast.table import LEAF
from dls_ik.core.jit import kernel
from dls_ik.core.workspace import fast_workspace
from dls_ik.model import DhRow, RobotModel
from dls_ik.model.chain import build_arm
from dls_ik.model.joint import Joint
from dls_ik.model.tree import Tree

quick = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))
KINDS = st.lists(
    st.sampled_from(["revolute", "prismatic", "continuous", "mimic"]), min_size=0, max_size=8
)
SHIPPED = ("wam", "puma560", "planar_2r")


@kernel
def look(arm, rotation_weight, T_d, q, work):
    """Error and Jacobian at q, as the loop has them."""
    aim(arm.base, arm.tip, T_d, work.target)
    errors = observe_arm(arm, rotation_weight, q, work)
    arm_jacobian(arm.turn, arm.slide, arm.variable, work.axes, work.T, rotation_weight, work.J)
    return errors


def observed(robot, T_d, q, weight=1.0):
    """Position and rotation error, scaled error (6,) and Jacobian (6, n), all in the base frame.

    The arm's own first frame is turned against the base.
    """
    arm = build_arm(robot.chain)
    work = fast_workspace(arm, LEAF)
    position, angle = look(arm, weight, T_d, np.ascontiguousarray(q, float), work)
    back = np.kron(np.eye(2), arm.base[:, :3].T)
    return position, angle, back @ work.e, back @ work.J.T


def check(robot, q, T_d, weight, atol=1e-12):
    position, angle, e, J = observed(robot, T_d, q, weight)
    scale = np.repeat([1.0, weight], 3)
    expected = pose_error(T_d, robot.fk(q))
    assert position == pytest.approx(np.linalg.norm(expected[:3]), abs=atol)
    assert angle == pytest.approx(np.linalg.norm(expected[3:]), abs=1e-7)
    if angle < 3.14:  # the axis of half a turn may point either way
        np.testing.assert_allclose(e, scale * expected, atol=weight * 1e-11 + atol)
    np.testing.assert_allclose(J, scale[:, None] * robot.jacobian(q), atol=(1.0 + weight) * 1e-12)


@quick
@given(st.integers(0, 10**6), KINDS, st.floats(0.01, 10.0))
def test_drawn_arms_are_their_chains(seed, kinds, weight):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    for q in robot.random(rng, 5):
        check(robot, q, robot.fk(robot.random(rng)), weight)


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_arms_are_their_chains(name):
    robot, rng = published(name), np.random.default_rng(1)
    for q in robot.random(rng, 50):
        check(robot, q, robot.fk(robot.random(rng)), 0.5)


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_robots_are_their_chains(name):
    robot, rng = RobotModel.from_name(name), np.random.default_rng(2)
    for q in robot.random(rng, 50):
        check(robot, q, robot.fk(robot.random(rng)), 0.5)


TWISTS = st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, 1e-13, 1e-9, 1e-6, np.pi - 1e-9, 0.4])
ROWS = st.builds(
    lambda a, alpha, d, theta, kind: DhRow(a, alpha, d, theta, kind, -2.0, 2.0),
    *(st.floats(-1.0, 1.0), TWISTS, st.floats(-1.0, 1.0), TWISTS),
    st.sampled_from(["revolute", "revolute", "prismatic"]),
)


@quick
@given(st.lists(ROWS, min_size=1, max_size=9), st.integers(0, 10**6))
def test_axes_parallel_opposed_or_nearly_so(rows, seed):
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_dh(rows)
    for q in robot.random(rng, 3):
        check(robot, q, robot.fk(robot.random(rng)), 0.5)


def nearly_parallel(rng, angle):
    """Seven joints about any axes, most of them so far from parallel to the one before."""
    joints, axis = [], np.array([0.0, 0.0, 1.0])
    for i in range(7):
        T, before = np.eye(4), axis
        T[:3, :3] = rotation(unit(rng), rng.uniform(0.5, 3.0))
        T[:3, 3] = rng.uniform(-0.4, 0.4, 3)
        tilted = rotation(np.cross(before, unit(rng)), angle) @ before if i % 3 else unit(rng)
        axis = T[:3, :3].T @ (rng.choice([-1.0, 1.0]) * tilted)
        joints.append(Joint(f"j{i}", "revolute", f"l{i}", f"l{i + 1}", T, axis, -2.9, 2.9))
    return RobotModel.from_tree(Tree("arm", tuple(f"l{i}" for i in range(8)), tuple(joints)))


def unit(rng):
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


@pytest.mark.parametrize("angle", [10.0**k for k in range(-16, -4)])
def test_axes_any_angle_from_parallel(angle):
    rng = np.random.default_rng(5)
    for _ in range(20):
        robot = nearly_parallel(rng, angle)
        for q in robot.random(rng, 3):
            position, turned, _, _ = observed(robot, robot.fk(q), q)
            assert max(position, turned) <= 2e-14


@pytest.mark.parametrize("angle", [1e-12, 1e-11, 1e-10, 1e-8])
def test_success_with_axes_nearly_parallel_is_real(angle):
    rng = np.random.default_rng(6)
    for _ in range(5):
        robot = nearly_parallel(rng, angle)
        Ts = robot.fk(robot.random(rng, 10))
        result = IkSolver(robot, max_restarts=300).solve_batch(Ts, robot.random(rng, 10))
        assert result.success.any()
        for i in np.flatnonzero(result.success):
            e = pose_error(Ts[i], robot.fk(result.q[i]))
            assert np.linalg.norm(e[:3]) <= 1e-6 + 1e-12
            assert np.linalg.norm(e[3:]) <= 1e-6 + 1e-12


@pytest.mark.parametrize("name", ["wam", "puma560"])
def test_jacobian_is_the_slope_of_the_forward_kinematics(name):
    robot, rng, step = RobotModel.from_name(name), np.random.default_rng(3), 1e-6
    for q in robot.random(rng, 10):
        T = robot.fk(q)
        J = observed(robot, T, q)[3]
        for j in range(robot.n):
            away = step * np.eye(robot.n)[j]
            slope = pose_error(robot.fk(q + away), robot.fk(q - away)) / (2.0 * step)
            np.testing.assert_allclose(J[:, j], slope, atol=1e-8)


ANGLES = [0.0, 1e-12, 1e-8, 1e-6, 1e-3, 0.1, 0.2449, 0.2451, 1.0, np.pi / 2, 2.0, 2.68, 2.7, 3.0]
ANGLES += [np.pi - 10.0**-k for k in range(2, 13)] + [np.pi]


@pytest.mark.parametrize("angle", ANGLES)
def test_rotation_error_of_any_angle(angle):
    rng = np.random.default_rng(4)
    for _ in range(50):
        q, axis = WAM.random(rng), rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        T_d = WAM.fk(q)
        T_d[:3, :3] = rotation(axis, angle) @ T_d[:3, :3]
        position, told, e, _ = observed(WAM, T_d, q, 1.0)
        assert position <= 1e-15
        assert told == pytest.approx(angle, abs=5e-15 + 1e-11 * angle)
        direction = 1.0 if angle < 3.1 else np.sign(e[3:] @ axis)
        np.testing.assert_allclose(e[3:], direction * angle * axis, atol=1e-15 + 1e-7 * angle)


def test_error_grows_without_steps_from_none_to_half_a_turn():
    """The three formulas meet where one takes over from the other."""
    q, axis = np.full(7, 0.3), np.array([0.6, 0.0, 0.8])
    T, told = WAM.fk(q), []
    angles = np.linspace(0.0, np.pi, 20001)
    for angle in angles:
        T_d = T.copy()
        T_d[:3, :3] = rotation(axis, angle) @ T[:3, :3]
        told.append(observed(WAM, T_d, q)[1])
    np.testing.assert_allclose(told, angles, atol=1e-9)
