"""How a parameter is declared: once, with all that is known of it; and how a value is checked."""

from collections.abc import Callable
from dataclasses import Field, field, fields
from typing import Any

from dls_ik.exceptions import OptionError
from dls_ik.ros.parameters import readers


def parameter(
    default: Any,
    read: Callable[[Any], Any],
    text: str,
    unit: str = "",
    span: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    read_only: bool = False,
) -> Any:
    """A field of a group of parameters.

    Args:
        read: one of :mod:`dls_ik.ros.parameters.readers`.
        span: least and greatest value, of a number or of each number of a list.
        choices: the valid values, of a text or of each name of a list.
    """
    about = {
        "read": read,
        "text": text,
        "unit": unit,
        "range": span,
        "choices": choices,
        "read_only": read_only,
    }
    return field(default=default, metadata=about)


def option(owner: type, name: str) -> Any:
    """A field for an option of the solver or the controller, declared there."""
    option = {f.name: f for f in fields(owner)}[name]
    about, default = option.metadata, option.default
    if "per_joint" in about:
        text = about["text"] + "; empty: none"
        return parameter((), readers.numbers, text, about["unit"], (1e-6, 1e9))
    if isinstance(default, bool):
        return parameter(default, readers.switch, about["text"])
    if "choices" in about:
        return parameter(default, readers.text, about["text"], choices=about["choices"])
    read = readers.whole_number if isinstance(default, int) else readers.number
    return parameter(default, read, about["text"], about["unit"], about["range"])


def checked(name: str, field: "Field[Any]", value: Any) -> Any:
    """The value of a parameter as the node uses it.

    Raises:
        OptionError: of the wrong type, out of range, or none of the choices.
    """
    about = field.metadata
    try:
        result = about["read"](value)
    except ValueError as error:
        raise OptionError(f"{name} takes {error}, not {value!r}") from None
    items = result if isinstance(result, tuple) else (result,)
    if about["choices"] and not set(items) <= set(about["choices"]):
        kind = "one of" if result is not items else "a list of"
        raise OptionError(f"{name} is {kind} {', '.join(about['choices'])}, not {value!r}")
    if about["range"]:
        low, high = about["range"]
        unit = f" [{about['unit']}]" if about["unit"] else ""
        if not all(low <= item <= high for item in items):
            raise OptionError(f"{name} is from {low:g} to {high:g}{unit}, not {value!r}")
    return result
