"""``dls-ik bench``: methods side by side on the same random poses of a robot."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dls_ik.cli.document import json_option, print_json
from dls_ik.cli.group import interrupted
from dls_ik.cli.robot import ROBOT, find_robot
from dls_ik.cli.solving import settings_option
from dls_ik.exceptions import DlsIkError

if TYPE_CHECKING:
    from dls_ik.cli.comparison import Comparison
    from dls_ik.model.robot import RobotModel
    from dls_ik.solver import IkSolver

KDL = "kdl_lma"


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
    from dls_ik.cli.bench_report import machine, print_report
    from dls_ik.cli.comparison import figures, new_comparison

    model = find_robot(robot, base, tip)
    options = settings if timeout is None else {**settings, "timeout": timeout}
    solvers, name = _solvers(model, methods, reference, options)
    found = new_comparison(model, list(solvers), samples, seed)
    complete = _run(found, list(solvers.values()))
    if not found.finished:
        interrupted("interrupted; no pose was finished yet")
    report = {
        "robot": model.name,
        "samples": samples,
        "finished": found.finished,
        "complete": complete,
        "seed": seed,
        "machine": machine(),
        "reference": name,
        "methods": figures(found, name),
    }
    print_json(report) if as_json else print_report(report)
    if plot_path is not None:
        _draw(found, plot_path)
    if not complete:
        interrupted(f"interrupted; {found.finished} of {samples} poses count")


def _check_picture(path: str | None) -> None:
    """Refuse before the work begins what could not be written after it."""
    if path is None:
        return
    from dls_ik.cli.output import check_writable
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


def _run(found: Comparison, solvers: list[IkSolver]) -> bool:
    """Measure, with a bar on stderr; return whether it came to the end."""
    from rich.console import Console

    from dls_ik.cli.comparison import run
    from dls_ik.cli.progress import Bars

    try:
        with Bars(Console(stderr=True)) as bars:
            run(found, solvers, bars.counter("solves"))
    except KeyboardInterrupt:
        return False
    return True


def _draw(found: Comparison, path: str) -> None:
    from dls_ik.cli.output import write_whole
    from dls_ik.plot import save_picture
    from dls_ik.plot.solve_times import solve_times

    done = slice(0, found.finished)
    times = {name: found.duration[m, done] for m, name in enumerate(found.methods)}
    solved = {name: found.success[m, done] for m, name in enumerate(found.methods)}
    title = f"{found.robot.name}: solved within a time, of {found.finished} random poses"
    picture = solve_times(times, solved, title)
    write_whole(path, lambda part: save_picture(part, picture))
    click.echo(f"picture: {path}", err=True)
