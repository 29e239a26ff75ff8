"""Blocks of poses through all peers in turns, so that a busy machine affects them alike."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from benchmarks.peers.arm import Arm, Verdict, judged
from benchmarks.peers.process import Peer, PeerError

WARM = 10  # poses of the first block
SECONDS = 20.0  # of one solver for one block


@dataclass
class Record:
    """The results of one solver."""

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
        """(k,) [us] of each pose; of a batch, (blocks,) means."""
        return np.concatenate(self.times)

    @property
    def mean(self) -> float:
        """[us] a pose."""
        return self._average([t.mean() for t in self.times])

    @property
    def used(self) -> float:
        """Processor time [us] a pose."""
        return self._average(self.processor)

    def _average(self, values: list[float]) -> float:
        return float(np.average(values, weights=[len(v.solved) for v in self.verdicts]))

    def share(self, inside: bool) -> float:
        """Poses solved, or also inside the limits [%]."""
        return 100.0 * float(np.mean(np.concatenate([v[inside] for v in self.verdicts])))


@dataclass
class Contestants:
    """The peers that run, their rows, and why others do not."""

    peers: dict[str, Peer] = field(default_factory=dict)
    records: dict[str, list[Record]] = field(default_factory=dict)  # by peer
    missing: dict[str, str] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)  # why, by line of the requirements
    versions: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, peer: Peer) -> None:
        """Ask a peer for its rows."""
        try:
            rows, versions = peer.described()
        except PeerError as error:
            self.missing[name] = str(error)
            return
        self.peers[name] = peer
        self.records[name] = [Record(row, *about) for row, about in rows.items()]
        self.versions |= versions | self.versions  # the first to name a package is dls_ik itself

    def rows(self) -> Iterable[tuple[Peer, Record]]:
        """Every row with its peer, as long as it works."""
        for name, records in self.records.items():
            yield from ((self.peers[name], record) for record in records if not record.why)


def run(
    contestants: Contestants,
    arm: Arm,
    sizes: Iterable[int],
    rng: np.random.Generator,
    progress: Callable[[int], None],
) -> None:
    """Give every row every block, after a small one that loads what is to be loaded."""
    _block(contestants, arm, WARM, rng, keep=False)
    for size in sizes:
        _block(contestants, arm, size, rng, keep=True)
        progress(size)


def _block(
    contestants: Contestants, arm: Arm, size: int, rng: np.random.Generator, keep: bool
) -> None:
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
