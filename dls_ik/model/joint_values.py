"""Joint values and intervals from outside, checked against the joints of a robot."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import Array
from dls_ik.errors import JointValueError, LimitsError
from dls_ik.model.joint import FARTHEST
from dls_ik.model.names import listing, quoted

TURN = 2.0 * np.pi


def checked_values(q: ArrayLike, joint_names: tuple[str, ...]) -> Array:
    """Joint values as contiguous, writable float64: (n,), or a batch (b, n).

    Raises:
        JointValueError: not numbers, the wrong length, or not finite; the message says what was
            given, and names the joint.
    """
    try:
        given = np.asarray(q)
        if given.dtype.kind in "cmM":  # NumPy would leave out the imaginary part, or count seconds
            raise TypeError(f"{given.dtype} is no real number")
        values = np.require(given, np.float64, ["C", "W", "A"])
    except (TypeError, ValueError, OverflowError) as error:
        raise JointValueError(f"joint values must be numbers: {error}") from error
    if values.ndim not in (1, 2) or values.shape[-1] != len(joint_names):
        raise JointValueError(
            f"expected {len(joint_names)} joint values ({listing(joint_names)}), "
            f"given the shape {values.shape}"
        )
    if not np.isfinite(values).all():
        at = tuple(np.argwhere(~np.isfinite(values))[0])
        raise JointValueError(
            f"joint {joint_names[at[-1]]!r} has the value {values[at]}, which is not finite"
        )
    return values


def checked_configuration(q: ArrayLike, joint_names: tuple[str, ...]) -> Array:
    """One configuration (n,), as :func:`checked_values` has it.

    Raises:
        JointValueError: as :func:`checked_values`; a batch.
    """
    values = checked_values(q, joint_names)
    if values.ndim != 1:
        raise JointValueError(
            f"expected one configuration of {len(joint_names)} joint values, "
            f"given the shape {values.shape}"
        )
    return values


def narrowed_limits(
    joint_names: tuple[str, ...],
    limits: tuple[Array, Array],
    turns: NDArray[np.bool_],
    lower: ArrayLike,
    upper: ArrayLike,
    near: ArrayLike | None,
) -> tuple[Array, Array]:
    """What limits and intervals have in common, (n,) each, read-only.

    Args:
        limits: (n,) each [rad or m].
        turns: (n,) joints that turn freely, or did before they were narrowed.
        lower: As of :meth:`dls_ik.RobotModel.narrowed`, and so are upper and near.

    Raises:
        LimitsError: as :meth:`dls_ik.RobotModel.narrowed`.
    """
    low, high = _bounds(joint_names, lower, -np.inf), _bounds(joint_names, upper, np.inf)
    n = len(joint_names)
    middle = np.zeros(n) if near is None else checked_configuration(near, joint_names)
    columns = (each.tolist() for each in (*limits, low, high, middle, turns))
    narrowed = np.array([_common(*row) for row in zip(joint_names, *columns, strict=True)]).T.copy()
    narrowed.flags.writeable = False
    return narrowed[0], narrowed[1]


def _bounds(joint_names: tuple[str, ...], values: Any, none: float) -> Array:
    """(n,) of one number or n."""
    n = len(joint_names)
    try:
        bounds = np.array(np.broadcast_to(np.array(values, np.float64), (n,)))
    except (TypeError, ValueError, OverflowError):
        bounds = np.full(n, np.nan)
    if np.isnan(bounds).any() or (bounds == -none).any():
        raise LimitsError(
            f"limits are one number, or one for each of the {n} joints "
            f"({listing(joint_names)}), {none} for none, not {quoted(values)}"
        )
    return bounds


def _common(
    name: str, lower: float, upper: float, low: float, high: float, near: float, turns: bool
) -> tuple[float, float]:
    """What a joint keeps of its limits: where [low, high], or that some turns on, is too."""
    if high < low:
        raise LimitsError(f"joint {name!r}: the lower limit {low} is above the upper one {high}")
    if turns and high - low >= TURN:
        return lower, upper
    if turns and max(abs(low), abs(high)) > FARTHEST:  # a turn has few digits left
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
