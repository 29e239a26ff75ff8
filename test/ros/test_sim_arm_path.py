"""Paths through the points of a trajectory."""

import numpy as np

from dls_ik.ros.sim_arm.arm import Path

NONE = [np.nan, np.nan]


def cubic(t):
    return np.array([t**3 - t**2 + 1.0, -2.0 * t**3 + t]), np.array(
        [3.0 * t**2 - 2.0 * t, 1.0 - 6.0 * t**2]
    )


def path(*velocities):
    times = np.array([1.0, 2.0, 4.0])
    positions = np.array([[0.0, 0.0], [1.0, -1.0], [5.0, 2.0]])
    return Path(times, positions, np.array(velocities or [NONE] * 3))


def test_straight_between_knots_and_still_outside():
    straight = path()
    for t, q, velocity in (
        (0.0, [0.0, 0.0], [0.0, 0.0]),
        (1.25, [0.25, -0.25], [1.0, -1.0]),
        (2.0, [1.0, -1.0], [2.0, 1.5]),
        (3.0, [3.0, 0.5], [2.0, 1.5]),
        (9.0, [5.0, 2.0], [0.0, 0.0]),
    ):
        np.testing.assert_allclose(straight.at(t)[0], q)
        np.testing.assert_allclose(straight.at(t)[1], velocity)


def test_a_cubic_is_met_exactly():
    times = np.array([0.3, 0.9, 2.0])
    values = [cubic(t) for t in times]
    through = Path(times, np.array([q for q, _ in values]), np.array([v for _, v in values]))
    for t in np.linspace(0.3, 1.999, 50):
        np.testing.assert_allclose(through.at(t)[0], cubic(t)[0], atol=1e-12)
        np.testing.assert_allclose(through.at(t)[1], cubic(t)[1], atol=1e-12)


def test_a_segment_with_one_velocity_missing_is_straight():
    mixed = path([0.0, 0.0], [3.0, 3.0], NONE)
    assert mixed.at(1.001)[1].max() < 0.1
    np.testing.assert_allclose(mixed.at(3.0)[0], [3.0, 0.5])


def test_the_way_to_the_first_knot_begins_in_the_state_there():
    curved = path([0.0, 0.0], [1.0, 1.0], [0.0, 0.0])
    state = np.array([-2.0, 3.0]), np.array([0.5, -0.5])
    joined = curved.from_here(0.5, *state)
    for found, expected in zip(joined.at(0.5), state, strict=True):
        np.testing.assert_allclose(found, expected)
    for t in (1.0, 1.5, 3.0):
        np.testing.assert_allclose(joined.at(t), curved.at(t))
    assert curved.from_here(1.0, *state) is curved


def test_velocities_are_those_of_the_positions():
    curved = path([0.0, 0.0], [1.0, 1.0], [0.0, 0.0])
    h = 1e-6
    for t in (1.1, 1.7, 2.5, 3.9):
        slope = (curved.at(t + h)[0] - curved.at(t - h)[0]) / (2.0 * h)
        np.testing.assert_allclose(curved.at(t)[1], slope, atol=1e-6)
