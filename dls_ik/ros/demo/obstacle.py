# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Part of the demonstration with a box on the figure of eight: targets, evaluation and picture.

The distances between arm and box are computed by alternating projections onto the box and onto
each shape of the arm. The node computes distances by another method, with sphere trees.
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
from dls_ik.plot.canvas import (
    BLUE,
    GREY,
    ORANGE,
    PALE,
    RED,
    SKY,
    heading,
    new_figure,
    panel_title,
    plain,
)
from dls_ik.plot.scene import faces
from dls_ik.ros.client import TargetPublisher
from dls_ik.ros.client.connection import wait_until
from dls_ik.ros.demo.measure import (
    EIGHT_LENGTH,
    HOME_POSITIONS,
    LAP,
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

BOX_NAME, OBJECT_TOPIC = "box", "collision_object"
SIZE = (0.2, 0.12, 0.2)  # [m] size of the box along x, y, z of the base
FAR_PHASE = (
    1.2 * pi
)  # [rad] phase of the target, far from the box, when the box appears and disappears
STAYS, AFTER = LAP, 4.5  # [s] time with the box, and time of targets after the box disappears
MIN_DISTANCE = 0.02  # [m] parameter min_distance of the node
ALLOWED = 1e-4  # [m] error of the projections, by which a computed distance may be too small
CATCH_UP_TIME = 1.0  # [s] maximum time of the return to the figure after the box has disappeared
NUM_PROJECTIONS = 200
SUBSCRIBER_TIMEOUT = 60.0  # [s] maximum time until the node subscribes to the topic of the box
NEARBY = 0.12  # [m] distance to the box below which the picture shows the arm
NUM_SWEEP_POSES = 24  # number of poses of a link in the picture of its motion
PICTURE_MARGIN = 4.0  # [cm] margin of the picture around the box and the sweep


def box_pose(robot: RobotModel) -> Array:
    """Return the pose ``T_base_box`` (4, 4) of the box, at the tip of a lobe of the eight."""
    T = robot.fk(HOME_POSITIONS)
    return transform(translation=T[:3, 3] + np.array([0.0, EIGHT_LENGTH, 0.0]))


class Plan(NamedTuple):
    """Target poses of the stream, and the times at which the box appears and disappears."""

    path: TargetPath
    box_appears: float  # [s] time of appearance, relative to the first evaluated target
    box_disappears: float  # [s] time of disappearance, relative to the first evaluated target

    @property
    def rate(self) -> float:
        """Rate of the targets [Hz]."""
        return self.path.first_evaluated / RUN_IN


def obstacle_plan(robot: RobotModel, phase: float, rate: float) -> Plan:
    """Return the plan for one lap of the eight with the box, and a time without the box afterwards.

    Args:
        robot: Robot.
        phase: Phase of the figure of eight at which the targets start from rest [rad].
        rate: Rate of the targets [Hz].
    """
    speed = 2.0 * pi / LAP  # [rad/s]
    appears = ((FAR_PHASE - phase - 0.5 * speed * RUN_IN) % (2.0 * pi)) / speed
    goes = appears + STAYS
    times = np.arange(-RUN_IN, goes + AFTER, 1.0 / rate)
    poses = figure_of_eight(robot.fk(HOME_POSITIONS), times, phase)
    return Plan(TargetPath(poses, round(RUN_IN * rate)), appears, goes)


class AppearingBox:
    """Box that this process adds to the planning scene of the node, and removes from the scene.

    Args:
        publisher: Target publisher whose ROS node is used to publish the box.
        frame: Base frame of the robot.
        T: (4, 4) ``T_base_box``.
    """

    def __init__(self, publisher: TargetPublisher, frame: str, T: Array) -> None:
        self._publisher = publisher.node.create_publisher(
            CollisionObject, OBJECT_TOPIC, QoSProfile(depth=10)
        )
        self._frame, self._T = frame, T

    def wait(self) -> None:
        """Wait until a node subscribes to the topic of the box.

        Raises:
            DlsIkError: If no node subscribes within `SUBSCRIBER_TIMEOUT`.
        """
        count = self._publisher.get_subscription_count
        if not wait_until(count, time.monotonic() + SUBSCRIBER_TIMEOUT):
            raise DlsIkError(
                f"no node subscribed to {OBJECT_TOPIC} within {SUBSCRIBER_TIMEOUT:g} s; the log of "
                "the node may contain the reason"
            )

    def appear(self) -> None:
        """Publish a message that adds the box to the planning scene."""
        shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=list(SIZE))
        added = CollisionObject(id=BOX_NAME, pose=pose_from_matrix(self._T), primitives=[shape])
        added.primitive_poses = [Pose()]
        self._send(added)

    def disappear(self) -> None:
        """Publish a message that removes the box from the planning scene."""
        self._send(CollisionObject(id=BOX_NAME, operation=CollisionObject.REMOVE))

    def _send(self, message: CollisionObject) -> None:
        message.header.frame_id = self._frame
        self._publisher.publish(message)

    def events(self, plan: Plan, rate: float) -> dict[int, Callable[[], None]]:
        """Return the methods that add and remove the box, by the index of a target.

        Each method must be called immediately before the target with this index is sent.

        Args:
            plan: Plan with the times at which the box appears and disappears.
            rate: Rate of the targets [Hz].
        """
        first = plan.path.first_evaluated
        return {
            first + round(plan.box_appears * rate): self.appear,
            first + round(plan.box_disappears * rate): self.disappear,
        }


