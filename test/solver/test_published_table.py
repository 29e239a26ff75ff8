# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Table V of Colome & Torras 2012: success rates and iterations of each method on the WAM.

The paper stops at norm(e) < 1e-4 with e = (dp, rotation / 2 rad per m); here two tolerances replace
this rule. Success is compared with the printed figures (1000 samples), steps with those of an
independent replication (200 samples), because printed steps depend on the reading of the stop rule.
"""

from typing import NamedTuple

import numpy as np
import pytest

from dls_ik import IkSolver, RobotModel, Status

COUNT, PRINTED, REPLICATED = 500, 1000, 200  # samples
SIGMAS = 4.0
FLOOR = 0.01  # tolerance of a share in addition to sampling: stop rule, rounded digits


class Row(NamedTuple):
    solved: float  # printed share
    in_limits: float  # printed share
    steps: float  # replicated mean


TABLE = {
    "jp": Row(1.000, 0.068, 13.2),
    "jd": Row(1.000, 0.069, 13.2),
    "ed": Row(1.000, 0.323, 10.6),
    "svf": Row(1.000, 0.087, 13.1),
    "sd": Row(0.984, 0.339, 42.7),
    "svf+sd": Row(0.997, 0.344, 35.6),
    "ctp+sd": Row(0.482, 0.482, 147.0),
    "ctp+sd+svf": Row(0.485, 0.485, 141.0),
}


@pytest.fixture(scope="module")
def sample():
    """Return poses and seeds, drawn uniformly within the limits."""
    robot, rng = RobotModel.wam(), np.random.default_rng(2012)
    return robot, robot.fk(robot.random(COUNT, rng)), robot.random(COUNT, rng)


def share_tolerance(share):
    """Return k standard deviations of the difference of two binomial shares, with a minimum."""
    return SIGMAS * np.sqrt(share * (1.0 - share) * (1.0 / COUNT + 1.0 / PRINTED)) + FLOOR


@pytest.mark.parametrize("name", TABLE)
def test_rates_and_iterations_match_the_table(name, sample):
    robot, Ts, seeds = sample
    solver = IkSolver(
        robot, name, position_tolerance=1e-4, rotation_tolerance=2e-4, max_iterations=250
    )
    result = solver.solve_batch(Ts, seeds)
    solved = np.isin(result.status, [Status.SUCCESS, Status.OUTSIDE_LIMITS])
    printed = TABLE[name]
    assert solved.mean() == pytest.approx(printed.solved, abs=share_tolerance(printed.solved))
    in_limits = result.success.mean()
    assert in_limits == pytest.approx(printed.in_limits, abs=share_tolerance(printed.in_limits))
    spread = result.iterations.std() * np.sqrt(1.0 / COUNT + 1.0 / REPLICATED)
    assert result.iterations.mean() == pytest.approx(printed.steps, abs=SIGMAS * spread)
