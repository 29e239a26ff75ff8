# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""All fixed targets of figure 4 of Buss & Kim 2004: our means beside the printed figures.

The 10 000 targets are deterministic, so that the means over all of them have no sampling error. The
reading is "as published" of dls_ik/reproduce/buss_kim_figure_4.py. Means over the targets not
reached are multiplied as in the paper. All targets take 7 minutes of one core.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser
from dls_ik.reproduce.buss_kim_figure_4 import (
    COPIED,
    FIGURE_4_METHODS,
    MEAN_KEYS,
    PRINTED_TARGETS,
    RULES_AS_PUBLISHED,
    Traces,
    groups_of,
    printed_rows,
    run_in_groups,
)
from dls_ik.reproduce.buss_kim_shapes import DOUBLE_Y
from dls_ik.reproduce.experiment import NoProgress

COLUMNS = columns(
    "targets; number :d; method; figure; ours :.7g; printed :.7g; difference [%] :+.2f; "
    "standard error [%] :.2f; remark"
)


def compared(traces: Traces) -> list[list[Any]]:
    """Return a row for each printed figure, in the order of COLUMNS.

    The standard error is that of our mean if the targets were drawn at random. It is the scale of
    the differences that a few chaotic runs cause.

    Args:
        traces: Element [target][method] has the summed distances of a run at each step.
    """
    rules = RULES_AS_PUBLISHED
    printed = {(row.get("group"), row.get("method")): row for row in printed_rows()}
    groups = groups_of(traces, FIGURE_4_METHODS, rules)
    share, theirs = 100.0 * groups[0].counts[1] / len(traces), printed[None, None]["share"]
    rows = [_row("all", len(traces), "any", "reached [%]", share, theirs)]
    for group in groups:
        for method in FIGURE_4_METHODS:
            ours, values = group.row(rules, method), group.samples[method]
            errors = values.std(axis=0) / len(values) ** 0.5
            relative = errors / np.where(values.any(axis=0), np.abs(values.mean(axis=0)), np.inf)
            for key, error in zip(MEAN_KEYS, relative.tolist(), strict=True):
                remark = "copied" if (group.name, method, key) in COPIED else ""
                theirs = printed[group.name, method][key]
                name = {"wins": "wins [%]"}.get(key, key)
                start = (group.name, group.counts[0], method, name)
                rows.append(_row(*start, ours[key], theirs, 100.0 * error, remark))
    return rows


def _row(
    targets: str,
    number: int,
    method: str,
    figure: str,
    ours: float,
    theirs: float,
    error: float | None = None,
    remark: str = "",
) -> list[Any]:
    """Return a row; the relative difference is None if the printed figure is 0."""
    difference = 100.0 * (ours / theirs - 1.0) if theirs else None
    return [targets, number, method, figure, ours, theirs, difference, error, remark]


def write_csv(path: Path, rows: Sequence[Sequence[Any]]) -> None:
    """Write rows of COLUMNS as a CSV file; None is an empty field."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([column.name for column in COLUMNS])
        for row in rows:
            cells = zip(row, COLUMNS, strict=True)
            writer.writerow(["" if x is None else f"{x:{column.form}}" for x, column in cells])


def main() -> None:
    """Run, compare, and write the rows."""
    options = parser(__doc__, samples=PRINTED_TARGETS)
    options.add_argument("--csv", type=Path, metavar="FILE", help="write the rows there")
    given = options.parse_args()
    start = (given.samples, DOUBLE_Y.robot(), FIGURE_4_METHODS, RULES_AS_PUBLISHED)
    traces = [target for some in run_in_groups(*start, NoProgress(), "") for target in some]
    rows = compared(traces)
    if given.csv is not None:
        write_csv(given.csv, rows)
    finish(given, [Table(f"{given.samples} fixed targets of figure 4", COLUMNS, rows)])


if __name__ == "__main__":
    guarded(main)
