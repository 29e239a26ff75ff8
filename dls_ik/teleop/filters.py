# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Filters of poses: a median against glitches, and the one-euro filter against jitter."""

from __future__ import annotations

import math
from collections import deque

import numpy as np

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array

DERIVATIVE_CUTOFF = 1.0  # [Hz] cutoff frequency of the filtered velocity, as in the paper
MIN_POSE_INTERVAL, MAX_POSE_INTERVAL = 1e-3, 0.1  # [s] intervals between poses are clipped


class PoseMedian:
    """Median of the last poses, which removes glitches shorter than half of the window.

    The position is the median of each coordinate. The orientation is the one of the window whose
    sum of angles to the others is the smallest.

    Args:
        size: Number of poses in the window; 1 disables the filter.
    """

    def __init__(self, size: int) -> None:
        self._window: deque[Array] = deque(maxlen=size)

    def reset(self) -> None:
        """Forget all poses."""
        self._window.clear()

    def filter(self, T: Array) -> Array:
        """Add a pose (4, 4), and return the median (4, 4) of the window."""
        self._window.append(T)
        poses = np.array(self._window)
        median: Array = T.copy()
        if len(poses) > 2:
            traces = np.einsum("iab,jab->ij", poses[:, :3, :3], poses[:, :3, :3])
            cosines = np.clip(0.5 * (traces - 1.0), -1.0, 1.0)
            median[:3, :3] = poses[int(np.arccos(cosines).sum(axis=1).argmin()), :3, :3]
            median[:3, 3] = np.median(poses[:, :3, 3], axis=0)
        return median


class OneEuroFilter:
    """One-euro filter of poses (Casiez, Roussel & Vogel 2012).

    It is a low-pass filter whose cutoff frequency min_cutoff + beta |speed| is low for a hand at
    rest, which removes jitter, and high for a fast hand, which avoids lag. Position and orientation
    have one cutoff frequency each.

    Args:
        min_cutoff: Cutoff frequency at rest [Hz]; infinite disables the filter.
        beta: Increase of the cutoff frequency with the speed [Hz per m/s, or per rad/s].
    """

    def __init__(self, min_cutoff: float, beta: float) -> None:
        self.min_cutoff, self.beta = min_cutoff, beta
        self.reset()

    def reset(self) -> None:
        """Forget all poses; the next pose is returned as it is."""
        self._T: Array | None = None
        self._velocity = np.zeros(6)
        self._time = -math.inf

    def filter(self, T: Array, now: float) -> Array:
        """Add a pose (4, 4) received at the time `now` [s], and return the filtered pose (4, 4)."""
        if self._T is None or not math.isfinite(self.min_cutoff):
            self._T, self._time = T.copy(), now
            return self._T
        dt = min(max(now - self._time, MIN_POSE_INTERVAL), MAX_POSE_INTERVAL)
        step = difference(self._T, T)
        self._velocity += _low_pass_share(DERIVATIVE_CUTOFF, dt) * (step / dt - self._velocity)
        for part in (slice(0, 3), slice(3, 6)):
            speed = float(np.linalg.norm(self._velocity[part]))
            step[part] *= _low_pass_share(self.min_cutoff + self.beta * speed, dt)
        self._T, self._time = moved(self._T, step), now
        return self._T


def _low_pass_share(cutoff: float, dt: float) -> float:
    """Return the share of the newest value in a first-order low-pass filter.

    Args:
        cutoff: Cutoff frequency [Hz].
        dt: Interval between two values [s].
    """
    return 1.0 / (1.0 + 1.0 / (2.0 * math.pi * cutoff * dt))
