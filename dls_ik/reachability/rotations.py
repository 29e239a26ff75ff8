"""Rotations spread evenly, the same ones for the same count."""

import numpy as np

from dls_ik.core.types import Array

# Alexa 2022: the two constants of the spiral; the second is the positive root of x^4 = x + 4.
PHI = np.sqrt(2.0)
PSI = 1.533751168755204288118041
GOLDEN_ANGLE = np.pi * (3.0 - np.sqrt(5.0))


def spread_rotations(count: int) -> Array:
    """Rotations (count, 3, 3) that fill SO(3) evenly: a super-Fibonacci spiral (Alexa 2022)."""
    s = np.arange(count) + 0.5
    small, large = np.sqrt(s / count), np.sqrt(1.0 - s / count)
    alpha, beta = 2.0 * np.pi * s / PHI, 2.0 * np.pi * s / PSI
    quaternions = np.stack(
        [small * np.sin(alpha), small * np.cos(alpha), large * np.sin(beta), large * np.cos(beta)]
    )
    return _matrices(quaternions)


def spread_directions(count: int) -> Array:
    """Rotations (count, 3, 3) whose z axes spread evenly: a Fibonacci lattice (Gonzalez 2010)."""
    k = np.arange(count)
    height = 1.0 - (2.0 * k + 1.0) / count
    turn, radius = GOLDEN_ANGLE * k, np.sqrt(1.0 - height**2)
    z = np.stack([radius * np.cos(turn), radius * np.sin(turn), height], axis=-1)
    aside = np.where(np.abs(z[:, :1]) < 0.5, [[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    y = np.cross(z, aside)
    y /= np.linalg.norm(y, axis=-1, keepdims=True)
    return np.stack([np.cross(y, z), y, z], axis=-1)


def _matrices(quaternions: Array) -> Array:
    """(b, 3, 3) from unit quaternions (4, b), x y z w."""
    x, y, z, w = quaternions
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
    ]
    return np.moveaxis(np.array(rows), -1, 0)
