"""Poses moved by a twist and the difference that brings them back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import rigid, rotation

from dls_ik.core.se3 import difference, moved

quick = settings(deadline=None, max_examples=200)
NUMBERS = st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3)
ANGLES = st.one_of(st.floats(0.0, np.pi - 1e-6), st.sampled_from([0.0, 1e-300, 1e-9, 1e-8, 1e-4]))


def turn(axis, angle):
    return rotation(axis, angle) if angle > 0.0 and np.linalg.norm(axis) > 0.0 else np.eye(3)


def pose(vector, p):
    return rigid(turn(vector, np.linalg.norm(vector) * 3.0), p)


@quick
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS.filter(lambda a: np.linalg.norm(a) > 1e-3), ANGLES)
def test_moved_turns_about_the_tip_by_the_vector(vector, p, way, axis, angle):
    T = pose(vector, p)
    axis = np.array(axis) / np.linalg.norm(axis)
    out = moved(T, np.concatenate([way, angle * axis]))
    expected = rigid(turn(axis, angle) @ T[:3, :3], T[:3, 3] + way)
    np.testing.assert_allclose(out, expected, atol=1e-14)


@quick
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS.filter(lambda a: np.linalg.norm(a) > 1e-3), ANGLES)
def test_difference_takes_it_back(vector, p, way, axis, angle):
    T = pose(vector, p)
    V = np.concatenate([way, angle * np.array(axis) / np.linalg.norm(axis)])
    np.testing.assert_allclose(difference(T, moved(T, V)), V, atol=1e-9)


@quick
@given(NUMBERS, NUMBERS, NUMBERS, NUMBERS)
def test_moved_by_the_difference_is_there(a, p_a, b, p_b):
    T_a, T_b = pose(a, p_a), pose(b, p_b)
    np.testing.assert_allclose(moved(T_a, difference(T_a, T_b)), T_b, atol=1e-9)


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


def test_half_a_turn_is_one_either_way():
    V = difference(np.eye(4), np.diag([-1.0, -1.0, 1.0, 1.0]))
    assert np.abs(V) == pytest.approx([0.0, 0.0, 0.0, 0.0, 0.0, np.pi])
