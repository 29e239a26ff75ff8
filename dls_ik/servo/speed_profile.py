# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fastest motion along a cubic spline of joint positions, as points of a trajectory.

The parameter z runs from 0 to 1. The length along the path is s = L (10 z^3 - 15 z^4 + 6 z^5), with
the total length L. Because ds/dz and its derivative are 0 at both ends, the arm is at rest there,
and its acceleration is 0, although the speed of z is not 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dls_ik.core.cubic_spline import spline_slopes
from dls_ik.core.path_speed import POINT_SHARES, PathDerivatives, ProfileLimits, fastest_speeds
from dls_ik.core.types import Array, Flags, Indices
from dls_ik.servo.joint_motion import MotionLimits
from dls_ik.servo.joint_spline import JointSpline

MIN_NODES = 600  # number of intervals of equal size in z, before the knots of the path are added
MIN_NODE_DISTANCE = 1e-5  # minimum distance of two nodes in z
MAX_LENGTH_RATIO = 2.5  # maximum ratio of the lengths of two neighbouring intervals
MAX_VELOCITY = 1e6  # [rad/s or m/s] replaces missing velocity limits
MIN_SPLIT_TIME = 3e-4  # [s] shorter intervals are not divided further
NUM_PARTS = 4  # parts into which an interval with an excess is divided
END_MARGIN = 1.06  # factor of the derivatives at both ends, where accelerations peak between points
MAX_PROFILES = 6  # maximum number of speed profiles, each with more nodes
MAX_POINT_ROUNDS = 24  # maximum number of rounds that add points
MAX_PROFILE_POINTS = 50_000  # maximum number of points of a trajectory
MIN_PROFILE_INTERVAL = 2e-5  # [s] points closer to each other lose digits of the jerk
MIN_LIMIT_INTERVAL = 5e-5  # [s] no points are added to shorter intervals because of limits
MAX_LIMIT_EXCESS = 1e-3  # larger excesses of a limit between points slow the motion down
NUM_TIP_SAMPLES = 5  # samples between two points at which the speed of the tip is compared
QUADRATURE = np.polynomial.legendre.leggauss(10)  # nodes and weights on (-1, 1)


class PathSpline:
    """Cubic spline through joint positions, by the length of the chords between them.

    Args:
        q: (k, n) joint positions, of which no two successive ones are equal [rad or m].

    Attributes:
        s: (k,) parameters of the joint positions [rad or m].
    """

    def __init__(self, q: Array) -> None:
        steps = np.linalg.norm(np.diff(q, axis=0), axis=1)
        self.s = np.concatenate([[0.0], np.cumsum(steps)])
        h, v = steps[:, None], spline_slopes(self.s, np.ascontiguousarray(q))
        slope = np.diff(q, axis=0) / h
        bend = (v[:-1] + v[1:] - 2.0 * slope) / h
        self._c = np.stack([q[:-1], v[:-1], (slope - v[:-1]) / h - bend, bend / h])

    def piece(self, s: Array) -> Indices:
        """Return the numbers (m,) of the pieces that contain the parameters s (m,)."""
        return np.clip(np.searchsorted(self.s, s, "right") - 1, 0, len(self.s) - 2)

    def at(self, s: Array) -> tuple[Array, Array, Array]:
        """Return positions and first and second derivatives, (m, n) each, at parameters s (m,)."""
        piece = self.piece(s)
        u, (c0, c1, c2, c3) = (s - self.s[piece])[:, None], self._c[:, piece]
        first, second = c1 + u * (2.0 * c2 + 3.0 * u * c3), 2.0 * c2 + 6.0 * u * c3
        q: Array = c0 + u * (c1 + u * (c2 + u * c3))
        return q, first, second

    def third(self, s: Array) -> Array:
        """Return the third derivatives (m, n) at parameters s (m,), constant in each piece."""
        return np.asarray(6.0 * self._c[3, self.piece(s)])


class TimedSpline(NamedTuple):
    """Trajectory along a spline, at rest at both ends."""

    motion: JointSpline
    s: Array  # (m,) parameters of the spline at the points of the trajectory


# Function that returns whether each interval (m - 1,) of a trajectory needs another point.
Check = Callable[[TimedSpline], Flags]


