# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Random reachable poses solved by dls_ik and its peers: shares and times.

Poses come from joint positions uniform within the limits, and every solver starts from the same
random positions. "Solved" is a position error within 1e-6 m and a rotation error within 1e-6 rad by
forward kinematics in NumPy. "In limits" is solved with every joint within 1e-9 of its limits, after
whole turns. Times are wall-clock times of calls from Python; the mean processor time, of all
threads, does not depend on other programs. Each peer has its own process, one core unless stated
otherwise, and a separate environment (created once); all peers solve blocks of poses in turns. A
peer that is missing or does not support the arm is a row with the reason.
"""

import argparse
import sys
from collections.abc import Iterable
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from benchmarks.common import Table, add_plot, columns, finish, guarded, parser, positive, robot_of
from benchmarks.peers.adapters import APART, BATCH, OWN, PEERS, SINGLE
from benchmarks.peers.arm import Arm, Verdict, arm_of, judged
from benchmarks.peers.process import FOLDER, Peer, PeerError, prepared

WARM = 10  # poses of the first block
SECONDS = 20.0  # [s] maximum time of one solver per block
COLUMNS = columns(
    "solver; poses :d; solved [%] :.2f; in limits [%] :.2f; mean [us] :.1f; median [us] :.1f; "
    "99 % [us] :.1f; 99.9 % [us] :.1f; processor [us] :.1f; mean / our solve :.2f; mean / our "
    "batch :.2f"
)
COLOURS = {
    "dls_ik": "#0b6e4f",
    "kdl": "#6d6d6d",
    "trac_ik": "#d1495b",
    "toolbox": "#2e86ab",
    "placo": "#8e5ea2",
    "pinocchio": "#e08e0b",
    "ssik": "#5c4033",
}
DASHES = ("-", "--", ":", "-.", (0, (1, 3)), (0, (5, 1, 1, 1, 1, 1)))


@dataclass
class Record:
    """Results of one solver."""

    name: str
    setting: str
    is_batch: bool
    times: list[np.ndarray] = field(default_factory=list)  # [us] of each block
    processor: list[float] = field(default_factory=list)  # [us] a pose, of each block
    verdicts: list[Verdict] = field(default_factory=list)
    why: str = ""  # it stopped

    def __len__(self) -> int:
        return sum(len(v.solved) for v in self.verdicts)

    @property
    def time(self) -> np.ndarray:
        """Times of all poses (k,) [us]; block means (blocks,) for a batch."""
        return np.concatenate(self.times)

    @property
    def mean(self) -> float:
        """Mean time per pose [us]."""
        return self._average([t.mean() for t in self.times])

    @property
    def used(self) -> float:
        """Mean processor time per pose [us]."""
        return self._average(self.processor)

    def _average(self, values: list[float]) -> float:
        return float(np.average(values, weights=[len(v.solved) for v in self.verdicts]))

    def share(self, inside: bool) -> float:
        """Return the share of poses solved, or solved inside the limits [%]."""
        return 100.0 * float(np.mean(np.concatenate([v[inside] for v in self.verdicts])))


@dataclass
class Contestants:
    """Running peers with their rows, and the reasons of missing peers."""

    peers: dict[str, Peer] = field(default_factory=dict)
    records: dict[str, list[Record]] = field(default_factory=dict)  # records of each peer
    missing: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # why, by line of the requirements
    versions: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, peer: Peer) -> None:
        """Request the rows of a peer."""
        try:
            rows, versions = peer.described()
        except PeerError as error:
            self.missing[name] = str(error)
            return
        self.peers[name] = peer
        self.records[name] = [Record(row, *about) for row, about in rows.items()]
        self.versions |= versions | self.versions  # the first to name a package is dls_ik itself

    def rows(self) -> Iterable[tuple[Peer, Record]]:
        """Yield the rows of all working peers."""
        for name, records in self.records.items():
            yield from ((self.peers[name], record) for record in records if not record.why)


def run_block(
    contestants: Contestants, arm: Arm, size: int, rng: np.random.Generator, keep: bool
) -> None:
    """Solve a block of poses with every row."""
    Ts, seeds = arm.fk(arm.random(rng, size)), arm.random(rng, size)
    for peer, record in contestants.rows():
        try:
            found = peer.solve(record.name, Ts, seeds, SECONDS)
        except PeerError as error:
            record.why = str(error)
            continue
        if keep:
            verdict = judged(arm, Ts[: len(found.q)], found.q)
            record.times.append(found.times)
            record.processor.append(found.processor)
            record.verdicts.append(verdict)


# Picture: the share of the poses that a solver has solved within some time


def draw(target: str, title: str, contestants: Contestants, about: dict[str, Any]) -> None:
    """Write a picture of every row that ran, with the best row of each peer in bold."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11.0, 6.0), layout="constrained")
    axes = figure.subplots()
    for name, records in contestants.records.items():
        done = [record for record in records if record.times]
        best = min(done, key=_rank, default=None)
        for dash, record in zip(DASHES, done, strict=False):
            _line(axes, record, COLOURS[name], dash, record is best)
    axes.set(xscale="log", ylim=(0.0, 102.0), ylabel="poses solved within it, in limits [%]")
    axes.set_xlabel("time for one pose [us], from Python")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.set_title(title, loc="left")
    axes.set_title(f"{about['processor']}, {about['date']}", loc="right", fontsize=8, color="0.4")
    axes.grid(which="major", color="0.9")
    axes.spines[["top", "right"]].set_visible(False)
    heading = "solver, mean time [us]"
    figure.legend(loc="outside right upper", fontsize=8, frameon=False, title=heading)
    figure.savefig(target, dpi=150)


