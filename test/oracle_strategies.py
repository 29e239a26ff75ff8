# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of limit strategies: activation of each joint limit, and the desired motion.

Colome & Torras 2012, (5), (6) and Table III.
"""

from functools import cache

import numpy as np


def activation(q, lower, upper, margin):
    """Return the activation, 0 free to 1 held (Mansard, Remazeilles & Chaumette 2009)."""
    h = np.zeros(len(q))
    for j in np.flatnonzero(np.isfinite(upper - lower)):
        width = margin * (upper[j] - lower[j])
        u = max(q[j] - (upper[j] - width), lower[j] + width - q[j]) / width
        if 0.0 < u < 1.0:
            h[j] = 0.5 * (1.0 + np.tanh(1.0 / (1.0 - u) - 1.0 / u))
        elif u >= 1.0:
            h[j] = 1.0
    return np.where(h < 1e-6, 0.0, h)


def held(strategy, o, robot, q, J, e, following=False):
    """Return the activation h of each joint, and its desired motion z."""
    h, z = np.zeros(robot.n), np.zeros(robot.n)
    if strategy in ("jc", "active"):
        push = J.T @ e
        h[((q >= robot.upper) & (push > 0)) | ((q <= robot.lower) & (push < 0))] = 1.0
    if strategy in ("ctp", "tp", "idv", "cns"):
        h = activation(q, robot.lower, robot.upper, o.margin)
        if following and strategy != "tp":
            return h * pushed_outward(robot, q, J, e), z
        near = np.flatnonzero(h)
        middle = 0.0 if o.bug_compatible else 0.5 * (robot.lower[near] + robot.upper[near])
        push = 1.0 / h[near] if o.bug_compatible and strategy == "tp" else h[near]
        z[near] = -push * o.mu * (q[near] - middle)
        h = np.ceil(h) if strategy == "tp" else h
    return h, z


def pushed_outward(robot, q, J, e):
    """Return how strongly the error pushes each joint to its closer limit; 1 beyond or from 0.1."""
    lower, upper = robot.finite_limits()
    outward = np.sign(q - 0.5 * (lower + upper))
    cosine = outward * (J.T @ e) / (np.linalg.norm(J, axis=0) * np.linalg.norm(e))
    return np.where(robot.clip(q) == q, np.clip(cosine / 0.1, 0.0, 1.0), 1.0)


def weighting(slope, last):
    """Return c = W^(-1/2) of JW, with larger weights where the slope of the criterion rises."""
    before = np.zeros(len(slope)) if last is None else np.abs(last)
    return 1.0 / np.sqrt(np.where(np.abs(slope) > before, 1.0 + np.abs(slope), 1.0))


def least_norm_weighting(H, slope, J, e):
    """GWLN: C (n, n), the root of a weight along the gradient, in a basis that begins with it.

    As published: T = [g; K], J_v = J T^+, W = diag(w, 1, ...), dq = T^+ W J_v^T (J_v W J_v^T)^-1 e.
    """
    n = len(slope)
    if not np.linalg.norm(slope) > 0.0:
        return np.eye(n)
    T = np.linalg.qr(np.column_stack([slope, np.eye(n)]))[0].T * -1.0
    T[0] *= np.sign(T[0] @ slope)
    first = (np.linalg.pinv(J @ T.T, rcond=1e-12) @ e)[0]
    d = max(0.0, (H + 2.0) + first - 20.0)
    W = np.diag([max(1e4 / (1e4 + d**4), 1e-12), *np.ones(n - 1)])
    return T.T @ np.sqrt(W) @ T


def secondary_damping(o, square):
    """Return lambda^2 of the inverse of a row of this squared length, by numerical filtering."""
    share = square / o.epsilon**2
    return max(0.0, 1.0 - share) * o.lambda_max**2


def solved_objective(o, H, row):
    """SRTP: J_c^* x, the damped solution of J_c dq = -mu |H| (Chiaverini 1997, (34))."""
    square = row @ row
    below = square + secondary_damping(o, square)
    return -o.mu * abs(H) / below * row if below > 0.0 else 0.0 * row


def avoiding(o, d, row, P, J, e):
    """Return z of AVOID, for the distance d of the obstacle and its derivative `row` (n,)."""
    far, near = o.influence, 0.5 * o.influence
    gain = 0.5 * (1.0 + np.cos(np.pi * np.clip((d - near) / (far - near), 0.0, 1.0)))
    x = o.mu * near * np.clip((near / d) ** 2 - 1.0, 0.0, 1.0)
    freed = row @ (np.eye(len(row)) - P @ J) @ row
    if gain == 0.0 or freed <= 1e-12 * (row @ row):
        return np.zeros(len(row))
    return gain * (x - row @ P @ e) / (freed + secondary_damping(o, freed)) * row


def intermediate(h, z, J, e, inverse):
    """Return the motions x (n,) of IDV, computed recursively: x_j = z_j + (1 - h_j) dq_j.

    The step dq is that without the limit task of joint j.

    Args:
        h: (n,) activations of the joint limits.
        z: (n,) desired motions, which include the factor h.
        J: (r, n) Jacobian.
        e: (r,) error.
        inverse: Returns P (n, r) of the free joints, for a mask (n,) of the held joints.
    """

    @cache
    def step(tasks):
        x, held = values(tasks)
        return x + inverse(held) @ (e - J @ x)

    def values(tasks):
        x, held = np.zeros(len(h)), np.zeros(len(h), bool)
        for j in tasks:
            others = tuple(k for k in tasks if k != j)
            x[j] = z[j] + ((1.0 - h[j]) * step(others)[j] if h[j] < 1.0 else 0.0)
            held[j] = True
        return x, held

    return values(tuple(np.flatnonzero(h)))[0]
