# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Workspace bounds of the tip and of links, and all pairs whose distances the guard monitors.

A pair is two links, a link and an object of the scene, or a bounded point and a bound.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.scene_arrays import (
    KIND_CAVITY,
    KIND_PLANE,
    PackedScene,
    SceneArrays,
    pack_scene,
)
from dls_ik.core.types import Array, Flags
from dls_ik.errors import SceneError
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse, rigid_transform, rotation_from_z, transform
from dls_ik.scene.pack import link_frames, reach_of_pairs, turns_of_pairs
from dls_ik.scene.shapes import Box, Plane, Sphere
from dls_ik.scene.snapshot import MAX_SLIDE, SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.text import quoted, suggest_names


class _Walls(NamedTuple):
    """Obstacles of the same shape that together fill the space outside a bound."""

    kind: int  # KIND_PLANE or KIND_CAVITY
    size: Array  # (3,) size of each obstacle, in the format of the kernels
    places: list[Array]  # (4, 4) T_root_object of each obstacle


@dataclass(frozen=True, eq=False)
class BoxBound:
    """Box with centre T that the tip, or the origins of links, may not leave.

    Raises:
        SceneError: If the size is not three positive numbers, or the pose is not rigid.
    """

    size: ArrayLike  # (3,) edge lengths [m]
    T: ArrayLike = field(default_factory=lambda: np.eye(4))  # (4, 4) T_root_box
    links: tuple[str, ...] = ()  # links whose origins must stay inside; empty: the tip
    name: str = "workspace box"

    def __post_init__(self) -> None:
        """Validate the size and the pose."""
        _set(self, size=Box(np.asarray(self.size)).size, T=_pose(self.name, self.T))

    def walls(self) -> _Walls:
        """Return the six half-spaces outside the faces of the box, as obstacles."""
        T, places = np.asarray(self.T), []
        for axis, length in enumerate(np.asarray(self.size).tolist()):
            for side in (-1.0, 1.0):
                inward = side * T[:3, axis]
                places.append(transform(rotation_from_z(inward), T[:3, 3] - 0.5 * length * inward))
        return _Walls(KIND_PLANE, np.zeros(3), places)


@dataclass(frozen=True, eq=False)
class SphereBound:
    """Ball with centre T that the tip, or the origins of links, may not leave.

    Raises:
        SceneError: If the radius is not positive, or the pose is not rigid.
    """

    radius: float  # [m]
    T: ArrayLike = field(default_factory=lambda: np.eye(4))  # (4, 4) T_root_ball
    links: tuple[str, ...] = ()  # links whose origins must stay inside; empty: the tip
    name: str = "workspace sphere"

    def __post_init__(self) -> None:
        """Validate the radius and the pose."""
        _set(self, radius=Sphere(self.radius).radius, T=_pose(self.name, self.T))

    def walls(self) -> _Walls:
        """Return the space outside the ball, as an obstacle."""
        return _Walls(KIND_CAVITY, np.array([self.radius, 0.0, 0.0]), [np.asarray(self.T)])


@dataclass(frozen=True, eq=False)
class HalfSpace:
    """Half-space ``normal . x >= offset`` that the tip, or the origins of links, may not leave.

    The points x are in the frame of the root link.

    Raises:
        SceneError: If the normal is zero, or a number is not finite.
    """

    normal: ArrayLike  # (3,) normal that points inward; the constructor normalises it
    offset: float = 0.0  # [m] along the unit normal
    links: tuple[str, ...] = ()  # links whose origins must stay inside; empty: the tip
    name: str = "workspace plane"

    def __post_init__(self) -> None:
        """Validate the plane and normalise its normal."""
        plane = Plane(np.asarray(self.normal), self.offset)
        _set(self, normal=plane.normal, offset=plane.offset)

    def walls(self) -> _Walls:
        """Return the opposite half-space, as an obstacle."""
        normal = np.asarray(self.normal)
        return _Walls(
            KIND_PLANE, np.zeros(3), [transform(rotation_from_z(normal), self.offset * normal)]
        )


Bound = BoxBound | SphereBound | HalfSpace


class GuardedPairs(NamedTuple):
    """Pairs of a scene and of a workspace, with the distances that they must keep.

    There are p pairs of links and s pairs of a link and an object or bound.
    """

    packed: PackedScene  # input of the kernels in :mod:`dls_ik.core.certificate`
    leverage: tuple[Array, Array]  # (p + s, n) each, as in :attr:`SceneSnapshot.leverage`
    distance: Array  # (p + s,) required distance [m]
    names: tuple[Pair, ...]  # (p + s,)
    second_first: Flags  # (p + s,) whether kernels use the two shapes in reverse order
    keys: tuple[Hashable, ...]  # (p + s,) :attr:`SceneSnapshot.pair_keys`, keys of bounds


