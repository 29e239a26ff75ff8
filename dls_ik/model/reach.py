# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Rigorous bounds on the poses that an arm can reach, built once for a robot.

A functional is a number that depends on the pose of the tip, such as the distance of a point of the
tip from a point of the base; see :mod:`dls_ik.model.pose_functionals`. The bounds are a lower and
an upper bound of each functional over all configurations within the joint limits. A pose at which a
functional has a value outside its bounds is unreachable. The functionals that reject most
unreachable poses are selected from many candidates. Lengths are divided by the length of the arm,
so that one set of tolerances fits every arm.

The bounds are computed by branch and bound over boxes: a box is an interval [lower, upper] for the
position q of each joint. A functional is affine in the point (cos q, sin q) of each revolute joint
and in the point (q, q^2) of each prismatic joint. For an interval of q these points form an arc.
The arc lies in the triangle whose corners are the two ends of the arc and the intersection of the
tangents at the ends; a full circle lies in an equilateral triangle around the circle. A function
that is affine in each joint's point takes its maximum over all triangles at a combination of
corners, one of each triangle. This maximum is an upper bound of the functional in the box. The
error of the bound decreases with the square of the width of the box.
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

FREE_ROTATION = -1  # value of `pointing` if the rotation of the tip is free

# Selection of the functionals

LOG = logging.getLogger("dls_ik")
GIVEN_UP = (
    "bounds on the reach of {} joints would take too long and are incomplete: the solver may "
    "search for unreachable poses until the timeout, instead of returning UNREACHABLE"
)
POINT_DISTANCES = (0.15, 0.3, 0.6, 1.0, 3.0)  # shifts of points along an axis, in arm lengths
NUM_REACH_SAMPLES = 3000  # number of random configurations
LIMIT_SAMPLE_SHARE = 0.15  # fraction of the random joint positions that are moved to a limit
BOX_SCALE = 1.1  # size of the box of random poses, relative to the box of the reached positions
MAX_STRETCH = 1.3  # maximum factor by which poses of the unlimited arm are moved away from the base
MAX_BOUNDS = 10  # maximum number of selected bounds
CONSTANT_TOLERANCE = 1e-9  # maximum relative spread of a functional that counts as constant
MIN_GAIN = 0.001  # minimum fraction of the random poses that an additional bound must reject
PERPENDICULAR = 1e-9  # maximum cosine of perpendicular directions; sine and offset of equal lines
ALONG_ROUNDING = 1e-14  # maximum cosine between perpendicular directions that is only rounding


class Candidate(NamedTuple):
    """A functional that may be selected for the bounds, and the two lines that define it.

    Lengths are divided by the length of the arm.
    """

    kind: int  # DISTANCE, HEIGHT, LEAN or MOMENT, see core/reach_bounds.py
    base: Array  # (2, 3) unit vector and point in the base frame
    tip: Array  # (2, 3) unit vector and point in the tip frame
    functional: Functional


def build_reach(
    chain: Chain, tip: int = 0, pointing: int | None = None, budget: Budget | None = None
) -> ReachBounds:
    """Compute bounds on the poses of a tip that hold at every configuration within the limits.

    The computation takes a few tenths of a second, and at most approximately one second. If an arm
    has so many joints that this time does not suffice, some bounds are omitted, and a warning is
    logged.

    Args:
        chain: Chain of the robot.
        tip: Index of the tip.
        pointing: Axis of the tip (0, 1 or 2 for x, y or z) about which the tip is free to rotate,
            `FREE_ROTATION` if every rotation is free, or None for the full pose. The bounds use
            only the components of the pose that are not free.
        budget: Work that may be spent; None for the usual budget.
    """
    slides, elements = without_slides(path_elements(chain, tip))
    unit = elements.length or 1.0  # [m]
    slides, elements = slides / [1.0, 1.0, 1.0, unit, unit], elements.scaled(1.0 / unit)
    plain, further = _candidates(elements, pointing, slides)
    candidates = plain + further
    chosen = select_bounds(elements, [each.functional for each in candidates], len(plain))
    rows = [candidates[i] for i, _ in chosen]
    kind = np.array([row.kind for row in rows], np.int64)
    units = np.where(kind == LEAN, 1.0, unit)
    metres = np.array([[1.0], [unit]])  # scale of the unit vector, and scale of the point
    tip_lines = np.array([row.tip for row in rows]).reshape(-1, 2, 3) * metres
    budget = budget or Budget()
    ranges = [_range(elements, candidates[i], sides, slides, budget) for i, sides in chosen]
    if budget.is_spent:
        LOG.warning(GIVEN_UP.format(len(elements.prismatic)))
    return ReachBounds(
        kind=kind,
        base=np.array([row.base for row in rows]).reshape(-1, 2, 3) * metres,
        tip=tip_lines,
        radius=np.linalg.norm(tip_lines[:, 1], axis=1),
        least=units * [least for least, _ in ranges],
        largest=units * [largest for _, largest in ranges],
        slides=slides * [1.0, 1.0, 1.0, unit, unit],
    )


