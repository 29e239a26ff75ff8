"""Planar chains of revolute joints, which three of the papers simulate.

Links lie along x at the zero position, joints turn about z, and the task is the position (x, y).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.dh import DhRow
from dls_ik.model.robot import RobotModel
from dls_ik.plot.arm import draw_arms
from dls_ik.plot.canvas import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def planar_robot(links: Sequence[float], name: str = "planar") -> RobotModel:
    """Return a chain in the x-y plane, with link lengths [m] and no joint limits."""
    return RobotModel.from_dh([DhRow(a=a, kind="continuous") for a in links], name=name)


def planar_joints(links: Sequence[float], q: Array) -> Array:
    """Return the base, the joints and the tip (..., n + 1, 2) of a chain at q (..., n)."""
    turned = np.cumsum(q, axis=-1)
    steps = np.array(links)[:, None] * np.stack([np.cos(turned), np.sin(turned)], axis=-1)
    ends = np.cumsum(steps, axis=-2)
    return np.concatenate([np.zeros_like(ends[..., :1, :]), ends], axis=-2)


def draw_planar_arms(axes: Axes, points: Array, colours: Sequence[Any]) -> None:
    """Draw configurations (k, n + 1, 2) in their plane, with the same scale along both axes."""
    draw_arms(axes, points, colours, 0.8)
    axes.set_aspect("equal", adjustable="datalim")
    plain(axes)
