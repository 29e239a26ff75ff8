"""Declaration of a parameter: once, with type, default, unit, range and description.

The type is the annotation of a dataclass field; :data:`READERS` has a function for each type that
takes a value as ROS gives it, or raises a ValueError that says what it expects.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar

from dls_ik.errors import OptionError
from dls_ik.text import quoted

MAX_ITEMS = 1000  # of a list
MAX_LENGTH = 256  # characters of a name in a list
TEXTS, NUMBERS = tuple[str, ...], tuple[float, ...]

ParameterSetT = TypeVar("ParameterSetT", bound="ParameterSet")


def reader(kind: type, description: str) -> Callable[[Any], Any]:
    """Return the function that reads values of exactly one type."""

    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(description)
        return value

    return read


def read_number(value: Any) -> float:
    """Read a finite number, or a whole one, so that ``rate:=100`` works."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ValueError("a finite number")
    return float(value)


def read_numbers(value: Any) -> tuple[float, ...]:
    """Read a list of finite numbers."""
    try:
        items = None if isinstance(value, (str, bytes)) else tuple(value)
    except TypeError:  # also of arrays without dimensions, which look iterable
        items = None
    if items is None or len(items) > MAX_ITEMS:
        raise ValueError(f"a list of numbers, at most {MAX_ITEMS}")
    return tuple(read_number(item) for item in items)


def read_names(value: Any) -> tuple[str, ...]:
    """Read a list of strings, or one string with commas between the names."""
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise ValueError("a string, or a list of strings")
    if len(parts) > MAX_ITEMS or any(len(part) > MAX_LENGTH for part in parts):
        raise ValueError(f"at most {MAX_ITEMS} names of {MAX_LENGTH} characters")
    return tuple(part.strip() for part in parts if part.strip())


READERS: Mapping[Any, Callable[[Any], Any]] = {
    str: reader(str, "a string"),
    bool: reader(bool, "true or false"),
    float: read_number,
    int: reader(int, "a whole number"),
    NUMBERS: read_numbers,
    TEXTS: read_names,
}


def parameter(
    default: Any,
    text: str,
    unit: str = "",
    span: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    read_only: bool = False,
) -> Any:
    """Declare a parameter, as the default of a dataclass field.

    Args:
        text: description.
        span: least and greatest value, of a number or of each number of a list.
        choices: the valid values, of a text or of each name of a list.
        read_only: fixed at the start.
    """
    metadata = {
        "text": text,
        "unit": unit,
        "range": span,
        "choices": choices,
        "read_only": read_only,
    }
    return field(default=default, metadata=metadata)


def option(owner: type, name: str, read_only: bool = False) -> Any:
    """Declare a parameter for an option of the solver or the controller, as declared there."""
    option = next(f for f in fields(owner) if f.name == name)
    about = option.metadata
    if "per_joint" in about:
        text = f"{about['text']}; empty: none"
        return parameter((), text, about["unit"], (1e-6, 1e9), read_only=read_only)
    if isinstance(option.default, bool):
        return parameter(option.default, about["text"], read_only=read_only)
    unit, span, choices = about.get("unit", ""), about.get("range"), about.get("choices", ())
    return parameter(option.default, about["text"], unit, span, choices, read_only)


@dataclass(frozen=True)
class ParameterSet:
    """The parameters of a node; a trailing underscore is not part of a name in ROS."""

    def changed(self: ParameterSetT, given: Mapping[str, Any]) -> ParameterSetT:
        """Return the parameters with some values changed, by their names in ROS; all are checked.

        Raises:
            OptionError: If a value has the wrong type or is out of range, or a name is unknown.
            DlsIkError: If values contradict each other.
        """
        known = declared(type(self))
        unknown = sorted(set(given) - set(known))
        if unknown:
            raise OptionError(f"unknown parameter {unknown[0]!r}; known: {', '.join(known)}")
        values = {
            known[name].name: checked(name, known[name], value) for name, value in given.items()
        }
        candidate = replace(self, **values)
        candidate.check()
        return candidate

    def check(self) -> None:
        """Raise a DlsIkError for values that contradict each other."""

    def further(self, given: Mapping[str, Any]) -> "dict[str, Field[Any]]":
        """Return more parameters that these values declare, by their names in ROS."""
        return {}


def declared(kind: type[ParameterSet]) -> "dict[str, Field[Any]]":
    """Return all parameters of a class by their names in ROS."""
    return {f.name.rstrip("_"): f for f in fields(kind) if f.metadata}


def checked(name: str, field: "Field[Any]", value: Any) -> Any:
    """Read and check the value of a parameter.

    Raises:
        OptionError: If the value has the wrong type, is out of range, or is not one of the choices.
    """
    about = field.metadata
    kind = "a list of" if field.type in (TEXTS, NUMBERS) else "one of"
    valid = f"is {kind} {', '.join(about['choices'])}"
    try:
        result = READERS[field.type](value)
    except ValueError as error:
        valid = valid if about["choices"] else f"takes {error}"
        raise OptionError(f"{name} {valid}, not {quoted(value)}") from None
    items = result if isinstance(result, tuple) else (result,)
    if about["choices"] and not set(items) <= set(about["choices"]):
        raise OptionError(f"{name} {valid}, not {quoted(value)}")
    if about["range"]:
        low, high = about["range"]
        unit = f" [{about['unit']}]" if about["unit"] else ""
        if not all(low <= item <= high for item in items):
            raise OptionError(f"{name} is from {low:g} to {high:g}{unit}, not {quoted(value)}")
    return result
