# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Display of obstacles, which a person can drag, add and remove, and of the closest pair."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from html import escape
from threading import RLock
from typing import Any, NamedTuple

import numpy as np
import trimesh

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse, transform
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.shape_table import drawn_triangles, kind_of
from dls_ik.scene.shapes import Body, Mesh, Plane, Shape
from dls_ik.scene.snapshot import ClosestPair, SceneSnapshot
from dls_ik.viewer.inputs import Input
from dls_ik.viewer.panels import DIMMED, RefusalLine
from dls_ik.viewer.session import Session
from dls_ik.viewer.shapes import Colour, link_poses, pose_from_wxyz, wxyz_from_pose

OBSTACLE_COLOUR: Colour = (214, 158, 84)
TOUCHING_COLOUR: Colour = (220, 38, 38)
NEAREST_COLOUR: Colour = (13, 148, 136)
OBJECT_OPACITY, PLANE_OPACITY = 0.55, 0.2  # opacity of objects, and of planes
# Width of a plane relative to the robot's size, and its thickness [m]
PLANE_WIDTH, PLANE_THICKNESS = 4.0, 2e-3
SHAPE_SIDES = 32  # number of sides of a round obstacle around its axis
NEW_BOX_SIZE = 0.15  # edge length of a new box, relative to the robot's size
HANDLE_SIZE = 0.22  # size of the drag handles, relative to the robot's size
NO_OBSTACLE = "none"
OBSTACLE_LINE_HTML = "<div style='padding:0 12px 6px;font-size:12.5px;line-height:1.35'>{}</div>"
NO_PAIR = "No pair is checked for collisions."
OBSTACLE_HINT = "Click an obstacle, then drag it by its handles."


