"""Inverse kinematics by the Jacobian: damped least squares, SVF, selective damping, CTP.

Public names are imported when they are first used, so that ``import dls_ik`` stays quick.
"""

from typing import TYPE_CHECKING

from dls_ik.first_use import on_first_use

if TYPE_CHECKING:
    from dls_ik.errors import BatchInterrupted, DlsIkError
    from dls_ik.model.robot import RobotModel
    from dls_ik.solver.method import method_names
    from dls_ik.solver.result import IkBatchResult, IkPathResult, IkResult, Status
    from dls_ik.solver.solver import IkSolver
    from dls_ik.solver.stepper import Stepper
    from dls_ik.solver.task import Task

__version__ = "0.1.0"
__all__ = [
    "BatchInterrupted",
    "DlsIkError",
    "IkBatchResult",
    "IkPathResult",
    "IkResult",
    "IkSolver",
    "RobotModel",
    "Status",
    "Stepper",
    "Task",
    "method_names",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "BatchInterrupted": "errors",
        "DlsIkError": "errors",
        "IkBatchResult": "solver.result",
        "IkPathResult": "solver.result",
        "IkResult": "solver.result",
        "IkSolver": "solver.solver",
        "RobotModel": "model.robot",
        "Status": "solver.result",
        "Stepper": "solver.stepper",
        "Task": "solver.task",
        "method_names": "solver.method",
    },
)
