"""The planar arm and the rectangle of Figures 4, 5 and 7 of Deo & Walker 1993."""

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.dh import DhRow
from dls_ik.model.robot import RobotModel
from dls_ik.reproduce.rates import Case, Moment
from dls_ik.solver.task import Task

LINKS = (1.0, 0.5, 0.5)
START = np.radians([5.0, -175.0, 175.0])
WIDTH, HEIGHT = 0.7, 0.9
SPEED = 1.0  # along the rectangle [1/s]
DURATION = 2.0 * (WIDTH + HEIGHT) / SPEED
SETTINGS = {
    "links": LINKS,
    "start [deg]": (5, -175, 175),
    "rectangle": f"{WIDTH} wide, {HEIGHT} high, counter-clockwise from its lower left corner",
    "speed [1/s]": SPEED,
}
NOTE = (
    "The rectangle of 0.9 x 0.7 is 0.7 wide and 0.9 high here: from the start it would leave the "
    "reach of the arm the other way round. Its speed is not printed; here 1 unit a second."
)


def case() -> Case:
    """The arm, at its start, whose position in the plane counts."""
    robot = RobotModel.from_dh([DhRow(a=a, kind="continuous") for a in LINKS], name="planar_3r")
    return Case(robot, START, Task("xy", ""))


def rectangle(steps: int) -> list[Moment]:
    """The path from the lower left corner, counter-clockwise."""
    corner = joints(START)[-1]
    sides = np.array([[WIDTH, 0.0], [0.0, HEIGHT], [-WIDTH, 0.0], [0.0, -HEIGHT]])
    corners = corner + np.concatenate([np.zeros((1, 2)), np.cumsum(sides, axis=0)])
    lengths = np.array([WIDTH, HEIGHT, WIDTH, HEIGHT])
    ends = np.cumsum(lengths)
    path = []
    for way in np.arange(steps) * (ends[-1] / steps):
        side = min(int(np.searchsorted(ends, way, side="right")), 3)
        direction = sides[side] / lengths[side]
        T = np.eye(4)
        T[:2, 3] = corners[side] + direction * (way - ends[side] + lengths[side])
        path.append(Moment(T, SPEED * direction))
    return path


def joints(q: Array) -> Array:
    """The base, the joints and the tip (..., 4, 2) at q (..., 3)."""
    turned = np.cumsum(q, axis=-1)
    links = np.array(LINKS)[:, None] * np.stack([np.cos(turned), np.sin(turned)], axis=-1)
    ends = np.cumsum(links, axis=-2)
    return np.concatenate([np.zeros_like(ends[..., :1, :]), ends], axis=-2)