def without_slides(elements: PathElements) -> tuple[Array, PathElements]:
    """Separate the prismatic joints at the start of a path (slides) from the other joints.

    Joints are separated as long as their directions are perpendicular to each other. At least one
    joint remains in the path.

    Returns:
        Slides (s, 5), with the direction (unit vector in the base frame), the lower limit and the
        upper limit of each separated joint; and the path of the other joints, in which all slides
        are at position 0.
    """
    slides, T = np.zeros((0, 5)), elements.fixed[0]
    for k in range(len(elements.prismatic) - 1):
        direction = T[:3, 2]
        if not elements.prismatic[k] or (np.abs(slides[:, :3] @ direction) > PERPENDICULAR).any():
            break
        slides = np.vstack([slides, [*direction, elements.lower[k], elements.upper[k]]])
        T = T @ elements.fixed[k + 1]
    s = len(slides)
    fixed = np.concatenate([T[None], elements.fixed[s + 1 :]])
    _, prismatic, lower, upper = elements
    return slides, PathElements(fixed, prismatic[s:], lower[s:], upper[s:])


def _candidates(
    elements: PathElements, pointing: int | None, slides: Array
) -> tuple[list[Candidate], list[Candidate]]:
    """Return functionals that few joints change as candidates for the bounds.

    The functionals are defined by points on the first and the last joint axis: the first joint does
    not change distances from points on the first axis, and the last joint does not move points on
    the last axis. If the rotation of the tip is free, the origin of the tip frame replaces the last
    joint axis; if the rotation about an axis of the tip is free, this axis replaces it.

    Args:
        elements: Path after the slides, with lengths divided by the length of the arm.
        pointing: Free rotation; see :func:`build_reach`.
        slides: (s, 5) slides, the first result of :func:`without_slides`.

    Returns:
        Candidates that use one point on each axis, and candidates that use additional points.
    """
    first, last = end_axes(elements)
    tip = _tip_line(last, pointing)
    bases = [np.array([direction, first[1]]) for direction in elements.fixed[0, :3, :3].T[::-1]]
    plain = [_distance(first, tip), *(_height(base, tip) for base in bases)]
    further = [_distance(base, tip) for base in _along(first)]
    if pointing != FREE_ROTATION:
        plain += [Candidate(LEAN, base, tip, lean(base[0], tip[0])) for base in bases]
        if (np.linalg.norm(np.cross(slides[:, :3], first[0]), axis=1) < PERPENDICULAR).all():
            plain += [Candidate(MOMENT, first, tip, moment(first, tip))]
        for beyond in _along(tip):
            further += [_distance(first, beyond), _height(first, beyond)]
    return plain, further


def _tip_line(last: Array, pointing: int | None) -> Array:
    """Return the line (2, 3) in the tip frame (direction and point) that defines the functionals.

    The line is the last joint axis if no rotation is free, or if only the rotation about this axis
    is free. If the rotation about another axis of the tip is free, the line is this axis. If every
    rotation is free, the point of the line is the origin of the tip frame.

    Args:
        last: (2, 3) direction and point of the last joint axis in the tip frame.
        pointing: Free rotation; see :func:`build_reach`.
    """
    if pointing is None:
        return last
    direction, point = last
    if pointing == FREE_ROTATION:
        return np.array([direction, np.zeros(3)])
    axis = np.eye(3)[pointing]
    is_same = max(np.abs(np.cross(axis, [direction, point])).ravel()) < PERPENDICULAR
    # Components of the point perpendicular to the axis are rounding errors. They are set to 0,
    # because their direction is not defined if the rotation about the axis is free.
    return np.array([axis, axis * (axis @ point)]) if is_same else np.array([axis, np.zeros(3)])


