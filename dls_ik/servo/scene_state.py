# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Distances in a scene at the commanded joint positions, and the distances that must be kept.

A pair is two links, a link and an object, or a link and a workspace bound. The required distance of
a pair is the distance below which its shapes may not come.
"""

from typing import NamedTuple

import numpy as np

from dls_ik import compat
from dls_ik.core.certificate import certify
from dls_ik.core.near_pairs import watch
from dls_ik.core.proximity import DISTANCE_ROUNDING
from dls_ik.core.types import Array, Flags, Indices
from dls_ik.scene.srdf import Pair
from dls_ik.servo.motion import StopPath
from dls_ik.servo.workspace import GuardedPairs


class NearPair(NamedTuple):
    """Pair of links, of a link and an object, or of a link and a bound, with its distance."""

    names: Pair
    distance: float  # [m] lower bound on the distance, from spheres around the shapes
    points: Array  # (2, 3) closest points of the first and second name, in the root frame [m]
    normal: Array  # (3,) unit vector from the first to the second point

    def __str__(self) -> str:
        """Return the names of the pair, and its distance in mm."""
        return f"{self.names[0]!r} and {self.names[1]!r}, {1e3 * self.distance:.3g} mm apart"


class SceneState:
    """Current distances and required distances of all pairs, updated while the command moves.

    There are p pairs of two links, and s pairs of a link and an object or workspace bound.

    Args:
        pairs: Pairs of the scene and of the workspace, with the distances specified for them.
        n: Number of joints.

    Attributes:
        pairs: The argument `pairs`.
        least: (p + s,) current required distance of each pair [m]. If a pair was closer than its
            specified distance at the start, its required distance starts at that smaller distance,
            and grows when the pair separates, up to the specified distance.
    """

    def __init__(self, pairs: GuardedPairs, n: int) -> None:
        self.pairs = pairs
        count = len(pairs.names)
        self.least = np.full(count, -np.inf)
        # Lower bounds on the distances [m], and the joint positions at which they are valid.
        self._known = np.full(count, -np.inf), np.zeros(n)
        # Joint positions at the last update, and indices of the closest leaves of each pair.
        self._seen = np.full(n, np.nan), np.zeros((count, 2), np.int64)
        self._points = np.zeros((3, 3))  # closest points and normal, written by the kernel
        self._certify = compat.EntryPoint(certify)
        self._watch = compat.EntryPoint(watch)

    @property
    def watched(self) -> tuple[Array, Array, Indices]:
        """Lower bounds on distances (p + s,) [m], joint positions (n,), closest leaves (p + s, 2).

        All are results of the last update. Each shape is enclosed in a tree of spheres; the closest
        leaves are the indices of the two closest leaf spheres of each pair.
        """
        return self._known[0], *self._seen

    def restart(self, q: Array, influence: float, promised: Array | None = None) -> None:
        """Set the required distances from the distances at joint positions q.

        Each pair must keep `min_distance`, or its distance at q if that is smaller.

        Args:
            q: (n,) joint positions of the command [rad or m].
            influence: Distance below which the lower bounds on distances are nearly exact [m].
            promised: (p + s,) certified (proven) distances at q [m], which may be larger than the
                lower bounds computed here. Each pair must also keep its certified distance if that
                is below `min_distance`. None: no pair is certified.
        """
        self._known[0].fill(-np.inf)
        self.least.fill(-np.inf)
        self.look(q, influence)
        if promised is not None:
            np.maximum(self.least, np.minimum(promised, self.pairs.distance), out=self.least)

    def failing(self, q: Array, stop: StopPath) -> int:
        """Return the index of a pair that may come closer than its required distance on a path.

        The path is straight from `q` to the start of a braking motion, and then follows the braking
        motion until the joints are at rest.

        Args:
            q: (n,) joint positions at the start of the path [rad or m].
            stop: Braking motion.

        Returns:
            The index; -1 if all pairs are proven to keep their required distances.
        """
        if not len(self.least):
            return -1
        pairs = self.pairs
        args = (pairs.packed, pairs.leverage, self.least, self._known, q, stop[:])
        return int(self._certify(*args))

    def failing_among(self, selected: Flags, q: Array, stop: StopPath) -> int:
        """Do the check of :meth:`failing` for selected pairs only, and return its result.

        Args:
            selected: (p + s,) True for each pair to check.
            q: (n,) joint positions at the start of the path [rad or m].
            stop: Braking motion at the end of the path.
        """
        required = self.least.copy()
        self.least[~selected] = -np.inf
        k = self.failing(q, stop)
        self.least[:] = required
        return k

    def smallest_along(self, path: Array, influence: float) -> Array:
        """Return lower bounds (p + s,) on the smallest distance of each pair along a path [m].

        Args:
            path: (k, n) configurations; distances are not checked between them [rad or m].
            influence: Distance below which the lower bounds are tight [m].
        """
        required, found = self.least.copy(), np.full(len(self.least), np.inf)
        for q in path:
            self.look(q, influence)
            np.minimum(found, self._known[0], out=found)
        self.least[:] = required
        return found

    def look(self, q: Array, influence: float) -> NearPair | None:
        """Update the distances and required distances at joint positions q.

        Args:
            q: (n,) joint positions [rad or m].
            influence: Distance below which the computed lower bounds on distances are close to the
                distances [m].

        Returns:
            The closest pair; None if no pair is closer than `influence`.
        """
        if not len(self.least):
            return None
        pairs = self.pairs
        limits = self.least, pairs.distance
        packed, reach = pairs.packed, pairs.leverage[0]
        args = (packed, reach, limits, self._known, self._seen, q, influence, self._points)
        k, d = self._watch(*args)
        if k < 0:
            return None
        return self._near_pair(k, float(d), self._points.copy())

    def relax(self, promised: Array) -> None:
        """Reduce required distances to the current distances, at the end of a stop.

        A leaf sphere of a tree may extend beyond its parent sphere. The lower bound on the current
        distance of a pair may therefore be smaller than its certified distance. No required
        distance is reduced below `promised`; otherwise required distances would shrink at every
        stop.

        Args:
            promised: (p + s,) required distance of each pair when the stop was certified [m].
        """
        least, known = self.least, self._known[0]
        below = known < least - 2.0 * DISTANCE_ROUNDING
        least[below] = np.maximum(known[below] + 0.9 * DISTANCE_ROUNDING, promised[below])

    def distances(self, q: Array, within: float) -> Array:
        """Return lower bounds (p + s,) on the distances at joint positions q (n,) [m].

        The bounds are tight below `within` [m]. This call also sets the required distances from the
        distances at q, see :meth:`restart`.
        """
        self.restart(q, within)
        return self._known[0].copy()

    def distances_now(self) -> Array:
        """Return the lower bounds (p + s,) on the distances [m] at the last update; a copy."""
        return self._known[0].copy()

    def near_pair(self, k: int, distance: float | None = None) -> NearPair:
        """Return pair k with a distance; its closest points and normal are set to zero.

        Args:
            k: Index of the pair.
            distance: Distance [m]; None: the lower bound at the last update.
        """
        d = float(self._known[0][k]) if distance is None else distance
        return self._near_pair(k, d, np.zeros((3, 3)))

    def _near_pair(self, k: int, d: float, points: Array) -> NearPair:
        """Return pair k with the given distance, closest points and normal.

        Args:
            k: Index of the pair.
            d: Distance [m].
            points: (3, 3) closest points of both shapes, and normal, as computed by the kernels.
                The kernels may have the shapes in reverse order; the result has the order of the
                names.
        """
        ends, normal = points[:2], points[2]
        if self.pairs.second_first[k]:
            ends, normal = ends[::-1], -normal
        return NearPair(self.pairs.names[k], d, ends, normal)
