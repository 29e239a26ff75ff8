"""How options are declared: fields of a frozen dataclass, with all that is known of each.

:func:`dls_ik.solver.values.checked_value` checks a value against its declaration.
"""

from collections.abc import Iterable
from dataclasses import field
from typing import Any


def number(default: Any, low: float, high: float, unit: str, text: str) -> Any:
    """A number from low to high; whole where the default is, or is None."""
    return field(default=default, metadata={"range": (low, high), "unit": unit, "text": text})


def choice(default: Any, choices: Iterable[Any], text: str) -> Any:
    """One of some values."""
    about = {"choices": tuple(choices), "unit": "", "text": text}
    return field(default=default, metadata=about)


def switch(text: str) -> Any:
    """On or off; off by default."""
    return choice(False, (False, True), text)


def vector(unit: str, text: str) -> Any:
    """Finite numbers, or none."""
    return field(default=None, metadata={"vector": True, "unit": unit, "text": text})


def per_joint(default: float, unit: str, text: str) -> Any:
    """A number from 0, infinity included, for all joints or for each."""
    about = {"per_joint": True, "unit": unit, "text": text}
    return field(default=default, metadata=about)
