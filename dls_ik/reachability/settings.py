# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Settings that determine every value of a map: its voxels, its rotations, and the robot."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import rotation_of_unit
from dls_ik.model.tree import Tree
from dls_ik.text import listing, quoted

if TYPE_CHECKING:
    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.solver.solver import IkSolver
    from dls_ik.solver.task import Task

FORMAT = 1  # version of the file format

# Defaults of a map
MAP_TASKS = ("pose", "pointing", "position")
RESOLUTION = 0.1  # [m]
ORIENTATIONS = 64
MAP_TOLERANCE = 1e-4  # [m] and [rad]
RESTARTS = 50  # docs/reachability.md describes the effect of more restarts

# Bounds
POSES_PER_CHUNK = (2048, 16384)  # a few seconds of work; unfinished chunks are lost if killed
MANY_CHUNKS = 5000
MOST_ORIENTATIONS = 100_000
MAX_VOXELS = 10**8  # the results of this number of voxels take three gigabytes
MIN_RESOLUTION, MAX_RESOLUTION = 1e-6, 1e6  # [m] limits of the resolution

# Alexa 2022: constants of the spiral; PSI is the positive root of x^4 = x + 4.
PHI = np.sqrt(2.0)
PSI = 1.533751168755204288118041
GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))


class ReachabilityError(DlsIkError):
    """A map that cannot be computed, stored, resumed or read."""


