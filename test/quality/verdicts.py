# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Verdicts on mutants: equivalent ones, scores by package, and those that no test noticed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich import box
from rich.table import Table

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

if TYPE_CHECKING:
    from quality.mutants import Mutant

EXPLAINED = Path(__file__).with_name("equivalent.toml")
NUMBER = re.compile(r"\b\d+\.?\d*(?:e[+-]?\d+)?\b")
LAST = re.compile(r"(?<=\.shape\[) ?-1(?=\])")


class Verdict(NamedTuple):
    """End of a mutant."""

    mutant: Mutant
    old: str
    new: str
    end: str  # killed, out of time, equivalent, survived
    tests: int

    @property
    def package(self) -> str:
        return "/".join(self.mutant.path.split("/")[:2])


# Equivalent mutants


def explained() -> dict[tuple[str, str, str], str]:
    """Return the reasons by file, old line and new line."""
    rows = tomllib.loads(EXPLAINED.read_text()).get("mutant", [])
    return {(row["file"], row["old"], row["new"]): row["why"] for row in rows}


def is_same(old: str, new: str) -> bool:
    """Return True if a change of a line changes nothing.

    A number may be written otherwise, as 1e150 + 1 is 1e150. The last dimension of a vector is the
    first one; for a matrix another mutant changes that index.
    """
    return _plain(old) == _plain(LAST.sub("0", new))


def _plain(line: str) -> str:
    return NUMBER.sub(lambda found: repr(float(found[0])), line).replace(" ", "")


def changed_lines(old: str, new: str) -> tuple[str, str]:
    """Return the lines that a mutant removes and inserts, without indentation."""
    before, after = old.splitlines(), new.splitlines()
    same = sum(1 for _ in _common(before, after))
    tail = sum(1 for _ in _common(before[same:][::-1], after[same:][::-1]))
    return _text(before[same : len(before) - tail]), _text(after[same : len(after) - tail])


def _common(a: list[str], b: list[str]) -> Iterator[str]:
    for x, y in zip(a, b, strict=False):
        if x != y:
            return
        yield x


def _text(lines: list[str]) -> str:
    return " ".join(line.strip() for line in lines)


# Report


def described(verdict: Verdict) -> str:
    mutant = verdict.mutant
    asked = f"{verdict.tests} tests passed" if verdict.tests else "no test runs the line"
    return (
        f"survived: {mutant.path}:{mutant.line} ({mutant.operator.partition('/')[2]} "
        f"{mutant.occurrence}; {asked})\n  - {verdict.old}\n  + {verdict.new}"
    )


def score_table(verdicts: list[Verdict]) -> Table:
    """Return the share of mutants killed, by package."""
    table = Table(box=box.SIMPLE_HEAD)
    table.add_column("package")
    for heading in ("mutants", "killed", "out of time", "equivalent", "survived", "score [%]"):
        table.add_column(heading, justify="right")
    packages = sorted({verdict.package for verdict in verdicts})
    for name in [*packages, "all"][: len(packages) + (len(packages) > 1)]:
        ends = Counter(v.end for v in verdicts if name in ("all", v.package))
        table.add_row(name, *_row(ends))
    return table


def _row(ends: Counter) -> list[str]:
    killed, survived = ends["killed"] + ends["out of time"], ends["survived"]
    score = 100.0 * killed / max(1, killed + survived)
    counts = (ends.total(), ends["killed"], ends["out of time"], ends["equivalent"], survived)
    return [*map(str, counts), f"{score:.1f}"]
