"""Random reachable poses solved by dls_ik and its peers: shares and times.

Poses are those of joint values uniform within the limits, and every solver starts from the same
random values. Solved is a position error within 1e-6 m and a rotation error within 1e-6 rad by
forward kinematics in NumPy; in limits is solved with every joint within 1e-9 of its limits, where
whole turns are granted. Times are of calls from Python by the clock; the mean processor time, of
all threads, is free of what else runs. Each peer has a process of its own, one core unless it says
otherwise, and an environment apart (made once); blocks of poses go round all of them in turns. A
peer that is missing or cannot serve the arm is a row with the reason.
"""

import argparse
import sys
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress

from benchmarks.common import (
    Table,
    add_plot,
    columns,
    finish,
    guarded,
    parser,
    positive,
    robot_of,
)
from benchmarks.peers.adapters import APART, BATCH, OWN, PEERS, SINGLE
from benchmarks.peers.arm import Arm, arm_of
from benchmarks.peers.plot import draw
from benchmarks.peers.process import FOLDER, Peer, prepared
from benchmarks.peers.run import Contestants, Record, run

COLUMNS = columns(
    "solver; poses :d; solved [%] :.2f; in limits [%] :.2f; mean [us] :.1f; median [us] :.1f; "
    "99 % [us] :.1f; 99.9 % [us] :.1f; processor [us] :.1f; mean / our solve :.2f; mean / our "
    "batch :.2f"
)


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
    """Start the peers, all at once, and ask for their rows."""
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
    """Return the figures of one solver."""
    if not record.times:
        return [record.name, 0, *[None] * (len(COLUMNS) - 2)]
    tail = [None] * 3 if record.is_batch else np.percentile(record.time, (50, 99, 99.9)).tolist()
    shares = record.share(inside=False), record.share(inside=True)
    ratios = [other and record.mean / other for other in (single, batch)]
    return [record.name, len(record), *shares, record.mean, *tail, record.used, *ratios]


def table(title: str, contestants: Contestants) -> tuple[Table, list[str]]:
    """Return all rows, and a note on each."""
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
    """Run all blocks; return False when interrupted, which keeps what was done."""
    rng, size = np.random.default_rng(given.seed), given.block
    sizes = (min(size, given.samples - first) for first in range(0, given.samples, size))
    try:
        print(f"peers: running {', '.join(contestants.records) or 'none'}", file=sys.stderr)
        with Progress(transient=True, disable=not sys.stderr.isatty()) as progress:
            task = progress.add_task("poses", total=given.samples)
            run(contestants, arm, sizes, rng, lambda count: progress.advance(task, count))
    except KeyboardInterrupt:
        return False
    return True


def main() -> None:
    """Solve and show."""
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
