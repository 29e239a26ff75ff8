# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Settings that determine every value of a map, and the job that workers receive."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.model.robot import RobotModel, kinematics_digest
from dls_ik.model.tree import Tree
from dls_ik.reachability.grid import (
    Grid,
    ReachabilityError,
    checked_resolution,
    grid_around,
    grid_in,
    reach_ball,
)
from dls_ik.text import listing, quoted

if TYPE_CHECKING:
    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.solver.solver import IkSolver
    from dls_ik.solver.task import Task

FORMAT = 1  # version of the file format

# Defaults of a map
MAP_TASKS = ("pose", "pointing", "position")
RESOLUTION = 0.1  # [m] edge of a voxel
ORIENTATIONS = 64
MAP_TOLERANCE = 1e-4  # [m] and [rad] maximum error of a solution
RESTARTS = 50  # number of restarts per pose; docs/reachability.md describes the effect

# Bounds
# Minimum and maximum, for a few seconds of work; a killed process loses its unfinished chunks.
POSES_PER_CHUNK = (2048, 16384)
MANY_CHUNKS = 5000
MOST_ORIENTATIONS = 100_000


@dataclass(frozen=True)
class MapSettings:
    """Settings that determine a map completely: maps with equal settings have equal values."""

    robot: str  # name of the robot
    kinematics: str  # SHA-256 of the chain, see kinematics_digest
    base: str  # first link of the chain
    tip: str  # last link of the chain
    task: str  # pose, pointing or position
    origin: tuple[float, float, float]  # centre of the first voxel in the base frame [m]
    resolution: float  # edge of a voxel [m]
    shape: tuple[int, int, int]
    orientations: int  # number of orientations per voxel
    tolerance: float  # [m] and [rad] maximum error of a solution
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
        """Number of poses of the whole map, which is that of voxels times that of orientations."""
        return self.grid.size * self.orientations

    @property
    def voxels_per_chunk(self) -> int:
        """Number of voxels that a worker solves as one chunk; it depends on the settings only."""
        least, most = POSES_PER_CHUNK
        poses = min(max(self.poses // MANY_CHUNKS, least), most)
        return max(1, poses // self.orientations)

    @property
    def chunks(self) -> int:
        """Number of chunks, the groups of successive voxels that workers solve as one unit."""
        return -(-self.grid.size // self.voxels_per_chunk)

    def voxels(self, chunk: int) -> tuple[int, int]:
        """Return the range of voxel numbers of a chunk: the first, and the last plus 1."""
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
    """Robot, scene and settings of a map, sent to workers; jobs with equal settings are equal."""

    settings: MapSettings
    tree: Tree = field(compare=False, repr=False)
    scene: PlanningScene | None = field(default=None, compare=False, repr=False)

    def solver(self) -> IkSolver:
        """Return a new solver for the poses of the map.

        The kinematic chain is built again from the tree, because arrays that a worker has received
        are of another type for Numba, for which Numba would compile all kernels again.
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
            prove_after=2,  # early proofs save time, because most poses of a map are out of reach
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
    """Check the settings of a map, and return the job that computes it.

    The arguments are those of :func:`dls_ik.reachability.reachability_map`.

    Raises:
        DlsIkError: If the map cannot be computed; the message gives the reason.
    """
    if len(robot.tips) > 1:
        raise ReachabilityError(f"a map needs a robot with one tip, not of {len(robot.tips)}")
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


def checked_task(name: str) -> Task:
    """Return the solver task for a name in MAP_TASKS.

    Raises:
        ReachabilityError: If the name is unknown; the message lists the known names.
    """
    if name not in MAP_TASKS:
        raise ReachabilityError(f"unknown task {quoted(name)}; known: {listing(MAP_TASKS)}")
    from dls_ik.solver.task import Task  # numba takes long to import

    kinds = Task.pose(), Task.pointing("z"), Task.position_only()
    return dict(zip(MAP_TASKS, kinds, strict=True))[name]


def checked_orientations(count: Any, task: str) -> int:
    """Check the number of orientations per voxel, and return it.

    Args:
        count: Number of orientations; None gives the default of the task.
        task: Name of the task. For ``position``, the only valid number is 1.

    Raises:
        ReachabilityError: If the number is not valid.
    """
    if task == "position":
        if count not in (None, 1):
            raise ReachabilityError(
                "orientations must be 1 for the task position, which leaves the orientation free; "
                f"got {count!r}"
            )
        return 1
    count = ORIENTATIONS if count is None else count
    whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
    if not whole or not 1 <= count <= MOST_ORIENTATIONS:
        raise ReachabilityError(
            f"orientations must be an integer from 1 to {MOST_ORIENTATIONS}, not {quoted(count)}"
        )
    return int(count)
