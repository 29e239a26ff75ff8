"""What a peer's file makes: solvers of blocks of poses, each call timed by itself."""

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

TOLERANCE = 1e-6  # [m], [rad]
RESTARTS_SEED = (20_111, 7)  # no --seed of the poses: a restart must not begin at an answer
TIMEOUT = 0.05  # [s] for one pose, of solvers that have to be stopped


class Found(NamedTuple):
    """Answers to the first poses of a block; as many as the time allowed."""

    q: np.ndarray  # (k, n), NaN where there is none
    times: np.ndarray  # (k,) [us] of each call, or (1,) of the mean
    processor: float  # time [us] of all threads a pose; what else runs does not count


Run = Callable[[np.ndarray, np.ndarray, float], Found]  # (b, 4, 4), (b, n), seconds for all


class Solver(NamedTuple):
    """A row of the table."""

    run: Run
    setting: str  # in which it is run, and why
    cores: int | None = 1  # that it may use; None for all
    is_batch: bool = False  # one call for a block: there is only a mean time


class UnfitError(Exception):
    """A peer that cannot serve this arm; the message says why."""


def one_by_one(
    call: Callable[[Any, Any], Any],
    given: Callable[[np.ndarray, np.ndarray], tuple[Any, Any]] = lambda T, seed: (T, seed),
    answer: Callable[[Any], Any] = lambda result: result,
) -> Run:
    """Time a call for each pose.

    Args:
        call: what is timed.
        given: makes a peer's own types of a pose (4, 4) and a seed (n,) beforehand.
        answer: joint values (n,) of what the call returned, or None.
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


def until(seconds: float) -> Iterator[int]:
    """Count attempts as long as there is time; the first is always made."""
    end, attempt = time.perf_counter() + seconds, 0
    while attempt == 0 or time.perf_counter() < end:
        yield attempt
        attempt += 1


def quaternion(R: np.ndarray) -> np.ndarray:
    """(4,) x y z w of a rotation (3, 3): the eigenvector to the largest eigenvalue, well posed."""
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


def listed(values: Sequence[Any] | np.ndarray) -> list[float]:
    """Plain floats, for bindings that take nothing else."""
    return [float(x) for x in values]
