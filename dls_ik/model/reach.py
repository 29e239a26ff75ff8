# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Rigorous bounds on the poses that an arm reaches, built once for a robot.

A functional is a number that depends on the pose of the tip, such as the distance of a point of the
tip from a point of the base; see :mod:`dls_ik.model.pose_functionals`. The bounds are the minimum
and maximum of functionals over all configurations within the limits. A pose with a value outside
these bounds is unreachable. The functionals that reject most unreachable poses are selected from
many candidates. Lengths are in units of the arm's length, so that one set of tolerances fits every
arm.

The bounds are computed by branch and bound over boxes of joint positions. A functional is affine in
the point (cos q, sin q) of each revolute joint and in the point (q, q^2) of each prismatic joint.
For an interval of q these points form an arc. The arc lies in the triangle whose corners are the
end points of the arc and the intersection of its tangents at these points; a full circle lies in
an equilateral triangle around the circle. A function that is affine in each joint's point has its
maximum over the product of all triangles at a combination of corners. This maximum bounds the
functional over the box. The error of the bound decreases with the square of the width of the box.
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

# Selection of the functionals

LOG = logging.getLogger("dls_ik")
GIVEN_UP = (
    "bounds on the reach of {} joints would take too long and are incomplete: the solver may "
    "search for unreachable poses until the timeout, instead of returning UNREACHABLE"
)
POINT_DISTANCES = (0.3, 1.0, 3.0)  # shifts of further points along an axis, in arm lengths
NUM_REACH_SAMPLES = 3000  # number of random configurations
LIMIT_SAMPLE_SHARE = 0.15  # share of joint positions that are moved to a limit
BOX_SCALE = 1.1  # size of the box of random poses, relative to the box of the reached positions
MAX_STRETCH = 1.3  # maximum factor by which poses of the arm without limits are moved outward
MAX_BOUNDS = 10  # maximum number of selected bounds
CONSTANT_TOLERANCE = 1e-9  # maximum relative spread of a functional that counts as constant
MIN_GAIN = 0.001  # minimum share of the sampled poses that a further bound must reject


class Candidate(NamedTuple):
    """A functional that may be selected, and the two lines that define it.

    Lengths are in units of the arm's length.
    """

    kind: int  # DISTANCE, HEIGHT, LEAN or MOMENT, see core/reach_bounds.py
    base: Array  # (2, 3) unit vector and point in the base frame
    tip: Array  # (2, 3) unit vector and point in the tip frame
    functional: Functional


def build_reach(chain: Chain, tip: int = 0, position_only: bool = False) -> ReachBounds:
    """Return bounds on the poses of a tip that hold for every configuration within the limits.

    The computation takes a few tenths of a second, and at most approximately one second. For arms
    with very many joints some bounds are therefore omitted, and a warning is logged.

    Args:
        chain: Chain of the robot.
        tip: Index of the tip.
        position_only: Whether the bounds concern the position of the tip only.
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
    metres = np.array([[1.0], [unit]])  # scale of the unit vector, and scale of the point
    tip_lines = np.array([row.tip for row in rows]).reshape(-1, 2, 3) * metres
    budget = Budget()
    ranges = [_range(elements, candidates[i], sides, budget) for i, sides in chosen]
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
    """Return candidates defined by the first and the last joint axis, which few joints change.

    The first joint does not change distances from points on the first axis, and the last joint does
    not move points on the last axis. If the bounds concern the position only, the origin of the tip
    replaces points on the last axis.

    Returns:
        Candidates with one point on each axis, and candidates with further points on the axes.
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
    """Return the candidate for the distance between the points of two lines (2, 3)."""
    return Candidate(DISTANCE, base, tip, squared_distance(base[1], tip[1]))


def _height(base: Array, tip: Array) -> Candidate:
    """Return the candidate for the height of the tip line's point along the base line.

    Args:
        base: (2, 3) unit vector and point in the base frame.
        tip: (2, 3) unit vector and point in the tip frame.
    """
    return Candidate(HEIGHT, base, tip, height(base, tip[1]))


