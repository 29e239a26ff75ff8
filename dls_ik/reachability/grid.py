# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Poses of a reachability map: a grid of voxels, and the orientations tested in each voxel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import ChunkError
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import rotation_of_unit
from dls_ik.text import quoted

MAX_VOXELS = 10**8  # maximum number of voxels, whose results take three gigabytes
MIN_RESOLUTION, MAX_RESOLUTION = 1e-6, 1e6  # [m] valid edge lengths of a voxel

# Constants of the spiral of Alexa 2022; PSI is the positive root of x^4 = x + 4.
PHI = np.sqrt(2.0)
PSI = 1.533751168755204288118041
GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))


class ReachabilityError(ChunkError):
    """A reachability map that cannot be computed, stored, resumed or read."""


# Voxels


class Ball(NamedTuple):
    """Ball in the base frame, given by its centre and radius."""

    centre: Array  # (3,) centre [m]
    radius: float  # [m]


def reach_ball(robot: RobotModel) -> Ball:
    """Return a ball that contains every position of the tip within the joint limits.

    The ball is computed joint by joint from the tip to the base. At a revolute joint, the centre is
    projected onto the axis, and its distance from the axis is added to the radius. At a prismatic
    joint, the centre is moved to the middle of the range, and half the range is added to the
    radius. For an arm with a shoulder, the final centre is the shoulder.
    """
    chain = robot.chain
    centre, radius = chain.fixed[-1, :, 3].copy(), 0.0
    for i in range(len(chain.prismatic) - 1, -1, -1):
        if chain.prismatic[i]:
            middle, half = _range(robot, i)
            centre[2] += middle
            radius += half
        else:
            radius += float(np.hypot(centre[0], centre[1]))
            centre[:2] = 0.0
        centre = chain.fixed[i, :, :3] @ centre + chain.fixed[i, :, 3]
    return Ball(centre, radius)


def _range(robot: RobotModel, i: int) -> tuple[float, float]:
    """Return the middle and half the length of the range of prismatic joint number i [m].

    The limits of the joint must be finite.
    """
    chain, variable = robot.chain, robot.chain.variable[i]
    middle = (chain.lower[variable] + chain.upper[variable]) / 2.0
    half = (chain.upper[variable] - chain.lower[variable]) / 2.0
    return float(chain.scale[i] * middle + chain.offset[i]), float(abs(chain.scale[i]) * half)


class Grid(NamedTuple):
    """Grid of cubic voxels along the axes of the base frame.

    Voxels are numbered from 0 such that the index along z varies fastest.
    """

    origin: tuple[float, float, float]  # centre of voxel (0, 0, 0) [m]
    resolution: float  # edge of a voxel [m]
    shape: tuple[int, int, int]

    @property
    def size(self) -> int:
        """Number of voxels."""
        return math.prod(self.shape)

    def axis(self, i: int) -> Array:
        """Return the coordinates (shape[i],) of the voxel centres along axis i [m]."""
        return self._along(i, np.arange(self.shape[i]))

    def edges(self, i: int) -> Array:
        """Return the coordinates (shape[i] + 1,) of the voxel boundaries along axis i [m]."""
        return self._along(i, np.arange(self.shape[i] + 1) - 0.5)

    def centres(self, first: int, last: int) -> Array:
        """Return the centres (last - first, 3) [m] of voxels number `first` to `last` - 1."""
        places = np.stack(np.unravel_index(np.arange(first, last), self.shape), axis=-1)
        return self._along(slice(None), places)

    def _along(self, i: int | slice, steps: NDArray[Any]) -> Array:
        """Return coordinates [m] that are `steps` voxels from the centre of voxel 0.

        Args:
            i: Axis, or a slice of axes.
            steps: Numbers of voxels.
        """
        coordinates: Array = np.array(self.origin)[i] + self.resolution * steps
        return coordinates

    def layer(self, i: int, coordinate: float) -> int:
        """Return the index along axis i of the voxels whose centre is closest to a coordinate.

        Args:
            i: Axis: 0, 1 or 2 for x, y or z.
            coordinate: Coordinate along the axis [m].
        """
        nearest = round((coordinate - self.origin[i]) / self.resolution)
        return min(max(nearest, 0), self.shape[i] - 1)


