# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Decision table of a study: for each case the methods that solve most, and their costs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dls_ik.errors import OptionError
from dls_ik.solver.method import AUTO_METHOD
from dls_ik.study.definition import CASES, Study
from dls_ik.study.statistics import ALL_ROBOTS, SUCCESS, Comparison, Summary
from dls_ik.text import scaled

START, END = "<!-- decisions of dls-ik study -->\n", "<!-- end of decisions -->\n"


def decision_tables(study: Study, found: Sequence[Summary], tests: Sequence[Comparison]) -> str:
    """Return two Markdown tables over all robots of a study.

    The first table has a row for each case: the method that solves most pairs, the methods that do
    not solve significantly fewer, the fastest of these, and the best method without restarts. The
    second table has the share that each method solves in each case, and the median times of the
    method in the first and in the last case.

    Args:
        study: The study.
        found: Summaries of the study.
        tests: Comparisons of the study.

    Raises:
        OptionError: If the study does not have the metric time.
    """
    if "time" not in study.metrics:
        raise OptionError("a decision table needs the metric time; add it to the metrics")
    robot = ALL_ROBOTS if len(study.robots) > 1 else study.robots[0].name
    mine = [each for each in found if each.robot == robot]
    total = len(study.robots) * study.pairs
    lines = [
        f"{len(study.robots)} arms, {total} pairs of start and goal for each case, seed "
        f"{study.seed}.\n",
        "| pairs | most solved | not significantly fewer | fastest of these | single attempt |",
        "| --- | --- | --- | --- | --- |",
    ]
    for case in study.cases:
        rows = [each for each in mine if each.case == case]
        lines.append(f"| {case}: {CASES[case]} | {' | '.join(_choice(rows, tests))} |")
    columns = " | ".join(f"{case} [%]" for case in study.cases)
    lines += ["", f"| method | {columns} | time, {study.cases[0]} | {study.cases[-1]} |"]
    lines.append("| --- " * (3 + len(study.cases)) + "|")
    for variant in study.variants:
        rows = [each for each in mine if each.method == variant.label]
        shares = [_share(each) for each in rows]
        times = [scaled(rows[k].medians["time"].value, "s", 2) for k in (0, -1)]
        lines.append(f"| {' | '.join([f'`{variant.label}`', *shares, *times])} |")
    return "\n".join(lines) + "\n"


def _share(each: Summary) -> str:
    """Return the solved share with its interval as text, in percent."""
    share = each.solved
    return f"{100.0 * share.value:.1f} ({100.0 * share.low:.1f} to {100.0 * share.high:.1f})"


def _choice(rows: Sequence[Summary], tests: Sequence[Comparison]) -> list[str]:
    """Return the cells of a case: best, equally good, fastest, and best without restarts."""
    best = max(rows, key=_order)
    equal = [each for each in rows if each is not best and not _is_worse(each, best, tests)]
    fastest = min([best, *equal], key=lambda each: each.medians["time"].value)
    attempts = [each for each in rows if each.method.split()[0] != AUTO_METHOD]
    single = max(attempts, key=_order) if attempts else best
    others = ", ".join(f"`{each.method}`" for each in equal) or "-"
    time = scaled(fastest.medians["time"].value, "s", 2)
    return [
        f"`{best.method}`, {100.0 * best.solved.value:.1f} %",
        others,
        f"`{fastest.method}`, {time}",
        f"`{single.method}`, {100.0 * single.solved.value:.1f} %",
    ]


def _order(each: Summary) -> tuple[float, float]:
    """Return the sort key of a method: its share, then the speed."""
    return each.solved.value, -each.medians["time"].value


def _is_worse(each: Summary, best: Summary, tests: Sequence[Comparison]) -> bool:
    """Return whether a method solves significantly fewer pairs than the best method."""
    pair = {each.method, best.method}
    return any(
        test.better == best.method
        for test in tests
        if (test.robot, test.case, test.metric) == (best.robot, best.case, SUCCESS)
        and {test.first, test.second} == pair
    )


def check_place(path: Path) -> None:
    """Check that a Markdown file has a place for the tables, or does not exist yet.

    Raises:
        OptionError: If the file has no lines `START` and `END`, or cannot be read.
    """
    _read(path)


def _read(path: Path) -> str:
    """Return the text of a Markdown file; of a file that does not exist, an empty place."""
    try:
        text = path.read_text(encoding="utf-8") if path.exists() else START + END
    except (OSError, ValueError) as error:
        raise OptionError(f"cannot read {path}: {error}") from error
    if START not in text or END not in text.split(START, 1)[1]:
        raise OptionError(
            f"{path} has no place for the tables: add the lines {START.strip()} and {END.strip()}"
        )
    return text


def write_decisions(
    path: Path, study: Study, found: Sequence[Summary], tests: Sequence[Comparison]
) -> None:
    """Write the decision tables into a Markdown file, between the lines `START` and `END`.

    Args:
        path: The file; a file that does not exist is created.
        study, found, tests: See :func:`decision_tables`.

    Raises:
        OptionError: If the file has no such lines, or cannot be written.
    """
    tables = decision_tables(study, found, tests)
    before, rest = _read(path).split(START, 1)
    try:
        path.write_text(f"{before}{START}{tables}{END}{rest.split(END, 1)[1]}", encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write {path}: {error.strerror or error}") from error