def _distance(base: Array, tip: Array) -> Candidate:
    """Return the functional, as a candidate for a bound, of the distance of two given points.

    The points are those that the two lines contain.

    Args:
        base: (2, 3) unit vector and point in the base frame.
        tip: (2, 3) unit vector and point in the tip frame.
    """
    return Candidate(DISTANCE, base, tip, squared_distance(base[1], tip[1]))


def _height(base: Array, tip: Array) -> Candidate:
    """Return the candidate for the height of the tip point above the base point.

    The height is measured along the unit vector of the base line.

    Args:
        base: (2, 3) unit vector and point in the base frame.
        tip: (2, 3) unit vector and point in the tip frame.
    """
    return Candidate(HEIGHT, base, tip, height(base, tip[1]))


def _along(line: Array) -> Array:
    """Return a line with its point shifted by different distances along the line.

    Args:
        line: (2, 3) unit vector and point.

    Returns:
        Unit vector and shifted point for each of b shifts, (b, 2, 3).
    """
    shifts = np.array([*POINT_DISTANCES, *(-step for step in POINT_DISTANCES)])
    lines: Array = line + shifts[:, None, None] * np.array([np.zeros(3), line[0]])
    return lines


def _range(
    elements: PathElements,
    candidate: Candidate,
    sides: tuple[bool, bool],
    slides: Array,
    budget: Budget,
) -> tuple[float, float]:
    """Return the lower and the upper bound of a candidate functional.

    A bound that is not needed is not computed. It is returned as 0 if it is the lower bound of a
    distance, otherwise as -inf (lower bound) or inf (upper bound).

    Args:
        elements: Path after the slides.
        candidate: Candidate.
        sides: Whether the lower bound is needed, and whether the upper bound is needed.
        slides: (s, 5) slides, the first result of :func:`without_slides`. If there are slides, the
            lower bound of a distance is 0.
        budget: Remaining work, which is reduced.
    """
    if candidate.kind == DISTANCE:
        points = candidate.base[1], candidate.tip[1]
        return (
            nearest(elements, *points, budget) if sides[0] and not len(slides) else 0.0,
            farthest(elements, *points, budget) if sides[1] else np.inf,
        )
    functional = candidate.functional
    below = upper_bound(elements, -functional, budget) if sides[0] else np.inf
    above = upper_bound(elements, functional, budget) if sides[1] else np.inf
    if candidate.kind == HEIGHT:
        low, high = _heights_of_slides(slides, candidate.base[0])
        below, above = below - low, above + high
    return -below, above


def _heights_of_slides(slides: Array, direction: Array) -> tuple[float, float]:
    """Return the minimum and the maximum displacement by all slides along a direction.

    Args:
        slides: (s, 5) slides, the first result of :func:`without_slides`.
        direction: (3,) unit vector in the base frame.
    """
    along = slides[:, :3] @ direction
    moves = np.abs(along) > ALONG_ROUNDING
    ends = along[moves, None] * slides[moves, 3:]
    return float(ends.min(1).sum()), float(ends.max(1).sum())


