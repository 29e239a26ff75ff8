"""A row without ROS: installed into an empty environment, asked from Python and by the command."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from install_matrix import arm
from install_matrix.bench import Bench, StepError
from install_matrix.rows import Row

HERE = Path(__file__).resolve().parent
# One of each kernel family: quick path, laws, policies, priorities, transpose.
METHODS = ("auto", "dls", "sdls", "svf", "ctp+sd+svf", "jt")
BINARIES = "numba,numpy,llvmlite"  # never built from source: that would test another thing
INTERPRETED = {"NUMBA_DISABLE_JIT": "1"}
Facts = dict[str, str]


def make_environment(bench: Bench, python: str) -> None:
    """An empty virtual environment."""
    bench.run(python, "-m", "venv", "venv")
    if bench.run("venv/bin/python", "-c", "import sys; print(sys.prefix)").strip() != str(
        bench.folder / "venv"
    ):
        raise StepError("the virtual environment's python is not its own")


def install(bench: Bench, artefact: Path, *options: str) -> None:
    """Install a wheel or sdist with pip, which then checks what is there."""
    bench.run(bench.bin / "pip", "install", "--no-input", *options, artefact)
    bench.run(bench.bin / "pip", "check")


def try_library(bench: Bench, row: Row, python: str, artefact: Path, compiled: bool) -> Facts:
    """All steps of a row without ROS; what was installed.

    Raises:
        StepError: at the first step that fails; the steps are in the bench.
    """
    with bench.step("environment"):
        make_environment(bench, python)
    with bench.step("install"):
        install(bench, artefact, "--only-binary", BINARIES, *row.pins)
    with bench.step("solve interpreted") as words:
        facts = solve(bench, METHODS, compiled=False)
        words.append(f"{len(METHODS)} methods")
        if facts.pop("ros"):
            raise StepError("rclpy is in this environment, which was to have no ROS")
    if compiled:
        with bench.step("solve compiled") as words:
            solve(bench, METHODS[:1], compiled=True)
            words.append(METHODS[0])
    with bench.step("dls-ik") as words:
        use_command(bench, compiled)
        words.append("info, solve")
    return facts


def solve(bench: Bench, methods: tuple[str, ...], compiled: bool) -> dict[str, Any]:
    """Solve for a pose by several methods, and check the answers by other kinematics."""
    shutil.copy(HERE / "inside.py", bench.folder)
    asked = {"target": arm.fk(arm.TARGET), "seed": arm.SEED, "methods": methods}
    variables = {} if compiled else INTERPRETED
    command = (bench.bin / "python", "inside.py", json.dumps(asked))
    found = json.loads(bench.run(*command, **variables).splitlines()[-1])
    if bench.folder / "venv" not in Path(found.pop("file")).parents:
        raise StepError("dls_ik was imported from somewhere else than the environment")
    if found.pop("compiled") != compiled:
        raise StepError("the kernels were not run as they were to be")
    for method, answer in found.pop("answers").items():
        if not answer["success"]:
            raise StepError(f"{method} found no solution")
        check(method, answer["q"])
    return found


def use_command(bench: Bench, compiled: bool) -> None:
    """``dls-ik info`` and ``dls-ik solve``, with what they print as JSON."""
    variables = {} if compiled else INTERPRETED
    command = bench.bin / "dls-ik"
    about = json.loads(bench.run(command, "info", "wam", "--quick", "--json", **variables))
    if about["name"] != "wam7":
        raise StepError(f"dls-ik info names the robot {about['name']}")
    arguments = ("solve", "wam", "--matrix", numbers(arm.fk(arm.TARGET)), "--timeout", "30")
    answer = json.loads(bench.run(command, *arguments, "--json", **variables))["answers"][0]
    check("dls-ik solve", list(answer["joints"].values()))


def numbers(T: arm.Matrix) -> str:
    """A matrix as the option ``--matrix`` takes it."""
    return " ".join(repr(each) for row in T for each in row)


def check(who: str, q: list[float]) -> None:
    """Check joint values by kinematics that are not the package's."""
    if wrong := arm.objection(q):
        raise StepError(f"{who}: {wrong}")
