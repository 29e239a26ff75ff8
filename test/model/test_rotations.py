# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversions of rotations: round trips, and comparison with explicit products."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dls_ik.errors import PoseError
from dls_ik.model.rotations import (
    quaternion_from_rotation,
    rotation_from_quaternion,
    rpy_from_rotation,
)

ANGLES = st.floats(-math.pi, math.pi) | st.sampled_from([0.0, math.pi, math.pi / 2, -math.pi / 2])


def rotation_product(roll, pitch, yaw):
    """Return Rz Ry Rx from its entries."""
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


@given(ANGLES, ANGLES, ANGLES)
def test_roll_pitch_yaw_round_trip(roll, pitch, yaw):
    R = rotation_product(roll, pitch, yaw)
    angles = rpy_from_rotation(R)
    np.testing.assert_allclose(rotation_product(*angles), R, atol=1e-12)
    assert abs(angles[1]) <= math.pi / 2 + 1e-12


@given(st.floats(-math.pi, math.pi), st.floats(-1e-6, 1e-6), st.sampled_from([1.0, -1.0]))
def test_roll_pitch_yaw_round_trip_close_to_the_singularity(yaw, off, side):
    R = rotation_product(0.3, side * math.pi / 2 + off, yaw)
    np.testing.assert_allclose(rotation_product(*rpy_from_rotation(R)), R, atol=1e-12)


@given(st.tuples(*4 * [st.floats(-2.0, 2.0)]).filter(lambda q: np.linalg.norm(q) > 1e-3))
def test_quaternions_round_trip(q):
    unit = np.array(q) / np.linalg.norm(q)
    back = np.array(quaternion_from_rotation(rotation_from_quaternion(q)))
    assert abs(unit @ back) == pytest.approx(1.0, abs=1e-12)
    assert back[3] >= 0.0


@pytest.mark.parametrize("q", [(0, 0, 0, 0), (math.nan, 0, 0, 1), (math.inf, 0, 0, 1)])
def test_zero_quaternions_are_refused(q):
    with pytest.raises(PoseError, match="cannot be normalised"):
        rotation_from_quaternion(q)
