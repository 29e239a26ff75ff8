# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of sines, kinematics and Jacobian of the fast path."""

import numpy as np
import pytest
from arms import random_arm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kernels import WAM
from oracle import rotation
from oracle_ik import pose_error

from dls_ik.core.fast import kinematics as fast
from dls_ik.core.fast.kinematics import aim, arm_jacobian, observe_arm
from dls_ik.core.fast.table import LEAF_ROWS
from dls_ik.core.jit import kernel
from dls_ik.core.workspace import fast_workspace
from dls_ik.model import DhRow, RobotModel
from dls_ik.model.chain import build_arm
from dls_ik.model.joint import Joint
from dls_ik.model.tree import Tree

ULPS = 3.0  # two of the kernel, one of NumPy


@kernel
def write_sines(angles, s, c):
    """Call the inlined function from a separate kernel."""
    fast.sines(angles, s, c)


def sines(angles):
    angles = np.asarray(angles, float)
    s, c = np.full(angles.shape, np.nan), np.full(angles.shape, np.nan)
    write_sines(angles, s, c)
    return s, c


def assert_sines(angles):
    s, c = sines(angles)
    for ours, exact in ((s, np.sin(angles)), (c, np.cos(angles))):
        assert (np.abs(ours - exact) <= ULPS * np.spacing(np.abs(exact))).all()


@pytest.mark.parametrize("largest", [1e-300, 1e-9, 1e-3, 0.8, 4.0, 100.0, 1e5, 2e5, 1e12, 1e300])
def test_sines_match_numpy_for_angles_of_any_size(largest):
    rng = np.random.default_rng(1)
    assert_sines(rng.uniform(-largest, largest, 20000))


def test_sines_match_numpy_near_multiples_of_a_quarter_turn():
    for size in (0, 1, 2, 7, 8, 9, 31):
        assert_sines(np.random.default_rng(2).uniform(-9.0, 9.0, size))
    quarters = np.arange(-63000, 63000, 37) * (np.pi / 2)
    for off in (0.0, 1e-16, -1e-12, 1e-6, np.pi / 4, -np.pi / 4):
        assert_sines(quarters + off)


def test_sines_match_numpy_around_the_maximum_reduced_angle():
    near = fast.MAX_REDUCED_ANGLE * (1.0 + np.array([-1e-15, 0.0, 1e-15, 1e-3]))
    for angle in [*near, *-near]:
        assert_sines([0.3, angle, -2.0])


@settings(max_examples=100)
@given(arrays(float, st.integers(1, 12), elements=st.floats(-1e7, 1e7)))
def test_sines_of_random_angles_match_numpy(angles):
    assert_sines(angles)
    s, c = sines(angles)
    np.testing.assert_allclose(s * s + c * c, 1.0, rtol=0, atol=1e-15)


@pytest.mark.parametrize("largest", [3.0, 1e6])
@pytest.mark.parametrize("over", ["s", "c"])
def test_sines_can_overwrite_the_angles(largest, over):
    angles = np.random.default_rng(3).uniform(-largest, largest, 9)
    expected, other = sines(angles), np.empty(9)
    out = (angles, other) if over == "s" else (other, angles)
    write_sines(angles, *out)
    np.testing.assert_array_equal(out, expected)


# math.sin(inf) raises an error in Python, and returns NaN in compiled code.
@pytest.mark.parametrize(
    "bad", [np.nan, *(pytest.param(x, marks=pytest.mark.compiled) for x in (np.inf, -np.inf))]
)
@pytest.mark.parametrize("at", [0, 1, 2])
def test_sines_of_nan_or_inf_are_nan_and_leave_other_angles(bad, at):
    for others in ([0.5, -1.0], [2e5, 0.3]):
        angles = np.insert(others, at, bad)
        s, c = sines(angles)
        assert np.isnan(s[at])
        assert np.isnan(c[at])
        np.testing.assert_allclose(np.delete(s, at), np.sin(others), rtol=1e-15)
        np.testing.assert_allclose(np.delete(c, at), np.cos(others), rtol=1e-15)


quick = settings(max_examples=60, suppress_health_check=list(HealthCheck))
KINDS = st.lists(
    st.sampled_from(["revolute", "prismatic", "continuous", "mimic"]), min_size=0, max_size=8
)


@kernel
def look(arm, rotation_weight, T_d, q, work):
    """Write error and Jacobian at q, as in the loop of an attempt."""
    aim(arm.base, arm.tip, T_d, work.target)
    errors = observe_arm(arm, rotation_weight, q, work)
    arm_jacobian(arm.turn, arm.slide, arm.variable, work.axes, work.T, rotation_weight, work.J)
    return errors


