"""How a parameter is declared: once, with all that is known of it; and how a value is checked."""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar

from dls_ik.errors import OptionError
from dls_ik.ros.parameters import readers
from dls_ik.text import quoted

SettingsT = TypeVar("SettingsT", bound="Settings")


@dataclass(frozen=True)
class Settings:
    """The parameters of a node; a trailing underscore is not part of a name in ROS."""

    def changed(self: SettingsT, given: Mapping[str, Any]) -> SettingsT:
        """The parameters with some values changed, by their names in ROS; all of it checked.

        Raises:
            OptionError: a value of the wrong type or out of range, or an unknown name.
            DlsIkError: values that do not go together.
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
        """Raise a DlsIkError for values that do not go together."""

    def further(self, given: Mapping[str, Any]) -> "dict[str, Field[Any]]":
        """Parameters that there are besides because of these values, by their names in ROS."""
        return {}


def declared(kind: type[Settings]) -> "dict[str, Field[Any]]":
    """All parameters of a class of settings, by their names in ROS."""
    return {f.name.rstrip("_"): f for f in fields(kind) if f.metadata}


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
        raise OptionError(f"{name} takes {error}, not {quoted(value)}") from None
    items = result if isinstance(result, tuple) else (result,)
    if about["choices"] and not set(items) <= set(about["choices"]):
        kind = "one of" if result is not items else "a list of"
        raise OptionError(f"{name} is {kind} {', '.join(about['choices'])}, not {quoted(value)}")
    if about["range"]:
        low, high = about["range"]
        unit = f" [{about['unit']}]" if about["unit"] else ""
        if not all(low <= item <= high for item in items):
            raise OptionError(f"{name} is from {low:g} to {high:g}{unit}, not {quoted(value)}")
    return result
