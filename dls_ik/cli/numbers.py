"""Several numbers in one word of the command line."""

from collections.abc import Callable
from typing import Any

import click
import numpy as np

Vector = tuple[float, ...] | None  # what an option of numbers gives


def numbers(*counts: int) -> Callable[[Any, Any, str | None], Vector]:
    """A callback of click that reads finite numbers, so many if that is said."""

    def read(context: Any, param: Any, given: str | None) -> Vector:
        return None if given is None else parsed_numbers(given, *counts)

    return read


def parsed_numbers(given: str, *counts: int) -> tuple[float, ...]:
    """Finite numbers with commas or spaces between them, so many if that is said.

    Raises:
        click.BadParameter: what is none, or too many or few.
    """
    words = given.translate(str.maketrans(",;[]", "    ")).split()
    found = tuple(as_number(word) for word in words)
    for word, number in zip(words, found, strict=True):
        if not np.isfinite(number):
            raise click.BadParameter(f"{word!r} is no finite number")
    if counts and len(found) not in counts:
        wanted = " or ".join(map(str, counts))
        raise click.BadParameter(f"{wanted} numbers are wanted, not {len(found)}")
    return found


def as_number(word: str) -> float:
    """The number that a word is, nan where it is none."""
    try:
        return float(word)
    except ValueError:
        return np.nan
