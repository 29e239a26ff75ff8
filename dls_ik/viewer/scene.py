# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""3D scene of the page: floor, light, camera, arms, targets, trails and velocity ellipsoid."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import transform
from dls_ik.viewer.plots import ARM_COLOURS, velocity_ellipsoid
from dls_ik.viewer.session import ArmView
from dls_ik.viewer.shapes import (
    Colour,
    LinkBoxes,
    Shapes,
    moving_links,
    pose_from_wxyz,
    wxyz_from_pose,
)

VIEW_DIRECTION = np.array([1.25, -1.15, 0.62])  # direction from the robot to the camera
FIELD_OF_VIEW = np.deg2rad(40.0)  # [rad] vertical field of view of the camera
# In browser windows narrower than PHONE [px], the panels cover the share SHEET of the height.
PHONE, SHEET = 576, 0.45
MAX_ASPECT_CHANGE = 1.15  # a larger relative change of the aspect ratio moves the camera again
FRAME_MARGIN = 1.08  # factor of the camera's distance, for a margin around the arm
LAMPS = (("/lamp", (2.0, -1.0, 4.0), 1.6), ("/second_lamp", (-2.0, -3.0, 2.0), 0.7))
NUM_SIZE_SAMPLES = 80  # number of random configurations that determine the robot's size
TARGET_COLOUR: Colour = (217, 28, 92)
PATH_COLOUR: Colour = (128, 136, 149)
GIZMO_SCALE = 0.16  # size of a target gizmo, relative to the robot's size
# length of a gizmo's handles, relative to the robot's size
GIZMO_HANDLE_LENGTH = 1.35 * GIZMO_SCALE
BREAK_RADIUS, BREAK_COLOUR = 0.015, (204, 121, 167)  # radius relative to the robot's size
MAX_BREAKS = 50  # maximum number of reconfigurations that are drawn
TRAIL_POINTS = 600
TRAIL_STEP = 2e-3  # minimum distance of points of a trail, relative to the robot's size
ELLIPSOID_SCALE = 0.2  # [s] a speed of 1 m/s is drawn 0.2 m long
VISIBLE_CHANGE = 1e-6  # smaller changes of entries of a pose (4, 4) are not drawn
NO_SEGMENTS = np.zeros((1, 2, 3), np.float32)  # a segment of length 0, which is invisible
FLOOR_COLOURS = {False: ((226, 229, 234), (196, 201, 209)), True: ((44, 48, 54), (70, 76, 84))}


