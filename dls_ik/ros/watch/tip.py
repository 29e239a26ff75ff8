"""Where the tip of an arm is in the root frame of its robot."""

from collections.abc import Callable, Mapping

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

SHORTEST = 0.1  # [m]


class Tip:
    """The tip of a chain whose base may itself be carried by other joints.

    Args:
        heard: the values of joints by name, as drivers publish them.
    """

    def __init__(self, robot: RobotModel, heard: Callable[[], Mapping[str, float]]) -> None:
        self.robot = robot
        self.frame = robot.tree.root
        self._heard = heard
        self._T_root_base = robot.tree.fixed_offset(self.frame, robot.base)

    def in_root(self, T_base: Array) -> Array:
        """Poses (..., 4, 4) in the frame of the base, in the root frame."""
        return self._root_from_base() @ T_base

    def poses(self, q: Array) -> Array:
        """The poses T_root_tip (..., 4, 4) at commands (..., n)."""
        return self.in_root(self.robot.fk(q))

    def length(self) -> float:
        """About how far the arm reaches [m]: the way along its links."""
        joints = self.robot.tree.path(self.robot.base, self.robot.tip)
        way = sum(float(np.linalg.norm(joint.origin[:3, 3])) for joint in joints)
        return max(way, SHORTEST)

    def _root_from_base(self) -> Array:
        if self._T_root_base is not None:
            return self._T_root_base
        tree = self.robot.tree
        known = {name: value for name, value in self._heard().items() if name in tree.drives}
        return tree.pose(self.robot.base, known)
