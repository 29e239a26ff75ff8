"""Bounds on what an arm reaches: which numbers of a pose to bound, and how far the tip can be."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.reach_bounds import DISTANCE, HEIGHT, LEAN, MOMENT, Reach
from dls_ik.core.types import Array, Chain
from dls_ik.model.reach.interval_bounds import Budget, farthest, largest, nearest
from dls_ik.model.reach.pose_functionals import (
    Elements,
    Form,
    elements_of,
    end_axes,
    height,
    lean,
    moment,
    negative,
    poses,
    rigid,
    squared_distance,
    value,
)
from dls_ik.model.robot import RobotModel

LOG = logging.getLogger("dls_ik")
GIVEN_UP = (
    "bounds on what {} joints reach would take too long and are partly given up: what is out of "
    "reach may be searched for until the timeout, instead of being UNREACHABLE"
)
APART = (0.3, 1.0, 3.0)  # of the arm's length: of points on an axis from the first one
SAMPLES = 3000  # random configurations
AT_END = 0.15  # share of the joints that stand at an end of their range
ROOM = 1.1  # of the box in which the tip was seen
STRETCH = 1.3
SIDES = 10  # at most
SAME = 1e-9  # of a form's scale: a number that no configuration changes
LEAST = 0.001  # share of the poses that a side must add


class PoseReading(NamedTuple):
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


def _readings(
    elements: Elements, position_only: bool
) -> tuple[list[PoseReading], list[PoseReading]]:
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
        plain += [PoseReading(LEAN, base, last, lean(base[0], a)) for base in bases]
        plain += [PoseReading(MOMENT, first, last, moment(first, last))]
        for beyond in _along(last):
            further += [_distance(first, beyond), _height(first, beyond)]
    return plain, further


def _distance(base: Array, tip: Array) -> PoseReading:
    return PoseReading(DISTANCE, base, tip, squared_distance(base[1], tip[1]))


def _height(base: Array, tip: Array) -> PoseReading:
    return PoseReading(HEIGHT, base, tip, height(base, tip[1]))


def _along(line: Array) -> Array:
    """The line's (2, 3) unit vector with points further along either way, (b, 2, 3)."""
    shifts = np.array([*APART, *(-step for step in APART)])
    lines: Array = line + shifts[:, None, None] * np.array([np.zeros(3), line[0]])
    return lines


def _range(
    elements: Elements, reading: PoseReading, wanted: tuple[bool, bool], budget: Budget
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


def telling_sides(
    elements: Elements, forms: Sequence[Form], plain: int
) -> list[tuple[int, tuple[bool, bool]]]:
    """Which forms to bound, most telling first, and whether from below and from above.

    Of the first so many, the plain ones, those that have one value only are all among them: random
    poses cannot tell which of them say the same, and they are what keeps a planar arm to its plane.
    """
    rng = np.random.default_rng(0)
    reached = poses(elements, _shares(elements, rng, AT_END))[1]
    asked = np.concatenate([_anywhere(reached, rng), _stretched(elements, rng)])
    refused, constant = [], []
    for form in forms:
        seen, numbers = value(form, reached), value(form, asked)
        spread = seen.max() - seen.min()
        margin = 1e-3 * spread + SAME * form.scale
        refused += [numbers < seen.min() - margin, numbers > seen.max() + margin]
        constant += 2 * [bool(spread < SAME * form.scale)]
    sides = _greedy(np.array(refused)) + np.flatnonzero(constant[: 2 * plain]).tolist()
    order = dict.fromkeys(side // 2 for side in sides)
    return [(i, (2 * i in sides, 2 * i + 1 in sides)) for i in order]


def _shares(elements: Elements, rng: np.random.Generator, at_end: float) -> Array:
    """Configurations (b, m) as shares of the ranges; so many of the joints at an end."""
    shares = rng.uniform(size=(SAMPLES, len(elements.prismatic)))
    rounded = rng.uniform(size=shares.shape) < at_end
    return np.asarray(np.where(rounded, np.round(shares), shares))


def _anywhere(reached: Array, rng: np.random.Generator) -> Array:
    """Poses (b, 4, 4) anywhere in the box about others, turned in any way."""
    low, high = reached[:, :3, 3].min(0), reached[:, :3, 3].max(0)
    Q, upper = np.linalg.qr(rng.normal(size=(len(reached), 3, 3)))
    Q *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None]
    Q[:, :, 0] *= np.linalg.det(Q)[:, None]
    shares = rng.uniform(-0.5 * ROOM, 0.5 * ROOM, (len(Q), 3))
    return rigid(Q, 0.5 * (low + high) + shares * (high - low))


def _stretched(elements: Elements, rng: np.random.Generator) -> Array:
    """Poses (b, 4, 4) of the arm without its limits and longer: of a planar arm in its plane."""
    widened = np.where(elements.prismatic, elements.upper - elements.lower, np.inf)
    lower, upper = elements.lower - 0.5 * widened, elements.upper + 0.5 * widened
    free = elements._replace(lower=lower, upper=upper)
    T = poses(free, _shares(elements, rng, 0.0))[1]
    b = end_axes(elements)[0][1]
    stretch = rng.uniform(1.0, STRETCH, (len(T), 1))
    return rigid(T[:, :3, :3], b + stretch * (T[:, :3, 3] - b))


def _greedy(refused: NDArray[np.bool_]) -> list[int]:
    """Sides in the order of how many poses they refuse that none before does.

    Args:
        refused: (sides, poses).
    """
    left = np.ones(refused.shape[1], np.bool_)
    sides: list[int] = []
    while len(sides) < SIDES:
        counts = (refused & left).sum(1)
        side = int(counts.argmax())
        if counts[side] <= LEAST * len(left):
            break
        sides.append(side)
        left &= ~refused[side]
    return sides


class Extent(NamedTuple):
    """Distances [m] of the first tip from a point on the first joint's axis."""

    point: Array  # (3,) in the base frame
    least: float  # no configuration within the limits comes nearer ...
    most: float  # ... or gets farther
    seen: tuple[float, float]  # the nearest and farthest of random configurations


def tip_extent(robot: RobotModel) -> Extent:
    """Bound and sample the distance; takes some tenths of a second."""
    elements = elements_of(robot.chain, 0)
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
