# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of rotation vectors, pose errors and motion of poses, for angles from 0 to pi."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import pose_error, rotation_vector
from oracle import rigid, rotation
from oracle_ik import pose_error as slow_pose_error

from dls_ik.core.jit import kernel
from dls_ik.core.se3 import difference, is_pose, moved, twist

quick = settings(max_examples=100)
AXES = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda a: np.linalg.norm(a) > 1e-3)
NICE_AXES = [(1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 1, 0), (-1, 0, 1), (0, 1, -1), (1, 1, 1),
             (-1, 2, -3), (1, 1e-9, 0), (1e-5, 1, -1e-5)]  # fmt: skip
ANGLES = [0.0, 1e-12, 1e-9, 1e-6, 1e-3, 1.0, np.pi / 2, 2.0, 2 * np.pi / 3, 3.0, np.pi - 1e-3,
          np.pi - 1e-6, np.pi - 1e-9]  # fmt: skip


def unit(axis):
    return np.array(axis, float) / np.linalg.norm(axis)


def turned_by(vector):
    return rotation(vector, np.linalg.norm(vector)) if vector.any() else np.eye(3)


@pytest.mark.parametrize("axis", NICE_AXES)
def test_rotation_vector_has_the_given_axis_and_angle(axis):
    for angle in ANGLES:
        vector = rotation_vector(rotation(axis, angle))
        np.testing.assert_allclose(vector, angle * unit(axis), rtol=0.0, atol=2e-15)


@quick
@given(AXES, st.floats(0.0, np.pi - 1e-8))
def test_rotation_vector_of_random_rotations_is_accurate(axis, angle):
    vector = rotation_vector(rotation(axis, angle))
    np.testing.assert_allclose(vector, angle * unit(axis), rtol=0.0, atol=4e-15)


@quick
@given(AXES, st.floats(-1e-8, 1e-8))
def test_rotation_vector_near_half_a_turn_is_correct_up_to_sign(axis, beyond):
    R = rotation(axis, np.pi + beyond)
    vector = rotation_vector(R)
    assert np.linalg.norm(vector) == pytest.approx(np.pi - abs(beyond), abs=1e-14)
    assert abs(vector @ unit(axis)) == pytest.approx(np.pi, abs=2e-8)
    np.testing.assert_allclose(turned_by(vector), R, atol=1e-14)


@pytest.mark.parametrize("axis", NICE_AXES)
def test_rotation_vector_of_half_a_turn_has_length_pi(axis):
    R = 2.0 * np.outer(unit(axis), unit(axis)) - np.eye(3)
    vector = rotation_vector(R)
    np.testing.assert_allclose(np.linalg.norm(vector), np.pi, rtol=1e-15)
    np.testing.assert_allclose(np.abs(vector @ unit(axis)), np.pi, rtol=1e-15)


@pytest.mark.parametrize("angle", [*ANGLES, np.pi])
def test_pose_error_matches_the_applied_motion(angle):
    rng = np.random.default_rng(2)
    for _ in range(5):
        T = rigid(rotation(rng.normal(size=3), rng.uniform(0.0, np.pi)), rng.normal(size=3))
        turn = rotation(rng.normal(size=3), angle)
        T_d = rigid(turn @ T[:3, :3], rng.normal(size=3))
        e = pose_error(T_d, T)
        np.testing.assert_allclose(e[:3], T_d[:3, 3] - T[:3, 3], rtol=0.0, atol=0.0)
        np.testing.assert_allclose(turned_by(e[3:]), turn, atol=3e-15)
        assert np.linalg.norm(e[3:]) == pytest.approx(angle, abs=1e-14)
        expected = slow_pose_error(T_d, T)
        off_sign = 1.0 if e[3:] @ expected[3:] >= 0.0 or angle < 3.0 else -1.0
        np.testing.assert_allclose(e[3:], off_sign * expected[3:], atol=1e-7)


