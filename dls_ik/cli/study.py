# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik study``: methods compared on the same pairs of start and goal, with statistics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dls_ik.cli import output
from dls_ik.cli.options import ROBOT_HELP, plugin_option, settings_option
from dls_ik.cli.terminal import ChunkProgress, ProgressBars, stdout_console
from dls_ik.tables import print_note, print_table
from dls_ik.text import scaled, short

if TYPE_CHECKING:
    from dls_ik.study import Study, StudyResults
    from dls_ik.study.statistics import Comparison, Interval, Summary

STUDIED_METHODS = "auto,ctp+sd+svf"
FILE_SUFFIXES = (".toml", ".json")
RESULT_FORMATS = ("csv", "parquet")
EPILOG = (
    "STUDY is one or more robots, or a file of a study: TOML (docs/study.md), or the study.json of "
    f"an earlier one. {ROBOT_HELP} The same command continues an interrupted study. Exit codes: 0 "
    "done, 2 bad input, 130 after Ctrl-C."
)


@click.command(epilog=EPILOG, short_help="Compare methods on the same pairs, with statistics.")
@click.argument("subjects", nargs=-1, required=True, metavar="STUDY...")
@click.option(
    "--method", "methods", metavar="A,B,C", help=f"Methods.  [default: {STUDIED_METHODS}]"
)
@click.option("--base", metavar="LINK", help="Base link of the robot, if there is one robot.")
@click.option("--tip", metavar="LINK", help="Tip link of the robot, if there is one robot.")
@click.option("--case", "cases", metavar="A,B", help="Pairs: far, near, limits, singular.")
@click.option("--pairs", type=int, metavar="N", help="Number of pairs per robot and case.")
@click.option("--seed", type=int, metavar="N", help="Seed of the pairs.")
@click.option("--metric", "metrics", metavar="A,B", help="Metrics, such as time,iterations.")
@click.option("--reference", metavar="METHOD", help="Compare with this method only.")
@plugin_option
@settings_option
@click.option("--out", metavar="FOLDER", help="Keep results and statistics; needed to resume.")
@click.option(
    "--format",
    "table_format",
    type=click.Choice(RESULT_FORMATS),
    default="csv",
    help="Format of the table of all solves.",
)
@click.option("--pictures", is_flag=True, help="Draw pictures into the folder.")
@click.option("--decisions", metavar="FILE.md", help="Write a decision table into a Markdown file.")
@click.option("--write-pairs", metavar="FOLDER", help="Only write the pairs, with checksums.")
@click.option("--scheduler", metavar="ADDRESS", help="Dask cluster, such as tcp://10.0.0.1:8786.")
@output.json_option
def study(
    subjects: tuple[str, ...],
    out: str | None,
    table_format: str,
    pictures: bool,
    decisions: str | None,
    write_pairs: str | None,
    scheduler: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Compare methods on the same pairs of start and goal of one or several robots."""
    if pictures and out is None:
        raise click.UsageError("--pictures needs --out FOLDER")
    from dls_ik.study.decisions import check_place, write_decisions

    if decisions is not None:
        check_place(Path(decisions))
    asked = _asked(subjects, **given)
    if write_pairs is not None:
        from dls_ik.study.pairs import write_pairs as write

        click.echo(write(asked, Path(write_pairs)), nl=False)
        return
    from dls_ik.study.statistics import comparisons, scipy_stats, summaries

    if decisions is not None:  # checked before the computation, which may take hours
        if "time" not in asked.metrics:
            raise click.UsageError("--decisions needs the metric time; add it by --metric")
        scipy_stats()
    results = _run(asked, out, scheduler, table_format)

    found = summaries(results)
    tests = _or_none(lambda: comparisons(results)) if len(asked.variants) > 1 else []
    if pictures and out is not None:
        from dls_ik.study.pictures import study_pictures

        for name, figure in study_pictures(results).items():
            output.save_plot(str(Path(out) / f"{name}.png"), figure)
    if decisions is not None:
        write_decisions(Path(decisions), asked, found, comparisons(results))
    if as_json:
        output.print_json(_document(asked, found, tests))
    else:
        _print(asked, found, tests)


def _or_none(compare: Any) -> list[Comparison] | None:
    """Return comparisons, or None with a warning if scipy is not installed."""
    from dls_ik.errors import OptionError

    try:
        return list(compare())
    except OptionError as error:
        output.warn(str(error))
        return None


def _asked(
    subjects: Sequence[str],
    methods: str | None,
    base: str | None,
    tip: str | None,
    cases: str | None,
    pairs: int | None,
    seed: int | None,
    metrics: str | None,
    reference: str | None,
    settings: dict[str, Any],
) -> Study:
    """Return the study of the command line; options change the entries of a file.

    Raises:
        click.UsageError: If a file is given next to robots, or --base or --tip with several robots.
        DlsIkError: If an entry is not valid.
    """
    from dls_ik.solver import announce_compilation_to
    from dls_ik.study.definition import read_study, study_of

    announce_compilation_to(output.warn)
    lists = {"methods": methods, "cases": cases, "metrics": metrics}
    entries: dict[str, Any] = {
        name: [word.strip() for word in words.split(",") if word.strip()]
        for name, words in lists.items()
        if words is not None
    }
    numbers = {"pairs": pairs, "seed": seed, "reference": reference}
    entries |= {name: value for name, value in numbers.items() if value is not None}
    is_file = [Path(subject).suffix in FILE_SUFFIXES for subject in subjects]
    if any(is_file):
        if len(subjects) > 1:
            raise click.UsageError("give either one file of a study, or robots")
        if settings or base or tip:
            raise click.UsageError("--set, --base and --tip belong into the file of the study")
        return read_study(subjects[0], entries)
    if (base or tip) and len(subjects) > 1:
        raise click.UsageError(
            "--base and --tip need one robot; a file of a study has them by robot"
        )
    chosen = {name: link for name, link in (("base", base), ("tip", tip)) if link}
    robots = [{"file": subject, **chosen} for subject in subjects]
    entries.setdefault("methods", STUDIED_METHODS.split(","))
    return study_of({"robots": robots, "options": settings, **entries})


def _run(asked: Study, out: str | None, scheduler: str | None, table_format: str) -> StudyResults:
    """Run a study; after Ctrl-C, exit with a message that explains how to continue."""
    from dls_ik.study.run import run_study

    bars = ProgressBars()
    size = len(asked.robots) * len(asked.cases) * asked.pairs
    names = asked.robots[0].name if len(asked.robots) == 1 else f"{len(asked.robots)} robots"
    progress = ChunkProgress(f"{names}: {size} pairs, {len(asked.variants)} methods", bars)
    try:
        with bars:
            return run_study(asked, out, scheduler, progress, table_format)
    except KeyboardInterrupt:
        kept = "nothing is kept without --out FOLDER"
        if out is not None:
            kept = f"{progress.done} chunks are kept in {out}; the same command continues the study"
        output.exit_interrupted(f"interrupted; {kept}")


def _document(
    asked: Study, found: Sequence[Summary], tests: Sequence[Comparison] | None
) -> dict[str, Any]:
    """Return study, summaries and comparisons as a JSON document."""

    def interval(each: Interval) -> dict[str, float]:
        return each._asdict()

    return {
        "study": asked.as_json(),
        "summary": [
            {
                **each._asdict(),
                "solved": interval(each.solved),
                "medians": {name: interval(value) for name, value in each.medians.items()},
            }
            for each in found
        ],
        "comparisons": None
        if tests is None
        else [
            {**each._asdict(), "effect": interval(each.effect), "better": each.better}
            for each in tests
        ],
    }


def _print(asked: Study, found: Sequence[Summary], tests: Sequence[Comparison] | None) -> None:
    """Print a table for each robot and case."""
    console = stdout_console()
    groups = dict.fromkeys((each.robot, each.case) for each in found)
    metrics = asked.metrics
    headings = ["method", "solved", "95 %", "inside"]
    headings += metrics
    if tests is not None:
        headings += ["better than", "worse than"]
    for robot, case in groups:
        rows = [each for each in found if (each.robot, each.case) == (robot, case)]
        about = f"{robot}, {case}: {rows[0].pairs} pairs, seed {asked.seed}"
        console.print(about, style="bold", markup=False, soft_wrap=True)
        print_table(console, headings, [_cells(each, metrics, tests) for each in rows])
        console.print()
    print_note(
        console,
        "solved: within the tolerances and the joint limits; 95 %: its confidence interval; "
        "inside: answers within the joint limits; metrics: medians over the solved pairs, the time "
        "is that of the processor; better, worse: number of methods that solve significantly fewer "
        "or more pairs (McNemar's test, Holm's correction, 5 %)",
    )


def _cells(each: Summary, metrics: Sequence[str], tests: Sequence[Comparison] | None) -> list[str]:
    """Return the cells of the row of a method."""
    _, low, high = (100.0 * number for number in each.solved)
    cells = [each.method, f"{100.0 * each.solved.value:.1f} %", f"{low:.1f} - {high:.1f}"]
    cells.append(f"{100.0 * each.inside:.1f} %")
    values = ((metric, each.medians[metric].value) for metric in metrics)
    cells += [_number(value, "s" if metric == "time" else "") for metric, value in values]
    if tests is not None:
        mine = [
            t
            for t in tests
            if (t.robot, t.case, t.metric) == (each.robot, each.case, "solved")
            and each.method in (t.first, t.second)
        ]
        cells.append(str(sum(t.better == each.method for t in mine)))
        cells.append(str(sum(t.better not in ("", each.method) for t in mine)))
    return cells


def _number(value: float, unit: str) -> str:
    if value != value:
        return "-"
    return scaled(value, unit, 3) if unit else short(value, 3)
