# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Process of one peer: ``python -m benchmarks.servo_peers.worker NAME JOB ANSWERS``.

The process reads a job, follows its streams with the peer NAME, and writes the answers. If the peer
is not installed or does not support the arm, the process prints the reason and exits with 1.
"""

import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy as np

from benchmarks.servo_peers.adapters import PEERS, Follower
from benchmarks.servo_peers.job import ServoJob, ServoRun


def follow(job: ServoJob, peer: type[Follower]) -> ServoRun:
    """Return the answers of a peer to all streams of a job."""
    s, m, c = job.has_arrived.shape
    q, times = np.empty((s, m, c * job.arm.n)), np.empty((s, m))
    has_failed = np.zeros((s, m), bool)
    for k in range(s):
        follower = peer(job, job.start[k])
        for i in range(m):
            begin = time.thread_time_ns()
            has_failed[k, i] = not follower.step(job.targets[k, i], job.has_arrived[k, i])
            times[k, i] = 1e-9 * (time.thread_time_ns() - begin)
            q[k, i] = follower.q
    versions = ", ".join(f"{name} {version(name)}" for name in peer.packages)
    return ServoRun(q, times, has_failed, versions)


def main() -> None:
    """Follow the streams of a job."""
    name, job, answers = sys.argv[1:]
    try:
        follow(ServoJob.load(Path(job)), PEERS[name]).save(Path(answers))
    except Exception as error:  # noqa: BLE001  a peer may raise anything
        sys.exit(f"{type(error).__name__}: {' '.join(str(error).split())[:300]}")


if __name__ == "__main__":
    main()
