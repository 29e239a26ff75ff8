# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Services and actions of move_group: planning, Cartesian paths, and execution of trajectories.

The action ``~/move_to_pose`` also has the type ``moveit_msgs/action/MoveGroup``, because its goals
can be poses; goals of the actions in control_msgs are joint positions.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from moveit_msgs.action import ExecuteTrajectory, MoveGroup
from moveit_msgs.srv import GetCartesianPath, GetMotionPlan

from dls_ik.core.jit import MissingKernelError
from dls_ik.errors import Code, DlsIkError, RequestError, code_of
from dls_ik.ros.actions.goals import (
    ABORTED,
    CANCELED,
    MAX_ACTIVE_GOALS,
    SUCCEEDED,
    Goal,
    GoalServer,
    Outcome,
)
from dls_ik.ros.actions.motion import (
    CANCELLED,
    DEFAULT_GOAL_TIME,
    DEFAULT_GOAL_TOLERANCE,
    MotionContext,
    MotionResult,
)
from dls_ik.ros.actions.trajectory_message import (
    INVALID_JOINTS,
    TrajectoryError,
    read_spline,
)
from dls_ik.ros.planning.cartesian_path import answer_cartesian_path, plan_line
from dls_ik.ros.planning.goals import checked_goals, goal_link, goal_pose
from dls_ik.ros.planning.joint_plan import PlannedTrajectory, answer_plan, plan_motion_request
from dls_ik.ros.planning.setting import Sources, read_scaling, read_setting
from dls_ik.ros.services.constraints import invalid
from dls_ik.ros.util import trace
from dls_ik.servo.joint_target import MotionEnd, MotionState, Tolerances
from dls_ik.servo.spline_timing import time_dense_path
from dls_ik.text import escape

PLAN_SERVICE, CARTESIAN_SERVICE = "plan_kinematic_path", "compute_cartesian_path"
EXECUTE_ACTION, MOVE_ACTION = "execute_trajectory", "move_action"
POSE_ACTION = "~/move_to_pose"
LINE_STEP = 0.005  # [m] largest distance between two poses of a line
END_CODES = {
    MotionEnd.DONE: Code.SUCCESS,
    MotionEnd.PREEMPTED: Code.PREEMPTED,
    MotionEnd.BLOCKED: Code.MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE,
}  # other ends: CONTROL_FAILED
# Function that plans a motion for a request, and returns it with a remark for the client. Its
# second argument is a function that returns whether the request was cancelled.
MakePlan = Callable[[Any, Callable[[], bool]], tuple[PlannedTrajectory, str]]
CANCEL_POLL_PERIOD = 0.5  # [s] maximum time between two checks whether a goal is cancelled
FULL = "too many planning requests are in progress; wait for an answer, and send this one again"
DIFF_UNSUPPORTED = (
    "planning_scene_diff is not supported; leave it empty, and call apply_planning_scene before"
)


