# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Streams of targets that a peer follows, and the joint positions with which it answers.

This module also runs without dls_ik.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers.arm import Arm


class ServoJob(NamedTuple):
    """Streams of targets for c equal arms, sampled at the cycles of the servo loop.

    All streams have m cycles. The joints of the arms are at rest before the first cycle.
    """

    arm: Arm
    velocity: np.ndarray  # (n,) velocity limits [rad/s or m/s]
    acceleration: np.ndarray  # (n,) acceleration limits [rad/s^2 or m/s^2]
    period: float  # time between two cycles [s]
    start: np.ndarray  # (s, c n) joint positions before the first cycle of each stream [rad or m]
    targets: np.ndarray  # (s, m, c, 4, 4) newest target of each arm and cycle in the base frame
    has_arrived: np.ndarray  # (s, m, c) bool: whether the target is new in this cycle
    posture: np.ndarray = np.empty(0)  # (n,) desired joint positions; empty: the start
    posture_cost: float = np.nan  # relative to cost 1 of the tip; NaN: as in the examples

    @property
    def count(self) -> int:
        """Number of arms."""
        return self.has_arrived.shape[2]

    def save(self, path: Path) -> None:
        """Write the job to a file."""
        arm = {f"arm_{key}": value for key, value in self.arm._asdict().items()}
        np.savez(path, **arm, **{k: v for k, v in self._asdict().items() if k != "arm"})

    @classmethod
    def load(cls, path: Path) -> "ServoJob":
        """Read a job from a file."""
        with np.load(path) as data:
            arm: dict[str, Any] = {key: data[f"arm_{key}"] for key in Arm._fields}
            rest = {key: data[key] for key in cls._fields if key != "arm"}
        arm["name"] = str(arm["name"])
        rest |= {key: float(rest[key]) for key in ("period", "posture_cost")}
        return cls(Arm(**arm), **rest)


class ServoRun(NamedTuple):
    """Answers of a peer to the streams of a job."""

    q: np.ndarray  # (s, m, c n) joint positions after each cycle [rad or m]
    time: np.ndarray  # (s, m) processor time of each cycle [s]
    has_failed: np.ndarray  # (s, m) bool: whether the peer reported a failure in this cycle
    versions: str  # names and versions of the packages

    def save(self, path: Path) -> None:
        """Write the answers to a file."""
        np.savez(path, **self._asdict())

    @classmethod
    def load(cls, path: Path) -> "ServoRun":
        """Read answers from a file."""
        with np.load(path) as data:
            rest = {key: data[key] for key in cls._fields}
        return cls(**{**rest, "versions": str(rest["versions"])})