class Encounter(NamedTuple):
    """Motion of the arm past the box, at the stamps of the m received joint states."""

    times: Array  # (m,) [s] stamps of the joint states
    tip: Array  # (m, 3) [m] tip positions in the base frame, by the independent kinematics
    targets: Array  # (k, 3) [m] positions of all sent targets in the base frame
    distance: Array  # (m,) [m] distance between the box and the closest link
    link: str  # name of the link that came closest to the box
    present: tuple[float, float]  # [s] times of appearance and disappearance of the box
    inside: float  # [s] total time during which the target was inside the box
    error: Array  # (m,) [m] distance of the tip to the figure of eight
    q: Array  # (m, n) [rad] joint positions

    @property
    def closest(self) -> int:
        """Index (0 to m - 1) of the state closest to the box while the box was present."""
        there = np.flatnonzero(self.is_there)
        return int(there[np.argmin(self.distance[there])])

    @property
    def min_box_distance(self) -> float:
        """Minimum distance between arm and box while the box was present [m]."""
        return float(self.distance[self.is_there].min())

    @property
    def error_with_box(self) -> float:
        """Maximum distance of the tip to the figure while the box was present [m]."""
        return float(self.error[self.is_there].max())

    @property
    def error_after_box(self) -> float:
        """Maximum distance of the tip to the figure after the box has disappeared [m].

        The first `CATCH_UP_TIME` seconds after the disappearance are left out. The value is NaN if
        no joint states were received after these.
        """
        return float(max(self.error[self.times > self.present[1] + CATCH_UP_TIME], default=np.nan))

    @property
    def is_there(self) -> NDArray[np.bool_]:
        """Array (m,) that is True at stamps at which the box was present."""
        return (self.times >= self.present[0]) & (self.times <= self.present[1])


def evaluate_encounter(
    recording: StreamRecording, plan: Plan, robot: RobotModel, check: IndependentCheck
) -> Encounter:
    """Return the motion past the box, with the distances of the arm to the box and the figure.

    Args:
        recording: Sent targets and received joint states.
        plan: Plan of the stream.
        robot: Robot.
        check: Kinematics for the tip positions.
    """
    T_box = box_pose(robot)
    # A busy machine sends targets, and with them the box, later than planned.
    first = int(np.argmax(recording.sent >= 0.0))
    times_of_box = plan.box_appears, plan.box_disappears
    appears, disappears = (first + round(time * plan.rate) for time in times_of_box)
    present = float(recording.sent[appears]), float(recording.sent[disappears])
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
    figure = targets[first : first + round(LAP * plan.rate)]
    return Encounter(
        times,
        tip,
        targets,
        found.min(axis=0),
        link,
        present,
        STAYS * float(is_inside[is_there].mean()),
        np.array([distance_to_path(point, figure) for point in tip]),
        q,
    )


# Distances

Part = tuple[str, Shape, Array]  # name of a link, a shape of this link, and T_link_shape (4, 4)


def arm_shapes(robot: RobotModel) -> list[Part]:
    """Return the collision shapes of all moving links."""
    description = robot.tree.description
    bodies = {} if description is None else link_bodies(description)
    moving = [link for link in bodies if robot.tree.fixed_offset(robot.tree.root, link) is None]
    return [(link, shape, T) for link in moving for shape, T in bodies[link].parts]


def box_distances(part: Part, q: Array, robot: RobotModel, T_box: Array) -> Array:
    """Return the distances of a shape of a link to the box, shape (m,) [m].

    The arguments are those of :func:`closest_points`.
    """
    on_shape, on_box = closest_points(part, q, robot, T_box)
    distances: Array = np.linalg.norm(on_shape - on_box, axis=1)
    return distances