@dataclass(frozen=True)
class MapSettings:
    """Settings that determine a map: maps with equal settings have equal values."""

    robot: str  # name of the robot
    kinematics: str  # SHA-256 of the chain
    base: str  # first link of the chain
    tip: str  # last link of the chain
    task: str  # pose, pointing or position
    origin: tuple[float, float, float]  # centre of the first voxel in the base frame [m]
    resolution: float  # edge of a voxel [m]
    shape: tuple[int, int, int]
    orientations: int  # number of orientations per voxel
    tolerance: float  # [m] and [rad]
    max_restarts: int  # number of restarts after which a pose counts as not reached
    random_seed: int
    format: int = FORMAT
    scene: str = ""  # SHA-256 of the scene whose collisions are avoided; empty without a scene

    @property
    def grid(self) -> Grid:
        """Positions and size of the voxels."""
        return Grid(self.origin, self.resolution, self.shape)

    @property
    def poses(self) -> int:
        """Number of poses of the whole map, which is voxels times orientations."""
        return self.grid.size * self.orientations

    @property
    def voxels_per_chunk(self) -> int:
        """Number of voxels per chunk, equal for equal settings."""
        least, most = POSES_PER_CHUNK
        poses = min(max(self.poses // MANY_CHUNKS, least), most)
        return max(1, poses // self.orientations)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.grid.size // self.voxels_per_chunk)

    def voxels(self, chunk: int) -> tuple[int, int]:
        """Return the range of voxels in a chunk: the first voxel, and the last voxel plus 1."""
        first = chunk * self.voxels_per_chunk
        return first, min(first + self.voxels_per_chunk, self.grid.size)

    def as_json(self) -> dict[str, Any]:
        """Return the settings as a dict of JSON types."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> MapSettings:
        """Return the settings from a dict of JSON types.

        Raises:
            TypeError: If the keys differ from the fields of this class.
        """
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in found.items()
        }
        return cls(**fields)


@dataclass(frozen=True)
class MapJob:
    """Robot and settings of a map, which are sent to workers; equal if the settings are equal."""

    settings: MapSettings
    tree: Tree = field(compare=False, repr=False)
    scene: PlanningScene | None = field(default=None, compare=False, repr=False)

    def solver(self) -> IkSolver:
        """Return the solver for the poses of the map.

        The worker builds the chain again, because received arrays have another type for Numba, with
        which Numba would compile the kernels again.
        """
        from dls_ik.solver.solver import IkSolver  # numba takes long to import

        settings = self.settings
        return IkSolver(
            RobotModel.from_tree(self.tree, settings.base, settings.tip),
            task=checked_task(settings.task),
            scene=self.scene,
            position_tolerance=settings.tolerance,
            rotation_tolerance=settings.tolerance,
            max_restarts=settings.max_restarts,
            prove_after=2,  # most poses of a map are out of reach
            random_seed=settings.random_seed,
        )


def new_job(
    robot: RobotModel,
    resolution: float,
    orientations: int | None,
    region: Sequence[float] | None,
    task: str,
    tolerance: float,
    max_restarts: int,
    random_seed: int,
    scene: PlanningScene | None = None,
) -> MapJob:
    """Return the job for the arguments of :func:`dls_ik.reachability.reachability_map`.

    Raises:
        DlsIkError: If the map cannot be computed; the message gives the reason.
    """
    if len(robot.tips) > 1:
        raise ReachabilityError(f"a map is of one tip, not of {len(robot.tips)}")
    from dls_ik.solver.solver import IkSolver  # numba takes long to import

    scene = None if scene is None else scene.copy()  # later changes of the scene have no effect
    edge = checked_resolution(resolution)
    grid = grid_around(reach_ball(robot), edge) if region is None else grid_in(region, edge)
    options = IkSolver(
        robot,
        task=checked_task(task),
        scene=scene,
        position_tolerance=tolerance,
        rotation_tolerance=tolerance,
        max_restarts=max_restarts,
        random_seed=random_seed,
    ).options
    settings = MapSettings(
        robot=robot.name,
        kinematics=kinematics_digest(robot),
        base=robot.base,
        tip=robot.tip,
        task=task,
        **grid._asdict(),
        orientations=checked_orientations(orientations, task),
        tolerance=options.position_tolerance,
        max_restarts=int(max_restarts),
        random_seed=options.random_seed,
        scene="" if scene is None else scene.snapshot.digest,
    )
    return MapJob(settings, robot.tree, scene)


def kinematics_digest(robot: RobotModel) -> str:
    """Return a SHA-256 of the robot's kinematics; shapes and masses do not change the digest."""
    chain = robot.chain
    digest = hashlib.sha256()
    joints = (chain.prismatic, chain.variable, chain.scale, chain.offset)
    for array in (chain.fixed, *joints, chain.lower, chain.upper):
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def checked_task(name: str) -> Task:
    """Return the task with a name of MAP_TASKS.

    Raises:
        ReachabilityError: If the name is unknown; the message lists the known names.
    """
    if name not in MAP_TASKS:
        raise ReachabilityError(f"unknown task {quoted(name)}; known: {listing(MAP_TASKS)}")
    from dls_ik.solver.task import Task  # numba takes long to import

    kinds = Task.pose(), Task.pointing("z"), Task.position_only()
    return dict(zip(MAP_TASKS, kinds, strict=True))[name]


def checked_orientations(count: Any, task: str) -> int:
    """Check and return the number of orientations per voxel; None gives the default of the task.

    The number is 1 for a task without rotation.

    Raises:
        ReachabilityError: If the value is not an integer in range, or is larger than 1 for a task
            without rotation.
    """
    if task == "position":
        if count not in (None, 1):
            raise ReachabilityError(
                f"the task position leaves the orientation free: 1 of them is all, not {count!r}"
            )
        return 1
    count = ORIENTATIONS if count is None else count
    whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
    if not whole or not 1 <= count <= MOST_ORIENTATIONS:
        raise ReachabilityError(
            f"orientations are a whole number from 1 to {MOST_ORIENTATIONS}, not {quoted(count)}"
        )
    return int(count)


def orientations(count: int, task: str) -> Array:
    """Return the rotations R_base_tip (count, 3, 3) that are tested in every voxel."""
    if task == "position":
        return np.eye(3)[None]
    return spread_directions(count) if task == "pointing" else spread_rotations(count)


# Voxels


class Ball(NamedTuple):
    """Ball in the base frame."""

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
    """Return the middle and half the length of the range of prismatic joint i [m].

    The limits must be finite.
    """
    chain, variable = robot.chain, robot.chain.variable[i]
    middle = (chain.lower[variable] + chain.upper[variable]) / 2.0
    half = (chain.upper[variable] - chain.lower[variable]) / 2.0
    return float(chain.scale[i] * middle + chain.offset[i]), float(abs(chain.scale[i]) * half)


class Grid(NamedTuple):
    """Grid of cubic voxels along the axes of the base frame.

    Voxels are numbered such that the index along z varies fastest.
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
        """Return the centres (last - first, 3) [m] of the voxels first to last - 1."""
        places = np.stack(np.unravel_index(np.arange(first, last), self.shape), axis=-1)
        return self._along(slice(None), places)

    def _along(self, i: int | slice, steps: NDArray[Any]) -> Array:
        """Return coordinates along axis i [m]: centre of the first voxel plus `steps` edges."""
        coordinates: Array = np.array(self.origin)[i] + self.resolution * steps
        return coordinates

    def layer(self, i: int, coordinate: float) -> int:
        """Return the layer along axis i whose centre is closest to a coordinate [m]."""
        nearest = round((coordinate - self.origin[i]) / self.resolution)
        return min(max(nearest, 0), self.shape[i] - 1)


def checked_resolution(resolution: float) -> float:
    """Check and return the edge length of a voxel [m].

    Raises:
        ReachabilityError: If the length is not from MIN_RESOLUTION to MAX_RESOLUTION.
    """
    if (
        isinstance(resolution, (int, float, np.number))
        and MIN_RESOLUTION <= resolution <= MAX_RESOLUTION
    ):
        return float(resolution)
    raise ReachabilityError(
        f"the resolution is the edge of a voxel, from {MIN_RESOLUTION:g} to {MAX_RESOLUTION:g} m, "
        f"not {quoted(resolution)}"
    )


def grid_around(ball: Ball, resolution: float) -> Grid:
    """Return voxels that cover a ball, with one voxel at its centre.

    Raises:
        ReachabilityError: If there are too many voxels.
    """
    # Number of voxels on each side of the middle voxel
    beside = max(0, math.ceil(ball.radius / resolution - 0.5 - 1e-9))
    x, y, z = (float(c) - beside * resolution for c in ball.centre)
    count = 2 * beside + 1
    return _not_too_many(Grid((x, y, z), resolution, (count, count, count)))


def grid_in(region: Sequence[float], resolution: float) -> Grid:
    """Return voxels that cover a box.

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
        "a region is x0 x1 y0 y1 z0 z1 [m], six finite numbers, each first end not above the "
        f"second, not {quoted(region)}"
    )


def _not_too_many(grid: Grid) -> Grid:
    if grid.size <= MAX_VOXELS:
        return grid
    nx, ny, nz = grid.shape
    raise ReachabilityError(
        f"a resolution of {grid.resolution:g} m makes {nx} x {ny} x {nz} = {grid.size:.3g} voxels; "
        f"a map has at most {MAX_VOXELS:.0e}: take a coarser one, or a smaller region"
    )


def spread_rotations(count: int) -> Array:
    """Return evenly distributed rotations (count, 3, 3), a super-Fibonacci spiral (Alexa 2022)."""
    s = np.arange(count) + 0.5
    small, large = np.sqrt(s / count), np.sqrt(1.0 - s / count)
    alpha, beta = 2.0 * np.pi * s / PHI, 2.0 * np.pi * s / PSI
    quaternions = np.stack(
        [small * np.sin(alpha), small * np.cos(alpha), large * np.sin(beta), large * np.cos(beta)]
    )
    return np.moveaxis(np.array(rotation_of_unit(*quaternions)), -1, 0)


def spread_directions(count: int) -> Array:
    """Return rotations (count, 3, 3) with evenly distributed z axes.

    The axes are a Fibonacci lattice on the sphere (Gonzalez 2010).
    """
    k = np.arange(count)
    height = 1.0 - (2.0 * k + 1.0) / count
    turn, radius = GOLDEN_ANGLE * k, np.sqrt(1.0 - height**2)
    z = np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=-1)
    aside = np.where(np.abs(z[:, :1]) < 0.5, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    y = np.cross(z, aside)
    y /= np.linalg.norm(y, axis=-1, keepdims=True)
    return np.stack([np.cross(y, z), y, z], axis=-1)
