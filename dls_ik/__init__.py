"""Inverse kinematics by the Jacobian: damped least squares, SVF, selective damping, CTP.

Public names are imported when they are first used, so that ``import dls_ik`` stays quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dls_ik.exceptions import BatchInterrupted, DlsIkError
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

_ROOMS = {
    "BatchInterrupted": "dls_ik.exceptions",
    "DlsIkError": "dls_ik.exceptions",
    "IkBatchResult": "dls_ik.solver.result",
    "IkPathResult": "dls_ik.solver.result",
    "IkResult": "dls_ik.solver.result",
    "IkSolver": "dls_ik.solver.solver",
    "RobotModel": "dls_ik.model.robot",
    "Status": "dls_ik.solver.result",
    "Stepper": "dls_ik.solver.stepper",
    "Task": "dls_ik.solver.task",
    "method_names": "dls_ik.solver.method",
}


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module 'dls_ik' has no attribute {name!r}")
    return getattr(import_module(_ROOMS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
