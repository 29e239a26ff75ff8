"""The parameters of a running node: declared with all that is known of them, changed as one."""

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

from dls_ik.errors import DlsIkError
from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import SettingsT, declared

# Of rclpy itself; `start_type_description_service` and `use_sim_time` are there in every node.
SIM_TIME = "use_sim_time"
FOREIGN = ("qos_overrides.", "start_type_description_service", SIM_TIME)


class LiveParameters(Generic[SettingsT]):
    """Declares the parameters on a node, and takes changes of them all at once or not at all.

    Args:
        defaults: what holds where the node is not told otherwise.

    Raises:
        DlsIkError: a value that the node was started with is not valid.
        rclpy.exceptions.ParameterException: the same, seen by rclpy.
    """

    def __init__(self, node: Node, defaults: SettingsT) -> None:
        self._node = node
        self._apply: Callable[[SettingsT], None] | None = None
        self._given = getattr(node, "_parameter_overrides", {})  # rclpy has no public list of them
        _fix_clock(node)
        fixed = declared(type(defaults))
        given = {name: self._declare(name, field) for name, field in fixed.items()}
        further = defaults.further(given)
        given |= {name: self._declare(name, field) for name, field in further.items()}
        self._declared = fixed | further
        self.current = defaults.changed(given)
        self._warn_of_unknown_names()

    def on_change(self, apply: Callable[[SettingsT], None]) -> None:
        """Let changes come; `apply` puts them into effect, or raises a DlsIkError to refuse."""
        self._apply = apply
        self._node.add_on_set_parameters_callback(self._set)

    def _declare(self, name: str, field: "Field[Any]") -> Any:
        default: Any = field.default
        if field.metadata["read"] is readers.numbers:
            default = list(default)
        elif field.metadata["read"] is readers.names:
            default = ",".join(default)
        # YAML's null, and an empty list of YAML as rclpy reads it: as if it were not given.
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
        """A misspelt name would be passed over in silence."""
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
    """Let nobody take the clock away from a running node, by which the age of stamps is told."""
    about = ParameterDescriptor(
        name=SIM_TIME,
        type=Parameter.Type.BOOL.value,
        description="whether the clock is that of a simulation, on /clock",
        read_only=True,
    )
    node.set_descriptor(SIM_TIME, about)


def descriptor(field: "Field[Any]") -> ParameterDescriptor:
    """All that is known of a parameter as tools show it.

    Typing is dynamic where a value may come in two types: whole numbers for numbers, one name for
    several. The reader of the parameter refuses all others.
    """
    about = field.metadata
    unit = f" [{about['unit']}]" if about["unit"] else ""
    message = ParameterDescriptor(
        description=about["text"] + unit,
        read_only=about["read_only"],
        dynamic_typing=about["read"] in (readers.number, readers.numbers, readers.names),
    )
    notes = [f"one of: {', '.join(about['choices'])}"] if about["choices"] else []
    if about["read"] is readers.names:
        notes.append("a string, with commas between names, or a string array")
    message.additional_constraints = "; ".join(notes)
    if about["range"] and about["read"] is readers.whole_number:
        first, last = map(int, about["range"])
        message.integer_range = [IntegerRange(from_value=first, to_value=last)]
    elif about["range"]:
        low, high = map(float, about["range"])
        message.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return message
