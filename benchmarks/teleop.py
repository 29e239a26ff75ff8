# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Streams of teleoperation, followed by the controller and by all servo-level peers.

Each peer follows the same targets in a process and an environment of its own, with the settings
that its examples use; peers named "acceleration limit" also use the acceleration limit of their
package. All figures are computed from the joint positions of the peer, except the failed cycles,
which the peer reports.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import Table, add_plot, columns, finish, guarded, parser, positive
from benchmarks.peers.arm import arm_of, stand
from benchmarks.servo_peers.adapters import PEERS
from benchmarks.servo_peers.environment import SERVO_PEERS, pythons, run
from benchmarks.servo_peers.job import ServoJob, ServoRun
from benchmarks.servo_runs import moving
from benchmarks.teleop_figures import PeerFigures, StreamFigures, figures_of, gathered
from benchmarks.teleop_picture import draw
from benchmarks.teleop_streams import CYCLES, KINDS, PERIOD, Hand, Stream
from dls_ik import DlsIkError, RobotModel
from dls_ik.model.dh import DhRow

ACCELERATION = 5.0  # [rad/s^2] limit of every joint
FIVE_JOINTS = "5 joints"
PAIR, PAIRED = "two fr3", "fr3"  # name of a pair of equal arms, and name of one of these arms
ARMS = ("wam7", "fr3", "ur5e", "xarm7", FIVE_JOINTS, PAIR)
PEER_COLUMNS = columns(
    "peer; cycles :d; above the velocity limit :d; largest velocity / limit :.2f; largest "
    "acceleration / limit :.1f; largest jerk [rad/s^3] :.0f; freezes :d; failed cycles [%] :.2f; "
    "delay [s] :.3f; error after the delay [mm] :.3f; ends outside the limits :d; step at "
    "re-clutch [rad] :.1e; error 0.3 s after a dropout [mm] :.3f; a cycle, median [us] :.1f; "
    "99.9 % [us] :.0f"
)
KIND_COLUMNS = columns(
    "stream; peer; above the velocity limit :d; largest acceleration / limit :.1f; freezes :d; "
    "failed cycles [%] :.2f; largest step [rad] :.4f; delay [s] :.3f; error after the delay [mm] "
    ":.3f; error at the end [mm] :.3f; longest time outside the limits [s] :.2f"
)


def arm_named(name: str) -> RobotModel:
    """Return an arm of this repository, or one with five joints like those of low-cost arms.

    For a pair of equal arms, the result is one of them.
    """
    if name == PAIR:
        return moving(PAIRED)
    if name != FIVE_JOINTS:
        return moving(name)
    half = 0.5 * np.pi
    rows = [
        DhRow(a=0.03, alpha=half, d=0.12, lower=-1.9, upper=1.9, velocity=2.0),
        DhRow(a=0.116, alpha=0.0, d=0.0, lower=0.0, upper=3.3, velocity=2.0),
        DhRow(a=0.135, alpha=0.0, d=0.0, lower=-3.0, upper=0.2, velocity=2.0),
        DhRow(a=0.0, alpha=half, d=0.0, lower=-0.2, upper=3.2, velocity=2.0),
        DhRow(a=0.0, alpha=0.0, d=0.16, lower=-2.8, upper=2.8, velocity=2.0),
    ]
    return RobotModel.from_dh(rows)


def job_of(robot: RobotModel, streams: list[Stream], count: int = 1) -> ServoJob:
    """Return streams in the form given to every peer.

    Args:
        robot: Arm.
        streams: Streams of targets; `count` successive streams are followed at once, one by each
            arm.
        count: Number of equal arms.
    """
    groups = [streams[k : k + count] for k in range(0, len(streams), count)]
    return ServoJob(
        arm_of(robot),
        robot.velocity,
        np.full(robot.n, ACCELERATION),
        PERIOD,
        np.stack([np.concatenate([each.start for each in group]) for group in groups]),
        np.stack(
            [
                np.stack([stand(k) @ each.targets for k, each in enumerate(group)], axis=1)
                for group in groups
            ]
        ),
        np.stack([np.stack([each.has_arrived for each in group], axis=1) for group in groups]),
    )


