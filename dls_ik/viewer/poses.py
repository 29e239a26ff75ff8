"""Poses of all links, and poses as the scene has them: a position and a quaternion."""

import numpy as np
from viser import transforms

from dls_ik.core.types import Array
from dls_ik.model.joint import Joint
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse, transform


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
            below = tree.child_joints[waiting.pop()]
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
    drives, links = robot.tree.mimic_of, set[str]()
    for joint in LinkPoses(robot).ordered:
        drive = drives.get(joint.name)
        driven = drive is not None and drive.master in robot.joint_names
        if driven or joint.parent in links:
            links.add(joint.child)
    return frozenset(links)


def wxyz_of(T: Array) -> Array:
    """The unit quaternion (4,) w x y z of a pose (4, 4)."""
    wxyz: Array = np.asarray(transforms.SO3.from_matrix(T[:3, :3]).wxyz, np.float64)
    return wxyz


def pose_of(wxyz: Array, position: Array) -> Array:
    """The pose (4, 4) of a quaternion (4,) w x y z, of any length but 0, and a position (3,)."""
    unit = np.asarray(wxyz, np.float64) / np.linalg.norm(wxyz)
    return transform(transforms.SO3(unit).as_matrix(), np.asarray(position, np.float64))
