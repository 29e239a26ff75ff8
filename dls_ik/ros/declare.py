# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Declarations of ROS parameters as dataclass fields, with default, unit, range and description.

The type of a parameter is the annotation of its field. :data:`PARAMETER_READERS` has one function
for each type. This function converts a value from ROS to the type, or raises a ValueError whose
message describes valid values, such as "a list of numbers".
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from functools import partial
from typing import Any, ClassVar, NamedTuple, TypeVar

from dls_ik.errors import OptionError
from dls_ik.text import listing, quoted

MAX_LIST_ITEMS = 1000
MAX_ITEM_LENGTH = 256  # maximum number of characters of a name in a list
TEXTS, NUMBERS = tuple[str, ...], tuple[float, ...]

ParameterSetT = TypeVar("ParameterSetT", bound="ParameterSet")
ItemParametersT = TypeVar("ItemParametersT", bound="ItemParameters")


def reader(kind: type, description: str) -> Callable[[Any], Any]:
    """Return a function that returns values of type `kind`, and raises a ValueError for others.

    Args:
        kind: Type of valid values.
        description: Message of the ValueError, which describes valid values.
    """

    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise ValueError(description)
        return value

    return read


def read_number(value: Any) -> float:
    """Return a number from ROS as a float; integers are valid, as ``rate:=100`` gives an integer.

    Raises:
        ValueError: If the value is not a number, or is NaN.
    """
    if isinstance(value, bool) or not isinstance(value, (int, float)) or math.isnan(value):
        raise ValueError("a finite number")
    return float(value)


def read_numbers(value: Any) -> tuple[float, ...]:
    """Return a list of numbers from ROS as a tuple.

    Raises:
        ValueError: If the value is not a list of numbers, or is too long.
    """
    try:
        items = None if isinstance(value, (str, bytes)) else tuple(value)
    except TypeError:  # raised also by arrays without dimensions, although they have __iter__
        items = None
    if items is None or len(items) > MAX_LIST_ITEMS:
        raise ValueError(f"a list of numbers, at most {MAX_LIST_ITEMS}")
    return tuple(read_number(item) for item in items)


def read_names(value: Any) -> tuple[str, ...]:
    """Return a list of names from ROS, or one string with commas between names, as a tuple.

    Raises:
        ValueError: If the value is neither, or is too long.
    """
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, Sequence) or not all(isinstance(part, str) for part in parts):
        raise ValueError("a string, or a list of strings")
    if len(parts) > MAX_LIST_ITEMS or any(len(part) > MAX_ITEM_LENGTH for part in parts):
        raise ValueError(f"at most {MAX_LIST_ITEMS} names of {MAX_ITEM_LENGTH} characters")
    return tuple(part.strip() for part in parts if part.strip())


PARAMETER_READERS: Mapping[Any, Callable[[Any], Any]] = {
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
    group: str = "",
) -> Any:
    """Return a dataclass field that declares a parameter.

    Args:
        default: Default value.
        text: Description of the parameter.
        unit: Unit of a number.
        span: Minimum and maximum of a number, or of each number of a list; None: unlimited. If the
            maximum is infinity, infinity is a valid value.
        choices: Valid values of a text, or of each name of a list; empty: any value.
        read_only: Whether the value cannot change after the start of the node.
        group: Prefix of the name in ROS, which is then ``GROUP.NAME``; empty: no prefix.
    """
    metadata = {
        "text": text,
        "unit": unit,
        "range": span,
        "choices": choices,
        "read_only": read_only,
        "group": group,
    }
    return field(default=default, metadata=metadata)


# Declares a parameter whose value cannot change after the start of the node.
start_parameter = partial(parameter, read_only=True)


