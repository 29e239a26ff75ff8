"""Published steps with matrices or a memory of their own, made for :func:`register_method`.

Weighted damped least squares with full weights, and numerical filtering by a running estimate of
the least singular values. They take what an option of a solver cannot hold, a matrix, or keep a
vector from step to step; the loop is the solver's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.solver.plugins import MEMORY, Step, StepState

SYMMETRIC = 1e-9  # relative asymmetry of a weight, of rounding


def weighted_damped(W1: ArrayLike, W2: ArrayLike) -> Step:
    """Return the step of damped least squares with full weights, Deo & Walker 1993, (2).

    dq = (J^T W1 J + W2)^-1 J^T W1 e minimises |e - J dq|^2 by W1 and |dq|^2 by W2 (DLP-1; Nakamura
    & Hanafusa 1986). With W1 = C1 C1^T and W2 = C2 C2^T it is dq = C2^-T A^+ [C1^T e; 0] for
    A = [C1^T J C2^-T; I].

    Args:
        W1: (r, r) weight of the scaled error.
        W2: (n, n) weight of the joint motion.

    Raises:
        MethodError: If a weight is not symmetric and positive definite. The step raises it if J has
            another shape.
    """
    C1, C2 = _cholesky("W1", W1), _cholesky("W2", W2)

    def step(J: Array, e: Array, state: StepState) -> Array:
        del state
        if J.shape != (len(C1), len(C2)):
            raise MethodError(f"J is {J.shape}, its weights are for {(len(C1), len(C2))}")
        A = np.linalg.solve(C2, (C1.T @ J).T).T  # (r, n)
        stacked = np.vstack([A, np.eye(len(C2))])
        aim = np.concatenate([C1.T @ e, np.zeros(len(C2))])
        return np.asarray(np.linalg.solve(C2.T, np.linalg.lstsq(stacked, aim)[0]))

    return step


def _cholesky(name: str, weight: ArrayLike) -> Array:
    """Return the lower factor of a weight."""
    try:
        W = np.array(weight, dtype=float)
    except (TypeError, ValueError):
        W = np.empty(0)
    is_square = W.ndim == 2 and W.shape[0] == W.shape[1] > 0
    if is_square and np.isfinite(W).all() and np.allclose(W, W.T, SYMMETRIC, 0.0):
        try:
            return np.asarray(np.linalg.cholesky(W))
        except np.linalg.LinAlgError:
            pass
    raise MethodError(f"{name} is a symmetric, positive definite matrix, not {weight!r:.80}")


# Running estimate of the two least singular values

TURNS = 8  # of the estimate, at the first step of an attempt
FIRST_DAMPING = 1e-4  # relative to |J|_F^2, added to J J^T where the estimate turns


def turned(J: Array, u: Array, damping: float, apart_from: Array | None = None) -> Array:
    """Return a unit vector (r,) turned toward the left singular vector of the least singular value.

    One inverse iteration, u := (J J^T + damping I)^-1 u: as J changes little from step to step, u
    turns along with the singular vector, and |J^T u| estimates the least singular value. One solve
    a step, no decomposition (Maciejewski & Klein 1988).

    Args:
        J: (r, n), u: (r,) of the last step.
        damping: added, so that J J^T may be singular.
        apart_from: unit vector (r,) that u is kept orthogonal to, for the next singular value.
    """
    u = np.asarray(np.linalg.solve(J @ J.T + damping * np.eye(len(u)), u))
    if apart_from is not None:
        u = u - apart_from * (apart_from @ u)
    length = float(np.linalg.norm(u))
    return u / length if length > 0.0 else u


def running_filter(velocity_bound: float, damping: float = FIRST_DAMPING) -> Step:
    """Return the step of numerical filtering by a running estimate (Maciejewski & Klein 1988).

    dq = J^T (J J^T + a^2 u u^T + lambda I)^-1 e, Deo & Walker 1993, section 3, with the estimated
    singular vector u. a^2 and lambda are those of (6), of the estimates of the least singular
    value and of the next one. Method `nf` takes both from a decomposition.

    Args:
        velocity_bound: of |dq| for a unit error along u [1/m].
        damping: of the estimate, relative to the squared Frobenius norm of J.

    Raises:
        MethodError: If a bound or a damping factor is not positive. The step raises it if the task
            has more rows than the number of vectors it remembers.
    """
    for name, value in (("velocity_bound", velocity_bound), ("damping", damping)):
        if not 0.0 < value < np.inf:
            raise MethodError(f"{name} is a positive number, not {value!r}")

    def step(J: Array, e: Array, state: StepState) -> Array:
        r = len(e)
        if 2 * r > MEMORY:
            raise MethodError(f"a running estimate takes {MEMORY // 2} rows at most, not {r}")
        added = damping * float(np.sum(J * J)) or 1.0
        memory = state.memory[: 2 * r].reshape(2, r)
        if state.iteration == 0:
            memory[0], memory[1] = 1.0 / np.sqrt(r), np.arange(1.0, r + 1.0)
        for _ in range(TURNS if state.iteration == 0 else 1):
            memory[0] = turned(J, memory[0], added)
            memory[1] = turned(J, memory[1], added, apart_from=memory[0])
        u = memory[0]
        a2 = _least_damping(float(np.linalg.norm(J.T @ u)), velocity_bound)
        lambda_ = 0.0
        if np.any(memory[1]):
            lambda_ = _least_damping(float(np.linalg.norm(J.T @ memory[1])), velocity_bound)
        M = J @ J.T + a2 * np.outer(u, u) + lambda_ * np.eye(r)
        return np.asarray(J.T @ np.linalg.lstsq(M, e)[0])  # at a singularity (6) is 0

    return step


def _least_damping(s: float, bound: float) -> float:
    """Return (6): the least lambda for which s / (s^2 + lambda) is at most the bound."""
    return s / bound - s * s if s * bound <= 1.0 else 0.0
