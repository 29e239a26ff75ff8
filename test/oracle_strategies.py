"""Limit strategies, the long way: how far each joint is held, and the motion asked of it.

Colome & Torras 2012, (5), (6) and Table III.
"""

import numpy as np


def activation(q, lower, upper, margin):
    """0 free, 1 held (Mansard, Remazeilles & Chaumette 2009)."""
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
    """How far each joint is held, and the motion asked of it: h, z."""
    h, z = np.zeros(robot.n), np.zeros(robot.n)
    if strategy in ("jc", "active"):
        push = J.T @ e
        h[((q >= robot.upper) & (push > 0)) | ((q <= robot.lower) & (push < 0))] = 1.0
    if strategy in ("ctp", "tp"):
        h = activation(q, robot.lower, robot.upper, o.margin)
        if following and strategy == "ctp":
            return h * pushed_outward(robot, q, J, e), z
        near = np.flatnonzero(h)
        z[near] = -h[near] * o.mu * (q[near] - 0.5 * (robot.lower[near] + robot.upper[near]))
        h = np.ceil(h) if strategy == "tp" else h
    return h, z


def pushed_outward(robot, q, J, e):
    """How much the error pushes each joint to its nearer limit: 1 beyond it, or from 0.1 on."""
    lower, upper = robot.finite_limits()
    outward = np.sign(q - 0.5 * (lower + upper))
    cosine = outward * (J.T @ e) / (np.linalg.norm(J, axis=0) * np.linalg.norm(e))
    return np.where(robot.clip(q) == q, np.clip(cosine / 0.1, 0.0, 1.0), 1.0)


def weighting(slope, last):
    """JW: c = W^(-1/2), heavier joints where the criterion's slope is rising."""
    before = np.zeros(len(slope)) if last is None else np.abs(last)
    return 1.0 / np.sqrt(np.where(np.abs(slope) > before, 1.0 + np.abs(slope), 1.0))
