"""What is drawn beside the arms: the target to drag, the trail of a tip, its ellipsoid."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.colours import ARMS
from dls_ik.viewer.measures import ellipsoid
from dls_ik.viewer.poses import pose_of, wxyz_of
from dls_ik.viewer.shapes import Colour

TARGET: Colour = (217, 28, 92)
MOVED = 1e-6  # [m and 1] entries of a pose: less does not show
GIZMO = 0.22  # length of the target's arrows, of the robot's size
TRAIL = 300  # points
STEP = 2e-3  # of the robot's size: a tip that moved less leaves no point


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
