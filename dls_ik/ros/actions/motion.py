# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Motions of the arm along joint trajectories: checks, execution by the servo loop, result."""

import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from rclpy.node import Node

from dls_ik.core.types import Array
from dls_ik.errors import SceneError, ScenePendingError
from dls_ik.ros.actions.goals import Goal
from dls_ik.ros.actions.trajectory_message import (
    INVALID_GOAL,
    MotionBounds,
    TrajectoryError,
    check_collisions,
    check_limits,
)
from dls_ik.ros.arm import PREPARING, Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import MODE_NONE
from dls_ik.ros.services.request import RobotContext
from dls_ik.ros.services.scene import scene_in_state
from dls_ik.ros.services.scene_monitor import PlanningSceneMonitor
from dls_ik.ros.servo.cycle import ServoCycle
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.servo import Controller
from dls_ik.servo.joint_spline import JointSpline
from dls_ik.servo.joint_target import JointTarget, MotionEnd, MotionState, Tolerances
from dls_ik.servo.options import motion_limits

FEEDBACK_PERIOD = 0.05  # [s] time between two feedback messages
STOP_TIMEOUT = 10.0  # [s] maximum time until a cancelled arm is at rest
SCENE_TIMEOUT = 30.0  # [s] maximum time that a goal waits for a scene that is being prepared
POLL_PERIOD = 0.01  # [s] period of the checks whether the arm has stopped or its scene is ready
DEFAULT_GOAL_TOLERANCE = 0.01  # [rad or m] goal tolerance if the goal has none
DEFAULT_GOAL_TIME = 2.0  # [s] goal time tolerance if the goal has none
CANCELLED = "cancelled by the client"


class MotionResult(NamedTuple):
    """How a motion ended, and why; the message is empty if the motion is complete."""

    end: MotionEnd
    message: str
    is_cancelled: bool = False


class MotionContext:
    """Arm, servo loop, scene and frames that motions use.

    Args:
        node: ROS node.
        arm: Function that returns the arm in use, or raises a RequestError without an arm.
        cycle: Cycle of the servo loop, which moves the arm.
        frames: Lookup of frames.
        scenes: Planning scene of the robot in use.
    """

    def __init__(
        self,
        node: Node,
        arm: Callable[[], Arm],
        cycle: ServoCycle,
        frames: Frames,
        scenes: PlanningSceneMonitor,
    ) -> None:
        self.node, self.arm, self.cycle = node, arm, cycle
        self.frames, self.scenes = frames, scenes

    def now(self) -> Any:
        """Return the current ROS time as a message."""
        return self.node.get_clock().now().to_msg()

    def current(self, arm: Arm) -> Mapping[str, float]:
        """Return the current joint positions of an arm by name [rad or m]."""
        return self.cycle.current(arm)

    def current_q(self, arm: Arm) -> Array:
        """Return the current positions (n,) of the joints that follow targets [rad or m]."""
        values = self.current(arm)
        return np.array([values[name] for name in arm.robot.joint_names])

    def ready_arm(self, goal: Goal) -> Arm:
        """Return the arm in use; wait while its scene is being prepared.

        Raises:
            RequestError: If there is no robot.
            TrajectoryError: If the arm may not move.
        """
        end = time.monotonic() + SCENE_TIMEOUT
        while (arm := self.arm()).surroundings.hold_reason == PREPARING:
            if goal.is_cancelled or time.monotonic() > end:
                break
            goal.wait(POLL_PERIOD)
        if reason := arm.surroundings.hold_reason or arm.controller.hold_reason:
            raise TrajectoryError(INVALID_GOAL, f"the arm may not move: {reason}")
        return arm

    def check(self, spline: JointSpline, arm: Arm) -> None:
        """Check a trajectory of the joints that follow targets, before the arm moves.

        Raises:
            TrajectoryError: If the trajectory exceeds limits, moves a frozen joint, or collides.
        """
        check_limits(spline, arm.robot, motion_bounds(arm))
        for name in arm.parameters.frozen_joints:
            j = arm.robot.joint_names.index(name) if name in arm.robot.joint_names else -1
            if j >= 0 and np.ptp(spline.q[:, j]) > 0.0:
                raise TrajectoryError(
                    INVALID_GOAL,
                    f"the trajectory moves joint {name!r}, which frozen_joints names; keep its "
                    "position constant, or remove it from this parameter",
                )
        scene = self._stream_scene(arm)
        if scene is None:
            return
        context = RobotContext(arm, self.frames, self.current(arm))
        now = scene_in_state(scene, arm.robot, context, ((), True)).snapshot
        check_collisions(spline, now, min_distance(arm))

    def _stream_scene(self, arm: Arm) -> PlanningScene | None:
        """Return the scene in which an arm moves; None if its collisions are not avoided."""
        if arm.parameters.stream_avoid_collisions == MODE_NONE:
            return None
        if arm.surroundings.scene is None:
            return None
        try:
            return self.scenes.scene(arm.tree)
        except ScenePendingError as error:
            raise TrajectoryError(INVALID_GOAL, f"{error}; send the goal again") from error
        except SceneError:
            return arm.surroundings.scene

    def execute(
        self,
        goal: Goal,
        spline: JointSpline,
        arm: Arm,
        tolerances: Tolerances,
        feedback: Callable[[MotionState], None],
        delay: float = 0.0,
    ) -> MotionResult:
        """Move the arm along a trajectory that was checked, and wait for the end of the motion.

        Args:
            goal: Goal of the client, which may be cancelled.
            spline: Trajectory of all joints that follow targets.
            arm: Arm for which the trajectory was checked.
            tolerances: Permitted distances from the trajectory and its goal.
            feedback: Function that is called with the state of the motion every FEEDBACK_PERIOD.
            delay: Time until the start of the trajectory [s].

        Returns:
            How the motion ended. If the goal is cancelled or the node exits, the arm is stopped
            first, and `is_cancelled` is true.
        """
        ended: list[MotionResult] = []

        def on_end(end: MotionEnd, message: str) -> None:
            ended.append(MotionResult(end, message))
            goal.notify()

        robot = arm.robot
        target = JointTarget(
            spline, robot.joint_names, robot.velocity, tolerances, on_end, delay=delay
        )
        self.cycle.submit_goal(target)
        while not ended and not goal.is_cancelled:
            goal.wait(FEEDBACK_PERIOD)
            if target.state is not None:
                feedback(target.state)
        if not ended:
            self.cycle.submit(lambda controller: _stop(controller, target))
            self._await_stop(ended)
            return MotionResult(MotionEnd.STOPPED, CANCELLED, is_cancelled=True)
        return ended[0]

    def _await_stop(self, ended: list[MotionResult]) -> None:
        """Wait until a cancelled motion has ended and the arm is at rest."""
        end = time.monotonic() + STOP_TIMEOUT
        while time.monotonic() < end and (not ended or self.cycle.moves):
            time.sleep(POLL_PERIOD)


