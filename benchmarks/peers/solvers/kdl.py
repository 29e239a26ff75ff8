"""KDL through PyKDL: :mod:`benchmarks.kdl` says in which settings and why."""

from typing import Any

import numpy as np

from benchmarks.kdl import Kdl, KdlSolver
from benchmarks.peers.arm import Arm
from benchmarks.peers.solver import RESTARTS_SEED, Solver, one_by_one
from dls_ik import RobotModel


def _solver(kdl: Kdl, solver: KdlSolver) -> Solver:
    def given(T: np.ndarray, seed: np.ndarray) -> tuple[Any, Any]:
        return kdl.frame(T), (kdl.joints(seed), kdl.joints(seed))

    def call(frame: Any, joints: tuple[Any, Any]) -> Any:
        seed, out = joints
        solver.solve(frame, seed, out)
        return out

    return Solver(one_by_one(call, given, list), solver.setting)


def solvers(arm: Arm) -> dict[str, Solver]:
    """A row for each of KDL's solvers, and for those with restarts around them."""
    kdl = Kdl(RobotModel.from_urdf(arm.urdf()))
    rng = np.random.default_rng(RESTARTS_SEED)
    return {solver.name: _solver(kdl, solver) for solver in kdl.solvers(rng)}
