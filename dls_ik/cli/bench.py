"""``dls-ik bench``: methods side by side on the same random poses of a robot.

They are asked in turn, so that what slows the machine slows them all.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from rich.console import Console

from dls_ik.cli.exits import interrupted
from dls_ik.cli.options import ROBOT, find_robot, settings_option
from dls_ik.cli.output import check_writable, json_option, print_json, write_whole
from dls_ik.cli.terminal import Bars, print_table, stdout_console
from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dls_ik.model.robot import RobotModel
    from dls_ik.solver import IkSolver

KDL = "kdl_lma"
HEADINGS = ("method", "solved", "inside", "restarts", "steps", "median", "95 %", "batch", "faster")
WARM_UP = 3  # solves that do not count
REPEATS, ENOUGH = 9, 0.3  # batches at most, and the time from which they are enough [s]
TOLERANCE = 1e-9  # [rad or m] beyond a limit
Told = Callable[[int, int], None]


@click.command(
    epilog=f"{ROBOT} Exit codes: 0 done, 2 bad input, 130 after Ctrl-C, with what was finished."
)
@click.argument("robot", default="wam")
@click.option("--base", metavar="LINK", help="Where the chain begins.")
@click.option("--tip", metavar="LINK", help="Where it ends.")
@click.option(
    "--method", "methods", metavar="A,B,C", default="auto,ctp+sd+svf", show_default=True,
    help="Methods, by names with commas between them.",
)  # fmt: skip
@click.option(
    "--samples",
    type=click.IntRange(1, 10**7),
    default=1000,
    metavar="N",
    show_default=True,
    help="Poses.",
)
@click.option(
    "--seed",
    type=click.IntRange(0, 2**63 - 1),
    default=0,
    metavar="N",
    show_default=True,
    help="Of the poses.",
)
@click.option("--timeout", type=click.FloatRange(0.0, 3600.0), metavar="S", help="Of a pose.")
@settings_option
@click.option(
    "--reference", metavar="METHOD",
    help="What times are compared with.  [default: PyKDL's LMA where it works, else the first]",
)  # fmt: skip
@json_option
@click.option("--plot", "plot_path", metavar="FILE", help="Draw it there: .png, .svg or .pdf.")
def bench(
    robot: str,
    base: str | None,
    tip: str | None,
    methods: str,
    samples: int,
    seed: int,
    reference: str | None,
    as_json: bool,
    plot_path: str | None,
    timeout: float | None,
    settings: dict[str, Any],
) -> None:
    """Compare methods on random poses within reach of a robot.

    All methods get the same poses and the same random seeds, in turn. Without
    ROBOT it is the WAM's.
    """
    _check_picture(plot_path)
    model = find_robot(robot, base, tip)
    options = settings if timeout is None else {**settings, "timeout": timeout}
    solvers, name = _solvers(model, methods, reference, options)
    found = new_comparison(model, list(solvers), samples, seed)
    complete = _run_with_bar(found, list(solvers.values()))
    if not found.finished:
        interrupted("interrupted; no pose was finished yet")
    report = {
        "robot": model.name,
        "samples": samples,
        "finished": found.finished,
        "complete": complete,
        "seed": seed,
        "machine": _machine(),
        "reference": name,
        "methods": figures(found, name),
    }
    print_json(report) if as_json else _print_report(report)
    if plot_path is not None:
        _draw(found, plot_path)
    if not complete:
        interrupted(f"interrupted; {found.finished} of {samples} poses count")


def _check_picture(path: str | None) -> None:
    """Refuse before the work begins what could not be written after it."""
    if path is None:
        return
    from dls_ik.plot import check_picture

    check_picture(Path(path))
    check_writable([path])


def _solvers(
    robot: RobotModel, methods: str, reference: str | None, options: dict[str, Any]
) -> tuple[dict[str, IkSolver], str]:
    """A solver for each method by its name, in the order given, and the name of the reference.

    Raises:
        DlsIkError: a name or an option that is not valid.
    """
    from dls_ik.solver import IkSolver, announce_compilation_to

    announce_compilation_to(lambda words: click.echo(f"dls-ik: {words}", err=True))
    names = [name for name in (part.strip() for part in methods.split(",")) if name]
    if not names:
        raise click.UsageError("--method names one method or more, as auto,svf")
    solvers = [IkSolver(robot, name, **options) for name in names]
    if reference is not None:
        solvers.append(IkSolver(robot, reference, **options))
    else:
        with suppress(DlsIkError):  # no PyKDL, or a robot that it does not serve
            solvers.append(IkSolver(robot, KDL, **options))
    is_first = len(solvers) == len(names)
    return {each.method: each for each in solvers}, solvers[0 if is_first else -1].method


def _run_with_bar(found: Comparison, solvers: list[IkSolver]) -> bool:
    """Measure, with a bar on stderr; return whether it came to the end."""
    try:
        with Bars(Console(stderr=True)) as bars:
            run(found, solvers, bars.counter("solves"))
    except KeyboardInterrupt:
        return False
    return True


def _draw(found: Comparison, path: str) -> None:
    from dls_ik.plot import save_picture
    from dls_ik.plot.methods import solve_times

    done = slice(0, found.finished)
    times = {name: found.duration[m, done] for m, name in enumerate(found.methods)}
    solved = {name: found.success[m, done] for m, name in enumerate(found.methods)}
    title = f"{found.robot.name}: solved within a time, of {found.finished} random poses"
    picture = solve_times(times, solved, title)
    write_whole(path, lambda part: save_picture(part, picture))
    click.echo(f"picture: {path}", err=True)


@dataclass
class Comparison:
    """m methods on k poses; rows are filled in as poses are finished."""

    robot: RobotModel
    methods: Sequence[str]
    poses: Array  # (k, 4, 4)
    seeds: Array  # (k, n)
    finished: int = 0  # poses that every method was asked for
    success: NDArray[np.bool_] = field(init=False)  # (m, k)
    inside: NDArray[np.bool_] = field(init=False)  # (m, k) the answer is within the limits
    iterations: NDArray[np.int64] = field(init=False)  # (m, k)
    restarts: NDArray[np.int64] = field(init=False)  # (m, k)
    duration: Array = field(init=False)  # (m, k) [s]
    batch: list[float | None] = field(init=False)  # m times [s] for a batch of all poses

    def __post_init__(self) -> None:
        """Make room."""
        shape = len(self.methods), len(self.poses)
        self.success, self.inside = np.zeros(shape, bool), np.zeros(shape, bool)
        self.iterations, self.restarts = np.zeros(shape, int), np.zeros(shape, int)
        self.duration = np.zeros(shape)
        self.batch = [None] * len(self.methods)


def new_comparison(
    robot: RobotModel, methods: Sequence[str], samples: int, seed: int
) -> Comparison:
    """Random reachable poses, each with another random configuration to begin from."""
    rng = np.random.default_rng(seed)
    poses = robot.fk(robot.random(rng, samples))
    return Comparison(robot, methods, poses, robot.random(rng, samples))


def run(found: Comparison, solvers: Sequence[IkSolver], tell: Told) -> None:
    """Ask every method for every pose, one after the other, then for all of them at once."""
    for solver in solvers:
        for k in range(WARM_UP):
            i = k % len(found.poses)
            solver.solve(found.poses[i], found.seeds[i])
    total = len(found.poses) * len(solvers)
    for i in range(len(found.poses)):
        for turn in range(len(solvers)):
            m = (i + turn) % len(solvers)  # nobody always comes after the same one
            _solve(found, m, i, solvers[m])
        found.finished = i + 1
        tell(found.finished * len(solvers), total)
    for m, solver in enumerate(solvers):
        found.batch[m] = _batch_time(found, solver)


def _solve(found: Comparison, m: int, i: int, solver: IkSolver) -> None:
    begin = time.perf_counter()
    result = solver.solve(found.poses[i], found.seeds[i])
    found.duration[m, i] = time.perf_counter() - begin
    found.success[m, i] = result.success
    found.inside[m, i] = found.robot.within_limits(result.q, TOLERANCE)
    found.iterations[m, i], found.restarts[m, i] = result.iterations, result.restarts


def _batch_time(found: Comparison, solver: IkSolver) -> float:
    times: list[float] = []
    while len(times) < REPEATS and sum(times) < ENOUGH:
        begin = time.perf_counter()
        solver.solve_batch(found.poses, found.seeds)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def figures(found: Comparison, reference: str) -> list[dict[str, Any]]:
    """A row of figures for each method; times in [s], `faster` against the reference method."""
    done = slice(0, found.finished)
    medians = np.median(found.duration[:, done], axis=1)
    base = float(medians[list(found.methods).index(reference)])
    rows = []
    for m, name in enumerate(found.methods):
        p95 = float(np.percentile(found.duration[m, done], 95.0))
        iterations = float(found.iterations[m, done].mean())
        batch = found.batch[m]
        rows.append(
            {
                "method": name,
                "solved": float(found.success[m, done].mean()),
                "inside_limits": float(found.inside[m, done].mean()),
                "restarts": float(found.restarts[m, done].mean()),
                "iterations": None if name.startswith("kdl") else iterations,
                "median_time": float(medians[m]),
                "p95_time": p95,
                "batch_rate": None if batch is None else len(found.poses) / batch,
                "faster": base / float(medians[m]),
            }
        )
    return rows


def _machine() -> dict[str, Any]:
    """What the figures depend on."""
    packages = {name: version(name) for name in ("numba", "numpy")}
    return {"cores": os.cpu_count(), "python": platform.python_version(), **packages}


def _print_report(report: dict[str, Any]) -> None:
    """Print the figures for a person."""
    console = stdout_console()
    poses = f"{report['finished']} random poses within reach, seed {report['seed']}"
    console.print(f"{report['robot']}: {poses}", style="bold", markup=False)
    print_table(console, HEADINGS, [_cells(row) for row in report["methods"]])
    console.print(
        "inside: the answer is inside the joint limits; batch: all poses at once on "
        f"{report['machine']['cores']} cores; faster: median time of {report['reference']} over "
        "that of the method",
        style="dim",
        markup=False,
    )


def _cells(row: dict[str, Any]) -> list[str]:
    rate, steps = row["batch_rate"], row["iterations"]
    return [
        row["method"],
        f"{100.0 * row['solved']:.1f} %",
        f"{100.0 * row['inside_limits']:.1f} %",
        f"{row['restarts']:.2f}",
        "-" if steps is None else f"{steps:.1f}",
        _time(row["median_time"]),
        _time(row["p95_time"]),
        "-" if rate is None else f"{rate:.0f}/s",
        f"{row['faster']:.2f}x",
    ]


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} us" if seconds < 1e-2 else f"{1e3 * seconds:.0f} ms"
