"""What a stepper is given that is none of what it takes: an error of ours, and it stays."""

import numpy as np
import pytest

from dls_ik import RobotModel, Stepper
from dls_ik.errors import OptionError, PoseError

WAM = RobotModel.wam()
Q = np.full(7, 0.3)
T = WAM.fk(Q)
ODD = [None, "x", 1j, [1, [2]], [10**400] * 6, np.nan, np.zeros(6, "M8[s]"), object()]


@pytest.fixture(scope="module")
def stepper():
    return Stepper(WAM, "svf", Q)


@pytest.mark.parametrize("bad", [*ODD, [T, None], np.full((4, 4), 1j), T[:3], np.empty((0, 4, 4))])
def test_targets(stepper, bad):
    for use in (stepper.step, lambda given: stepper.run(given, 2)):
        with pytest.raises(PoseError):
            use(bad)
    np.testing.assert_array_equal(stepper.q, Q)


@pytest.mark.parametrize("bad", [*ODD, np.zeros(5), np.full(6, np.inf), np.full(6, -1e300)])
def test_velocities_and_errors(stepper, bad):
    with pytest.raises(OptionError, match="x_dot"):
        stepper.rate(bad, 0.01)
    with pytest.raises(OptionError, match="e is"):
        stepper.step_for(bad, WAM.jacobian(Q))
    with pytest.raises(OptionError, match="J is"):
        stepper.step_for(np.zeros(6), bad)
    np.testing.assert_array_equal(stepper.q, Q)


@pytest.mark.parametrize("dt", [*ODD, [0.1], np.inf, 1e300])
def test_durations(stepper, dt):
    with pytest.raises(OptionError, match="dt"):
        stepper.rate(np.zeros(6), dt)
    np.testing.assert_array_equal(stepper.q, Q)