def _along(line: Array) -> Array:
    """Return lines (b, 2, 3) that equal a line (2, 3), but have points shifted along the line."""
    shifts = np.array([*POINT_DISTANCES, *(-step for step in POINT_DISTANCES)])
    lines: Array = line + shifts[:, None, None] * np.array([np.zeros(3), line[0]])
    return lines


def _range(
    elements: PathElements, candidate: Candidate, sides: tuple[bool, bool], budget: Budget
) -> tuple[float, float]:
    """Return the lower and the upper bound of a candidate.

    Args:
        elements: Path.
        candidate: Candidate.
        sides: Whether the lower bound, and whether the upper bound is needed. A bound that is not
            needed is 0 (lower bound of a distance) or infinite.
        budget: Remaining work.
    """
    if candidate.kind == DISTANCE:
        points = candidate.base[1], candidate.tip[1]
        return (
            nearest(elements, *points, budget) if sides[0] else 0.0,
            farthest(elements, *points, budget) if sides[1] else np.inf,
        )
    functional = candidate.functional
    below = upper_bound(elements, -functional, budget) if sides[0] else np.inf
    return -below, upper_bound(elements, functional, budget) if sides[1] else np.inf


def select_bounds(
    elements: PathElements, functionals: Sequence[Functional], plain: int
) -> list[tuple[int, tuple[bool, bool]]]:
    """Select the functionals, and for each the lower or upper bound, that reject most random poses.

    Constant functionals among the first `plain` functionals are always selected. Such functionals
    express that a planar arm stays in its plane; random poses cannot show which are redundant.

    Args:
        elements: Path.
        functionals: Functionals of the pose.
        plain: Number of functionals at the start of the sequence that are selected if constant.

    Returns:
        For each selected functional its index, and whether its lower and upper bound are needed.
    """
    rng = np.random.default_rng(0)
    reached = poses(elements, _random_shares(elements, rng, LIMIT_SAMPLE_SHARE))[1]
    asked = np.concatenate([_random_poses(reached, rng), _stretched_poses(elements, rng)])
    refused, constant = [], []
    for functional in functionals:
        seen, numbers = functional(reached), functional(asked)
        spread = seen.max() - seen.min()
        margin = 1e-3 * spread + CONSTANT_TOLERANCE * functional.scale
        refused += [numbers < seen.min() - margin, numbers > seen.max() + margin]
        constant += 2 * [bool(spread < CONSTANT_TOLERANCE * functional.scale)]
    sides = _greedy(np.array(refused)) + np.flatnonzero(constant[: 2 * plain]).tolist()
    order = dict.fromkeys(side // 2 for side in sides)
    return [(i, (2 * i in sides, 2 * i + 1 in sides)) for i in order]


def _random_shares(elements: PathElements, rng: np.random.Generator, at_limit: float) -> Array:
    """Return random configurations (b, m) as shares of the element ranges, from 0 to 1.

    Args:
        elements: Path.
        rng: Random generator.
        at_limit: Share of the positions that are rounded to 0 or 1, the ends of the range.
    """
    shares = rng.uniform(size=(NUM_REACH_SAMPLES, len(elements.prismatic)))
    rounded = rng.uniform(size=shares.shape) < at_limit
    return np.asarray(np.where(rounded, np.round(shares), shares))


def _random_poses(reached: Array, rng: np.random.Generator) -> Array:
    """Return poses (b, 4, 4) with random rotations, and random positions in a box.

    The box contains the positions of the reached poses (b, 4, 4).
    """
    low, high = reached[:, :3, 3].min(0), reached[:, :3, 3].max(0)
    Q, upper = np.linalg.qr(rng.normal(size=(len(reached), 3, 3)))
    Q *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None]
    Q[:, :, 0] *= np.linalg.det(Q)[:, None]
    shares = rng.uniform(-0.5 * BOX_SCALE, 0.5 * BOX_SCALE, (len(Q), 3))
    return rigid(Q, 0.5 * (low + high) + shares * (high - low))


