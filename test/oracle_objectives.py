# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of null-space objectives: H(q) and its gradient.

Chan & Dubey 1995 (limits), Liegeois 1977 (centring), Yoshikawa 1985 (manipulability), Deo & Walker
1993, section 5 (posture, obstacle).
"""

from itertools import pairwise

import numpy as np
from oracle import rigid, rotation

CAP = 1e6  # of each term of `limits` and of its slope


def both(robot):
    """The joints with two limits."""
    return np.flatnonzero(np.isfinite(robot.upper - robot.lower))


def value(o, rows, q, T_d=None):
    """H(q).

    Args:
        rows: an ``oracle_task.Rows``: the task, and the robot.
    """
    robot = rows.robot
    if o.objective == "limits":
        return limits_value(robot, q)
    j = both(robot)
    lower, upper = robot.lower[j], robot.upper[j]
    if o.objective == "centring":
        return np.sum(((2 * q[j] - upper - lower) / (upper - lower)) ** 2) / (2 * robot.n)
    if o.objective == "manipulability":
        return -manipulability(rows.jacobian(q, T_d))
    if o.objective == "posture":
        return 0.5 * np.sum((q - reference(o, robot)) ** 2)
    return 0.5 * sum(max(0.0, 1.0 - d / o.influence) ** 2 for d in distances(o, robot, q))


def limits_value(robot, q):
    """H(q) of `limits`."""
    j = both(robot)
    lower, upper = robot.lower[j], robot.upper[j]
    product = (upper - q[j]) * (q[j] - lower)
    with np.errstate(divide="ignore"):
        terms = ((upper - lower) ** 2 / product - 4.0) / (2 * robot.n)
    return np.sum(np.clip(terms, -CAP, CAP))


def gradient(o, rows, q, T_d=None):
    """(n,)."""
    robot = rows.robot
    found = np.zeros(robot.n)
    j = both(robot)
    lower, upper = robot.lower[j], robot.upper[j]
    if o.objective == "limits":
        return limits_gradient(robot, q)
    if o.objective == "centring":
        found[j] = (2 * q[j] - upper - lower) / (upper - lower) ** 2 * 2 / robot.n
        return found
    if o.objective == "posture":
        return q - reference(o, robot)
    h = 1e-5
    for i, step in enumerate(h * np.eye(robot.n)):
        found[i] = value(o, rows, q + step, T_d) - value(o, rows, q - step, T_d)
    return found / (2 * h)


def limits_gradient(robot, q):
    """(n,): as the public code of Colome & Torras has it, for GP and JW, never above the cap."""
    found = np.zeros(robot.n)
    for j in both(robot):
        lower, upper = robot.lower[j], robot.upper[j]
        above = (upper - lower) ** 2 * (2 * q[j] - upper - lower) / (2 * robot.n)
        below = (upper - q[j]) ** 2 * (q[j] - lower) ** 2
        found[j] = np.sign(above) * (CAP if below == 0.0 else min(CAP, abs(above) / below))
    return found


def manipulability(J):
    return np.prod(np.linalg.svd(J)[1])


def reference(o, robot):
    if o.reference is not None:
        return np.array(o.reference)
    middle = np.zeros(robot.n)
    j = both(robot)
    middle[j] = 0.5 * (robot.lower[j] + robot.upper[j])
    return middle


def distances(o, robot, q):
    """Of the obstacle from each link, from an element's origin to the next one's, or to the tip."""
    return [
        to_segment(np.array(o.obstacle), *ends)
        for points in paths(robot.chain, q)
        for ends in pairwise(points)
    ]


def closest(o, robot, q):
    """Return the distance of the obstacle from the closest link, and its derivative (n,) by q."""
    h, link = 1e-5, int(np.argmin(distances(o, robot, q)))
    steps = h * np.eye(robot.n)
    ahead = [
        distances(o, robot, q + step)[link] - distances(o, robot, q - step)[link] for step in steps
    ]
    return distances(o, robot, q)[link], np.array(ahead) / (2.0 * h)


def to_segment(x, a, b):
    along = b - a
    t = np.clip(along @ (x - a) / (along @ along), 0.0, 1.0) if along.any() else 0.0
    return np.linalg.norm(x - a - t * along)


def paths(chain, q):
    """For each tip the origins of its elements' frames, before they move, and of the tip."""
    found = []
    for tip, (first, end) in enumerate(zip(chain.first[:-1], chain.first[1:], strict=True)):
        T, points = np.eye(4), []
        for k in range(first, end):
            T = T @ _square(chain.fixed[k + tip])
            points.append(T[:3, 3])
            way = chain.scale[k] * q[chain.variable[k]] + chain.offset[k]
            slide, turn = (way, 0.0) if chain.prismatic[k] else (0.0, way)
            T = T @ rigid(rotation([0, 0, 1], turn), [0.0, 0.0, slide])
        T = T @ _square(chain.fixed[end + tip])
        found.append([*points, T[:3, 3]])
    return found


def _square(T):
    return np.vstack([T, [0.0, 0.0, 0.0, 1.0]])
