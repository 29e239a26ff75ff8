# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""All limits hold for any arm, any input and any length unit."""

from itertools import cycle

import numpy as np
import pytest
from arms import random_arm
from drive import BENT, DT, WAM, Drive, assert_limits
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from kernels import FOLLOWING, serves
from robots import joint, urdf
from scaled import scaled, scaled_poses

from dls_ik import RobotModel
from dls_ik.errors import HeldError
from dls_ik.model import DhRow
from dls_ik.servo import Controller, ServoState

KINDS = st.lists(st.sampled_from(["revolute", "continuous", "prismatic", "mimic"]), max_size=7)
SEEDS = st.integers(0, 2**32 - 1)


def send_random_target(rng, drive):
    """Send a random target, reachable or not, or none."""
    robot, kind = drive.controller.robot, rng.integers(7)
    T = robot.fk(robot.random(rng=rng))
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
        Ts = robot.fk(robot.random(int(rng.integers(1, 4)), rng))
        drive.trajectory(Ts, 10.0 ** rng.uniform(-3, 0))
    elif kind == 5:
        drive.controller.refuse("for no reason")


def run_random_targets(rng, drive, count=8):
    for _ in range(count):
        send_random_target(rng, drive)
        if rng.random() < 0.3:
            T = drive.controller.robot.fk(drive.controller.robot.random(rng=rng))
            drive.run(0.3, lambda drive, T=T: drive.pose(T))
        drive.run(rng.uniform(0.0, 0.6))


@pytest.mark.slow
@settings(max_examples=12)
@given(KINDS, SEEDS, st.floats(1e-3, 0.05), st.sampled_from(FOLLOWING), st.booleans())
def test_any_arm_and_method_keep_limits(kinds, seed, dt, method, outside):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    assume(serves(method, robot))
    acceleration = rng.choice([0.5, 5.0, 50.0, np.inf], robot.n)
    q = robot.random(rng=rng) + outside * rng.uniform(-1.0, 1.0, robot.n)
    options = {"acceleration": tuple(acceleration), "feed_forward": bool(rng.integers(2))}
    drive = Drive(q, robot, method, dt, **options)
    run_random_targets(rng, drive)
    drive.assert_limits(acceleration)


@pytest.mark.slow
@settings(max_examples=8)
@given(KINDS, SEEDS, st.floats(2e-3, 0.05))
def test_any_arm_keeps_jerk_limits(kinds, seed, dt):
    pytest.importorskip("ruckig")
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds[:5])
    drive = Drive(robot.random(rng=rng), robot, dt=dt, acceleration=5.0, jerk=100.0)
    run_random_targets(rng, drive, 4)
    drive.assert_limits(5.0, 100.0)


@pytest.mark.slow
@settings(max_examples=12)
@given(KINDS, SEEDS)
def test_outputs_describe_the_command(kinds, seed):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    drive = Drive(robot.random(rng=rng), robot, acceleration=20.0)
    run_random_targets(rng, drive, 5)
    for out in drive.outputs:
        if out.T_d is None:
            assert np.isnan([out.position_error, out.rotation_error, out.condition]).all()
            assert out.state.code == -1 or out.state in (ServoState.WAITING, ServoState.TIMED_OUT)
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


def arm(length=0.3, velocity=2.0, room=2.5, joints=6):
    row = DhRow(a=length, alpha=1.2, d=length, lower=-room, upper=room, velocity=velocity)
    return RobotModel.from_dh([row] * joints)


ARMS = {
    **{f"velocities of {v:g}": arm(velocity=v) for v in (5e-324, 1e-300, 1e-12, 1e9, 1e300)},
    **{f"lengths of {a:g}": arm(length=a) for a in (1e-300, 1e-160, 1e-9, 1e4)},
    "60 joints": arm(length=0.02, joints=60),
    "60 joints that hardly move": arm(length=0.02, joints=60, room=1e-9),
    "none can move": arm(room=0.0),
    "one": arm(joints=1),
    "all coincide": RobotModel.from_dh([DhRow(lower=-1.0, upper=1.0, velocity=1.0)] * 6),
    "turns without an end": arm(room=1e16),
}