def select_bounds(
    elements: PathElements, functionals: Sequence[Functional], plain: int
) -> list[tuple[int, tuple[bool, bool]]]:
    """Select those lower and upper bounds of functionals that reject most random poses.

    Both bounds of a constant functional are always selected, if it is among the first `plain`
    functionals. The functionals that are constant for a planar arm express that the arm stays in
    its plane; random poses cannot show which of these functionals are redundant.

    Args:
        elements: Path, with lengths divided by the length of the arm.
        functionals: Functionals of the pose.
        plain: Number of functionals that are selected if they are constant, at the start of
            `functionals`.

    Returns:
        For each selected functional its index, and whether its lower bound and its upper bound were
        selected.
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
    """Return random configurations (b, m), scaled such that 0 and 1 are the limits of each joint.

    Args:
        elements: Path with m joints.
        rng: Random generator.
        at_limit: Fraction of the joint positions that are rounded to the closer limit.
    """
    shares = rng.uniform(size=(NUM_REACH_SAMPLES, len(elements.prismatic)))
    rounded = rng.uniform(size=shares.shape) < at_limit
    return np.asarray(np.where(rounded, np.round(shares), shares))


def _random_poses(reached: Array, rng: np.random.Generator) -> Array:
    """Return poses (b, 4, 4) with random rotations, and random positions in a box.

    Args:
        reached: (b, 4, 4) poses that the arm reaches. The box is slightly larger than the smallest
            box that contains the positions of these poses.
        rng: Random generator.
    """
    low, high = reached[:, :3, 3].min(0), reached[:, :3, 3].max(0)
    Q, upper = np.linalg.qr(rng.normal(size=(len(reached), 3, 3)))
    Q *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None]
    Q[:, :, 0] *= np.linalg.det(Q)[:, None]
    shares = rng.uniform(-0.5 * BOX_SCALE, 0.5 * BOX_SCALE, (len(Q), 3))
    return rigid(Q, 0.5 * (low + high) + shares * (high - low))


def _stretched_poses(elements: PathElements, rng: np.random.Generator) -> Array:
    """Return random poses (b, 4, 4) near the boundary of the workspace, reachable or not.

    The poses are poses of the arm at random configurations, with the limits of revolute joints
    ignored and the ranges of prismatic joints widened. The distance of each position from the point
    of the first axis is multiplied by a random factor from 1 to `MAX_STRETCH`. Unlike the poses of
    :func:`_random_poses`, the poses of a planar arm are in the plane of the arm.
    """
    widened = np.where(elements.prismatic, elements.upper - elements.lower, np.inf)
    lower, upper = elements.lower - 0.5 * widened, elements.upper + 0.5 * widened
    free = elements._replace(lower=lower, upper=upper)
    T = poses(free, _random_shares(elements, rng, 0.0))[1]
    b = end_axes(elements)[0][1]
    stretch = rng.uniform(1.0, MAX_STRETCH, (len(T), 1))
    return rigid(T[:, :3, :3], b + stretch * (T[:, :3, 3] - b))


def _greedy(refused: NDArray[np.bool_]) -> list[int]:
    """Select bounds one after the other, and return their indices.

    Each bound is the one that rejects most of the poses that no bound selected before rejects.

    Args:
        refused: (number of bounds, number of poses) whether a bound rejects a pose. The rows are
            the lower and the upper bound of each functional in turn.
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
    """Range of the distance between the first tip and a point on the first joint axis."""

    point: Array  # (3,) point on the axis, in the base frame [m]
    least: float  # lower bound of the distance over all configurations [m]
    most: float  # upper bound of the distance over all configurations [m]
    seen: tuple[float, float]  # minimum and maximum distance at random configurations [m]


def tip_extent(robot: RobotModel) -> Extent:
    """Return bounds on the distance between the first tip and a point on the first joint axis.

    The computation takes a few tenths of a second.
    """
    elements = path_elements(robot.chain, 0)
    unit = elements.length or 1.0
    scaled = elements.scaled(1.0 / unit)
    point, origin = end_axes(scaled)[0][1], np.zeros(3)
    budget = Budget()
    most = farthest(scaled, point, origin, budget)
    bounds = nearest(scaled, point, origin, budget), most
    random = robot.random(NUM_REACH_SAMPLES, np.random.default_rng(0))
    tips = robot.fk(random).reshape(NUM_REACH_SAMPLES, -1, 4, 4)
    distances = np.linalg.norm(tips[:, 0, :3, 3] - unit * point, axis=1)
    seen = float(distances.min()), float(distances.max())
    return Extent(unit * point, unit * bounds[0], unit * bounds[1], seen)


# Branch and bound

# A corner is a combination of corners of the triangles of all d joints; a box has 3^d corners. A
# round splits the boxes with the largest bounds.
MAX_RELEVANT_JOINTS = 5  # maximum number d of joints that change a functional
MAX_CORNERS = 10_000  # approximate maximum number of corners evaluated in one round
MAX_SUBDIVISION_ROUNDS = 40  # maximum number of rounds that split boxes
# maximum number of corners for a robot, about 1 s; 7 joints need about 1e6
MAX_REACH_CORNERS = 12_000_000
ROUND_WORK = 4000  # overhead of a round, as an equivalent number of corners
TIGHTNESS = 1e-9  # maximum difference of a tight bound from an attained value, relative to scale
RELATIVE_ROUNDING = 1e-10  # allowance for rounding errors, relative to the scale of the functional
MAX_ARC = TURN / 3.0  # [rad] a longer arc gets the triangle around the full circle, a smaller one

