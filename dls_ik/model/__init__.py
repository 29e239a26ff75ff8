# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robot models: reading of robot descriptions (URDF, xacro, DH rows), kinematics and limits."""

from dls_ik.model.dh import DhRow, load_dh, tree_from_dh
from dls_ik.model.files import share_file, shipped_names, shipped_urdf
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.model.urdf import load_urdf

__all__ = [
    "DhRow",
    "Joint",
    "Mimic",
    "RobotModel",
    "Tree",
    "load_dh",
    "load_urdf",
    "share_file",
    "shipped_names",
    "shipped_urdf",
    "tree_from_dh",
]
