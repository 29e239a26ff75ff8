"""A pose that moves with a twist, and waits for a tip that does not follow."""

import numpy as np
import pytest
from oracle import rigid, rotation

from dls_ik.core.se3 import difference
from dls_ik.servo.targets import TwistTarget

TIP = rigid(rotation([0.2, 0.5, -0.3], 1.0), [0.4, 0.1, 0.7])
WEIGHTS = np.array([1.0, 1.0, 1.0, 0.5, 0.5, 0.5])


def target(V, in_tool=False, lead=0.02, timeout=0.25):
    out = TwistTarget(timeout, lead, 0.5)
    out.take(np.array(V, float), in_tool, 0.0, 0.0)
    return out


def lead_of(T):
    return np.linalg.norm(WEIGHTS * difference(TIP, T))


@pytest.mark.parametrize("in_tool", [False, True])
def test_it_moves_on_by_the_twist(in_tool):
    V = np.array([0.1, 0.2, -0.1, 0.3, 0.1, -0.2])
    T = target(V, in_tool).pose(0.0, 0.01, lambda: TIP)
    R = TIP[:3, :3] if in_tool else np.eye(3)
    expected = 0.01 * np.concatenate([R @ V[:3], R @ V[3:]])
    np.testing.assert_allclose(difference(TIP, T), expected, atol=1e-14)


def test_cycles_add_up():
    one, T = target([0.1, 0.0, 0.0, 0.0, 0.0, 0.2]), TIP
    for k in range(100):
        T = one.pose(k * 0.01, 0.01, lambda T=T: T)
    np.testing.assert_allclose(difference(TIP, T), [0.1, 0, 0, 0, 0, 0.2], atol=1e-12)


@pytest.mark.parametrize("lead", [1e-6, 0.02, 0.1])
@pytest.mark.parametrize(
    "V", [[1, 0, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0], [1e9] * 6, [0, 0, 0, 0, 0, 450]]
)
def test_a_blocked_tip_is_led_by_no_more_than_the_lead_and_in_the_direction_of_the_twist(V, lead):
    one = target(V, lead=lead)
    for k in range(50):
        T = one.pose(k * 0.01, 0.01, lambda: TIP)
    way = np.array(V, float) * 0.01
    way *= min(1.0, 1.0 / np.abs(way).max())
    behind = np.linalg.norm(WEIGHTS * way) * 49
    expected = min(lead, behind) + np.linalg.norm(WEIGHTS * way)
    assert lead_of(T) == pytest.approx(expected, rel=1e-6)
    ahead = difference(TIP, T)
    assert ahead @ V / np.linalg.norm(ahead) / np.linalg.norm(V) == pytest.approx(1.0)


def test_a_tip_that_is_behind_makes_up_for_it_slowly():
    """K_p = 10 [1/s], so that a lead of 5 mm adds 50 mm/s to the twist."""
    one, T = target([0.4, 0, 0, 0, 0, 0], lead=0.005), TIP
    for k in range(50):
        at = T
        led = one.pose(k * 0.01, 0.01, lambda at=at: at)
        T = at + 0.5 * (led - at)
    assert np.linalg.norm(difference(at, led)) == pytest.approx(0.0045, rel=1e-3)


def test_it_stands_never_and_is_stale_after_the_timeout():
    one = target([0.0] * 6)
    assert not one.stands(100.0)
    assert not one.is_stale(0.25)
    assert one.is_stale(0.2501)
    one.take(np.zeros(6), True, 1.0, 1.0)
    assert not one.is_stale(1.2)