STARTS = (0.3, 40.0, 1e15, 5e-324)  # one start within the limits, two outside, one tiny


@pytest.mark.parametrize(("name", "start"), [*zip(ARMS, cycle(STARTS), strict=False)])
def test_extreme_arms_have_finite_commands_within_limits(name, start):
    robot = ARMS[name]
    rng = np.random.default_rng(1)
    goal = robot.fk(robot.random(rng=rng))
    turned = robot.fk(np.zeros(robot.n))
    turned[:3, :3] = turned[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    drive = Drive(np.full(robot.n, start), robot, acceleration=8.0, when_stuck="hold")
    for T in (goal, turned, goal + 1e6 * np.eye(4, k=3)):
        drive.pose(T).run(0.1)
    drive.twist(np.full(6, 1e9)).run(0.05)
    drive.twist(np.full(6, 5e-324)).run(0.05)
    for out in drive.outputs:
        assert np.isfinite(out.q).all()
        assert np.isfinite(out.velocity).all()
    assert_limits(robot, drive.q, drive.dt, 8.0)
    if name in ("velocities of 1e-12", "velocities of 1e+09"):
        reached = Drive(np.full(6, 0.3), robot).pose(robot.fk(np.full(6, 0.3)))
        reached.run(0.2)
        assert reached.last.state is ServoState.REACHED
        np.testing.assert_array_equal(reached.last.q, reached.start)


AXES = ("0 0 1", "0 1 0", "1 0 0")
ORIGIN = '<origin xyz="0.3 0.1 0.2" rpy="0.5 0.4 0.3"/>'


def jointed(*kinds, velocity=1.0):
    """Return a chain of joints; continuous joints have no limits at all."""
    limit = f'<limit lower="-2" upper="2" effort="1" velocity="{velocity}"/>'
    joints = [
        joint(
            f"j{i}",
            kind,
            f"l{i}",
            f"l{i + 1}",
            ORIGIN + limit * (kind != "continuous"),
            AXES[i % 3],
        )
        for i, kind in enumerate(kinds)
    ]
    links = " ".join(f"l{i}" for i in range(len(kinds) + 1))
    return RobotModel.from_urdf(urdf(links, *joints))


def arm_with_mimic_joint():
    kinds = ["revolute", "mimic", "prismatic", "revolute", "revolute", "continuous", "revolute"]
    return random_arm(np.random.default_rng(5), *kinds)


ROBOTS = {
    "one revolute": jointed("revolute"),
    "one prismatic": jointed("prismatic"),
    "one continuous": jointed("continuous"),
    "revolute and prismatic": jointed("revolute", "prismatic"),
    "no limits at all": jointed(*["continuous"] * 7),
    "slow": jointed(*["revolute"] * 7, velocity=0.1),
    "mimic": arm_with_mimic_joint(),
}
LIMITS = [{"acceleration": 4.0}, {"acceleration": 4.0, "jerk": 80.0}, {}]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "limits"), [*zip(ROBOTS, cycle(LIMITS), strict=False)])
def test_static_targets_are_reached_within_limits(name, limits):
    if "jerk" in limits:
        pytest.importorskip("ruckig")
    robot, rng = ROBOTS[name], np.random.default_rng(81)
    for _ in range(2):
        drive = Drive(robot.random(rng=rng), robot, dt=0.025, **limits)
        drive.pose(robot.fk(robot.random(rng=rng)))
        assert drive.run_until(ServoState.REACHED, 200.0)
        drive.assert_limits(**limits)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_uneven_cycles_keep_position_and_velocity_limits(seed):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, *rng.choice(["revolute", "continuous", "prismatic"], 6))
    drive = Drive(robot.random(rng=rng), robot, acceleration=5.0)
    for _ in range(4):
        drive.pose(robot.fk(robot.random(rng=rng)))
        for _ in range(60):
            drive.dt = 10.0 ** rng.uniform(-4, -1)
            before = drive.q[-1]
            drive.run(drive.dt)
            moved = np.abs(drive.last.q - before)
            assert (moved <= robot.velocity * drive.dt * (1 + 1e-9) + 1e-15).all()
            assert robot.within_limits(drive.last.q)
            np.testing.assert_allclose(
                drive.last.q - before, drive.last.velocity * drive.dt, atol=1e-14
            )


