"""CTP one way: a joint in its margin is held as far as the error pushes it outward, no farther."""

import numpy as np
import pytest
from structs import method, random_chain

from dls_ik.core.limits import FULL_PUSH, activation, ctp_activate

N, MARGIN = 4, 0.2
CHAIN = random_chain(np.random.default_rng(1), (4,), N)
DEEP = 0.5 * MARGIN * (CHAIN.upper - CHAIN.lower)  # half way into the margin
PLACES = {"lower": CHAIN.lower + DEEP, "upper": CHAIN.upper - DEEP}


def held(q, J, e):
    """Share (n,) of what holds every joint that comes of the error."""
    h, z = np.full(N, np.nan), np.zeros(N)
    ctp_activate(method(following=True, margin=MARGIN, mu=1.0), CHAIN, q, J, e, h, z)
    whole = [activation(*joint, MARGIN) for joint in zip(q, CHAIN.lower, CHAIN.upper, strict=True)]
    assert not z.any(), "no joint is pushed back"
    return h / whole


def pushes(cosine):
    """A Jacobian (6, n) and an error (6,), as much along every column as said."""
    J = np.zeros((6, N))
    J[0], J[3] = 2.0 * cosine, 2.0 * np.sqrt(1.0 - cosine**2)
    return J, np.array([0.7, 0.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize("place", PLACES)
def test_no_joint_is_held_at_the_target(place):
    J, e = pushes(0.5)
    np.testing.assert_array_equal(held(PLACES[place], J, 0.0 * e), 0.0)


@pytest.mark.parametrize("place", PLACES)
def test_a_joint_that_moves_nothing_is_not_held(place):
    J, e = pushes(0.5)
    np.testing.assert_array_equal(held(PLACES[place], 0.0 * J, e), 0.0)


@pytest.mark.parametrize(
    ("outward", "share"), [(0.0, 0.0), (0.5, 0.5), (0.9, 0.9), (1.0, 1.0), (8.0, 1.0), (-0.5, 0.0)]
)
@pytest.mark.parametrize("place", PLACES)
def test_as_far_as_it_is_pushed(place, outward, share):
    cosine = outward * FULL_PUSH * (1.0 if place == "upper" else -1.0)
    np.testing.assert_allclose(held(PLACES[place], *pushes(cosine)), share, atol=1e-12)
