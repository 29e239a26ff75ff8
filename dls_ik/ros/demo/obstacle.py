# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Part of the demonstration with a box on the figure of eight: targets, evaluation and picture."""

from __future__ import annotations

import time
from collections.abc import Callable
from math import pi
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from geometry_msgs.msg import Pose
from moveit_msgs.msg import CollisionObject
from rclpy.qos import QoSProfile
from shape_msgs.msg import SolidPrimitive

from dls_ik.core.types import Array, Flags
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import transform
from dls_ik.plot.arm import arm_points, draw_arms
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, RED, heading, new_figure, panel_title, plain
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

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOX_NAME, OBJECT_TOPIC = "box", "collision_object"
SIZE = (0.2, 0.12, 0.2)  # [m] size of the box along x, y, z of the base
FAR_PHASE = 1.2 * pi  # [rad] phase of the target at which the box appears and disappears
STAYS, AFTER = LAP, 4.5  # [s] time with the box, and time of targets after the box disappears
MIN_DISTANCE = 0.02  # [m] parameter min_distance of the node
ROUNDING = 1e-6  # [m] error of a computed distance
CATCH_UP_TIME = 1.0  # [s] maximum time of the return to the figure after the box has disappeared
SUBSCRIBER_TIMEOUT = 60.0  # [s] maximum time until the node subscribes to the topic of the box


