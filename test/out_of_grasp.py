# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Unreachable poses that no bound refuses, so that the solver uses all its time."""

from dls_ik import IkSolver, Status

RESTARTS = 300


def out_of_grasp(robot, rng):
    """Return a pose that is reachable only with another rotation, and that no bound refuses."""
    solver = IkSolver(robot, max_restarts=RESTARTS)
    while True:
        T = robot.fk(robot.random(rng=rng))
        T[:3, :3] = robot.fk(robot.random(rng=rng))[:3, :3]
        if solver.solve(T, timeout=3600.0).status is Status.MAX_RESTARTS:
            return T
