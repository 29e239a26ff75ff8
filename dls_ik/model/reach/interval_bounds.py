"""Rigorous least and largest values of forms and distances over all configurations within limits.

Lengths are in units of the arm's, so that what counts as nothing is the same for every arm.

Branch and bound. A form is affine in the point (cos q, sin q) or (q, q^2) of each joint separately.
An arc of these points lies in the triangle of its ends and its tangents' intersection, a whole
circle in one about it. Over a product of triangles a function that is affine in each takes its
extremes at corners: these bound the form over the box of joint values. The smaller the box, the
smaller the triangles: what they add falls with the square of their width.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.reach.pose_functionals import (
    THIRDS,
    TURN,
    Elements,
    Form,
    Product,
    motion,
    negative,
    reduced,
    squared_distance,
    values,
)

MOST_JOINTS = 5  # a box of d joints has 3^d corners
CORNERS = 10_000  # evaluated at a time
ROUNDS = 40
MOST_WORK = 12_000_000  # corners for all bounds of a robot, about a second; an arm of 7 takes 1e6
CALL = 4000  # corners that take as long as what a round costs besides
ENOUGH = 1e-9  # of the form's scale: how near the bound must come to a value that is taken
ROUNDING = 1e-10  # of the form's scale
WIDE = TURN / 3.0  # an arc beyond this has no triangle smaller than the circle's

ORIGIN = np.zeros(3)


class Budget:
    """The work that bounds may take: counted, not timed, so that they are the same everywhere."""

    def __init__(self, left: int = MOST_WORK) -> None:
        self.left = left  # corners to be evaluated

    def spend(self, boxes: int, joints: int) -> None:
        """Count what some boxes of so many joints take."""
        self.left -= CALL + boxes * 3**joints

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.left <= 0


class Bounded(NamedTuple):
    """b boxes of joint values, and what is known of the form's values there."""

    lower: Array  # (b, d)
    upper: Array  # (b, d)
    bound: Array  # (b,) no value in the box is larger
    taken: Array  # (b,) a value in the box
    worst: NDArray[np.int64]  # (b,) the joint whose triangle adds most to the bound

    def rows(self, which: NDArray[np.int64] | slice) -> "Bounded":
        """Some of the boxes."""
        ends = self.lower[which], self.upper[which]
        return Bounded(*ends, self.bound[which], self.taken[which], self.worst[which])

    def and_more(self, others: "Bounded") -> "Bounded":
        """These boxes and others."""
        return Bounded(
            np.concatenate([self.lower, others.lower]),
            np.concatenate([self.upper, others.upper]),
            np.concatenate([self.bound, others.bound]),
            np.concatenate([self.taken, others.taken]),
            np.concatenate([self.worst, others.worst]),
        )


def largest(elements: Elements, form: Form, budget: Budget) -> float:
    """A bound on a form from above, infinite where more than MOST_JOINTS matter.

    Infinite also where the budget is spent, and less sharp where it does not suffice.
    """
    if budget.is_spent:
        return np.inf
    product = reduced(elements, form)
    slides = product.prismatic
    bounded = np.isfinite([product.lower[slides], product.upper[slides]]).all()
    return maximum(product, budget) if bounded and len(slides) <= MOST_JOINTS else np.inf


def maximum(product: Product, budget: Budget) -> float:
    """An upper bound on the form, the largest value itself as far as the rounds suffice."""
    d, enough = len(product.lower), ENOUGH * product.form.scale
    if d == 0:
        return float(product.row @ product.column) + ROUNDING * product.form.scale
    full = ~product.prismatic & ~(product.upper - product.lower < TURN)
    lower = np.where(full, -np.pi, product.lower)[None]
    upper = np.where(full, np.pi, product.upper)[None]
    boxes, taken = _bounded(product, lower, upper), -np.inf
    budget.spend(1, d)
    for _ in range(ROUNDS):
        taken = max(taken, boxes.taken.max(initial=taken))
        boxes = _sorted(boxes, above=taken + enough)
        if not len(boxes.bound) or budget.is_spent:
            break
        count = max(4, CORNERS // 3 ** (d + 1))
        budget.spend(3 * min(count, len(boxes.bound)), d)
        parts = _bounded(product, *_thirds(boxes, count))
        boxes = boxes.rows(slice(count, None)).and_more(parts)
    return float(boxes.bound.max(initial=taken)) + enough


def _sorted(boxes: Bounded, above: float) -> Bounded:
    """The boxes whose bound is above a value, the largest first."""
    order = np.argsort(-boxes.bound)[: np.count_nonzero(boxes.bound > above)]
    return boxes.rows(order)


def _thirds(boxes: Bounded, count: int) -> tuple[Array, Array]:
    """The first so many boxes cut in three across their worst joint, (3 count, d) each."""
    lower, upper = (np.concatenate([end[:count]] * 3) for end in (boxes.lower, boxes.upper))
    rows, worst = np.arange(len(lower)), np.concatenate([boxes.worst[:count]] * 3)
    part = np.repeat(np.arange(3), len(lower) // 3)
    a, b = lower[rows, worst], upper[rows, worst]
    lower[rows, worst] = np.where(part == 0, a, a + part / 3.0 * (b - a))
    upper[rows, worst] = np.where(part == 2, b, a + (part + 1) / 3.0 * (b - a))
    return lower, upper


def _bounded(product: Product, lower: Array, upper: Array) -> Bounded:
    """Evaluate the form at all corners of b boxes (b, d), and at the values next to the best."""
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
    return Bounded(lower, upper, bound, values(product, nearest), gap.argmax(1))


def _on_arc(wide: NDArray[np.bool_], lower: Array, upper: Array) -> Array:
    """The values (b, d, 3) whose points span the triangles: ends and middle, or thirds."""
    middle = 0.5 * (lower + upper)
    narrow = np.stack([lower, upper, middle], -1)
    return np.where(wide[..., None], middle[..., None] + TURN * THIRDS, narrow)


def _share(
    prismatic: NDArray[np.bool_], wide: NDArray[np.bool_], lower: Array, upper: Array
) -> Array:
    """(b, d) where from chord, or centre, to corner the curve passes, as a share of the way."""
    cosine = np.where(prismatic | wide, 1.0, np.cos(0.5 * (upper - lower)))
    return np.where(wide, 0.5, cosine / (1.0 + cosine))


def _triangle(
    product: Product, j: int, on_arc: Array, wide: NDArray[np.bool_], share: Array
) -> Array:
    """The matrices (b, 3, s, s) at the corners of joint j's triangles."""
    V = motion(product.form, bool(product.prismatic[j]), on_arc)
    s = share[:, None, None]
    chord = 0.5 * (V[:, 0] + V[:, 1])
    centre = V.mean(1, keepdims=True)
    narrow = np.stack([V[:, 0], V[:, 1], chord + (V[:, 2] - chord) / s], 1)
    return np.where(wide[:, None, None, None], 2.0 * V - centre, narrow)


def _gaps(
    corners: Array, best: NDArray[np.int64], wide: NDArray[np.bool_], share: Array
) -> tuple[Array, NDArray[np.int64]]:
    """How far each joint's corner lifts the bound above its curve, and which corner it is, (b, d).

    Args:
        corners: (b, 3^d) values, best: (b,) index of the largest.
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
