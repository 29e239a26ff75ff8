"""Figures of a cycle beside what NumPy makes of the arm there."""

import numpy as np
import pytest

from dls_ik import RobotModel
from dls_ik.servo import Controller

WAM = RobotModel.wam()
Q = np.array([0.3, -0.5, 0.2, 1.4, -0.3, 0.4, 0.1])


def test_singular_values_and_condition_are_those_of_the_scaled_jacobian():
    controller = Controller(WAM)
    controller.seed(Q)
    controller.follow_pose(WAM.fk(Q), 0.0)
    out = controller.cycle(0.0, 0.01)
    J = np.diag([1.0, 1.0, 1.0, 0.5, 0.5, 0.5]) @ WAM.jacobian(Q)
    s = np.linalg.svd(J, compute_uv=False)
    assert out.least_singular_value == pytest.approx(s[-1], rel=1e-6)
    assert out.condition == pytest.approx(s[0] / s[-1], rel=1e-6)
