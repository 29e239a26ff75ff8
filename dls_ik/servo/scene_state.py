# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Distances of the pairs of a scene along the command, and their required distances."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dls_ik import compat
from dls_ik.core.certificate import certify
from dls_ik.core.near_pairs import watch
from dls_ik.core.proximity import ROUNDING
from dls_ik.core.types import Array, Flags, Indices
from dls_ik.scene.srdf import Pair
from dls_ik.servo.motion import StopPath
from dls_ik.servo.workspace import GuardedPairs


class NearPair(NamedTuple):
    """A pair of links, objects or bounds, with its distance."""

    names: Pair
    distance: float  # [m] lower bound, from spheres around the shapes
    points: Array  # (2, 3) closest points on both, in the root link's frame [m]
    normal: Array  # (3,) unit vector from the first to the second

    def __str__(self) -> str:
        """Return the names and the distance."""
        return f"{self.names[0]!r} and {self.names[1]!r}, {1e3 * self.distance:.3g} mm apart"


class SceneState:
    """Distances of the pairs of a scene along the command.

    Args:
        pairs: Pairs of a scene and a workspace.
        n: Number of joints.

    Attributes:
        pairs: As given.
        least: (p + s,) distance that each pair must keep at present [m]: `min_distance`, or the
            current distance of a pair that is closer.
    """

    def __init__(self, pairs: GuardedPairs, n: int) -> None:
        self.pairs = pairs
        count = len(pairs.names)
        self.least = np.full(count, -np.inf)
        self._known = np.full(count, -np.inf), np.zeros(n)  # distances [m], and their q (n,)
        self._seen = np.full(n, np.nan), np.zeros((count, 2), np.int64)  # q (n,), closest leaves
        self._points = np.zeros((3, 3))  # closest points and normal, written by the kernel
        self._certify: Callable[..., Any] | None = None  # entry points of the kernels, set at use
        self._watch: Callable[..., Any] | None = None

    @property
    def watched(self) -> tuple[Array, Array, Indices]:
        """Distances (p + s,) [m], q (n,) and closest tree leaves (p + s, 2) of the last update."""
        return self._known[0], *self._seen

    def restart(self, q: Array, influence: float, promised: Array | None = None) -> None:
        """Restart at q (n,): require the distance of each pair there, at most `min_distance`.

        Args:
            q: (n,) joint positions of the command [rad or m].
            influence: Distance up to which distances are computed exactly [m].
            promised: (p + s,) certified distances at q [m]. The sphere bounds may be smaller; the
                required distance is never below these. None: nothing is certified.
        """
        self._known[0].fill(-np.inf)
        self.least.fill(-np.inf)
        self.look(q, influence)
        if promised is not None:
            np.maximum(self.least, np.minimum(promised, self.pairs.distance), out=self.least)

    def failing(self, q: Array, stop: StopPath) -> int:
        """Return a pair that may fall below its required distance, or -1.

        The path that is certified leads from q (n,) to the start of the stop, and along the stop.
        """
        if not len(self.least):
            return -1
        pairs = self.pairs
        args = (pairs.packed, pairs.leverage, self.least, self._known, q, stop[:])
        if self._certify is None:
            self._certify = compat.numba_entry(certify, args)
        return int(self._certify(*args))

    def failing_among(self, selected: Flags, q: Array, stop: StopPath) -> int:
        """Return one of the selected pairs (p + s,) as :meth:`failing` does, or -1."""
        required = self.least.copy()
        self.least[~selected] = -np.inf
        k = self.failing(q, stop)
        self.least[:] = required
        return k

    def smallest_along(self, path: Array, influence: float) -> Array:
        """Return lower bounds (p + s,) of the smallest distances at configurations (k, n) [m]."""
        required, found = self.least.copy(), np.full(len(self.least), np.inf)
        for q in path:
            self.look(q, influence)
            np.minimum(found, self._known[0], out=found)
        self.least[:] = required
        return found

    def look(self, q: Array, influence: float) -> NearPair | None:
        """Update the distances at q (n,); return the closest pair within a distance [m], if any."""
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
        """Lower required distances to the known distances after a stop, not below the certificate.

        The spheres of tree leaves extend beyond those of their parents. The known distance of a
        pair may therefore be smaller than its certified distance; without the lower bound by
        `promised` the required distance would shrink at every stop.

        Args:
            promised: (p + s,) required distance of each pair when the stop was certified [m].
        """
        least, known = self.least, self._known[0]
        below = known < least - 2.0 * ROUNDING
        least[below] = np.maximum(known[below] + 0.9 * ROUNDING, promised[below])

    def distances(self, q: Array, within: float) -> Array:
        """Return lower bounds (p + s,) of the distances at q (n,) [m], tight within a distance.

        Restarts the required distances at q.
        """
        self.restart(q, within)
        return self._known[0].copy()

    def distances_now(self) -> Array:
        """Return the known lower bounds (p + s,) of the distances [m]; a copy."""
        return self._known[0].copy()

    def near_pair(self, k: int, distance: float | None = None) -> NearPair:
        """Return a pair with a distance [m], by default the known lower bound; points are zero."""
        d = float(self._known[0][k]) if distance is None else distance
        return self._near_pair(k, d, np.zeros((3, 3)))

    def _near_pair(self, k: int, d: float, points: Array) -> NearPair:
        """Return a pair with its points and normal (3, 3), in the order of its names."""
        ends, normal = points[:2], points[2]
        if self.pairs.second_first[k]:
            ends, normal = ends[::-1], -normal
        return NearPair(self.pairs.names[k], d, ends, normal)
