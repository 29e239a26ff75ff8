# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A method of the oracle on joints without kinematics, for closed forms."""

from types import SimpleNamespace

import numpy as np
from oracle_ik import Oracle

from dls_ik.solver.options import SolverOptions


def bare(name, n, groups=None, half=10.0, slides=(), **options):
    """Return a method for n joints with the range +-half and without kinematics."""
    variable = np.arange(n)
    chain = SimpleNamespace(
        lower=-np.ones(n), prismatic=np.isin(variable, slides), variable=variable
    )
    lower, upper = np.full(n, -half), np.full(n, half)
    robot = SimpleNamespace(
        n=n, lower=lower, upper=upper, chain=chain,
        clip=lambda q: np.clip(q, lower, upper), fk=lambda q: np.eye(4),
    )  # fmt: skip
    oracle = Oracle(name, robot, SolverOptions(**options))
    oracle.rows = SimpleNamespace(robot=robot, groups=groups)
    return oracle


def diagonal(name, s, e, **options):
    """Return one step from mid-range for J = diag(s) with a further column of zeros."""
    r = len(s)
    oracle = bare(name, r + 1, np.zeros(r, int), **options)
    J = np.hstack([np.diag(np.array(s, float)), np.zeros((r, 1))])
    return oracle.step(np.zeros(r + 1), J, np.array(e, float))[:r]


def step_of(name, J, e, q=None, groups=None, **options):
    J, e = np.atleast_2d(np.array(J, float)), np.array(e, float)
    groups = np.zeros(len(e), int) if groups is None else np.array(groups)
    q = np.zeros(J.shape[1]) if q is None else np.array(q, float)
    return bare(name, J.shape[1], groups, **options).step(q, J, e)
