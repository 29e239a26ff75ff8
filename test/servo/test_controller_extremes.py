"""Controllers of robots of extreme numbers: finite commands within the limits, and nothing else."""

import numpy as np
import pytest
from drive import Drive, assert_limits

from dls_ik import RobotModel
from dls_ik.model import DhRow
from dls_ik.servo import ServoState


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
STARTS = {"inside": 0.3, "beyond": 40.0, "far beyond": 1e15, "tiny": 5e-324}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("name", ARMS)
def test_commands_are_finite_and_keep_the_limits(name, start):
    robot = ARMS[name]
    rng = np.random.default_rng(1)
    goal = robot.fk(robot.random(rng))
    turned = robot.fk(np.zeros(robot.n))
    turned[:3, :3] = turned[:3, :3] @ np.diag([1.0, -1.0, -1.0])
    drive = Drive(np.full(robot.n, STARTS[start]), robot, acceleration=8.0, when_stuck="hold")
    for T in (goal, turned, goal + 1e6 * np.eye(4, k=3)):
        drive.pose(T).run(0.1)
    drive.twist(np.full(6, 1e9)).run(0.05)
    drive.twist(np.full(6, 5e-324)).run(0.05)
    for out in drive.outputs:
        assert np.isfinite(out.q).all()
        assert np.isfinite(out.velocity).all()
    assert_limits(robot, drive.q, drive.dt, 8.0)


@pytest.mark.parametrize("velocity", [1e-12, 1e9])
def test_velocities_do_not_keep_it_from_settling_at_the_target(velocity):
    robot = arm(velocity=velocity)
    q = np.full(6, 0.3)
    drive = Drive(q, robot).pose(robot.fk(q))
    drive.run(0.2)
    assert drive.last.state is ServoState.REACHED
    np.testing.assert_array_equal(drive.last.q, q)
