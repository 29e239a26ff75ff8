"""Tolerances of tasks: how they are given and checked."""

import math
from collections.abc import Iterable
from typing import Any, TypeAlias

import numpy as np

from dls_ik.core import types
from dls_ik.errors import OptionError
from dls_ik.text import quoted

Slack: TypeAlias = Any  # a number, or three; in a task three
ZERO = (0.0, 0.0, 0.0)
INSIDE = 0.95  # share of a slack to which a row beyond it is brought
SECOND_EULER = 4  # component


def checked_slack(name: str, given: Any) -> tuple[float, float, float]:
    """Three numbers from 0 on, of one or three given.

    Raises:
        OptionError: anything else.
    """
    try:
        several = isinstance(given, Iterable) and not isinstance(given, (str, bytes))
        slack = tuple(float(each) for each in given) if several else (float(given),) * 3
    except (TypeError, ValueError, OverflowError):
        slack = ()
    if len(slack) != 3 or isinstance(given, str) or not all(each >= 0.0 for each in slack):
        raise OptionError(
            f"{name}_tolerance of a task is a number from 0 on, or three, for x, y and z, not "
            f"{quoted(given)}"
        )
    return slack


def check_round(position: str, axes: str, slack: tuple[float, float, float]) -> None:
    """Refuse a ball or a cylinder of axes that do not count, or that differ in their radius.

    Raises:
        OptionError: as said.
    """
    radii = {slack["xyz".index(axis)] for axis in axes}
    if len(axes) == 1 or set(axes) - set(position) or len(radii) > 1:
        raise OptionError(
            f"round names two or three axes of the position ({quoted(position)}) whose "
            f"position_tolerance is the same, not {quoted(axes)} with {slack}"
        )


def is_bound(component: int, slack: float, angles: str) -> bool:
    """Whether a row can be beyond its slack.

    Args:
        component: 0 to 2: position, 3 to 5: rotation.
    """
    if component < 3:
        return slack < math.inf
    largest = math.pi / 2 if angles == "euler" and component == SECOND_EULER else math.pi
    return slack < largest


def strict_goal(goal: types.Goal, task: types.Task) -> types.Goal:
    """The goal of a task, by which rows with a slack are to be inside, not a tolerance beyond.

    The scaled error may be as large as tolerances make it. A row beyond its slack has an error
    larger than that, unless the slack is of no more than some tolerances.
    """
    if not task.has_slack:
        return goal
    is_position = task.component < 3
    tolerances = np.where(is_position, goal.position_tolerance, goal.rotation_tolerance)
    most = float(np.linalg.norm(task.weight * tolerances))
    return goal._replace(error_tolerance=min(goal.error_tolerance, most))
