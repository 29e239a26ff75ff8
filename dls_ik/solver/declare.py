"""Declarations of options: fields of a frozen dataclass that know their unit, range and meaning.

The solver, the servo and the parameters of the node declare their options with these functions, and
check values by :func:`checked_value`.
"""

import contextlib
import math
from collections.abc import Iterable
from dataclasses import field
from numbers import Integral, Real
from typing import Any

from dls_ik.errors import OptionError
from dls_ik.text import quoted

LARGEST = 1e9  # number in a vector, as coordinates of poses


def number(default: Any, low: float, high: float, unit: str, text: str) -> Any:
    """Declare a number from low to high; a whole one if the default is whole or None."""
    return field(default=default, metadata={"range": (low, high), "unit": unit, "text": text})


def choice_of(default: Any, choices: Iterable[Any], text: str) -> Any:
    """Declare one of some values."""
    about = {"choices": tuple(choices), "unit": "", "text": text}
    return field(default=default, metadata=about)


def switch(text: str) -> Any:
    """Declare a switch, off by default."""
    return choice_of(False, (False, True), text)


def vector(unit: str, text: str) -> Any:
    """Declare finite numbers; None by default."""
    return field(default=None, metadata={"vector": True, "unit": unit, "text": text})


def per_joint(default: float, unit: str, text: str) -> Any:
    """Declare a number from 0 to infinity, for all joints or for each."""
    about = {"per_joint": True, "unit": unit, "text": text}
    return field(default=default, metadata=about)


def checked_value(option: Any, value: Any) -> Any:
    """Return a value as the type of an option, a field declared as above.

    Raises:
        OptionError: another type, or a value out of range; the message says which are valid.
    """
    if "choices" in option.metadata:
        return _checked_choice(option, value)
    if "per_joint" in option.metadata:
        return _checked_per_joint(option, value)
    if "vector" in option.metadata:
        return _checked_vector(option, value)
    return _checked_number(option, value)


def _refusal(option: Any, valid: str, value: Any) -> OptionError:
    text = f"{option.name} is {option.metadata['text']}: {valid}, not {quoted(value)}"
    return OptionError(text)


def _checked_number(option: Any, value: Any) -> Any:
    low, high = option.metadata["range"]
    if value is None and option.default is None:
        return None
    is_whole = isinstance(option.default, int) or option.default is None
    given = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        with contextlib.suppress(OverflowError):
            float(value)
            given = int(value) if isinstance(value, Integral) else float(value)
    if not low <= given <= high or (is_whole and given != int(given)):
        kind = "a whole number" if is_whole else "a number"
        unit = f" [{option.metadata['unit']}]" if option.metadata["unit"] else ""
        raise _refusal(option, f"{kind} from {low:g} to {high:g}{unit}", value)
    return int(given) if is_whole else float(given)


def _checked_choice(option: Any, value: Any) -> Any:
    choices = option.metadata["choices"]
    kind = type(option.default)
    same_kind = isinstance(value, Integral) if kind is int else isinstance(value, kind)
    if not same_kind or (kind is int and isinstance(value, bool)) or value not in choices:
        raise _refusal(option, f"one of {', '.join(map(str, choices))}", value)
    return kind(value)


def _checked_per_joint(option: Any, value: Any) -> float | tuple[float, ...]:
    numbers: tuple[float, ...] = ()
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        numbers = (float(value),) if isinstance(value, Real) else tuple(float(x) for x in value)
    if not numbers or not all(x >= 0.0 for x in numbers) or isinstance(value, (bool, str)):
        unit = option.metadata["unit"]
        raise _refusal(option, f"a number from 0, or one for each joint [{unit}]", value)
    return numbers[0] if isinstance(value, Real) else numbers


def _checked_vector(option: Any, value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers: tuple[float, ...] = ()
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        numbers = tuple(float(x) for x in value)
    if not numbers or not all(abs(x) <= LARGEST for x in numbers) or isinstance(value, str):
        raise _refusal(option, f"finite numbers, {LARGEST:g} at most", value)
    return numbers
