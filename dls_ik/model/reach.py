"""Rigorous bounds on the poses that an arm reaches, built once for a robot.

The functionals of a pose that refuse most poses are chosen, and bounded over all configurations
within the limits. Lengths are in units of the arm's, so that tolerances are the same for every arm.

Branch and bound: a functional is affine in the point (cos q, sin q) or (q, q^2) of each joint
separately. An arc of these points lies in the triangle of its ends and its tangents' intersection,
a whole circle in one about it. Over a product of triangles a function that is affine in each takes
its extremes at corners: these bound the functional over the box of joint values. The excess falls
with the square of the width of the box.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.reach_bounds import DISTANCE, HEIGHT, LEAN, MOMENT, ReachBounds
from dls_ik.core.types import Array, Chain
from dls_ik.model.joint import TURN
from dls_ik.model.pose_functionals import (
    THIRDS,
    ChainProduct,
    Functional,
    PathElements,
    chain_product,
    end_axes,
    height,
    lean,
    moment,
    path_elements,
    poses,
    rigid,
    squared_distance,
)
from dls_ik.model.robot import RobotModel

# Choice of the functionals

LOG = logging.getLogger("dls_ik")
GIVEN_UP = (
    "bounds on the reach of {} joints would take too long and are partly given up: poses out of "
    "reach may be searched for until the timeout, instead of being UNREACHABLE"
)
APART = (0.3, 1.0, 3.0)  # of the arm's length: distances of further points on an axis
SAMPLES = 3000  # random configurations
AT_END = 0.15  # share of the joints at an end of their range
BOX = 1.1  # size of the box of poses, of that in which the tip was seen
STRETCH = 1.3
MAX_BOUNDS = 10
SAME = 1e-9  # of a scale: spread of a functional that no configuration changes
MIN_GAIN = 0.001  # share of the poses that a further bound must refuse


class Candidate(NamedTuple):
    """A functional that may be bounded, of lines of the base and the tip.

    Lengths are in units of the arm's.
    """

    kind: int  # one of core/reach_bounds.py
    base: Array  # (2, 3) unit vector, point
    tip: Array  # (2, 3) unit vector, point
    functional: Functional


def build_reach(chain: Chain, tip: int = 0, position_only: bool = False) -> ReachBounds:
    """Build bounds on the poses of a tip that every configuration within the limits satisfies.

    The candidates that seem to refuse most poses are bounded. This takes some tenths of a second,
    and about one at most: bounds of very many joints are given up, with a warning in the log.

    Args:
        tip: Number of the chain's tip.
        position_only: Ignore the rotation of poses.
    """
    elements = path_elements(chain, tip)
    unit = elements.length or 1.0  # [m]
    elements = elements.scaled(1.0 / unit)
    plain, further = _candidates(elements, position_only)
    candidates = plain + further
    chosen = select_bounds(elements, [each.functional for each in candidates], len(plain))
    rows = [candidates[i] for i, _ in chosen]
    kind = np.array([row.kind for row in rows], np.int64)
    units = np.where(kind == LEAN, 1.0, unit)
    metres = np.array([[1.0], [unit]])  # of a unit vector and a point
    tip_lines = np.array([row.tip for row in rows]).reshape(-1, 2, 3) * metres
    budget = Budget()
    ranges = [_range(elements, candidates[i], wanted, budget) for i, wanted in chosen]
    if budget.is_spent:
        LOG.warning(GIVEN_UP.format(len(elements.prismatic)))
    return ReachBounds(
        kind=kind,
        base=np.array([row.base for row in rows]).reshape(-1, 2, 3) * metres,
        tip=tip_lines,
        radius=np.linalg.norm(tip_lines[:, 1], axis=1),
        least=units * [least for least, _ in ranges],
        largest=units * [largest for _, largest in ranges],
    )


def _candidates(
    elements: PathElements, position_only: bool
) -> tuple[list[Candidate], list[Candidate]]:
    """List functionals that few joints change, of the first and the last axis and points on them.

    The last joint does not move the points on its axis. For positions alone the tip's origin takes
    their place.

    Returns:
        Those of one point on each axis, and those of further points on one of them.
    """
    first, last = end_axes(elements)
    b, a = first[1], last[0]
    tip = np.array([a, np.zeros(3)]) if position_only else last
    bases = [np.array([direction, b]) for direction in elements.fixed[0, :3, :3].T[::-1]]
    plain = [_distance(first, tip), *(_height(base, tip) for base in bases)]
    further = [_distance(base, tip) for base in _along(first)]
    if not position_only:
        plain += [Candidate(LEAN, base, last, lean(base[0], a)) for base in bases]
        plain += [Candidate(MOMENT, first, last, moment(first, last))]
        for beyond in _along(last):
            further += [_distance(first, beyond), _height(first, beyond)]
    return plain, further


def _distance(base: Array, tip: Array) -> Candidate:
    return Candidate(DISTANCE, base, tip, squared_distance(base[1], tip[1]))


def _height(base: Array, tip: Array) -> Candidate:
    return Candidate(HEIGHT, base, tip, height(base, tip[1]))


def _along(line: Array) -> Array:
    """Shift the point of a line (2, 3) along it either way, (b, 2, 3)."""
    shifts = np.array([*APART, *(-step for step in APART)])
    lines: Array = line + shifts[:, None, None] * np.array([np.zeros(3), line[0]])
    return lines


def _range(
    elements: PathElements, candidate: Candidate, wanted: tuple[bool, bool], budget: Budget
) -> tuple[float, float]:
    """Bound a candidate from below and above, each if it is wanted."""
    if candidate.kind == DISTANCE:
        points = candidate.base[1], candidate.tip[1]
        return (
            nearest(elements, *points, budget) if wanted[0] else 0.0,
            farthest(elements, *points, budget) if wanted[1] else np.inf,
        )
    functional = candidate.functional
    below = upper_bound(elements, -functional, budget) if wanted[0] else np.inf
    return -below, upper_bound(elements, functional, budget) if wanted[1] else np.inf


def select_bounds(
    elements: PathElements, functionals: Sequence[Functional], plain: int
) -> list[tuple[int, tuple[bool, bool]]]:
    """Select functionals to bound, by the poses that they refuse, from below and from above or one.

    Constant ones of the first `plain` functionals are always selected: random poses cannot show
    which of them are redundant, and they keep a planar arm to its plane.
    """
    rng = np.random.default_rng(0)
    reached = poses(elements, _shares(elements, rng, AT_END))[1]
    asked = np.concatenate([_anywhere(reached, rng), _stretched(elements, rng)])
    refused, constant = [], []
    for functional in functionals:
        seen, numbers = functional(reached), functional(asked)
        spread = seen.max() - seen.min()
        margin = 1e-3 * spread + SAME * functional.scale
        refused += [numbers < seen.min() - margin, numbers > seen.max() + margin]
        constant += 2 * [bool(spread < SAME * functional.scale)]
    sides = _greedy(np.array(refused)) + np.flatnonzero(constant[: 2 * plain]).tolist()
    order = dict.fromkeys(side // 2 for side in sides)
    return [(i, (2 * i in sides, 2 * i + 1 in sides)) for i in order]


def _shares(elements: PathElements, rng: np.random.Generator, at_end: float) -> Array:
    """Draw configurations (b, m) as shares of the ranges; some of the joints at an end."""
    shares = rng.uniform(size=(SAMPLES, len(elements.prismatic)))
    rounded = rng.uniform(size=shares.shape) < at_end
    return np.asarray(np.where(rounded, np.round(shares), shares))


def _anywhere(reached: Array, rng: np.random.Generator) -> Array:
    """Draw poses (b, 4, 4) in the box about others, with any rotation."""
    low, high = reached[:, :3, 3].min(0), reached[:, :3, 3].max(0)
    Q, upper = np.linalg.qr(rng.normal(size=(len(reached), 3, 3)))
    Q *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None]
    Q[:, :, 0] *= np.linalg.det(Q)[:, None]
    shares = rng.uniform(-0.5 * BOX, 0.5 * BOX, (len(Q), 3))
    return rigid(Q, 0.5 * (low + high) + shares * (high - low))


def _stretched(elements: PathElements, rng: np.random.Generator) -> Array:
    """Draw poses (b, 4, 4) of the arm without limits and longer; those of planar arms in plane."""
    widened = np.where(elements.prismatic, elements.upper - elements.lower, np.inf)
    lower, upper = elements.lower - 0.5 * widened, elements.upper + 0.5 * widened
    free = elements._replace(lower=lower, upper=upper)
    T = poses(free, _shares(elements, rng, 0.0))[1]
    b = end_axes(elements)[0][1]
    stretch = rng.uniform(1.0, STRETCH, (len(T), 1))
    return rigid(T[:, :3, :3], b + stretch * (T[:, :3, 3] - b))


def _greedy(refused: NDArray[np.bool_]) -> list[int]:
    """Select sides (lower, upper of each functional) by the poses that only they refuse.

    Args:
        refused: (sides, poses).
    """
    left = np.ones(refused.shape[1], np.bool_)
    sides: list[int] = []
    while len(sides) < MAX_BOUNDS:
        counts = (refused & left).sum(1)
        side = int(counts.argmax())
        if counts[side] <= MIN_GAIN * len(left):
            break
        sides.append(side)
        left &= ~refused[side]
    return sides


class Extent(NamedTuple):
    """Distances [m] of the first tip from a point on the first joint's axis."""

    point: Array  # (3,) in the base frame
    least: float  # lower bound
    most: float  # upper bound
    seen: tuple[float, float]  # the nearest and farthest of random configurations


