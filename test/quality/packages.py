# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Table of ``scripts/coverage``: lines that tests run, by package, and those that none runs."""

import json
import sys
from collections import defaultdict
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table

MIN_SHARE = 95.0  # [%] minimum share of all lines
SHOWN = 15  # files with most lines that no test runs


def by_package(files: dict) -> dict[str, list[int]]:
    """Return lines and lines run of each folder in ``dls_ik``."""
    found = defaultdict(lambda: [0, 0])
    for name, file in files.items():
        parts = Path(name).parts
        row = found["/".join(parts[:2]) if len(parts) > 2 else "dls_ik"]
        row[0] += file["summary"]["num_statements"]
        row[1] += file["summary"]["covered_lines"]
    return dict(sorted(found.items()))


def table(rows: dict[str, list[int]]) -> Table:
    made = Table(box=box.SIMPLE_HEAD)
    for heading in ("package", "lines", "run", "[%]"):
        made.add_column(heading, justify="left" if heading == "package" else "right")
    for name, (lines, run) in rows.items():
        made.add_row(name, str(lines), str(run), f"{share(lines, run):.1f}")
    return made


def share(lines: int, run: int) -> float:
    return 100.0 * run / max(1, lines)


def main(report: str) -> None:
    out = Console(highlight=False, soft_wrap=True)
    files = json.loads(Path(report).read_text())["files"]
    rows = by_package(files)
    total = [sum(column) for column in zip(*rows.values(), strict=True)]
    out.print(table({**rows, "all": total}))
    missed = sorted(files.items(), key=lambda item: -item[1]["summary"]["missing_lines"])
    for name, file in missed[:SHOWN]:
        if file["missing_lines"]:
            out.print(f"  not run: {name}: {ranges(file['missing_lines'])}", markup=False)
    if share(*total) < MIN_SHARE:
        sys.exit(f"coverage: {share(*total):.1f} % of all lines, needed are {MIN_SHARE:.0f} %")


def ranges(lines: list[int]) -> str:
    """Return ``1-3, 7`` for 1, 2, 3, 7."""
    runs: list[list[int]] = []
    for line in lines:
        if runs and line == runs[-1][1] + 1:
            runs[-1][1] = line
        else:
            runs.append([line, line])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


if __name__ == "__main__":
    main(sys.argv[1])
