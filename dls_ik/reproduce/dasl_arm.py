"""The DASL arm of Matos 2016: five joints by Denavit-Hartenberg rows, servos with ticks.

The table of rows did not survive: these are a guess of ours [cm], with the arm's one sure row,
d = L1 and alpha = pi/2 of joint 1, and an elbow that bends against the shoulder, for which
th4 = th2 - th3 keeps the tool vertical.
"""

from dataclasses import replace
from math import pi

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model import RobotModel
from dls_ik.model.dh import DhRow, tree_from_dh
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.tree import Tree

ROWS = (
    DhRow(d=9.0, alpha=pi / 2, kind="continuous"),  # waist
    DhRow(a=20.0, alpha=pi, kind="continuous"),  # shoulder
    DhRow(a=18.0, kind="continuous"),  # elbow
    DhRow(alpha=-pi / 2, kind="continuous"),  # wrist, up and down
    DhRow(d=12.0, kind="continuous"),  # wrist, about the tool
)
RESOLUTION = np.array([0.088, 0.088, 0.088, 0.29, 0.29])  # [deg] of a tick
HOME = np.radians([0.0, 60.0, 90.0, -30.0, 0.0])
TOOL_DOWN = np.diag([1.0, -1.0, -1.0])


def arm() -> RobotModel:
    """The arm with its five joints free."""
    return RobotModel.from_dh(ROWS, name="dasl")


def coupled_arm() -> RobotModel:
    """The arm with four variables: joint 4 is two in a row that follow th2 and -th3."""
    tree = tree_from_dh(ROWS, name="dasl")
    joints: list[Joint] = []
    for joint in tree.joints:
        if joint.name != "joint4":
            joints.append(joint)
            continue
        half = "joint4_half"
        joints.append(replace(joint, name=half, child=half, mimic=Mimic("joint2", 1.0)))
        rest = replace(joint, parent=half, origin=np.eye(4), mimic=Mimic("joint3", -1.0))
        joints.append(rest)
    return RobotModel.from_tree(Tree(tree.name, (*tree.links, "joint4_half"), tuple(joints)))


def with_wrist(q: Array) -> Array:
    """All five joint values from th1, th2, th3, th5."""
    return np.array([q[0], q[1], q[2], q[1] - q[2], q[3]])


def ticks(q: Array) -> Array:
    """Goal positions of the servos, whole numbers, for joint values (5,) [rad]."""
    return np.asarray(np.rint(np.degrees(q) / RESOLUTION), dtype=np.int64)


def angles(goal_positions: Array) -> Array:
    """Joint values (5,) [rad] at which the servos stand."""
    return np.asarray(np.radians(goal_positions * RESOLUTION))
