"""The scene: floor, light, camera, the arms, and what is drawn beside them."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.measures import ellipsoid
from dls_ik.viewer.plots import ARMS, SECOND
from dls_ik.viewer.poses import LinkPoses, moving_links, pose_of, wxyz_of
from dls_ik.viewer.session import Seen
from dls_ik.viewer.shapes import Colour, Shapes

LOOK_FROM = np.array([1.25, -1.15, 0.62])  # in sizes of the robot, from what is looked at
APART = 5e-3  # [rad or m] of a joint: a ghost that is nearer to the arm only tints it
POSTURES = 80  # that are looked at to see how large a robot is
LAMPS = (("/lamp", (2.0, -1.0, 4.0), 1.6), ("/second_lamp", (-2.0, -3.0, 2.0), 0.7))
SWELL = 1.03  # of a ghost
MOVED = 1e-6  # [m and 1] entries of a pose: less does not show
TARGET: Colour = (217, 28, 92)
GIZMO = 0.22  # length of the target's arrows, of the robot's size
TRAIL = 300  # points
STEP = 2e-3  # of the robot's size: a tip that moved less leaves no point


class Stage:
    """Everything in the scene.

    Args:
        dragged: called with the pose (4, 4) that the target is dragged to.
    """

    def __init__(
        self, server: Any, robot: RobotModel, shapes: Shapes, dragged: Callable[[Array], None]
    ) -> None:
        self._scene, self._robot, self._shapes = server.scene, robot, shapes
        self._start = robot.clip(np.zeros(robot.n))
        self.low, self.size = extent(robot, shapes)
        self._furnish(server)
        self._figures = [Figure(self._scene, "/arm", robot, shapes)]
        self._trails = [Trail(self._scene, "/trail", 0, self.size)]
        self.target = Target(self._scene, self.size, dragged)
        self.ellipsoid = Ellipsoid(self._scene, robot, self.size)
        self._has_trails = False
        self._figures[0].show(self._start)

    def show(self, seen: Sequence[Seen], target: Array | None) -> None:
        """Draw the arms where they are, and the target, (4, 4), where it is."""
        self._populate(len(seen))
        for arm, figure, trail in zip(seen, self._figures, self._trails, strict=False):
            figure.show(arm.sample.q)
            if self._has_trails:
                trail.show(arm.sample.T_tip[:3, 3])
        if len(seen) > 1:
            apart = np.abs(seen[1].sample.q - seen[0].sample.q).max()
            self._figures[1].visible = bool(apart > APART)
        if seen:
            self.ellipsoid.show(seen[0].sample.q, seen[0].sample.T_tip)
        if target is not None:
            self.target.show(target)

    def show_trails(self, is_shown: bool) -> None:
        """Trails from now on, or none."""
        self._has_trails = is_shown
        self.clear_trails()

    def clear_trails(self) -> None:
        """Begin the trails anew."""
        for trail in self._trails:
            trail.clear()
            trail.visible(self._has_trails)

    def _populate(self, arms: int) -> None:
        """As many arms as there are, the second one as a ghost."""
        if arms > len(self._figures):
            moved = self._shapes.of(moving_links(self._robot))
            ghost = Figure(self._scene, "/ghost", self._robot, moved, SECOND)
            self._figures.append(ghost)
            self._trails.append(Trail(self._scene, "/ghost_trail", 1, self.size))
            self._trails[1].visible(self._has_trails)
        if len(self._figures) > max(arms, 1):
            self._figures.pop().remove()
            self._trails.pop().remove()

    def _furnish(self, server: Any) -> None:
        size = self.size
        # Shadows and reflections would cost a machine without a graphics card most of its pictures.
        self._scene.configure_environment_map(None)
        self._scene.configure_default_lights(False)
        sky, ground = (255, 255, 255), (150, 152, 160)
        self._scene.add_light_hemisphere("/sky", sky_color=sky, ground_color=ground, intensity=1.7)
        for name, place, intensity in LAMPS:
            self._scene.add_light_directional(name, position=place, intensity=intensity)
        self._scene.add_grid(
            "/floor",
            width=6.0 * size,
            height=6.0 * size,
            cell_size=0.1 * _round(size),
            section_size=0.5 * _round(size),
            cell_color=(226, 229, 234),
            section_color=(196, 201, 209),
            fade_distance=9.0 * size,
            position=(0.0, 0.0, self.low),
        )
        middle = np.array([0.1 * size, 0.0, self.low + 0.45 * size])
        server.initial_camera.look_at = middle
        server.initial_camera.position = middle + size * LOOK_FROM
        server.initial_camera.fov = np.deg2rad(40.0)


def _round(length: float) -> float:
    """The power of ten that is next to a length."""
    return float(10.0 ** np.round(np.log10(length)))


def extent(robot: RobotModel, shapes: Shapes) -> tuple[float, float]:
    """Where the floor is, below what does not move, and how large the arm is stretched out [m]."""
    poses = LinkPoses(robot)
    rng = np.random.default_rng(0)
    drawn = [_points(shapes, poses(q)) for q in robot.random(rng, POSTURES)]
    still = shapes.of(set(robot.tree.links) - moving_links(robot))
    lows = _points(still, poses(robot.clip(np.zeros(robot.n))), links=False)[:, 2]
    size = max(float(np.ptp(points, axis=0).max()) for points in drawn)
    return float(min(lows.min(initial=0.0), 0.0)), size or 1.0


def _points(shapes: Shapes, poses: Mapping[str, Array], links: bool = True) -> Array:
    """Corners (k, 3) of all pieces where they are, and the origins of links."""
    parts = [
        piece.mesh.bounds @ poses[piece.link][:3, :3].T + poses[piece.link][:3, 3]
        for piece in shapes.pieces
    ]
    if links:
        parts.append(np.array([T[:3, 3] for T in poses.values()]))
    return np.concatenate([np.zeros((1, 3)), *parts])


class Figure:
    """Draws the pieces below a node, and moves them with the joints.

    Args:
        scene: of viser.
        root: name of the node that all hangs below, such as ``/arm``.
        tint: a colour for all pieces, translucent; None: their own.
    """

    def __init__(
        self, scene: Any, root: str, robot: RobotModel, shapes: Shapes, tint: Colour | None = None
    ) -> None:
        self._poses = LinkPoses(robot)
        self._root = scene.add_frame(root, show_axes=False)
        drawn = dict.fromkeys(piece.link for piece in shapes.pieces)
        names = scene_names(root, tuple(drawn))
        self._frames = {
            link: scene.add_frame(name, show_axes=False) for link, name in names.items()
        }
        self._shown: dict[str, Array] = {}
        for i, piece in enumerate(shapes.pieces):
            name = f"{names[piece.link]}/{i}"
            if tint is not None:
                _add_simple(scene, name, _swollen(piece.mesh), tint, opacity=0.42)
            elif piece.colour is None:
                scene.add_mesh_trimesh(name, piece.mesh)
            else:
                _add_simple(scene, name, piece.mesh, piece.colour)

    def show(self, q: Array) -> None:
        """Move to joint values (n,)."""
        poses = self._poses(q)
        for link, frame in self._frames.items():
            T, shown = poses[link], self._shown.get(link)
            if shown is None or np.abs(T - shown).max() > MOVED:
                frame.position, frame.wxyz = T[:3, 3], wxyz_of(T)
                self._shown[link] = T

    @property
    def visible(self) -> bool:
        """Whether it is shown."""
        return bool(self._root.visible)

    @visible.setter
    def visible(self, is_shown: bool) -> None:
        if is_shown != self._root.visible:
            self._root.visible = is_shown

    def remove(self) -> None:
        """Take it out of the scene, with all below it."""
        self._root.remove()


def scene_names(root: str, links: tuple[str, ...]) -> dict[str, str]:
    """A node name for each link: numbered, since a link's name may hold anything, slashes too."""
    return {link: f"{root}/link{i}" for i, link in enumerate(links)}