def _stretched_poses(elements: PathElements, rng: np.random.Generator) -> Array:
    """Return random poses (b, 4, 4) of the arm without limits, at positions moved outward.

    Poses of a planar arm stay in the plane of the arm.
    """
    widened = np.where(elements.prismatic, elements.upper - elements.lower, np.inf)
    lower, upper = elements.lower - 0.5 * widened, elements.upper + 0.5 * widened
    free = elements._replace(lower=lower, upper=upper)
    T = poses(free, _random_shares(elements, rng, 0.0))[1]
    b = end_axes(elements)[0][1]
    stretch = rng.uniform(1.0, MAX_STRETCH, (len(T), 1))
    return rigid(T[:, :3, :3], b + stretch * (T[:, :3, 3] - b))


def _greedy(refused: NDArray[np.bool_]) -> list[int]:
    """Return the indices of bounds, selected one by one for the most poses not yet rejected.

    Args:
        refused: (bounds, poses) whether a bound rejects a pose. Rows are the lower and the upper
            bound of each functional in turn.
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
    """Distance of the first tip from a point on the first joint's axis [m]."""

    point: Array  # (3,) in the base frame
    least: float  # lower bound over all configurations
    most: float  # upper bound over all configurations
    seen: tuple[float, float]  # minimum and maximum over random configurations


def tip_extent(robot: RobotModel) -> Extent:
    """Return bounds on the first tip's distance from a point on the first joint's axis.

    The computation takes a few tenths of a second.
    """
    elements = path_elements(robot.chain, 0)
    unit = elements.length or 1.0
    scaled = elements.scaled(1.0 / unit)
    point, origin = end_axes(scaled)[0][1], np.zeros(3)
    budget = Budget()
    most = farthest(scaled, point, origin, budget)
    bounds = nearest(scaled, point, origin, budget), most
    random = robot.random(np.random.default_rng(0), NUM_REACH_SAMPLES)
    tips = robot.fk(random).reshape(NUM_REACH_SAMPLES, -1, 4, 4)
    distances = np.linalg.norm(tips[:, 0, :3, 3] - unit * point, axis=1)
    seen = float(distances.min()), float(distances.max())
    return Extent(unit * point, unit * bounds[0], unit * bounds[1], seen)


# Branch and bound

MAX_RELEVANT_JOINTS = 5  # maximum number of joints that change a functional; 3^d corners for d
MAX_CORNERS = 10_000  # approximate maximum number of corners evaluated in one round
MAX_SUBDIVISION_ROUNDS = 40  # maximum number of rounds, each of which subdivides boxes
# maximum number of corners for a robot, about 1 s; 7 joints need about 1e6
MAX_REACH_CORNERS = 12_000_000
ROUND_WORK = 4000  # overhead of a round, as an equivalent number of corners
TIGHTNESS = 1e-9  # maximum relative difference of a tight bound from an attained value
RELATIVE_ROUNDING = 1e-10  # relative allowance for rounding errors
MAX_ARC = TURN / 3.0  # [rad] longer arcs get the triangle around the full circle, which is smaller

ORIGIN = np.zeros(3)


class Budget:
    """Remaining work for bounds, counted in corners.

    The work is not limited by time, so that the bounds are equal on all machines.
    """

    def __init__(self, left: int = MAX_REACH_CORNERS) -> None:
        self.left = left  # remaining corners

    def spend(self, boxes: int, joints: int) -> None:
        """Subtract the work of one round.

        Args:
            boxes: Number of boxes in the round.
            joints: Number of joints of a box.
        """
        self.left -= ROUND_WORK + boxes * 3**joints

    @property
    def is_spent(self) -> bool:
        """Whether no work is left."""
        return self.left <= 0