def closest_points(part: Part, q: Array, robot: RobotModel, T_box: Array) -> tuple[Array, Array]:
    """Return the closest points between a shape of a link and the box, at m configurations.

    Args:
        part: Link and shape, a sphere or a cylinder.
        q: (m, n) configurations [rad or m].
        robot: Robot.
        T_box: (4, 4) ``T_base_box``.

    Returns:
        Points (m, 3) on the shape, and points (m, 3) on the box, in the frame of the box [m].

    Raises:
        DlsIkError: If the shape is neither a sphere nor a cylinder.
    """
    link, shape, T_link_shape = part
    T_links = np.array([robot.link_pose(link, each) for each in q])
    T = inverse(T_box) @ T_links @ T_link_shape  # (m, 4, 4) T_box_shape
    half = 0.5 * np.array(SIZE)
    on_shape = T[:, :3, 3]
    if isinstance(shape, Sphere):
        on_box = np.clip(on_shape, -half, half)
        to_box = on_box - on_shape
        length = np.maximum(np.linalg.norm(to_box, axis=1, keepdims=True), 1e-12)
        return on_shape + np.minimum(1.0, shape.radius / length) * to_box, on_box
    if not isinstance(shape, Cylinder):
        raise DlsIkError(
            f"shapes of links must be spheres or cylinders; {link} has a {type(shape).__name__}"
        )
    for _ in range(NUM_PROJECTIONS):
        on_box = np.clip(on_shape, -half, half)
        local = np.einsum("mji,mj->mi", T[:, :3, :3], on_box - T[:, :3, 3])
        radius = np.maximum(np.hypot(local[:, 0], local[:, 1]), 1e-12)
        local[:, :2] *= np.minimum(1.0, shape.radius / radius)[:, None]
        local[:, 2] = np.clip(local[:, 2], -0.5 * shape.length, 0.5 * shape.length)
        on_shape = np.einsum("mij,mj->mi", T[:, :3, :3], local) + T[:, :3, 3]
    return on_shape, np.clip(on_shape, -half, half)


# Picture


def draw_encounter(encounter: Encounter) -> Figure:
    """Return a figure of the arm and the closest link from above, and of distances over time."""
    figure = new_figure(13.0, 5.6)
    grid = figure.add_gridspec(2, 3, width_ratios=(1.0, 1.0, 1.25), wspace=0.12, hspace=0.08)
    _draw_arm(figure.add_subplot(grid[:, 0]), encounter)
    _draw_closest_link(figure.add_subplot(grid[:, 1]), encounter)
    above = figure.add_subplot(grid[0, 2])
    _draw_distance(above, encounter)
    below = figure.add_subplot(grid[1, 2], sharex=above)
    _shade_presence(below, encounter)
    below.plot(encounter.times, 1e3 * encounter.error, color=BLUE, linewidth=1.4)
    below.set_ylim(0.0, None)
    panel_title(below, "distance of the tip to its path", "grey: the box is present")
    plain(below, "time [s]", "distance [mm]")
    heading(figure, "A box appears on the path; the arm avoids the box, then follows the path")
    return figure


def _draw_distance(axes: Axes, encounter: Encounter) -> None:
    """Draw the distance of the arm to the box over time, and mark the minimum with the box."""
    times, distance = encounter.times, 1e3 * encounter.distance
    _shade_presence(axes, encounter)
    axes.plot(times, distance, color=PALE, linewidth=1.4)
    there = (times >= encounter.present[0]) & (times <= encounter.present[1])
    axes.plot(times[there], distance[there], color=BLUE, linewidth=1.6)
    axes.axhline(1e3 * MIN_DISTANCE, color=ORANGE, linewidth=1.2, linestyle="--")
    k = encounter.closest
    axes.plot(times[k], distance[k], "o", color=RED, markersize=6)
    axes.set_ylim(0.0, None)
    note = f"dashed: min_distance, {1e3 * MIN_DISTANCE:g} mm"
    panel_title(axes, "distance of the arm to the box", note)
    plain(axes, "", "distance [mm]")


def _shade_presence(axes: Axes, encounter: Encounter) -> None:
    axes.axvspan(*encounter.present, color=GREY, alpha=0.15, linewidth=0)


def passage(encounter: Encounter) -> NDArray[np.int64]:
    """Return the indices of states in which the arm was closer than NEARBY to the present box.

    If there is no such state, return only the index of the state closest to the box.
    """
    found = np.flatnonzero(encounter.is_there & (encounter.distance < NEARBY))
    return found if len(found) else np.array([encounter.closest])


