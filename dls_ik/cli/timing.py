"""When a joint path is where: by given times, at a rate, or as fast as the limits allow."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.exceptions import OptionError
from dls_ik.model.robot import RobotModel

FASTEST = "as fast as the velocity limits allow"
SHORTEST = 1e-3  # [s] between two poses that no joint moves between


class Timing(NamedTuple):
    """Times of a path, and where they come from."""

    t: Array  # (b,) [s]
    source: str


def timed(robot: RobotModel, q: Array, given: Array | None, rate: float | None) -> Timing:
    """Times of a joint path q (b, n): at a rate [Hz], as given (b,) [s], or as fast as can be.

    Raises:
        OptionError: neither, and a joint that moves without a velocity limit.
    """
    if rate is not None:
        return Timing(np.arange(len(q)) / rate, f"at {rate:g} Hz")
    if given is not None:
        return Timing(given, "column t")
    changes = np.abs(np.diff(q, axis=0))  # (b - 1, n)
    unknown = np.isinf(robot.velocity) & (changes > 0.0).any(axis=0)
    if unknown.any():
        name = robot.joint_names[int(np.flatnonzero(unknown)[0])]
        raise OptionError(f"joint {name} has no velocity limit: give --rate, or a column t")
    steps = np.maximum((changes / robot.velocity).max(axis=1, initial=0.0), SHORTEST)
    return Timing(np.concatenate([[0.0], np.cumsum(steps)]), FASTEST)


def speeds(robot: RobotModel, t: Array, q: Array) -> Array:
    """(b - 1,) the largest share of a velocity limit between each pose and the next."""
    rates = np.abs(np.diff(q, axis=0)) / np.diff(t)[:, None]
    shares: Array = (rates / robot.velocity).max(axis=1, initial=0.0)
    return shares


def too_fast(robot: RobotModel, t: Array, q: Array) -> NDArray[np.int64]:
    """Poses that are reached from those before only beyond a velocity limit."""
    return np.flatnonzero(speeds(robot, t, q) > 1.0 + 1e-6) + 1