def checked_resolution(resolution: float) -> float:
    """Check the edge length of a voxel [m], and return it as a float.

    Raises:
        ReachabilityError: If the length is not from MIN_RESOLUTION to MAX_RESOLUTION.
    """
    if (
        isinstance(resolution, (int, float, np.number))
        and MIN_RESOLUTION <= resolution <= MAX_RESOLUTION
    ):
        return float(resolution)
    raise ReachabilityError(
        f"the resolution, the edge of a voxel, must be {MIN_RESOLUTION:g} to {MAX_RESOLUTION:g} m, "
        f"not {quoted(resolution)}"
    )


def grid_around(ball: Ball, resolution: float) -> Grid:
    """Return a grid that covers a ball and has a voxel centred at the centre of the ball.

    Args:
        ball: Ball to cover.
        resolution: Edge of a voxel [m].

    Raises:
        ReachabilityError: If the grid has too many voxels.
    """
    # Number of voxels on each side of the middle voxel
    beside = max(0, math.ceil(ball.radius / resolution - 0.5 - 1e-9))
    x, y, z = (float(c) - beside * resolution for c in ball.centre)
    count = 2 * beside + 1
    return _not_too_many(Grid((x, y, z), resolution, (count, count, count)))


def grid_in(region: Sequence[float], resolution: float) -> Grid:
    """Return a grid that covers a box.

    Args:
        region: (6,) x0 x1 y0 y1 z0 z1 [m]. The first voxel starts at x0; the last voxel may extend
            beyond x1. Equal bounds, such as z0 = z1, give one layer of voxels centred at z0.
        resolution: Edge of a voxel [m].

    Raises:
        ReachabilityError: If the bounds are not six finite numbers with x0 <= x1, y0 <= y1 and
            z0 <= z1, or there are too many voxels.
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
        "a region must be x0 x1 y0 y1 z0 z1 [m], six finite numbers with x0 <= x1, y0 <= y1, "
        f"z0 <= z1; got {quoted(region)}"
    )


def _not_too_many(grid: Grid) -> Grid:
    if grid.size <= MAX_VOXELS:
        return grid
    nx, ny, nz = grid.shape
    raise ReachabilityError(
        f"a resolution of {grid.resolution:g} m gives {nx} x {ny} x {nz} = {grid.size:.3g} voxels, "
        f"but a map has at most {MAX_VOXELS:.0e}: give a larger resolution or a smaller region"
    )


# Orientations


def orientations(count: int, task: str) -> Array:
    """Return the rotations R_base_tip (count, 3, 3) that are tested in every voxel.

    Args:
        count: Number of rotations.
        task: Name of the task; for ``position``, the only rotation is the identity.
    """
    if task == "position":
        return np.eye(3)[None]
    return spread_directions(count) if task == "pointing" else spread_rotations(count)


def spread_rotations(count: int) -> Array:
    """Return evenly distributed rotations (count, 3, 3): a super-Fibonacci spiral (Alexa 2022)."""
    s = np.arange(count) + 0.5
    small, large = np.sqrt(s / count), np.sqrt(1.0 - s / count)
    alpha, beta = 2.0 * np.pi * s / PHI, 2.0 * np.pi * s / PSI
    quaternions = np.stack(
        [small * np.sin(alpha), small * np.cos(alpha), large * np.sin(beta), large * np.cos(beta)]
    )
    return np.moveaxis(np.array(rotation_of_unit(*quaternions)), -1, 0)


def spread_directions(count: int) -> Array:
    """Return rotations (count, 3, 3) whose z axes are evenly distributed directions.

    The directions are a Fibonacci lattice on the sphere (Gonzalez 2010).
    """
    k = np.arange(count)
    height = 1.0 - (2.0 * k + 1.0) / count
    turn, radius = GOLDEN_ANGLE * k, np.sqrt(1.0 - height**2)
    z = np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=-1)
    aside = np.where(np.abs(z[:, :1]) < 0.5, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    y = np.cross(z, aside)
    y /= np.linalg.norm(y, axis=-1, keepdims=True)
    return np.stack([np.cross(y, z), y, z], axis=-1)