def option(owner: type, name: str, read_only: bool = False, group: str = "") -> Any:
    """Return a dataclass field that declares a parameter for an option of solver or controller.

    Default, description, unit, range and valid values of the parameter are those of the option.

    Args:
        owner: Dataclass that declares the option.
        name: Name of the option.
        read_only: Whether the value cannot change after the start of the node.
        group: Prefix of the name in ROS, which is then ``GROUP.NAME``; empty: no prefix.
    """
    option = next(f for f in fields(owner) if f.name == name)
    about = option.metadata
    if "per_joint" in about:
        text, limits = f"{about['text']}; empty: none", (1e-6, math.inf)
        return parameter((), text, about["unit"], limits, read_only=read_only, group=group)
    if isinstance(option.default, bool):
        return parameter(option.default, about["text"], read_only=read_only, group=group)
    unit, span, choices = about.get("unit", ""), about.get("range"), about.get("choices", ())
    return parameter(option.default, about["text"], unit, span, choices, read_only, group)


@dataclass(frozen=True)
class ItemParameters:
    """Base class of the parameters ``PREFIX.NAME.*`` of one item, such as a group.

    The names of all items are the value of a parameter, see :class:`ItemList`.
    """

    PREFIX: ClassVar[str]

    name: str

    @classmethod
    def fields_of(cls, names: Iterable[str]) -> "dict[str, Field[Any]]":
        """Return the fields of all given items by full parameter name, such as ``group.a.tip``."""
        own = [field for field in fields(cls) if field.metadata]
        return {f"{cls.PREFIX}.{name}.{field.name}": field for name in names for field in own}

    def changed(self: ItemParametersT, given: Mapping[str, Any]) -> ItemParametersT:
        """Return a copy of the parameters of this item with new values.

        Args:
            given: New values by full parameter name; values of other parameters are ignored.

        Raises:
            OptionError: If a value has the wrong type or is out of range.
        """
        own = self.fields_of([self.name]).items()
        values = {f.name: checked(name, f, given[name]) for name, f in own if name in given}
        return replace(self, **values)


class ItemList(NamedTuple):
    """Parameter that lists names of items, each of which has parameters of its own."""

    parameter: str  # name of the parameter that lists the names
    details: str  # name of the field of the ParameterSet that holds the parameters of the items
    kind: type[ItemParameters]  # class of the parameters of an item


@dataclass(frozen=True)
class ParameterSet:
    """Base class of the parameters of a node, with one dataclass field for each parameter.

    The name of a field may end with an underscore that is not part of the name in ROS: the field of
    the parameter ``lambda`` is ``lambda_``.
    """

    FORMER_NAMES: ClassVar[Mapping[str, str]] = {}  # current parameter name by former name
    ITEM_LISTS: ClassVar[tuple[ItemList, ...]] = ()

    def changed(self: ParameterSetT, given: Mapping[str, Any]) -> ParameterSetT:
        """Return a copy of the parameters, and of the parameters of items, with new values.

        Args:
            given: New values by parameter name in ROS.

        Raises:
            OptionError: If a value has the wrong type or is out of range, or if a name is unknown.
            DlsIkError: If the values contradict each other.
        """
        known, of_items = declared(type(self)), self.dynamic_fields(given)
        values: dict[str, Any] = {}
        for each in self.ITEM_LISTS:
            before = {item.name: item for item in getattr(self, each.details)}
            names = self._item_names(each, given)
            items = (before.get(name, each.kind(name)).changed(given) for name in names)
            values[each.details] = tuple(items)
        given = {name: value for name, value in given.items() if name not in of_items}
        unknown = sorted(set(given) - set(known))
        if unknown:
            self.check_names(unknown)
            raise OptionError(f"unknown parameter {unknown[0]!r}; known: {', '.join(known)}")
        values |= {
            known[name].name: checked(name, known[name], value) for name, value in given.items()
        }
        candidate = replace(self, **values)
        candidate.check()
        return candidate

    @classmethod
    def check_names(cls, names: Sequence[str]) -> None:
        """Check that no name is an old name of a renamed parameter.

        Raises:
            OptionError: If a parameter was renamed; the message gives its new name.
        """
        renamed = [name for name in names if name in cls.FORMER_NAMES]
        if renamed:
            words = [f"parameter {name!r} is now {cls.FORMER_NAMES[name]!r}" for name in renamed]
            raise OptionError("; ".join(words))

    def check(self) -> None:
        """Check that values do not contradict each other; subclasses extend this method.

        Raises:
            DlsIkError: If values contradict each other.
        """
        for each in self.ITEM_LISTS:
            check_unique(each.parameter, getattr(self, each.parameter))

    def foreign_prefixes(self) -> tuple[str, ...]:
        """Return prefixes of parameters of other nodes that this node reads at its start."""
        return ()

    def dynamic_fields(self, given: Mapping[str, Any]) -> "dict[str, Field[Any]]":
        """Return the fields of the parameters of items, such as ``group.NAME.tip``.

        Args:
            given: Values of parameters by name in ROS; the values of :attr:`ITEM_LISTS` decide
                which items exist.

        Returns:
            Dataclass fields by parameter name in ROS.
        """
        found: dict[str, Field[Any]] = {}
        for each in self.ITEM_LISTS:
            found |= each.kind.fields_of(self._item_names(each, given))
        return found

    def _item_names(self, items: ItemList, given: Mapping[str, Any]) -> tuple[str, ...]:
        name = items.parameter
        value = given.get(name, getattr(self, name))
        names: tuple[str, ...] = checked(name, declared(type(self))[name], value)
        return names


