"""Times and durations that are given, checked: numbers, and nothing that only looks like one."""

import math
from numbers import Real
from typing import Any

from dls_ik.errors import OptionError
from dls_ik.text import quoted


def checked_time(name: str, value: Any) -> float:
    """A time or an age [s], finite, or an OptionError."""
    time = _number(value)
    if not math.isfinite(time):
        raise OptionError(f"{name} is a finite time [s], not {quoted(value)}")
    return time


def checked_duration(dt: Any) -> float:
    """A time above zero [s], or an OptionError."""
    duration = _number(dt)
    if not 0.0 < duration < math.inf:
        raise OptionError(f"dt is a time above 0 [s], not {quoted(dt)}")
    return duration


def checked_period(period: Any) -> float:
    """A time between poses [s], or an OptionError."""
    interval = _number(period)
    if not 1e-3 <= interval <= 3600.0:
        raise OptionError(f"period is a time from 0.001 to 3600 [s], not {quoted(period)}")
    return interval


def _number(value: Any) -> float:
    """It as a float, NaN where it is none."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan
