# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Steps, solutions and cycles in other processes: bitwise equal with another hash seed, equal up
to rounding without the JIT."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from drive import BENT, WAM, Drive
from kernels import STEPPED

from dls_ik import IkSolver, Stepper

EPSILON = np.finfo(float).eps
CALM = BENT + np.array([0.3, 0.2, -0.3, 0.1, 0.4, 0.3, 0.2])  # away from singularities and margins


def answers():
    """Return computed numbers by name, as lists."""
    rng = np.random.default_rng(3)
    near = WAM.fk(CALM + 0.05 * rng.normal(size=(4, 7)))
    solver = IkSolver(WAM, max_restarts=20)
    poses = WAM.fk(WAM.random(16, rng))
    batches = [solver.solve_batch(poses, threads=threads) for threads in (1, 2, 4)]
    for other in batches[1:]:
        np.testing.assert_array_equal(other.q, batches[0].q)
    one = IkSolver(WAM, "jp", max_iterations=1)
    found = {
        "fk": WAM.fk(CALM).tolist(), "jacobian": WAM.jacobian(CALM).tolist(),
        "solve": batches[0].q.tolist(), "restarts": batches[0].restarts.tolist(),
        "quick step": one.solve_batch(near, CALM).q.tolist(),
    }  # fmt: skip
    for name in STEPPED:
        found[f"step {name}"] = Stepper(WAM, name, CALM).step(near[0]).tolist()
    for method in (None, "auto", "dls"):
        drive = Drive(CALM, method=method, acceleration=8.0).pose(near[1])
        drive.run(0.1)
        found[f"cycles {method}"] = drive.q.tolist()
    return found


def answers_of_process(**environment):
    """Return the answers of another process with these environment variables."""
    result = subprocess.run(
        [sys.executable, __file__],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment},
        capture_output=True, text=True, check=False, timeout=900,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def here():
    return json.loads(json.dumps(answers()))


def test_hash_seed_does_not_change_any_bit(here):
    assert answers_of_process(PYTHONHASHSEED="4711") == here


def test_results_without_jit_agree_up_to_rounding(here):
    """Machine code contracts and reorders sums (core/jit.py), with an error of at most epsilon per
    term. The error of a step is amplified by the condition number of J J^T, which is the squared
    condition number of the Jacobian, and has six rows of n terms.
    """
    plain = answers_of_process(NUMBA_DISABLE_JIT="1")
    assert plain.keys() == here.keys()
    s = np.linalg.svd(Stepper(WAM, "jp", CALM).jacobian(), compute_uv=False)
    terms = 6 * WAM.n
    of_sums, of_steps = terms * EPSILON, terms * EPSILON * (s[0] / s[-1]) ** 2
    assert of_steps < 1e-9
    assert plain["restarts"] == here["restarts"]
    for what, numbers in here.items():
        is_sum = what in ("fk", "jacobian")
        size = np.abs(numbers).max()
        slack = size * (of_sums if is_sum else of_steps)
        if what.startswith(("solve", "cycles")):  # many steps that converge
            slack *= 10
        np.testing.assert_allclose(plain[what], numbers, rtol=0.0, atol=slack, err_msg=what)


def test_controllers_in_threads_do_not_interfere():
    rng = np.random.default_rng(5)
    goals = WAM.fk(CALM + 0.2 * rng.normal(size=(6, 7)))

    def motion(T):
        drive = Drive(CALM, acceleration=8.0).pose(T)
        drive.run(0.5)
        return drive.q

    alone = [motion(T) for T in goals]
    with ThreadPoolExecutor(6) as pool:
        for one, other in zip(alone, pool.map(motion, goals), strict=True):
            np.testing.assert_array_equal(one, other)


if __name__ == "__main__":
    json.dump(answers(), sys.stdout)