ORIGIN = np.zeros(3)


class Budget:
    """Amount of work that may still be spent on the bounds of a robot.

    The work is measured by the number of evaluated triangle corners (see the module docstring), and
    not by time, so that the bounds are equal on all machines.
    """

    def __init__(self, left: int = MAX_REACH_CORNERS) -> None:
        self.left = left  # remaining corners

    def spend(self, boxes: int, joints: int) -> None:
        """Subtract the work of one round of branch and bound.

        Args:
            boxes: Number of boxes that are evaluated in the round.
            joints: Number of joints that change the functional.
        """
        self.left -= ROUND_WORK + boxes * 3**joints

    @property
    def is_spent(self) -> bool:
        """Whether all work that the budget permits is done."""
        return self.left <= 0


class BoundedBoxes(NamedTuple):
    """b boxes (ranges of d joint positions), with bounds on the values of a functional in each."""

    lower: Array  # (b, d) lower ends of the ranges [rad or arm lengths]
    upper: Array  # (b, d) upper ends of the ranges [rad or arm lengths]
    bound: Array  # (b,) upper bound of the functional in the box
    attained: Array  # (b,) value of the functional at a configuration in the box
    worst: NDArray[np.int64]  # (b,) index of the joint whose triangle increases the bound most

    def rows(self, which: NDArray[np.int64] | slice) -> BoundedBoxes:
        """Return the boxes with the indices `which`, which may be a slice."""
        parts: list[Any] = [each[which] for each in self]
        return BoundedBoxes(*parts)


def upper_bound(elements: PathElements, functional: Functional, budget: Budget) -> float:
    """Return an upper bound of a functional over all configurations of a path.

    The bound is infinite if more than `MAX_RELEVANT_JOINTS` joints change the functional, if an
    unlimited prismatic joint changes the functional, or if no work is left in the budget at the
    call. If the work runs out during the search, the bound is valid but less tight.

    Args:
        elements: Path.
        functional: Functional of the tip pose.
        budget: Remaining work, which is reduced.
    """
    if budget.is_spent:
        return np.inf
    product = chain_product(elements, functional)
    slides = product.prismatic
    bounded = np.isfinite([product.lower[slides], product.upper[slides]]).all()
    is_small = bounded and len(slides) <= MAX_RELEVANT_JOINTS
    return maximum(product, budget) if is_small else np.inf


