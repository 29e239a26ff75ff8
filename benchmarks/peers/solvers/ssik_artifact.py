"""ssik: closed forms, found for an arm by `ssik build` and run in its C++ backend.

The generated module is what its authors recommend: 40 times as fast as `Manipulator.solve` on the
WAM (250 us, 13 ms). One solution is asked for and no seed is given, which would order them: with
it a pose takes 30 % more. Building takes seconds for a WAM, minutes for some redundant arms.
"""

import hashlib
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.peers.arm import BASE, TIP, Arm
from benchmarks.peers.solver import Solver, UnfitError, one_by_one

BUILD_TIME = 1800.0  # [s]
MODULE = "arm_ik"


def _module(arm: Arm) -> ModuleType:
    """The generated solver of an arm; it is kept beside the environment's packages."""
    text = arm.urdf()
    folder = Path(sys.prefix) / "ssik" / hashlib.sha256(text.encode()).hexdigest()[:16]
    if not (folder / f"{MODULE}.py").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "arm.urdf").write_text(text)
        _build(folder)
    sys.path.insert(0, str(folder))
    return importlib.import_module(MODULE)


def _build(folder: Path) -> None:
    command = [sys.executable, "-m", "ssik.cli", "build", "arm.urdf", "--base", BASE, "--ee", TIP]
    command += ["--out", f"{MODULE}.py", "--no-validate"]
    try:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIME, check=False
        )
    except subprocess.TimeoutExpired:
        raise UnfitError(f"ssik build takes more than {BUILD_TIME:g} s") from None
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise UnfitError(f"ssik build: {lines[-1] if lines else 'failed'}")


def solvers(arm: Arm) -> dict[str, Solver]:
    """One row; its setting names the method that ssik chose."""
    module = _module(arm)

    def call(T: np.ndarray, seed: np.ndarray) -> Any:
        return module.solve(T, max_solutions=1)

    def answer(found: Any) -> np.ndarray | None:
        return found[0].q if found else None

    setting = f"ssik build, {module.SOLVER_NAME}, max_solutions=1, no seed"
    return {"ssik": Solver(one_by_one(call, answer=answer), setting)}