def _rank(record: Record) -> tuple[bool, float, float]:
    """Return the sort key: single calls, then solved share (in percent), then mean time."""
    return record.is_batch, -round(record.share(inside=True)), record.mean


def _line(axes: Any, record: Record, colour: str, dash: Any, is_best: bool) -> None:
    """Draw a curve of single calls, or a marker at the mean time of a batch."""
    label, share = f"{record.name}, {record.mean:.0f}", record.share(inside=True)
    if record.is_batch:
        style = {"marker": "o" if "one" in record.name else "D", "linestyle": "none"}
        fill = "white" if "no seed" in record.name else colour
        axes.plot(record.mean, share, color=colour, markerfacecolor=fill, label=label, **style)
        return
    inside = np.concatenate([v.inside for v in record.verdicts])
    times = np.sort(record.time[inside])
    counts = 100.0 * np.arange(1, len(times) + 1) / len(inside)
    style = {"linewidth": 2.4} if is_best else {"linewidth": 1.1, "alpha": 0.6}
    axes.plot(times, counts, color=colour, linestyle=dash, label=label, **style)


# Command


def options() -> argparse.Namespace:
    """Return the options."""
    result = parser(__doc__, samples=10_000, seed=0)
    result.add_argument("--robot", default="wam", help="a name or a URDF file")
    result.add_argument("--base", help="link that the chain begins at, where there is a choice")
    result.add_argument("--tip", help="link that the chain ends at, where there is a choice")
    result.add_argument("--block", type=positive, default=1000, help="poses in a turn")
    names = ",".join(PEERS)
    result.add_argument("--only", default=names, help="peers to run, joined by commas")
    result.add_argument(
        "--environment", type=Path, default=FOLDER, help="where the peers are installed"
    )
    add_plot(result, "success against time")
    given = result.parse_args()
    given.only = given.only.split(",")
    unknown = [name for name in given.only if name not in PEERS]
    if unknown:
        result.error(f"unknown peers {', '.join(unknown)}; known: {names}")
    return given


def started(only: list[str], folder: Path, arm: Arm, stack: ExitStack) -> Contestants:
    """Start all peers at once, and request their rows."""
    python, refused = sys.executable, {}
    if any(name in APART for name in only):
        python, refused = prepared(folder, lambda text: print(text, file=sys.stderr))
    peers = {
        name: Peer(name, sys.executable if name in OWN else python, arm)
        for name in PEERS
        if name in only
    }
    for peer in peers.values():
        stack.enter_context(closing(peer))
    result = Contestants(refused=refused)
    for name, peer in peers.items():
        result.add(name, peer)
    return result


def row(record: Record, single: float | None, batch: float | None) -> list[Any]:
    """Return the results of one solver."""
    if not record.times:
        return [record.name, 0, *[None] * (len(COLUMNS) - 2)]
    tail = [None] * 3 if record.is_batch else np.percentile(record.time, (50, 99, 99.9)).tolist()
    shares = record.share(inside=False), record.share(inside=True)
    ratios = [other and record.mean / other for other in (single, batch)]
    return [record.name, len(record), *shares, record.mean, *tail, record.used, *ratios]


def table(title: str, contestants: Contestants) -> tuple[Table, list[str]]:
    """Return the table of all rows, and a note on each row."""
    result, notes = Table(title, COLUMNS), []
    records = [record for group in contestants.records.values() for record in group]
    means = {record.name: record.mean for record in records if record.times}
    single, batch = (means.get(name) for name in (SINGLE, BATCH))
    for record in records:
        result.rows.append(row(record, single, batch))
        notes.append(f"{record.name}: {record.setting}" + (f"; {record.why}" if record.why else ""))
    for name, why in contestants.missing.items():
        result.rows.append([name, 0, *[None] * (len(COLUMNS) - 2)])
        notes.append(f"{name}: not run: {why}")
    notes += [f"could not install {line}: {why}" for line, why in contestants.refused.items()]
    return result, notes


def compared(contestants: Contestants, arm: Arm, given: argparse.Namespace) -> bool:
    """Run all blocks; return False if interrupted, with the results so far kept."""
    rng, size = np.random.default_rng(given.seed), given.block
    sizes = (min(size, given.samples - first) for first in range(0, given.samples, size))
    try:
        print(f"peers: running {', '.join(contestants.records) or 'none'}", file=sys.stderr)
        with Progress(transient=True, disable=not sys.stderr.isatty()) as progress:
            task = progress.add_task("poses", total=given.samples)
            run_block(contestants, arm, WARM, rng, keep=False)  # loads what is to be loaded
            for count in sizes:
                run_block(contestants, arm, count, rng, keep=True)
                progress.advance(task, count)
    except KeyboardInterrupt:
        return False
    return True


def main() -> None:
    """Run the comparison, and print the table."""
    given = options()
    arm = arm_of(robot_of(given.robot, given.base, given.tip))
    with ExitStack() as stack:
        contestants = started(given.only, given.environment, arm, stack)
        whole = compared(contestants, arm, given)
    title = f"{given.samples} random poses of {arm.name}, {arm.n} joints, seed {given.seed}"
    shown, notes = table(title, contestants)
    if not whole:
        notes.append("interrupted: these are the poses that were done")
    finish(given, [shown], notes, **contestants.versions)
    if given.plot:
        draw(given.plot, title, contestants, given.before)
    if not whole:
        raise KeyboardInterrupt


if __name__ == "__main__":
    guarded(main)
