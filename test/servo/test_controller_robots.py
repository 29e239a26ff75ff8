"""Robots of every kind: few joints, no limits, slow ones, joints that follow others."""

import numpy as np
import pytest
from arms import random_arm
from drive import Drive
from robots import joint, urdf

from dls_ik import RobotModel
from dls_ik.servo import ServoState

pytestmark = pytest.mark.slow

AXES = ("0 0 1", "0 1 0", "1 0 0")
ORIGIN = '<origin xyz="0.3 0.1 0.2" rpy="0.5 0.4 0.3"/>'


def arm(*kinds, velocity=1.0):
    """Joints in a row; continuous ones have no limits at all."""
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


def mimicking():
    kinds = ["revolute", "mimic", "prismatic", "revolute", "revolute", "continuous", "revolute"]
    return random_arm(np.random.default_rng(5), *kinds)


ROBOTS = {
    "one revolute": arm("revolute"),
    "one prismatic": arm("prismatic"),
    "one continuous": arm("continuous"),
    "revolute and prismatic": arm("revolute", "prismatic"),
    "no limits at all": arm(*["continuous"] * 7),
    "slow": arm(*["revolute"] * 7, velocity=0.1),
    "mimic": mimicking(),
}
LIMITS = [{}, {"acceleration": 4.0}, {"acceleration": 4.0, "jerk": 80.0}]


@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: "+".join(limits) or "velocity")
@pytest.mark.parametrize("name", ROBOTS)
def test_reaches_standing_targets_within_limits(name, limits):
    if "jerk" in limits:
        pytest.importorskip("ruckig")
    robot, rng = ROBOTS[name], np.random.default_rng(81)
    for _ in range(2):
        drive = Drive(robot.random(rng), robot, dt=0.025, **limits)
        drive.pose(robot.fk(robot.random(rng)))
        assert drive.run_until(ServoState.REACHED, 200.0)
        drive.assert_limits(**limits)


@pytest.mark.parametrize("name", ROBOTS)
def test_twists_that_few_joints_cannot_follow_are_harmless(name):
    robot, rng = ROBOTS[name], np.random.default_rng(82)
    drive = Drive(robot.random(rng), robot, acceleration=4.0)
    for _ in range(4):
        V = rng.normal(size=6)
        drive.run(0.7, lambda drive, V=V: drive.twist(V))
    drive.run(5.0)
    drive.assert_limits(4.0)
    assert drive.last.state is ServoState.STALE
    assert not drive.last.velocity.any()


@pytest.mark.parametrize("seed", range(6))
def test_uneven_cycles_of_a_random_arm_keep_position_and_velocity(seed):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, *rng.choice(["revolute", "continuous", "prismatic"], 6))
    drive = Drive(robot.random(rng), robot, acceleration=5.0)
    for _ in range(4):
        drive.pose(robot.fk(robot.random(rng)))
        for _ in range(60):
            drive.dt = 10.0 ** rng.uniform(-4, -1)
            before = drive.q[-1]
            drive.run(drive.dt)
            way = np.abs(drive.last.q - before)
            assert (way <= robot.velocity * drive.dt * (1 + 1e-9) + 1e-15).all()
            assert robot.within_limits(drive.last.q)
            np.testing.assert_allclose(
                drive.last.q - before, drive.last.velocity * drive.dt, atol=1e-14
            )
