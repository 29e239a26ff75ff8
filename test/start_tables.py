# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robots with their tables of starts, and what rows are compared by, from the kinematics alone."""

import numpy as np
from arms import random_arm
from oracle import rigid, rotation

from dls_ik.core.fast.kinematics import aim
from dls_ik.core.fast.table import LEAF_ROWS, look_up, next_start
from dls_ik.core.jit import kernel
from dls_ik.core.workspace import fast_workspace
from dls_ik.model.chain import build_arm
from dls_ik.solver.problem import start_table

WEIGHT = 0.5


@kernel
def find(arm, table, rotation_weight, T_d, work):
    aim(arm.base, arm.tip, T_d, work.target)
    return look_up(arm, table, rotation_weight, work)


@kernel
def following(arm, table, first, q, work):
    return next_start(arm, table, first, q, work)


class Drawn:
    """A robot with its table, and all starts for a pose."""

    def __init__(self, robot):
        self.robot, self.arm = robot, build_arm(robot.chain)
        self.table = start_table(robot, WEIGHT)

    def starts(self, T):
        """The first row of the leaf, distances (LEAF_ROWS,) of its rows, and the starts (s, n)."""
        work, q, found = fast_workspace(self.arm, LEAF_ROWS), np.empty(self.robot.n), []
        first = find(self.arm, self.table, WEIGHT, T, work)
        distances = work.distance.copy()
        while following(self.arm, self.table, first, q, work):
            found.append(q.copy())
            assert len(found) <= LEAF_ROWS
        assert np.isinf(work.distance).all()
        assert not following(self.arm, self.table, first, q, work)  # and stays so
        return first, distances, np.array(found).reshape(-1, self.robot.n)

    def parts(self, T):
        """Position and z and x axis of the last joint's frame, turned back by the first joint.

        By the chain's own kinematics: the first axis and where the tip lies in the last frame.
        """
        arm = self.arm
        middle = rigid(np.eye(3), np.zeros(3))
        middle[:3] = arm.base @ T
        middle[:3, :3] = middle[:3, :3] @ arm.tip
        if self.table.last_turns:
            middle[:3, 3] -= middle[:3, :3] @ self.in_last_frame()
        turn = np.eye(3)
        if self.table.first_turns:
            turn = rotation([0, 0, 1], -np.arctan2(middle[1, 3], middle[0, 3]))
        p, R = turn @ middle[:3, 3], WEIGHT * turn @ middle[:3, :3]
        x = 0.0 * R[:, 0] if self.table.last_turns else R[:, 0]
        return np.concatenate([p, R[:, 2], x])

    def in_last_frame(self):
        return self.arm.link[-1, :3]


KINDS = {
    "7": ["revolute"] * 7,
    "turning ends": ["continuous", *["revolute"] * 4, "continuous"],
    "slides first": ["prismatic", *["revolute"] * 6],
    "slides last": [*["revolute"] * 6, "prismatic"],
    "slides at both ends": ["prismatic", *["revolute"] * 4, "prismatic"],
    "first followed": ["revolute", "mimic", *["revolute"] * 5],
    "last follows": [*["revolute"] * 6, "mimic"],
    "2": ["revolute"] * 2,
    "1": ["revolute"],
    "1 slide": ["prismatic"],
    "all slide": ["prismatic"] * 3,
}


def drawn(name):
    return Drawn(random_arm(np.random.default_rng(5), *KINDS[name]))


def at_last_joint(arm, T):
    """Where the last joint's frame is, or the tip if that joint does not turn."""
    frame = arm.arm.base @ T
    R = frame[:, :3] @ arm.arm.tip
    return frame[:, 3] - (R @ arm.in_last_frame() if arm.table.last_turns else 0.0)
