"""Where arms begin: bent, where 0 is a singularity."""

import numpy as np
import pytest
from arms import published

from dls_ik import RobotModel
from dls_ik.model.ready import ready_configuration
from dls_ik.servo import Controller


def conditioning(robot, q):
    s = np.linalg.svd(robot.jacobian(q), compute_uv=False)
    return s[-1] / s[0]


@pytest.mark.parametrize("name", ["wam", "puma560", "gen3", "fr3"])
def test_an_arm_begins_away_from_singularities_and_limits(name):
    robot = published(name) if name in ("gen3", "fr3") else RobotModel.from_name(name)
    q = ready_configuration(robot)
    assert conditioning(robot, q) > max(0.05, 2.0 * conditioning(robot, robot.clip(0.0 * q)))
    assert robot.within_limits(q)
    assert np.abs(q).max() <= 2.0
    np.testing.assert_array_equal(q, ready_configuration(robot.narrowed(-9.0, 9.0)))
    for axis in np.vstack([np.eye(3), -np.eye(3)]):
        assert_follows(Controller(robot), q, axis)


def assert_follows(controller, q, axis):
    """The first motion is straight: 0.1 m/s along an axis of the base, without a lag."""
    T = controller.robot.fk(q).copy()
    controller.seed(q)
    for k in range(1, 50):
        T[:3, 3] += 0.001 * axis
        controller.follow_pose(T, 0.01 * k)
        out = controller.cycle(0.01 * k, 0.01)
        assert out.position_error < 1e-3, (k, axis)


def test_an_arm_that_moves_well_at_0_begins_there():
    robot = RobotModel.from_name("planar_2r")
    np.testing.assert_array_equal(ready_configuration(robot), [0.0, 0.0])