A, JERK = 6.0, 120.0
FAR = WAM.fk(BENT + 0.9)
V = np.array([0.3, -0.2, 0.2, 0.5, 0.0, 0.4])


def line():
    Ts = np.repeat(WAM.fk(BENT - 0.2)[None], 3, axis=0)
    Ts[:, 1, 3] += 0.0, 0.1, 0.2
    return Ts


REQUESTS = [
    lambda drive: drive.pose(FAR),
    lambda drive: drive.twist(V),
    lambda drive: drive.twist(V, R=np.eye(3)),
    lambda drive: drive.trajectory(line(), 0.2),
    lambda drive: drive.pose(WAM.fk(BENT - 0.3)),
    lambda drive: drive.controller.refuse("not a pose"),
    lambda drive: drive.controller.pause(),
    lambda drive: drive.controller.resume(),
    lambda drive: drive.controller.reset(),
]


@pytest.mark.parametrize("limits", [{"acceleration": A}, {"acceleration": A, "jerk": JERK}])
def test_random_requests_keep_limits(limits):
    if "jerk" in limits:
        pytest.importorskip("ruckig")
    rng = np.random.default_rng(71)
    drive = Drive(BENT, **limits)
    for _ in range(60):
        held = drive.controller.hold_reason
        try:
            REQUESTS[rng.integers(len(REQUESTS))](drive)
        except HeldError:
            assert held
        drive.run(rng.uniform(DT, 0.5))
    drive.assert_limits(**limits)
    assert np.ptp(drive.q, axis=0).max() > 0.5, "the arm moved"


def test_lagging_measurements_do_not_move_the_command():
    drive = Drive(BENT).pose(WAM.fk(BENT + 0.3))
    drive.run(DT)
    drive.run(3.0, measured=lambda drive: drive.outputs[max(len(drive.outputs) - 10, 0)].q)
    drive.assert_limits()
    assert drive.last.state is ServoState.REACHED


@pytest.mark.parametrize(
    ("moment", "method", "limits"),
    [
        (0.05, "svf", {"acceleration": A}),
        (0.2, "auto", {"acceleration": A}),
        (0.5, "odls", {"acceleration": A}),
        *((moment, "svf", {"acceleration": A, "jerk": JERK}) for moment in (0.06, 0.15, 0.3)),
    ],
)
def test_take_over_continues_motion_and_pause(moment, method, limits):
    if "jerk" in limits:
        pytest.importorskip("ruckig")
    drive = Drive(BENT, **limits).pose(FAR)
    drive.run(moment)
    other = Controller(WAM, method, **limits)
    other.take_over(drive.controller)
    np.testing.assert_array_equal(other.command, drive.last.q)
    drive.controller = other
    assert drive.run_until(ServoState.REACHED, 10.0)
    drive.pose(WAM.fk(BENT)).run(0.2)
    drive.controller.pause()
    third = Controller(WAM, "dls", **limits)
    third.take_over(drive.controller)
    drive.controller = third
    with pytest.raises(HeldError):
        drive.pose(FAR)
    drive.run(1.0)
    assert drive.last.state is ServoState.PAUSED
    drive.assert_limits(**limits)


def test_pause_rejects_targets_until_resume():
    drive = Drive(BENT, acceleration=A).pose(FAR)
    drive.run(0.2)
    drive.controller.pause()
    for request in REQUESTS[:5]:
        with pytest.raises(HeldError, match="paused"):
            request(drive)
    drive.controller.refuse("no reason")
    drive.run(1.0)
    assert drive.last.state is ServoState.PAUSED
    assert not drive.last.velocity.any()
    drive.controller.resume()
    drive.run(0.5)
    assert drive.last.state is ServoState.WAITING
    drive.pose(FAR)
    assert drive.run_until(ServoState.REACHED, 10.0)
    drive.assert_limits(A)


