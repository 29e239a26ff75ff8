# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Published methods that are not built in, as step functions for plug-ins.

:func:`~dls_ik.solver.plugins.register_method` makes a method of a step function. Weighted damped
least squares and the singularity-robust inverse need full weight matrices, which cannot be solver
options. Numerical filtering by a running estimate needs the singular vectors of the previous step.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.solver.plugins import MEMORY, Step, StepState

MAX_ASYMMETRY = 1e-9  # maximum relative asymmetry of a symmetric matrix due to rounding
NEGLIGIBLE = 1e-12  # singular values up to this share of the largest one count as zero


def weighted_damped(W1: ArrayLike, W2: ArrayLike) -> Step:
    """Return the step function of damped least squares with full weight matrices.

    The step dq = (J^T W1 J + W2)^-1 J^T W1 e (Deo & Walker 1993, (2)) minimises the sum of
    |e - J dq|^2 weighted by W1 and |dq|^2 weighted by W2 (DLP-1; Nakamura & Hanafusa 1986). With
    W1 = C1 C1^T and W2 = C2 C2^T the step is computed as dq = C2^-T A^+ [C1^T e; 0], where
    A = [C1^T J C2^-T; I].

    Args:
        W1: (r, r) weight of the scaled error.
        W2: (n, n) weight of the joint motion.

    Raises:
        MethodError: If a weight is not symmetric and positive definite. The returned function
            raises MethodError if J does not have the shape (r, n).
    """
    C1, C2 = _cholesky("W1", W1), _cholesky("W2", W2)

    def step(J: Array, e: Array, state: StepState) -> Array:
        del state
        if J.shape != (len(C1), len(C2)):
            raise MethodError(f"J has shape {J.shape}; the weights are for {(len(C1), len(C2))}")
        A = np.linalg.solve(C2, (C1.T @ J).T).T  # (r, n)
        stacked = np.vstack([A, np.eye(len(C2))])
        aim = np.concatenate([C1.T @ e, np.zeros(len(C2))])
        return np.asarray(np.linalg.solve(C2.T, np.linalg.lstsq(stacked, aim)[0]))

    return step


def singularity_robust(
    lambda0: float, w_t: float, W1: ArrayLike | None = None, W2: ArrayLike | None = None
) -> Step:
    """Return the step function of the complete singularity-robust (SR) inverse.

    The step is dq = (J^T W1 J + k W2)^-1 J^T W1 e with k = lambda0 (1 - w / w_t)^2 where the
    manipulability w = sqrt(det(J J^T)) is below w_t, else 0 (Nakamura & Hanafusa 1986). With unit
    weights the method is `jd` with the policy `manipulability`. For k = 0 the step is the limit for
    k toward 0: of all steps with the smallest error weighted by W1, the shortest one weighted by
    W2.

    Args:
        lambda0: Value of k at a singularity, where w = 0.
        w_t: Threshold of the manipulability w; the step is not damped above it.
        W1: (r, r) weight of the scaled error; None: the identity.
        W2: (n, n) weight of the joint motion; None: the identity.

    Raises:
        MethodError: If a number is not positive, or a weight is not symmetric and positive
            definite. The returned function raises MethodError if J does not fit the weights.
    """
    for name, value in (("lambda0", lambda0), ("w_t", w_t)):
        if not 0.0 < value < np.inf:
            raise MethodError(f"{name} must be a positive number; got {value!r}")
    given_C1 = None if W1 is None else _cholesky("W1", W1)
    given_C2 = None if W2 is None else _cholesky("W2", W2)

    def step(J: Array, e: Array, state: StepState) -> Array:
        del state
        C1 = np.eye(J.shape[0]) if given_C1 is None else given_C1
        C2 = np.eye(J.shape[1]) if given_C2 is None else given_C2
        if J.shape != (len(C1), len(C2)):
            raise MethodError(f"J has shape {J.shape}; the weights are for {(len(C1), len(C2))}")
        w = float(np.prod(np.linalg.svd(J)[1])) if J.shape[0] <= J.shape[1] else 0.0
        k = lambda0 * (1.0 - w / w_t) ** 2 if w < w_t else 0.0
        U, s, Vt = np.linalg.svd(np.linalg.solve(C2, (C1.T @ J).T).T, full_matrices=False)
        kept = s > NEGLIGIBLE * s[0]
        gain = np.divide(s, s * s + k, out=np.zeros_like(s), where=kept)
        return np.asarray(np.linalg.solve(C2.T, Vt.T @ (gain * (U.T @ (C1.T @ e)))))

    return step


