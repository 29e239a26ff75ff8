"""Solving for joint values: methods by name, options, results."""

from dls_ik.solver.compilation import announce_compilation_to
from dls_ik.solver.method import method_names
from dls_ik.solver.result import IkBatchResult, IkResult, Status
from dls_ik.solver.solver import IkSolver

__all__ = [
    "IkBatchResult",
    "IkResult",
    "IkSolver",
    "Status",
    "announce_compilation_to",
    "method_names",
]
