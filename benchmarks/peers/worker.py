# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Process of one peer: the parent runs ``python -m benchmarks.peers.worker NAME DESCRIPTOR``.

The process receives an arm and answers with the settings and versions of its solvers, or with the
reason why it has none; then it receives blocks of poses until the connection is closed.
"""

import os
import platform
import sys
from importlib.metadata import distributions
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.peers.adapters import PEERS
from benchmarks.peers.solver import Solver, UnfitError

PACKAGES = ("numba", "numpy", "pytracik", "roboticstoolbox-python", "pin", "placo", "ssik")


def held(cores: set[int], solver: Solver) -> set[int]:
    """Return the cores that a solver may use: the last cores, or all."""
    return cores if solver.cores is None else set(sorted(cores)[-solver.cores :])


def versions() -> dict[str, str]:
    """Return the versions of Python and of the installed packages."""
    installed = {package.name: package.version for package in distributions()}
    found = {"python": platform.python_version()}
    found |= {name: installed[name] for name in PACKAGES if name in installed}
    if "PyKDL" in sys.modules:
        found["PyKDL"] = sys.modules["PyKDL"].__version__
    return found


def made(name: str, arm: Any) -> dict[str, Solver] | str:
    """Return the solvers of a peer, or the reason why it has none."""
    try:
        return PEERS[name](arm)
    except (ImportError, UnfitError) as error:
        return str(error)
    except Exception as error:  # noqa: BLE001 - a peer may raise anything
        return f"{type(error).__name__}: {error}"


def main() -> None:
    """Serve until the parent exits."""
    peer, connection = sys.argv[1], Connection(int(sys.argv[2]))
    solvers = made(peer, connection.recv())
    if isinstance(solvers, str):
        connection.send(solvers)
        return
    rows = {name: (s.setting, s.is_batch) for name, s in solvers.items()}
    connection.send((rows, versions()))
    cores = os.sched_getaffinity(0)
    while True:
        try:
            name, *block = connection.recv()
        except EOFError:
            return
        os.sched_setaffinity(0, held(cores, solvers[name]))
        connection.send(tuple(solvers[name].run(*block)))


if __name__ == "__main__":
    main()
