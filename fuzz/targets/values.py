"""Joint values, limits, links and offsets for a robot's own functions."""

from collections.abc import Callable
from typing import Any

import numpy as np

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError
from fuzz.anything import anything, numbers
from fuzz.guard import Run
from fuzz.source import Source
from fuzz.targets.checks import require
from fuzz.targets.poses import PLANAR, TWO, WAM, configuration, pose

ROBOTS = (WAM, PLANAR, TWO)
FARTHEST = 1e6  # [rad or m] of joints of which poses are looked at


def build() -> Run:
    """Make the target."""
    for robot in ROBOTS:
        robot.jacobian(np.zeros((2, robot.n)))
    return run


def run(source: Source) -> None:
    """Call one of the functions."""
    robot = source.pick(ROBOTS)
    try:
        source.pick(CALLS)(source, robot)
    except DlsIkError as error:
        require(str(error), "an error without words")


def _kinematics(source: Source, robot: RobotModel) -> None:
    q = configuration(source, robot)
    q = robot.validated([] if q is None else q)
    T, J = robot.fk(q), robot.jacobian(q)
    if (np.abs(q) <= FARTHEST).all():
        require(np.isfinite(T).all() and np.isfinite(J).all(), "not finite", q)


def _narrowed(source: Source, robot: RobotModel) -> None:
    ends = [_limit(source, robot) for _ in range(2)]
    near = configuration(source, robot) if source.one_in(3) else None
    narrow = robot.narrowed(*ends, near)
    require((narrow.lower <= narrow.upper).all(), "crossed", narrow.lower, narrow.upper)
    require((narrow.lower >= robot.lower).all() or robot.continuous.any(), "wider", ends)
    q = narrow.random(np.random.default_rng(0))
    require(narrow.within_limits(q), "outside", q)


def _limit(source: Source, robot: RobotModel) -> Any:
    kind = source.below(4)
    if kind == 0:
        return source.number(3.0)
    if kind == 1:
        return anything(source)
    return numbers(source, robot.n, 3.0)


def _link_pose(source: Source, robot: RobotModel) -> None:
    link = source.pick((*robot.link_names, source.word()))
    names = (*robot.tree.joint, source.word())
    others = {source.pick(names): source.number() for _ in range(source.below(3))}
    q = configuration(source, robot)
    T = robot.link_pose(link, np.zeros(robot.n) if q is None else q, others)
    require(T.shape == (4, 4), "no pose", T)


def _with_tip(source: Source, robot: RobotModel) -> None:
    link = source.pick((*robot.link_names, source.word()))
    offset = pose(source, PLANAR) if source.one_in(2) else None
    more = robot.with_tip(link, offset, {source.pick((*robot.tree.joint, "x")): source.number()})
    require(len(more.tips) == len(robot.tips) + 1, "tips", more.tips)


def _limits(source: Source, robot: RobotModel) -> None:
    q = configuration(source, robot)
    q = np.zeros(robot.n) if q is None else q
    require(np.all(robot.within_limits(robot.clip(q))), "clipped outside", q)
    robot.within_limits(q, abs(source.number()))


CALLS: tuple[Callable[[Source, RobotModel], None], ...] = (
    _kinematics, _narrowed, _narrowed, _link_pose, _with_tip, _limits,
)  # fmt: skip