def fastest_motion(
    path: PathSpline, limits: MotionLimits, interval: float, check: Check | None = None
) -> TimedSpline:
    """Return the fastest trajectory along a spline within limits, from rest to rest.

    Polynomials of degree 5 through the positions, velocities and accelerations of the points keep
    the limits. Points are added where the polynomials exceed a limit by more than
    `MAX_LIMIT_EXCESS`; a smaller excess slows the whole motion down.

    Args:
        path: Spline.
        limits: Limits of the motion.
        interval: Largest time between two points [s].
        check: Function that selects further intervals that need another point; None: none.
    """
    nodes = _nodes(path.s)
    for _ in range(MAX_PROFILES):
        profile = _SpeedProfile(path, limits, nodes)
        nodes = profile.refined_nodes()
        if len(nodes) == len(profile) or len(nodes) > MAX_PROFILE_POINTS:
            break
    z = profile.coarse_points(interval)
    for _ in range(MAX_POINT_ROUNDS):
        timed = profile.motion(z)
        h = np.diff(timed.motion.times)
        slowdowns = _slowdowns(timed.motion, limits)
        excess = slowdowns > 1.0 + MAX_LIMIT_EXCESS
        middle, is_node = profile.middles(z)
        bad = (h > 1.01 * interval) | (excess & (is_node | (h > MIN_LIMIT_INTERVAL)))
        if check is not None:
            bad |= check(timed)
        bad &= h > MIN_PROFILE_INTERVAL
        if not bad.any() or len(z) + bad.sum() > MAX_PROFILE_POINTS:
            break
        z = np.sort(np.concatenate([z, middle[bad]]))
    slower = max(1.0, float(slowdowns.max()))
    return TimedSpline(_at_whole_nanoseconds(timed.motion.stretched(slower)), timed.s)