def _draw_arm(axes: Axes, encounter: Encounter) -> None:
    """Draw the arm from above in three states: first and last near the box, and closest to it."""
    robot = RobotModel.wam()
    targets, tip = 1e2 * encounter.targets, 1e2 * encounter.tip
    axes.plot(targets[:, 1], targets[:, 0], color=ORANGE, linewidth=4.0, label="target", zorder=5)
    axes.plot(tip[:, 1], tip[:, 0], color=BLUE, linewidth=1.2, label="tip", zorder=6)
    parts = arm_shapes(robot)
    for k in passage(encounter)[[0, -1]]:
        _fill(axes, parts, encounter.q[k], robot, PALE)
    _fill(axes, parts, encounter.q[encounter.closest], robot, SKY)
    closest = [part for part in parts if part[0] == encounter.link]
    _fill(axes, closest, encounter.q[encounter.closest], robot, BLUE)
    _draw_box(axes, robot)
    axes.plot(0.0, 0.0, "s", color=GREY, markersize=8, zorder=7)
    axes.text(0.0, -4.0, "base", ha="center", va="top", zorder=8)
    axes.set_aspect("equal", adjustable="datalim")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 0.0), frameon=False, fontsize=9)
    panel_title(axes, "the arm from above", "pale: before and after")
    plain(axes, "y [cm]", "x [cm]")


def _draw_closest_link(axes: Axes, encounter: Encounter) -> None:
    """Draw the link that came closest to the box, from above, during the passage of the box.

    The pose with the minimum distance is emphasised, and the minimum distance is drawn as a line.
    """
    robot, k = RobotModel.wam(), encounter.closest
    parts = [part for part in arm_shapes(robot) if part[0] == encounter.link]
    T_box = box_pose(robot)
    sweep = passage(encounter)
    for i in sweep[:: max(1, len(sweep) // NUM_SWEEP_POSES)]:
        _fill(axes, parts, encounter.q[i], robot, PALE)
    _fill(axes, parts, encounter.q[k], robot, BLUE)
    _draw_box(axes, robot)
    found = [closest_points(part, encounter.q[k : k + 1], robot, T_box) for part in parts]
    pairs = [np.concatenate(pair) for pair in found]  # closest points (2, 3) in the box's frame
    nearest = min(pairs, key=lambda pair: float(np.linalg.norm(pair[1] - pair[0])))
    ends = 1e2 * (nearest @ T_box[:3, :3].T + T_box[:3, 3])
    axes.plot(ends[:, 1], ends[:, 0], color=RED, linewidth=2.5, marker=".", zorder=9)
    axes.annotate(
        f"{1e3 * encounter.min_box_distance:.1f} mm", ends.mean(axis=0)[[1, 0]], (12.0, 24.0),
        textcoords="offset points", color=RED, fontsize=11, fontweight="bold", zorder=9,
        arrowprops={"arrowstyle": "-", "color": RED},
    )  # fmt: skip
    axes.set_aspect("equal", adjustable="box", anchor="N")
    axes.margins(0.0)
    low, high = axes.dataLim.get_points()
    axes.set(
        xlim=(low[0] - PICTURE_MARGIN, high[0] + PICTURE_MARGIN),
        ylim=(low[1] - PICTURE_MARGIN, high[1] + PICTURE_MARGIN),
    )
    panel_title(
        axes,
        f"{encounter.link}, the closest link",
        f"blue: at {encounter.times[k]:.1f} s; pale: its motion",
    )
    plain(axes, "y [cm]", "")


def _draw_box(axes: Axes, robot: RobotModel) -> None:
    from matplotlib.patches import Rectangle

    centre, size = 1e2 * box_pose(robot)[:3, 3], 1e2 * np.array(SIZE)
    low = centre - 0.5 * size
    axes.add_patch(Rectangle((low[1], low[0]), size[1], size[0], color=GREY, alpha=0.5, zorder=4))
    axes.text(centre[1], centre[0], "box", ha="center", va="center", zorder=8)


def _fill(axes: Axes, parts: list[Part], q: Array, robot: RobotModel, colour: str) -> None:
    """Draw filled shapes of links from above, each with an outline, at joint positions q (n,)."""
    from matplotlib.collections import PolyCollection

    for link, shape, T_link_shape in parts:
        T = robot.link_pose(link, q) @ T_link_shape
        polygons = [1e2 * (face @ T[:3, :3].T + T[:3, 3])[:, [1, 0]] for face in faces(shape)]
        for edge, width in ((GREY, 1.2), (colour, 0.3)):
            axes.add_collection(
                PolyCollection(polygons, facecolors=colour, edgecolors=edge, linewidths=width)
            )
    axes.autoscale_view()
