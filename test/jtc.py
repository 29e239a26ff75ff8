# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The interpolation of joint_trajectory_controller, from its documentation, and its largest values.

A new trajectory starts from the state desired at that moment (`interpolate_from_desired_state`).
Segments are linear without velocities, and cubic with them.
"""

import numpy as np


class TrajectoryController:
    """Model of joint_trajectory_controller.

    Attributes:
        velocity, acceleration: (n,) largest absolute values on all paths received, each of them
            from the moment of its receipt to its end.
    """

    def __init__(self, q):
        n = len(q)
        self.segments = [(-np.inf, np.inf, np.array([q, np.zeros(n), np.zeros(n), np.zeros(n)]))]
        self.velocity, self.acceleration = np.zeros(n), np.zeros(n)

    def at(self, now):
        """Return the desired positions, velocities and accelerations (3, n) at a time [s]."""
        begin, end, c = next((s for s in self.segments if now < s[1]), self.segments[-1])
        if now >= end:
            rest = np.zeros_like(c[:3])
            t = end - begin
            rest[0] = c[0] + t * (c[1] + t * (c[2] + t * c[3]))
            return rest
        t = now - begin if np.isfinite(begin) else 0.0
        return np.array([
            c[0] + t * (c[1] + t * (c[2] + t * c[3])),
            c[1] + t * (2 * c[2] + 3 * t * c[3]),
            2 * c[2] + 6 * t * c[3],
        ])  # fmt: skip

    def path(self, times):
        """Return the desired positions (k, n) at times (k,) [s]."""
        begins, ends, c = (np.array(x) for x in zip(*self.segments, strict=True))
        i = np.minimum(np.searchsorted(ends, times, side="right"), len(ends) - 1)
        t = np.minimum(times, ends[i]) - np.where(np.isfinite(begins[i]), begins[i], times)
        c, t = c[i], t[:, None]
        return c[:, 0] + t * (c[:, 1] + t * (c[:, 2] + t * c[:, 3]))

    def receive(self, now, times, q, v=None):
        """Follow points at times (k,) after now [s], (k, n), with velocities or without."""
        before = self.at(now)
        times = np.concatenate([[0.0], times])
        q = np.vstack([before[0], q])
        T = np.diff(times)[:, None]
        assert (T > 0.0).all()
        a, b = q[:-1], q[1:]
        if v is None:
            c = np.stack([a, (b - a) / T, np.zeros_like(a), np.zeros_like(a)], axis=1)
        else:
            assert not np.any(v[-1]), "the last point is at rest"
            u, w = np.vstack([before[1], v[:-1]]), v
            c = np.stack([
                a,
                u,
                (-3 * a + 3 * b - 2 * u * T - w * T) / T**2,
                (2 * a - 2 * b + u * T + w * T) / T**3,
            ], axis=1)  # fmt: skip
        self.segments = list(zip(now + times[:-1], now + times[1:], c, strict=True))
        self._note(c, T)

    def _note(self, c, T):
        """Update the largest velocities and accelerations of the joints by k new segments.

        Args:
            c: (k, 4, n) coefficients of cubic polynomials in the time since the segment's start.
            T: (k, 1) durations [s].
        """
        t = np.linspace(0.0, 1.0, 11)[:, None, None] * T
        velocity = np.abs(c[:, 1] + t * (2 * c[:, 2] + 3 * t * c[:, 3])).max(axis=(0, 1))
        ends = np.abs([2 * c[:, 2], 2 * c[:, 2] + 6 * T * c[:, 3]]).max(axis=(0, 1))
        self.velocity = np.maximum(self.velocity, velocity)
        self.acceleration = np.maximum(self.acceleration, ends)
