"""Rigorous least and largest distances between a point of the base and one of the tip."""

from math import sqrt

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.elements import Elements
from dls_ik.model.extremes import largest
from dls_ik.model.forms import negative, squared_distance

ORIGIN = np.zeros(3)


def farthest(elements: Elements, base: Array, tip: Array) -> float:
    """A bound from above on the distance of two points (3,).

    Where too many joints matter, over a point on an axis halfway: the sum of both parts'.
    """
    squared = largest(elements, squared_distance(base, tip))
    half = len(elements.prismatic) // 2
    if squared < np.inf or half == 0:
        return sqrt(max(squared, 0.0))
    before, after = elements.split(half)
    return farthest(before, base, ORIGIN) + farthest(after, ORIGIN, tip)


def nearest(elements: Elements, base: Array, tip: Array) -> float:
    """A bound from below; over a point halfway what one part has more than the other can."""
    squared = -largest(elements, negative(squared_distance(base, tip)))
    half = len(elements.prismatic) // 2
    if squared > -np.inf or half == 0:
        return sqrt(max(squared, 0.0))
    before, after = elements.split(half)
    first, second = (before, base, ORIGIN), (after, ORIGIN, tip)
    gained = max(nearest(*first) - farthest(*second), nearest(*second) - farthest(*first))
    return max(gained, 0.0)