def _swollen(mesh: Any) -> Any:
    """A little larger, so that of two surfaces in one place one is in front."""
    middle = mesh.bounds.mean(axis=0)
    larger = mesh.copy()
    larger.apply_translation(-middle)
    larger.apply_scale(SWELL)
    larger.apply_translation(middle)
    return larger


def _add_simple(scene: Any, name: str, mesh: Any, colour: Colour, **look: Any) -> None:
    vertices = np.asarray(mesh.vertices, np.float32)
    faces = np.asarray(mesh.faces, np.uint32)
    scene.add_mesh_simple(name, vertices, faces, color=colour, **look)


class Target:
    """A pose to drag.

    Args:
        size: of the robot [m].
        moved: called with the pose (4, 4) that a person drags it to.
    """

    def __init__(self, scene: Any, size: float, moved: Callable[[Array], None]) -> None:
        self._handle = scene.add_transform_controls(
            "/target", scale=GIZMO * size, line_width=3.0, depth_test=False
        )
        scene.add_icosphere("/target/point", radius=0.018 * size, color=TARGET)

        @self._handle.on_update  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            moved(self.pose)

    @property
    def pose(self) -> Array:
        """``T_base_target`` (4, 4)."""
        return pose_of(self._handle.wxyz, self._handle.position)

    def show(self, T: Array) -> None:
        """Put it to a pose (4, 4)."""
        if np.abs(T - self.pose).max() > MOVED:
            self._handle.position, self._handle.wxyz = T[:3, 3], wxyz_of(T)