def check_unique(parameter: str, names: Sequence[str]) -> None:
    """Check that a list of names has each name once.

    Raises:
        OptionError: If a name is in the list more than once.
    """
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise OptionError(
            f"{parameter} contains {listing(twice)} more than once; give each name once"
        )


def ros_name(field: "Field[Any]") -> str:
    """Return the name in ROS of the parameter that a field declares.

    For example, the field ``lambda_`` in the group ``method_options`` declares the parameter
    ``method_options.lambda``, and the field ``command_scale_joint`` in the group ``command_scale``
    declares ``command_scale.joint``.
    """
    name, group = field.name.rstrip("_"), field.metadata["group"]
    return f"{group}.{name.removeprefix(f'{group}_')}" if group else name


def declared(kind: type[ParameterSet]) -> "dict[str, Field[Any]]":
    """Return the fields of all parameters that a class declares, by parameter name in ROS."""
    return {ros_name(f): f for f in fields(kind) if f.metadata}


def yaml_number(value: float) -> str:
    """Return a number as YAML text, in which infinity is ``.inf``."""
    return f"{value:g}" if math.isfinite(value) else f"{'-' if value < 0.0 else ''}.inf"


def checked(name: str, field: "Field[Any]", value: Any) -> Any:
    """Return the value of a parameter, converted to its type and checked.

    Args:
        name: Name of the parameter in ROS, for error messages.
        field: Field that declares the parameter.
        value: Value from ROS.

    Raises:
        OptionError: If the value has the wrong type, is out of range, or is not one of the choices.
    """
    about, span = field.metadata, field.metadata["range"]
    kind = "a list of" if field.type in (TEXTS, NUMBERS) else "one of"
    valid = f"must be {kind} {', '.join(about['choices'])}"
    try:
        result = PARAMETER_READERS[field.type](value)
        items = result if isinstance(result, tuple) else (result,)
        allows_infinity = span is not None and span[1] == math.inf
        if not allows_infinity and (math.inf in items or -math.inf in items):
            raise ValueError("a finite number")
    except ValueError as error:
        valid = valid if about["choices"] else f"must be {error}"
        raise OptionError(f"{name} {valid}; got {quoted(value)}") from None
    if about["choices"] and not set(items) <= set(about["choices"]):
        raise OptionError(f"{name} {valid}; got {quoted(value)}")
    if span:
        low, high = map(yaml_number, span)
        unit = f" [{about['unit']}]" if about["unit"] else ""
        if not all(span[0] <= item <= span[1] for item in items):
            raise OptionError(f"{name} must be from {low} to {high}{unit}; got {quoted(value)}")
    return result
