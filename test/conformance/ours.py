# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Adapter of the conformance suite to the package; no other file of the suite calls kernels."""

from typing import NamedTuple

import kernels
import numpy as np


class Move(NamedTuple):
    """One step of a stepper."""

    before: np.ndarray  # (n,)
    dq: np.ndarray  # (n,)
    after: np.ndarray  # (n,) clipped, by the strategies that clip


def our_step(name, robot, q, J, e, task=None, T=None, **options):
    """Return the first step (n,) of an attempt for a scaled Jacobian (r, n) and error (r,)."""
    ours = stepper(name, robot, q, task, **options)
    return np.array(ours.step_for(e, J, T))


def our_quick_step(name, robot, q, J, e, following=False, **options):
    """Return the step (n,) of a search, by the fast path if possible, or of a servo."""
    return np.array(kernels.step(name, robot, q, J, e, following=following, **options))


def our_inverse(name, robot, q, J, **options):
    """Return the matrix (n, 6) that maps errors of norm 1 to steps, column by column."""
    return np.column_stack([our_step(name, robot, q, J, u, **options) for u in np.eye(6)])


def stepper(name, robot, q, task=None, **options):
    from dls_ik import Stepper

    return Stepper(robot, name, np.array(q), task=task, **options)


def our_moves(name, robot, q, Ts, task=None, **options):
    """Return consecutive steps of one attempt toward a sequence of targets."""
    ours = stepper(name, robot, q, task, **options)
    moves = []
    for T in Ts:
        before = np.array(ours.q)
        dq = np.array(ours.step(T))
        moves.append(Move(before, dq, np.array(ours.q)))
    return moves


def options_of(name, **options):
    """Return all options of a method, with the defaults of its name."""
    return kernels.options_of(name, **options)