class SceneView:
    """3D scene of the page: floor, camera, arms, targets, paths, trails and velocity ellipsoid.

    A trail is a line through the last positions of a tip. A target is drawn as a gizmo: a frame
    with handles by which a person can drag it.

    Attributes:
        floor: Height of the floor in the base frame [m].
        size: Size of the robot [m].
        targets: Gizmo of each tip's target.
    """

    def __init__(self, server: Any, robot: RobotModel, shapes: Shapes) -> None:
        self._server, self._scene = server, server.scene
        self._robot, self._boxes = robot, LinkBoxes(robot, shapes)
        self.floor, self.size = extent(robot, shapes)
        _furnish(server)
        self.darken(False)
        self._figures = Figures(self._scene, robot, shapes, self._boxes, self.size)
        self._trails: list[TipTrail] = []
        self.targets = [
            TargetGizmo(self._scene, f"/target{i or ''}", self.size) for i in range(len(robot.tips))
        ]
        self._path = self._scene.add_line_segments(
            "/path",
            NO_SEGMENTS,
            PATH_COLOUR,
            thickness=1.5,
            thickness_units="screen",
            visible=False,
        )
        self._ellipsoid = VelocityEllipsoid(self._scene, robot, self.size)
        self._breaks: list[Any] = []
        self._has_trails = False
        self._q = robot.clip(np.zeros(robot.n))
        self._figures.show([self._q])
        self._framed = np.zeros((0, 3))
        self.frame(self._q)
        # Aspect ratio of each client's window when its camera was last moved
        self._aspects: dict[int, float] = {}
        server.on_client_connect(self._greet)

    def clearance(self, q: Array) -> Array:
        """Return the height (k,) [m] of the lowest point of each moving link above the floor.

        Args:
            q: (n,) joint positions [rad or m].
        """
        return self._boxes.heights(q) - self.floor

    def show(self, views: Sequence[ArmView], target: Array | None) -> None:
        """Draw the arms, and move the target gizmos.

        Args:
            views: States of the arms.
            target: Target (4, 4), or (k, 4, 4) for k tips; None leaves the gizmos unchanged.
        """
        if views:
            self._q = views[0].sample.q
            self._figures.show([view.sample.q for view in views])
            self._show_trails(views)
            first = views[0].sample.T_tip.reshape(-1, 4, 4)[0]
            self._ellipsoid.show(self._q, first)
        if target is not None:
            for gizmo, T in zip(self.targets, target.reshape(-1, 4, 4), strict=True):
                gizmo.show(T)

    def frame(self, q: Array, points: Array | None = None, client: Any = None) -> None:
        """Move the camera so that it sees the arm, the floor, the target handles and given points.

        Args:
            q: Joint positions (n,) of the arm [rad or m].
            points: Additional points (k, 3) to show, in the base frame [m].
            client: Client whose camera moves; None moves the cameras of all clients.
        """
        parts = [self._boxes.corners(q)]
        axes = GIZMO_HANDLE_LENGTH * self.size * np.concatenate([np.zeros((1, 3)), np.eye(3)])
        if points is not None:
            # margin for target handles at the ends of a path
            rim = 0.4 * GIZMO_HANDLE_LENGTH * self.size
            parts += [points.min(axis=0)[None] - rim, points.max(axis=0)[None] + rim, points]
        tips = self._robot.fk(q).reshape(-1, 4, 4)
        parts += [axes @ T[:3, :3].T + T[:3, 3] for T in tips]  # ends of the target handles
        seen = np.concatenate(parts)
        base = np.append(0.5 * (seen.min(axis=0) + seen.max(axis=0))[:2], self.floor)
        self._framed = np.concatenate([seen, base[None], [[0.0, 0.0, self.floor]]])
        position, look_at = _camera(self._framed, 1.0)
        camera = self._server.initial_camera
        camera.position, camera.look_at, camera.fov = position, look_at, FIELD_OF_VIEW
        for each in [client] if client is not None else self._server.get_clients().values():
            self._frame_client(each)

    def frame_again(self, client: Any = None) -> None:
        """Move the camera so that the current arm and targets are visible.

        Args:
            client: Client whose camera moves; None moves the cameras of all clients.
        """
        gizmos = np.array([gizmo.pose[:3, 3] for gizmo in self.targets])
        self.frame(self._q, gizmos, client)

    def show_path(self, points: Array | None) -> None:
        """Draw the path of a preset or replay through points (m, 3) [m]; None hides the path."""
        self._path.visible = points is not None
        if points is not None:
            self._path.points = np.stack([points[:-1], points[1:]], axis=1).astype(np.float32)

    def show_breaks(self, points: Array) -> None:
        """Draw spheres at points (k, 3) [m], where a replayed path has reconfigurations."""
        for each in self._breaks:
            each.remove()
        radius = BREAK_RADIUS * self.size
        self._breaks = [
            self._scene.add_icosphere(
                f"/path/break{i}", radius=radius, color=BREAK_COLOUR, position=tuple(point.tolist())
            )
            for i, point in enumerate(points[:MAX_BREAKS])
        ]

    def show_ellipsoid(self, is_shown: bool) -> None:
        """Show or hide the velocity ellipsoid of the first arm."""
        self._ellipsoid.handle.visible = is_shown

    def show_trails(self, is_shown: bool) -> None:
        """Show or hide the trails of the tips; earlier points are removed from the trails."""
        self._has_trails = is_shown
        self.clear_trails()

    def clear_trails(self) -> None:
        """Remove all points of the trails."""
        for trail in self._trails:
            trail.clear()
            trail.handle.visible = self._has_trails

    def darken(self, is_dark: bool, client: Any = None) -> None:
        """Draw the floor with colours for a dark or for a white background.

        Args:
            is_dark: Whether the background is dark.
            client: Client (browser) of the viser server whose floor changes; None changes the
                default, which a client sees until its own floor changes.
        """
        scene = self._scene if client is None else client.scene
        _add_floor(scene, self.floor, self.size, is_dark)

    def _show_trails(self, views: Sequence[ArmView]) -> None:
        while len(self._trails) < len(views):
            i = len(self._trails)
            self._trails.append(TipTrail(self._scene, f"/trail{i}", i, self.size))
            self._trails[-1].handle.visible = self._has_trails
        if not self._has_trails:
            return
        for view, trail in zip(views, self._trails, strict=False):
            trail.show(view.sample.T_tip.reshape(-1, 4, 4)[0, :3, 3])
        # Trails that are not needed are emptied and not removed, because the page would log an
        # error if an update arrives for a removed node.
        for trail in self._trails[len(views) :]:
            trail.clear()

    def _greet(self, client: Any) -> None:
        """Point the camera of a new client at the arm, again whenever its aspect ratio changes."""
        self._frame_client(client)

        def follow_window(_: Any) -> None:
            before = self._aspects.get(client.client_id, 1.0)
            if not 1.0 / MAX_ASPECT_CHANGE < client.camera.aspect / before < MAX_ASPECT_CHANGE:
                self._frame_client(client)

        client.camera.on_update(follow_window)

    def _frame_client(self, client: Any) -> None:
        camera = client.camera
        self._aspects[client.client_id] = camera.aspect
        shown = 1.0 - SHEET if camera.image_width < PHONE else 1.0
        position, look_at = _camera(self._framed, camera.aspect, shown)
        with client.atomic():
            client.camera.position = position  # viser also moves look_at, which is set next
            client.camera.look_at = look_at


