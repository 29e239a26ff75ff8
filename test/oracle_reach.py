# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Naive oracle of reach bounds: bounded quantities of a pose, and whether a pose exceeds them."""

import numpy as np
from oracle import rigid
from oracle import rotation as rotation_about

from dls_ik.core.reach_bounds import DISTANCE, HEIGHT, LEAN, UNIT_VECTOR_ERROR


def numbers(reach, T):
    """The numbers (k,) that a Reach has bounds on, of a pose (4, 4)."""
    return np.array(
        [number(*row, T) for row in zip(reach.kind, reach.base, reach.tip, strict=True)]
    )


def number(kind, base, tip, T):
    (n, b), a, p = base, T[:3, :3] @ tip[0], T[:3, :3] @ tip[1] + T[:3, 3]
    if kind == DISTANCE:
        return np.linalg.norm(p - b)
    if kind == HEIGHT:
        return n @ (p - b)
    return n @ a if kind == LEAN else n @ np.cross(p - b, a)


def slacks(reach, T, position, rotation):
    """By how much (k,) tolerances can change them."""
    turn, slack = rotation + UNIT_VECTOR_ERROR, []
    for kind, (_, b), (_, r) in zip(reach.kind, reach.base, reach.tip, strict=True):
        moved = position + turn * np.linalg.norm(r)
        arm = np.linalg.norm(T[:3, :3] @ r + T[:3, 3] - b)
        slack.append({DISTANCE: moved, HEIGHT: moved, LEAN: turn}.get(kind, moved + turn * arm))
    return np.array(slack)


def beyond(reach, T, position, rotation):
    found, slack = numbers(reach, T), slacks(reach, T, position, rotation)
    return bool(((found < reach.least - slack) | (found > reach.largest + slack)).any())


def random_pose(rng, reach=1.0):
    """A pose (4, 4) turned in any way, in a box of half-side reach."""
    T = np.eye(4)
    T[:3, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    T[:3, 0] *= np.linalg.det(T[:3, :3])
    T[:3, 3] = rng.uniform(-reach, reach, 3)
    return T


def moved(T, rng, length, angle):
    """A pose moved by a length [m] and turned by an angle [rad], in random directions."""

    shift, axis = rng.normal(size=(2, 3))
    shift *= length / np.linalg.norm(shift)
    return rigid(rotation_about(axis, angle) @ T[:3, :3], T[:3, 3] + shift)
