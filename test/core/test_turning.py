"""The twist of a rotation at exactly half a turn, where its sign is a convention."""

import numpy as np
import pytest

from dls_ik.core.jit import kernel
from dls_ik.core.se3 import twist


@kernel
def twist_of(E, axis):
    """A kernel of its own, as it is a part of others."""
    return twist(E, axis)


@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("about", [(0.8, 0.0, -0.6), (0.6, -0.8, 0.0), (0.0, 0.6, 0.8)])
def test_half_a_turn_is_positive_and_nothing_about_an_axis_across(axis, about):
    E = 2.0 * np.outer(about, about) - np.eye(3)
    assert twist_of(E, axis) == (np.pi if about[axis] else 0.0)
