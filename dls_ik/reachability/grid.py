"""The voxels of a map: where their centres are, and in which order they are numbered."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.names import quoted
from dls_ik.reachability.bounds import Ball
from dls_ik.reachability.error import ReachabilityError

MOST_VOXELS = 10**8  # three gigabytes of results
FINEST, COARSEST = 1e-6, 1e6  # [m]


class Grid(NamedTuple):
    """Cubes side by side, axes along those of the base frame; numbered with z running fastest."""

    origin: tuple[float, float, float]  # centre of voxel (0, 0, 0) [m]
    resolution: float  # edge [m]
    shape: tuple[int, int, int]

    @property
    def size(self) -> int:
        """How many voxels there are."""
        return math.prod(self.shape)

    def axis(self, i: int) -> Array:
        """Coordinates (shape[i],) of the centres along an axis [m]."""
        return self._along(i, np.arange(self.shape[i]))

    def edges(self, i: int) -> Array:
        """Where the layers across an axis end: (shape[i] + 1,) [m]."""
        return self._along(i, np.arange(self.shape[i] + 1) - 0.5)

    def centres(self, first: int, last: int) -> Array:
        """Centres of the voxels numbered first to last - 1: (last - first, 3) [m]."""
        places = np.stack(np.unravel_index(np.arange(first, last), self.shape), axis=-1)
        return self._along(slice(None), places)

    def _along(self, i: int | slice, steps: NDArray[Any]) -> Array:
        """Coordinates [m] so many voxels from the first one."""
        coordinates: Array = np.array(self.origin)[i] + self.resolution * steps
        return coordinates

    def layer(self, i: int, coordinate: float) -> int:
        """The layer across axis i whose centre is nearest a coordinate [m]."""
        nearest = round((coordinate - self.origin[i]) / self.resolution)
        return min(max(nearest, 0), self.shape[i] - 1)


def checked_resolution(resolution: float) -> float:
    """The edge of a voxel [m].

    Raises:
        ReachabilityError: not a length between a micrometre and a thousand kilometres.
    """
    if isinstance(resolution, (int, float, np.number)) and FINEST <= resolution <= COARSEST:
        return float(resolution)
    raise ReachabilityError(
        f"the resolution is the edge of a voxel, from {FINEST:g} to {COARSEST:g} m, "
        f"not {quoted(resolution)}"
    )


def grid_around(ball: Ball, resolution: float) -> Grid:
    """Voxels that cover a ball; one of them is centred on the ball's centre.

    Raises:
        ReachabilityError: too many voxels.
    """
    beside = max(0, math.ceil(ball.radius / resolution - 0.5 - 1e-9))  # on each side of the middle
    x, y, z = (float(c) - beside * resolution for c in ball.centre)
    count = 2 * beside + 1
    return _not_too_many(Grid((x, y, z), resolution, (count, count, count)))


def grid_in(region: Sequence[float], resolution: float) -> Grid:
    """Voxels that cover a box.

    Args:
        region: (6,) x0 x1 y0 y1 z0 z1 [m]. The first voxel begins at x0; the last one may end
            beyond x1. Where both are equal there is one layer, centred there.
        resolution: edge of a voxel [m].

    Raises:
        ReachabilityError: not six finite numbers in order; too many voxels.
    """
    ends = _checked_region(region)
    counts = [max(1, math.ceil((b - a) / resolution - 1e-9)) for a, b in ends]
    starts = [a + (resolution / 2.0 if b > a else 0.0) for a, b in ends]
    grid = Grid((starts[0], starts[1], starts[2]), resolution, (counts[0], counts[1], counts[2]))
    return _not_too_many(grid)


def _checked_region(region: Sequence[float]) -> list[tuple[float, float]]:
    try:
        numbers = [float(x) for x in region]
    except (TypeError, ValueError):
        numbers = []
    ends = list(zip(numbers[::2], numbers[1::2], strict=False))
    if len(numbers) == 6 and all(map(math.isfinite, numbers)) and all(a <= b for a, b in ends):
        return ends
    raise ReachabilityError(
        "a region is x0 x1 y0 y1 z0 z1 [m], six finite numbers, each first end not above the "
        f"second, not {quoted(region)}"
    )


def _not_too_many(grid: Grid) -> Grid:
    if grid.size <= MOST_VOXELS:
        return grid
    nx, ny, nz = grid.shape
    raise ReachabilityError(
        f"a resolution of {grid.resolution:g} m makes {nx} x {ny} x {nz} = {grid.size:.3g} voxels; "
        f"a map has at most {MOST_VOXELS:.0e}: take a coarser one, or a smaller region"
    )
