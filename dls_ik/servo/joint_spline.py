# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Timed joint positions, interpolated by polynomials, with their peaks and collisions."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array, Indices
from dls_ik.scene.joint_paths import APPROACH_TOLERANCE, MIN_CLEARANCE, PathPairs
from dls_ik.scene.srdf import Pair

NUM_PEAK_SAMPLES = 9  # samples of each segment for its largest velocity and acceleration
MAX_CHORD_DISTANCE = 1e-3  # [m] largest distance between the path of a shape and the chord
MAX_CHORDS = 64  # maximum number of chords of a segment


class Peak(NamedTuple):
    """Largest ratio of a velocity or acceleration to its limit."""

    ratio: float
    joint: int  # index of the joint
    value: float  # magnitude at the peak [rad/s, m/s, rad/s^2 or m/s^2]
    time: float  # [s] time of the peak


class JointSpline:
    """Trajectory of joint positions through points at given times.

    Between two points the joints move along polynomials: of degree 5 if velocities and
    accelerations are given, and of degree 3 otherwise. If velocities are not given, they are the
    harmonic mean of the slopes before and after the point, 0 if the joint turns back there, and 0
    at both ends; the joints then do not overshoot the points.

    Args:
        times: (m,) increasing times [s], of at least two points.
        q: (m, n) joint positions [rad or m].
        v: (m, n) velocities [rad/s or m/s]; None: computed from the positions.
        a: (m, n) accelerations [rad/s^2 or m/s^2]; None: not given.
    """

    def __init__(
        self, times: Array, q: Array, v: Array | None = None, a: Array | None = None
    ) -> None:
        self.times, self.q = times, q
        self.v = _smooth_velocities(times, q) if v is None else v
        self.a = None if v is None else a
        self._coefficients = _coefficients(np.diff(times), q, self.v, self.a)

    @property
    def duration(self) -> float:
        """Time of the last point [s]."""
        return float(self.times[-1])

    def at(self, t: float) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations (n,) at a time [s].

        Before the first point and after the last point, the joints are at rest at this point.
        """
        if not self.times[0] <= t < self.times[-1]:
            zero = np.zeros(self.q.shape[1])
            return self.q[0 if t < self.times[0] else -1].copy(), zero, zero
        i = self.index(t)
        return _evaluate(self._coefficients[:, i], t - self.times[i])

    def sample(self, t: Array) -> tuple[Array, Array, Array]:
        """Return positions, velocities and accelerations (k, n) at times t (k,) [s].

        The times are between the first and the last point.
        """
        i = np.clip(np.searchsorted(self.times, t, "right") - 1, 0, len(self.times) - 2)
        return _evaluate(self._coefficients[:, i], (t - self.times[i])[:, None])

    def within(self, pieces: Indices, shares: Array) -> Array:
        """Return positions (p, k, n) at shares (k,), 0 to 1, of the intervals `pieces` (p,)."""
        u = np.diff(self.times)[pieces][:, None, None] * shares[:, None]
        return _evaluate(self._coefficients[:, pieces][:, :, None], u)[0]

    def largest(self, order: int) -> Array:
        """Return bounds (m - 1, n) on the magnitude of a derivative by time between two points.

        A polynomial lies between its smallest and its largest Bernstein coefficient. The bound is
        exact for a linear polynomial, and close to the peak if the points are close to each other.

        Args:
            order: 1 for velocities, 2 for accelerations, 3 for jerks.
        """
        c, h = self._coefficients, np.diff(self.times)[:, None]
        for _ in range(order):
            c = c[1:] * np.arange(1, len(c))[:, None, None]
        d = len(c) - 1
        c = c * h ** np.arange(d + 1)[:, None, None]
        weights = np.array(
            [[math.comb(i, j) / math.comb(d, j) for j in range(d + 1)] for i in range(d + 1)]
        )
        return np.asarray(np.abs(np.einsum("ij,jmn->imn", weights, c)).max(axis=0))

    def index(self, t: float) -> int:
        """Return the index of the last point before or at a time [s]; 0 before the first point."""
        return int(np.clip(np.searchsorted(self.times, t, "right") - 1, 0, len(self.times) - 2))

    @property
    def accelerations(self) -> Array:
        """Accelerations (m, n) after the points, and before the last point [rad/s^2 or m/s^2]."""
        if self.a is not None:
            return self.a
        c, h = self._coefficients, np.diff(self.times)
        return np.vstack([2.0 * c[2], _evaluate(c[:, -1], h[-1])[2]])

    def starting_at(self, q: Array, v: Array) -> JointSpline:
        """Return the trajectory with other positions q (n,) and velocities v (n,) at its start."""
        points, velocities = self.q.copy(), self.v.copy()
        points[0], velocities[0] = q, v
        return JointSpline(self.times, points, velocities, self.a)

    def stretched(self, factor: float) -> JointSpline:
        """Return the trajectory with all times multiplied by a factor."""
        a = None if self.a is None else self.a / factor**2
        return JointSpline(self.times * factor, self.q, self.v / factor, a)

    def peaks(self, velocity: Array, acceleration: Array) -> tuple[Peak, Peak]:
        """Return the peaks of velocity and acceleration in relation to their limits.

        Args:
            velocity: (n,) limits [rad/s or m/s].
            acceleration: (n,) limits [rad/s^2 or m/s^2].
        """
        h = np.diff(self.times)
        u = np.linspace(0.0, 1.0, NUM_PEAK_SAMPLES)[:, None, None] * h[:, None]
        _, v, a = _evaluate(self._coefficients, u)
        at = self.times[:-1, None] + u[..., 0].T  # (m - 1, samples)
        return _peak(v, velocity, at.T), _peak(a, acceleration, at.T)

    def outside(self, lower: Array, upper: Array) -> tuple[int, float, float] | None:
        """Return the first position outside limits (n,) after the first point, or None.

        Returns:
            Index of the joint, its position [rad or m], and the time [s].
        """
        h = np.diff(self.times)
        u = np.linspace(0.0, 1.0, NUM_PEAK_SAMPLES)[1:, None, None] * h[:, None]
        q, _, _ = _evaluate(self._coefficients, u)
        q = np.swapaxes(q, 0, 1).reshape(-1, q.shape[-1])  # sorted by time
        start = self.q[0]
        lower, upper = np.minimum(lower, start), np.maximum(upper, start)
        bad = np.argwhere((q < lower) | (q > upper))
        if not len(bad):
            return None
        row, j = bad[0]
        at = (self.times[:-1, None] + u[..., 0].T).ravel()
        return int(j), float(q[row, j]), float(at[row])

    def contact(self, pairs: PathPairs, min_distance: float) -> tuple[float, Pair] | None:
        """Return the first time [s] at which a pair is closer than permitted, and the pair.

        The check is continuous: it bounds the distance of the trajectory from chords between
        samples. A pair that is closer than `min_distance` at the start may stay as close as there.
        A pair may be closer than `min_distance` by the distance between chord and trajectory, at
        most 1 mm. The result is None if no pair is closer than permitted.

        Args:
            pairs: Pairs of links and objects, whose margins are not used.
            min_distance: Minimum distance [m].
        """
        h = np.diff(self.times)
        shares = np.array([0.0, 0.5, 1.0])[:, None, None]
        _, _, a = _evaluate(self._coefficients, shares * h[:, None])
        largest = np.abs(a).max(axis=0)  # (m - 1, n)
        at_start = pairs.distances(self.q[0]) - APPROACH_TOLERANCE
        for i, duration in enumerate(h.tolist()):
            away = pairs.reach @ (largest[i] * duration**2 / 8.0)
            count = float(np.sqrt(away.max(initial=0.0) / MAX_CHORD_DISTANCE))
            chords = int(np.clip(np.ceil(count), 1, MAX_CHORDS))
            away = away / chords**2
            margins = np.maximum(min_distance - away, MIN_CLEARANCE + away)
            near = pairs._replace(margins=np.minimum(margins, np.maximum(at_start, MIN_CLEARANCE)))
            u = np.linspace(0.0, duration, chords + 1)[:, None]
            q, _, _ = _evaluate(self._coefficients[:, i], u)
            for k in range(chords):
                names = near.block(q[k], q[k + 1])
                if names is not None:
                    return float(self.times[i] + u[k, 0]), names
        return None


def _peak(values: Array, limits: Array, at: Array) -> Peak:
    """Return the peak of values (s, m, n) in relation to limits (n,); `at` (s, m) are times [s]."""
    ratios = np.abs(values) / limits
    k, i, j = np.unravel_index(int(ratios.argmax()), ratios.shape)
    return Peak(float(ratios[k, i, j]), int(j), float(abs(values[k, i, j])), float(at[k, i]))


def _smooth_velocities(times: Array, q: Array) -> Array:
    """Return velocities (m, n) with which cubics pass points without moving past them and back."""
    slopes = np.diff(q, axis=0) / np.diff(times)[:, None]
    v = np.zeros_like(q)
    before, after = slopes[:-1], slopes[1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        v[1:-1] = np.where(before * after > 0.0, 2.0 * before * after / (before + after), 0.0)
    return v


def _coefficients(h: Array, q: Array, v: Array, a: Array | None) -> Array:
    """Return the coefficients (6, m - 1, n) of the polynomials between m points.

    Args:
        h: (m - 1,) durations [s].
        q: (m, n) positions [rad or m].
        v: (m, n) velocities [rad/s or m/s].
        a: (m, n) accelerations [rad/s^2 or m/s^2]; None: polynomials of degree 3.
    """
    h = h[:, None]
    dq, v0, v1 = np.diff(q, axis=0), v[:-1], v[1:]
    c = np.zeros((6, *dq.shape))
    c[0], c[1] = q[:-1], v0
    if a is None:
        c[2] = (3.0 * dq / h - 2.0 * v0 - v1) / h
        c[3] = (v0 + v1 - 2.0 * dq / h) / h**2
        return c
    a0, a1 = a[:-1], a[1:]
    c[2] = 0.5 * a0
    c[3] = (20.0 * dq - (8.0 * v1 + 12.0 * v0) * h - (3.0 * a0 - a1) * h**2) / (2.0 * h**3)
    c[4] = (-30.0 * dq + (14.0 * v1 + 16.0 * v0) * h + (3.0 * a0 - 2.0 * a1) * h**2) / (2.0 * h**4)
    c[5] = (12.0 * dq - 6.0 * (v1 + v0) * h + (a1 - a0) * h**2) / (2.0 * h**5)
    return c


def _evaluate(c: Array, u: float | Array) -> tuple[Array, Array, Array]:
    """Return the values, first and second derivatives of polynomials with coefficients c (6, ...).

    The argument `u` is the time since the first point of each segment [s].
    """
    q = c[0] + u * (c[1] + u * (c[2] + u * (c[3] + u * (c[4] + u * c[5]))))
    v = c[1] + u * (2.0 * c[2] + u * (3.0 * c[3] + u * (4.0 * c[4] + u * 5.0 * c[5])))
    a = 2.0 * c[2] + u * (6.0 * c[3] + u * (12.0 * c[4] + u * 20.0 * c[5]))
    return q, v, a
