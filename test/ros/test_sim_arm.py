# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The simulated arm against closed forms, and the paths that it follows."""

import numpy as np
import pytest

from dls_ik.ros.sim_arm.arm import Dynamics, Path, SimulatedArm, VelocityCommand, standstill

START, GOAL = np.array([0.5, -1.0]), np.array([1.5, 2.0])
FREE = np.full(2, np.inf)
NONE = np.full(2, np.nan)


def arm(velocity=FREE, seed=0, **dynamics):
    return SimulatedArm(START, Dynamics(velocity, **dynamics), seed, 10.0)


def odd_times(begin, end, seed=3, mean=0.004):
    """Increasing times, the last of which is `end`."""
    steps = np.random.default_rng(seed).uniform(0.1 * mean, 1.9 * mean, int((end - begin) / mean))
    times = begin + np.cumsum(steps)
    return [*times[times < end].tolist(), end]


def motion(simulated, times):
    rows = []
    for t in times:
        simulated.advance(t)
        rows.append(simulated.q)
    return np.array(rows)


def ramp(begin, end):
    knots = np.array([START, GOAL])
    return Path(np.array([begin, end]), knots, np.array([NONE, NONE]))


@pytest.mark.parametrize(("delay", "lag"), [(0.0, 0.08), (0.0317, 0.08), (0.0, 1e-9)])
def test_step_response_is_first_order_after_the_delay(delay, lag):
    simulated = arm(delay=delay, time_constant=lag)
    simulated.advance(10.0)
    assert (simulated.q == START).all()
    simulated.command(standstill(GOAL, 10.0), 10.0)
    times = np.array(odd_times(10.0, 10.6))
    since = np.maximum(0.0, times - 10.0 - delay)
    expected = GOAL + (START - GOAL) * np.exp(-since / lag)[:, None]
    np.testing.assert_allclose(motion(simulated, times), expected, atol=1e-12)


def test_a_ramp_is_followed_one_time_constant_behind():
    simulated = arm(time_constant=0.05)
    simulated.command(ramp(10.0, 11.0), 10.0)
    times = np.array(odd_times(10.0, 11.0))
    since = (times - 10.0)[:, None]
    behind = 0.05 * (1.0 - np.exp(-since / 0.05))
    expected = START + (GOAL - START) * (since - behind)
    np.testing.assert_allclose(motion(simulated, times), expected, atol=1e-12)
    np.testing.assert_allclose(simulated.velocity, GOAL - START, rtol=1e-6)


def test_velocities_are_in_force_until_the_next_command():
    simulated, velocity = arm(), np.array([0.3, -0.2])
    simulated.command(standstill(START, 10.0), 10.0)
    simulated.command(VelocityCommand(velocity), 10.5)
    times = np.array(odd_times(10.0, 14.0))
    expected = START + np.maximum(0.0, times - 10.5)[:, None] * velocity
    np.testing.assert_allclose(motion(simulated, times), expected, atol=1e-12)
    simulated.command(VelocityCommand(0.0 * velocity), 14.0)
    np.testing.assert_allclose(motion(simulated, [14.5])[0], expected[-1], atol=1e-12)


def test_drives_saturate_at_their_velocity_limits():
    limits = np.array([2.0, 4.0])
    simulated = arm(velocity=limits)
    simulated.command(standstill(GOAL, 10.0), 10.0)
    times = np.array(odd_times(10.0, 11.0))
    expected = np.minimum(START + limits * (times - 10.0)[:, None], GOAL)
    np.testing.assert_allclose(motion(simulated, times), expected, atol=1e-12)


@pytest.mark.parametrize("time_constant", [0.0, 0.02])
def test_no_command_makes_a_joint_faster_than_its_limit(time_constant):
    limits = np.array([1.0, 3.0])
    simulated = arm(velocity=limits, delay=0.03, time_constant=time_constant)
    rng = np.random.default_rng(5)
    for t in odd_times(10.0, 12.0):
        if rng.random() < 0.1:
            simulated.command(standstill(rng.uniform(-3.0, 3.0, 2), t), t)
        simulated.advance(t)
        assert (np.abs(simulated.velocity) <= limits * (1.0 + 1e-9)).all()


