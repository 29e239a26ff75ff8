# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Gains of a method along the singular directions of the task Jacobian.

The gain along a singular direction is the ratio of joint motion to tip error, see
:func:`directional_gains`.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.solver.stepper import Stepper


class ArmGains(NamedTuple):
    """Gains along the singular directions, for the method of one arm on the page."""

    name: str  # name of the arm, usually that of its method
    gain: Array | None  # (k,) result of :func:`directional_gains`; None if it is not known


class CurrentGains(NamedTuple):
    """Singular values at the configuration of the first arm, and each arm's gains there."""

    s: Array  # (k,) singular values of the task Jacobian with scaled rotation rows, descending
    size: float  # norm of the error [m] for which the gains are computed
    arms: tuple[ArmGains, ...]


def directional_gains(stepper: Stepper, q: Array, size: float) -> Array:
    """Return the gains (k,) of a method's step along each singular direction of the Jacobian at q.

    Let s_i be the singular values, and u_i and v_i the left and right singular vectors, of the task
    Jacobian (r, n) with scaled rotation rows, where k = min(r, n). The method computes a step dq
    for the error `size` * u_i; its gain i is the dot product of v_i and dq, divided by `size`. The
    pseudoinverse has the gains 1 / s_i. Other methods have different gains because of their
    damping, their limit strategy and their step bound, so the gains may depend on `size`.

    Args:
        stepper: Stepper of the method; the call sets its configuration to q, and clears its memory.
        q: (n,) joint positions [rad or m].
        size: Norm of the error [m], with rotations scaled as in the task of the stepper.

    Raises:
        MethodError: If a plug-in method fails.
    """
    stepper.reset(q)
    J = stepper.jacobian()
    U, _, Vt = np.linalg.svd(J, full_matrices=False)
    gain = np.zeros(len(Vt))
    for i, (u, v) in enumerate(zip(U.T, Vt, strict=True)):
        stepper.reset(q)
        gain[i] = v @ stepper.step_for(size * u, J) / size
    return gain
