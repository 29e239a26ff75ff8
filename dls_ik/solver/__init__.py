# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Inverse kinematics of a robot: the solver, methods by name, options and results.

On import, this package registers a message that tells the user when numba compiles kernels. Later
processes load the compiled kernels from disk.
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

# Kernels that take long to compile: those with the largest files in the cache
LONG_KERNELS = frozenset({
    "search_packed", "search_packed_free", "search_rows", "search_rows_free", "run_steps",
    "follow", "follow_apart", "run_cycle", "follow_levels", "search_levels",
})  # fmt: skip
COMPILING = (
    "compiling kernels for the first time, which takes up to a minute; later starts load them from "
    "disk ..."
)
COMPILING_UNKEPT = (
    "compiling kernels, which takes up to a minute at every start because no folder for compiled "
    "kernels is writable: set NUMBA_CACHE_DIR to a writable folder"
)
MIN_NUMBA = (0, 59)  # older versions compile far longer: they copy a kernel into each caller

_say: Callable[[str], None] = logging.getLogger("dls_ik").warning
_said = False


def _announce(kernel: Any) -> None:
    """Send the compilation message when numba first compiles one of the `LONG_KERNELS`.

    `kernel` is the numba function that is being compiled; for other functions nothing is sent.
    """
    global _said
    module = kernel.py_func.__module__ or ""  # the name is None for functions of numba itself
    ours = module.startswith("dls_ik.core") and kernel.py_func.__name__ in LONG_KERNELS
    if ours and not _said:
        _said = True
        _say(compilation_message(numba.__version__, cache_folder(kernel) is not None))


def compilation_message(version: str, is_kept: bool = True) -> str:
    """Return the message that kernels are being compiled, with the expected duration.

    If the numba version is older than `MIN_NUMBA`, the message recommends an upgrade.

    Args:
        version: Version of numba, such as "0.59.1".
        is_kept: Whether the compiled kernels can be stored on disk.
    """
    major, minor = version.split(".")[:2]
    if (int(major), int(minor)) >= MIN_NUMBA:
        return COMPILING if is_kept else COMPILING_UNKEPT
    need = ".".join(map(str, MIN_NUMBA))
    return (
        f"compiling kernels for the first time, which takes many minutes with numba {version} and "
        f"about one minute with numba {need}: pip install 'numba>={need}'"
    )


def _report(failure: str) -> None:
    """Send the message `failure` about the kernel cache; suppress later compilation messages."""
    global _said
    _said = True  # the failure message already says that kernels are compiled
    _say(failure)


def announce_compilation_to(say: Callable[[str], None]) -> None:
    """Send compilation messages to `say` instead of Python's log."""
    global _say
    _say = say


report_cache_failures_to(_report)
on_numba_compilation(_announce)
