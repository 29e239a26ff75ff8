# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The package's own steps, as the conformance suite asks for them. The only file to hook up."""

from typing import NamedTuple

import kernels
import numpy as np


class Move(NamedTuple):
    """One step of a stepper."""

    before: np.ndarray  # (n,)
    dq: np.ndarray  # (n,)
    after: np.ndarray  # (n,) clipped, by the strategies that clip


def our_step(name, robot, q, J, e, task=None, T=None, **options):
    """The first step of an attempt for a scaled (r, n) Jacobian and (r,) error: (n,)."""
    ours = stepper(name, robot, q, task, **options)
    return np.array(ours.step_for(e, J, T))


def our_quick_step(name, robot, q, J, e, following=False, **options):
    """As a search makes it, by the quick step if that can; or as a servo does: (n,)."""
    return np.array(kernels.step(name, robot, q, J, e, following=following, **options))


def our_inverse(name, robot, q, J, **options):
    """The matrix (n, 6) that takes errors of norm 1 to steps: column by column."""
    return np.column_stack([our_step(name, robot, q, J, u, **options) for u in np.eye(6)])


def stepper(name, robot, q, task=None, **options):
    from dls_ik import Stepper

    return Stepper(robot, name, np.array(q), task=task, **options)


def our_moves(name, robot, q, Ts, task=None, **options):
    """Steps of one attempt in a row, toward one target after the other."""
    ours = stepper(name, robot, q, task, **options)
    moves = []
    for T in Ts:
        before = np.array(ours.q)
        dq = np.array(ours.step(T))
        moves.append(Move(before, dq, np.array(ours.q)))
    return moves


def options_of(name, **options):
    """All options of a method, with the defaults that its name brings."""
    return kernels.options_of(name, **options)
