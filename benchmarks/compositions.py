# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Campaign of compositions: random interleaved inputs of a running node, judged independently.

Each run draws a robot, the parameters of a node and a start. Targets, services, live parameters,
robot descriptions, changes of the scene, late and missed cycles and bad joint states come in random
order. The judges share no code with the package: divided differences of the commands; the points of
trajectories, interpolated as joint_trajectory_controller does; speeds of the tip by own kinematics;
exact distances of commands and stops by coal; reasons of faults. A failure is reduced to the kinds
of events that it needs, and printed with the command that repeats it; the exit code is 1.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser, positive
from benchmarks.composition_events import (
    EVENTS,
    appear,
    change,
    convey,
    draw_intervals,
    draw_settings,
    draw_start,
    register_plugins,
)
from benchmarks.composition_judges import Figures, Finding, judge
from benchmarks.composition_stream import ARMS, Stream
from benchmarks.servo_runs import in_processes

STEPS = 1000  # cycles of a run
NEAR_CYCLES = 4  # weight of a cycle in motion near an object, for the intervals of events
REDUCED = 3  # number of printed failures that are reduced
PRINTED = 10
SHOWN = 12  # last events before a failure
JUDGES = (
    "position", "velocity", "acceleration", "jerk", "tip speed", "tip speed of a stop",
    "velocity between points", "acceleration between points",
)  # fmt: skip
TABLE = columns(
    "arm; runs :d; cycles :d; exact distances :d; least distance / distance to keep :.6f; "
    "failures :d; faults"
)
RATIOS = columns("arm; " + "; ".join(f"{name} :.6f" for name in JUDGES))
SPEED = columns("cycles :d; processor time [s] :.1f; cycles/s of one core :.0f")


class Run(NamedTuple):
    """Outcome of a run."""

    number: int
    name: str
    cycles: int
    figures: Figures
    script: tuple[str, ...]  # events until the first finding
    seconds: float  # processor time [s]


class Campaign:
    """Run of the campaign: a stream and its random events.

    Args:
        seed: of the campaign; number: of the run.
        name: of ARMS; empty: drawn.
        without: kinds of events that are left out.
    """

    def __init__(self, seed: int, number: int, name: str = "", without: Iterable[str] = ()) -> None:
        register_plugins()
        rng = np.random.default_rng([seed, number])
        drawn = list(ARMS)[rng.integers(len(ARMS))]
        settings = draw_settings(rng, name or drawn)
        q, values = draw_start(settings.name, rng, settings.min_distance)
        self.stream = Stream(settings, q, values, seed)
        kinds = enumerate(EVENTS)
        self._rngs = {kind: np.random.default_rng([seed, number, k + 1]) for k, kind in kinds}
        self._intervals = draw_intervals(rng)
        self._next = {kind: self._gap(kind) for kind in self._intervals if kind not in set(without)}
        self._clock = 0  # cycles, of which those in motion near something count several times
        for _ in range(rng.integers(2, 9)):
            appear(self.stream, rng, settings.min_distance + 0.01)
        self._jitter = np.random.default_rng([seed, number, 1000])
        self.script: list[tuple[int, str]] = []

    def _gap(self, kind: str) -> int:
        return int(self._rngs[kind].geometric(1.0 / self._intervals[kind]))

    def run(self, steps: int) -> None:
        """Run cycles until the end, or an exception."""
        for _ in range(steps):
            self.step()
            if self.stream.failure is not None:
                break

    def step(self) -> None:
        """Trigger the events of a cycle, and run the cycle."""
        stream = self.stream
        self._clock += NEAR_CYCLES if stream.brakes else 1
        due = [kind for kind, cycle in self._next.items() if cycle <= self._clock]
        for kind in due:
            words = EVENTS[kind].act(stream, self._rngs[kind])
            self._next[kind] = self._clock + self._gap(kind)
            if words:
                self.script.append((stream.cycles + 1, words))
        if stream.slider is not None:
            left, every = stream.slider
            if left % every == 0:
                change(stream, self._rngs["slider"])
            stream.slider = (left - 1, every) if left > 1 else None
        if stream.conveyor is not None:
            convey(stream)
        stream.advance(float(self._jitter.uniform(0.9, 1.1)))

    def figures(self) -> Figures:
        """Return the results of the judges."""
        figures, stream = Figures(), self.stream
        if stream.failure is not None:
            text = f"an exception: {stream.failure!r}"
            figures.found("exception", stream.cycles, 1.0, 0.0, text)
        judge(stream.wire, stream.truths, figures)
        return figures