def followed(
    job: ServoJob, streams: list[Stream], found: ServoRun
) -> Iterator[tuple[str, StreamFigures]]:
    """Yield the kind and the figures of each stream, from the answers of a peer to the job."""
    n = job.arm.n
    for index, stream in enumerate(streams):
        group, k = divmod(index, job.count)
        q = found.q[group, :, k * n : (k + 1) * n]
        yield stream.kind, figures_of(job, stream, q, found.has_failed[group])


def follow_all(
    names: list[str], folder: Path, arms: list[str], count: int, seed: int
) -> tuple[dict[str, dict[str, list[StreamFigures]]], dict[str, PeerFigures], list[str]]:
    """Return the figures of all peers on all streams.

    Returns:
        The figures of each peer by kind of stream, those of all streams together, and notes.
    """
    jobs = []
    for arm in arms:
        robot, rng = arm_named(arm), np.random.default_rng([seed, len(jobs)])
        hand = Hand(robot, np.full(robot.n, ACCELERATION), rng)
        together = 2 if arm == PAIR else 1
        streams = [make(hand) for make in KINDS.values() for _ in range(count * together)]
        jobs.append((job_of(robot, streams, together), streams))
    by_kind: dict[str, dict[str, list[StreamFigures]]] = {}
    whole: dict[str, PeerFigures] = {}
    notes = []
    for name, python in pythons(names, folder):
        print(f"teleop: {name}", file=sys.stderr)
        figures: dict[str, list[StreamFigures]] = {kind: [] for kind in KINDS}
        runs = []
        try:
            for job, streams in jobs:
                if job.count > PEERS[name].max_arms:
                    notes.append(f"{name} follows only one arm at a time; {PAIR} is left out")
                    continue
                runs.append(run(name, python, job))
                for kind, each in followed(job, streams, runs[-1]):
                    figures[kind].append(each)
        except DlsIkError as error:
            notes.append(str(error))
            continue
        if not runs:
            continue
        by_kind[name] = figures
        whole[name] = gathered(figures, runs)
        notes.append(f"{name}: {PEERS[name].settings}; {runs[-1].versions}")
    return by_kind, whole, notes


def peer_row(name: str, f: PeerFigures) -> list[Any]:
    """Return the row of a peer."""
    return [
        name, f.cycles, f.steps_above, f.velocity, f.acceleration, f.jerk, f.freezes,
        100.0 * f.failed, f.delay, 1e3 * f.error, f.outside, f.reclutch, 1e3 * f.dropout,
        1e6 * f.median_time, 1e6 * f.slowest_time,
    ]  # fmt: skip


def kind_row(kind: str, name: str, found: list[StreamFigures]) -> list[Any]:
    """Return the row of a peer for one kind of stream."""
    cycles = sum(each.cycles for each in found)
    return [
        kind,
        name,
        sum(each.steps_above for each in found),
        max(each.acceleration for each in found),
        sum(each.freezes for each in found),
        100.0 * sum(each.failed for each in found) / cycles,
        max(each.largest_step for each in found),
        float(np.median([each.delay for each in found])),
        1e3 * float(np.median([each.error for each in found])),
        1e3 * float(np.median([each.last_error for each in found])),
        max(each.recovery for each in found),
    ]


def main() -> None:
    """Run the comparison and print its tables."""
    options = parser(__doc__, seed=0)
    options.add_argument(
        "--streams", type=positive, default=3, help=f"number per kind and arm, {CYCLES} cycles each"
    )
    options.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    options.add_argument("--only", nargs="+", choices=list(PEERS), default=list(PEERS))
    options.add_argument(
        "--environment", type=Path, default=SERVO_PEERS, metavar="DIR", help="of environments"
    )
    add_plot(options, "the figures of all peers")
    given = options.parse_args()
    by_kind, whole, notes = follow_all(
        given.only, given.environment, given.arms, given.streams, given.seed
    )
    peers = [peer_row(name, figures) for name, figures in whole.items()]
    kinds = [
        kind_row(kind, name, figures[kind]) for kind in KINDS for name, figures in by_kind.items()
    ]
    tables = [
        Table("All streams", PEER_COLUMNS, peers),
        Table("By kind of stream", KIND_COLUMNS, kinds),
    ]
    finish(given, tables, notes)
    if given.plot and whole:
        draw(given.plot, whole)


if __name__ == "__main__":
    guarded(main)