def test_pose_error_is_zero_at_the_target_and_accepts_3x4_poses():
    T = rigid(rotation([1, 2, 3], 2.5), [1.0, -2.0, 3.0])
    np.testing.assert_allclose(pose_error(T, T), 0.0, atol=1e-15)
    T_d = rigid(rotation([-1, 2, 1], 0.5), [0.0, 0.5, 0.0])
    short = np.ascontiguousarray(T[:3])
    np.testing.assert_array_equal(pose_error(T_d, T), pose_error(T_d, short))


def bent(i, j, value):
    T = rigid(rotation([1, 2, 3], 1.0), [1.0, 2.0, 3.0])
    T[i, j] = value
    return T


@pytest.mark.parametrize(
    "T",
    [
        rigid(1.001 * np.eye(3), np.zeros(3)),
        rigid(np.diag([1.0, 1.0, -1.0]), np.zeros(3)),
        rigid(np.eye(3) + np.eye(3, k=1) * 1e-6, np.zeros(3)),
        rigid(np.zeros((3, 3)), np.zeros(3)),
        *(bent(i, j, value) for i in range(4) for j in range(4) for value in (np.nan, np.inf)),
        bent(3, 3, 2.0),
        bent(3, 0, 1.0),
    ],
)
def test_is_pose_rejects_invalid_transforms(T):
    assert not is_pose(T, 1e-9)
    assert is_pose(np.eye(4), 1e-9)
    assert is_pose(rigid(np.diag([-1.0, -1.0, 1.0]), [9.0, 0, 0]), 1e-9)


moderate = settings(max_examples=100)
NUMBERS = st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3)
TURNS = st.one_of(st.floats(0.0, np.pi - 1e-6), st.sampled_from([0.0, 1e-300, 1e-9, 1e-8, 1e-4]))


def turn(axis, angle):
    return rotation(axis, angle) if angle > 0.0 and np.linalg.norm(axis) > 0.0 else np.eye(3)


def pose(vector, p):
    return rigid(turn(vector, np.linalg.norm(vector) * 3.0), p)


@moderate
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS.filter(lambda a: np.linalg.norm(a) > 1e-3), TURNS)
def test_moved_translates_and_rotates_about_the_tip(vector, p, way, axis, angle):
    T = pose(vector, p)
    axis = np.array(axis) / np.linalg.norm(axis)
    out = moved(T, np.concatenate([way, angle * axis]))
    expected = rigid(turn(axis, angle) @ T[:3, :3], T[:3, 3] + way)
    np.testing.assert_allclose(out, expected, atol=1e-14)


@moderate
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS.filter(lambda a: np.linalg.norm(a) > 1e-3), TURNS)
def test_difference_is_the_inverse_of_moved(vector, p, way, axis, angle):
    T = pose(vector, p)
    V = np.concatenate([way, angle * np.array(axis) / np.linalg.norm(axis)])
    np.testing.assert_allclose(difference(T, moved(T, V)), V, atol=1e-9)


def test_the_pose_given_is_left_as_it_is():
    T = pose([0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
    before = T.copy()
    moved(T, np.ones(6))
    difference(T, np.eye(4))
    np.testing.assert_array_equal(T, before)


@pytest.mark.parametrize("angle", [np.pi, 2 * np.pi, 1e3, 1e9])
def test_moved_by_turns_is_still_a_rotation(angle):
    out = moved(np.eye(4), np.array([0.0, 0.0, 0.0, 0.6 * angle, 0.0, 0.8 * angle]))
    np.testing.assert_allclose(out[:3, :3] @ out[:3, :3].T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(out[:3, :3], rotation([0.6, 0.0, 0.8], angle), atol=1e-6)


def test_difference_of_half_a_turn_has_length_pi():
    V = difference(np.eye(4), np.diag([-1.0, -1.0, 1.0, 1.0]))
    assert np.abs(V) == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.0, np.pi])


@kernel
def twist_of(E, axis):
    """Call the inlined function from a separate kernel."""
    return twist(E, axis)


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("about", [(0.8, 0.0, -0.6), (0.6, -0.8, 0.0), (0.0, 0.6, 0.8)])
def test_twist_of_half_a_turn_is_pi_or_zero_if_perpendicular(axis, about):
    E = 2.0 * np.outer(about, about) - np.eye(3)
    assert twist_of(E, axis) == (np.pi if about[axis] else 0.0)