def box_centre(robot: RobotModel) -> Array:
    """Return the centre (3,) of the box in the base frame [m], at the end of a lobe of the eight.

    The edges of the box are parallel to the axes of the base frame.
    """
    return np.asarray(robot.fk(HOME_POSITIONS)[:3, 3] + np.array([0.0, EIGHT_LENGTH, 0.0]))


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
        robot: Robot.
    """

    def __init__(self, publisher: TargetPublisher, robot: RobotModel) -> None:
        self._publisher = publisher.node.create_publisher(
            CollisionObject, OBJECT_TOPIC, QoSProfile(depth=10)
        )
        self._frame, self._centre = robot.base, box_centre(robot)

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
        pose = pose_from_matrix(transform(translation=self._centre))
        self._send(CollisionObject(pose=pose, primitives=[shape], primitive_poses=[Pose()]))

    def disappear(self) -> None:
        """Publish a message that removes the box from the planning scene."""
        self._send(CollisionObject(operation=CollisionObject.REMOVE))

    def _send(self, message: CollisionObject) -> None:
        message.id, message.header.frame_id = BOX_NAME, self._frame
        self._publisher.publish(message)

    def events(self, plan: Plan) -> dict[int, Callable[[], None]]:
        """Return the methods that add and remove the box; a key is the index of the next target.

        Each method must be called immediately before the target with this index is sent.
        """
        first = plan.path.first_evaluated
        return {
            first + round(plan.box_appears * plan.rate): self.appear,
            first + round(plan.box_disappears * plan.rate): self.disappear,
        }


class Encounter(NamedTuple):
    """Motion of the arm past the box, at the stamps of the m received joint states."""

    times: Array  # (m,) [s] stamps of the joint states
    q: Array  # (m, n) [rad] joint positions
    tip: Array  # (m, 3) [m] tip positions in the base frame, by the independent kinematics
    targets: Array  # (k, 3) [m] positions of all sent targets in the base frame
    distance: Array  # (m,) [m] distance of the tip to the box
    error: Array  # (m,) [m] distance of the tip to the figure of eight
    present: tuple[float, float]  # [s] times of appearance and disappearance of the box
    inside: float  # [s] total time during which the target was inside the box

    @property
    def is_there(self) -> Flags:
        """Array (m,) that is True at stamps at which the box was present."""
        return (self.times >= self.present[0]) & (self.times <= self.present[1])

    @property
    def closest(self) -> int:
        """Index (0 to m - 1) of the state closest to the box while the box was present."""
        there = np.flatnonzero(self.is_there)
        return int(there[np.argmin(self.distance[there])])

    @property
    def error_after_box(self) -> float:
        """Maximum distance of the tip to the figure after the box has disappeared [m].

        The first `CATCH_UP_TIME` seconds after the disappearance are ignored. The value is NaN if
        no joint states were received after that time.
        """
        return float(max(self.error[self.times > self.present[1] + CATCH_UP_TIME], default=np.nan))


def evaluate_encounter(
    recording: StreamRecording, plan: Plan, robot: RobotModel, check: IndependentCheck
) -> Encounter:
    """Return the motion past the box, with the distances of the tip to the box and the figure.

    Args:
        recording: Sent targets and received joint states.
        plan: Plan of the stream.
        robot: Robot.
        check: Kinematics for the tip positions.
    """
    # A busy machine sends targets, and with them the box, later than planned.
    first = int(np.argmax(recording.sent >= 0.0))
    times_of_box = plan.box_appears, plan.box_disappears
    appears, disappears = (first + round(time * plan.rate) for time in times_of_box)
    present = float(recording.sent[appears]), float(recording.sent[disappears])
    targets, centre = recording.targets[:, :3, 3], box_centre(robot)
    tip = np.array([check.pose(each)[:3, 3] for each in recording.q])
    is_there = (recording.sent >= present[0]) & (recording.sent <= present[1])
    is_inside = box_distances(targets[is_there], centre) == 0.0
    figure = targets[first : first + round(LAP * plan.rate)]
    return Encounter(
        recording.stamps,
        recording.q,
        tip,
        targets,
        box_distances(tip, centre),
        np.array([distance_to_path(point, figure) for point in tip]),
        present,
        STAYS * float(is_inside.mean()),
    )


def box_distances(points: Array, centre: Array) -> Array:
    """Return the distances (m,) of points (m, 3) to the box around a centre (3,) [m]; 0 inside."""
    beyond = np.maximum(np.abs(points - centre) - 0.5 * np.array(SIZE), 0.0)
    return np.asarray(np.linalg.norm(beyond, axis=1))


def draw_encounter(encounter: Encounter, robot: RobotModel) -> Figure:
    """Return a figure of the motion past the box from above, and of distances over time."""
    from matplotlib.patches import Rectangle

    figure = new_figure(11.0, 5.6)
    grid = figure.add_gridspec(2, 2, wspace=0.12, hspace=0.08)
    above: Any = figure.add_subplot(grid[:, 0])
    for points, colour, width, label in (
        (encounter.targets, ORANGE, 4.0, "target"), (encounter.tip, BLUE, 1.2, "tip")
    ):  # fmt: skip
        above.plot(*1e2 * points[:, [1, 0]].T, color=colour, linewidth=width, label=label)
    arm = arm_points(robot, encounter.q[[encounter.closest]])[0]
    draw_arms(above, 1e2 * arm[..., [1, 0]], [GREY], 3.0)
    low = 1e2 * (box_centre(robot) - 0.5 * np.array(SIZE))
    box = Rectangle((low[1], low[0]), 1e2 * SIZE[1], 1e2 * SIZE[0], color=GREY, alpha=0.5)
    above.add_patch(box)
    above.set_aspect("equal", adjustable="datalim")
    above.legend(loc="lower right", frameon=False, fontsize=9)
    panel_title(above, "the arm from above, when it was closest to the box")
    plain(above, "y [cm]", "x [cm]")
    for row, (values, title) in enumerate(
        ((encounter.distance, "distance of the tip to the box"),
         (encounter.error, "distance of the tip to its path"))
    ):  # fmt: skip
        axes = figure.add_subplot(grid[row, 1])
        axes.axvspan(*encounter.present, color=GREY, alpha=0.15, linewidth=0)
        axes.plot(encounter.times, 1e3 * values, color=BLUE, linewidth=1.4)
        axes.set_ylim(0.0, None)
        panel_title(axes, title, "grey: the box is present")
        plain(axes, "time [s]" if row else "", "distance [mm]")
    k, distance = encounter.closest, figure.axes[1]
    distance.axhline(1e3 * MIN_DISTANCE, color=ORANGE, linewidth=1.2, linestyle="--")
    distance.plot(encounter.times[k], 1e3 * encounter.distance[k], "o", color=RED, markersize=6)
    heading(figure, "A box appears on the path; the arm avoids the box, then follows the path")
    return figure
