# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robots, poses and checks shared by the tests of solve options."""

import numpy as np
from arms import published, random_arm
from oracle_ik import pose_error

from dls_ik import RobotModel

TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; rounding
WAM, PUMA = RobotModel.wam(), RobotModel.from_name("puma560")
REDUNDANT = ("wam", "iiwa14", "fr3", "gen3", "column_lwr")
SIX = ("puma560", "ur5e", "irb140", "tx60", "stanford")


def robot_of(name):
    return RobotModel.from_name(name) if name in ("wam", "puma560") else published(name)


def turning(rng):
    """Return a robot of seven joints: continuous, revolute and prismatic."""
    return random_arm(rng, *["continuous", "revolute"] * 2, "prismatic", "continuous", "revolute")


def drawn(robot, count, seed=1):
    """Return reachable poses, their configurations, and random seeds."""
    rng = np.random.default_rng(seed)
    q, seeds = robot.random(count, rng), robot.random(count, rng)
    return robot.fk(q), q, seeds


def errors(robot, T, q):
    """Return the position [m] and rotation error [rad]."""
    e = pose_error(T, robot.fk(q))
    return np.linalg.norm(e[:3]), np.linalg.norm(e[3:])


def is_solution(robot, T, q):
    return bool(robot.within_limits(q)) and bool(np.max(errors(robot, T, q)) <= TOLERANCE)


def assert_solutions(robot, Ts, result):
    assert result.success.all(), np.flatnonzero(~result.success)
    for T, q in zip(Ts, result.q, strict=True):
        assert is_solution(robot, T, q)


def apart(q, seeds, weights=1.0):
    """Return distances (b,) in the joint metric."""
    return np.sqrt((np.asarray(weights) * (q - seeds) ** 2).sum(axis=-1))


def manipulability(robot, q, weight=0.5):
    """Return Yoshikawa's manipulability of the scaled Jacobian."""
    J = np.repeat([1.0, weight], 3)[:, None] * robot.jacobian(q)
    s = np.linalg.svd(J, compute_uv=False)
    return float(np.prod(s))