class BoundedBoxes(NamedTuple):
    """b boxes of joint positions, with bounds on the values of a functional in each box."""

    lower: Array  # (b, d) [rad or arm lengths]
    upper: Array  # (b, d) [rad or arm lengths]
    bound: Array  # (b,) upper bound of the functional in the box
    attained: Array  # (b,) value of the functional at a configuration in the box
    worst: NDArray[np.int64]  # (b,) joint whose triangle increases the bound most

    def rows(self, which: NDArray[np.int64] | slice) -> BoundedBoxes:
        """Return the boxes with given indices."""
        parts: list[Any] = [each[which] for each in self]
        return BoundedBoxes(*parts)


def upper_bound(elements: PathElements, functional: Functional, budget: Budget) -> float:
    """Return an upper bound of a functional over all configurations of a path.

    The bound is infinite if more than `MAX_RELEVANT_JOINTS` joints change the functional, if such a
    joint is prismatic and unlimited, or if the budget is spent at the call. If the budget is spent
    during the search, the bound is valid but less tight.
    """
    if budget.is_spent:
        return np.inf
    product = chain_product(elements, functional)
    slides = product.prismatic
    bounded = np.isfinite([product.lower[slides], product.upper[slides]]).all()
    is_small = bounded and len(slides) <= MAX_RELEVANT_JOINTS
    return maximum(product, budget) if is_small else np.inf


