# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robots in other units of length."""

from dataclasses import replace

import numpy as np

from dls_ik import RobotModel
from dls_ik.model import Tree


def scaled(robot, k):
    """Return a robot of one tip with all lengths multiplied by k."""
    tree = robot.tree
    joints = tuple(_scaled_joint(joint, k) for joint in tree.joints)
    return RobotModel.from_tree(Tree(tree.name, tree.links, joints), robot.base, robot.tip)


def scaled_poses(Ts, k):
    """Return poses (..., 4, 4) with lengths multiplied by k."""
    Ts = np.array(Ts)
    Ts[..., :3, 3] *= k
    return Ts


def _scaled_joint(joint, k):
    origin = scaled_poses(joint.origin, k)
    if joint.kind != "prismatic":
        return replace(joint, origin=origin)
    limits = {name: k * getattr(joint, name) for name in ("lower", "upper", "velocity")}
    return replace(joint, origin=origin, **limits)
