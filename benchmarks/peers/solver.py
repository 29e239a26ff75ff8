# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Row of the comparison: a function that solves blocks of poses and times each call."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

TOLERANCE = 1e-6  # [m], [rad]
RESTARTS_SEED = (20_111, 7)  # differs from --seed of the poses: a restart must not hit an answer
TIMEOUT = 0.05  # [s] time limit of one pose, for solvers that need one


class Found(NamedTuple):
    """Answers to the first poses of a block; as many as the time allowed."""

    q: np.ndarray  # (k, n), NaN without an answer
    times: np.ndarray  # (k,) [us] of each call, or (1,) of the mean
    processor: float  # processor time of all threads [us] a pose


Run = Callable[[np.ndarray, np.ndarray, float], Found]  # (b, 4, 4), (b, n), seconds for all


class Solver(NamedTuple):
    """Row of the table."""

    run: Run
    setting: str  # options, and why
    cores: int | None = 1  # number it may use; None: all
    is_batch: bool = False  # one call for a block: only the mean time is known


class UnfitError(Exception):
    """Error of a peer that does not support this arm."""


def one_by_one(
    call: Callable[[Any, Any], Any],
    given: Callable[[np.ndarray, np.ndarray], tuple[Any, Any]] = lambda T, seed: (T, seed),
    answer: Callable[[Any], Any] = lambda result: result,
) -> Run:
    """Return a function that times a call for each pose.

    Args:
        call: Timed function.
        given: Function that converts a pose (4, 4) and a seed (n,) to the peer's types, not timed.
        answer: Function that returns the joint positions (n,) of a result, or None.
    """

    def run(Ts: np.ndarray, seeds: np.ndarray, seconds: float) -> Found:
        ready = [given(T, seed) for T, seed in zip(Ts, seeds, strict=True)]
        q, times = np.full(seeds.shape, np.nan), []
        used, end = time.process_time(), time.perf_counter() + seconds
        for i, (T, seed) in enumerate(ready):
            begin = time.perf_counter()
            result = call(T, seed)
            now = time.perf_counter()
            times.append(now - begin)
            found = answer(result)
            if found is not None:
                q[i] = found
            if now > end:
                break
        used = time.process_time() - used
        return Found(q[: len(times)], 1e6 * np.array(times), 1e6 * used / len(times))

    return run


def with_restarts(
    attempt: Callable[[np.ndarray], np.ndarray | None],
    random: Callable[[np.random.Generator, int], np.ndarray],
    rng: np.random.Generator,
    seed: np.ndarray,
    seconds: float,
) -> np.ndarray | None:
    """Solve from the seed, then from random positions, until an attempt succeeds or times out."""
    deadline, found = time.perf_counter() + seconds, attempt(seed)
    while found is None and time.perf_counter() < deadline:
        found = attempt(random(rng, 1)[0])
    return found


def quaternion(R: np.ndarray) -> np.ndarray:
    """Return (x, y, z, w) of a rotation (3, 3): the eigenvector of the largest eigenvalue."""
    xx, yy, zz = np.diag(R)
    K = np.array(
        [
            [xx - yy - zz, R[0, 1] + R[1, 0], R[0, 2] + R[2, 0], R[2, 1] - R[1, 2]],
            [R[0, 1] + R[1, 0], yy - xx - zz, R[1, 2] + R[2, 1], R[0, 2] - R[2, 0]],
            [R[0, 2] + R[2, 0], R[1, 2] + R[2, 1], zz - xx - yy, R[1, 0] - R[0, 1]],
            [R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1], xx + yy + zz],
        ]
    )
    return np.linalg.eigh(K)[1][:, -1]
