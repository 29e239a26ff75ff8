"""The WAM's forward kinematics once more, to check answers without the package itself."""

from __future__ import annotations

from math import cos, pi, sin
from typing import Any

Matrix = list[list[float]]  # 4 x 4, [m] in the last column

# a [m], alpha [rad], d [m] of each joint: Table IV of Colome and Torras.
ROWS = (
    (0.0, -pi / 2, 0.0),
    (0.0, pi / 2, 0.0),
    (0.045, -pi / 2, 0.55),
    (-0.045, pi / 2, 0.0),
    (0.0, -pi / 2, 0.3),
    (0.0, pi / 2, 0.0),
    (0.0, 0.0, 0.06),
)
TARGET = (-0.3, 0.5, 0.4, 1.5, -0.6, 0.4, 0.2)  # joint values [rad] whose pose is asked for
SEED = (0.0, 0.6, 0.0, 1.6, 0.0, 0.5, 0.0)
CLOSE = 1e-4  # largest entry of the difference of two poses; the default tolerances are below
LIMITS = ((-2.6, 2.6), (-2.0, 2.0), (-2.8, 2.8), (-0.9, 3.1), (-4.8, 1.3), (-1.6, 1.6), (-2.2, 2.2))


def fk(q: Any) -> Matrix:
    """The pose of the tip, ``T_base_tip``, for 7 joint values [rad]."""
    T = [[float(i == j) for j in range(4)] for i in range(4)]
    for (a, alpha, d), theta in zip(ROWS, q, strict=True):
        c, s, ca, sa = cos(theta), sin(theta), cos(alpha), sin(alpha)
        A = [
            [c, -s * ca, s * sa, a * c],
            [s, c * ca, -c * sa, a * s],
            [0.0, sa, ca, d],
            [0.0, 0.0, 0.0, 1.0],
        ]
        T = [[sum(T[i][k] * A[k][j] for k in range(4)) for j in range(4)] for i in range(4)]
    return T


def objection(q: list[float]) -> str:
    """What is wrong with an answer to the pose of TARGET; empty if nothing is."""
    if len(q) != len(ROWS):
        return f"{len(q)} joint values instead of {len(ROWS)}"
    if not all(low - 1e-9 <= x <= high + 1e-9 for x, (low, high) in zip(q, LIMITS, strict=True)):
        return f"outside the joint limits: {q}"
    rows = zip(fk(q), fk(TARGET), strict=True)
    off = max(abs(x - y) for one, other in rows for x, y in zip(one, other, strict=True))
    return "" if off <= CLOSE else f"the pose is off by {off:.2g}"