class MoveGroupInterface:
    """Planning services, and actions that execute trajectories and plans.

    Args:
        context: Arm, servo loop and scene.
    """

    def __init__(self, context: MotionContext) -> None:
        self._context = context
        self.sources = Sources(context.arm, context.current, context.frames, context.scenes.scene)
        # Threads that plan motions for goals. A cancelled goal ends immediately; its thread runs on
        # until the current planning step is done.
        self._planner = ThreadPoolExecutor(MAX_ACTIVE_GOALS, "goal_plan")

    def close(self) -> None:
        """Drop plans that have not started yet."""
        self._planner.shutdown(wait=False, cancel_futures=True)

    def serve(self, server: GoalServer) -> None:
        """Create the services and actions."""
        server.serve_requests(
            GetMotionPlan, PLAN_SERVICE, self._plan, lambda: self._plan_error(Code.FAILURE, FULL)
        )
        server.serve_requests(
            GetCartesianPath,
            CARTESIAN_SERVICE,
            self._cartesian,
            lambda: self._with_code(GetCartesianPath.Response(), Code.FAILURE, FULL),
        )
        server.serve(ExecuteTrajectory, EXECUTE_ACTION, self._execute)
        server.serve(
            MoveGroup,
            MOVE_ACTION,
            lambda goal: self.move(
                MOVE_ACTION,
                goal,
                lambda request, is_cancelled: (self.plan(request, is_cancelled), ""),
            ),
        )

    # Services

    def _plan(self, request: Any) -> Any:
        wanted = request.motion_plan_request
        try:
            response = answer_plan(self.plan(wanted), wanted)
        except Exception as error:  # noqa: BLE001  the client needs an answer
            return self._plan_error(*self._failure(error))
        self._with_code(response, Code.SUCCESS, _plan_words(response))
        return GetMotionPlan.Response(motion_plan_response=response)

    def plan(
        self, request: Any, is_cancelled: Callable[[], bool] = lambda: False
    ) -> PlannedTrajectory:
        """Plan a motion to a goal of a ``moveit_msgs/MotionPlanRequest``.

        Args:
            request: The request.
            is_cancelled: Function that returns whether to end the search for a path.

        Raises:
            RequestError: If the request is not valid, or no motion is found.
            FrameError: If a frame is unknown.
        """
        max_timeout = self._context.arm().parameters.max_timeout
        return plan_motion_request(request, self.sources, max_timeout, is_cancelled)

    def _plan_error(self, code: Code, message: str) -> Any:
        response = GetMotionPlan.Response()
        self._with_code(response.motion_plan_response, code, message)
        return response

    def _cartesian(self, request: Any) -> Any:
        try:
            response, words = answer_cartesian_path(request, self.sources)
        except Exception as error:  # noqa: BLE001  the client needs an answer
            return self._with_code(GetCartesianPath.Response(), *self._failure(error))
        return self._with_code(response, Code.SUCCESS, words)

    def _failure(self, error: Exception) -> tuple[Code, str]:
        """Return the code and message of an error; log an internal error."""
        if isinstance(error, MissingKernelError):
            return Code.TIMED_OUT, f"{error}; send the request again"
        if not isinstance(error, DlsIkError):
            self._context.node.get_logger().error(trace(error))
            return Code.FAILURE, f"internal error: {error!r}"
        return code_of(error), str(error)

    def _with_code(self, response: Any, code: Code, message: str) -> Any:
        error_code = response.error_code
        error_code.val = int(code)
        if hasattr(error_code, "message"):  # missing on Humble
            error_code.message, error_code.source = escape(message), self._context.node.get_name()
        return response

    # Actions

    def _execute(self, goal: Goal) -> Outcome:
        """Run a goal of ExecuteTrajectory."""
        given = goal.request.trajectory
        result = ExecuteTrajectory.Result()
        feedback = ExecuteTrajectory.Feedback(state="MONITOR")
        try:
            if given.multi_dof_joint_trajectory.points:
                raise RequestError(
                    Code.INVALID_MOTION_PLAN,
                    "multi_dof_joint_trajectory is not supported; leave it empty",
                )
            motion = self._follow(goal, given.joint_trajectory, feedback, _no_feedback)
        except Exception as error:  # noqa: BLE001  the client needs an answer
            return self._refused(EXECUTE_ACTION, result, error)
        return self._ended(EXECUTE_ACTION, result, motion)

    def _follow(
        self,
        goal: Goal,
        trajectory: Any,
        feedback: Any,
        tell: Callable[[MotionState], None],
    ) -> MotionResult:
        """Check a trajectory, and move the arm along it.

        Args:
            goal: Goal of the client.
            trajectory: ``trajectory_msgs/JointTrajectory``.
            feedback: Feedback message to publish before the motion.
            tell: Function that is called with the state of the motion.

        Raises:
            TrajectoryError: If the trajectory is not valid.
        """
        context = self._context
        arm = context.ready_arm(goal)
        goal.publish_feedback(feedback)
        if not trajectory.points:  # move_group succeeds too
            return MotionResult(MotionEnd.DONE, "")
        spline = read_spline(trajectory, arm.robot, context.current_q(arm))
        context.check(spline, arm)
        n = arm.robot.n
        tolerances = Tolerances(
            np.full(n, np.inf), np.full(n, DEFAULT_GOAL_TOLERANCE), DEFAULT_GOAL_TIME
        )
        return context.execute(goal, spline, arm, tolerances, tell)

    def move(
        self, action: str, goal: Goal, make_plan: MakePlan, tells_time: bool = False
    ) -> Outcome:
        """Run a goal of MoveGroup: plan, and execute the plan unless `plan_only` is set.

        Args:
            action: Name of the action, for the log.
            goal: Goal of the client.
            make_plan: Function that plans a motion, and returns it with a remark for the client.
            tells_time: Whether the state in the feedback includes the time along the motion; must
                be false for clients of move_group, which do not expect the time.
        """
        request, options = goal.request.request, goal.request.planning_options
        result, feedback = MoveGroup.Result(), MoveGroup.Feedback(state="PLANNING")
        goal.publish_feedback(feedback)
        try:
            _check_options(options)
            planned = self._planned(goal, make_plan, request)
            if planned is None:
                cancelled = MotionResult(MotionEnd.STOPPED, CANCELLED, is_cancelled=True)
                return self._ended(action, result, cancelled)
            plan, remark = planned
            answer = answer_plan(plan, request)
            result.trajectory_start = answer.trajectory_start
            result.planned_trajectory = answer.trajectory
            result.planning_time = plan.duration
            if options.plan_only:
                return self._ended(action, result, MotionResult(MotionEnd.DONE, remark))
            feedback.state = "MONITOR"
            trajectory = answer.trajectory.joint_trajectory
            duration = plan.spline.duration

            def tell(state: MotionState) -> None:
                feedback.state = f"MONITOR: {min(state.time, duration):.2f} of {duration:.2f} s"
                goal.publish_feedback(feedback)

            tell_time = tell if tells_time else _no_feedback
            motion = self._follow(goal, trajectory, feedback, tell_time)
        except Exception as error:  # noqa: BLE001  the client needs an answer
            return self._refused(action, result, error)
        if motion.end is MotionEnd.DONE:
            motion = motion._replace(message=remark)
        return self._ended(action, result, motion)

    def _planned(
        self, goal: Goal, make_plan: MakePlan, request: Any
    ) -> tuple[PlannedTrajectory, str] | None:
        """Return the plan of a goal with a remark; None as soon as the goal is cancelled."""
        plan = self._planner.submit(make_plan, request, lambda: goal.is_cancelled)
        plan.add_done_callback(lambda _: goal.notify())
        while not plan.done() and not goal.is_cancelled:
            goal.wait(CANCEL_POLL_PERIOD)
        if goal.is_cancelled:
            plan.cancel()
            return None
        return plan.result()

    def _refused(self, action: str, result: Any, error: Exception) -> Outcome:
        code, message = self._failure(error)
        if isinstance(error, TrajectoryError):
            is_other = error.code == INVALID_JOINTS
            code = Code.CONTROL_FAILED if is_other else Code.INVALID_MOTION_PLAN
        self._with_code(result, code, message)
        return Outcome(ABORTED, result, f"a goal of {action} is rejected: {message}")

    def _ended(self, action: str, result: Any, motion: MotionResult) -> Outcome:
        if motion.is_cancelled:
            self._with_code(result, Code.PREEMPTED, motion.message)
            return Outcome(CANCELED, result)
        self._with_code(result, END_CODES.get(motion.end, Code.CONTROL_FAILED), motion.message)
        if motion.end is MotionEnd.DONE:
            return Outcome(SUCCEEDED, result)
        return Outcome(ABORTED, result, f"a goal of {action} is aborted: {motion.message}")


