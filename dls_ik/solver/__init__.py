"""Solving for joint values: methods by name, options, results.

The user is told while kernels are compiled; the next process finds them on disk.
"""

import logging
from collections.abc import Callable
from typing import Any

from dls_ik.compat import on_numba_compilation
from dls_ik.core.jit import cache_folder, numba, report_cache_failures_to
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

LONG_KERNELS = ("search_packed", "search_rows", "follow")  # called from Python, long to compile
COMPILING = (
    "compiling kernels for the first time, up to a minute by the machine and what else runs on it; "
    "later starts load them ..."
)
COMPILING_UNKEPT = (
    "compiling kernels, up to a minute at every start, as no folder can be written to keep them: "
    "set NUMBA_CACHE_DIR to one that can"
)
OLDEST_NUMBA = (0, 59)  # before, numba copied a kernel whole for each that became part of it

_say: Callable[[str], None] = logging.getLogger("dls_ik").warning
_said = False


def _announce(kernel: Any) -> None:
    """Report the first of our kernels that is compiled, not those that are loaded from disk."""
    global _said
    module = kernel.py_func.__module__ or ""  # None for functions of numba's own
    ours = module.startswith("dls_ik.core") and kernel.py_func.__name__ in LONG_KERNELS
    if ours and not _said:
        _said = True
        _say(compilation_message(numba.__version__, cache_folder(kernel) is not None))


def compilation_message(version: str, is_kept: bool = True) -> str:
    """Return the message; some distributions have a numba so old that compiling takes very long."""
    major, minor = version.split(".")[:2]
    if (int(major), int(minor)) >= OLDEST_NUMBA:
        return COMPILING if is_kept else COMPILING_UNKEPT
    need = ".".join(map(str, OLDEST_NUMBA))
    return (
        f"compiling kernels for the first time; numba {version} takes many minutes for it, "
        f"{need} about one: pip install 'numba>={need}'"
    )


def _report(failure: str) -> None:
    global _said
    _said = True  # the failure tells that kernels are compiled
    _say(failure)


def announce_compilation_to(say: Callable[[str], None]) -> None:
    """Send the message elsewhere than to Python's log, whose warnings reach the terminal."""
    global _say
    _say = say


report_cache_failures_to(_report)
on_numba_compilation(_announce)