def _stop(controller: Controller, target: JointTarget) -> None:
    """Stop the arm if it follows a target, and end the target; called by the servo loop."""
    if controller.is_following(target) and not target.has_ended:
        controller.stop(CANCELLED)
    target.end(MotionEnd.STOPPED, CANCELLED)


def motion_bounds(arm: Arm) -> MotionBounds:
    """Return the limits of the motions of an arm, as scaled by the parameter `scale`.

    Raises:
        TrajectoryError: If `scale` is 0, so that the arm may not move.
    """
    options = arm.controller.options
    if options.scale == 0.0:
        raise TrajectoryError(
            INVALID_GOAL, "the parameter scale is 0; set it above 0 to move the arm"
        )
    acceleration, _ = motion_limits(options, arm.robot)
    return MotionBounds(options.scale * arm.robot.velocity, options.scale * acceleration)


def min_distance(arm: Arm) -> float:
    """Return the minimum distance of pairs during motions [m]; 0 without collision avoidance."""
    avoids = arm.parameters.stream_avoid_collisions != MODE_NONE
    return arm.controller.options.min_distance if avoids else 0.0


def start_delay(stamp: int, now: int, tolerance: float, timeout: float) -> float:
    """Return the time until the start of a trajectory [s].

    Args:
        stamp: Stamp of the trajectory [ns]; 0: now.
        now: Current ROS time [ns].
        tolerance: Maximum time from now to a start in the future [s].
        timeout: Maximum time since a start in the past [s].

    Raises:
        TrajectoryError: If the start is too long ago, or too far in the future.
    """
    delay = 1e-9 * (stamp - now) if stamp else 0.0
    if delay < -timeout:
        raise TrajectoryError(
            -3,
            f"by its stamp, the trajectory started {-delay:.3g} s ago; the maximum is {timeout:g} "
            "s: send it earlier, or set its stamp to 0 to start immediately",
        )
    if delay > tolerance:
        raise TrajectoryError(
            INVALID_GOAL,
            f"the trajectory starts in {delay:.3g} s, more than {tolerance:g} s from now; send it "
            "closer to its start",
        )
    return max(delay, 0.0)
