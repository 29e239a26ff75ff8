# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Local motion: reaches the target or the closest configuration, within limits."""

import numpy as np
import pytest
from arms import random_arm
from drive import BENT, DT, WAM, reversals
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernels import FOLLOWING, serves
from oracle import rigid

from dls_ik import RobotModel
from dls_ik.errors import JointValueError, MethodError, OptionError, PoseError
from dls_ik.servo import LocalIk

FAR = [rigid(np.eye(3), [0.0, value, 0.0]) for value in (np.nan, np.inf, 1e300)]
INVALID = [
    *((PoseError, "finite", lambda servo, T=T: servo.step(T, DT)) for T in FAR),
    *(
        (PoseError, None, lambda servo, T=T: servo.step(T, DT))
        for T in (np.eye(3), np.zeros((4, 4)), np.diag([1.0, 1.0, -1.0, 1.0]), "pose")
    ),
    *(
        (OptionError, "dt", lambda servo, dt=dt: servo.step(np.eye(4), dt))
        for dt in (0.0, -0.01, np.nan, np.inf, None, "x")
    ),
    *(
        (JointValueError, None, lambda servo, q=q: servo.reset(q))
        for q in ([0.0] * 6, [np.nan] * 7, np.zeros((2, 7)), "start")
    ),
    (MethodError, r"ctp\+sd\+svf", lambda _: LocalIk(WAM, "magic")),
    (OptionError, "gamma_max", lambda _: LocalIk(WAM, gamma=1.0)),
]


def test_invalid_input_raises_and_moves_nothing():
    servo = LocalIk(WAM)
    before = servo.q
    for error, words, use in INVALID:
        with pytest.raises(error, match=words):
            use(servo)
        np.testing.assert_array_equal(servo.q, before)


def test_no_target_means_no_motion_and_values_are_copies():
    servo = LocalIk(WAM)
    start = servo.q
    assert WAM.within_limits(start)
    servo.q[:] = 9.0
    out = servo.step(None, 0.01)
    np.testing.assert_array_equal(out.q, start)
    assert np.isnan(out.position_error)
    out.q[:] = 9.0
    np.testing.assert_array_equal(servo.q, start)
    mine = np.full(WAM.n, 0.1)
    servo.reset(mine)
    mine[:] = 9.0
    np.testing.assert_array_equal(servo.q, np.full(WAM.n, 0.1))


ROUNDING = 1e-12


def assert_step_allowed(robot: RobotModel, before: np.ndarray, after: np.ndarray, dt: float):
    assert np.isfinite(after).all()
    assert (np.abs(after - before) <= robot.velocity * dt * (1 + 1e-12) + ROUNDING).all()
    assert (after >= np.minimum(before, robot.lower)).all()
    assert (after <= np.maximum(before, robot.upper)).all()


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["revolute", "continuous", "prismatic", "mimic"]), max_size=7),
    st.integers(0, 2**32 - 1),
    st.floats(1e-4, 0.1),
    st.sampled_from(FOLLOWING),
)
def test_any_arm_keeps_limits(kinds, seed, dt, method):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    assume(serves(method, robot))
    servo = LocalIk(robot, method)
    T = robot.fk(robot.random(rng=rng))
    T[:3, 3] *= rng.choice([1.0, 5.0])
    servo.reset(robot.random(rng=rng) * rng.choice([1.0, 1.5]))
    for _ in range(30):
        before = servo.q
        assert_step_allowed(robot, before, servo.step(T, dt).q, dt)


@pytest.mark.parametrize("method", ["ctp+sd+svf", "auto", "jd"])
def test_start_outside_limits_returns_at_velocity_limit(method):
    robot = RobotModel.wam()
    servo = LocalIk(robot, method)
    outside = np.array([0.0, -2.0, 0.0, 3.13, 0.0, 1.9, 0.0])
    servo.reset(outside)
    T = robot.fk(robot.clip(outside))
    dt, steps = 0.01, 0
    while not robot.within_limits(servo.q):
        before = servo.q
        q = servo.step(T, dt).q
        assert_step_allowed(robot, before, q, dt)
        steps += 1
        assert steps <= 16, "0.3 rad at 2 rad/s take 15 cycles of 10 ms"
    assert steps == 15


