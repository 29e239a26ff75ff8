# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Goal positions of servos: rounding, offset, direction, joint limits, refusals."""

import numpy as np
import pytest

from dls_ik.errors import OptionError
from dls_ik.reproduce.matos import TICK_ANGLES, angles, ticks
from dls_ik.servo.ticks import MAX_TICK, tick_scale

NAMES = ("a", "b", "c")
TURN = 2.0 * np.pi / 4096
FREE = (np.full(3, -np.inf), np.full(3, np.inf))


def test_goal_positions_have_offset_direction_and_resolution():
    scale = tick_scale(NAMES, FREE, (TURN, TURN, 0.001), (2048, 2048, 0), (1, -1, 1))
    q = np.array([np.pi / 2, np.pi / 2, 0.0306])
    assert scale.ticks(q).tolist() == [3072, 1024, 31]
    np.testing.assert_allclose(scale.positions(scale.ticks(q)), [q[0], q[1], 0.031])
    assert scale.ticks(np.array([q, -q])).shape == (2, 3)


def test_matos_example_of_50_degrees_is_568_ticks():
    assert ticks(np.full(5, np.radians(50.0))).tolist() == [568, 568, 568, 172, 172]
    scale = tick_scale(("j1",), (FREE[0][:1], FREE[1][:1]), (np.radians(TICK_ANGLES[0]),))
    assert scale.ticks(np.radians([50.0])) == [568]
    np.testing.assert_allclose(np.degrees(angles(np.array([568] * 5)))[0], 568 * 0.088)


@pytest.mark.parametrize("seed", range(20))
def test_goal_positions_are_the_closest_within_the_limits(seed):
    rng = np.random.default_rng(seed)
    resolution = 10.0 ** rng.uniform(-4, -1, 3)
    lower = rng.uniform(-3.0, 0.0, 3)
    upper = lower + rng.uniform(3.0, 50.0, 3) * resolution
    direction = rng.choice([-1.0, 1.0], 3)
    scale = tick_scale(NAMES, (lower, upper), resolution, rng.uniform(-5000, 5000, 3), direction)
    q = rng.uniform(lower - 1.0, upper + 1.0, (200, 3))
    q[0], q[1] = lower, upper
    sent = scale.positions(scale.ticks(q))
    slack = 2e-9 * resolution
    assert (sent >= np.minimum(lower, q) - slack).all()
    assert (sent <= np.maximum(upper, q) + slack).all()
    assert (np.abs(sent - q) < resolution + slack).all(), "no jump of an arm beyond its limits"
    inside = (q >= lower + 0.5 * resolution) & (q <= upper - 0.5 * resolution)
    assert (np.abs(sent - q) <= (0.5 + 1e-9) * resolution)[inside].all()
    assert (np.abs(sent[0] - lower) < resolution + slack).all()
    assert (np.abs(sent[1] - upper) < resolution + slack).all()


def test_limit_on_a_tick_is_reached():
    scale = tick_scale(("a",), (np.array([-np.pi]), np.array([np.pi])), (TURN,), (2048,))
    assert (scale.lowest.tolist(), scale.highest.tolist()) == ([0], [4096])
    assert scale.ticks(np.array([[-np.pi], [np.pi]])).ravel().tolist() == [0, 4096]


def test_joint_without_limits_stays_in_the_range_of_the_message():
    scale = tick_scale(("a",), (FREE[0][:1], FREE[1][:1]), (1e-6,))
    assert scale.ticks(np.array([1e6])) == [MAX_TICK]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"resolution": ()}, "servo_resolution has 0 numbers for 3 joints"),
        ({"resolution": (0.1, 0.1)}, "servo_resolution has 2 numbers for 3 joints .a, b, c"),
        ({"resolution": (0.0,)}, "servo_resolution must be positive.*got 0, 0, 0"),
        ({"direction": (1.0, -1.0, 0.5)}, "servo_direction must contain 1 and -1 only; got .*0.5"),
        ({"offset": (1.0, 2.0)}, "servo_offset has 2 numbers"),
        ({"limits": (np.full(3, 0.02), np.full(3, 0.08))}, "no goal position .* limits of a"),
        ({"resolution": (1e-10,), "limits": (-np.ones(3), np.ones(3))}, "of a reach 1e.10, beyond"),
    ],
)
def test_conversions_that_are_not_possible_are_refused(changes, words):
    given = {"limits": FREE, "resolution": (0.1,), **changes}
    with pytest.raises(OptionError, match=words):
        tick_scale(NAMES, **given)
