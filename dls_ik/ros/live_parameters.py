"""The parameters of a running node: declared with their descriptions, and changed all at once."""

from collections.abc import Callable, Sequence
from dataclasses import Field
from typing import Any, Generic

from rcl_interfaces.msg import (
    FloatingPointRange,
    IntegerRange,
    ParameterDescriptor,
    SetParametersResult,
)
from rclpy.node import Node
from rclpy.parameter import Parameter

from dls_ik import compat
from dls_ik.errors import DlsIkError
from dls_ik.ros.declare import NUMBERS, TEXTS, ParameterSetT, declared

# Declared by rclpy in every node.
SIM_TIME = "use_sim_time"
FOREIGN = ("qos_overrides.", "start_type_description_service", SIM_TIME)


class LiveParameters(Generic[ParameterSetT]):
    """Declares the parameters on a node, and applies changes all at once or not at all.

    Args:
        defaults: the values of parameters that the node was not started with.

    Raises:
        DlsIkError: a value that the node was started with is not valid.
        rclpy.exceptions.ParameterException: the same, seen by rclpy.
    """

    def __init__(self, node: Node, defaults: ParameterSetT) -> None:
        self._node = node
        self._apply: Callable[[ParameterSetT], None] | None = None
        self._given = compat.parameter_overrides(node)
        _fix_clock(node)
        fixed = declared(type(defaults))
        given = {name: self._declare(name, field) for name, field in fixed.items()}
        further = defaults.further(given)
        given |= {name: self._declare(name, field) for name, field in further.items()}
        self._declared = fixed | further
        self.current = defaults.changed(given)
        self._warn_of_unknown_names()

    def on_change(self, apply: Callable[[ParameterSetT], None]) -> None:
        """Accept changes; `apply` puts them into effect, or raises a DlsIkError to refuse them."""
        self._apply = apply
        self._node.add_on_set_parameters_callback(self._set)

    def _declare(self, name: str, field: "Field[Any]") -> Any:
        default: Any = field.default
        if field.type == NUMBERS:
            default = list(default)
        elif field.type == TEXTS:
            default = ",".join(default)
        # YAML's null, and an empty list of YAML as rclpy reads it, count as not given.
        is_empty = name in self._given and getattr(self._given[name], "value", None) is None
        value = self._node.declare_parameter(name, default, descriptor(field), is_empty).value
        if default == [] and len(value) == 0:  # rclpy takes an empty list for bytes
            self._node.set_parameters([Parameter(name, Parameter.Type.DOUBLE_ARRAY, [])])
        return value

    def _set(self, changes: Sequence[Any]) -> SetParametersResult:
        ours = {change.name: change.value for change in changes if change.name in self._declared}
        try:
            candidate = self.current.changed(ours)
            if self._apply is not None and candidate != self.current:
                self._apply(candidate)
        except DlsIkError as error:
            return SetParametersResult(successful=False, reason=str(error))
        self.current = candidate
        return SetParametersResult(successful=True)

    def _warn_of_unknown_names(self) -> None:
        """Warn of misspelt names, which rclpy ignores."""
        known = self._declared
        unknown = [
            name for name in self._given if name not in known and not name.startswith(FOREIGN)
        ]
        if unknown:
            self._node.get_logger().warning(
                f"unknown parameter {', '.join(map(repr, unknown))} is not used; "
                f"known: {', '.join(known)}"
            )


def _fix_clock(node: Node) -> None:
    """Make ``use_sim_time`` read-only: the age of stamps is measured by this clock."""
    about = ParameterDescriptor(
        name=SIM_TIME,
        type=Parameter.Type.BOOL.value,
        description="use the clock of a simulation, on /clock",
        read_only=True,
    )
    node.set_descriptor(SIM_TIME, about)


def descriptor(field: "Field[Any]") -> ParameterDescriptor:
    """Return the description of a parameter that tools show.

    Typing is dynamic if values of two types are valid: whole numbers for numbers, one name for
    several. The reader of the parameter refuses all others.
    """
    about = field.metadata
    unit = f" [{about['unit']}]" if about["unit"] else ""
    message = ParameterDescriptor(
        description=about["text"] + unit,
        read_only=about["read_only"],
        dynamic_typing=field.type in (float, NUMBERS, TEXTS),
    )
    notes = [f"one of: {', '.join(about['choices'])}"] if about["choices"] else []
    if field.type == TEXTS:
        notes.append("a string, with commas between names, or a string array")
    message.additional_constraints = "; ".join(notes)
    if about["range"] and field.type is int:
        first, last = map(int, about["range"])
        message.integer_range = [IntegerRange(from_value=first, to_value=last)]
    elif about["range"]:
        low, high = map(float, about["range"])
        message.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return message
