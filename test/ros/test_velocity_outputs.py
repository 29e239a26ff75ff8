# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Velocities and accelerations of all outputs keep the limits: finite differences of messages."""

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from ros_world import DT, controlled

from dls_ik.errors import OptionError
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo.drive_velocity import DriveVelocity
from dls_ik.ros.servo.outputs import OUTPUT_CLASSES, OutputSpec
from dls_ik.ros.servo.target_buffer import Arrival

A, JERK = 8.0, 80.0  # [rad/s^2], [rad/s^3]
KINDS = [[], [JERK]]


def run(monkeypatch, kind, jerk, cycles=300, has_accelerations=False):
    """Follow random targets; return the world and the received messages of one output."""
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    is_trajectory = kind == "joint_trajectory"
    world = controlled(
        monkeypatch, has_stop_trajectory=is_trajectory, feedback_mode="none",
        acceleration=[A], jerk=jerk, rate=1.0 / DT,
    )  # fmt: skip
    output = OUTPUT_CLASSES[kind](OutputSpec(world.robot.joint_names, DT, has_accelerations))
    rng, messages, commands = np.random.default_rng(4), [], [world.arm.start]
    goal = world.robot.random(rng=rng)
    for _ in range(cycles):
        if rng.random() < 0.03:
            goal = world.robot.random(rng=rng)
        world.now += DT
        outcome = world.cycle(Arrival(world.target(goal), world.now, 1), 0)
        assert outcome.is_command
        knots = world.stream._arm.controller.trajectory(DT) if is_trajectory else None
        message = output.fill(outcome.output.q, outcome.output.velocity, 0, knots)
        messages.append(deserialize_message(serialize_message(message), type(message)))
        commands.append(outcome.output.q)
    return world, messages, np.array(commands)


def assert_limits(world, velocity, jerk):
    """Velocities (m, n) of cycles that follow each other, from rest on."""
    assert (np.abs(velocity) <= world.robot.velocity * (1 + 1e-9)).all()
    a = np.diff(velocity, axis=0, prepend=0.0 * velocity[:1]) / DT
    assert np.abs(a).max() <= A * (1 + 1e-6)
    assert np.abs(a).max() > 0.9 * A, "the arm used its limits"
    if jerk:
        assert np.abs(np.diff(a, axis=0)).max() / DT <= JERK * (1 + 1e-6)


@pytest.mark.parametrize("jerk", KINDS)
def test_velocity_array_leads_to_the_commanded_positions(monkeypatch, jerk):
    world, messages, commands = run(monkeypatch, "velocity_array", jerk)
    velocity = np.array([list(message.data) for message in messages])
    np.testing.assert_allclose(
        commands[0] + np.cumsum(velocity, axis=0) * DT, commands[1:], atol=1e-9
    )
    assert_limits(world, velocity, jerk)


@pytest.mark.parametrize("jerk", KINDS)
def test_velocities_of_joint_states_are_those_of_their_positions(monkeypatch, jerk):
    world, messages, commands = run(monkeypatch, "joint_state", jerk)
    q = np.array([list(message.position) for message in messages])
    velocity = np.array([list(message.velocity) for message in messages])
    np.testing.assert_allclose(q, commands[1:])
    np.testing.assert_allclose(np.diff(q, axis=0) / DT, velocity[1:], atol=1e-9)
    assert_limits(world, velocity, jerk)


def test_drive_velocity_corrects_drift_within_the_limits():
    drive, limits = DriveVelocity(DT), (np.array([1.0, 2.0]), np.array([A, A]))
    drift, sent = np.array([0.02, -3.0]), []
    for k in range(1000):
        velocity = np.array([0.9, 0.0]) if k < 100 else np.zeros(2)
        velocity = velocity * min(1.0, k * DT * A / 0.9)
        sent.append(drive.next(velocity, drift, limits))
        drift = drift - (sent[-1] - velocity) * DT
    sent = np.array(sent)
    assert np.abs(drift).max() < 1e-3
    assert (np.abs(sent) <= limits[0]).all()
    assert np.abs(np.diff(sent, axis=0)).max() / DT <= A * (1 + 1e-9)
    assert np.abs(sent[:, 1]).max() == pytest.approx(0.4), "a fifth of the limit"
    drive.next(np.array([0.0, 0.1]), None, limits)
    while drive.moves:
        last = drive.next(np.zeros(2), None, limits)
    assert not last.any()
    assert drive.next(np.zeros(3), None, (np.ones(3), np.ones(3))).shape == (3,), "another robot"


def quintic(before, after, T):
    """Return coefficients (6, n) between two states (3, n): position, velocity, acceleration."""
    (p, v, a), (P, V, W) = before, after
    e, f, g = P - p - v * T - 0.5 * a * T**2, V - v - a * T, W - a
    return np.array([
        p, v, 0.5 * a,
        10 * e / T**3 - 4 * f / T**2 + 0.5 * g / T,
        -15 * e / T**4 + 7 * f / T**3 - g / T**2,
        6 * e / T**5 - 3 * f / T**4 + 0.5 * g / T**3,
    ])  # fmt: skip


def states(c, t):
    """Return position, velocity and acceleration (3, k, n) of a quintic at times (k,)."""
    rows = np.array([t**i for i in range(6)])
    weights = np.arange(6)
    v = np.einsum("ik,in->kn", rows[:5], c[1:] * weights[1:, None])
    a = np.einsum("ik,in->kn", rows[:4], c[2:] * (weights[2:] * weights[1:-1])[:, None])
    return np.array([np.einsum("ik,in->kn", rows, c), v, a])


def test_quintics_through_points_with_accelerations_keep_the_limits(monkeypatch):
    world, messages, _ = run(monkeypatch, "joint_trajectory", [JERK], 200, True)
    state = np.array([world.arm.start, 0.0 * world.arm.start, 0.0 * world.arm.start])
    fastest = hardest = 0.0
    for message in messages:
        rows = [(p.positions, p.velocities, p.accelerations) for p in message.points]
        points = np.array([[list(each) for each in row] for row in rows])  # (k, 3, n)
        ends = np.array(
            [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in message.points]
        )
        np.testing.assert_allclose(points[-1, 1:], 0.0, atol=1e-9, err_msg="ends at rest")
        begin, before, following = 0.0, state, None
        for end, after in zip(ends, points, strict=True):
            c = quintic(before, after, end - begin)
            passed = states(c, np.linspace(0.0, end - begin, 9))
            fastest = max(fastest, (np.abs(passed[1]) / world.robot.velocity).max())
            hardest = max(hardest, np.abs(passed[2]).max() / A)
            if following is None and DT <= end + 1e-9:
                following = states(c, np.array([DT - begin]))[:, 0]
            begin, before = end, after
        state = following if following is not None else points[-1]
    assert fastest <= 1.01
    assert 0.9 < hardest <= 1.02


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "needs jerk limits"),
        ({"jerk": [50.0], "trajectory_points": 1}, "trajectory_points to 0 or above 1"),
    ],
)
def test_accelerations_that_would_be_wrong_are_refused(given, words):
    with pytest.raises(OptionError, match=words):
        Parameters().changed({"trajectory_accelerations": True, **given})
