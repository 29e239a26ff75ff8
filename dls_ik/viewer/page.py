"""The page: the scene and the panels of a session, and the loop that updates them."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import transform
from dls_ik.viewer.panels import (
    ControlPanel,
    MethodPanel,
    PresetPanel,
    RecordPanel,
    Save,
    StatusLine,
)
from dls_ik.viewer.plots import (
    ARM_COLOURS,
    CONDITIONING,
    MOTION,
    SECOND,
    Plots,
    joint_bars,
    velocity_ellipsoid,
)
from dls_ik.viewer.session import ArmView, Preset, Session
from dls_ik.viewer.shapes import (
    Colour,
    LinkPoses,
    Shapes,
    moving_links,
    pose_from_wxyz,
    wxyz_from_pose,
)

CONTROLS_WIDTH, PLOTS_WIDTH = 350, 290  # [px]
SCENE_PERIOD, FIGURES_PERIOD = 1.0 / 30.0, 1.0 / 6.0  # [s]

MakeSession = Callable[[], tuple[Session, Sequence[Preset]]]


class Page:
    """Shows a session, and the panels that control it.

    Args:
        server: of viser.
        scene: with the robot.
        save: see :class:`dls_ik.viewer.panels.RecordPanel`.
    """

    def __init__(
        self,
        server: Any,
        scene: SceneView,
        status: StatusLine,
        session: Session,
        presets: Sequence[Preset],
        save: Save | None,
    ) -> None:
        self._server, self._gui, gui = server, server.gui, server.gui
        self._scene, self._status, self._session = scene, status, session
        self._lock = threading.Lock()  # one thread at a time changes the panels
        self._plots: Plots | None = None
        self._methods = MethodPanel(gui, session, session.history.clear)
        self._presets = PresetPanel(gui, session, presets, self._start_preset)
        with gui.add_folder("Joints"):
            self._bars = gui.add_html("")
        with gui.add_folder("Show"):
            hint = "how fast the tip of A can go in each direction"
            ellipsoid = gui.add_checkbox("Ellipsoid", False, hint=hint)
            trail = gui.add_checkbox("Trails", False, hint="where the tips have been")
            self._controls = ControlPanel(gui, session, scene.clear_trails)
        ellipsoid.on_update(lambda _: scene.show_ellipsoid(ellipsoid.value))
        trail.on_update(lambda _: scene.show_trails(trail.value))
        self._record = RecordPanel(gui, session, save)
        panel = gui.add_panel()
        self._tabs = {name: panel.add_tab(name) for name in (MOTION, CONDITIONING)}
        panel.dock_left()
        panel.set_width(PLOTS_WIDTH)
        if session.target is not None:
            scene.target.show(session.target)
        scene.target.on_drag(session.drag_target)

    def show(self, views: Sequence[ArmView]) -> None:
        """Draw the arms."""
        with self._server.atomic():
            self._scene.show(views, self._session.displayed_target())

    def show_figures(self, views: Sequence[ArmView]) -> None:
        """Update status, bars, plots and panels."""
        if not views:
            return
        with self._lock:
            self._show_plots(len(views))
            self._status.show(views)
            qs = [view.sample.q for view in views]
            self._bars.content = joint_bars(self._session.robot, qs)
            self._presets.update()
            self._controls.update(views)
            self._methods.follow()

    def finish(self) -> None:
        """Finish a recording."""
        self._record.finish()

    def _start_preset(self) -> None:
        self._methods.update()
        self._scene.clear_trails()

    def _show_plots(self, arms: int) -> None:
        if self._plots is None or arms != self._plots.arms:
            if self._plots is not None:
                self._plots.remove()
            self._plots = Plots(self._gui, self._tabs, arms)
        self._plots.show(self._session.history)


def serve(
    server: Any,
    robot: RobotModel,
    shapes: Shapes,
    make_session: MakeSession,
    rate: float,
    save: Save | None,
    ended: threading.Event,
) -> None:
    """Show the robot, make a session, and step it until the event is set.

    Args:
        server: of :func:`dls_ik.viewer.server.open_server`; it is stopped at the end.
        make_session: may take long; the page shows the robot meanwhile.
        rate: steps of the session [Hz].
        save: see :class:`dls_ik.viewer.panels.RecordPanel`.
    """
    server.gui.main_panel.dock_right()
    server.gui.main_panel.set_width(CONTROLS_WIDTH)
    status = StatusLine(server.gui, shapes.complaint)
    scene = SceneView(server, robot, shapes)
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        status.say("compiling kernels ...")
        session, presets = make_session()
        stack.callback(session.close)
        page = Page(server, scene, status, session, presets, save)
        stack.callback(page.finish)
        _run(page, session, 1.0 / rate, ended)


def _run(page: Page, session: Session, period: float, ended: threading.Event) -> None:
    """Step on absolute deadlines; those that were missed are skipped."""
    begin = deadline = time.monotonic()
    scene_time = figures_time = 0.0
    while not ended.wait(max(deadline - time.monotonic(), 0.0)):
        now = time.monotonic() - begin
        deadline = max(deadline + period, begin + now)
        views = session.step(now)
        if now - scene_time >= SCENE_PERIOD:
            page.show(views)
            scene_time = now
        if now - figures_time >= FIGURES_PERIOD:
            page.show_figures(views)
            figures_time = now


# The scene: floor, light, camera, the arms, the target, trails and the velocity ellipsoid

CAMERA = np.array([1.25, -1.15, 0.62])  # times the robot's size, from where it looks at
LAMPS = (("/lamp", (2.0, -1.0, 4.0), 1.6), ("/second_lamp", (-2.0, -3.0, 2.0), 0.7))
MIN_APART = 5e-3  # [rad or m] of a joint: a ghost nearer to the arm only tints it
SIZE_SAMPLES = 80  # postures
GHOST_SCALE = 1.03
GHOST_OPACITY = 0.42
VISIBLE_CHANGE = 1e-6  # [m and 1] of the entries of a pose
TARGET_COLOUR: Colour = (217, 28, 92)
GIZMO_SCALE = 0.22  # of the robot's size
TRAIL_POINTS = 300
TRAIL_STEP = 2e-3  # of the robot's size
ELLIPSOID_SCALE = 0.2  # [s] 1 m/s is drawn 0.2 m long


class SceneView:
    """Draws everything in the scene."""

    def __init__(self, server: Any, robot: RobotModel, shapes: Shapes) -> None:
        self._scene, self._robot, self._shapes = server.scene, robot, shapes
        floor, self._size = extent(robot, shapes)
        _furnish(server, floor, self._size)
        self._figures = [Figure(self._scene, "/arm", robot, shapes)]
        self._trails = [TipTrail(self._scene, "/trail", 0, self._size)]
        self.target = TargetGizmo(self._scene, self._size)
        self._ellipsoid = VelocityEllipsoid(self._scene, robot, self._size)
        self._has_trails = False
        self._figures[0].show(robot.clip(np.zeros(robot.n)))

    def show(self, views: Sequence[ArmView], target: Array | None) -> None:
        """Draw the arms, and the target (4, 4) if it has moved by itself."""
        self._add_and_remove_arms(len(views))
        for arm, figure, trail in zip(views, self._figures, self._trails, strict=False):
            figure.show(arm.sample.q)
            if self._has_trails:
                trail.show(arm.sample.T_tip[:3, 3])
        if len(views) > 1:
            apart = np.abs(views[1].sample.q - views[0].sample.q).max()
            self._figures[1].root.visible = bool(apart > MIN_APART)
        if views:
            self._ellipsoid.show(views[0].sample.q, views[0].sample.T_tip)
        if target is not None:
            self.target.show(target)

    def show_ellipsoid(self, is_shown: bool) -> None:
        """Show or hide the ellipsoid."""
        self._ellipsoid.handle.visible = is_shown

    def show_trails(self, is_shown: bool) -> None:
        """Show trails from now on, or hide them."""
        self._has_trails = is_shown
        self.clear_trails()

    def clear_trails(self) -> None:
        """Restart the trails."""
        for trail in self._trails:
            trail.clear()
            trail.handle.visible = self._has_trails

    def _add_and_remove_arms(self, arms: int) -> None:
        """Have as many arms as there are, at least one; the second one as a ghost."""
        if arms > len(self._figures):
            moved = self._shapes.of(moving_links(self._robot))
            self._figures.append(Figure(self._scene, "/ghost", self._robot, moved, SECOND))
            self._trails.append(TipTrail(self._scene, "/ghost_trail", 1, self._size))
            self._trails[1].handle.visible = self._has_trails
        if len(self._figures) > max(arms, 1):
            self._figures.pop().root.remove()
            self._trails.pop().handle.remove()


def _furnish(server: Any, floor: float, size: float) -> None:
    """Set up light, floor and camera for a robot of a size [m]."""
    scene = server.scene
    # Shadows and reflections cost most of the frame rate on a machine without a graphics card.
    scene.configure_environment_map(None)
    scene.configure_default_lights(False)
    sky, ground = (255, 255, 255), (150, 152, 160)
    scene.add_light_hemisphere("/sky", sky_color=sky, ground_color=ground, intensity=1.7)
    for name, place, intensity in LAMPS:
        scene.add_light_directional(name, position=place, intensity=intensity)
    decade = float(10.0 ** np.round(np.log10(size)))
    scene.add_grid(
        "/floor",
        width=6.0 * size,
        height=6.0 * size,
        cell_size=0.1 * decade,
        section_size=0.5 * decade,
        cell_color=(226, 229, 234),
        section_color=(196, 201, 209),
        fade_distance=9.0 * size,
        position=(0.0, 0.0, floor),
    )
    middle = np.array([0.1 * size, 0.0, floor + 0.45 * size])
    server.initial_camera.look_at = middle
    server.initial_camera.position = middle + size * CAMERA
    server.initial_camera.fov = np.deg2rad(40.0)


def extent(robot: RobotModel, shapes: Shapes) -> tuple[float, float]:
    """Return the height of the floor, below all that does not move, and the arm's size [m]."""
    poses = LinkPoses(robot)
    rng = np.random.default_rng(0)
    drawn = [_corners(shapes, poses(q)) for q in robot.random(rng, SIZE_SAMPLES)]
    still = shapes.of(set(robot.tree.links) - moving_links(robot))
    lows = _corners(still, poses(robot.clip(np.zeros(robot.n))), with_links=False)[:, 2]
    size = max(float(np.ptp(points, axis=0).max()) for points in drawn)
    return float(min(lows.min(initial=0.0), 0.0)), size or 1.0