class Trail:
    """Where a tip has been."""

    def __init__(self, scene: Any, name: str, arm: int, size: float) -> None:
        self._points: deque[Array] = deque(maxlen=TRAIL)
        self._step = STEP * size
        nothing = np.zeros((1, 2, 3), np.float32)
        self._handle = scene.add_line_segments(
            name, nothing, ARMS[arm], thickness=3.0, thickness_units="screen"
        )

    def show(self, point: Array) -> None:
        """Go on to a point (3,)."""
        if self._points and np.linalg.norm(point - self._points[-1]) < self._step:
            return
        self._points.append(point.copy())
        line = np.array(self._points, np.float32)
        if len(line) > 1:
            self._handle.points = np.stack([line[:-1], line[1:]], axis=1)

    def clear(self) -> None:
        """Begin anew."""
        self._points.clear()
        self._handle.points = np.zeros((1, 2, 3), np.float32)

    def visible(self, is_shown: bool) -> None:
        """Show or hide it."""
        self._handle.visible = is_shown

    def remove(self) -> None:
        """Take it out of the scene."""
        self._handle.remove()


class Ellipsoid:
    """How fast the tip can go in each direction, the manipulability ellipsoid of its position."""

    def __init__(self, scene: Any, robot: RobotModel, size: float) -> None:
        self._robot, self._size = robot, size
        self._handle = scene.add_icosphere(
            "/ellipsoid", radius=1.0, color=(124, 58, 237), opacity=0.3, subdivisions=3
        )
        self._handle.visible = False

    def show(self, q: Array, T_tip: Array) -> None:
        """Draw it at the tip (4, 4) of a configuration (n,); 1 m/s is a fifth of a metre."""
        if not self._handle.visible:
            return
        axes, lengths = ellipsoid(self._robot, q)
        pose = np.eye(4)
        pose[:3, :3] = axes
        self._handle.position, self._handle.wxyz = T_tip[:3, 3], wxyz_of(pose)
        self._handle.scale = tuple(np.maximum(0.2 * lengths, 2e-3 * self._size).tolist())

    def visible(self, is_shown: bool) -> None:
        """Show or hide it."""
        self._handle.visible = is_shown
