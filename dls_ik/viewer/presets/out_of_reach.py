"""Out of reach: straight away from the first joint that turns, farther than the arm is long."""

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.presets.preset import Preset
from dls_ik.viewer.start import comfortable

SAMPLES, SEED, POSES = 4000, 3, 61
BEYOND = 1.2  # times the distance that was reached
WATCH = (
    "both arms stretch after a target that leaves their reach: the condition number shoots up and "
    "an error remains; the joints of A, without damping, are the faster and more restless ones, "
    "and both follow again when the target is back."
)


def out_of_reach(robot: RobotModel) -> Preset:
    """From where the arm moves well, out along the line from its shoulder, and back."""
    q = comfortable(robot)
    T = robot.fk(q)
    shoulder, reach = _shoulder(robot)
    away = T[:3, 3] - shoulder
    length = float(np.linalg.norm(away))
    direction = away / length if length > 1e-6 else np.array([1.0, 0.0, 0.0])
    way = np.linspace(0.0, max(BEYOND * reach - length, 0.2 * reach), POSES)
    Ts = np.repeat(T[None], POSES, axis=0)
    Ts[:, :3, 3] += way[:, None] * direction
    return Preset("Out of reach", WATCH, ("jp", "dls"), q, Ts, 4.0)


def _shoulder(robot: RobotModel) -> tuple[Array, float]:
    """A point (3,) that the tip stays about, and how far from it the tip came [m]."""
    tips = robot.fk(robot.random(np.random.default_rng(SEED), SAMPLES))[:, :3, 3]
    middle = 0.5 * (tips.min(axis=0) + tips.max(axis=0))
    return middle, float(np.linalg.norm(tips - middle, axis=1).max())