def _camera(points: Array, aspect: float, shown: float = 1.0) -> tuple[Array, Array]:
    """Return the position (3,) of a camera that sees all points, and the point (3,) it looks at.

    Args:
        points: Points (k, 3) to see [m].
        aspect: Width of the picture divided by its height.
        shown: Share of the height of the picture that the panels do not cover.
    """
    middle = 0.5 * (points.min(axis=0) + points.max(axis=0))
    backward = VIEW_DIRECTION / np.linalg.norm(VIEW_DIRECTION)
    right = np.cross([0.0, 0.0, 1.0], backward)
    right /= np.linalg.norm(right)
    up = np.cross(backward, right)
    slope = np.tan(0.5 * FIELD_OF_VIEW)
    away = points - middle
    needed = [
        np.abs(away @ side) / (slope * share) + away @ backward
        for side, share in ((up, shown), (right, max(aspect, 0.2)))
    ]
    distance = FRAME_MARGIN * max(float(np.max(needed)), 1e-2)
    middle = middle - (1.0 - shown) * slope * distance * up
    return middle + distance * backward, middle


def _furnish(server: Any) -> None:
    """Set the lights of a viser server's 3D scene."""
    scene = server.scene
    # Shadows and reflections would take most of the time on a machine without a graphics card.
    scene.configure_environment_map(None)
    scene.configure_default_lights(False)
    sky, ground = (255, 255, 255), (150, 152, 160)
    scene.add_light_hemisphere("/sky", sky_color=sky, ground_color=ground, intensity=1.7)
    for name, place, intensity in LAMPS:
        scene.add_light_directional(name, position=place, intensity=intensity)