def run(task: tuple[int, int, str, tuple[str, ...]]) -> Run:
    """Run and judge a task: campaign seed, run number, robot, and excluded event kinds."""
    seed, number, name, without = task
    begin = time.process_time()
    campaign = Campaign(seed, number, name, without)
    campaign.run(STEPS)
    figures = campaign.figures()
    script: tuple[str, ...] = ()
    if figures.findings:
        last = figures.findings[0].cycle
        script = tuple(f"cycle {c}: {words}" for c, words in campaign.script if c <= last)
    stream = campaign.stream
    used = time.process_time() - begin
    return Run(number, stream.wire.settings.name, stream.cycles, figures, script, used)


def needed_kinds(found: Run, seed: int, name: str) -> tuple[tuple[str, ...], Run]:
    """Return the event kinds that can be excluded with the same finding, and the reduced run."""
    judges = {finding.judge for finding in found.figures.findings[:1]}
    without: tuple[str, ...] = ()
    for kind in EVENTS:
        again = run((seed, found.number, name, (*without, kind)))
        if judges & {finding.judge for finding in again.figures.findings}:
            without, found = (*without, kind), again
    return without, found


def report(failed: list[Run], seed: int, name: str) -> str:
    """Return a text about the failures, and the commands that repeat them."""
    lines = []
    for i, found in enumerate(failed[:PRINTED]):
        without: tuple[str, ...] = ()
        if i < REDUCED:
            without, found = needed_kinds(found, seed, name)
        command = (
            f"python -m benchmarks.compositions --seed {seed} --from {found.number} --cycles 1"
        )
        command += f" --robot {name}" if name else ""
        command += f" --without {','.join(without)}" if without else ""
        lines += ["", f"run {found.number}, {found.name}: {command}"]
        lines += [f"    {line}" for line in found.script[-SHOWN:]]
        lines += [f"  cycle {each.cycle}: {each.text}" for each in found.figures.findings]
    if len(failed) > PRINTED:
        lines += ["", f"and {len(failed) - PRINTED} more runs"]
    return "\n".join(lines)


def tables(found: list[Run]) -> list[Table]:
    """Return the tables of results by robot."""
    counts, ratios = Table("compositions", TABLE), Table("largest ratio to a limit", RATIOS)
    for name in [*ARMS, "all"]:
        runs = [each for each in found if name in (each.name, "all")]
        if not runs:
            continue
        figures = [each.figures for each in runs]
        faults: dict[str, int] = {}
        for each in figures:
            for kind, count in each.faults.items():
                faults[kind] = faults.get(kind, 0) + count
        words = ", ".join(f"{kind} {count}" for kind, count in sorted(faults.items())) or "none"
        cycles, exact = sum(each.cycles for each in runs), sum(each.exact for each in figures)
        least = min(each.least for each in figures)
        failures = sum(bool(each.findings) for each in figures)
        counts.rows.append([name, len(runs), cycles, exact, least, failures, words])
        worst = [max((f.ratios.get(kind, 0.0) for f in figures), default=0.0) for kind in JUDGES]
        ratios.rows.append([name, *worst])
    cycles, used = sum(each.cycles for each in found), sum(each.seconds for each in found)
    speed = Table("speed", SPEED, [[cycles, used, cycles / used]])
    return [counts, ratios, speed]


def findings_of(found: Iterable[Run]) -> dict[str, list[tuple[int, Finding]]]:
    """Return findings by judge, with the numbers of their runs."""
    by_judge: dict[str, list[tuple[int, Finding]]] = {}
    for each in found:
        for finding in each.figures.findings:
            by_judge.setdefault(finding.judge, []).append((each.number, finding))
    return by_judge


def main() -> None:
    """Run the campaign and print its results."""
    options = parser(__doc__, seed=0, processes=1)
    options.add_argument("--cycles", type=positive, default=1_000_000, help="of all runs")
    options.add_argument("--robot", choices=list(ARMS), default="", help="only this one")
    options.add_argument(
        "--from", dest="first", type=int, default=0, help="number of the first run"
    )
    options.add_argument(
        "--without", default="", help="kinds of events that are left out, by comma"
    )
    given = options.parse_args()
    count = -(-given.cycles // STEPS)
    without = tuple(filter(None, given.without.split(",")))
    numbers = range(given.first, given.first + count)
    tasks: list[Any] = [(given.seed, number, given.robot, without) for number in numbers]
    found = in_processes(run, tasks, given.processes, f"{count * STEPS} cycles")
    failed = [each for each in found if each.figures.findings]
    notes = [
        f"{judge}: {len(rows)} runs, the worst {max(rows, key=lambda r: abs(r[1].value))[1].text}"
        for judge, rows in findings_of(found).items()
    ]
    finish(given, tables(found), notes)
    if failed:
        sys.exit(report(failed, given.seed, given.robot))


if __name__ == "__main__":
    guarded(main)
