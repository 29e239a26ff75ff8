"""The table, and the same as JSON."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from install_matrix.bench import FAILED, NOT_RUN, PASSED, Step
from install_matrix.rows import Row

HEAD = ("row", "from", "Python", "numba", "numpy", "steps passed", "seconds", "result")


class Outcome(NamedTuple):
    """A row when it is through."""

    row: Row
    state: str  # PASSED, FAILED or NOT_RUN
    steps: list[Step]
    facts: dict[str, str]  # versions that were installed
    words: str = ""  # of a row that has not passed, why

    def cells(self) -> tuple[str, ...]:
        """The row of the table."""
        passed = sum(step.state == PASSED for step in self.steps)
        versions = [self.facts.get(name, "-") for name in ("python", "numba", "numpy")]
        return (
            self.row.name,
            self.row.artefact,
            *versions,
            f"{passed}/{len(self.steps)}" if self.steps else "-",
            f"{sum(step.seconds for step in self.steps):.0f}",
            self.state if self.state == PASSED else f"{self.state}: {self.words}",
        )

    def document(self) -> dict[str, Any]:
        """All that is known of it."""
        steps = [step._asdict() for step in self.steps]
        about = {"row": self.row.name, "artefact": self.row.artefact, "asked": self.row.asked}
        return {**about, **self.facts, "state": self.state, "words": self.words, "steps": steps}


def machine() -> str:
    """What it ran on, in a line."""
    load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
    cores = len(os.sched_getaffinity(0))
    return f"{platform.system()} {platform.machine()}, {cores} cores, load {load}"


def table(outcomes: Sequence[Outcome], compiled: bool) -> str:
    """Where it was, columns under their heads, and a line that counts."""
    lines = [HEAD, *(each.cells() for each in outcomes)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD) - 1)]
    text = ["  ".join([*map(str.ljust, line, widths), line[-1]]).rstrip() for line in lines]
    counts = [f"{sum(o.state == s for o in outcomes)} {s}" for s in (PASSED, FAILED, NOT_RUN)]
    kernels = "compiled, and interpreted with ROS" if compiled else "interpreted"
    head = f"{time.strftime('%Y-%m-%d')}, {machine()}; kernels {kernels}"
    return "\n".join([head, "", *text, "", ", ".join(counts)])


def write_json(path: Path, outcomes: Sequence[Outcome], compiled: bool) -> None:
    """All steps with their times; `compiled` says whether kernels were."""
    document = {
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "machine": machine(),
        "kernels_compiled": compiled,
        "rows": [outcome.document() for outcome in outcomes],
    }
    path.write_text(json.dumps(document, indent=1) + "\n")