def _add_floor(scene: Any, floor: float, size: float, is_dark: bool) -> None:
    """Add a grid for the floor to a scene, or replace the grid of the scene.

    Args:
        scene: Scene graph of the viser server, for all clients (browsers), or of one client.
        floor: Height of the floor in the base frame [m].
        size: Size of the robot [m].
        is_dark: Whether the background is dark.
    """
    decade = float(10.0 ** np.round(np.log10(size)))
    cell, section = FLOOR_COLOURS[is_dark]
    scene.add_grid(
        "/floor",
        width=6.0 * size,
        height=6.0 * size,
        cell_size=0.1 * decade,
        section_size=0.5 * decade,
        cell_color=cell,
        section_color=section,
        fade_distance=9.0 * size,
        position=(0.0, 0.0, floor),
    )


def extent(robot: RobotModel, shapes: Shapes) -> tuple[float, float]:
    """Return the height of the floor in the base frame [m] and the size of the robot [m].

    The floor is below all links that do not move. The size is the largest extent along an axis over
    random configurations.
    """
    rng = np.random.default_rng(0)
    boxes = LinkBoxes(robot, shapes)
    drawn = [boxes.corners(q) for q in robot.random(NUM_SIZE_SAMPLES, rng)]
    still = LinkBoxes(robot, shapes.of(set(robot.tree.links) - moving_links(robot)))
    lows = still.corners(robot.clip(np.zeros(robot.n)), with_links=False)[:, 2]
    size = max(float(np.ptp(points, axis=0).max()) for points in drawn)
    return float(min(lows.min(initial=0.0), 0.0)), size or 1.0


# Arms

# Distances of a ghost's link from the previous arms, relative to the robot's size, below which the
# link is hidden, and above which the link has GHOST_OPACITY
GHOST_HIDDEN_DISTANCE, GHOST_SHOWN_DISTANCE = 0.006, 0.03
GHOST_OPACITY = 0.55
OPACITY_STEP = 0.05
MAX_GHOST_FACES = 4000  # browsers draw larger translucent meshes slowly
GHOST_GROWTH = 0.015  # increase of the scale of the shapes from each arm to the next
MAX_DARK_BRIGHTNESS = 90.0  # shapes below this mean of RGB get a darker tint than others


class Figures:
    """Drawings of up to four arms.

    A single arm is drawn in its own colours. Of several arms, each has the colour of its curves in
    the plots; the first is solid, and the others, called ghosts, are translucent. The opacity of a
    link of a ghost increases with its distance from the same link of the previous arms. Each arm is
    drawn slightly larger than the previous arm, because coinciding surfaces would flicker.
    """

    def __init__(
        self, scene: Any, robot: RobotModel, shapes: Shapes, boxes: LinkBoxes, size: float
    ) -> None:
        self._scene, self._robot, self._boxes, self._size = scene, robot, boxes, size
        self._shapes, self._moving = shapes, shapes.of(moving_links(robot))
        self._plain = Figure(scene, "/arm", robot, shapes)
        self._tinted: list[Figure] = []

    def show(self, qs: Sequence[Array]) -> None:
        """Draw the arms, given the joint positions (n,) of each arm [rad or m]."""
        is_alone = len(qs) <= 1
        while not is_alone and len(self._tinted) < len(qs):
            self._add()
        self._plain.root.visible = is_alone
        poses = [self._boxes.poses(q) for q in qs]
        if is_alone:
            self._plain.show(poses[0])
        for i, figure in enumerate(self._tinted):
            is_shown = not is_alone and i < len(qs)
            figure.root.visible = is_shown
            if is_shown:
                figure.show(poses[i])
                if i:
                    figure.fade(self._opacities(poses[i], poses[:i]))

    def _add(self) -> None:
        i = len(self._tinted)
        shapes = self._moving if i else self._shapes
        root = f"/arm_{'abcd'[i]}"
        figure = Figure(
            self._scene, root, self._robot, shapes, ARM_COLOURS[i], 1.0 + i * GHOST_GROWTH
        )
        self._tinted.append(figure)

    def _opacities(
        self, own: Mapping[str, Array], others: Sequence[Mapping[str, Array]]
    ) -> dict[str, float]:
        """Return the opacity (0 to 1) of each link of a ghost, by link name.

        Args:
            own: Poses T_base_link (4, 4) of the ghost by link name.
            others: Poses T_base_link (4, 4) of each previous arm by link name.
        """
        near, apart = GHOST_HIDDEN_DISTANCE * self._size, GHOST_SHOWN_DISTANCE * self._size
        found = {}
        for link, box in self._boxes.boxes.items():
            distance = min(float(np.abs((own[link] - other[link]) @ box).max()) for other in others)
            share = np.clip((distance - near) / (apart - near), 0.0, 1.0)
            found[link] = GHOST_OPACITY * float(np.round(share / OPACITY_STEP) * OPACITY_STEP)
        return found


