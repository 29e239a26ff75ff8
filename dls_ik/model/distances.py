"""Rigorous least and largest distances between a point of the base and one of the tip."""

from math import sqrt

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.elements import Elements
from dls_ik.model.extremes import Budget, largest
from dls_ik.model.forms import negative, squared_distance

ORIGIN = np.zeros(3)


def farthest(elements: Elements, base: Array, tip: Array, budget: Budget) -> float:
    """A bound from above on the distance of two points (3,).

    Where too many joints matter, over a point on an axis halfway: the sum of both parts'. Where the
    budget is spent, the length of the arm.
    """
    squared = largest(elements, squared_distance(base, tip), budget)
    half = len(elements.prismatic) // 2
    if budget.is_spent and squared == np.inf:
        return _stretched(elements, base, tip)
    if squared < np.inf or half == 0:
        return sqrt(max(squared, 0.0))
    before, after = elements.split(half)
    return farthest(before, base, ORIGIN, budget) + farthest(after, ORIGIN, tip, budget)


def nearest(elements: Elements, base: Array, tip: Array, budget: Budget) -> float:
    """A bound from below; over a point halfway what one part has more than the other can.

    Zero where the budget is spent.
    """
    squared = -largest(elements, negative(squared_distance(base, tip)), budget)
    half = len(elements.prismatic) // 2
    if squared > -np.inf or half == 0 or budget.is_spent:
        return sqrt(max(squared, 0.0))
    before, after = elements.split(half)
    first, second = (before, base, ORIGIN), (after, ORIGIN, tip)
    gained = max(
        nearest(*first, budget) - farthest(*second, budget),
        nearest(*second, budget) - farthest(*first, budget),
    )
    return max(gained, 0.0)


def _stretched(elements: Elements, base: Array, tip: Array) -> float:
    """As if all links lay in a line."""
    slides = elements.prismatic
    if not np.isfinite([elements.lower[slides], elements.upper[slides]]).all():
        return np.inf
    return float(np.linalg.norm(base) + elements.length + np.linalg.norm(tip))