def _corners(shapes: Shapes, poses: Mapping[str, Array], with_links: bool = True) -> Array:
    """Return the corners (k, 3) of all shapes, and the origins of the links."""
    parts = [
        piece.mesh.bounds @ poses[piece.link][:3, :3].T + poses[piece.link][:3, 3]
        for piece in shapes.pieces
    ]
    if with_links:
        parts.append(np.array([T[:3, 3] for T in poses.values()]))
    return np.concatenate([np.zeros((1, 3)), *parts])


class Figure:
    """Draws the shapes of a robot and moves them with the joints.

    Args:
        scene: of viser.
        root: parent of all nodes, such as ``/arm``.
        tint: colour of a ghost; None: the shapes' own.
    """

    def __init__(
        self, scene: Any, root: str, robot: RobotModel, shapes: Shapes, tint: Colour | None = None
    ) -> None:
        self._poses = LinkPoses(robot)
        self.root = scene.add_frame(root, show_axes=False)
        links = dict.fromkeys(piece.link for piece in shapes.pieces)
        names = node_names(root, tuple(links))
        self._frames = {
            link: scene.add_frame(name, show_axes=False) for link, name in names.items()
        }
        self._drawn: dict[str, Array] = {}
        for i, piece in enumerate(shapes.pieces):
            name = f"{names[piece.link]}/{i}"
            if tint is not None:
                _add_mesh(scene, name, _enlarged(piece.mesh), tint, opacity=GHOST_OPACITY)
            elif piece.colour is None:
                scene.add_mesh_trimesh(name, piece.mesh)
            else:
                _add_mesh(scene, name, piece.mesh, piece.colour)

    def show(self, q: Array) -> None:
        """Move to joint values (n,)."""
        poses = self._poses(q)
        for link, frame in self._frames.items():
            T, drawn = poses[link], self._drawn.get(link)
            if drawn is None or np.abs(T - drawn).max() > VISIBLE_CHANGE:
                frame.position, frame.wxyz = T[:3, 3], wxyz_from_pose(T)
                self._drawn[link] = T


