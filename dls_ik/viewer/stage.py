"""The scene: floor, light, camera, the arms, and what is drawn beside them."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.colours import SECOND
from dls_ik.viewer.figure import Figure
from dls_ik.viewer.links import LinkPoses, moving_links
from dls_ik.viewer.marks import Ellipsoid, Target, Trail
from dls_ik.viewer.session import Seen
from dls_ik.viewer.shapes import Shapes

LOOK_FROM = np.array([1.25, -1.15, 0.62])  # in sizes of the robot, from what is looked at

APART = 5e-3  # [rad or m] of a joint: a ghost that is nearer to the arm only tints it
LAMPS = (("/lamp", (2.0, -1.0, 4.0), 1.6), ("/second_lamp", (-2.0, -3.0, 2.0), 0.7))


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
        self.low, self.size = extent(robot, shapes, self._start)
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


def extent(robot: RobotModel, shapes: Shapes, q: Array) -> tuple[float, float]:
    """Where the floor is and how large the arm is stretched out [m]."""
    poses = LinkPoses(robot)(q)
    parts = [
        piece.mesh.bounds @ poses[piece.link][:3, :3].T + poses[piece.link][:3, 3]
        for piece in shapes.pieces
    ]
    points = np.concatenate([*parts, [T[:3, 3] for T in poses.values()]])
    size = float(np.ptp(points, axis=0).max()) or 1.0
    return float(min(points[:, 2].min(), 0.0)), size