class ObstacleView:
    """Drawing of the obstacles in the 3D scene of the page.

    It shows all objects of the planning scene, handles with which a person can drag the selected
    object, and a line between the two closest bodies.

    Args:
        nodes: Scene graph of viser, in which the objects are drawn.
        world: Planning scene whose objects are drawn and moved.
        robot: Robot in the planning scene.
        size: Size of the robot [m].
        tell: Called with the name of an object after a person has moved, added or removed it.
    """

    def __init__(
        self,
        nodes: Any,
        world: PlanningScene,
        robot: RobotModel,
        size: float,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._nodes, self._world, self._size, self._tell = nodes, world, size, tell
        self._link_poses = partial(link_poses, robot)
        still = self._link_poses(robot.clip(np.zeros(robot.n)))
        self._T_base_root = still[robot.tree.root]
        self._drawn: dict[str, _Drawn] = {}
        self._count = 0  # number of objects that have been drawn so far
        self._seen: SceneSnapshot | None = None
        self._lock = RLock()
        self.chosen: str | None = None
        self._T_handle = np.eye(4)  # T_root_object at which the handles are drawn
        self._handle: Any = nodes.add_transform_controls(
            "/obstacle_handle", HANDLE_SIZE * size, line_width=3.0, depth_test=False, visible=False
        )
        self._handle.on_update(lambda _: self._drag())
        nothing = np.zeros((1, 2, 3), np.float32)
        self._line = nodes.add_line_segments(
            "/nearest",
            nothing,
            NEAREST_COLOUR,
            thickness=4.0,
            thickness_units="screen",
            visible=False,
        )
        ends = ("/nearest_a", "/nearest_b")
        self._ends = [nodes.add_icosphere(n, 0.008 * size, color=NEAREST_COLOUR) for n in ends]

    def show(self, q: Array) -> ClosestPair | None:
        """Draw all objects and the closest pair at joint positions q (n,) [rad or m].

        Returns:
            The closest pair, or None if there is no pair.
        """
        with self._lock:
            now = self._world.snapshot
            if now is not self._seen:
                self._draw(now)
            for name, held in now.attached.items():
                self._drawn[name].place(self._link_poses(q)[held.link] @ held.T)
            closest = now.distance(q)
            self._show_pair(closest)
            return closest

    def choose(self, name: str | None) -> None:
        """Choose the object with a name and show drag handles at it; None hides the handles."""
        with self._lock:
            objects = self._world.objects
            self.chosen = name if name in objects else None
            self._handle.visible = self.chosen is not None
            if self.chosen is not None:
                self._place_handle(objects[self.chosen])

    def add_box(self, sides: Sequence[float], place: Array) -> str:
        """Add a box to the scene, choose it, and return its name.

        Args:
            sides: Edge lengths (3,) [m].
            place: Centre (3,) in the base frame [m].
        """
        with self._lock:
            taken = self._world.objects
            name = next(n for i in range(1, 10_000) if (n := f"box{i}") not in taken)
            T = inverse(self._T_base_root) @ transform(translation=place)
            self._world.add_box(name, sides, T)
            self._tell(name)
            self.choose(name)
            return name

    def remove(self) -> None:
        """Remove the chosen object."""
        with self._lock:
            if self.chosen is not None:
                self._world.remove(self.chosen)
                self._tell(self.chosen)
            self.choose(None)

    def corners(self) -> Array:
        """Return the bounding box corners (k, 3) of all finite objects, in the base frame [m]."""
        found = [np.zeros((0, 3))]
        for each in self._world.snapshot.objects.values():
            for shape, T in each.body.parts:
                if not isinstance(shape, Plane):
                    low, high = shape_mesh(shape, self._size).bounds
                    points = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(3, 8)
                    whole = self._T_base_root @ each.T @ T
                    found.append(points.T @ whole[:3, :3].T + whole[:3, 3])
        return np.concatenate(found)

    def _place_handle(self, T_root_object: Array) -> None:
        self._T_handle = T_root_object
        T = self._T_base_root @ T_root_object
        self._handle.position, self._handle.wxyz = T[:3, 3], wxyz_from_pose(T)

    def _drag(self) -> None:
        with self._lock:
            if self.chosen is not None and self.chosen in self._world.objects:
                T_base = pose_from_wxyz(self._handle.wxyz, self._handle.position)
                self._T_handle = inverse(self._T_base_root) @ T_base
                self._world.move(self.chosen, self._T_handle)
                self._tell(self.chosen)

    def _draw(self, now: SceneSnapshot) -> None:
        """Draw the objects of a state of the scene; unchanged shapes are moved, not drawn again."""
        self._seen = now
        bodies: dict[str, Body] = {name: each.body for name, each in now.objects.items()}
        bodies |= {name: each.body for name, each in now.attached.items()}
        for name in [*self._drawn]:
            if bodies.get(name) is not self._drawn[name].body:
                self._drawn.pop(name).root.remove()
        for name, body in bodies.items():
            if name not in self._drawn:
                self._drawn[name] = self._add(name, body)
        for name, each in now.objects.items():
            self._drawn[name].place(self._T_base_root @ each.T)
        if self.chosen is not None and self.chosen not in now.objects:
            self.choose(None)
        elif self.chosen is not None:
            T = now.objects[self.chosen].T
            if not np.allclose(T, self._T_handle):  # the program, not a person, moved the object
                self._place_handle(T)

    def _add(self, name: str, body: Body) -> _Drawn:
        self._count += 1
        path = f"/obstacle{self._count}"  # names of objects may contain slashes
        root = self._nodes.add_frame(path, show_axes=False)
        meshes = []
        for i, (shape, T) in enumerate(body.parts):
            mesh = shape_mesh(shape, self._size)
            flat = isinstance(shape, Plane)
            handle = self._nodes.add_mesh_simple(
                f"{path}/{i}",
                np.asarray(mesh.vertices, np.float32),
                np.asarray(mesh.faces, np.uint32),
                color=OBSTACLE_COLOUR,
                opacity=PLANE_OPACITY if flat else OBJECT_OPACITY,
                flat_shading=True,
                side="double",
                position=T[:3, 3],
                wxyz=wxyz_from_pose(T),
            )
            if not flat:
                handle.on_click(lambda _: self.choose(name))
            meshes.append(handle)
        return _Drawn(body, root, tuple(meshes))

    def _show_pair(self, closest: ClosestPair | None) -> None:
        touching = closest is not None and closest.distance <= 0.0
        for name, each in self._drawn.items():
            is_in_the_way = closest is not None and touching and name in closest.names
            each.paint(TOUCHING_COLOUR if is_in_the_way else OBSTACLE_COLOUR)
        for handle in (self._line, *self._ends):
            handle.visible = closest is not None
        if closest is None:
            return
        T = self._T_base_root
        points = closest.points @ T[:3, :3].T + T[:3, 3]
        self._line.points = points[None].astype(np.float32)
        for end, point in zip(self._ends, points, strict=True):
            end.position = point
            end.color = TOUCHING_COLOUR if touching else NEAREST_COLOUR


class _Drawn(NamedTuple):
    """Object that is drawn on the page, with its viser nodes."""

    body: Body
    root: Any
    meshes: tuple[Any, ...]

    def place(self, T: Array) -> None:
        """Move the object to the pose ``T_base_object`` (4, 4)."""
        self.root.position, self.root.wxyz = T[:3, 3], wxyz_from_pose(T)

    def paint(self, colour: Colour) -> None:
        """Set the colour of the object."""
        for mesh in self.meshes:
            if tuple(mesh.color) != colour:
                mesh.color = colour


def shape_mesh(shape: Shape, size: float) -> trimesh.Trimesh:
    """Return the mesh of a shape; `size` is the size of the robot [m].

    A plane becomes a thin box whose width is proportional to the size of the robot.
    """
    mesh: trimesh.Trimesh
    if isinstance(shape, Mesh):
        mesh = trimesh.Trimesh(shape.vertices, shape.triangles, process=False)
    elif isinstance(shape, Plane):
        mesh = trimesh.creation.box((PLANE_WIDTH * size, PLANE_WIDTH * size, PLANE_THICKNESS))
        below = transform(translation=np.array([0.0, 0.0, -0.5 * PLANE_THICKNESS]))
        mesh.apply_transform(kind_of(shape).kernel(shape).T_shape_kernel @ below)
    else:
        corners = drawn_triangles(shape, SHAPE_SIDES)
        mesh = trimesh.Trimesh(corners.reshape(-1, 3), np.arange(3 * len(corners)).reshape(-1, 3))
    return mesh


class ObstaclePanel:
    """Panel with the closest pair as text, a list of obstacles, and buttons to add and remove."""

    def __init__(self, server: Any, session: Session, view: ObstacleView, size: float) -> None:
        self._session, self._view = session, view
        self._size = size
        gui = server.gui
        with gui.add_folder("Obstacles"):
            self._line = gui.add_html("")
            self._refusal = RefusalLine(gui)
            obstacles = gui.add_dropdown("Obstacle", (NO_OBSTACLE,), hint=OBSTACLE_HINT)
            self._list = Input(server, obstacles, lambda: view.chosen or NO_OBSTACLE, self._choose)
            side = round(NEW_BOX_SIZE * size, 2)
            self._sides = gui.add_vector3(
                "Box [m]", (side, side, side), min=(0.01,) * 3, step=0.01, hint="edge lengths"
            )
            gui.add_button("Add a box", color="gray").on_click(lambda _: self._add())
            gui.add_button("Remove", color="gray").on_click(lambda _: view.remove())

    def update(self, closest: ClosestPair | None) -> None:
        """Show the names of the closest pair, and list the current obstacles."""
        words = OBSTACLE_LINE_HTML.format(self._words(closest))
        if self._line.content != words:
            self._line.content = words
        scene = self._session.scene
        names = (NO_OBSTACLE, *(scene.objects if scene is not None else ()))
        if tuple(self._list.handle.options) != names:
            self._list.handle.options = names
        self._list.update()

    def _words(self, closest: ClosestPair | None) -> str:
        shared = self._session.shared
        note = "" if shared is None else shared.note
        if not note:
            return _in_words(closest)
        line = f"<span style='color:{DIMMED}'>{escape(note)}</span>"
        return line if closest is None else f"{_in_words(closest)}<br>{line}"

    def _choose(self, name: str) -> None:
        self._view.choose(None if name == NO_OBSTACLE else name)

    def _add(self) -> None:
        """Add a box with the entered edge lengths next to the tip of the first arm."""
        with self._refusal.shown():
            T_tip = self._session.robot.fk(self._session.joint_values).reshape(-1, 4, 4)[0]
            beside = T_tip[:3, 3] - np.array([0.0, 0.3 * self._size, 0.0])
            self._view.add_box(self._sides.value, beside)


def _in_words(closest: ClosestPair | None) -> str:
    if closest is None:
        return NO_PAIR
    pair = " &ndash; ".join(f"<b>{escape(name)}</b>" for name in closest.names)
    if closest.distance <= 0.0:
        return f"<span style='color:#dc2626'>In collision:</span> {pair}"
    dim = f"<span style='color:{DIMMED}'>closest:</span>"
    return f"{dim} {pair}, {1e3 * closest.distance:.0f} mm"