def observed(robot, T_d, q, weight=1.0):
    """Return position and rotation error, scaled error (6,) and Jacobian (6, n) in the base frame.

    The first frame of the arm is rotated relative to the base.
    """
    arm = build_arm(robot.chain)
    work = fast_workspace(arm, LEAF_ROWS)
    position, angle = look(arm, weight, T_d, np.ascontiguousarray(q, float), work)
    back = np.kron(np.eye(2), arm.base[:, :3].T)
    return position, angle, back @ work.e, back @ work.J.T


def check(robot, q, T_d, weight, atol=1e-12):
    position, angle, e, J = observed(robot, T_d, q, weight)
    scale = np.repeat([1.0, weight], 3)
    expected = pose_error(T_d, robot.fk(q))
    assert position == pytest.approx(np.linalg.norm(expected[:3]), abs=atol)
    assert angle == pytest.approx(np.linalg.norm(expected[3:]), abs=1e-7)
    if angle < 3.14:  # the axis of half a turn may have either sign
        np.testing.assert_allclose(e, scale * expected, atol=weight * 1e-11 + atol)
    np.testing.assert_allclose(J, scale[:, None] * robot.jacobian(q), atol=(1.0 + weight) * 1e-12)


@quick
@given(st.integers(0, 10**6), KINDS, st.floats(0.01, 10.0))
def test_error_and_jacobian_of_random_arms_match_the_robot_model(seed, kinds, weight):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    for q in robot.random(5, rng):
        check(robot, q, robot.fk(robot.random(rng=rng)), weight)


TWISTS = st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, 1e-13, 1e-9, 1e-6, np.pi - 1e-9, 0.4])
ROWS = st.builds(
    lambda a, alpha, d, theta, kind: DhRow(a, alpha, d, theta, kind, -2.0, 2.0),
    *(st.floats(-1.0, 1.0), TWISTS, st.floats(-1.0, 1.0), TWISTS),
    st.sampled_from(["revolute", "revolute", "prismatic"]),
)


@quick
@given(st.lists(ROWS, min_size=1, max_size=9), st.integers(0, 10**6))
def test_error_and_jacobian_are_correct_for_nearly_parallel_axes(rows, seed):
    rng = np.random.default_rng(seed)
    robot = RobotModel.from_dh(rows)
    for q in robot.random(3, rng):
        check(robot, q, robot.fk(robot.random(rng=rng)), 0.5)


def nearly_parallel(rng, angle):
    """Return seven joints about random axes; most are at `angle` to the previous axis."""
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
def test_error_at_the_target_is_zero_for_any_angle_between_axes(angle):
    rng = np.random.default_rng(5)
    for _ in range(20):
        robot = nearly_parallel(rng, angle)
        for q in robot.random(3, rng):
            position, turned, _, _ = observed(robot, robot.fk(q), q)
            assert max(position, turned) <= 2e-14


ANGLES = [0.0, 1e-12, 1e-8, 1e-6, 1e-3, 0.1, 0.2449, 0.2451, 1.0, np.pi / 2, 2.0, 2.68, 2.7, 3.0]
ANGLES += [np.pi - 10.0**-k for k in range(2, 13)] + [np.pi]


@pytest.mark.parametrize("angle", ANGLES)
def test_rotation_error_is_accurate_for_any_angle(angle):
    rng = np.random.default_rng(4)
    for _ in range(20):
        q, axis = WAM.random(rng=rng), rng.normal(size=3)
        axis /= np.linalg.norm(axis)
        T_d = WAM.fk(q)
        T_d[:3, :3] = rotation(axis, angle) @ T_d[:3, :3]
        position, told, e, _ = observed(WAM, T_d, q, 1.0)
        assert position <= 1e-15
        assert told == pytest.approx(angle, abs=5e-15 + 1e-11 * angle)
        direction = 1.0 if angle < 3.1 else np.sign(e[3:] @ axis)
        np.testing.assert_allclose(e[3:], direction * angle * axis, atol=1e-15 + 1e-7 * angle)


def test_rotation_error_is_continuous_from_zero_to_half_a_turn():
    """Check the continuity between the three formulas."""
    q, axis = np.full(7, 0.3), np.array([0.6, 0.0, 0.8])
    T, told = WAM.fk(q), []
    angles = np.linspace(0.0, np.pi, 5001)
    for angle in angles:
        T_d = T.copy()
        T_d[:3, :3] = rotation(axis, angle) @ T[:3, :3]
        told.append(observed(WAM, T_d, q)[1])
    np.testing.assert_allclose(told, angles, atol=1e-9)
