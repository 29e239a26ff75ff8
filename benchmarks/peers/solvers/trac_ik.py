"""TRAC-IK by pytracik: Speed, which returns the first answer of its two threads.

* `eps` is compared with each of six components: 1e-6 / sqrt 3 keeps both norms in 1e-6.
* It keeps limits as 32-bit floats, so that one answer of ten is outside by 1e-7: it is given limits
  rounded inwards.
* The timeout is not used up where it finds an answer: 5 ms, its default, leaves 5 to 7 % of the
  WAM's poses unsolved, 50 ms a few of a thousand.
* It is called below `trac_ik.TracIK`, which turns the matrix into a quaternion in Python each time.
* It always starts two threads. On one core they take turns; a second row gives it all cores.
"""

import numpy as np
import pytracik

from benchmarks.peers.arm import BASE, TIP, Arm
from benchmarks.peers.solver import TIMEOUT, TOLERANCE, Solver, listed, one_by_one, quaternion

EPS = TOLERANCE / np.sqrt(3.0)


def _inwards(arm: Arm) -> Arm:
    """Limits that single precision cannot round outwards."""
    lower, upper = arm.lower.astype(np.float32), arm.upper.astype(np.float32)
    up, down = np.nextafter(lower, np.float32(np.inf)), np.nextafter(upper, np.float32(-np.inf))
    lower = np.where(lower < arm.lower, up, lower).astype(float)
    return arm._replace(lower=lower, upper=np.where(upper > arm.upper, down, upper).astype(float))


def _given(T: np.ndarray, seed: np.ndarray) -> tuple[list[float], np.ndarray]:
    return listed([*T[:3, 3], *quaternion(T[:3, :3])]), seed


def _solver(arm: Arm, timeout: float, cores: int | None) -> Solver:
    kind = pytracik.SolveType.Speed
    solver = pytracik.TRAC_IK(BASE, TIP, _inwards(arm).urdf(), timeout, EPS, kind)

    def call(pose: list[float], seed: np.ndarray) -> np.ndarray:
        return pytracik.ik(solver, seed, *pose)

    def answer(result: np.ndarray) -> np.ndarray | None:
        return result[1:] if result[0] >= 0 else None

    held = "its two threads in turns" if cores else "its two threads side by side"
    setting = f"Speed, timeout {1e3 * timeout:g} ms, eps 1e-6 / sqrt 3, {held}"
    return Solver(one_by_one(call, _given, answer), setting, cores)


def solvers(arm: Arm) -> dict[str, Solver]:
    """Its default timeout, and one by which it solves all; on one core, and on all."""
    return {
        "TRAC-IK, 5 ms": _solver(arm, 0.005, 1),
        "TRAC-IK, 50 ms": _solver(arm, TIMEOUT, 1),
        "TRAC-IK, 50 ms, all cores": _solver(arm, TIMEOUT, None),
    }
