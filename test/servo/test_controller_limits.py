"""No limit is passed by any arm, with any method, whatever targets come and whenever."""

import numpy as np
import pytest
from arms import random_arm
from drive import Drive
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernels import STEPPED, serves

from dls_ik.servo import ServoState

pytestmark = pytest.mark.slow

KINDS = st.lists(st.sampled_from(["revolute", "continuous", "prismatic", "mimic"]), max_size=7)
SEEDS = st.integers(0, 2**32 - 1)


def any_target(rng, drive):
    """One of all that there is, reachable or not, or none for a while."""
    robot, kind = drive.controller.robot, rng.integers(7)
    T = robot.fk(robot.random(rng))
    if kind == 0:
        drive.pose(T)
    elif kind == 1:
        T[:3, 3] *= 10.0 ** rng.uniform(0, 8)
        drive.pose(T)
    elif kind == 2:
        drive.twist(rng.normal(size=6) * 10.0 ** rng.uniform(-3, 8))
    elif kind == 3:
        drive.twist(rng.normal(size=6), R=T[:3, :3])
    elif kind == 4:
        Ts = robot.fk(robot.random(rng, int(rng.integers(1, 4))))
        drive.trajectory(Ts, 10.0 ** rng.uniform(-3, 0))
    elif kind == 5:
        drive.controller.refuse("for no reason")


def run_wildly(rng, drive, orders=8):
    for _ in range(orders):
        any_target(rng, drive)
        if rng.random() < 0.3:
            T = drive.controller.robot.fk(drive.controller.robot.random(rng))
            drive.run(0.3, lambda drive, T=T: drive.pose(T))
        drive.run(rng.uniform(0.0, 0.6))


@settings(max_examples=25, deadline=None)
@given(KINDS, SEEDS, st.floats(1e-3, 0.05), st.sampled_from(STEPPED), st.booleans())
def test_any_arm_and_method(kinds, seed, dt, method, outside):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    assume(serves(method, robot))
    acceleration = rng.choice([0.5, 5.0, 50.0, np.inf], robot.n)
    q = robot.random(rng) + outside * rng.uniform(-1.0, 1.0, robot.n)
    options = {"acceleration": tuple(acceleration), "feed_forward": bool(rng.integers(2))}
    drive = Drive(q, robot, method, dt, **options)
    run_wildly(rng, drive)
    drive.assert_limits(acceleration)


@settings(max_examples=8, deadline=None)
@given(KINDS, SEEDS, st.floats(2e-3, 0.05))
def test_any_arm_with_limits_of_jerk(kinds, seed, dt):
    pytest.importorskip("ruckig")
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds[:5])
    drive = Drive(robot.random(rng), robot, dt=dt, acceleration=5.0, jerk=100.0)
    run_wildly(rng, drive, 4)
    drive.assert_limits(5.0, 100.0)


@settings(max_examples=12, deadline=None)
@given(KINDS, SEEDS)
def test_what_is_said_is_true(kinds, seed):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    drive = Drive(robot.random(rng), robot, acceleration=20.0)
    run_wildly(rng, drive, 5)
    for out in drive.outputs:
        if out.T_d is None:
            assert np.isnan([out.position_error, out.rotation_error, out.condition]).all()
            assert out.state.code == -1 or out.state is ServoState.WAITING
            continue
        T = robot.fk(out.q)
        left = np.linalg.norm(T[:3, 3] - out.T_d[:3, 3])
        assert out.position_error == pytest.approx(left, rel=1e-9, abs=1e-12)
        cosine = np.clip((np.trace(T[:3, :3] @ out.T_d[:3, :3].T) - 1) / 2, -1, 1)
        assert np.cos(out.rotation_error) == pytest.approx(cosine, abs=1e-9)
        near = out.position_error <= 1e-6 and out.rotation_error <= 1e-6
        assert (out.state is ServoState.REACHED) == near
        assert ((out.limit_activation >= 0.0) & (out.limit_activation <= 1.0)).all()
        assert out.condition >= 1.0 or np.isnan(out.condition)
