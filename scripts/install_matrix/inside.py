"""Run by the interpreter of a row, outside the checkout: solve, and say with what.

Takes one JSON document: ``target`` (4, 4), ``seed`` (7,), ``methods``. Prints one as its last line.
"""

import json
import sys
from importlib.util import find_spec

import numba
import numpy as np

import dls_ik


def main() -> None:
    """Solve by each method."""
    asked = json.loads(sys.argv[1])
    robot = dls_ik.RobotModel.from_name("wam")
    answers = {}
    for method in asked["methods"]:
        solver = dls_ik.IkSolver(robot, method)
        result = solver.solve(np.array(asked["target"]), asked["seed"], timeout=30.0)
        answers[method] = {"success": bool(result.success), "q": result.q.tolist()}
    found = {
        "file": dls_ik.__file__,
        "version": dls_ik.__version__,
        "python": "{}.{}.{}".format(*sys.version_info[:3]),
        "numba": numba.__version__,
        "numpy": np.__version__,
        "compiled": not numba.config.DISABLE_JIT,
        "ros": find_spec("rclpy") is not None,
        "answers": answers,
    }
    print(json.dumps(found))


main()