def _cholesky(name: str, weight: ArrayLike) -> Array:
    """Return the lower Cholesky factor of a weight matrix; `name` is used in the message.

    Raises:
        MethodError: If the weight is not symmetric and positive definite.
    """
    try:
        W = np.array(weight, dtype=float)
    except (TypeError, ValueError):
        W = np.empty(0)
    is_square = W.ndim == 2 and W.shape[0] == W.shape[1] > 0
    if is_square and np.isfinite(W).all() and np.allclose(W, W.T, MAX_ASYMMETRY, 0.0):
        try:
            return np.asarray(np.linalg.cholesky(W))
        except np.linalg.LinAlgError:
            pass
    raise MethodError(f"{name} must be a symmetric, positive definite matrix; got {weight!r:.80}")


# Running estimate of the two smallest singular values

NUM_FIRST_UPDATES = 8  # number of updates of the estimate before the first step of an attempt
FIRST_DAMPING = 1e-4  # damping of an update, relative to |J|_F^2


def updated_singular_vector(
    J: Array, u: Array, damping: float, orthogonal_to: Array | None = None
) -> Array:
    """Update an estimate of the left singular vector of the smallest singular value.

    The update is one inverse iteration, u := (J J^T + damping I)^-1 u, normalised. J changes little
    from step to step, so u follows the singular vector and |J^T u| estimates the smallest singular
    value. A step costs one linear solve and no decomposition (Maciejewski & Klein 1988).

    Args:
        J: (r, n) scaled Jacobian.
        u: (r,) estimate of the previous step.
        damping: Positive number that is added to the diagonal of J J^T, which may be singular.
        orthogonal_to: (r,) unit vector to which the result is made orthogonal. If this is the
            singular vector of the smallest singular value, the result estimates the singular vector
            of the second smallest singular value.

    Returns:
        Unit vector (r,).
    """
    u = np.asarray(np.linalg.solve(J @ J.T + damping * np.eye(len(u)), u))
    if orthogonal_to is not None:
        u = u - orthogonal_to * (orthogonal_to @ u)
    length = float(np.linalg.norm(u))
    return u / length if length > 0.0 else u


def running_filter(velocity_bound: float, damping: float = FIRST_DAMPING) -> Step:
    """Return the step function of numerical filtering by a running estimate.

    The step is dq = J^T (J J^T + a^2 u u^T + lambda I)^-1 e (Maciejewski & Klein 1988; Deo & Walker
    1993, section 3), where u is the estimated left singular vector of the smallest singular value.
    Equation (6) gives a^2 and lambda from the estimates of the smallest and the second smallest
    singular value. Method `nf` computes these values from a singular value decomposition instead.

    Args:
        velocity_bound: Maximum |dq| for a unit error along u [1/m].
        damping: Damping of the estimate, relative to the squared Frobenius norm of J.

    Raises:
        MethodError: If an argument is not positive. The returned function raises MethodError if the
            task has too many rows for the memory of a plug-in.
    """
    for name, value in (("velocity_bound", velocity_bound), ("damping", damping)):
        if not 0.0 < value < np.inf:
            raise MethodError(f"{name} must be a positive number; got {value!r}")

    def step(J: Array, e: Array, state: StepState) -> Array:
        r = len(e)
        if 2 * r > MEMORY:
            raise MethodError(f"a running estimate needs at most {MEMORY // 2} task rows; got {r}")
        added = damping * float(np.sum(J * J)) or 1.0
        memory = state.memory[: 2 * r].reshape(2, r)
        if state.iteration == 0:
            memory[0], memory[1] = 1.0 / np.sqrt(r), np.arange(1.0, r + 1.0)
        for _ in range(NUM_FIRST_UPDATES if state.iteration == 0 else 1):
            memory[0] = updated_singular_vector(J, memory[0], added)
            memory[1] = updated_singular_vector(J, memory[1], added, orthogonal_to=memory[0])
        u = memory[0]
        a2 = _min_damping(float(np.linalg.norm(J.T @ u)), velocity_bound)
        lambda_ = 0.0
        if np.any(memory[1]):
            lambda_ = _min_damping(float(np.linalg.norm(J.T @ memory[1])), velocity_bound)
        M = J @ J.T + a2 * np.outer(u, u) + lambda_ * np.eye(r)
        return np.asarray(J.T @ np.linalg.lstsq(M, e)[0])  # (6) is 0 for s = 0: M may be singular

    return step


def _min_damping(s: float, bound: float) -> float:
    """Return the minimum lambda for which s / (s^2 + lambda) is at most `bound`, equation (6).

    `s` is a singular value.
    """
    return s / bound - s * s if s * bound <= 1.0 else 0.0
