"""ssik: closed forms, found for an arm by `ssik build` and run in its C++ backend.

The generated module is what its authors recommend: 40 times as fast as `Manipulator.solve` on the
WAM (250 us, 13 ms). One solution is asked for and no seed is given, which would order them: with
it a pose takes 30 % more. Building takes seconds for a WAM, minutes for some redundant arms.
"""

import importlib
import subprocess
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.peers.arm import BASE, TIP, Arm
from benchmarks.peers.solver import Solver, UnfitError, one_by_one

BUILD_TIME = 1800.0  # [s]


def _module(arm: Arm, folder: Path) -> ModuleType:
    """Generate the solver of an arm, and import it."""
    (folder / "arm.urdf").write_text(arm.urdf())
    command = [sys.executable, "-m", "ssik.cli", "build", "arm.urdf", "--base", BASE, "--ee", TIP]
    command += ["--out", "arm_ik.py", "--no-validate"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIME, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnfitError(f"ssik build takes more than {BUILD_TIME:g} s") from None
    if done.returncode or not (folder / "arm_ik.py").exists():
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise UnfitError(f"ssik build: {lines[-1] if lines else 'failed'}")
    sys.path.insert(0, str(folder))
    return importlib.import_module("arm_ik")


def solvers(arm: Arm) -> dict[str, Solver]:
    """One row; its setting names the method that ssik chose."""
    with tempfile.TemporaryDirectory() as folder:
        module = _module(arm, Path(folder))

    def call(T: np.ndarray, seed: np.ndarray) -> Any:
        return module.solve(T, max_solutions=1)

    def answer(found: Any) -> np.ndarray | None:
        return found[0].q if found else None

    setting = f"ssik build, {module.SOLVER_NAME}, max_solutions=1, no seed"
    return {"ssik": Solver(one_by_one(call, answer=answer), setting)}
