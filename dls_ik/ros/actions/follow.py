# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Action ``~/follow_joint_trajectory``, as joint_trajectory_controller serves it."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from control_msgs.action import FollowJointTrajectory
from trajectory_msgs.msg import JointTrajectoryPoint

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.actions.goals import ABORTED, CANCELED, SUCCEEDED, Goal, Outcome
from dls_ik.ros.actions.motion import (
    DEFAULT_GOAL_TIME,
    DEFAULT_GOAL_TOLERANCE,
    MotionContext,
    MotionResult,
    start_delay,
)
from dls_ik.ros.actions.trajectory_message import (
    INVALID_GOAL,
    INVALID_JOINTS,
    TrajectoryError,
    read_spline,
)
from dls_ik.ros.frames import nanoseconds
from dls_ik.servo.controller import MAX_START_DELAY
from dls_ik.servo.joint_spline import JointSpline
from dls_ik.servo.joint_target import MotionEnd, MotionState, Tolerances
from dls_ik.solver.trajectory import NANOSECONDS_PER_SECOND
from dls_ik.text import listing, quoted

FOLLOW_ACTION = "~/follow_joint_trajectory"
NO_RESTRICTION = -1.0  # tolerance that permits any distance
ERROR_CODES = {
    MotionEnd.DONE: 0,
    MotionEnd.PATH_TOLERANCE: -4,
    MotionEnd.BLOCKED: -4,
    MotionEnd.GOAL_TOLERANCE: -5,
}  # other ends: INVALID_GOAL


class FollowJointTrajectoryAction:
    """Runs goals of ``~/follow_joint_trajectory``; the result has the reason of a rejection.

    Args:
        context: Arm, servo loop and scene.
    """

    def __init__(self, context: MotionContext) -> None:
        self._context = context

    def run(self, goal: Goal) -> Outcome:
        """Check the trajectory of a goal, move the arm along it, and return the result."""
        context, request = self._context, goal.request
        try:
            arm = context.ready_arm(goal)
            options = arm.controller.options
            if request.multi_dof_trajectory.points or request.multi_dof_trajectory.joint_names:
                raise TrajectoryError(
                    INVALID_GOAL,
                    "multi_dof_trajectory is not supported; leave it empty, and use trajectory",
                )
            spline = read_spline(request.trajectory, arm.robot, context.current_q(arm))
            tolerances = read_tolerances(request, arm.robot)
            stamp = nanoseconds(request.trajectory.header.stamp)
            now = nanoseconds(context.now())
            delay = start_delay(stamp, now, MAX_START_DELAY, options.target_timeout)
            context.check(spline, arm)
        except DlsIkError as error:
            return _rejected(error)
        names = arm.robot.joint_names

        def feedback(state: MotionState) -> None:
            message = _feedback(spline, names, state)
            message.header.stamp = context.now()
            goal.publish_feedback(message)

        motion = context.execute(goal, spline, arm, tolerances, feedback, delay)
        return _outcome(motion)


def _rejected(error: DlsIkError) -> Outcome:
    code = error.code if isinstance(error, TrajectoryError) else INVALID_GOAL
    words = f"a goal of {FOLLOW_ACTION} is rejected: {error}"
    result = FollowJointTrajectory.Result(error_code=code, error_string=str(error))
    return Outcome(ABORTED, result, words)


def _outcome(motion: MotionResult) -> Outcome:
    code = ERROR_CODES.get(motion.end, INVALID_GOAL)
    result = FollowJointTrajectory.Result(error_code=code, error_string=motion.message)
    if motion.end is MotionEnd.DONE:
        return Outcome(SUCCEEDED, result)
    if motion.is_cancelled:
        result.error_code = 0
        return Outcome(CANCELED, result)
    return Outcome(ABORTED, result, f"a goal of {FOLLOW_ACTION} is aborted: {motion.message}")


def read_tolerances(request: Any, robot: RobotModel) -> Tolerances:
    """Return the tolerances of a goal of FollowJointTrajectory; tolerances of 0 are the defaults.

    Args:
        request: Goal message.
        robot: Robot that follows the trajectory.

    Raises:
        TrajectoryError: If a tolerance is not valid, or is given for a component or for a joint
            that does not move.
    """
    if request.component_path_tolerance or request.component_goal_tolerance:
        raise TrajectoryError(
            INVALID_GOAL,
            "component tolerances are not supported; give path_tolerance and goal_tolerance",
        )
    path = _joint_tolerances(request.path_tolerance, "path_tolerance", robot, np.inf)
    goal = _joint_tolerances(
        request.goal_tolerance, "goal_tolerance", robot, DEFAULT_GOAL_TOLERANCE
    )
    duration = request.goal_time_tolerance
    seconds = duration.sec + duration.nanosec / NANOSECONDS_PER_SECOND
    if seconds < 0.0:
        raise TrajectoryError(
            INVALID_GOAL, f"goal_time_tolerance must be at least 0 s; got {seconds:g}"
        )
    return Tolerances(path, goal, seconds or DEFAULT_GOAL_TIME)


def _joint_tolerances(given: Sequence[Any], field: str, robot: RobotModel, default: float) -> Array:
    """Return the position tolerances (n,) of all joints [rad or m]."""
    values = np.full(robot.n, default)
    unknown = [each.name for each in given if each.name not in robot.joint_names]
    if unknown:
        raise TrajectoryError(
            INVALID_JOINTS,
            f"{field} names unknown joints {listing(map(quoted, unknown))}; joints that can move: "
            f"{listing(robot.joint_names)}",
        )
    for each in given:
        value = each.position
        if value != NO_RESTRICTION and not value >= 0.0:
            raise TrajectoryError(
                INVALID_GOAL,
                f"{field} of joint {each.name!r} must be at least 0, or -1 for no restriction; got "
                f"{value}",
            )
        j = robot.joint_names.index(each.name)
        if value:
            values[j] = np.inf if value == NO_RESTRICTION else value
    return values


def _feedback(spline: JointSpline, names: tuple[str, ...], state: MotionState) -> Any:
    """Return a feedback message of FollowJointTrajectory, without a stamp."""
    message = FollowJointTrajectory.Feedback(joint_names=list(names))
    message.desired = JointTrajectoryPoint(
        positions=state.q.tolist(), velocities=state.v.tolist(), accelerations=state.a.tolist()
    )
    message.actual = JointTrajectoryPoint(positions=state.actual.tolist())
    message.error = JointTrajectoryPoint(positions=(state.q - state.actual).tolist())
    for point in (message.desired, message.actual, message.error):
        _set_duration(point.time_from_start, state.time)
    if hasattr(message, "index"):  # missing before control_msgs 6.3
        message.index = spline.index(state.time)
    return message


def _set_duration(duration: Any, seconds: float) -> None:
    duration.sec, duration.nanosec = divmod(
        round(seconds * NANOSECONDS_PER_SECOND), NANOSECONDS_PER_SECOND
    )
