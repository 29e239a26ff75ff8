"""The kernels as tests call them: results returned, scratch made on the spot."""

import numpy as np

from dls_ik.core import inverse, joint_step, linalg, se3
from dls_ik.core.workspace import workspace
from dls_ik.model import DhRow, RobotModel
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import solver_options

WAM = RobotModel.wam()


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
    """(n, 6)."""
    X = np.full((6, J.shape[1]), np.nan)
    work = workspace(serial_chain(J.shape[1]))
    inverse.continuous_inverse(np.ascontiguousarray(J), h.copy(), lambda2, np.eye(6), X, work)
    return X.T


def step(name, robot, q, J, e, following=False, **options):
    """The step of a method for a scaled Jacobian and error."""
    method = options_of(name, **options).method(parse_method(name))._replace(following=following)
    work = workspace(robot.chain)
    work.J[:], work.e[:] = J, e
    joint_step.joint_step(robot.chain, method, robot.validated(q), work)
    return work.dq


def options_of(name, **options):
    return solver_options(parse_method(name), options)


def serial_chain(n):
    """Any chain of n variables, for the size of its scratch."""
    return RobotModel.from_dh([DhRow(a=0.1, alpha=1.0, lower=-1.0, upper=1.0)] * n).chain
