"""The command ``scripts/matrix``."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
from pathlib import Path

from install_matrix.bench import FAILED, NOT_RUN, PASSED, Bench, StepError
from install_matrix.interpreters import find_first, why_not
from install_matrix.library import try_library
from install_matrix.report import Outcome, machine, table, write_json
from install_matrix.ros import try_ros
from install_matrix.rows import ROS_PYTHONS, Row, chosen
from install_matrix.source import Artefacts, build_artefacts, find_artefacts

ABOUT = """Install dls_ik in many environments, solve there, and print what passed.

Builds the wheel and the sdist of this checkout. Each row is a virtual environment in a temporary
folder, removed after it, with another Python, numba and numpy, or with rclpy from wheels. Poses are
solved for outside the checkout by several methods without compilation, by the default method
compiled, and by dls-ik; the answers are checked by kinematics that are not the package's. Rows with
ROS start ik_node, call compute_ik, and run colcon build, colcon test and colcon test-result, all
without compilation, which the other rows have. A row takes one to three minutes of a core."""
EPILOG = (
    "Exit codes: 0 all that could be run passed, 1 one or more did not, 2 bad input, 130 Ctrl-C."
)


def main() -> int:
    """Run the rows that are asked for; return the exit code."""
    options = _parser().parse_args()
    try:
        rows = chosen(options.only)
    except ValueError as error:
        print(f"matrix: {error}", file=sys.stderr)
        return 2
    if options.list:
        print("\n".join(f"{row.name:12}  {row.artefact:5}  {row.asked}" for row in rows))
        return 0
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # the folder goes then too
    print(f"matrix: {machine()}", file=sys.stderr)
    try:
        outcomes = _all(rows, options)
    except StepError as error:
        print(f"matrix: no wheel and sdist to install: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nmatrix: stopped", file=sys.stderr)
        return 130
    print(table(outcomes, not options.interpreted))
    if options.json is not None:
        write_json(options.json, outcomes, not options.interpreted)
    return int(any(outcome.state == FAILED for outcome in outcomes))


def _parser() -> argparse.ArgumentParser:
    plain = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "matrix", description=ABOUT, epilog=EPILOG, formatter_class=plain
    )
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME",
        help="rows with this in their names; may be given again",
    )  # fmt: skip
    parser.add_argument("--list", action="store_true", help="list the rows, run none")
    parser.add_argument(
        "--interpreted",
        action="store_true",
        help="never compile kernels: seconds instead of minutes",
    )
    parser.add_argument(
        "--dist",
        type=Path,
        metavar="FOLDER",
        help="install the wheel and the sdist of this folder, such as dist of scripts/release",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every step there too")
    parser.add_argument("--nice", type=int, default=15, metavar="N", help="default: %(default)s")
    parser.add_argument(
        "--patience", type=float, default=1800.0, metavar="S", help="for a command [s]; %(default)s"
    )
    return parser


def _all(rows: list[Row], options: argparse.Namespace) -> list[Outcome]:
    with tempfile.TemporaryDirectory(prefix="dls_ik_matrix_") as folder:
        artefacts = _artefacts(folder, options)
        return [_one(row, artefacts, Path(folder), options) for row in rows]


def _artefacts(folder: str, options: argparse.Namespace) -> Artefacts:
    if options.dist is not None:
        return find_artefacts(options.dist.resolve())
    print("build", file=sys.stderr)
    found = find_first(ROS_PYTHONS)
    if found is None:
        raise StepError(why_not(ROS_PYTHONS))
    bench = Bench(_folder(folder, "build"), options.nice, options.patience)
    return build_artefacts(bench, found[0])


def _one(row: Row, artefacts: Artefacts, folder: Path, options: argparse.Namespace) -> Outcome:
    print(row.name, file=sys.stderr)
    found = find_first(row.pythons)
    if row.impossible or found is None:
        return Outcome(row, NOT_RUN, [], {}, row.impossible or why_not(row.pythons))
    bench = Bench(_folder(folder, row.name), options.nice, options.patience)
    artefact = artefacts.wheel if row.artefact == "wheel" else artefacts.sdist
    try:
        if row.ros:
            facts = try_ros(bench, row, found[0], artefact)
        else:
            facts = try_library(bench, row, found[0], artefact, not options.interpreted)
    except StepError as error:
        last = bench.steps[-1]
        return Outcome(row, FAILED, bench.steps, {"python": found[1]}, f"{error}: {last.words}")
    finally:
        shutil.rmtree(bench.folder, ignore_errors=True)
    return Outcome(row, PASSED, bench.steps, facts)


def _folder(parent: str | Path, name: str) -> Path:
    """A new folder, by its name without symbolic links, as Python names its own."""
    folder = Path(parent).resolve() / name
    folder.mkdir()
    return folder
