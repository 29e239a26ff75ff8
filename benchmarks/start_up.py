"""Start-up: imports, the first solve, and the node until it is ready, with cold and warm cache.

Everything runs in new processes. Cold is with an empty folder for the kernels' machine code
(NUMBA_CACHE_DIR), so that all of it is compiled; warm is the next process with the same folder. The
node is ready when it says so, with services up and kernels loaded. The times inside a process leave
out the interpreter's own start, which has a row; those of nodes hold it. Ratios are to importing
numba on the same round.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from tempfile import TemporaryDirectory

from benchmarks.common import Table, columns, finish, guarded, parser, quartiles, spread
from benchmarks.processes import ROOT, Process, ros_node
from dls_ik import DlsIkError

REFERENCE = "import numba"
COLUMNS = columns(
    "step; median [s] :.3f; least [s] :.3f; most [s] :.3f; as a multiple of importing numba"
)
TIMED = "import json, time\nbegin = time.perf_counter()\n{}\nprint(json.dumps({}))"
SPAN = "time.perf_counter() - begin"
FIRST_USE = """
from dls_ik import IkSolver, RobotModel
imported = time.perf_counter()
solver = IkSolver(RobotModel.wam())
T = solver.robot.tree.pose(solver.robot.tip, dict.fromkeys(solver.robot.joint_names, 0.5))
loaded = time.perf_counter()
solver.solve(T)
solved = time.perf_counter()
"""
SPANS = "[imported - begin, loaded - imported, solved - loaded]"
FIRST_USE_STEPS = ("import IkSolver, RobotModel", "load the WAM, make a solver", "first solve")


def inside(code: str, result: str, **environment: str) -> float | list[float]:
    """Run code in a new process and return what it measured [s].

    Raises:
        DlsIkError: it failed.
    """
    done = subprocess.run(
        [sys.executable, "-c", TIMED.format(code, result)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )
    if done.returncode:
        raise DlsIkError(f"a measured process failed: {done.stderr.strip()[-500:]}")
    return json.loads(done.stdout.splitlines()[-1])


def bare() -> float:
    """An interpreter that does nothing, from outside."""
    begin = time.perf_counter()
    inside("", "0")
    return time.perf_counter() - begin


def node_ready(program: str, **environment: str) -> float:
    """A node from its start to its saying that it is ready."""
    robot = {} if "trivial" in program else {"robot": "wam"}
    with Process(ros_node(program, "startup", **robot), **environment) as process:
        return process.wait_ready()


def one_round(note: Callable[[str, float], None]) -> None:
    """Measure everything once."""
    note("Python, nothing else", bare())
    note("import numpy", inside("import numpy", SPAN))
    note(REFERENCE, inside("import numba", SPAN))
    note("import dls_ik", inside("import dls_ik", SPAN))
    with TemporaryDirectory() as cache:
        for state in ("cold", "warm"):
            spans = inside(FIRST_USE, SPANS, NUMBA_CACHE_DIR=cache)
            for step, span in zip(FIRST_USE_STEPS, spans, strict=True):
                note(f"{step}, {state}", span)
    note("trivial node ready", node_ready("benchmarks.trivial_nodes serve"))
    with TemporaryDirectory() as cache:
        for state in ("cold", "warm"):
            note(f"ik_node ready, {state}", node_ready("dls_ik.ros.node", NUMBA_CACHE_DIR=cache))


def main() -> None:
    """Measure, and show."""
    given = parser(__doc__, repeats=5).parse_args()
    found: dict[str, list[float]] = {}
    for _ in range(given.repeats):
        one_round(lambda step, span: found.setdefault(step, []).append(span))
    table = Table(f"{given.repeats} rounds", COLUMNS)
    for step, spans in found.items():
        ratios = [a / b for a, b in zip(spans, found[REFERENCE], strict=True)]
        table.rows.append((step, quartiles(spans)[0], min(spans), max(spans), spread(ratios)))
    finish(given, [table])


if __name__ == "__main__":
    guarded(main)
