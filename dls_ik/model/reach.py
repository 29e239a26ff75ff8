"""Which numbers of a pose to bound for a robot, and their bounds: once a robot."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dls_ik.core.reach_bounds import DISTANCE, HEIGHT, LEAN, MOMENT, Reach
from dls_ik.core.types import Array, Chain
from dls_ik.model.distances import farthest, nearest
from dls_ik.model.elements import Elements, elements_of, end_axes
from dls_ik.model.extremes import largest
from dls_ik.model.forms import Form, height, lean, moment, negative, squared_distance
from dls_ik.model.telling import telling_sides

APART = 0.3  # of the arm's length: between points on one axis


class Reading(NamedTuple):
    """A number of a pose, of a unit vector and a point (2, 3) of the base and of the tip.

    Lengths are in units of the arm's.
    """

    kind: int  # one of core/reach_bounds.py
    base: Array
    tip: Array
    form: Form


def build_reach(chain: Chain, tip: int = 0, position_only: bool = False) -> Reach:
    """Bounds that every configuration within the limits satisfies, of one tip.

    Of the numbers that may be bounded those are that seem to refuse most; takes some tenths of a
    second.

    Args:
        tip: Which of the chain's tips.
        position_only: Only the position of a pose counts, its rotation may be any.
    """
    elements = elements_of(chain, tip)
    unit = elements.length or 1.0  # [m]
    elements = elements.scaled(1.0 / unit)
    readings = list(_readings(elements, position_only))
    sides = telling_sides(elements, [reading.form for reading in readings])
    rows = [readings[i] for i, _ in sides]
    kind = np.array([reading.kind for reading in rows], np.int64)
    units = np.where(kind == LEAN, 1.0, unit)
    metres = np.array([[1.0], [unit]])  # of a unit vector and a point
    tip_lines = np.array([reading.tip for reading in rows]).reshape(-1, 2, 3) * metres
    ranges = [_range(elements, readings[i], wanted) for i, wanted in sides]
    return Reach(
        kind=kind,
        base=np.array([reading.base for reading in rows]).reshape(-1, 2, 3) * metres,
        tip=tip_lines,
        radius=np.linalg.norm(tip_lines[:, 1], axis=1),
        least=units * [least for least, _ in ranges],
        largest=units * [largest for _, largest in ranges],
    )


def _readings(elements: Elements, position_only: bool) -> Iterator[Reading]:
    """Numbers that few joints change: points on the first and the last axis, and the axes.

    A point on the last axis is one of the tip's that the last joint does not move. For positions
    alone it is the tip's origin.
    """
    first, last = end_axes(elements)
    (n, b), a = first, last[0]
    tips = np.array([a, np.zeros(3)])[None] if position_only else _along(last, APART)
    pairs = [(first, tip) for tip in tips] + [(base, tips[0]) for base in _along(first, APART)[1:]]
    for base, tip in pairs:
        yield Reading(DISTANCE, base, tip, squared_distance(base[1], tip[1]))
    for direction in elements.fixed[0, :3, :3].T[::-1]:
        base = np.array([direction, b])
        for tip in tips if np.allclose(direction, n) else tips[:1]:
            yield Reading(HEIGHT, base, tip, height(base, tip[1]))
        if not position_only:
            yield Reading(LEAN, base, last, lean(direction, a))
    if not position_only:
        yield Reading(MOMENT, first, last, moment(first, last))


def _along(line: Array, step: float) -> Array:
    """The line's (2, 3) unit vector and point, and with points a step further either way."""
    shifts = step * np.array([0.0, -1.0, 1.0])[:, None, None]
    lines: Array = line + shifts * np.array([np.zeros(3), line[0]])
    return lines


def _range(elements: Elements, reading: Reading, wanted: tuple[bool, bool]) -> tuple[float, float]:
    """The bounds from below and above, each if it is wanted."""
    if reading.kind == DISTANCE:
        points = reading.base[1], reading.tip[1]
        return (
            nearest(elements, *points) if wanted[0] else 0.0,
            farthest(elements, *points) if wanted[1] else np.inf,
        )
    below = largest(elements, negative(reading.form)) if wanted[0] else np.inf
    return -below, largest(elements, reading.form) if wanted[1] else np.inf
