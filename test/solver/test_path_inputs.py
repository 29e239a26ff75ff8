"""What ``solve_path`` takes, and what it refuses."""

import numpy as np
import pytest
from wishes import WAM

from dls_ik import IkSolver
from dls_ik.errors import JointValueError, OptionError, PoseError
from dls_ik.text import quoted


@pytest.mark.parametrize(
    "jump",
    [0.0, -1.0, np.nan, "far", None, True, [0.5], -(10**5000)],
    ids=lambda jump: quoted(jump, 20),
)
def test_other_jumps_are_refused(jump):
    with pytest.raises(OptionError, match="max_joint_step"):
        IkSolver(WAM).solve_path(np.eye(4)[None], max_joint_step=jump)


@pytest.mark.parametrize(
    "jump",
    [np.float32(0.5), np.int64(1), np.float64(0.5), 10**5000],
    ids=lambda jump: quoted(jump, 20),
)
def test_jumps_of_numpy(jump):
    assert len(IkSolver(WAM).solve_path(WAM.fk(np.zeros((2, 7))), max_joint_step=jump)) == 2


def test_bad_poses_and_seeds_are_refused():
    solver = IkSolver(WAM)
    for Ts in (np.eye(4), np.zeros((2, 3, 3)), "poses", None):
        with pytest.raises(PoseError):
            solver.solve_path(Ts)
    for seed in (np.zeros(6), np.full(7, np.nan), np.zeros((2, 7))):
        with pytest.raises(JointValueError):
            solver.solve_path(np.eye(4)[None], seed)