def test_motion_does_not_depend_on_the_sampling_interval():
    def commanded():
        simulated = arm(delay=0.013, time_constant=0.03)
        simulated.command(ramp(10.0, 10.3), 10.0)
        simulated.command(standstill(START, 10.11), 10.11)
        return simulated

    often = motion(commanded(), odd_times(10.11, 10.4))
    once = motion(commanded(), [10.4])
    np.testing.assert_allclose(often[-1], once[-1], atol=1e-12)


def test_new_command_replaces_later_points_but_not_delayed_ones():
    simulated = arm(delay=0.1)
    simulated.command(ramp(10.0, 11.0), 10.0)
    simulated.advance(10.5)
    simulated.command(standstill(START, 10.5), 10.5)
    simulated.advance(10.55)
    np.testing.assert_allclose(simulated.q, START + 0.45 * (GOAL - START), atol=1e-12)
    simulated.advance(10.61)
    np.testing.assert_allclose(simulated.q, START, atol=1e-12)


def test_measurement_noise_is_white_with_the_given_deviation():
    count, noise = 20_000, 0.01
    first = [arm(noise=noise, seed=seed).measured().tolist() for seed in (1, 1, 2)]
    assert first[0] == first[1] != first[2]
    simulated = arm(noise=noise)
    errors = np.array([simulated.measured() for _ in range(count)]) - START
    assert (simulated.q == START).all()
    assert (np.abs(errors.mean(axis=0)) < 5.0 * noise / np.sqrt(count)).all()
    assert (np.abs(errors.std(axis=0) / noise - 1.0) < 5.0 / np.sqrt(2.0 * count)).all()
    x = errors / noise
    for product in (
        x[1:] * x[:-1],
        x[:, :1] * x[:, 1:],
    ):  # product with the previous sample, with the other joint
        assert (np.abs(product.mean(axis=0)) < 5.0 / np.sqrt(count)).all()
    assert abs((np.abs(x) < 1.0).mean() - 0.6827) < 0.01


# Paths through the points of a trajectory


def cubic(t):
    return np.array([t**3 - t**2 + 1.0, -2.0 * t**3 + t]), np.array(
        [3.0 * t**2 - 2.0 * t, 1.0 - 6.0 * t**2]
    )


def curve(*velocities):
    times = np.array([1.0, 2.0, 4.0])
    positions = np.array([[0.0, 0.0], [1.0, -1.0], [5.0, 2.0]])
    return Path(times, positions, np.array(velocities or [NONE] * 3))


def test_path_is_linear_between_knots_and_constant_outside():
    straight = curve()
    for t, q, velocity in (
        (0.0, [0.0, 0.0], [0.0, 0.0]),
        (1.25, [0.25, -0.25], [1.0, -1.0]),
        (2.0, [1.0, -1.0], [2.0, 1.5]),
        (3.0, [3.0, 0.5], [2.0, 1.5]),
        (9.0, [5.0, 2.0], [0.0, 0.0]),
    ):
        np.testing.assert_allclose(straight.at(t)[0], q)
        np.testing.assert_allclose(straight.at(t)[1], velocity)


def test_path_with_velocities_reproduces_a_cubic():
    times = np.array([0.3, 0.9, 2.0])
    values = [cubic(t) for t in times]
    through = Path(times, np.array([q for q, _ in values]), np.array([v for _, v in values]))
    for t in np.linspace(0.3, 1.999, 50):
        np.testing.assert_allclose(through.at(t)[0], cubic(t)[0], atol=1e-12)
        np.testing.assert_allclose(through.at(t)[1], cubic(t)[1], atol=1e-12)


def test_path_to_the_first_knot_starts_in_the_given_state():
    curved = curve([0.0, 0.0], [1.0, 1.0], [0.0, 0.0])
    state = np.array([-2.0, 3.0]), np.array([0.5, -0.5])
    joined = curved.from_here(0.5, *state)
    for found, expected in zip(joined.at(0.5), state, strict=True):
        np.testing.assert_allclose(found, expected)
    for t in (1.0, 1.5, 3.0):
        np.testing.assert_allclose(joined.at(t), curved.at(t))
    assert curved.from_here(1.0, *state) is curved
