"""How far and how near a tip can be: rigorous bounds, and what random configurations show."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.distances import farthest, nearest
from dls_ik.model.elements import elements_of, end_axes
from dls_ik.model.extremes import Budget
from dls_ik.model.robot import RobotModel

SAMPLES = 3000


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