class Figure:
    """Drawing of one arm, whose shapes move with the joints.

    Args:
        scene: Scene graph of viser.
        root: Name of the parent node of all nodes of the arm, such as ``/arm``.
        robot: Robot to draw.
        shapes: Shapes of the robot's links.
        tint: Colour of the arm; None keeps the colours of the shapes.
        scale: Factor by which each shape is scaled about its centre. If `tint` is given and the
            scale is 1, dark shapes get a darker tint; otherwise all shapes have the same tint.
    """

    def __init__(
        self,
        scene: Any,
        root: str,
        robot: RobotModel,
        shapes: Shapes,
        tint: Colour | None = None,
        scale: float = 1.0,
    ) -> None:
        self.root = scene.add_frame(root, show_axes=False)
        links = dict.fromkeys(piece.link for piece in shapes.pieces)
        names = node_names(root, tuple(links))
        self._frames = {
            link: scene.add_frame(name, show_axes=False) for link, name in names.items()
        }
        self._drawn: dict[str, Array] = {}
        self._meshes: dict[str, list[Any]] = {link: [] for link in links}
        self._opacity: dict[str, float] = {}
        for i, piece in enumerate(shapes.pieces):
            name = f"{names[piece.link]}/{i}"
            colour = piece.colour
            if tint is not None:
                colour = _tinted(tint, colour if scale == 1.0 else None)
            if colour is None:
                mesh = scene.add_mesh_trimesh(name, piece.mesh)
            else:
                shape = _scaled(piece.mesh, scale)
                vertices, faces = shape.vertices.astype(np.float32), shape.faces.astype(np.uint32)
                mesh = scene.add_mesh_simple(name, vertices, faces, color=colour)
            self._meshes[piece.link].append(mesh)

    def show(self, poses: Mapping[str, Array]) -> None:
        """Move the links to their poses ``T_base_link`` (4, 4), given by link name."""
        for link, frame in self._frames.items():
            T, drawn = poses[link], self._drawn.get(link)
            if drawn is None or np.abs(T - drawn).max() > VISIBLE_CHANGE:
                frame.position, frame.wxyz = T[:3, 3], wxyz_from_pose(T)
                self._drawn[link] = T

    def fade(self, opacities: Mapping[str, float]) -> None:
        """Set the opacity (0 to 1) of each link, given by link name; hide links with opacity 0."""
        for link, meshes in self._meshes.items():
            opacity = opacities.get(link, GHOST_OPACITY)
            if self._opacity.get(link) == opacity:
                continue
            self._opacity[link] = opacity
            self._frames[link].visible = opacity > 0.0
            for mesh in meshes:
                mesh.opacity = opacity


def _tinted(tint: Colour, colour: Colour | None) -> Colour:
    """Return the tint for a shape; a shape whose own `colour` is dark gets a darker tint."""
    is_dark = colour is not None and sum(colour) / 3.0 < MAX_DARK_BRIGHTNESS
    red, green, blue = (round(0.75 * c + (0.0 if is_dark else 64.0)) for c in tint)
    return red, green, blue


def node_names(root: str, links: tuple[str, ...]) -> dict[str, str]:
    """Return a viser node name for each link, with a number, as link names may contain slashes."""
    return {link: f"{root}/link{i}" for i, link in enumerate(links)}


