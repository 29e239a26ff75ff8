# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels as plain Python give the same answers as compiled."""

import json
import os
import subprocess
import sys
import warnings
from itertools import product

import numpy as np
import pytest
from kernels import STEPPED, serves

from dls_ik import IkSolver, RobotModel


def answers():
    """Return joint positions by robot and method, for a few tasks."""
    found = {}
    for robot in map(RobotModel.from_name, ("wam", "puma560")):
        rng = np.random.default_rng(1)
        seeds = robot.random(3, rng)
        Ts = robot.fk(seeds + 0.2 * (robot.random(3, rng) - seeds))
        for name in STEPPED:
            if not serves(name, robot):
                continue
            most = 30 if name == "auto" else 4
            solver = IkSolver(robot, name, max_iterations=most, max_restarts=3)
            result = solver.solve_batch(Ts, seeds)
            found[f"{robot.name} {name}"] = [result.q.tolist(), result.restarts.tolist()]
        found.update(answers_of_solve_types(robot, robot.fk(robot.random(3, rng)), seeds))
    return found


def answers_of_solve_types(robot, Ts, seeds):
    """Return answers of every solve type, from the start table and from random restarts."""
    found = {}
    for kind, starts in product(("speed", "distance", "manipulability"), ("table", "random")):
        solver = IkSolver(robot, solve_type=kind, starts=starts, num_candidates=36, max_restarts=35)
        for where in (None, seeds):
            change = None if where is None else 6.0
            result = solver.solve_batch(Ts, where, max_joint_change=change)
            case = f"{robot.name} {kind} {starts} {where is None}"
            q = result.q
            if kind == "distance":  # rounding decides where a slide with short steps stops
                q = np.linalg.norm(q - (solver.search.middle if where is None else where), axis=1)
            found[case] = [q.tolist(), result.restarts.tolist()]
    return found


@pytest.mark.slow
def test_plain_python_gives_the_same_answers():
    result = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    plain, compiled = json.loads(result.stdout), answers()
    assert plain.keys() == compiled.keys()
    restarts = {case: max(restarts) for case, (_, restarts) in compiled.items()}
    assert max(restarts[case] for case in restarts if case.endswith(tuple(STEPPED))) == 3
    assert min(restarts[case] for case in restarts if "distance table" in case) == 35
    for case, (q, restarts) in compiled.items():
        assert plain[case][1] == restarts, case
        near = 0.05 if " distance " in case else 1e-9
        np.testing.assert_allclose(plain[case][0], q, atol=near, err_msg=case)


if __name__ == "__main__":
    # The random generator intentionally keeps the low digits of its 64-bit words.
    warnings.simplefilter("error", RuntimeWarning)
    warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning, "dls_ik.core.search")
    json.dump(answers(), sys.stdout)
