"""What a soak came to: tables, verdicts and a picture."""

from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import finish
from benchmarks.soak_plot import draw_soak
from benchmarks.soak_verdict import (
    Verdict,
    count_table,
    has_priority,
    late_table,
    memory_table,
    verdicts,
)
from dls_ik import DlsIkError
from dls_ik.plot import save_picture

SHORTEST = 10  # samples


class Measured(NamedTuple):
    """What was measured."""

    samples: list[dict[str, Any]]  # one a second
    late: dict[str, np.ndarray]  # [s] of each cycle of the node and of the idle loop
    counts: dict[str, int]
    worst_call: float  # [s]
    exit_code: int | None


def report(soak: Measured, given: Any, before: dict[str, Any], interrupted: bool) -> int:
    """Show and save what was measured; return the exit code."""
    if len(soak.samples) < SHORTEST:
        raise DlsIkError("too short to say anything: less than 10 s")
    late, counts, code = soak.late, soak.counts, soak.exit_code
    found = [
        *verdicts(soak.samples, late, counts, given.rate),
        Verdict(code == 0, f"the node ended with exit code {code}"),
    ]
    tables = [memory_table(soak.samples), late_table(late, given.rate), count_table(counts)]
    minutes = soak.samples[-1]["time"] / 60.0
    notes = [f"{minutes:.1f} minutes at {given.rate} Hz, {given.clients} clients, seed "
             f"{given.seed}{', interrupted' if interrupted else ''}", *notes_of(soak),
             *map(str, found)]  # fmt: skip
    if given.plot:
        title = f"{minutes:.3g} minutes at {given.rate} Hz with {given.clients} clients"
        save_picture(given.plot, draw_soak(soak.samples, given.rate, title))
    with suppress(OSError):  # a terminal that was closed
        finish(given.json, before, tables, notes)
    if any(verdict.holds is False for verdict in found):
        return 1
    return 130 if interrupted else 0


def notes_of(soak: Measured) -> list[str]:
    """Figures that no table has."""
    last, first = soak.samples[-1], soak.samples[0]
    share = (last["processor"] - first["processor"]) / (last["time"] - first["time"])
    away = float(np.median([sample["away"] for sample in soak.samples]))
    loads = [sample["load"] for sample in soak.samples]
    kind = "real-time" if has_priority(soak.samples) else "ordinary"
    return [
        f"the loop of the node has {kind} priority, the idle loop an ordinary one",
        f"the node took {100.0 * share:.0f} % of a core; the longest call {soak.worst_call:.3f} s",
        f"the tip was {1e3 * away:.1f} mm behind the target, median of all seconds",
        f"load average from {min(loads):.1f} to {max(loads):.1f}, median {np.median(loads):.1f}",
    ]
