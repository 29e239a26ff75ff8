"""dls_ik itself: single calls and batches, with a random seed for each pose and without."""

import time

import numpy as np

from benchmarks.peers.arm import Arm
from benchmarks.peers.solver import TIMEOUT, Found, Run, Solver, one_by_one
from dls_ik import IkSolver, RobotModel

SINGLE, BATCH = "dls_ik solve", "dls_ik batch, one thread"


def _batch(solver: IkSolver, seeded: bool, threads: int | None) -> Run:
    def run(Ts: np.ndarray, seeds: np.ndarray, seconds: float) -> Found:
        used, begin = time.process_time(), time.perf_counter()
        result = solver.solve_batch(Ts, seeds if seeded else None, threads=threads)
        taken, used = time.perf_counter() - begin, time.process_time() - used
        return Found(result.q, 1e6 * np.array([taken]) / len(Ts), 1e6 * used / len(Ts))

    return run


def solvers(arm: Arm) -> dict[str, Solver]:
    """The reference rows."""
    solver = IkSolver(RobotModel.from_urdf(arm.urdf()), timeout=TIMEOUT)

    def seeded(T: np.ndarray, seed: np.ndarray) -> np.ndarray:
        return solver.solve(T, seed).q

    def unseeded(T: np.ndarray, seed: np.ndarray) -> np.ndarray:
        return solver.solve(T).q

    return {
        SINGLE: Solver(one_by_one(seeded), "auto, 50 ms"),
        f"{SINGLE}, no seed": Solver(one_by_one(unseeded), "auto, 50 ms"),
        BATCH: Solver(_batch(solver, True, 1), "auto", is_batch=True),
        f"{BATCH}, no seed": Solver(_batch(solver, False, 1), "auto", is_batch=True),
        "dls_ik batch, all cores": Solver(_batch(solver, True, None), "auto", None, is_batch=True),
    }
