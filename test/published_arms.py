# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Denavit-Hartenberg tables of real arms, as published; ``test/urdf`` has the same arms as URDFs.

Lengths are in metres. The URDFs name their sources; tables and files are compared in
``test/model/test_published_arms.py``.
"""

from math import inf, pi, radians
from typing import NamedTuple

import numpy as np
from oracle import rigid, rotation

HALF = pi / 2


class Row(NamedTuple):
    """Joint, or fixed transform, by the convention of the table."""

    a: float
    alpha: float
    d: float
    theta: float
    lower: float = -inf
    upper: float = inf
    kind: str = "revolute"  # also "continuous", "prismatic", "fixed"


class Arm(NamedTuple):
    """Table of an arm; ``modified`` is Craig's convention, with a and alpha before the joint."""

    rows: tuple[Row, ...]
    modified: bool = False

    @property
    def joints(self):
        return [row for row in self.rows if row.kind != "fixed"]

    def pose(self, q):
        """(..., 4, 4) of the last frame in the first one at q (..., n), the product of the rows."""
        columns, T = iter(np.moveaxis(np.asarray(q, float), -1, 0)), np.eye(4)
        for row in self.rows:
            value = np.zeros(()) if row.kind == "fixed" else next(columns)
            slides = row.kind == "prismatic"
            turn = _screw(row.theta + value * (not slides), row.d + value * slides)
            link = rigid(rotation([1, 0, 0], row.alpha), [row.a, 0, 0])
            T = T @ (link @ turn if self.modified else turn @ link)
        return T


def _screw(theta, d):
    """(..., 4, 4) about and along z."""
    T = np.tile(np.eye(4), (*theta.shape, 1, 1))
    T[..., 0, 0], T[..., 0, 1] = np.cos(theta), -np.sin(theta)
    T[..., 1, 0], T[..., 1, 1] = np.sin(theta), np.cos(theta)
    T[..., 2, 3] = d
    return T


def _within(rows, *degrees, **options):
    """Rows of revolute joints with their limits, one number for both or two."""
    pairs = [limit if isinstance(limit, tuple) else (-limit, limit) for limit in degrees]
    limited = (Row(*row, *map(radians, pair)) for row, pair in zip(rows, pairs, strict=True))
    return Arm(tuple(limited), **options)


def _with_flange(arm, *row):
    return arm._replace(rows=(*arm.rows, Row(*row, kind="fixed")))


def _universal(d1, a2, a3, d4, d5, d6):
    rows = [(0, HALF, d1, 0), (a2, 0, 0, 0), (a3, 0, 0, 0)]
    rows += [(0, HALF, d4, 0), (0, -HALF, d5, 0), (0, 0, d6, 0)]
    return _within(rows, *[360] * 6)


def _seven(d1, d3, d5, d7):
    """Shoulder, elbow and wrist without offsets."""
    twists, lengths = (-HALF, HALF, HALF, -HALF, -HALF, HALF, 0), (d1, 0, d3, 0, d5, 0, d7)
    return [(0, alpha, d, 0) for alpha, d in zip(twists, lengths, strict=True)]


_fr3 = [(0, 0, 0.333, 0), (0, -HALF, 0, 0), (0, HALF, 0.316, 0), (0.0825, HALF, 0, 0)]
_fr3 += [(-0.0825, -HALF, 0.384, 0), (0, HALF, 0, 0), (0.088, HALF, 0, 0)]
_fr3_lower = (-2.7437, -1.7837, -2.9007, -3.0421, -2.8065, 0.5445, -3.0159)
_fr3_upper = (2.7437, 1.7837, 2.9007, -0.1518, 2.8065, 4.5169, 3.0159)

_sawyer = [(0.081, -HALF, 0.317, 0), (0, -HALF, 0.1925, -HALF), (0, HALF, 0.4, 0)]
_sawyer += [(0, -HALF, -0.1685, 0), (0, HALF, 0.4, 0), (0, -HALF, 0.1363, 0), (0, 0, 0.13375, 0)]
_sawyer_lower = (-3.0503, -3.8095, -3.0426, -3.0439, -2.9761, -2.9761, -4.7124)
_sawyer_upper = (3.0503, 2.2736, 3.0426, 3.0439, 2.9761, 2.9761, 4.7124)

_baxter = [(0, 0, 0, 0), (0.069, -HALF, 0, HALF), (0, HALF, 0.36435, 0), (0.069, -HALF, 0, 0)]
_baxter += [(0, HALF, 0.37429, 0), (0.01, -HALF, 0, 0), (0, HALF, 0, 0)]

_xarm7 = [(0, -HALF, 0.267, 0), (0, HALF, 0, 0), (0.0525, HALF, 0.293, 0), (0.0775, HALF, 0, 0)]
_xarm7 += [(0, HALF, 0.3425, 0), (0.076, -HALF, 0, 0), (0, 0, 0.097, 0)]