def run(servo, T, cycles, dt=DT):
    """Return the commands of a number of cycles toward one target, and the last output."""
    outputs = [servo.step(T, dt) for _ in range(cycles)]
    return np.array([out.q for out in outputs]), outputs[-1]


def servo_at(q, *method, **options):
    servo = LocalIk(WAM, *method, **options)
    servo.reset(q)
    return servo


def near_target(q, rng):
    return WAM.fk(WAM.clip(q + rng.uniform(-0.3, 0.3, WAM.n)))


@pytest.mark.parametrize("method", ["ctp+sd+svf", "auto", "svf", "ed", "jc+jd"])
def test_nearby_static_target_is_reached_and_held(method):
    rng = np.random.default_rng(21)
    for _ in range(10):
        servo = servo_at(BENT, method)
        commands, out = run(servo, near_target(BENT, rng), 200)
        assert out.position_error <= 1e-6
        assert out.rotation_error <= 1e-6
        assert np.ptp(commands[-50:], axis=0).max() == 0.0


@pytest.mark.parametrize("method", ["ctp+sd+svf", "auto"])
def test_error_never_rises_toward_a_static_target(method):
    rng = np.random.default_rng(23)
    for T in WAM.fk(WAM.random(20, rng)):
        servo = servo_at(WAM.random(rng=rng), method)
        outputs = [servo.step(T, DT) for _ in range(200)]
        error = np.array([np.hypot(o.position_error, 0.5 * o.rotation_error) for o in outputs])
        assert (np.diff(error) <= 1e-12).all()


def test_unreachable_target_causes_no_oscillation():
    rng = np.random.default_rng(25)
    counts = []
    for T in WAM.fk(WAM.random(15, rng)):
        T[:3, 3] *= 1.6 / np.linalg.norm(T[:3, 3])
        counts.append(reversals(run(servo_at(WAM.random(rng=rng)), T, 600)[0]))
    assert np.median(counts) <= 5
    assert max(counts) <= 30, "without damping, the worst reverse in every cycle"


def test_limit_activation_of_a_joint_held_at_its_limit_is_near_one():
    q = BENT.copy()
    q[0] = 2.55
    T = WAM.fk(q)
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    T[:3, :3], T[:3, 3] = turn @ T[:3, :3], turn @ T[:3, 3]  # a quarter turn past the limit
    servo = servo_at(q)
    assert max(servo.step(T, DT).limit_activation[0] for _ in range(500)) > 0.99


def test_rotation_by_half_a_turn_is_reached():
    servo = servo_at(BENT * [1, 1, 1, 1, 1, 1, 0] + [0, 0, 0, 0, 0, 0, -np.pi / 2])
    T = WAM.fk(servo.q)
    T[:3, :3] = T[:3, :3] @ np.diag([-1.0, -1.0, 1.0])
    assert run(servo, T, 400)[1].rotation_error <= 1e-6


def test_rejected_steps_do_not_keep_the_arm_at_rest():
    """Four joints are near a limit, so that the steps of the method do not lower the error.

    The steps of the fallback method have other directions; they must not count as oscillation.
    """
    q = [-2.6, 0.09, -1.03, 2.3, 1.26, 1.6, -2.2]
    T = WAM.fk([2.01, 1.2, 1.78, 2.29, -2.14, -0.14, 1.06])
    errors = {}
    for method in ("ctp+sd+svf", "auto"):
        _, step = run(servo_at(q, method), T, 100)
        errors[method] = np.hypot(step.position_error, 0.5 * step.rotation_error)
    assert errors["ctp+sd+svf"] <= 1.001 * errors["auto"]