def _scaled(mesh: Any, scale: float) -> Any:
    """Return a mesh scaled about its centre; a mesh with many faces becomes its convex hull."""
    if scale == 1.0:
        return mesh
    middle = mesh.bounds.mean(axis=0)
    larger = mesh.copy() if len(mesh.faces) <= MAX_GHOST_FACES else mesh.convex_hull
    larger.apply_transform(transform(scale * np.eye(3), (1.0 - scale) * middle))
    return larger


# Targets, paths, trails, ellipsoid


class TargetGizmo:
    """Frame that shows a target in the 3D scene, with handles by which a person can drag it.

    Args:
        scene: Scene graph of viser.
        name: Name of the new node in the scene graph.
        size: Size of the robot [m], to which the size of the gizmo is proportional.
    """

    def __init__(self, scene: Any, name: str, size: float) -> None:
        self._handle = scene.add_transform_controls(
            name, scale=GIZMO_SCALE * size, line_width=3.0, depth_test=False, visible=False
        )
        scene.add_icosphere(f"{name}/point", radius=0.018 * size, color=TARGET_COLOUR)

    def on_drag(self, dragged: Callable[[Array], None]) -> None:
        """Register a function to call with each target T_base_target (4, 4) that a person sets."""
        self._handle.on_update(lambda _: dragged(self.pose))

    @property
    def pose(self) -> Array:
        """Displayed target ``T_base_target`` (4, 4)."""
        return pose_from_wxyz(self._handle.wxyz, self._handle.position)

    def show(self, T: Array) -> None:
        """Move the gizmo, which is hidden before the first call, to T_base_target (4, 4)."""
        if not self._handle.visible:
            self._handle.visible = True
        if np.abs(T - self.pose).max() > VISIBLE_CHANGE:
            self._handle.position, self._handle.wxyz = T[:3, 3], wxyz_from_pose(T)


class TipTrail:
    """Line through the last positions of the tip of an arm."""

    def __init__(self, scene: Any, name: str, arm: int, size: float) -> None:
        self._lock = threading.Lock()  # held while the points are drawn or removed
        self._points: deque[Array] = deque(maxlen=TRAIL_POINTS)
        self._step = TRAIL_STEP * size
        self.handle = scene.add_line_segments(
            name, NO_SEGMENTS, ARM_COLOURS[arm], thickness=3.0, thickness_units="screen"
        )

    def show(self, point: Array) -> None:
        """Append a point (3,) [m] in the base frame to the trail."""
        with self._lock:
            if self._points and np.linalg.norm(point - self._points[-1]) < self._step:
                return
            self._points.append(point.copy())
            line = np.array(self._points, np.float32)
            if len(line) > 1:
                self.handle.points = np.stack([line[:-1], line[1:]], axis=1)

    def clear(self) -> None:
        """Remove all points."""
        with self._lock:
            if self._points:
                self._points.clear()
                self.handle.points = NO_SEGMENTS


class VelocityEllipsoid:
    """Manipulability ellipsoid: linear tip velocities for joint velocities of norm 1."""

    def __init__(self, scene: Any, robot: RobotModel, size: float) -> None:
        self._robot, self._min_length = robot, 2e-3 * size
        self.handle = scene.add_icosphere(
            "/ellipsoid", radius=1.0, color=(124, 58, 237), opacity=0.3, subdivisions=3
        )
        self.handle.visible = False

    def show(self, q: Array, T_tip: Array) -> None:
        """Draw the ellipsoid for joint positions q (n,), centred at the tip `T_tip` (4, 4)."""
        if not self.handle.visible:
            return
        axes, lengths = velocity_ellipsoid(self._robot, q)
        self.handle.position, self.handle.wxyz = T_tip[:3, 3], wxyz_from_pose(transform(axes))
        scale = np.maximum(ELLIPSOID_SCALE * lengths, self._min_length)
        self.handle.scale = tuple(scale.tolist())
