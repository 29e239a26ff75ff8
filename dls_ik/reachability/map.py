"""A finished map: its numbers, what they sum up to, and its file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.reachability.chunk import Voxels
from dls_ik.reachability.grid import Grid
from dls_ik.reachability.settings import Settings


@dataclass(frozen=True, eq=False)
class ReachabilityMap:
    """What share of the orientations the arm reaches in each voxel, and how well it moves there.

    Attributes:
        settings: What the map is of.
        voxels: Arrays (nx, ny, nz), see :class:`dls_ik.reachability.Voxels`.
        shoulder: (3,) centre of the ball that bounds the reach [m].
        versions: Of the packages that it was computed with.
    """

    settings: Settings
    voxels: Voxels
    shoulder: tuple[float, float, float]
    versions: dict[str, str]

    @property
    def grid(self) -> Grid:
        """Where the voxels are."""
        return self.settings.grid

    @property
    def index(self) -> Array:
        """The reachability index (nx, ny, nz), the share of the orientations that is reached.

        As Zacharias, Borst & Hirzinger 2007 have it, by inverse kinematics in every voxel.
        """
        return self.voxels.reached / self.settings.orientations

    @property
    def volume(self) -> float:
        """Volume of the voxels in which some orientation is reached [m^3]."""
        return float(np.count_nonzero(self.voxels.reached)) * self.settings.resolution**3

    def extent(self, i: int) -> tuple[float, float]:
        """Ends, along axis i, of what is reached and of the base, with a voxel of room [m]."""
        layers = np.flatnonzero(self.voxels.reached.any(axis=tuple({0, 1, 2} - {i})))
        places = [0.0, self.shoulder[i], *self.grid.axis(i)[layers]]
        room = 1.5 * self.settings.resolution
        return min(places) - room, max(places) + room

    def at(self, point: Any) -> tuple[int, int, int]:
        """The voxel (i, j, k) that holds a point (3,) [m], or the nearest one."""
        i, j, k = (self.grid.layer(axis, float(x)) for axis, x in enumerate(point))
        return i, j, k

    def summary(self) -> dict[str, Any]:
        """The figures of the map as a whole, for JSON."""
        some = self.voxels.reached > 0
        best = self.voxels.manipulability_best[some]
        return {
            "robot": self.settings.robot,
            "base": self.settings.base,
            "tip": self.settings.tip,
            "task": self.settings.task,
            "resolution": self.settings.resolution,
            "shape": list(self.settings.shape),
            "orientations": self.settings.orientations,
            "voxels": self.grid.size,
            "voxels_reached": int(some.sum()),
            "poses": self.settings.poses,
            "poses_reached": int(self.voxels.reached.sum(dtype=np.int64)),
            "poses_undecided": int(self.voxels.undecided.sum(dtype=np.int64)),
            "volume": self.volume,
            "mean_index": float(self.index[some].mean()) if some.any() else 0.0,
            "largest_index": float(self.index.max()),
            "largest_manipulability": float(best.max()) if some.any() else 0.0,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the map to one file ``.npz`` or one store ``.zarr``, whole or not at all.

        Raises:
            ReachabilityError: another suffix, or it cannot be written.
        """
        from dls_ik.reachability.store import save_map

        save_map(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> ReachabilityMap:
        """Read a map.

        Raises:
            ReachabilityError: no such file, or it holds no map.
        """
        from dls_ik.reachability.store import load_map

        return load_map(path)
