"""Through a singularity: poses of a straight motion of the joints across one.

All of them can be reached, and the joints need not be fast; a method that inverts the Jacobian
without damping does not know that.
"""

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.measures import DEFAULTS
from dls_ik.viewer.presets.preset import Preset

TRIED, KEPT, DIRECTIONS, SEED = 2000, 8, 24, 5
SINGULAR = 0.1  # of the median: a smaller least singular value is as good as none
FARTHEST = 0.75  # [rad or m] of the joints, either way
POSES = 121
WATCH = (
    "where the least singular value (under Conditioning) falls to zero, the joints of A, the plain "
    "pseudoinverse, twitch (see the fastest joint); B, damped least squares, passes quietly and "
    "pays for it with a little more error."
)


def through_a_singularity(robot: RobotModel) -> Preset | None:
    """A wide motion of the tip, in front of the arm; None for a robot without room for one.

    None too where nothing is singular, as for few joints whose task has six rows.
    """
    rng = np.random.default_rng(SEED)
    middles = _singular(robot, rng)
    motions = [(middle, way) for middle in middles for way in _ways(robot, rng)]
    if not motions:
        return None
    ways = [_across(robot, *motion) for motion in motions]
    tips = [robot.fk(q[[0, -1]])[:, :3, 3] for q in ways]
    widths = [float(np.linalg.norm(b - a)) + float(a[0] + b[0]) for a, b in tips]
    q = ways[int(np.argmax(widths))]
    if np.abs(q[-1] - q[0]).max() < 0.1:
        return None
    methods = ("jp", "dls")
    return Preset("Through a singularity", WATCH, methods, q[0], robot.fk(q), 5.0)


def _singular(robot: RobotModel, rng: np.random.Generator) -> Array:
    """(KEPT, n) the most singular of many configurations away from the limits; or none is."""
    lower, upper = robot.finite_limits()
    q = 0.5 * (lower + upper) + 0.55 * (robot.random(rng, TRIED) - 0.5 * (lower + upper))
    J = robot.jacobian(q)
    J[:, 3:] *= DEFAULTS.rotation_weight
    least = np.linalg.svd(J, compute_uv=False)[:, min(6, robot.n) - 1]
    kept: Array = robot.clip(q)[np.argsort(least)[:KEPT]]
    return kept if least.min() < SINGULAR * np.median(least) else kept[:0]


def _ways(robot: RobotModel, rng: np.random.Generator) -> Array:
    """(DIRECTIONS, n) directions, the largest entry being 1."""
    d = rng.normal(size=(DIRECTIONS, robot.n))
    ways: Array = d / np.abs(d).max(axis=1, keepdims=True)
    return ways


def _across(robot: RobotModel, middle: Array, direction: Array) -> Array:
    """(POSES, n) as far either way as the limits let it."""
    room = np.minimum(middle - robot.lower, robot.upper - middle)
    with np.errstate(divide="ignore"):
        reach = min(FARTHEST, 0.8 * float((room / np.abs(direction)).min()))
    steps: Array = middle + np.linspace(-reach, reach, POSES)[:, None] * direction
    return steps
