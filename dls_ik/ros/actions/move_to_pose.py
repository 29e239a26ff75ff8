# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Action ``~/move_to_pose``: a pose goal, reached on a straight line if one is possible.

Its type is ``moveit_msgs/action/MoveGroup``, the standard action whose goal can be a pose; goals of
the actions in control_msgs are joint positions.
"""

from collections.abc import Callable
from typing import Any

from dls_ik.core.jit import MissingKernelError
from dls_ik.errors import Code, RequestError
from dls_ik.ros.actions.goals import Goal, Outcome
from dls_ik.ros.actions.move_group import MoveGroupInterface
from dls_ik.ros.planning.cartesian_path import plan_line
from dls_ik.ros.planning.goals import checked_goals, goal_link, goal_pose
from dls_ik.ros.planning.joint_plan import PlannedTrajectory
from dls_ik.ros.planning.setting import read_scaling, read_setting
from dls_ik.ros.services.constraints import invalid
from dls_ik.servo.spline_timing import time_dense_path

POSE_ACTION = "~/move_to_pose"
LINE_STEP = 0.005  # [m] largest distance between two poses of a line


class MoveToPoseAction:
    """Runs goals of ``~/move_to_pose``.

    Args:
        interface: Planning and execution of motions.
    """

    def __init__(self, interface: MoveGroupInterface) -> None:
        self._interface = interface

    def run(self, goal: Goal) -> Outcome:
        """Move along a straight line, or around obstacles if there is no line to the goal."""
        return self._interface.move(POSE_ACTION, goal, self._planned, tells_time=True)

    def _planned(
        self, request: Any, is_cancelled: Callable[[], bool]
    ) -> tuple[PlannedTrajectory, str]:
        """Return a plan for a request, and a remark for the client.

        Args:
            request: The request.
            is_cancelled: Function that returns whether to end the search for a path.

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
