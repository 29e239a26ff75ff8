"""Rigorous bounds on functionals and distances over all configurations within limits.

Lengths are in units of the arm's, so that tolerances are the same for every arm.

Branch and bound. A functional is affine in the point (cos q, sin q) or (q, q^2) of each joint
separately. An arc of these points lies in the triangle of its ends and its tangents' intersection,
a whole circle in one about it. Over a product of triangles a function that is affine in each takes
its extremes at corners: these bound the functional over the box of joint values. The excess falls
with the square of the width of the box.
"""

from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.joint import TURN
from dls_ik.model.reach.pose_functionals import (
    THIRDS,
    ChainProduct,
    Functional,
    PathElements,
    chain_product,
    squared_distance,
)

MOST_JOINTS = 5  # a box of d joints has 3^d corners
CORNERS = 10_000  # evaluated at a time
ROUNDS = 40
MOST_WORK = 12_000_000  # corners for all bounds of a robot, about a second; 1e6 for 7 joints
CALL = 4000  # corners that take as long as the overhead of a round
ENOUGH = 1e-9  # of the scale: distance of a bound from an attained value at which it is sharp
ROUNDING = 1e-10  # of the scale
WIDE = TURN / 3.0  # an arc beyond this has no triangle smaller than the circle's

ORIGIN = np.zeros(3)


class Budget:
    """Work that bounds may take; counted, not timed, so that bounds are the same everywhere."""

    def __init__(self, left: int = MOST_WORK) -> None:
        self.left = left  # corners to be evaluated

    def spend(self, boxes: int, joints: int) -> None:
        """Count the work for some boxes of so many joints."""
        self.left -= CALL + boxes * 3**joints

    @property
    def is_spent(self) -> bool:
        """True if the work is used up."""
        return self.left <= 0


class BoundedBoxes(NamedTuple):
    """b boxes of joint values, with bounds on the functional's values there."""

    lower: Array  # (b, d)
    upper: Array  # (b, d)
    bound: Array  # (b,) upper bound on the values in the box
    attained: Array  # (b,) a value in the box
    worst: NDArray[np.int64]  # (b,) the joint whose triangle adds most to the bound

    def rows(self, which: NDArray[np.int64] | slice) -> "BoundedBoxes":
        """Select some of the boxes."""
        parts: list[Any] = [each[which] for each in self]
        return BoundedBoxes(*parts)

    def and_more(self, others: "BoundedBoxes") -> "BoundedBoxes":
        """Append other boxes."""
        return BoundedBoxes(*(np.concatenate(pair) for pair in zip(self, others, strict=True)))


def upper_bound(elements: PathElements, functional: Functional, budget: Budget) -> float:
    """Bound a functional from above; infinite if more than MOST_JOINTS matter.

    The bound is also infinite if the budget is spent, and less sharp if it does not suffice.
    """
    if budget.is_spent:
        return np.inf
    product = chain_product(elements, functional)
    slides = product.prismatic
    bounded = np.isfinite([product.lower[slides], product.upper[slides]]).all()
    return maximum(product, budget) if bounded and len(slides) <= MOST_JOINTS else np.inf