def test_reset_clears_target_and_pause():
    drive = Drive(BENT, acceleration=A).pose(FAR)
    drive.run(0.2)
    drive.controller.reset()
    drive.run(1.0)
    assert drive.last.state is ServoState.WAITING
    assert not drive.last.velocity.any()
    drive.controller.pause()
    drive.controller.reset()
    assert not drive.controller.hold_reason
    drive.pose(FAR)


def test_refused_target_stops_the_arm_until_the_next_target():
    drive = Drive(BENT, acceleration=A).pose(FAR)
    drive.run(0.2)
    drive.controller.refuse("quaternion of zeros")
    drive.run(1.0)
    assert drive.last.state is ServoState.REFUSED
    assert "quaternion of zeros" in drive.last.message
    assert not drive.last.velocity.any()
    drive.pose(FAR)
    assert drive.run_until(ServoState.REACHED, 10.0)
    drive.assert_limits(A)


KILO = 2.0**10
UNITS = (KILO, 1.0 / KILO)
AWAY = np.array([0.4, -0.3, 0.5, 0.3, -0.4, 0.2, 0.6])


def assert_equal_motion(one, other):
    np.testing.assert_array_equal(other.q, one.q)
    assert other.states == one.states


def drives(k, method=None, **options):
    """Return a drive in metres, and one in length units of which a metre has k."""
    there = scaled(WAM, k)
    return Drive(BENT, WAM, method, **options), Drive(BENT, there, method, length_unit=k, **options)


@pytest.mark.parametrize(
    ("method", "k"),
    [*zip([None, "dls", "odls", "auto", "gp+dls", "sdls"], cycle(UNITS), strict=False)],
)
def test_length_unit_does_not_change_following_of_a_pose(method, k):
    one, other = drives(k, method, acceleration=8.0)
    T = WAM.fk(BENT + AWAY)
    one.pose(T).run(1.0)
    other.pose(scaled_poses(T, k)).run(1.0)
    assert_equal_motion(one, other)
    assert np.abs(one.q[-1] - BENT).max() > 0.1


@pytest.mark.parametrize("k", [KILO, 1.0 / KILO])
def test_length_unit_does_not_change_targets_out_of_reach(k):
    one, other = drives(k, position_tolerance=2.0**-20)
    far, near = WAM.fk(BENT), WAM.fk(BENT)
    far[0, 3] += 2.0
    near[:3, 3] += (
        0.01,
        0.02,
        -0.01,
    )  # smaller, in kilometres, than the tolerance of rotation entries
    for T in (far, near):
        one.pose(T).run(2.5)
        other.pose(scaled_poses(T, k)).run(2.5)
    assert_equal_motion(one, other)
    np.testing.assert_allclose(WAM.fk(one.q[-1])[:3, 3], near[:3, 3], atol=1e-4)


@pytest.mark.parametrize(("k", "speed"), [(KILO, 0.25), (1.0 / KILO, 200.0)])
def test_length_unit_does_not_change_following_of_a_twist(k, speed):
    one, other = drives(k)
    V = np.array([speed, 0.0, 0.0, 0.0, 0.0, 0.1])
    one.run(0.5, lambda drive: drive.twist(V))
    other.run(0.5, lambda drive: drive.twist(V * ([k] * 3 + [1.0] * 3)))
    assert_equal_motion(one, other)


def test_length_unit_does_not_change_following_of_a_trajectory():
    one, other = drives(KILO)
    Ts = WAM.fk(BENT + np.linspace(0.0, 0.3, 12)[:, None] * AWAY)
    one.trajectory(Ts, 0.1).run(1.5)
    other.trajectory(scaled_poses(Ts, KILO), 0.1).run(1.5)
    assert_equal_motion(one, other)
    np.testing.assert_allclose(WAM.fk(one.q[-1]), Ts[-1], atol=1e-3)
