# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Wrappers of kernels for tests, which return results and allocate the scratch arrays."""

import numpy as np

from dls_ik import method_names
from dls_ik.core import inverses, linalg, se3
from dls_ik.core.fast.step import fast_step
from dls_ik.core.fast.table import LEAF_ROWS
from dls_ik.core.jit import kernel
from dls_ik.core.step import StepRecord, run_steps
from dls_ik.core.workspace import fast_workspace, new_memory
from dls_ik.model import DhRow, RobotModel
from dls_ik.model.chain import build_arm
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import solver_options
from dls_ik.solver.problem import build_details, build_problem

WAM = RobotModel.wam()
STEPPED = tuple(name for name in method_names() if not name.startswith("kdl"))  # not by PyKDL
WHOLE = ("sqp", "dual", "quik")  # no combinations of parts; the oracle does not know them
FOLLOWING = tuple(name for name in STEPPED if name not in ("sqp", "dual"))  # follow targets


def serves(name, robot):
    """Return whether a method supports the full pose of a robot; TA needs redundancy."""
    return robot.n > 6 or "ta" not in name.split("+")


def svd(B):
    """U^T (r, r), s (r,), V^T (r, n)."""
    r = B.shape[0]
    Ut, s, Vt = np.empty((r, r)), np.empty(r), np.empty(B.shape)
    linalg.svd(np.ascontiguousarray(B), Ut, s, Vt)
    return Ut, s, Vt


def rotation_vector(R):
    out = np.empty(3)
    se3.rotation_vector(np.ascontiguousarray(R), out)
    return out


def pose_error(T_d, T):
    e = np.empty(6)
    se3.pose_error(T_d, T, np.empty((3, 3)), e)
    return e


def continuous_inverse(J, h, lambda2=0.0):
    """Return the pseudoinverse (n, 6), or with a lambda^2 the damped inverse."""
    X = np.full((6, J.shape[1]), np.nan)
    robot = serial_arm(J.shape[1])
    method, details = structs("jd", robot)
    J, R = np.ascontiguousarray(J), np.eye(6)
    inverses.continuous_inverse(method, details.params, J, h.copy(), lambda2, R, X)
    return X.T


def structs(name, robot, task=None, **options):
    """Return the structs of a method for kernels, including those of the general step."""
    choice, chosen = parse_method(name), options_of(name, **options)
    return chosen.method(choice), build_details(robot, choice, chosen, task)


def step(name, robot, q, J, e, following=False, general=False, **options):
    """Return the first step of a method for a scaled Jacobian and error of the full pose.

    Args:
        general: even for a method of the quick path, the step of all methods.
    """
    choice, chosen = parse_method(name), options_of(name, **options)
    problem = build_problem(robot, choice, chosen, None)
    method, packed = problem.method, problem.packed
    q = robot.validated(q)
    if packed is not None and not (general or following):
        arm = build_arm(robot.chain)
        work = fast_workspace(arm, LEAF_ROWS)
        work.J[:], work.e[:] = J.T, e
        one_quick_step(arm, method, float(np.linalg.norm(e)), q, work)
        return work.dq
    details = build_details(robot, choice, chosen, None)
    method = method._replace(following=following)
    # The kernel of single steps, which set-up has compiled; general_step alone would take 15 s.
    record = StepRecord(np.empty((2, len(e))), np.empty((1, 2)), np.empty(robot.n))
    memory = new_memory(robot.chain, method, details)
    T, given, qs = robot.fk(q)[None, None], np.column_stack([e, J]), np.stack([q, q])
    run_steps(robot.chain, method, details, memory, T, given, qs, record)
    return record.dq


@kernel
def one_quick_step(arm, method, error, q, work):
    """Return a quick step, as a separate kernel; usually the step is part of a loop."""
    fast_step(arm, method, error, q, work)


def options_of(name, **options):
    return solver_options(parse_method(name), options)


def serial_arm(n):
    """Return an arm of n joints, for the size of its scratch arrays."""
    return RobotModel.from_dh([DhRow(a=0.1, alpha=1.0, lower=-1.0, upper=1.0)] * n)
