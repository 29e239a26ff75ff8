"""Distances of the pairs of a scene as the command moves, and the distance each pair must keep."""

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
    """The two links, objects or bounds that are nearest each other within `influence_distance`."""

    names: Pair
    distance: float  # [m], at most as large as it is: of spheres around the shapes
    points: Array  # (2, 3) on either, in the root link's frame [m]
    normal: Array  # (3,) unit vector from the first to the second

    def __str__(self) -> str:
        """Return names and distance."""
        return f"{self.names[0]!r} and {self.names[1]!r}, {1e3 * self.distance:.3g} mm apart"


class SceneState:
    """Distances of the pairs of a scene, as the command moves.

    Args:
        n: joints.
    """

    def __init__(self, pairs: GuardedPairs, n: int) -> None:
        self.pairs = pairs
        count = len(pairs.names)
        self.least = np.full(count, -np.inf)  # (p + s,) that each pair keeps [m]
        self._known = np.full(count, -np.inf), np.zeros(n)
        self._seen = np.full(n, np.nan), np.zeros((count, 2), np.int64)
        self._points = np.zeros((3, 3))
        self._certify: Callable[..., Any] | None = None  # for arguments of these types
        self._watch: Callable[..., Any] | None = None

    @property
    def watched(self) -> tuple[Array, Array, Indices]:
        """Distances (p + s,) and the place (n,) of the last look, and nearest leaves (p + s, 2)."""
        return self._known[0], *self._seen

    def begin(self, q: Array, influence: float, promised: Array | None = None) -> None:
        """Require of each pair its distance at q (n,), and at most the distance to keep.

        Args:
            promised: (p + s,) distances that are certified at q [m], which bounds of spheres may
                miss: no less is required. None: nothing is certified.
        """
        self._known[0].fill(-np.inf)
        self.least.fill(-np.inf)
        self.look(q, influence)
        if promised is not None:
            np.maximum(self.least, np.minimum(promised, self.pairs.distance), out=self.least)

    def failing(self, q: Array, stop: StopPath) -> int:
        """Return a pair that does not keep its distance from q to a stop and along it, or -1."""
        if not len(self.least):
            return -1
        pairs = self.pairs
        args = (pairs.packed, pairs.leverage, self.least, self._known, q, stop[:])
        if self._certify is None:
            self._certify = compat.numba_entry(certify, args)
        return int(self._certify(*args))

    def failing_among(self, some: Flags, q: Array, stop: StopPath) -> int:
        """Return one of some pairs (p + s,) as :meth:`failing` does, or -1."""
        required = self.least.copy()
        self.least[~some] = -np.inf
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
        """Return the nearest pair at q (n,), if it is within a distance [m]."""
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
        """Let pairs keep what they have, where a stop led nearer than its arm had been on the way.

        Spheres of leaves stand out of those about them: the distance that is known may be less than
        that which is certified, and what a pair keeps would sink by that at every stop.

        Args:
            promised: (p + s,) distance that each pair kept when the stop was certified [m].
        """
        least, known = self.least, self._known[0]
        below = known < least - 2.0 * ROUNDING
        least[below] = np.maximum(known[below] + 0.9 * ROUNDING, promised[below])

    def distances(self, q: Array, within: float) -> Array:
        """Return lower bounds (p + s,) of the distances at q (n,) [m], exact within a distance."""
        self.begin(q, within)
        return self._known[0].copy()

    def distances_now(self) -> Array:
        """Return the known lower bounds (p + s,) of the distances [m]; a copy."""
        return self._known[0].copy()

    def near_pair(self, k: int, distance: float | None = None) -> NearPair:
        """Return the names of a pair and its distance [m], by default the known lower bound."""
        d = float(self._known[0][k]) if distance is None else distance
        return self._near_pair(k, d, np.zeros((3, 3)))

    def _near_pair(self, k: int, d: float, points: Array) -> NearPair:
        one, normal = points[:2], points[2]
        if self.pairs.second_first[k]:
            one, normal = one[::-1], -normal
        return NearPair(self.pairs.names[k], d, one, normal)
