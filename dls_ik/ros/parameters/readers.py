"""What a parameter may hold: each reader takes a value as ROS gives it, or says what it expects."""

import math
from collections.abc import Sequence
from typing import Any

MOST = 1000  # of a list
MAX_NAME = 256  # characters


def text(value: Any) -> str:
    """A string.

    Raises:
        ValueError: saying what was expected, as from all readers here.
    """
    if not isinstance(value, str):
        raise ValueError("a string")
    return value


def switch(value: Any) -> bool:
    """True or false."""
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def number(value: Any) -> float:
    """A finite number; whole ones are taken as well, so that ``rate:=100`` works."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("a finite number")
    return float(value)


def whole_number(value: Any) -> int:
    """An integer."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError("a whole number")
    return value


def numbers(value: Any) -> tuple[float, ...]:
    """A list of finite numbers."""
    try:
        items = None if isinstance(value, (str, bytes)) else tuple(value)
    except TypeError:  # also of arrays without dimensions, which look iterable
        items = None
    if items is None or len(items) > MOST:
        raise ValueError(f"a list of numbers, at most {MOST}")
    return tuple(number(item) for item in items)


def names(value: Any) -> tuple[str, ...]:
    """A list of strings, or one string with commas between the names."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise ValueError("a string, or a list of strings")
    if len(parts) > MOST or any(len(part) > MAX_NAME for part in parts):
        raise ValueError(f"at most {MOST} names of {MAX_NAME} characters")
    return tuple(part.strip() for part in parts if part.strip())
