"""Kinematics that owe nothing to the solver's: by these the answers are judged."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import DlsIkError
from dls_ik.model.kdl import kdl_chain
from dls_ik.model.robot import RobotModel


class Check(NamedTuple):
    """Another way from joint values to the pose of the tip."""

    name: str
    pose: Callable[[Array], Array]  # (n,) -> (4, 4) T_base_tip

    def errors(self, T: Array, q: Array) -> tuple[float, float]:
        """How far the tip at `q` is from a pose: distance [m] and angle [rad]."""
        return pose_errors(T, self.pose(q))


def independent_check(robot: RobotModel) -> Check:
    """PyKDL's kinematics where it is installed, else plain products of 4x4 matrices."""
    try:
        return Check("PyKDL", _kdl_kinematics(robot))
    except DlsIkError:
        return Check("NumPy", lambda q: robot.link_pose(robot.tip, q))


def pose_errors(T: Array, other: Array) -> tuple[float, float]:
    """Distance [m] and angle [rad], right up to half a turn, between two poses."""
    R = T[:3, :3].T @ other[:3, :3]
    sine = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    angle = np.arctan2(np.linalg.norm(sine), np.trace(R) - 1.0)
    return float(np.linalg.norm(other[:3, 3] - T[:3, 3])), float(angle)


def _kdl_kinematics(robot: RobotModel) -> Callable[[Array], Array]:
    chain = kdl_chain(robot)
    import PyKDL  # it is there, since there is a chain

    solver = PyKDL.ChainFkSolverPos_recursive(chain)

    def pose(q: Array) -> Array:
        joints, frame = PyKDL.JntArray(chain.getNrOfJoints()), PyKDL.Frame()
        for i, value in enumerate(q):
            joints[i] = float(value)
        solver.JntToCart(joints, frame)
        return _matrix(frame)

    return pose


def _matrix(frame: Any) -> Array:
    rows = [[frame[i, j] for j in range(4)] for i in range(3)]
    return np.array([*rows, [0.0, 0.0, 0.0, 1.0]])
