"""The quick step holds a joint that would pass its limit there, as the step of all methods does."""

import numpy as np
import pytest
from kernels import WAM, step

from dls_ik import RobotModel

PUMA = RobotModel.from_name("puma560")


@pytest.mark.parametrize("robot", [WAM, PUMA], ids=["wam", "puma560"])
def test_holds_at_limits_what_would_pass_them(robot):
    rng, held = np.random.default_rng(3), 0
    for _ in range(20):
        at_end = rng.random(robot.n) < 0.4
        ends = np.where(rng.random(robot.n) < 0.5, robot.lower + 0.01, robot.upper - 0.01)
        q = np.where(at_end, ends, robot.random(rng))
        J, e = np.diag([1, 1, 1, 0.5, 0.5, 0.5]) @ robot.jacobian(q), 0.1 * rng.normal(size=6)
        quick, general = (step("auto", robot, q, J, e, general=way) for way in (False, True))
        np.testing.assert_allclose(quick, general, rtol=0.0, atol=1e-9)
        assert robot.within_limits(robot.clip(q + quick))
        limits = np.concatenate([robot.lower, robot.upper])
        held += np.isin(np.round(np.tile(q + quick, 2) - limits, 12), 0.0).any()
    assert held > 5