def maximum(product: ChainProduct, budget: Budget) -> float:
    """Bound the functional from above, sharply if the rounds suffice."""
    d, scale = len(product.lower), product.functional.scale
    if d == 0:
        return float(product.row @ product.column) + ROUNDING * scale
    full = ~product.prismatic & ~(product.upper - product.lower < TURN)
    lower = np.where(full, -np.pi, product.lower)[None]
    upper = np.where(full, np.pi, product.upper)[None]
    boxes, attained = _bounded(product, lower, upper), -np.inf
    budget.spend(1, d)
    for _ in range(ROUNDS):
        attained = max(attained, boxes.attained.max(initial=attained))
        boxes = _sorted(boxes, above=attained + ENOUGH * scale)
        if not len(boxes.bound) or budget.is_spent:
            break
        count = max(4, CORNERS // 3 ** (d + 1))
        budget.spend(3 * min(count, len(boxes.bound)), d)
        parts = _bounded(product, *_thirds(boxes, count))
        boxes = boxes.rows(slice(count, None)).and_more(parts)
    return float(boxes.bound.max(initial=attained)) + ENOUGH * scale


def _sorted(boxes: BoundedBoxes, above: float) -> BoundedBoxes:
    """Keep the boxes whose bound is above a value, the largest first."""
    order = np.argsort(-boxes.bound)[: np.count_nonzero(boxes.bound > above)]
    return boxes.rows(order)


def _thirds(boxes: BoundedBoxes, count: int) -> tuple[Array, Array]:
    """Cut the first boxes in three across their worst joint, (3 count, d) each."""
    lower, upper = (np.concatenate([end[:count]] * 3) for end in (boxes.lower, boxes.upper))
    rows, worst = np.arange(len(lower)), np.concatenate([boxes.worst[:count]] * 3)
    part = np.repeat(np.arange(3), len(lower) // 3)
    a, b = lower[rows, worst], upper[rows, worst]
    lower[rows, worst] = np.where(part == 0, a, a + part / 3.0 * (b - a))
    upper[rows, worst] = np.where(part == 2, b, a + (part + 1) / 3.0 * (b - a))
    return lower, upper


def _bounded(product: ChainProduct, lower: Array, upper: Array) -> BoundedBoxes:
    """Evaluate all corners of b boxes (b, d), and the joint values next to the best corner."""
    b, d = lower.shape
    wide = ~product.prismatic & (upper - lower > WIDE)  # (b, d)
    on_arc = _on_arc(wide, lower, upper)  # (b, d, 3)
    share = _share(product.prismatic, wide, lower, upper)  # (b, d)
    corners = np.broadcast_to(product.row, (b, 1, 1, len(product.row)))
    for j in range(d):
        V = _triangle(product, j, on_arc[:, j], wide[:, j], share[:, j])
        corners = np.swapaxes(corners @ V, 1, 2)  # (b, corners, 3, s)
        corners = corners.reshape(b, 1, -1, corners.shape[-1])
        corners = corners @ (product.between[j] if j + 1 < d else product.column)
    best = corners.reshape(b, -1).argmax(1)
    gap, index = _gaps(corners.reshape(b, -1), best, wide, share)
    nearest = np.clip(np.take_along_axis(on_arc, index[..., None], 2)[..., 0], lower, upper)
    bound = corners.reshape(b, -1)[np.arange(b), best]
    return BoundedBoxes(lower, upper, bound, product.values(nearest), gap.argmax(1))


def _on_arc(wide: NDArray[np.bool_], lower: Array, upper: Array) -> Array:
    """Choose joint values (b, d, 3) whose points span the triangles: ends and middle, or thirds."""
    middle = 0.5 * (lower + upper)
    narrow = np.stack([lower, upper, middle], -1)
    return np.where(wide[..., None], middle[..., None] + TURN * THIRDS, narrow)


def _share(
    prismatic: NDArray[np.bool_], wide: NDArray[np.bool_], lower: Array, upper: Array
) -> Array:
    """Compute (b, d) where the curve passes between chord (or centre) and corner, as a share."""
    cosine = np.where(prismatic | wide, 1.0, np.cos(0.5 * (upper - lower)))
    return np.where(wide, 0.5, cosine / (1.0 + cosine))


def _triangle(
    product: ChainProduct, j: int, on_arc: Array, wide: NDArray[np.bool_], share: Array
) -> Array:
    """Compute the matrices (b, 3, s, s) at the corners of joint j's triangles."""
    V = product.motion(j, on_arc)
    s = share[:, None, None]
    chord = 0.5 * (V[:, 0] + V[:, 1])
    centre = V.mean(1, keepdims=True)
    narrow = np.stack([V[:, 0], V[:, 1], chord + (V[:, 2] - chord) / s], 1)
    return np.where(wide[:, None, None, None], 2.0 * V - centre, narrow)


def _gaps(
    corners: Array, best: NDArray[np.int64], wide: NDArray[np.bool_], share: Array
) -> tuple[Array, NDArray[np.int64]]:
    """Measure the excess of the bound by each joint's triangle, and its best corner, (b, d).

    Args:
        corners: (b, 3^d) values.
        best: (b,) index of the largest.
    """
    b, d = wide.shape
    gap, index = np.empty((b, d)), np.empty((b, d), np.int64)
    for j in range(d):
        step = 3 ** (d - 1 - j)
        index[:, j] = best // step % 3
        line = (best - index[:, j] * step)[:, None] + step * np.arange(3)
        line = np.take_along_axis(corners, line, 1)  # (b, 3) along this joint
        top = corners[np.arange(b), best]
        below = np.where(wide[:, j], line.mean(1), 0.5 * (line[:, 0] + line[:, 1]))
        lifted = wide[:, j] | (index[:, j] == 2)
        gap[:, j] = np.where(lifted, (1.0 - share[:, j]) * (top - below), 0.0)
    return gap, index


def farthest(elements: PathElements, base: Array, tip: Array, budget: Budget) -> float:
    """Bound the distance of two points (3,) from above.

    If too many joints matter, the bound is the sum of those to a point on an axis halfway; if the
    budget is spent, the length of the arm.
    """
    squared = upper_bound(elements, squared_distance(base, tip), budget)
    half = len(elements.prismatic) // 2
    if budget.is_spent and squared == np.inf:
        return _stretched(elements, base, tip)
    if squared < np.inf or half == 0:
        return sqrt(max(squared, 0.0))
    before, after = elements.split(half)
    return farthest(before, base, ORIGIN, budget) + farthest(after, ORIGIN, tip, budget)


def nearest(elements: PathElements, base: Array, tip: Array, budget: Budget) -> float:
    """Bound the distance of two points (3,) from below.

    If too many joints matter, the bound is the excess of one half over the other; if the budget is
    spent, 0.
    """
    squared = -upper_bound(elements, -squared_distance(base, tip), budget)
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


def _stretched(elements: PathElements, base: Array, tip: Array) -> float:
    """Add the lengths of all links."""
    slides = elements.prismatic
    if not np.isfinite([elements.lower[slides], elements.upper[slides]]).all():
        return np.inf
    return float(np.linalg.norm(base) + elements.length + np.linalg.norm(tip))
