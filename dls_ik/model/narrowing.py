"""Limits narrowed by further ones, such as those of a request."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.exceptions import LimitsError
from dls_ik.model.names import listing, quoted
from dls_ik.model.values import checked_configuration

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel

TURN = 2.0 * np.pi
FARTHEST = 1e9  # [rad] as of poses; farther, a turn has few digits left


def narrowed_limits(
    robot: "RobotModel", lower: ArrayLike, upper: ArrayLike, near: ArrayLike | None
) -> tuple[Array, Array]:
    """What limits and intervals have in common, (n,) each, read-only.

    Raises:
        LimitsError: as :meth:`dls_ik.RobotModel.narrowed`.
    """
    low, high = (_bounds(robot, what) for what in ((lower, -np.inf), (upper, np.inf)))
    middle = np.zeros(robot.n) if near is None else checked_configuration(near, robot.joint_names)
    turns = robot.continuous if robot.whole is None else robot.whole.continuous
    ends = zip(low.tolist(), high.tolist(), middle.tolist(), turns.tolist(), strict=True)
    bounds = [_common(robot, j, *each) for j, each in enumerate(ends)]
    narrowed = np.array(bounds).T.copy()
    narrowed.flags.writeable = False
    return narrowed[0], narrowed[1]


def _bounds(robot: "RobotModel", given: tuple[Any, float]) -> Array:
    """(n,) of one number or n."""
    values, none = given
    try:
        bounds = np.array(np.broadcast_to(np.array(values, np.float64), (robot.n,)))
    except (TypeError, ValueError, OverflowError):
        bounds = np.full(robot.n, np.nan)
    if np.isnan(bounds).any() or (bounds == -none).any():
        raise LimitsError(
            f"limits are one number, or one for each of the {robot.n} joints "
            f"({listing(robot.joint_names)}), {none} for none, not {quoted(values)}"
        )
    return bounds


def _common(
    robot: "RobotModel", j: int, low: float, high: float, near: float, turns: bool
) -> tuple[float, float]:
    """What joint `j` keeps of its limits: where [low, high], or that some turns on, is too."""
    lower, upper, name = float(robot.lower[j]), float(robot.upper[j]), robot.joint_names[j]
    if high < low:
        raise LimitsError(f"joint {name!r}: the lower limit {low} is above the upper one {high}")
    if turns and high - low >= TURN:
        return lower, upper
    if turns and max(abs(low), abs(high)) > FARTHEST:
        raise LimitsError(
            f"joint {name!r}: the interval [{low}, {high}] is beyond {FARTHEST:g} rad, where "
            "numbers are too coarse for angles"
        )
    if turns:
        shift = _shift(low, high, lower, upper, near)
        low, high = low + shift, high + shift
    if max(low, lower) > min(high, upper):
        raise LimitsError(
            f"joint {name!r}: its limits [{lower}, {upper}] and the interval [{low}, {high}] have "
            "nothing in common"
        )
    return max(low, lower), min(high, upper)


def _shift(low: float, high: float, lower: float, upper: float, near: float) -> float:
    """Whole turns [rad] that bring an interval to a value, or to limits that are there already."""
    if not np.isfinite(upper - lower):
        return float(TURN * np.round((near - 0.5 * (low + high)) / TURN))
    nearest = np.round((0.5 * (lower + upper) - 0.5 * (low + high)) / TURN)
    shifts = TURN * (nearest + np.array([0.0, -1.0, 1.0]))
    shared = np.minimum(high + shifts, upper) - np.maximum(low + shifts, lower)
    return float(shifts[np.argmax(shared)])