def tip_extent(robot: RobotModel) -> Extent:
    """Bound and sample the distance of the first tip; takes some tenths of a second."""
    elements = path_elements(robot.chain, 0)
    unit = elements.length or 1.0
    scaled = elements.scaled(1.0 / unit)
    point, origin = end_axes(scaled)[0][1], np.zeros(3)
    budget = Budget()
    most = farthest(scaled, point, origin, budget)
    bounds = nearest(scaled, point, origin, budget), most
    tips = robot.fk(robot.random(np.random.default_rng(0), SAMPLES)).reshape(SAMPLES, -1, 4, 4)
    distances = np.linalg.norm(tips[:, 0, :3, 3] - unit * point, axis=1)
    seen = float(distances.min()), float(distances.max())
    return Extent(unit * point, unit * bounds[0], unit * bounds[1], seen)


# Branch and bound

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

    def rows(self, which: NDArray[np.int64] | slice) -> BoundedBoxes:
        """Select some of the boxes."""
        parts: list[Any] = [each[which] for each in self]
        return BoundedBoxes(*parts)


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
        good = np.count_nonzero(boxes.bound > attained + ENOUGH * scale)
        boxes = boxes.rows(np.argsort(-boxes.bound)[:good])  # the largest first
        if not len(boxes.bound) or budget.is_spent:
            break
        count = max(4, CORNERS // 3 ** (d + 1))
        budget.spend(3 * min(count, len(boxes.bound)), d)
        parts = _bounded(product, *_thirds(boxes, count))
        pairs = list(zip(boxes.rows(slice(count, None)), parts, strict=True))
        boxes = BoundedBoxes(*(np.concatenate(pair) for pair in pairs))
    return float(boxes.bound.max(initial=attained)) + ENOUGH * scale


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
    middle = 0.5 * (lower + upper)
    narrow = np.stack([lower, upper, middle], -1)
    # (b, d, 3) joint values whose points span the triangles: ends and middle, or thirds
    on_arc = np.where(wide[..., None], middle[..., None] + TURN * THIRDS, narrow)
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
        slides = elements.prismatic
        is_finite = np.isfinite([elements.lower[slides], elements.upper[slides]]).all()
        ends = np.linalg.norm(base) + np.linalg.norm(tip)
        return float(ends + elements.length) if is_finite else np.inf
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