def node_names(root: str, links: tuple[str, ...]) -> dict[str, str]:
    """Return a node name for each link, by number: names of links may contain slashes."""
    return {link: f"{root}/link{i}" for i, link in enumerate(links)}


def _enlarged(mesh: Any) -> Any:
    """Enlarge a ghost's mesh a little, so that its surface is in front of the arm's."""
    middle = mesh.bounds.mean(axis=0)
    larger = mesh.copy()
    larger.apply_translation(-middle)
    larger.apply_scale(GHOST_SCALE)
    larger.apply_translation(middle)
    return larger


def _add_mesh(scene: Any, name: str, mesh: Any, colour: Colour, **look: Any) -> None:
    vertices = np.asarray(mesh.vertices, np.float32)
    faces = np.asarray(mesh.faces, np.uint32)
    scene.add_mesh_simple(name, vertices, faces, color=colour, **look)


class TargetGizmo:
    """A pose to drag.

    Args:
        size: of the robot [m].
    """

    def __init__(self, scene: Any, size: float) -> None:
        self._handle = scene.add_transform_controls(
            "/target", scale=GIZMO_SCALE * size, line_width=3.0, depth_test=False
        )
        scene.add_icosphere("/target/point", radius=0.018 * size, color=TARGET_COLOUR)

    def on_drag(self, dragged: Callable[[Array], None]) -> None:
        """Call a function with each pose (4, 4) that a person drags it to."""
        self._handle.on_update(lambda _: dragged(self.pose))

    @property
    def pose(self) -> Array:
        """``T_base_target`` (4, 4)."""
        return pose_from_wxyz(self._handle.wxyz, self._handle.position)

    def show(self, T: Array) -> None:
        """Move it to a pose (4, 4)."""
        if np.abs(T - self.pose).max() > VISIBLE_CHANGE:
            self._handle.position, self._handle.wxyz = T[:3, 3], wxyz_from_pose(T)


