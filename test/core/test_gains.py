"""What every law makes of a direction that cannot move anything, and of more rows than joints."""

import numpy as np
import pytest
from structs import general, method

from dls_ik.core import damping

S = np.array([0.9, 0.4, 0.0, 0.0])
LAWS = {name: law for name, law in damping.IDS.items() if not name.startswith("svf")}


def gains(law, count, strength):
    g = np.full(len(S), np.nan)
    damping.gains(method(damping=law), general().params, S, count, strength, g)
    return g


@pytest.mark.parametrize("name", LAWS)
def test_no_gain_where_there_is_no_singular_value(name):
    g = gains(LAWS[name], 3, 0.01)
    np.testing.assert_array_equal(g[2:], 0.0)
    assert (g[:2] >= 0.0).all()


@pytest.mark.parametrize("name", damping.IDS)
def test_no_gain_for_rows_beyond_the_joints(name):
    np.testing.assert_array_equal(gains(damping.IDS[name], 2, 0.01)[2:], 0.0)
