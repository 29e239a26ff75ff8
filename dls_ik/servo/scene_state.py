# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Distances of the pairs of a scene at the command, and the distances that the pairs must keep."""

from collections.abc import Callable
from typing import Any, NamedTuple

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
    """A pair of links, objects or bounds, with its distance."""

    names: Pair
    distance: float  # [m] lower bound on the distance, from spheres around the shapes
    points: Array  # (2, 3) closest points of the first and second name, in the root frame [m]
    normal: Array  # (3,) unit vector from the first to the second point

    def __str__(self) -> str:
        """Return the names and the distance."""
        return f"{self.names[0]!r} and {self.names[1]!r}, {1e3 * self.distance:.3g} mm apart"


class SceneState:
    """Distances of the pairs of a scene, updated while the command moves.

    There are p pairs of links and s pairs of a link and an object or bound.

    Args:
        pairs: Pairs of a scene and a workspace.
        n: Number of joints.

    Attributes:
        pairs: As given.
        least: (p + s,) distance that each pair must keep at present [m]: `min_distance`, or the
            current distance if the pair is already closer.
    """

    def __init__(self, pairs: GuardedPairs, n: int) -> None:
        self.pairs = pairs
        count = len(pairs.names)
        self.least = np.full(count, -np.inf)
        self._known = np.full(count, -np.inf), np.zeros(n)  # lower bounds [m], and their q (n,)
        self._seen = np.full(n, np.nan), np.zeros((count, 2), np.int64)  # q (n,), closest leaves
        self._points = np.zeros((3, 3))  # closest points and normal, written by the kernel
        self._certify: Callable[..., Any] | None = None  # entry points of kernels, set at first use
        self._watch: Callable[..., Any] | None = None

    @property
    def watched(self) -> tuple[Array, Array, Indices]:
        """Result of the last update: distances (p + s,) [m], q (n,), closest leaves (p + s, 2).

        The distances are lower bounds; the leaves are those of the sphere trees of each pair.
        """
        return self._known[0], *self._seen

    def restart(self, q: Array, influence: float, promised: Array | None = None) -> None:
        """Restart at q (n,): each pair must keep its distance at q, or `min_distance` if smaller.

        Args:
            q: (n,) joint positions of the command [rad or m].
            influence: Distance below which the lower bounds on distances are tight [m].
            promised: (p + s,) certified distances at q [m]. The lower bounds by spheres may be
                smaller than the certified distances; a required distance is at least the certified
                distance, up to `min_distance`. None: no pair is certified.
        """
        self._known[0].fill(-np.inf)
        self.least.fill(-np.inf)
        self.look(q, influence)
        if promised is not None:
            np.maximum(self.least, np.minimum(promised, self.pairs.distance), out=self.least)

    def failing(self, q: Array, stop: StopPath) -> int:
        """Return the index of a pair that may become closer than its required distance, or -1.

        The checked path leads from q to the start of the stop, and then along the stop.

        Args:
            q: (n,) joint positions [rad or m].
            stop: Stop at the end of the path.
        """
        if not len(self.least):
            return -1
        pairs = self.pairs
        args = (pairs.packed, pairs.leverage, self.least, self._known, q, stop[:])
        if self._certify is None:
            self._certify = compat.numba_entry(certify, args)
        return int(self._certify(*args))

    def failing_among(self, selected: Flags, q: Array, stop: StopPath) -> int:
        """Return the same as :meth:`failing`, but check only the selected pairs (p + s,)."""
        required = self.least.copy()
        self.least[~selected] = -np.inf
        k = self.failing(q, stop)
        self.least[:] = required
        return k

    def smallest_along(self, path: Array, influence: float) -> Array:
        """Return lower bounds (p + s,) on the smallest distances [m] over configurations (k, n)."""
        required, found = self.least.copy(), np.full(len(self.least), np.inf)
        for q in path:
            self.look(q, influence)
            np.minimum(found, self._known[0], out=found)
        self.least[:] = required
        return found

    def look(self, q: Array, influence: float) -> NearPair | None:
        """Update the distances at q (n,); return the closest pair.

        None is returned if no pair is closer than `influence` [m].
        """
        if not len(self.least):
            return None
        pairs = self.pairs
        limits = self.least, pairs.distance
        packed, reach = pairs.packed, pairs.leverage[0]
        args = (packed, reach, limits, self._known, self._seen, q, influence, self._points)
        if self._watch is None:
            self._watch = compat.numba_entry(watch, args)
        k, d = self._watch(*args)
        if k < 0:
            return None
        return self._near_pair(k, float(d), self._points.copy())

    def relax(self, promised: Array) -> None:
        """Lower required distances to the known distances after a stop, but not below `promised`.

        A leaf sphere of a tree may extend beyond its parent sphere. The known lower bound on the
        distance of a pair may therefore be smaller than its certified distance. Without the limit
        `promised`, the required distance would shrink at every stop.

        Args:
            promised: (p + s,) required distance of each pair when the stop was certified [m].
        """
        least, known = self.least, self._known[0]
        below = known < least - 2.0 * DISTANCE_ROUNDING
        least[below] = np.maximum(known[below] + 0.9 * DISTANCE_ROUNDING, promised[below])

    def distances(self, q: Array, within: float) -> Array:
        """Return lower bounds (p + s,) on the distances at q (n,) [m], tight below `within` [m].

        This call also restarts the required distances at q; see :meth:`restart`.
        """
        self.restart(q, within)
        return self._known[0].copy()

    def distances_now(self) -> Array:
        """Return the last lower bounds (p + s,) on the distances [m]; a copy."""
        return self._known[0].copy()

    def near_pair(self, k: int, distance: float | None = None) -> NearPair:
        """Return pair k with a distance [m] and with zeros for its points and normal.

        Args:
            k: Index of the pair.
            distance: Distance [m]; None: the last lower bound.
        """
        d = float(self._known[0][k]) if distance is None else distance
        return self._near_pair(k, d, np.zeros((3, 3)))

    def _near_pair(self, k: int, d: float, points: Array) -> NearPair:
        """Return pair k with a distance d [m]; put its points in the order of its names.

        Args:
            k: Index of the pair.
            d: Distance [m].
            points: (3, 3) closest points of both shapes, and normal, in the order of the kernels.
        """
        ends, normal = points[:2], points[2]
        if self.pairs.second_first[k]:
            ends, normal = ends[::-1], -normal
        return NearPair(self.pairs.names[k], d, ends, normal)
