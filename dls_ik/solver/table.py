"""The table of configurations that searches start from: core/fast/table.py says how it is read."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.fast.table import LEAF, fill
from dls_ik.core.types import Arm, Array, Table
from dls_ik.model.chain import build_arm
from dls_ik.model.robot import RobotModel

LEVELS = 9  # of the tree: four times the rows save a tenth of the steps, and cost a second
RANDOM_SEED = 1


def no_table(n: int) -> Table:
    """A table without rows: all starts are random."""
    nothing = np.zeros((0, 9, LEAF)), np.zeros((0, 3, 4)), np.zeros((0, n))
    return Table(*nothing, np.zeros(1, np.int64), np.zeros(1), 0, False, False)


@lru_cache(maxsize=16)
def start_table(robot: RobotModel, rotation_weight: float) -> Table:
    """Configurations uniform within the limits, ordered by their poses; 0.1 s, kept for the next.

    Args:
        robot: with one tip.
        rotation_weight: w of the error metric [m/rad].
    """
    arm, rows = build_arm(robot.chain), LEAF << LEVELS
    q = robot.random(np.random.default_rng(RANDOM_SEED), rows)
    first_turns, last_turns = _turns(arm, 0), len(arm.variable) > 1 and _turns(arm, -1)
    ends = bool(first_turns), bool(last_turns)
    features, nothing = np.empty((rows, 9)), np.empty((0, 9, LEAF))
    table = Table(
        nothing, np.empty((rows, 3, 4)), q, np.zeros(1, np.int64), np.zeros(1), LEVELS, *ends
    )
    fill(_without_turns(arm, *ends), table, rotation_weight, features)
    order, by, cut = _tree(features)
    leaves = features[order].reshape(-1, LEAF, 9).transpose(0, 2, 1).copy()
    return Table(leaves, table.middle[order], q[order], by, cut, LEVELS, *ends)


def _turns(arm: Arm, k: int) -> bool:
    """Whether element k turns, and its variable drives no other."""
    alone = np.count_nonzero(arm.variable == arm.variable[k]) == 1
    return bool(alone and arm.turn[k, 0] != 0.0)


def _without_turns(arm: Arm, first_turns: bool, last_turns: bool) -> Arm:
    """The arm with joints that turn freely at zero angle, and without the way from the last one."""
    turn, link = arm.turn.copy(), arm.link.copy()
    if first_turns:
        turn[0] = 0.0
    if last_turns:
        turn[-1], link[-1, :3] = 0.0, 0.0
    return arm._replace(turn=turn, link=link)


def _tree(features: Array) -> tuple[NDArray[np.intp], NDArray[np.int64], Array]:
    """Halve the rows again and again by the feature that spreads most.

    Returns:
        The order of the rows, leaf after leaf; of each node the feature and where it is cut.
    """
    order = np.arange(len(features))
    by, cut = np.zeros(1 << LEVELS, np.int64), np.zeros(1 << LEVELS)
    for level in range(LEVELS):
        size = len(order) >> level
        for i in range(1 << level):
            rows = order[i * size : (i + 1) * size].copy()
            values, node = features[rows], (1 << level) + i
            by[node] = np.argmax(np.ptp(values, axis=0))
            sides = np.argpartition(values[:, by[node]], size // 2)
            order[i * size : (i + 1) * size] = rows[sides]
            cut[node] = values[sides[size // 2], by[node]]
    return order, by, cut
