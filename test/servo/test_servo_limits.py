"""No step passes a position limit or is faster than the velocity limits, whatever comes."""

import numpy as np
import pytest
from arms import random_arm
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernels import STEPPED, serves

from dls_ik import RobotModel
from dls_ik.servo import LocalIk

ROUNDING = 1e-12


def assert_step_allowed(robot: RobotModel, before: np.ndarray, after: np.ndarray, dt: float):
    assert np.isfinite(after).all()
    assert (np.abs(after - before) <= robot.velocity * dt * (1 + 1e-12) + ROUNDING).all()
    assert (after >= np.minimum(before, robot.lower)).all()
    assert (after <= np.maximum(before, robot.upper)).all()


@pytest.mark.parametrize("method", ["ctp+sd+svf", "auto", "jd", "jp", "jc+ed", "ctp", "sd"])
def test_wam_keeps_every_limit_on_the_way_to_any_pose(method):
    robot = RobotModel.wam()
    servo = LocalIk(robot, method)
    rng = np.random.default_rng(11)
    for T in robot.fk(robot.random(rng, 25)):
        servo.reset(robot.random(rng))
        dt = rng.uniform(0.001, 0.02)
        for _ in range(150):
            before = servo.q
            assert_step_allowed(robot, before, servo.step(T, dt).q, dt)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["revolute", "continuous", "prismatic", "mimic"]), max_size=7),
    st.integers(0, 2**32 - 1),
    st.floats(1e-4, 0.1),
    st.sampled_from(STEPPED),
)
def test_any_arm_keeps_its_limits(kinds, seed, dt, method):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    assume(serves(method, robot))
    servo = LocalIk(robot, method)
    T = robot.fk(robot.random(rng))
    T[:3, 3] *= rng.choice([1.0, 5.0])
    servo.reset(robot.random(rng) * rng.choice([1.0, 1.5]))
    for _ in range(30):
        before = servo.q
        assert_step_allowed(robot, before, servo.step(T, dt).q, dt)


@pytest.mark.parametrize("method", ["ctp+sd+svf", "auto", "jd"])
def test_start_outside_comes_back_at_the_velocity_limit(method):
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