def maximum(product: ChainProduct, budget: Budget) -> float:
    """Return an upper bound of a functional within the joint limits, by branch and bound.

    The bound is tight if the search ends before the maximum number of rounds and before the budget
    is spent.

    Args:
        product: Functional as a product over the joints that change it.
        budget: Remaining work, which is reduced.
    """
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
        boxes = boxes.rows(np.argsort(-boxes.bound)[:good])  # sorted by descending bound
        if not len(boxes.bound) or budget.is_spent:
            break
        count = max(4, MAX_CORNERS // 3 ** (d + 1))
        budget.spend(3 * min(count, len(boxes.bound)), d)
        parts = _bounded(product, *_thirds(boxes, count))
        pairs = list(zip(boxes.rows(slice(count, None)), parts, strict=True))
        boxes = BoundedBoxes(*(np.concatenate(pair) for pair in pairs))
    return float(boxes.bound.max(initial=attained)) + TIGHTNESS * scale


def _thirds(boxes: BoundedBoxes, count: int) -> tuple[Array, Array]:
    """Split each of the first `count` boxes into three equal boxes.

    The range of the joint `worst` of each box is divided.

    Returns:
        Lower and upper ends of the ranges of the new boxes, (3 count, d) each.
    """
    lower, upper = (np.concatenate([end[:count]] * 3) for end in (boxes.lower, boxes.upper))
    rows, worst = np.arange(len(lower)), np.concatenate([boxes.worst[:count]] * 3)
    part = np.repeat(np.arange(3), len(lower) // 3)
    a, b = lower[rows, worst], upper[rows, worst]
    lower[rows, worst] = np.where(part == 0, a, a + part / 3.0 * (b - a))
    upper[rows, worst] = np.where(part == 2, b, a + (part + 1) / 3.0 * (b - a))
    return lower, upper


def _bounded(product: ChainProduct, lower: Array, upper: Array) -> BoundedBoxes:
    """Return boxes with an upper bound and an attained value of a functional in each box.

    The bound is the largest value at a combination of triangle corners (see the module docstring).
    The attained value is the value of the functional at joint positions close to this combination.

    Args:
        product: Functional.
        lower: (b, d) lower ends of the joint ranges of each box.
        upper: (b, d) upper ends of the joint ranges of each box.
    """
    b, d = lower.shape
    wide = ~product.prismatic & (upper - lower > MAX_ARC)  # (b, d)
    middle = 0.5 * (lower + upper)
    narrow = np.stack([lower, upper, middle], -1)
    # (b, d, 3) joint positions that define the triangle of each joint: both ends and the middle of
    # an arc, or three equally spaced positions on a full circle
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
    """Return (b, d) how far the arc of a joint extends toward a corner of the enclosing triangle.

    The arc consists of the points (cos q, sin q) or (q, q^2) for the joint positions q in a box.
    The result is the distance of the middle of the arc from its chord, divided by the distance of
    the triangle corner opposite to the chord from the chord. For a full circle, the result is the
    radius divided by the distance of a corner from the center.

    Args:
        prismatic: (d,) whether a joint is prismatic.
        wide: (b, d) whether the triangle encloses a full circle.
        lower: (b, d) lower ends of the joint ranges of each box.
        upper: (b, d) upper ends of the joint ranges of each box.
    """
    cosine = np.where(prismatic | wide, 1.0, np.cos(0.5 * (upper - lower)))
    return np.where(wide, 0.5, cosine / (1.0 + cosine))


def _triangle(
    product: ChainProduct, j: int, on_arc: Array, wide: NDArray[np.bool_], share: Array
) -> Array:
    """Return the matrices (b, 3, s, s) of joint j at the corners of the triangle of each box.

    A matrix of a joint is that of :meth:`ChainProduct.motion`, whose size s is 5 or 6.

    A triangle encloses the points (cos q, sin q) or (q, q^2) for the joint positions q in a box.
    The motion matrix is affine in these points, and can therefore be evaluated at the corners.

    Args:
        product: Functional.
        j: Index of the joint.
        on_arc: (b, 3) joint positions that define the triangles: both ends and the middle of an
            arc, or three equally spaced positions on a full circle.
        wide: (b,) whether the triangle encloses a full circle.
        share: (b,) result of :func:`_share` for the joint.
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
    """Return how much the triangle of each joint increases the bound of a box.

    The bound is the largest value at a combination of triangle corners. A corner that is not on the
    arc that the triangle encloses makes the bound larger than the maximum of the functional. The
    increase is the difference of the values at this corner and at the closest point of the arc.

    Args:
        corners: (b, 3^d) values of the functional at all combinations of triangle corners.
        best: (b,) index of the combination with the largest value.
        wide: (b, d) whether the triangle encloses a full circle.
        share: (b, d) result of :func:`_share`.

    Returns:
        The increase for each joint (b, d), and the index of the triangle corner, 0 to 2, of each
        joint in the combination `best` (b, d).
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
    """Return an upper bound of the distance between a base point and a tip point.

    If too many joints change the distance, the path is split in the middle, and the bound is the
    sum of the upper bounds for both halves. If the budget is spent, the bound is the length of the
    path plus the distances of the points from the origins of their frames.

    Args:
        elements: Path.
        base: (3,) point in the base frame.
        tip: (3,) point in the tip frame.
        budget: Remaining work, which is reduced.
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
    """Return a lower bound of the distance between a base point and a tip point.

    If too many joints change the distance, the path is split in the middle, and the bound is the
    lower bound for one half minus the upper bound for the other half, or 0 if this is negative. If
    the budget is spent, the bound is 0.

    Args:
        elements: Path.
        base: (3,) point in the base frame.
        tip: (3,) point in the tip frame.
        budget: Remaining work, which is reduced.
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
