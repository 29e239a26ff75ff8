"""Settings that determine every number of a map, and the robot that goes with them."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.reachability.grid import (
    ORIENTATIONS,
    TASKS,
    Grid,
    ReachabilityError,
    checked_resolution,
    grid_around,
    grid_in,
    reach_ball,
    spread_directions,
    spread_rotations,
)
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Task
from dls_ik.text import listing, quoted

FORMAT = 1  # of the files
POSES_PER_CHUNK = (2048, 16384)  # some seconds of work, which a kill can cost
MANY_CHUNKS = 5000
_TASKS = dict(zip(TASKS, (Task.pose(), Task.pointing("z"), Task.position_only()), strict=True))
MOST_ORIENTATIONS = 100_000


@dataclass(frozen=True)
class MapSettings:
    """All inputs of a map; equal settings give equal maps."""

    robot: str  # name
    kinematics: str  # SHA-256 of the chain
    base: str  # link
    tip: str  # link
    task: str  # pose, pointing or position
    origin: tuple[float, float, float]  # centre of the first voxel [m]
    resolution: float  # [m]
    shape: tuple[int, int, int]
    orientations: int  # of every voxel
    tolerance: float  # [m] and [rad]
    max_restarts: int  # after which a pose counts as not reached
    random_seed: int
    format: int = FORMAT

    @property
    def grid(self) -> Grid:
        """The grid of the voxels."""
        return Grid(self.origin, self.resolution, self.shape)

    @property
    def poses(self) -> int:
        """Number of poses."""
        return self.grid.size * self.orientations

    @property
    def voxels_per_chunk(self) -> int:
        """Number of voxels of a chunk; it depends on the settings alone."""
        least, most = POSES_PER_CHUNK
        poses = min(max(self.poses // MANY_CHUNKS, least), most)
        return max(1, poses // self.orientations)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.grid.size // self.voxels_per_chunk)

    def voxels(self, chunk: int) -> tuple[int, int]:
        """Return the first voxel of a chunk, and the one after its last."""
        first = chunk * self.voxels_per_chunk
        return first, min(first + self.voxels_per_chunk, self.grid.size)

    def as_json(self) -> dict[str, Any]:
        """Return the settings in the types of JSON."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "MapSettings":
        """Return the settings of a file; TypeError for other fields."""
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in found.items()
        }
        return cls(**fields)


@dataclass(frozen=True)
class MapJob:
    """Settings and robot, as sent to workers; compared by the settings."""

    settings: MapSettings
    tree: Tree = field(compare=False, repr=False)

    def solver(self) -> IkSolver:
        """Return the solver of every pose of the map.

        The chain is built on the worker: arrays that were sent have another type for Numba, which
        would compile the kernels again.
        """
        settings = self.settings
        return IkSolver(
            RobotModel.from_tree(self.tree, settings.base, settings.tip),
            task=checked_task(settings.task),
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
) -> MapJob:
    """Check the arguments of :func:`dls_ik.reachability.reachability_map`.

    Raises:
        DlsIkError: the map cannot be computed; the message has the reason.
    """
    if len(robot.tips) > 1:
        raise ReachabilityError(f"a map is of one tip, not of {len(robot.tips)}")
    edge = checked_resolution(resolution)
    grid = grid_around(reach_ball(robot), edge) if region is None else grid_in(region, edge)
    options = IkSolver(
        robot,
        task=checked_task(task),
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
    )
    return MapJob(settings, robot.tree)


def kinematics_digest(robot: RobotModel) -> str:
    """Return a SHA-256 of the chain; shapes and masses in a URDF do not affect it."""
    chain = robot.chain
    digest = hashlib.sha256()
    joints = (chain.prismatic, chain.variable, chain.scale, chain.offset)
    for array in (chain.fixed, *joints, chain.lower, chain.upper):
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def checked_task(name: str) -> Task:
    """Return the task of that name.

    Raises:
        ReachabilityError: an unknown name; the message lists the known ones.
    """
    if name not in TASKS:
        raise ReachabilityError(f"unknown task {quoted(name)}; known: {listing(TASKS)}")
    return _TASKS[name]


def checked_orientations(count: Any, task: str) -> int:
    """Return the number of orientations of every voxel; 1 if the task has no rotation.

    Raises:
        ReachabilityError: not a whole number in range, or more than one without a rotation.
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
    """Return the rotations R_base_tip (count, 3, 3) of every voxel."""
    if task == "position":
        return np.eye(3)[None]
    return spread_directions(count) if task == "pointing" else spread_rotations(count)
