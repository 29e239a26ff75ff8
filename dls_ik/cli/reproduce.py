"""``dls-ik reproduce``: a published table or figure, run again."""

import signal
import sys
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from dls_ik.cli.group import INTERRUPTED
from dls_ik.cli.output import STDOUT, check_writable, write_whole
from dls_ik.cli.progress import Bars
from dls_ik.cli.tables import stdout_console
from dls_ik.cli.terminal import show
from dls_ik.reproduce.document import check_suffix, document_files
from dls_ik.reproduce.experiment import Experiment, begin, complete
from dls_ik.reproduce.picture import check_picture, save_picture
from dls_ik.reproduce.registry import ALL, EXPERIMENTS, experiment
from dls_ik.reproduce.report import Reproduction, reports_json

DEFAULT_REPORT = "dls-ik-reproduction.html"

Run = list[tuple[Experiment, Reproduction]]


@click.command(
    epilog=f"WHAT is one of {', '.join(EXPERIMENTS)}, or {ALL} for a report of them.",
    short_help="Run a published experiment again.",
)
@click.argument("what", type=click.Choice([*EXPERIMENTS, ALL]), metavar="WHAT")
@click.option("--samples", type=int, help="How many; each experiment has its default.")
@click.option("--seed", type=click.IntRange(0, 2**63 - 1), default=0, show_default=True)
@click.option("--json", "json_path", metavar="FILE", help="Write the figures there; - for stdout.")
@click.option("--plot", "plot_path", metavar="FILE", help="Draw them there: .png, .svg or .pdf.")
@click.option(
    "--report",
    "report_path",
    metavar="FILE",
    help=f"Write tables and pictures there: .md or .html. Default of {ALL}: {DEFAULT_REPORT}.",
)
def reproduce(
    what: str,
    samples: int | None,
    seed: int,
    json_path: str | None,
    plot_path: str | None,
    report_path: str | None,
) -> None:
    """Run a published experiment again, and show it beside the printed figures."""
    if what == ALL and plot_path is not None:
        raise click.UsageError(
            f"--plot draws one experiment; the pictures of {ALL} are in --report"
        )
    if what == ALL and report_path is None:
        report_path = DEFAULT_REPORT
    _check_outputs(json_path, plot_path, report_path)
    experiments = [experiment(name) for name in (EXPERIMENTS if what == ALL else [what])]
    run: Run = [(each, begin(each, _enough(each, what, samples), seed)) for each in experiments]
    interrupted = _complete(run, quiet=json_path == STDOUT)
    finished = [pair for pair in run if pair[1].rows or pair[1].complete]
    if json_path is not None:
        _write_json(json_path, what, run if what != ALL else finished)
    if plot_path is not None and finished:
        _write_picture(plot_path, *finished[0])
    if report_path is not None and finished:
        _write_report(report_path, finished)
    if interrupted:
        sys.exit(INTERRUPTED)


def _enough(each: Experiment, what: str, samples: int | None) -> int | None:
    """As many as asked for; of all experiments some need more to show anything."""
    if what != ALL or samples is None or samples < 1:
        return samples
    return max(samples, each.least_samples)


def _check_outputs(json_path: str | None, plot_path: str | None, report_path: str | None) -> None:
    """Refuse before the work begins what could not be written after it."""
    if STDOUT in (plot_path, report_path):
        raise click.UsageError("only --json can write to standard output")
    if plot_path is not None:
        check_picture(Path(plot_path))
    if report_path is not None:
        check_suffix(Path(report_path))
    check_writable([path for path in (json_path, plot_path, report_path) if path is not None])


def _complete(run: Run, quiet: bool) -> bool:
    """Run and show the experiments one after the other; return whether Ctrl-C ended it."""
    console = stdout_console()
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background job ignores it
    try:
        for each, report in run:
            try:
                with Bars(Console(stderr=True)) as bars:
                    complete(each, report, bars)
            finally:
                if not quiet and (report.rows or report.complete):
                    show(console, each, report)
    except KeyboardInterrupt:
        click.echo("dls-ik: interrupted; what was finished is kept", err=True)
        return True
    return False


def _write_json(path: str, what: str, run: Run) -> None:
    reports = [report for _, report in run]
    text = reports_json(what, reports) if what == ALL else reports[0].to_json()
    if path == STDOUT:
        click.echo(text)
    else:
        write_whole(path, lambda part: part.write_text(text + "\n", encoding="utf-8"))


def _write_report(path: str, run: Run) -> None:
    for file, content in document_files(Path(path), run).items():
        file.parent.mkdir(exist_ok=True)
        write_whole(str(file), partial(Path.write_bytes, data=content))
    click.echo(f"report: {path}", err=True)


def _write_picture(path: str, each: Experiment, report: Reproduction) -> None:
    write_whole(path, lambda part: save_picture(part, each.plot(report)))
