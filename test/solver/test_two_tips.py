"""Two arms at once by the default method: every pose that they reach is found."""

import numpy as np
import pytest
from robots import URDF

from dls_ik import IkSolver, RobotModel

ROBOTS = {"y_shape": ("E0", "E1"), "two_wams": ("left_wam_tip", "right_wam_tip")}


@pytest.mark.parametrize("name", ROBOTS)
def test_auto_reaches_both_poses_inside_the_limits(name):
    robot = RobotModel.from_urdf(URDF / f"{name}.urdf", tip=ROBOTS[name])
    rng = np.random.default_rng(3)
    Ts, seeds = robot.fk(robot.random(rng, 200)), robot.random(rng, 200)
    batch = IkSolver(robot).solve_batch(Ts, seeds)
    assert batch.success.all()
    assert robot.within_limits(batch.q).all()
    np.testing.assert_allclose(robot.fk(batch.q), Ts, atol=3e-6)
