"""Promises that answers keep."""

from typing import Any

import numpy as np

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError


class BrokenError(Exception):
    """A promise that is not kept."""


def require(holds: Any, words: str, *about: Any) -> None:
    """Raise where a promise does not hold."""
    if not holds:
        raise BrokenError(": ".join([words, *map(str, about)]))


def require_inside(robot: RobotModel, q: Any) -> None:
    """Joint values (n,) or (b, n) are finite and inside the limits."""
    require(np.isfinite(q).all(), "not finite", q)
    require(((q >= robot.lower) & (q <= robot.upper)).all(), "beyond the limits", q)


def require_line(error: DlsIkError, longest: int = 20_000) -> None:
    """An error says something, in one line that is not endless."""
    words = str(error)
    require(words and len(words) <= longest, "a message of length", len(words))
    require("\n" not in words and "\x1b" not in words, "more than a line", repr(words))
