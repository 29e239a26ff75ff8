# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Sequential quadratic programming (SQP) within joint limits, also in turns with Newton's method.

SQP minimises f = |e|^2 / 2 for the scaled error e, as TRAC-IK does with SLSQP (Beeson & Ames 2015;
Kraft 1988). An iteration solves the quadratic program

min d^T H d / 2 + g^T d within lower <= q + d <= upper, with g = grad f = -J^T e,

and searches along d for a configuration with a smaller f. H approximates the Hessian of f. It is
the identity at first, and then updated by the BFGS formula with Powell's damping (Powell 1978), so
that it stays positive definite. TRAC-IK approximates g by differences of f; here it is exact.

Each step of an attempt evaluates f once, at the configuration that the previous step has reached.
If f has decreased enough there, the step starts a new iteration; otherwise it goes back toward the
start of the search along d.

DUAL makes attempts by Newton's method with clipping to the limits and attempts by SQP in turns;
TRAC-IK runs them in two threads.
"""

from math import sqrt

import numpy as np

from dls_ik.core import damping, limits
from dls_ik.core.hierarchy import Bounds, solve_levels
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.step_bounds import NO_STEP_BOUND, with_parts
from dls_ik.core.types import Array, Chain, Memory, Method, Workspace

ENOUGH_DECREASE = 1e-4  # minimum decrease of f, as a fraction of the decrease along the tangent
MIN_SHORTENING, MAX_SHORTENING = 0.1, 0.5  # bounds of the factor that shortens a step of a search
MIN_SEARCH_LENGTH = 1e-8  # minimum length of a step of a search, relative to d
POWELL_SHARE = 0.2  # minimum curvature in an update, relative to that of H
MAX_ENTRY = 1e150  # H is reset to the identity if a pivot of its factorisation is larger, or NaN

# Memory.sqp (n + 4, n + 2) has H (n, n) in its first n rows. The last four rows, in the order of
# these numbers, have the start of the search; g and d there; and f there with the step length.
_START, _GRADIENT, _DIRECTION, _VALUES = range(4)


@force_inline
def solver_of_attempt(method: Method, memory: Memory) -> Method:
    """Return the method of an attempt: for DUAL one of its two solvers, otherwise `method` itself.

    The solver is Newton's method (the pseudoinverse without a limit strategy) in the first attempt
    for a pose, SQP in the second attempt, and so on in turns.

    Args:
        method: Method with its limit strategy.
        memory: State with the number of earlier attempts.
    """
    if method.limits != limits.DUAL:
        return method
    strategy = limits.NO_LIMIT_STRATEGY if memory.steps[3] % 2 == 0 else limits.SQP
    return with_parts(method, damping.JP, strategy, NO_STEP_BOUND)


@allocating
def sqp_step(chain: Chain, q: Array, work: Workspace) -> None:
    """Write the step of SQP to `work.dq`.

    Args:
        chain: Limits of the joints.
        q: (n,) joint positions within the limits [rad or m].
        work: The scaled error `e` and its Jacobian `J` are read; the state in ``memory.sqp`` is
            read and written.
    """
    n, e, J, dq, state = q.shape[0], work.e, work.J, work.dq, work.memory.sqp
    H, start, values = state[:n, :n], state[n + _START], state[n + _VALUES]
    gradient, direction = state[n + _GRADIENT], state[n + _DIRECTION]
    f, g = 0.0, np.zeros(n)
    for i in range(e.shape[0]):
        f += 0.5 * e[i] * e[i]
        for j in range(n):
            g[j] -= J[i, j] * e[i]
    if work.memory.steps[0] == 0:
        reset_hessian(H)
    else:
        length, slope = values[1], 0.0
        for j in range(n):
            slope += gradient[j] * direction[j]
        needed = values[0] + ENOUGH_DECREASE * length * slope
        if f > needed and length > MIN_SEARCH_LENGTH:
            values[1] = shorter_step(values[0], f, slope, length)
            for j in range(n):
                dq[j] = start[j] + values[1] * direction[j] - q[j]
            return
        update_hessian(H, q, start[:n], g, gradient[:n])
    if not solve_program(chain, H, g, q, dq):
        reset_hessian(H)
        solve_program(chain, H, g, q, dq)
    values[0], values[1] = f, 1.0
    for j in range(n):
        start[j], gradient[j], direction[j] = q[j], g[j], dq[j]


@kernel
def reset_hessian(H: Array) -> None:
    """Write the identity to H (n, n)."""
    for i in range(H.shape[0]):
        for j in range(H.shape[0]):
            H[i, j] = 1.0 if i == j else 0.0


@kernel
def shorter_step(f_start: float, f: float, slope: float, length: float) -> float:
    """Return a shorter length of a step: the minimum of the parabola with the values given.

    The result is at least MIN_SHORTENING and at most MAX_SHORTENING times `length`.

    Args:
        f_start: Value of f at the start of the search.
        f: Value of f after a step of the length `length`.
        slope: Derivative of f by the length at the start, negative.
        length: Length of the step, relative to the direction of the search.
    """
    bend = 2.0 * (f - f_start - slope * length)
    share = -slope * length / bend if bend > 0.0 else MAX_SHORTENING
    return length * min(max(share, MIN_SHORTENING), MAX_SHORTENING)


@allocating
def update_hessian(H: Array, q: Array, start: Array, g: Array, gradient: Array) -> None:
    """Update the approximation H of the Hessian by the BFGS formula with Powell's damping.

    Args:
        H: (n, n) approximation, read and written.
        q, start: (n,) joint positions after and before the step [rad or m].
        g, gradient: (n,) gradient of f at `q` and at `start`.
    """
    n = q.shape[0]
    s, y, Hs = np.empty(n), np.empty(n), np.zeros(n)
    along, curvature = 0.0, 0.0
    for i in range(n):
        s[i], y[i] = q[i] - start[i], g[i] - gradient[i]
    for i in range(n):
        for j in range(n):
            Hs[i] += H[i, j] * s[j]
        along += s[i] * y[i]
        curvature += s[i] * Hs[i]
    if not curvature > 0.0:
        return
    if along < POWELL_SHARE * curvature:
        share = (1.0 - POWELL_SHARE) * curvature / (curvature - along)
        for i in range(n):
            y[i] = share * y[i] + (1.0 - share) * Hs[i]
        along = POWELL_SHARE * curvature
    for i in range(n):
        for j in range(n):
            H[i, j] += y[i] * y[j] / along - Hs[i] * Hs[j] / curvature


@allocating
def solve_program(chain: Chain, H: Array, g: Array, q: Array, d: Array) -> bool:
    """Solve the quadratic program of an iteration.

    With the Cholesky factor H = L L^T, the program is the least-squares problem
    min |L^T d + L^-1 g| within bounds.

    Args:
        chain: Limits of the joints.
        H: (n, n) approximation of the Hessian.
        g: (n,) gradient.
        q: (n,) joint positions [rad or m].
        d: (n,) solution, written [rad or m].

    Returns:
        False if H is not positive definite; d is then not valid.
    """
    n = q.shape[0]
    A, b, low, high = np.zeros((n, n)), np.empty(n), np.empty(n), np.empty(n)
    for j in range(n):
        low[j], high[j] = min(chain.lower[j] - q[j], 0.0), max(chain.upper[j] - q[j], 0.0)
    for j in range(n):  # column j of L is row j of A = L^T
        for i in range(j, n):
            total = H[i, j]
            for k in range(j):
                total -= A[k, i] * A[k, j]
            if i == j:
                if not 0.0 < total < MAX_ENTRY:
                    return False
                A[j, j] = sqrt(total)
            else:
                A[j, i] = total / A[j, j]
        b[j] = -g[j]
        for k in range(j):
            b[j] -= A[k, j] * b[k]
        b[j] /= A[j, j]
    d.fill(0.0)
    solve_levels(A, b, np.array([n]), Bounds(np.eye(n), low, high), d)
    return True
