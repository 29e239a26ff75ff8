"""Values of options: numbers, choices and vectors, checked against how they are declared."""

import contextlib
import math
from numbers import Integral, Real
from typing import Any

from dls_ik.errors import OptionError
from dls_ik.text import quoted

LARGEST = 1e9  # number in a vector, as coordinates of poses


def checked_value(option: Any, value: Any) -> Any:
    """Return the value as the option's type, in its range."""
    if "choices" in option.metadata:
        return _checked_choice(option, value)
    if "per_joint" in option.metadata:
        return _checked_per_joint(option, value)
    if "vector" in option.metadata:
        return _checked_vector(option, value)
    return _checked_number(option, value)


def _checked_number(option: Any, value: Any) -> Any:
    low, high = option.metadata["range"]
    if value is None and option.default is None:
        return None
    whole = isinstance(option.default, int) or option.default is None
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        with contextlib.suppress(OverflowError):
            float(value)
            number = int(value) if isinstance(value, Integral) else float(value)
    if not low <= number <= high or (whole and number != int(number)):
        kind = "a whole number" if whole else "a number"
        unit = f" [{option.metadata['unit']}]" if option.metadata["unit"] else ""
        raise OptionError(
            f"{option.name} is {option.metadata['text']}: {kind} from {low:g} to {high:g}{unit}, "
            f"not {quoted(value)}"
        )
    return int(number) if whole else float(number)


def _checked_choice(option: Any, value: Any) -> Any:
    choices = option.metadata["choices"]
    kind = type(option.default)
    same_kind = isinstance(value, Integral) if kind is int else isinstance(value, kind)
    if not same_kind or (kind is int and isinstance(value, bool)) or value not in choices:
        listed = ", ".join(str(choice) for choice in choices)
        raise OptionError(
            f"{option.name} is {option.metadata['text']}: one of {listed}, not {quoted(value)}"
        )
    return kind(value)


def _checked_per_joint(option: Any, value: Any) -> float | tuple[float, ...]:
    numbers: tuple[float, ...] = ()
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        numbers = (float(value),) if isinstance(value, Real) else tuple(float(x) for x in value)
    if not numbers or not all(x >= 0.0 for x in numbers) or isinstance(value, (bool, str)):
        raise OptionError(
            f"{option.name} is {option.metadata['text']}: a number from 0, or one for each joint "
            f"[{option.metadata['unit']}], not {quoted(value)}"
        )
    return numbers[0] if isinstance(value, Real) else numbers


def _checked_vector(option: Any, value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    try:
        numbers = tuple(float(x) for x in value)
    except (TypeError, ValueError, OverflowError):
        numbers = ()
    if not numbers or not all(abs(x) <= LARGEST for x in numbers) or isinstance(value, str):
        raise OptionError(
            f"{option.name} is {option.metadata['text']}: finite numbers, {LARGEST:g} at most, not "
            f"{quoted(value)}"
        )
    return numbers
