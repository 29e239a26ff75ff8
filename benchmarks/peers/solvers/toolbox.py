"""Robotics Toolbox for Python: its solvers in C++, ETS.ik_LM, ik_NR and ik_GN.

Each starts anew at random within the limits, up to `slimit` times, until the answer is inside.

* `tol` bounds half the squared norm of all six errors: with 0.5e-12 every answer keeps 1e-6, with
  1e-12 two of a hundred do not, with 1e-11 seventeen, and the time falls by under 5 %.
* `ilimit`, iterations of an attempt, and `k`, the damping: the least mean on the WAM with every
  pose solved, of `ilimit` 10 to 30, and of `k` 0.01 to 3 (chan), 1e-8 to 0.1 (the others).
* GN without `pinv` is half again as fast as with it; NR with damping solves fewer poses.
"""

from typing import Any

import numpy as np
from roboticstoolbox import ET, ETS

from benchmarks.peers.arm import Arm
from benchmarks.peers.solver import TOLERANCE, Solver, one_by_one

TOL = 0.5 * TOLERANCE**2
SEARCHES = 1000
SETTINGS: dict[str, tuple[str, dict[str, Any]]] = {
    "ik_LM chan": ("ik_LM", {"method": "chan", "k": 0.2, "ilimit": 20}),
    "ik_LM sugihara": ("ik_LM", {"method": "sugihara", "k": 1e-8, "ilimit": 30}),
    "ik_LM wampler": ("ik_LM", {"method": "wampler", "k": 1e-8, "ilimit": 30}),
    "ik_NR": ("ik_NR", {"pinv": True, "ilimit": 30}),
    "ik_GN": ("ik_GN", {"pinv": False, "ilimit": 30}),
}


def _ets(arm: Arm) -> ETS:
    parts = []
    for i in range(arm.n):
        kind = ET.tz if arm.prismatic[i] else ET.Rz
        parts += [ET.SE3(arm.fixed[i]), kind(qlim=[arm.lower[i], arm.upper[i]])]
    return ETS([*parts, ET.SE3(arm.fixed[-1])])


def _solver(ets: ETS, method: str, options: dict[str, Any]) -> Solver:
    function, options = getattr(ets, method), {**options, "tol": TOL, "slimit": SEARCHES}

    def call(T: np.ndarray, seed: np.ndarray) -> Any:
        return function(T, seed, **options)

    def answer(solution: Any) -> np.ndarray | None:
        return solution.q if solution.success else None

    words = [f"{key}={value}" for key, value in options.items()]
    return Solver(one_by_one(call, answer=answer), f"{method}, {', '.join(words)}")


def solvers(arm: Arm) -> dict[str, Solver]:
    """A row for each method."""
    ets = _ets(arm)
    return {f"toolbox {name}": _solver(ets, *given) for name, given in SETTINGS.items()}