_irb140 = [(0.07, -HALF, 0.352, 0), (0.36, 0, 0, -HALF), (0, -HALF, 0, 0)]
_irb140 += [(0, HALF, 0.38, 0), (0, -HALF, 0, 0), (0, 0, 0.065, 0)]

_tx60 = [(0, -HALF, 0.375, 0), (0.29, 0, 0.02, -HALF), (0, HALF, 0, HALF)]
_tx60 += [(0, -HALF, 0.31, 0), (0, HALF, 0, 0), (0, 0, 0.07, 0)]

_youbot = [(0.033, HALF, 0.147, 0), (0.155, 0, 0, HALF), (0.135, 0, 0, 0)]
_youbot += [(0, HALF, 0, HALF), (0, 0, 0.2175, 0)]

_lwr = _within(_seven(0.3105, 0.4, 0.39, 0.078), 170, 120, 170, 120, 170, 120, 170)

_TURN, _SLIDE = {"kind": "continuous"}, {"kind": "prismatic"}

ARMS = {
    "ur5e": _universal(0.1625, -0.425, -0.3922, 0.1333, 0.0997, 0.0996),
    "ur10e": _universal(0.1807, -0.6127, -0.57155, 0.17415, 0.11985, 0.11655),
    "fr3": _with_flange(
        Arm(tuple(map(Row, *zip(*_fr3, strict=True), _fr3_lower, _fr3_upper)), modified=True),
        *(0, 0, 0.107, 0),
    ),
    "iiwa14": _within(_seven(0.36, 0.42, 0.4, 0.126), 170, 120, 170, 120, 170, 120, 175),
    "gen3": Arm(
        (
            Row(0, pi, 0, 0, kind="fixed"),
            Row(0, HALF, -0.2848, 0, **_TURN),
            Row(0, HALF, -0.0118, pi, radians(-128.9), radians(128.9)),
            Row(0, HALF, -0.4208, pi, **_TURN),
            Row(0, HALF, -0.0128, pi, radians(-147.8), radians(147.8)),
            Row(0, HALF, -0.3143, pi, **_TURN),
            Row(0, HALF, 0, pi, radians(-120.3), radians(120.3)),
            Row(0, pi, -0.1674, pi, **_TURN),
        )
    ),
    "sawyer": Arm(tuple(map(Row, *zip(*_sawyer, strict=True), _sawyer_lower, _sawyer_upper))),
    "baxter": _with_flange(
        _within(
            *(_baxter, 97.494, (-123, 60), 174.987, (-2.864, 150), 175.25, (-90, 120), 175.25),
            modified=True,
        ),
        *(0, 0, 0.3683, 0),
    ),
    "xarm7": _within(_xarm7, 360, (-118, 120), 360, (-11, 225), 360, (-97, 180), 360),
    "irb140": _within(_irb140, 180, (-90, 110), (-230, 50), 200, 115, 400),
    "tx60": _within(_tx60, 180, 127.5, 142.5, 270, (-122.5, 132.5), 270),
    "stanford": Arm(
        (
            Row(0, -HALF, 0.412, 0, radians(-170), radians(170)),
            Row(0, HALF, 0.154, 0, radians(-170), radians(170)),
            Row(0, 0, 0, -HALF, 0.3048, 1.27, **_SLIDE),
            Row(0, -HALF, 0, 0, radians(-170), radians(170)),
            Row(0, HALF, 0, 0, radians(-90), radians(90)),
            Row(0, 0, 0.263, 0, radians(-170), radians(170)),
        )
    ),
    "cobra600": Arm(
        (
            Row(0.325, 0, 0.387, 0, radians(-105), radians(105)),
            Row(0.275, pi, 0, 0, radians(-150), radians(150)),
            Row(0, 0, 0, 0, 0, 0.21, **_SLIDE),
            Row(0, 0, 0, 0, radians(-360), radians(360)),
        )
    ),
    "youbot": _within(_youbot, 169, (-65, 90), (-151, 146), 102.5, 167.5),
    "fetch": Arm(
        (
            Row(0.03265, 0, 0.72601, 0, 0, 0.38615, **_SLIDE),
            Row(0.117, -HALF, 0.06, 0, -1.6056, 1.6056),
            Row(0, HALF, 0, HALF, -1.221, 1.518),
            Row(0, -HALF, 0.352, 0, **_TURN),
            Row(0, HALF, 0, 0, -2.251, 2.251),
            Row(0, -HALF, 0.3215, 0, **_TURN),
            Row(0, HALF, 0, 0, -2.16, 2.16),
            Row(0, 0, 0.30495, 0, **_TURN),
        )
    ),
    "column_lwr": _lwr._replace(
        rows=(
            Row(0, 0, 0.5, 0, 0, 0.6, **_SLIDE),
            Row(0.15, HALF, 0.1, 0, radians(-160), radians(160)),
            *_lwr.rows,
        )
    ),
}
