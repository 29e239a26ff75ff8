# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Gain of a method along each singular direction of the task Jacobian."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.solver.stepper import Stepper


class ArmGains(NamedTuple):
    """Gains of the method of one arm."""

    name: str  # name of the arm, such as its method
    gain: Array | None  # (k,) see :func:`directional_gains`; None if the gains are not known


class CurrentGains(NamedTuple):
    """Singular values at the configuration of the first arm, and the gains of all methods there."""

    s: Array  # (k,) singular values of the scaled task Jacobian, descending
    size: float  # size of the error [m] for which the gains are computed
    arms: tuple[ArmGains, ...]


def directional_gains(stepper: Stepper, q: Array, size: float) -> Array:
    """Return the gains (k,) of a step dq: v_i . dq / size for an error of `size` along u_i alone.

    s_i, u_i and v_i are the singular values and vectors of the scaled task Jacobian at q, with
    k = min(r, n). The pseudoinverse has the gains 1 / s_i. The gains include the damping, the limit
    strategy and the step bound of the method, which may depend on the size of the error.

    Args:
        stepper: Stepper of the method; its configuration becomes q, and its memory is cleared.
        q: (n,) joint positions [rad or m].
        size: Size of the error [m]; rotations are scaled as in the task of the stepper.

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
