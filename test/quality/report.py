"""What is said of mutants: the score of each package, and every one that no test noticed."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from rich import box
from rich.table import Table

from quality.mutants import Mutant, changed_lines


class Verdict(NamedTuple):
    """What became of a mutant."""

    mutant: Mutant
    old: str
    new: str
    end: str  # killed, out of time, equivalent, survived
    tests: int

    @property
    def package(self) -> str:
        return "/".join(self.mutant.path.split("/")[:2])


def lines_of(root: Path, mutant: Mutant) -> tuple[str, str]:
    """The line as it is and as the mutant has it."""
    return changed_lines((root / mutant.path).read_text(), mutant.code(root))


def described(verdict: Verdict) -> str:
    mutant = verdict.mutant
    asked = f"{verdict.tests} tests passed" if verdict.tests else "no test runs the line"
    return (
        f"survived: {mutant.path}:{mutant.line} ({mutant.operator.partition('/')[2]} "
        f"{mutant.occurrence}; {asked})\n  - {verdict.old}\n  + {verdict.new}"
    )


def score_table(verdicts: list[Verdict]) -> Table:
    """Killed of those that can be, by package."""
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