def maximum(product: ChainProduct, budget: Budget) -> float:
    """Return an upper bound of a functional; the bound is tight if enough rounds are made."""
    d, scale = len(product.lower), product.functional.scale
    if d == 0:
        return float(product.row @ product.column) + RELATIVE_ROUNDING * scale
    full = ~product.prismatic & ~(product.upper - product.lower < TURN)
    lower = np.where(full, -np.pi, product.lower)[None]
    upper = np.where(full, np.pi, product.upper)[None]
    boxes, attained = _bounded(product, lower, upper), -np.inf
    budget.spend(1, d)
    for _ in range(MAX_SUBDIVISION_ROUNDS):
        attained = max(attained, boxes.attained.max(initial=attained))
        good = np.count_nonzero(boxes.bound > attained + TIGHTNESS * scale)
        boxes = boxes.rows(np.argsort(-boxes.bound)[:good])  # descending bounds
        if not len(boxes.bound) or budget.is_spent:
            break
        count = max(4, MAX_CORNERS // 3 ** (d + 1))
        budget.spend(3 * min(count, len(boxes.bound)), d)
        parts = _bounded(product, *_thirds(boxes, count))
        pairs = list(zip(boxes.rows(slice(count, None)), parts, strict=True))
        boxes = BoundedBoxes(*(np.concatenate(pair) for pair in pairs))
    return float(boxes.bound.max(initial=attained)) + TIGHTNESS * scale


def _thirds(boxes: BoundedBoxes, count: int) -> tuple[Array, Array]:
    """Split each of the first `count` boxes in three equal parts along the worst joint of the box.

    Returns:
        Lower and upper limits of the parts, (3 count, d) each.
    """
    lower, upper = (np.concatenate([end[:count]] * 3) for end in (boxes.lower, boxes.upper))
    rows, worst = np.arange(len(lower)), np.concatenate([boxes.worst[:count]] * 3)
    part = np.repeat(np.arange(3), len(lower) // 3)
    a, b = lower[rows, worst], upper[rows, worst]
    lower[rows, worst] = np.where(part == 0, a, a + part / 3.0 * (b - a))
    upper[rows, worst] = np.where(part == 2, b, a + (part + 1) / 3.0 * (b - a))
    return lower, upper


def _bounded(product: ChainProduct, lower: Array, upper: Array) -> BoundedBoxes:
    """Return boxes with upper bounds of the functional, and with attained values.

    The attained value of a box is that at the joint positions closest to the corner with the
    largest value.

    Args:
        product: Functional.
        lower: (b, d) lower limits of the boxes.
        upper: (b, d) upper limits of the boxes.
    """
    b, d = lower.shape
    wide = ~product.prismatic & (upper - lower > MAX_ARC)  # (b, d)
    middle = 0.5 * (lower + upper)
    narrow = np.stack([lower, upper, middle], -1)
    # (b, d, 3) joint positions whose points define a triangle: both ends and the middle of an arc,
    # or three equally spaced positions on a full circle
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
    """Return (b, d) the ratio of the distances of the curve and of the triangle's corner.

    The distances are from the chord of an arc, or from the center of a full circle.

    Args:
        prismatic: (d,) whether a joint is prismatic.
        wide: (b, d) whether the triangle encloses a full circle.
        lower: (b, d) lower limits of the boxes.
        upper: (b, d) upper limits of the boxes.
    """
    cosine = np.where(prismatic | wide, 1.0, np.cos(0.5 * (upper - lower)))
    return np.where(wide, 0.5, cosine / (1.0 + cosine))


def _triangle(
    product: ChainProduct, j: int, on_arc: Array, wide: NDArray[np.bool_], share: Array
) -> Array:
    """Return the motion matrices (b, 3, s, s) at the corners of the triangles of joint j.

    Args:
        product: Functional.
        j: Index of the joint.
        on_arc: (b, 3) joint positions that define the triangles, see :func:`_bounded`.
        wide: (b,) whether the triangle encloses a full circle.
        share: (b,) result of :func:`_share`.
    """
    V = product.motion(j, on_arc)
    s = share[:, None, None]
    chord = 0.5 * (V[:, 0] + V[:, 1])
    centre = V.mean(1, keepdims=True)
    narrow = np.stack([V[:, 0], V[:, 1], chord + (V[:, 2] - chord) / s], 1)
    return np.where(wide[:, None, None, None], 2.0 * V - centre, narrow)


def _gaps(
    corners: Array, best: NDArray[np.int64], wide: NDArray[np.bool_], share: Array
) -> tuple[Array, NDArray[np.int64]]:
    """Return how much the triangle of each joint increases the bound of a box, and a corner.

    Args:
        corners: (b, 3^d) values at all combinations of corners.
        best: (b,) index of the largest value.
        wide: (b, d) whether the triangle encloses a full circle.
        share: (b, d) result of :func:`_share`.

    Returns:
        For each joint the increase (b, d), and the corner of the triangle, 0 to 2, at which the
        value is largest (b, d).
    """
    b, d = wide.shape
    gap, index = np.empty((b, d)), np.empty((b, d), np.int64)
    for j in range(d):
        step = 3 ** (d - 1 - j)
        index[:, j] = best // step % 3
        line = (best - index[:, j] * step)[:, None] + step * np.arange(3)
        line = np.take_along_axis(corners, line, 1)  # (b, 3) values at the corners of this joint
        top = corners[np.arange(b), best]
        below = np.where(wide[:, j], line.mean(1), 0.5 * (line[:, 0] + line[:, 1]))
        lifted = wide[:, j] | (index[:, j] == 2)
        gap[:, j] = np.where(lifted, (1.0 - share[:, j]) * (top - below), 0.0)
    return gap, index


def farthest(elements: PathElements, base: Array, tip: Array, budget: Budget) -> float:
    """Return an upper bound of the distance between a base point (3,) and a tip point (3,).

    If too many joints change the distance, the path is split in the middle, and the bound is the
    sum of the bounds of both parts. If the budget is spent, the bound is the length of the arm plus
    the distances of the points from the origins of their frames.
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
    """Return a lower bound of the distance between a base point (3,) and a tip point (3,).

    If too many joints change the distance, the path is split in the middle. The bound is then the
    minimum length of one part minus the maximum length of the other part, or 0. If the budget is
    spent, the bound is 0.
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