class TipTrail:
    """A line through the last positions of a tip."""

    def __init__(self, scene: Any, name: str, arm: int, size: float) -> None:
        self._points: deque[Array] = deque(maxlen=TRAIL_POINTS)
        self._step = TRAIL_STEP * size
        empty = np.zeros((1, 2, 3), np.float32)
        self.handle = scene.add_line_segments(
            name, empty, ARM_COLOURS[arm], thickness=3.0, thickness_units="screen"
        )

    def show(self, point: Array) -> None:
        """Extend it to a point (3,)."""
        if self._points and np.linalg.norm(point - self._points[-1]) < self._step:
            return
        self._points.append(point.copy())
        line = np.array(self._points, np.float32)
        if len(line) > 1:
            self.handle.points = np.stack([line[:-1], line[1:]], axis=1)

    def clear(self) -> None:
        """Remove all points."""
        self._points.clear()
        self.handle.points = np.zeros((1, 2, 3), np.float32)


class VelocityEllipsoid:
    """The manipulability ellipsoid of the tip's position: its speed in each direction."""

    def __init__(self, scene: Any, robot: RobotModel, size: float) -> None:
        self._robot, self._min_length = robot, 2e-3 * size
        self.handle = scene.add_icosphere(
            "/ellipsoid", radius=1.0, color=(124, 58, 237), opacity=0.3, subdivisions=3
        )
        self.handle.visible = False

    def show(self, q: Array, T_tip: Array) -> None:
        """Draw it at the tip (4, 4) of a configuration (n,)."""
        if not self.handle.visible:
            return
        axes, lengths = velocity_ellipsoid(self._robot, q)
        self.handle.position, self.handle.wxyz = T_tip[:3, 3], wxyz_from_pose(transform(axes))
        scale = np.maximum(ELLIPSOID_SCALE * lengths, self._min_length)
        self.handle.scale = tuple(scale.tolist())
