"""Where all links are, in one pass over the tree."""

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.joint import Joint
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse


class LinkPoses:
    """The poses of every link of a robot, without kernels: they are there before anything else.

    Joints that the chain does not have stand at 0, or at the limit next to 0.
    """

    def __init__(self, robot: RobotModel) -> None:
        self._robot = robot
        tree = robot.tree
        self.ordered: list[Joint] = []  # each behind the ones above it
        waiting = [tree.root]
        while waiting:
            below = tree.below[waiting.pop()]
            self.ordered += below
            waiting += [joint.child for joint in below]

    def __call__(self, q: Array) -> dict[str, Array]:
        """(4, 4) ``T_base_link`` by link, at joint values (n,) [rad or m]."""
        robot = self._robot
        values = robot.tree.values(dict(zip(robot.joint_names, q.tolist(), strict=True)))
        poses = {robot.tree.root: np.eye(4)}
        for joint in self.ordered:
            T_child = joint.origin
            if joint.name in values:
                T_child = T_child @ joint.motion(values[joint.name])
            poses[joint.child] = poses[joint.parent] @ T_child
        T_base_root = inverse(poses[robot.base])
        return {link: T_base_root @ T for link, T in poses.items()}


def moving_links(robot: RobotModel) -> frozenset[str]:
    """The links that the joints of the chain move against the base."""
    drives, links = robot.tree.drives, set[str]()
    for joint in LinkPoses(robot).ordered:
        drive = drives.get(joint.name)
        driven = drive is not None and drive.master in robot.joint_names
        if driven or joint.parent in links:
            links.add(joint.child)
    return frozenset(links)
