"""The process in which things are tried, since trying may end it: one line of JSON for each.

A name is an import, ``numpy`` or ``moveit_msgs.srv``, or one of the parts in :data:`PARTS`.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from importlib import import_module, metadata
from pathlib import Path
from typing import Any

from dls_ik.cli.doctor.cache_folder import others_can_write
from dls_ik.cli.doctor.finding import BROKEN, MISSING, OK, one_line


def main(names: Sequence[str]) -> None:
    """Try one after the other; what libraries print goes to stderr."""
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        for name in names:
            state, words = tried(name)
            out.write(json.dumps([name, state, words]) + "\n")
            out.flush()


def tried(name: str) -> tuple[str, str]:
    """The state of a thing, and words about it; nothing is raised."""
    try:
        part = PARTS.get(name)
        return OK, (version(name) if part is None else part())
    except ModuleNotFoundError as error:
        top = name.partition(".")[0]
        if name not in PARTS and error.name in (top, name):
            return MISSING, "not installed"
        return BROKEN, one_line(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001  whatever it is, it is the finding
        return BROKEN, one_line(f"{type(error).__name__}: {error}")


def version(name: str) -> str:
    """Import a module, and say its version as far as it is known."""
    module = import_module(name)
    top = name.partition(".")[0]
    named = metadata.packages_distributions().get(top, [top]) if _can_list() else [top]
    try:
        return metadata.version(named[0])
    except metadata.PackageNotFoundError:
        found = getattr(module, "__version__", None) or getattr(module, "VERSION", None)
        return str(found) if found else "installed"


def _can_list() -> bool:
    return hasattr(metadata, "packages_distributions")


def _kernels() -> str:
    from dls_ik.core.jit import cache_failures, cache_folder
    from dls_ik.core.search_rows import search_packed
    from dls_ik.servo.warm_up import use_kernels
    from dls_ik.solver import announce_compilation_to

    folder = cache_folder(search_packed)
    if folder is not None and (why := others_can_write(Path(folder).resolve())):
        raise CacheError(
            f"others could put code of theirs among the kernels, to be run here: {why}"
        )
    said: list[str] = []
    announce_compilation_to(said.append)
    begin = time.monotonic()
    use_kernels()
    seconds = time.monotonic() - begin
    if folder is None:
        raise CacheError("no folder can be written: they are compiled anew at every start")
    if "save" in cache_failures:
        raise CacheError(cache_failures["save"])
    access = "" if os.access(folder, os.W_OK) else ", which cannot be written"
    how = "compiled just now, and kept in" if said else "ready in"
    return f"{how} {folder}{access} ({seconds:.1f} s)"


class CacheError(Exception):
    """Machine code that is not kept."""


def _threading() -> str:
    from numba import config

    asked = str(config.THREADING_LAYER)
    return f"{asked}, {config.NUMBA_NUM_THREADS} threads; kernels use Python's threads instead"


def _solve() -> str:
    import numpy as np

    from dls_ik import IkSolver, RobotModel

    robot = RobotModel.wam()
    T = robot.fk(np.full(robot.n, 0.3))
    solver = IkSolver(robot)
    times = [solver.solve(T, timeout=5.0).duration for _ in range(9)]
    result = solver.solve(T, timeout=5.0)
    error = float(np.abs(robot.fk(result.q) - T).max())
    if not result.success or error > 1e-5 or not robot.within_limits(result.q, 1e-9):
        raise ValueError(f"the WAM is {error:.2g} off a pose within its reach: {result.status}")
    return f"the WAM in {1e6 * float(np.median(times)):.0f} us, {error:.0e} off"


def _batch() -> str:
    import numpy as np

    from dls_ik import IkSolver, RobotModel

    robot = RobotModel.wam()
    poses = robot.fk(robot.random(np.random.default_rng(0), 500))
    result = IkSolver(robot).solve_batch(poses)
    if not result.success.all():
        raise ValueError(f"{np.sum(~result.success)} of 500 poses within reach are not solved")
    return f"500 poses, {500 / result.duration:.0f}/s on {os.cpu_count()} cores"


def _stream() -> str:
    import numpy as np

    from dls_ik import RobotModel
    from dls_ik.servo import Controller, ServoState

    robot = RobotModel.wam()
    q = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
    controller = Controller(robot)
    controller.seed(q)
    controller.follow_pose(robot.fk(q + 0.05), 0.0)
    for k in range(1000):
        output = controller.cycle(0.01 * k, 0.01)
        if output.state is ServoState.REACHED:
            return f"a target reached after {k} cycles"
    raise ValueError(f"a near target is not reached: {output.words}")


def _pictures() -> str:
    import io

    import numpy as np

    from dls_ik import RobotModel
    from dls_ik.plot import joint_bands

    robot = RobotModel.wam()
    file = io.BytesIO()
    joint_bands(robot, [0.0, 1.0], np.zeros((2, robot.n))).savefig(file, format="png", dpi=40)
    return f"a PNG of {len(file.getvalue())} bytes"


def _pykdl() -> str:
    import numpy as np

    from dls_ik import IkSolver, RobotModel

    robot = RobotModel.wam()
    q = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
    result = IkSolver(robot, "kdl_lma").solve(robot.fk(q), q + 0.01)
    if not result.success:
        raise ValueError(f"kdl_lma does not come from a pose to the next: {result.status}")
    return "methods kdl_lma, kdl_nr, kdl_nr_jl"


def _middleware() -> str:
    rclpy: Any = import_module("rclpy")
    return str(rclpy.get_rmw_implementation_identifier())


def _loop() -> str:
    from dls_ik.ros.selftest import hear_another_process

    return hear_another_process()


def _node() -> str:
    from dls_ik.ros.selftest import start_and_ask

    return start_and_ask()


PARTS: dict[str, Callable[[], str]] = {
    "kernels": _kernels,
    "threading layer": _threading,
    "solve": _solve,
    "batch": _batch,
    "follow": _stream,
    "pictures": _pictures,
    "PyKDL's methods": _pykdl,
    "middleware": _middleware,
    "two processes": _loop,
    "ik_node": _node,
}
