# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures of a followed stream, computed from the joint positions alone."""

from typing import NamedTuple

import numpy as np

from benchmarks.peers.arm import Arm, errors
from benchmarks.servo_peers.job import ServoJob, ServoRun
from benchmarks.teleop_streams import PERIOD, Stream

ROUNDING = 1e-6  # relative excess of a limit that rounding may cause
FREEZE_CYCLES = round(0.2 / PERIOD)
FREEZE_ERROR = 5e-3  # [m] a tip at rest counts as frozen if its error is larger
SETTLED_CYCLES = round(0.3 / PERIOD)
MAX_DELAY = 50  # [cycles]
AT_REST = 1e-6  # [rad or m] largest change of a joint in a cycle of an arm at rest
BACK = 1e-6  # [rad or m] a joint beyond a limit by at most this counts as inside


class StreamFigures(NamedTuple):
    """Figures of one stream, followed by one peer."""

    cycles: int
    steps_above: int  # cycles in which a joint exceeds its velocity limit
    velocity: float  # largest velocity, as a multiple of the limit
    acceleration: float  # largest acceleration, as a multiple of the limit
    jerk: float  # largest jerk [rad/s^3 or m/s^3]
    freezes: int  # periods of 0.2 s without motion although the target can be reached
    failed: int  # cycles in which the peer reports a failure
    delay: float  # time by which the tip follows the targets [s]
    error: float  # median position error after this delay [m]
    last_error: float  # position error in the last cycle [m]
    recovery: float  # time outside the joint limits [s]; infinite: until the end
    largest_step: float  # largest change of a joint in a cycle [rad or m]
    # Largest change of a joint in a cycle with the first target after a gap during which the arm
    # came to rest [rad or m]; NaN: no such gap
    resumed_step: float
    resumed_error: float  # position error 0.3 s after the first gap [m]; NaN without a gap


def figures_of(job: ServoJob, stream: Stream, q: np.ndarray, failed: np.ndarray) -> StreamFigures:
    """Return the figures of a stream.

    Args:
        job: Arm and limits.
        stream: Targets.
        q: (m, n) joint positions after each cycle [rad or m].
        failed: (m,) bool, whether the peer reported a failure.
    """
    path = np.vstack([stream.start, q])
    steps = np.diff(path, axis=0)
    v = np.vstack([np.zeros(len(stream.start)), steps / PERIOD])
    a = np.diff(v, axis=0) / PERIOD
    position, _ = errors(job.arm.fk(q), stream.targets)
    delay, error = lag(job.arm, stream, q)
    resumed = 1 + np.flatnonzero(stream.has_arrived[1:] & ~stream.has_arrived[:-1])
    largest = np.abs(steps).max(axis=1)
    rested = resumed[largest[resumed - 1] < AT_REST]
    return StreamFigures(
        len(q),
        int((np.abs(v) > job.velocity * (1.0 + ROUNDING)).any(axis=1).sum()),
        float((np.abs(v) / job.velocity).max()),
        float((np.abs(a) / job.acceleration).max()),
        float(np.abs(np.diff(a, axis=0)).max() / PERIOD),
        count_freezes(steps, position, stream.is_judged),
        int(failed.sum()),
        delay * PERIOD,
        error,
        float(position[-1]),
        recovery(job.arm, path) * PERIOD,
        float(largest.max()),
        float(largest[rested].max()) if len(rested) else np.nan,
        float(position[resumed[0] + SETTLED_CYCLES]) if len(resumed) else np.nan,
    )


def lag(arm: Arm, stream: Stream, q: np.ndarray) -> tuple[int, float]:
    """Return the delay [cycles] at which the median position error is smallest, and this error."""
    tip = arm.fk(q)[:, :3, 3]
    wanted, judged = stream.targets[:, :3, 3], stream.is_judged
    best = 0, np.inf
    for delay in range(MAX_DELAY):
        end = len(tip) - delay
        distance = np.linalg.norm(tip[delay:] - wanted[:end], axis=1)[judged[:end]]
        error = float(np.median(distance))
        if error < best[1] * 0.999:
            best = delay, error
    return best


def count_freezes(steps: np.ndarray, position: np.ndarray, is_judged: np.ndarray) -> int:
    """Return the number of periods of 0.2 s in which the arm rests although it should move."""
    is_frozen = (np.abs(steps).max(axis=1) < 1e-9) & (position > FREEZE_ERROR) & is_judged
    count = run = 0
    for each in is_frozen:
        run = run + 1 if each else 0
        if run == FREEZE_CYCLES:
            count, run = count + 1, 0
    return count


def recovery(arm: Arm, path: np.ndarray) -> float:
    """Return the number of cycles until all joints stay inside their limits; may be infinite."""
    excess = np.maximum(arm.lower - path, path - arm.upper)
    is_outside = ((excess > BACK) & ~arm.endless).any(axis=1)
    if not is_outside.any():
        return 0.0
    last = np.flatnonzero(is_outside)[-1]
    return np.inf if last == len(path) - 1 else float(last + 1)


class PeerFigures(NamedTuple):
    """Figures of all streams that a peer has followed."""

    cycles: int
    steps_above: int
    velocity: float
    acceleration: float
    jerk: float
    freezes: int
    failed: float  # share of the cycles
    delay: float  # median over the streams [s]
    error: float  # median over the streams [m]
    outside: int  # streams that end outside the joint limits
    reclutch: float  # largest change of a joint at rest in the cycle of a re-clutch [rad or m]
    dropout: float  # position error 0.3 s after a dropout of 150 ms, median [m]
    median_time: float  # time of a cycle [s]
    slowest_time: float  # 99.9th percentile [s]


def gathered(by_kind: dict[str, list[StreamFigures]], runs: list[ServoRun]) -> PeerFigures:
    """Return the figures of several streams together, given by the kind of the stream."""
    found = [each for rows in by_kind.values() for each in rows]
    cycles = sum(each.cycles for each in found)
    times = np.concatenate([run.time[:, 1:].ravel() for run in runs])
    return PeerFigures(
        cycles,
        sum(each.steps_above for each in found),
        max(each.velocity for each in found),
        max(each.acceleration for each in found),
        max(each.jerk for each in found),
        sum(each.freezes for each in found),
        sum(each.failed for each in found) / cycles,
        float(np.median([each.delay for each in found])),
        float(np.median([each.error for each in found])),
        int(sum(np.isinf(each.recovery) for each in found)),
        float(np.fmax.reduce([each.resumed_step for each in by_kind["re-clutch"]])),
        float(np.median([each.resumed_error for each in by_kind["dropout"]])),
        float(np.median(times)),
        float(np.percentile(times, 99.9)),
    )
