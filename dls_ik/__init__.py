# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Jacobian-based inverse kinematics: damped least squares, SVF, selective damping, CTP.

The modules with the public names are imported when a name is first used, so that
``import dls_ik`` is fast.
"""

from typing import TYPE_CHECKING

from dls_ik.lazy import on_first_use

if TYPE_CHECKING:
    from dls_ik.errors import BatchInterrupted, DlsIkError
    from dls_ik.model.pose import Pose
    from dls_ik.model.robot import RobotModel
    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.servo.path_timing import PathTrajectory, time_path
    from dls_ik.solver.method import method_names, method_table
    from dls_ik.solver.result import IkBatchResult, IkPathResult, IkResult, Status
    from dls_ik.solver.robot_kinematics import RobotKinematics
    from dls_ik.solver.solutions import IkSolutions
    from dls_ik.solver.solver import IkSolver
    from dls_ik.solver.stack_file import load_stack
    from dls_ik.solver.stepper import Stepper
    from dls_ik.solver.task import Task
    from dls_ik.solver.task_stack import (
        CenterOfMassTask,
        CouplingTask,
        FrameTask,
        ObjectiveTask,
        PostureTask,
        SwivelTask,
        TaskStack,
    )
    from dls_ik.viewer.window import play, show

__version__ = "0.1.0"
__all__ = [
    "BatchInterrupted",
    "CenterOfMassTask",
    "CouplingTask",
    "DlsIkError",
    "FrameTask",
    "IkBatchResult",
    "IkPathResult",
    "IkResult",
    "IkSolutions",
    "IkSolver",
    "ObjectiveTask",
    "PathTrajectory",
    "PlanningScene",
    "Pose",
    "PostureTask",
    "RobotKinematics",
    "RobotModel",
    "Status",
    "Stepper",
    "SwivelTask",
    "Task",
    "TaskStack",
    "load_stack",
    "method_names",
    "method_table",
    "play",
    "show",
    "time_path",
]


__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "BatchInterrupted": "errors",
        "DlsIkError": "errors",
        "IkBatchResult": "solver.result",
        "IkPathResult": "solver.result",
        "IkResult": "solver.result",
        "IkSolutions": "solver.solutions",
        "IkSolver": "solver.solver",
        "Pose": "model.pose",
        "PlanningScene": "scene.planning_scene",
        "RobotKinematics": "solver.robot_kinematics",
        "RobotModel": "model.robot",
        "Status": "solver.result",
        "Stepper": "solver.stepper",
        "Task": "solver.task",
        "TaskStack": "solver.task_stack",
        "PathTrajectory": "servo.path_timing",
        "SwivelTask": "solver.task_stack",
        "PostureTask": "solver.task_stack",
        "ObjectiveTask": "solver.task_stack",
        "FrameTask": "solver.task_stack",
        "CouplingTask": "solver.task_stack",
        "CenterOfMassTask": "solver.task_stack",
        "load_stack": "solver.stack_file",
        "method_names": "solver.method",
        "method_table": "solver.method",
        "play": "viewer.window",
        "show": "viewer.window",
        "time_path": "servo.path_timing",
    },
)
