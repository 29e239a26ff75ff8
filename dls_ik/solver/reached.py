"""Poses that are proved to be beyond reach: model/reach/bounds.py has the bounds."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.reach_bounds import Reach, is_beyond_reach, rows_beyond_reach
from dls_ik.core.types import Array
from dls_ik.model.reach.bounds import build_reach
from dls_ik.model.robot import RobotModel
from dls_ik.solver.problem import Problem

if TYPE_CHECKING:
    from dls_ik.solver.solver import IkSolver


@lru_cache(maxsize=16)
def reach_of(robot: RobotModel) -> Reach:
    """Bounds on the poses of a robot's only tip; takes some tenths of a second, once a robot."""
    return build_reach(robot.chain)


class ReachTest:
    """The proof for one solver: for the full pose of one tip, within the solver's tolerances.

    Bounds are found when they are first asked for, or by :meth:`prepare`. For a robot whose limits
    were narrowed they are those of the whole one, beyond which it does not reach either. Of tasks,
    with slack or without, nothing is proved.
    """

    def __init__(self, solver: IkSolver) -> None:
        self._robot, options = solver.robot.whole or solver.robot, solver.options
        most = options.error_tolerance
        self._tolerances = (
            options.length_unit * min(options.position_tolerance, most),
            min(options.rotation_tolerance, most / options.rotation_weight),
        )
        self._problem = solver.problem
        self._keeps_limits = solver.keeps_limits  # beyond them a method may reach more

    def prepare(self) -> None:
        """Find the bounds now, where they are of use."""
        if self._serves(self._problem):
            reach_of(self._robot)

    def proves_beyond(self, problem: Problem, poses: Array) -> bool:
        """Whether poses (k, 4, 4) are proved to be beyond reach; False says nothing."""
        if not self._serves(problem):
            return False
        return bool(is_beyond_reach(reach_of(self._robot), poses[0], *self._tolerances))

    def rows_beyond(self, problem: Problem, Ts: Array) -> NDArray[np.bool_]:
        """(b,) for poses (b, k, 4, 4)."""
        beyond = np.zeros(len(Ts), np.bool_)
        if self._serves(problem) and len(Ts):
            poses = np.ascontiguousarray(Ts[:, 0])
            rows_beyond_reach(reach_of(self._robot), poses, *self._tolerances, beyond)
        return beyond

    def _serves(self, problem: Problem) -> bool:
        return self._keeps_limits and problem.packed is not None