class _SpeedProfile:
    """Fastest speed along a spline: the squared speed of z is a quadratic spline.

    Args:
        path: Spline.
        limits: Limits of the motion, kept at the `POINT_SHARES` of each interval of nodes.
        z: (m + 1,) nodes, from 0 to 1.
    """

    def __init__(self, path: PathSpline, limits: MotionLimits, z: Array) -> None:
        self._path, self._limits, self._z = path, limits, z
        self._h = h = np.diff(z)
        points = (z[:-1, None] + np.array(POINT_SHARES) * h[:, None]).clip(0.0, 1.0)
        q, first, second = self._derivatives(points.ravel())
        third = self._third(points.ravel(), np.repeat(0.5 * (z[:-1] + z[1:]), len(POINT_SHARES)))
        with np.errstate(divide="ignore"):
            fastest = (np.minimum(limits.velocity, MAX_VELOCITY) / np.abs(first)).min(axis=1)
            if limits.tip is not None:
                fastest = np.minimum(fastest, 1.0 / limits.tip.path_shares(q, first))
        # (3, m, 4, n)
        derivatives = np.array([first, second, third]).reshape(3, *points.shape, -1)
        derivatives[:, [0, -1]] *= END_MARGIN
        within = ProfileLimits(fastest.reshape(points.shape) ** 2, limits.acceleration, limits.jerk)
        self._c = c = fastest_speeds(PathDerivatives(h, *derivatives), within)
        both = h[:-1] + h[1:]
        inner = (h[1:] * c[:-1] + h[:-1] * c[1:]) / both
        self._x = np.concatenate([c[:1], inner, c[-1:]])
        self._u = np.concatenate([[0.0], np.diff(c) / both, [0.0]])
        self._t = np.concatenate([[0.0], np.cumsum(self._passed(np.arange(len(h)), z[1:]))])

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self._z)

    def refined_nodes(self) -> Array:
        """Return the nodes, and new nodes in intervals in which the motion exceeds a limit."""
        shares = np.arange(1, NUM_PARTS) / NUM_PARTS
        z = (self._z[:-1, None] + shares * self._h[:, None]).ravel()
        _, q, v, a, jerk = self._states(z)
        limits = self._limits
        ratios = v / limits.velocity, a / limits.acceleration, jerk / limits.jerk
        excess = np.abs(np.hstack(ratios)).max(axis=1)
        if limits.tip is not None:
            excess = np.maximum(excess, limits.tip.path_shares(q, v))
        far = (excess > 1.0 + MAX_LIMIT_EXCESS).reshape(-1, len(shares)).any(axis=1)
        far &= np.diff(self._t) > MIN_SPLIT_TIME
        return _graded(_split(self._z, np.where(far, NUM_PARTS, 1)))

    def coarse_points(self, interval: float) -> Array:
        """Return nodes (m,), from 0 to 1, approximately `interval` [s] apart."""
        count = max(2, math.ceil(self._t[-1] / interval))
        nodes = np.searchsorted(self._t, np.linspace(0.0, self._t[-1], count + 1))
        return np.asarray(self._z[np.unique(np.append(0, np.minimum(nodes, len(self._z) - 1)))])

    def middles(self, z: Array) -> tuple[Array, Flags]:
        """Return a point (m - 1,) within each interval of points z (m,), and whether it is a node.

        The point is the middle one of the nodes within the interval, or the middle of the interval
        if there is no node.
        """
        first = np.searchsorted(self._z, z[:-1], "right")
        end = np.searchsorted(self._z, z[1:], "left")
        is_node, middle = end > first, 0.5 * (z[:-1] + z[1:])
        node = self._z[np.minimum((first + end) // 2, len(self._z) - 1)]
        return np.where(is_node, node, middle), is_node

    def motion(self, z: Array) -> TimedSpline:
        """Return the trajectory through points z (m,), which include 0 and 1."""
        times, q, v, a, _ = self._states(z)
        v[[0, -1]] = a[[0, -1]] = 0.0
        return TimedSpline(JointSpline(times, q, v, a), self._path.s[-1] * _ramp(z)[0])

    def _states(self, z: Array) -> tuple[Array, Array, Array, Array, Array]:
        """Return the motion at points z (m,).

        Returns:
            Times (m,), positions, velocities, accelerations and jerks, (m, n) each. At a node, the
            jerk is that after the node.
        """
        i = np.clip(np.searchsorted(self._z, z, "right") - 1, 0, len(self._h) - 1)
        share = (z - self._z[i]) / self._h[i]
        x = self._squared_speed(i, share)
        u = self._u[i] + share * (self._u[i + 1] - self._u[i])
        w = (self._u[i + 1] - self._u[i]) / self._h[i]
        q, first, second = self._derivatives(z)
        third = self._third(z, 0.5 * (self._z[i] + self._z[i + 1]))
        x, u, w = x[:, None], u[:, None], w[:, None]
        v, a = first * np.sqrt(x), second * x + first * u
        jerk = np.sqrt(x) * (third * x + 3.0 * second * u + first * w)
        return self._t[i] + self._passed(i, z), q, v, a, jerk

    def _squared_speed(self, i: Indices, share: Array) -> Array:
        """Return the squared speed of z (m,) at shares, 0 to 1, of the intervals i (m,)."""
        rest = 1.0 - share
        x: Array = rest * rest * self._x[i] + share * share * self._x[i + 1]
        x += 2.0 * rest * share * self._c[i]
        return x

    def _passed(self, i: Indices, z: Array) -> Array:
        """Return the times (m,) from the starts of the intervals i (m,) to the points z [s]."""
        nodes, weights = QUADRATURE
        reached = (z - self._z[i]) / self._h[i]
        total = np.zeros(len(z))
        for node, weight in zip(nodes.tolist(), weights.tolist(), strict=True):
            share = 0.5 * (node + 1.0) * reached
            total += weight / np.sqrt(self._squared_speed(i, share))
        return np.asarray(0.5 * (z - self._z[i]) * total)

    def _derivatives(self, z: Array) -> tuple[Array, Array, Array]:
        """Return positions and first and second derivatives by z, (m, n) each, at z (m,)."""
        length = float(self._path.s[-1])
        s, s1, s2, _ = (length * each for each in _ramp(z))
        q, p1, p2 = self._path.at(s)
        s1, s2 = s1[:, None], s2[:, None]
        return q, p1 * s1, p2 * s1**2 + p1 * s2

    def _third(self, z: Array, middle: Array) -> Array:
        """Return the third derivatives by z (m, n) at ends z (m,) of intervals.

        Args:
            z: (m,) ends of intervals.
            middle: (m,) middles of the intervals, in the pieces of the spline to evaluate.
        """
        length = float(self._path.s[-1])
        s, s1, s2, s3 = (length * each[:, None] for each in _ramp(z))
        _, p1, p2 = self._path.at(s[:, 0])
        p3 = self._path.third(length * _ramp(middle)[0])
        return np.asarray(p3 * s1**3 + 3.0 * p2 * s1 * s2 + p1 * s3)


def _ramp(z: Array) -> tuple[Array, Array, Array, Array]:
    """Return the share of the length (m,) at parameters z (m,), and its first three derivatives."""
    rest = 1.0 - z
    share = z**3 * (10.0 - 15.0 * z + 6.0 * z * z)
    first, second = 30.0 * (z * rest) ** 2, 60.0 * z * rest * (1.0 - 2.0 * z)
    return share, first, second, 60.0 * (1.0 - 6.0 * z * rest)


def _nodes(s: Array) -> Array:
    """Return the nodes z (m + 1,) of a profile: the knots s (k,) of the spline, and others."""
    shares = s / s[-1]
    low, high = np.zeros(len(s)), np.ones(len(s))
    for _ in range(60):  # bisection
        middle = 0.5 * (low + high)
        is_beyond = _ramp(middle)[0] > shares
        low, high = np.where(is_beyond, low, middle), np.where(is_beyond, middle, high)
    apart = np.diff(high[1:-1], prepend=0.0) > MIN_NODE_DISTANCE
    inner = high[1:-1][apart & (high[1:-1] < 1.0 - MIN_NODE_DISTANCE)]
    knots = np.concatenate([[0.0], inner, [1.0]])
    return _graded(_split(knots, np.ceil(MIN_NODES * np.diff(knots)).astype(int)))


def _split(z: Array, parts: Indices) -> Array:
    """Return points (k,) that divide the intervals of points z (m + 1,) into equal parts (m,)."""
    i = np.repeat(np.arange(len(parts)), parts)
    number = np.arange(len(i)) - (np.cumsum(parts) - parts)[i]
    return np.append(z[i] + number / parts[i] * np.diff(z)[i], z[-1])


def _graded(z: Array) -> Array:
    """Return points (k,) in which no interval is much longer than a neighbour; divide long ones.

    At the ends of an interval with much shorter neighbours, the speed hardly depends on the control
    value of this interval, so that limits at the ends would hardly bound the control value.
    """
    while True:
        h = np.diff(z)
        shortest = np.minimum(np.append(h[1:], np.inf), np.append(np.inf, h[:-1]))
        is_long = h > MAX_LENGTH_RATIO * shortest
        if not is_long.any():
            return z
        z = _split(z, 1 + is_long)


def _slowdowns(motion: JointSpline, limits: MotionLimits) -> Array:
    """Return the smallest factor (m - 1,) on the duration of each interval that keeps all limits.

    A factor is at most 1 if the motion keeps the limits in the interval.
    """
    factors = np.zeros(len(motion.times) - 1)
    for order, limit in enumerate((limits.velocity, limits.acceleration, limits.jerk), 1):
        ratio = (motion.largest(order) / limit).max(axis=1)
        factors = np.maximum(factors, ratio ** (1.0 / order))
    if limits.tip is not None:
        shares = np.linspace(0.0, 1.0, NUM_TIP_SAMPLES)
        t = (motion.times[:-1, None] + shares * np.diff(motion.times)[:, None]).ravel()
        q, v, _ = motion.sample(t)
        speeds = limits.tip.path_shares(q, v).reshape(-1, len(shares))
        factors = np.maximum(factors, speeds.max(axis=1))
    return factors


def _at_whole_nanoseconds(motion: JointSpline) -> JointSpline:
    """Return a trajectory whose points are at whole nanoseconds, as messages of ROS need.

    If only the times were rounded, the jerk in short intervals would change considerably, because
    the jerk depends on the third power of the interval. Positions and velocities are therefore
    extrapolated to the rounded times.
    """
    times = np.round(motion.times, 9)
    late = (times - motion.times)[:, None]
    a = motion.accelerations
    return JointSpline(times, motion.q + late * motion.v, motion.v + late * a, a)
