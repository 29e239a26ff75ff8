"""Bounds on the poses of an arm: choice of the functionals, their bounds, extent of the tip."""

import logging
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.reach_bounds import DISTANCE, HEIGHT, LEAN, MOMENT, ReachBounds
from dls_ik.core.types import Array, Chain
from dls_ik.model.reach.interval_bounds import Budget, farthest, nearest, upper_bound
from dls_ik.model.reach.pose_functionals import (
    Functional,
    PathElements,
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
