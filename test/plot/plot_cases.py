# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robots and motions to draw, and what holds for every picture."""

import re

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.legend import Legend
from matplotlib.text import Text
from robots import URDF, joint, urdf

from dls_ik.model import RobotModel
from dls_ik.model.dh import DhRow

RAIL = '<limit lower="0" upper="0.5" effort="1" velocity="1"/>'
MIXED = urdf(
    "a b c d",
    joint("turns", "continuous", "a", "b", ""),
    joint("slides", "prismatic", "b", "c", RAIL),
    joint("swings", "revolute", "c", "d"),
)
WAM = RobotModel.wam()
PLANAR = RobotModel.from_name("planar_2r")
ROBOTS = {"wam": WAM, "planar": PLANAR, "mixed": RobotModel.from_urdf(MIXED)}
TWO_TIPS = RobotModel.from_urdf(URDF / "y_shape.urdf", tip=("E0", "E1"))
SIGNATURES = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}


def arm_of(n):
    """Some joints of all kinds, every second one with a long name."""
    kinds = ("revolute", "prismatic", "continuous")
    rows = [
        DhRow(
            a=0.1,
            alpha=0.5 * (i % 3),
            kind=kinds[i % 3],
            **({} if i % 3 == 2 else {"lower": -1.5, "upper": 0.5}),
            velocity=(2.0, np.inf)[i % 2],
            name=f"joint_{i}_of_the_left_arm_in_the_back" if i % 2 else f"joint{i}",
        )
        for i in range(n)
    ]
    return RobotModel.from_dh(rows)


def swing(robot, count=50):
    """Times, and joint values that swing about mid-range."""
    times = np.linspace(0.0, 5.0, count)
    lower, upper = robot.finite_limits()
    middle, reach = 0.5 * (lower + upper), 0.3 * (upper - lower)
    return times, middle + reach * np.sin(times)[:, None]


def texts(figure):
    """All words in a figure, in one line."""
    return " | ".join(text.get_text() for text in figure.findobj(Text) if text.get_text())


def labels(figure):
    """Labels of the axes of all panels."""
    return [
        label for axes in figure.axes for label in (axes.get_xlabel(), axes.get_ylabel()) if label
    ]


def assert_good(figure, units=True):
    """Check that a figure can be drawn without words cut off or overlapping, and has units."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    words = list(_shown(figure))
    boxes = np.array([text.get_window_extent(canvas.get_renderer()).extents for text in words])
    (x0, y0), (x1, y1) = boxes[:, :2].T, boxes[:, 2:].T
    width, height = canvas.get_width_height()
    whole = (x0 >= -1.0) & (y0 >= -1.0) & (x1 <= width + 1.0) & (y1 <= height + 1.0)
    for out in np.flatnonzero(~whole):
        pytest.fail(f"cut off: {words[out]}")
    for text in _shown_in_space(figure):
        left, bottom, right, top = text.get_window_extent(canvas.get_renderer()).extents
        if min(left, bottom, width - right, height - top) < -1.0:
            pytest.fail(f"cut off: {text}")
    across = np.minimum(x1[:, None], x1) - np.maximum(x0[:, None], x0)
    along = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0)
    for i, j in np.argwhere(np.triu((across > 1.0) & (along > 1.0), 1)):
        pytest.fail(f"{words[i]} is on {words[j]}")
    if units:
        assert all(re.search(r"\[.+\]$|^iteration$", label) for label in labels(figure)), labels(
            figure
        )


def _shown(figure):
    """Yield all words that are drawn, except at axes in space."""
    legends = [text for legend in figure.findobj(Legend) for text in legend.get_texts()]
    yield from _visible([*legends, *figure.texts])
    for axes in figure.axes:
        if axes.axison:
            yield from _visible(part for part in axes.get_children() if isinstance(part, Text))
        if axes.axison and axes.name != "3d":
            for axis in (axes.xaxis, axes.yaxis):
                low, high = sorted(axis.get_view_interval())
                at = axis.get_majorticklocs()
                ticks = zip(at, axis.get_major_ticks(len(at)), strict=True)
                yield from _visible(tick.label1 for at, tick in ticks if low <= at <= high)
                yield from _visible([axis.label])


def _shown_in_space(figure):
    """Yield the words at axes in space, which may overlap."""
    for axes in figure.axes:
        if axes.axison and axes.name == "3d":
            for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
                yield from _visible([axis.label])


def _visible(parts):
    return [part for part in parts if part.get_visible() and part.get_text().strip()]