def guarded_pairs(
    robot: RobotModel,
    snapshot: SceneSnapshot | None,
    bounds: Sequence[Bound],
    min_distance: float,
) -> GuardedPairs:
    """Return the pairs of a scene, and the pairs of bounded points with their bounds.

    Args:
        robot: Robot that the guard moves.
        snapshot: Scene; None: no scene.
        bounds: Bounds of the workspace; the required distance of a point from a bound is 0.
        min_distance: Required distance of the pairs of the scene [m].
    """
    if snapshot is None:
        snapshot = SceneSnapshot(robot.tree, robot.joint_names, {}, {})
    names, count = snapshot.names, len(snapshot.names)
    arrays, packed, leverage = snapshot.arrays, snapshot.packed, snapshot.leverage
    keys = snapshot.pair_keys
    if bounds:
        frames = link_frames(robot.tree, robot.joint_names, robot.tree.values(snapshot.values))
        arrays, names = _with_bounds(arrays, names, robot, bounds, frames.links)
        keys += _bound_keys(arrays, names[count:], snapshot.frames_key)
        packed = pack_scene(arrays)
        extent = np.maximum(abs(robot.lower), abs(robot.upper))
        extent = np.where(np.isfinite(extent), extent, MAX_SLIDE)
        leverage = reach_of_pairs(arrays, extent), turns_of_pairs(arrays, robot.n)
    return GuardedPairs(
        packed,
        leverage,
        np.where(np.arange(len(names)) < count, min_distance, 0.0),
        names,
        np.concatenate([snapshot.second_first, np.zeros(len(names) - count, bool)]),
        keys,
    )


def checked_bounds(robot: RobotModel, bounds: Sequence[object]) -> tuple[Bound, ...]:
    """Return the validated bounds of a workspace.

    Raises:
        SceneError: If an item is not a bound, or a bound names an unknown link.
    """
    checked = list[Bound]()
    for bound in bounds:
        if not isinstance(bound, Bound):
            kinds = "BoxBound, SphereBound, HalfSpace"
            raise SceneError(f"a workspace must be a sequence of {kinds}; got {quoted(bound)}")
        for link in bound.links:
            if link not in robot.tree.links:
                hint = suggest_names([link], robot.tree.links)
                raise SceneError(f"{bound.name}: the robot has no link {quoted(link)}; {hint}")
        checked.append(bound)
    return tuple(checked)


def _with_bounds(
    arrays: SceneArrays,
    names: tuple[Pair, ...],
    robot: RobotModel,
    bounds: Sequence[Bound],
    links: dict[str, tuple[int, Array]],
) -> tuple[SceneArrays, tuple[Pair, ...]]:
    """Add bounds to a scene; return the arrays and the pair names of the result.

    Each bounded point becomes a shape of a link, and the space outside a bound becomes objects.

    Args:
        arrays: Arrays of the scene.
        names: Names of the pairs of the scene.
        robot: Robot whose tip or links are bounded.
        bounds: Bounds of the workspace.
        links: For each link by name, the index of its moving frame, and T_frame_link (4, 4).
    """
    frame, centres = list[int](), list[Array]()
    kinds, sizes, places = list[int](), list[Array](), list[Array]()
    pairs, named = list[tuple[int, int]](), list[Pair]()
    shapes, objects, nodes = len(arrays.frame), len(arrays.kind), len(arrays.child)
    for bound in bounds:
        walls = bound.walls()
        points = [(link, *links[link], np.eye(4)) for link in bound.links]
        if not bound.links:
            points = [(robot.tips[0], *links[robot.tips[0]], robot.offsets[0])]
        first = objects + len(kinds)
        for link, on, T_frame_link, T_link_point in points:
            for i in range(len(walls.places)):
                pairs.append((shapes + len(frame), first + i))
                named.append((bound.name, link))
            frame.append(on)
            centres.append((T_frame_link @ T_link_point)[:3, 3])
        for T in walls.places:
            kinds.append(walls.kind)
            sizes.append(walls.size)
            places.append(inverse(T)[:3])
    count = len(frame)
    points5 = np.column_stack([np.array(centres), np.zeros((count, 2))])
    added = arrays._replace(
        frame=np.concatenate([arrays.frame, frame]),
        root=np.concatenate([arrays.root, nodes + np.arange(count)]),
        padding=np.concatenate([arrays.padding, np.zeros(count)]),
        kind=np.concatenate([arrays.kind, kinds]),
        tree=np.concatenate([arrays.tree, np.zeros(len(kinds), np.int64)]),
        size=np.concatenate([arrays.size, np.array(sizes)]),
        place=np.concatenate([arrays.place, np.array(places)]),
        child=np.concatenate([arrays.child, np.full(count, -1)]),
        node=np.concatenate([arrays.node, points5]),
        hull=np.concatenate([arrays.hull, np.zeros((count, 2), np.int64)]),
        outside=np.concatenate([arrays.outside, np.array(pairs)]),
    )
    return added, (*names, *named)


def _bound_keys(
    arrays: SceneArrays, names: tuple[Pair, ...], frames_key: bytes
) -> tuple[Hashable, ...]:
    """Return a key for each pair of a bounded point and a bound.

    If a pair is equal in two scenes, its keys are equal.

    Args:
        arrays: Arrays of the scene with bounds; the pairs of points and bounds are the last pairs.
        names: Names of the pairs of points and bounds.
        frames_key: Key of the frames of the links, :attr:`SceneSnapshot.frames_key`.
    """
    pairs = arrays.outside[len(arrays.outside) - len(names) :]
    points = arrays.node[arrays.root[pairs[:, 0]]]
    on, walls = arrays.frame[pairs[:, 0]], pairs[:, 1]
    return tuple(
        (*each, frames_key, frame, point.tobytes(), kind, size.tobytes(), place.tobytes())
        for each, frame, point, kind, size, place in zip(
            names,
            on.tolist(),
            points,
            arrays.kind[walls].tolist(),
            arrays.size[walls],
            arrays.place[walls],
            strict=True,
        )
    )


def _pose(name: str, T: ArrayLike) -> Array:
    try:
        return rigid_transform(T, f"the pose of {name!r}")
    except ValueError as error:
        raise SceneError(str(error)) from error


def _set(bound: Bound, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(bound, name, value)