class MoveToPoseAction:
    """Runs goals of ``~/move_to_pose``.

    Args:
        interface: Planning and execution of motions.
    """

    def __init__(self, interface: MoveGroupInterface) -> None:
        self._interface = interface

    def run(self, goal: Goal) -> Outcome:
        """Move along a straight line, or around obstacles if no straight line is possible."""
        return self._interface.move(POSE_ACTION, goal, self._planned, tells_time=True)

    def _planned(
        self, request: Any, is_cancelled: Callable[[], bool]
    ) -> tuple[PlannedTrajectory, str]:
        """Return a plan for a request, and a remark for the client about the straight line.

        Args:
            request: ``moveit_msgs/MotionPlanRequest`` of the goal.
            is_cancelled: Function that returns whether to stop the search for a path.

        Raises:
            RequestError: If the goal is not one pose of a link, or no motion is found.
            FrameError: If a frame is unknown.
        """
        goals = checked_goals(request.goal_constraints)
        if len(goals) != 1 or not goal_link(goals[0]) or goals[0].joint_constraints:
            raise invalid(
                "the goal must be one position constraint and one orientation constraint of a "
                "link; joint goals and alternatives are for move_action"
            )
        interface, (goal,) = self._interface, goals
        setting = read_setting(
            interface.sources,
            request.group_name,
            goal_link(goal),
            request.start_state,
            read_scaling(request),
        )
        T_base_link, given = goal_pose(setting, goal)
        if given is not goal:
            raise invalid("the goal needs a position and an orientation constraint of one link")
        try:
            line = plan_line(setting, T_base_link, LINE_STEP)
        except MissingKernelError as error:
            raise RequestError(Code.TIMED_OUT, f"{error}; send the goal again") from error
        if not line.reason:
            spline = time_dense_path(line.path, setting.limits)
            return PlannedTrajectory(setting, spline, 0.0), "on a straight line"
        plan = interface.plan(request, is_cancelled)
        return plan, f"not on a straight line ({line.reason})"


def _check_options(options: Any) -> None:
    """Check the options of a goal of MoveGroup.

    Raises:
        RequestError: If the goal contains changes of the scene.
    """
    diff = options.planning_scene_diff
    state = diff.robot_state
    if (
        diff.world.collision_objects
        or state.attached_collision_objects
        or state.joint_state.name
        or diff.allowed_collision_matrix.entry_names
    ):
        raise RequestError(Code.FAILURE, DIFF_UNSUPPORTED)


def _plan_words(response: Any) -> str:
    trajectory = response.trajectory.joint_trajectory
    last = trajectory.points[-1].time_from_start
    return (
        f"planned in {response.planning_time:.3g} s: {len(trajectory.points)} points, "
        f"{last.sec + 1e-9 * last.nanosec:.3g} s"
    )


def _no_feedback(state: MotionState) -> None:
    """Do nothing: the feedback of these actions has no field for the motion."""
