# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the damping of oscillating steps toward a target."""

import numpy as np
import pytest

from dls_ik.core.follow import keep_from_swinging
from dls_ik.core.jit import kernel


@kernel
def shortened(dq, motion):
    """Call the function from a separate kernel."""
    keep_from_swinging(dq, motion)


def shares(steps):
    """Return the share kept of each step of a joint, next to a joint that never reverses."""
    motion, left = np.array([0.0, 0.0, 1.0, 1.0]), []
    for step in steps:
        dq = np.array([step, 0.2])
        shortened(dq, motion)
        left.append(dq[0] / step)
        assert dq[1] == 0.2
    return left


def test_oscillating_steps_are_halved_down_to_a_thousandth():
    expected = [max(0.5**k, 1e-3) for k in range(15)]
    assert shares([0.1 * (-1) ** k for k in range(15)]) == pytest.approx(expected)


def test_steps_grow_to_full_size_after_the_oscillation():
    expected = [1.0, 0.5, 0.25, *(min(0.25 * 1.3**k, 1.0) for k in range(1, 9))]
    assert shares([0.1, -0.1, 0.1, *[0.1] * 8]) == pytest.approx(expected)


def test_oscillation_within_rounding_is_ignored():
    assert shares([1e-8 * (-1) ** k for k in range(5)]) == [1.0] * 5
