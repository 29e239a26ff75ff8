# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures of the arm and the obstacles of a scene, and plane sections of the obstacles."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.model.rotations import inverse
from dls_ik.plot.arm import arm_points, draw_arms, fading, space_axes
from dls_ik.plot.canvas import GREY, ORANGE, RED, heading, new_figure
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.shape_table import DRAWN_SIDES, kind_of
from dls_ik.scene.shapes import Plane, Shape

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HALF_PLANE_SIZE = 10.0  # [m] half edge length of a drawn plane


def arm_among_obstacles(
    scene: PlanningScene, q: ArrayLike, title: str = "The arm among obstacles"
) -> Figure:
    """Draw the obstacles, and the arm at each configuration with a line between the closest pair.

    The arm is pale in the first configuration and dark in the last. Planes of the scene are not
    drawn, because they are unbounded.

    Args:
        scene: Scene with the robot.
        q: (n,) or (k, n) joint positions [rad or m].
        title: Title of the picture.

    Raises:
        JointValueError: If the joint positions do not fit the robot.
        SceneError: If coal is not installed.
        DlsIkError: If matplotlib is not installed.
    """
    robot = scene.robot
    values = np.atleast_2d(robot.validated(q))
    T_base_root = inverse(robot.tree.pose(robot.base, robot.named(values[0])))
    figure = new_figure(7.4, 6.6)
    axes: Any = figure.add_subplot(projection="3d", computed_zorder=False)
    draw_faces(axes, placed_faces(scene, T_base_root))
    colours = fading(np.linspace(0.25, 1.0, len(values)))
    for arm in arm_points(robot, values):
        draw_arms(axes, arm, colours, 3.0)
        axes.plot(*arm[0, 0][:, None], "s", color=GREY, markersize=7)
        for points, colour in zip(arm, colours, strict=True):
            axes.plot(*points[-1][:, None], "o", color=colour, markersize=4)
    for row in values:
        closest = scene.distance(row)
        if closest is not None:
            ends = closest.points @ T_base_root[:3, :3].T + T_base_root[:3, 3]
            axes.plot(*ends.T, color=RED, linewidth=1.8, marker=".", markersize=3, zorder=20)
    space_axes(axes)
    heading(figure, f"{title}: {robot.name}; red: the closest pair")
    return figure


def draw_faces(axes: Any, placed: list[Array]) -> None:
    """Draw faces, polygons (m, 3) in the base frame [m], in 3D axes."""
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection  # type: ignore[import-untyped]

    if placed:
        axes.add_collection3d(
            Poly3DCollection(
                placed, facecolors=ORANGE, edgecolors=GREY, linewidths=0.3, alpha=0.13, zorder=1
            )
        )
        axes.auto_scale_xyz(*np.concatenate(placed).T)


def placed_faces(scene: PlanningScene, T_base_root: Array) -> list[Array]:
    """Return the faces (m, 3) [m] of all objects of a scene in the base frame of its robot.

    Args:
        scene: Scene.
        T_base_root: (4, 4) pose of the root link in the base frame.
    """
    return [
        face @ T[:3, :3].T + T[:3, 3]
        for shape, T in _placed_shapes(scene, T_base_root)
        for face in faces(shape)
    ]


def _placed_shapes(scene: PlanningScene, T_base_root: Array) -> Iterator[tuple[Shape, Array]]:
    """Yield the shapes of all objects of a scene, and their poses (4, 4) in the base frame."""
    for each in scene.snapshot.objects.values():
        for shape, T_object_shape in each.body.parts:
            yield shape, T_base_root @ each.T @ T_object_shape


def faces(shape: Shape) -> list[Array]:
    """Return the faces of a shape as polygons (m, 3) in the frame of the shape [m].

    Round shapes are approximated by flat faces. A plane has no faces.
    """
    return kind_of(shape).faces(shape, DRAWN_SIDES)


def sections(scene: PlanningScene, axis: int, at: float) -> Array:
    """Return the outlines of a scene's objects in a plane normal to an axis of the base frame.

    Planes of the scene are represented by squares with edges of 20 m.

    Args:
        scene: Scene.
        axis: Normal of the cutting plane: 0, 1 or 2 for x, y or z.
        at: Coordinate of the cutting plane along the axis [m].

    Returns:
        End points (m, 2, 3) of m straight segments in the base frame [m].
    """
    robot = scene.robot
    T_base_root = inverse(robot.tree.pose(robot.base, scene.snapshot.values))
    found = [np.zeros((0, 2, 3))]
    for shape, T in _placed_shapes(scene, T_base_root):
        flat = [_sheet(shape)] if isinstance(shape, Plane) else faces(shape)
        by_corners: dict[int, list[Array]] = {}
        for face in flat:
            by_corners.setdefault(len(face), []).append(face)
        found += [
            _cut(np.array(several) @ T[:3, :3].T + T[:3, 3], axis, at)
            for several in by_corners.values()
        ]
    return np.concatenate(found)


def _cut(polygons: Array, axis: int, at: float) -> Array:
    """Return the segments (m, 2, 3) in which a plane intersects convex polygons (k, c, 3) [m].

    Args:
        polygons: (k, c, 3) corners of k polygons with c corners each [m].
        axis: Normal of the plane: 0, 1 or 2 for x, y or z.
        at: Coordinate of the plane along the axis [m].
    """
    ahead = np.roll(polygons, -1, axis=1)
    height, height_ahead = polygons[..., axis] - at, ahead[..., axis] - at
    crosses = (height >= 0.0) != (height_ahead >= 0.0)  # (k, c) edges that the plane intersects
    cut = crosses.sum(axis=1) == 2
    share = height / np.where(crosses, height - height_ahead, 1.0)
    points = polygons + share[..., None] * (ahead - polygons)
    pieces: Array = points[cut][crosses[cut]].reshape(-1, 2, 3)
    return pieces


def _sheet(plane: Plane) -> Array:
    """Return the corners (4, 3) [m] of a square in a plane, centred at the point closest to 0."""
    x = np.cross(plane.normal, np.eye(3)[np.abs(plane.normal).argmin()])
    x /= np.linalg.norm(x)
    y = np.cross(plane.normal, x)
    corners: Array = HALF_PLANE_SIZE * np.array([x + y, x - y, -x - y, y - x])
    return corners + plane.offset * plane.normal
