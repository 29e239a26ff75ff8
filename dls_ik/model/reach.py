"""Which numbers of a pose to bound for a robot, and their bounds: once a robot."""

import logging
from typing import NamedTuple

import numpy as np

from dls_ik.core.reach_bounds import DISTANCE, HEIGHT, LEAN, MOMENT, Reach
from dls_ik.core.types import Array, Chain
from dls_ik.model.distances import farthest, nearest
from dls_ik.model.elements import Elements, elements_of, end_axes
from dls_ik.model.extremes import Budget, largest
from dls_ik.model.forms import Form, height, lean, moment, negative, squared_distance
from dls_ik.model.telling import telling_sides

LOG = logging.getLogger("dls_ik")
GIVEN_UP = (
    "bounds on what {} joints reach would take too long and are partly given up: what is out of "
    "reach may be searched for until the timeout, instead of being UNREACHABLE"
)
APART = (0.3, 1.0, 3.0)  # of the arm's length: of points on an axis from the first one


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
    second, and about one at most: bounds of very many joints are given up, with a word in the log.

    Args:
        tip: Which of the chain's tips.
        position_only: Only the position of a pose counts, its rotation may be any.
    """
    elements = elements_of(chain, tip)
    unit = elements.length or 1.0  # [m]
    elements = elements.scaled(1.0 / unit)
    plain, further = _readings(elements, position_only)
    readings = plain + further
    sides = telling_sides(elements, [reading.form for reading in readings], len(plain))
    rows = [readings[i] for i, _ in sides]
    kind = np.array([reading.kind for reading in rows], np.int64)
    units = np.where(kind == LEAN, 1.0, unit)
    metres = np.array([[1.0], [unit]])  # of a unit vector and a point
    tip_lines = np.array([reading.tip for reading in rows]).reshape(-1, 2, 3) * metres
    budget = Budget()
    ranges = [_range(elements, readings[i], wanted, budget) for i, wanted in sides]
    if budget.is_spent:
        LOG.warning(GIVEN_UP.format(len(elements.prismatic)))
    return Reach(
        kind=kind,
        base=np.array([reading.base for reading in rows]).reshape(-1, 2, 3) * metres,
        tip=tip_lines,
        radius=np.linalg.norm(tip_lines[:, 1], axis=1),
        least=units * [least for least, _ in ranges],
        largest=units * [largest for _, largest in ranges],
    )


def _readings(elements: Elements, position_only: bool) -> tuple[list[Reading], list[Reading]]:
    """Numbers that few joints change: points on the first and the last axis, and the axes.

    A point on the last axis is one of the tip's that the last joint does not move. For positions
    alone it is the tip's origin.

    Returns:
        Of one point on each axis, and of further points on one of them.
    """
    first, last = end_axes(elements)
    b, a = first[1], last[0]
    tip = np.array([a, np.zeros(3)]) if position_only else last
    bases = [np.array([direction, b]) for direction in elements.fixed[0, :3, :3].T[::-1]]
    plain = [_distance(first, tip), *(_height(base, tip) for base in bases)]
    further = [_distance(base, tip) for base in _along(first)]
    if not position_only:
        plain += [Reading(LEAN, base, last, lean(base[0], a)) for base in bases]
        plain += [Reading(MOMENT, first, last, moment(first, last))]
        for beyond in _along(last):
            further += [_distance(first, beyond), _height(first, beyond)]
    return plain, further


def _distance(base: Array, tip: Array) -> Reading:
    return Reading(DISTANCE, base, tip, squared_distance(base[1], tip[1]))


def _height(base: Array, tip: Array) -> Reading:
    return Reading(HEIGHT, base, tip, height(base, tip[1]))


def _along(line: Array) -> Array:
    """The line's (2, 3) unit vector with points further along either way, (b, 2, 3)."""
    shifts = np.array([*APART, *(-step for step in APART)])
    lines: Array = line + shifts[:, None, None] * np.array([np.zeros(3), line[0]])
    return lines


def _range(
    elements: Elements, reading: Reading, wanted: tuple[bool, bool], budget: Budget
) -> tuple[float, float]:
    """The bounds from below and above, each if it is wanted."""
    if reading.kind == DISTANCE:
        points = reading.base[1], reading.tip[1]
        return (
            nearest(elements, *points, budget) if wanted[0] else 0.0,
            farthest(elements, *points, budget) if wanted[1] else np.inf,
        )
    below = largest(elements, negative(reading.form), budget) if wanted[0] else np.inf
    return -below, largest(elements, reading.form, budget) if wanted[1] else np.inf
