"""A box in the way of the figure of eight: the stream with it, and how near the arm came to it.

Distances are found by alternating projections onto the box and onto each shape of the arm, which
share nothing with the node's trees of spheres.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from math import pi
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose
from moveit_msgs.msg import CollisionObject
from numpy.typing import NDArray
from rclpy.qos import QoSProfile
from shape_msgs.msg import SolidPrimitive

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse, transform
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, heading, new_figure, panel_title, plain
from dls_ik.ros.client import TargetPublisher
from dls_ik.ros.client.connection import wait_until
from dls_ik.ros.demo.measure import (
    HOME,
    LAP,
    LENGTH,
    RUN_IN,
    IndependentCheck,
    StreamRecording,
    TargetPath,
    distance_to_path,
    figure_of_eight,
)
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.scene.shapes import Cylinder, Shape, Sphere, link_bodies

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME, TOPIC = "box", "collision_object"
SIZE = (0.2, 0.12, 0.2)  # [m] along x, y, z of the base
FAR = 1.2 * pi  # [rad] phase of the figure, in its other lobe, where the box appears and goes
STAYS, AFTER = LAP, 4.5  # [s]
MIN_DISTANCE = 0.02  # [m] that the node keeps
ALLOWED = 1e-4  # [m] that the arm may be nearer than that: of the projections
AGAIN = 1.0  # [s] after the box is gone in which the arm catches up
PROJECTIONS = 200
PATIENCE = 10.0  # [s]


def box_pose(robot: RobotModel) -> Array:
    """Return (4, 4) ``T_base_box``: at the end of a lobe, about the height of the tip."""
    T = robot.fk(HOME)
    return transform(translation=T[:3, 3] + np.array([0.0, LENGTH, 0.0]))


class Plan(NamedTuple):
    """The targets, and when the box is there."""

    path: TargetPath
    appears: float  # [s] from where counting begins
    goes: float


def obstacle_plan(robot: RobotModel, phase: float, rate: float) -> Plan:
    """Return the eight from rest at a phase [rad] on, past the box and once more without it."""
    speed = 2.0 * pi / LAP  # [rad/s]
    appears = ((FAR - phase - 0.5 * speed * RUN_IN) % (2.0 * pi)) / speed
    goes = appears + STAYS
    times = np.arange(-RUN_IN, goes + AFTER, 1.0 / rate)
    poses = figure_of_eight(robot.fk(HOME), times, phase)
    return Plan(TargetPath(poses, round(RUN_IN * rate)), appears, goes)


class AppearingBox:
    """The box in the planning scene of the node.

    Args:
        publisher: whose node publishes it.
        T: (4, 4) ``T_base_box``.
    """

    def __init__(self, publisher: TargetPublisher, frame: str, T: Array) -> None:
        self._publisher = publisher.node.create_publisher(
            CollisionObject, TOPIC, QoSProfile(depth=10)
        )
        self._frame, self._T = frame, T

    def wait(self) -> None:
        """Wait until the node listens; DlsIkError if it does not."""
        count = self._publisher.get_subscription_count
        if not wait_until(count, time.monotonic() + PATIENCE):
            raise DlsIkError(f"nobody listens on {TOPIC}")

    def appear(self) -> None:
        """Add the box."""
        shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=list(SIZE))
        added = CollisionObject(id=NAME, pose=pose_from_matrix(self._T), primitives=[shape])
        added.primitive_poses = [Pose()]
        self._send(added)

    def go(self) -> None:
        """Remove it."""
        self._send(CollisionObject(id=NAME, operation=CollisionObject.REMOVE))

    def _send(self, message: CollisionObject) -> None:
        message.header.frame_id = self._frame
        self._publisher.publish(message)

    def events(self, plan: Plan, rate: float) -> dict[int, Callable[[], None]]:
        """Return what happens before which target of a plan is sent."""
        first = plan.path.counted
        return {
            first + round(plan.appears * rate): self.appear,
            first + round(plan.goes * rate): self.go,
        }


class Encounter(NamedTuple):
    """The motion past the box, at the m instants when joint states came."""

    times: Array  # (m,) [s]
    tip: Array  # (m, 3) [m] by the independent kinematics
    targets: Array  # (k, 3) [m] all that were sent
    distance: Array  # (m,) [m] from the nearest link to the box
    link: str  # that came nearest while the box was there
    present: tuple[float, float]  # [s] when it appeared and went
    inside: float  # [s] for which the target was in the box
    error: Array  # (m,) [m] from the tip to the figure

    @property
    def least(self) -> float:
        """Return the least distance while the box was there [m]."""
        return float(self.distance[self._is_there].min())

    @property
    def error_meanwhile(self) -> float:
        """Return how far the tip was from the figure at most while the box was there [m]."""
        return float(self.error[self._is_there].max())

    @property
    def error_again(self) -> float:
        """Return the same once the box is gone, and the arm has caught up; NaN: not known."""
        return float(max(self.error[self.times > self.present[1] + AGAIN], default=np.nan))

    @property
    def _is_there(self) -> NDArray[np.bool_]:
        return (self.times >= self.present[0]) & (self.times <= self.present[1])


def evaluate_encounter(
    recording: StreamRecording, plan: Plan, robot: RobotModel, check: IndependentCheck
) -> Encounter:
    """Compute the distances of a motion past the box."""
    T_box = box_pose(robot)
    present = plan.appears, plan.goes
    targets = recording.targets[:, :3, 3]
    shapes = arm_shapes(robot)
    times, q = recording.stamps, recording.q
    found = np.array([box_distances(part, q, robot, T_box) for part in shapes])
    there = (times >= present[0]) & (times <= present[1])
    link = shapes[int(np.argmin(found[:, there].min(axis=1)))][0]
    tip = np.array([check.pose(each)[:3, 3] for each in q])
    local = (targets - T_box[:3, 3]) @ T_box[:3, :3]
    is_inside: NDArray[np.bool_] = np.all(np.abs(local) < 0.5 * np.array(SIZE), axis=1)
    is_there = (recording.sent >= present[0]) & (recording.sent <= present[1])
    figure = targets[recording.sent >= 0.0][: round(len(targets) * LAP / recording.sent[-1])]
    return Encounter(
        times,
        tip,
        targets,
        found.min(axis=0),
        link,
        present,
        STAYS * float(is_inside[is_there].mean()),
        np.array([distance_to_path(point, figure) for point in tip]),
    )


# Distances

Part = tuple[str, Shape, Array]  # link, shape, T_link_shape


def arm_shapes(robot: RobotModel) -> list[Part]:
    """Return the shapes of all links that move."""
    description = robot.tree.description
    bodies = {} if description is None else link_bodies(description)
    moving = [link for link in bodies if robot.tree.fixed_offset(robot.tree.root, link) is None]
    return [(link, shape, T) for link in moving for shape, T in bodies[link].parts]


def box_distances(part: Part, q: Array, robot: RobotModel, T_box: Array) -> Array:
    """Return distances (m,) [m] of a sphere or cylinder to the box at configurations (m, n)."""
    link, shape, T_link_shape = part
    T_links = np.array([robot.link_pose(link, each) for each in q])
    T = inverse(T_box) @ T_links @ T_link_shape  # (m, 4, 4) T_box_shape
    half = 0.5 * np.array(SIZE)
    on_shape = T[:, :3, 3]
    if isinstance(shape, Sphere):
        way = np.linalg.norm(on_shape - np.clip(on_shape, -half, half), axis=1)
        return np.maximum(way - shape.radius, 0.0)
    if not isinstance(shape, Cylinder):
        raise DlsIkError(f"{link} has a {type(shape).__name__}, which is not measured")
    for _ in range(PROJECTIONS):
        on_box = np.clip(on_shape, -half, half)
        local = np.einsum("mji,mj->mi", T[:, :3, :3], on_box - T[:, :3, 3])
        radius = np.maximum(np.hypot(local[:, 0], local[:, 1]), 1e-12)
        local[:, :2] *= np.minimum(1.0, shape.radius / radius)[:, None]
        local[:, 2] = np.clip(local[:, 2], -0.5 * shape.length, 0.5 * shape.length)
        on_shape = np.einsum("mij,mj->mi", T[:, :3, :3], local) + T[:, :3, 3]
    return np.linalg.norm(on_shape - np.clip(on_shape, -half, half), axis=1)


# The picture


def draw_encounter(encounter: Encounter) -> Figure:
    """Draw the way of the tip past the box, and the distances over time."""
    figure = new_figure(11.0, 5.0)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.3), wspace=0.1, hspace=0.06)
    _draw_plan(figure.add_subplot(grid[:, 0]), encounter)
    times, (begin, end) = encounter.times, encounter.present
    above = figure.add_subplot(grid[0, 1])
    above.axvspan(begin, end, color=GREY, alpha=0.15, linewidth=0)
    above.plot(times, 1e3 * encounter.distance, color=PALE, linewidth=1.4)
    there = (times >= begin) & (times <= end)
    above.plot(times[there], 1e3 * encounter.distance[there], color=BLUE, linewidth=1.6)
    above.axhline(1e3 * MIN_DISTANCE, color=ORANGE, linewidth=1.2, linestyle="--")
    above.set_ylim(0.0, None)
    note = f"{1e3 * encounter.least:.1f} mm at least, {1e3 * MIN_DISTANCE:g} asked for"
    panel_title(above, "from the arm to the box (grey: it is there)", note)
    plain(above, "", "distance [mm]")
    below = figure.add_subplot(grid[1, 1], sharex=above)
    below.axvspan(begin, end, color=GREY, alpha=0.15, linewidth=0)
    below.plot(times, 1e3 * encounter.error, color=BLUE, linewidth=1.4)
    below.set_ylim(0.0, None)
    panel_title(below, "from the tip to the figure")
    plain(below, "time [s]", "distance [mm]")
    heading(figure, "A box appears in the way: the arm keeps its distance, and goes on")
    return figure


def _draw_plan(axes: Axes, encounter: Encounter) -> None:
    """Draw the plane of the figure from above."""
    from matplotlib.patches import Rectangle

    targets, tip = 1e2 * encounter.targets, 1e2 * encounter.tip
    centre, size = 1e2 * box_pose(RobotModel.wam())[:3, 3], 1e2 * np.array(SIZE)
    axes.plot(targets[:, 1], targets[:, 0], color=ORANGE, linewidth=4.0, label="target")
    axes.plot(tip[:, 1], tip[:, 0], color=BLUE, linewidth=1.4, label="tip")
    low = centre - 0.5 * size
    axes.add_patch(Rectangle((low[1], low[0]), size[1], size[0], color=GREY, alpha=0.4))
    axes.text(centre[1], centre[0], "box", ha="center", va="center")
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9, ncol=2)
    panel_title(axes, "from above")
    plain(axes, "y [cm]", "x [cm]")
