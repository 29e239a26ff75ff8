"""What is streamed: a recorded path at a steady rate, or a circle about a pose."""

from __future__ import annotations

import numpy as np

from dls_ik.core.types import Array

RUN_IN = 0.25  # of a period, to come to the circle, and as long to come back
AXES = {"xy": (0, 1), "xz": (0, 2), "yz": (1, 2)}


def sampled(times: Array | None, poses: Array, rate: float) -> tuple[Array, Array]:
    """Times (m,) [s] and poses (m, 4, 4), one every 1 / rate [Hz].

    Poses without times are taken as they are; between timed ones the tip goes straight and turns
    evenly.
    """
    if times is None:
        return np.arange(len(poses)) / rate, poses
    from dls_ik.core.motion import difference, moved

    times = times - times[0]
    moments = np.append(np.arange(0.0, times[-1], 1.0 / rate), times[-1])
    before = np.clip(np.searchsorted(times, moments, side="right") - 1, 0, max(len(times) - 2, 0))
    ways = [difference(poses[k], poses[k + 1]) for k in range(len(poses) - 1)]
    result = [
        moved(poses[k], ways[k] * (t - times[k]) / (times[k + 1] - times[k])) if ways else poses[0]
        for t, k in zip(moments, before, strict=True)
    ]
    return moments, np.array(result)


def circle(
    centre: Array, radius: float, period: float, laps: float, plane: str, rate: float
) -> tuple[Array, Array]:
    """Times (m,) [s] and poses (m, 4, 4) around a pose, in a plane of its frame.

    It begins and ends at the centre, at rest: the radius grows before the laps, and shrinks after
    them, in a quarter of a period.
    """
    first, second = AXES[plane]
    run_in = RUN_IN * period
    duration = laps * period + 2.0 * run_in
    times = np.append(np.arange(0.0, duration, 1.0 / rate), duration)
    share = np.clip(np.minimum(times, duration - times) / run_in, 0.0, 1.0)
    reach = radius * share**3 * (10.0 - 15.0 * share + 6.0 * share**2)
    phase = 2.0 * np.pi * times / period
    poses = np.repeat(centre[None], len(times), axis=0)
    poses[:, first, 3] += reach * np.cos(phase)
    poses[:, second, 3] += reach * np.sin(phase)
    return times, poses
