"""The parameters of one group."""

from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import checked, parameter

# Not `groups`, which is the list of their names: YAML, and `ros2 param dump`, cannot have both.
PREFIX = "group"


@dataclass(frozen=True)
class GroupParameters:
    """Of the group of a name."""

    name: str
    tip: tuple[str, ...] = parameter(
        (),
        readers.names,
        "links that are brought to poses, one or several together; empty: the node's tip",
        read_only=True,
    )
    base: str = parameter(
        "", readers.text, "link that the chains begin at; empty: the node's", read_only=True
    )
    method: str = parameter(
        "", readers.text, "method that requests are solved with; empty: the node's"
    )
    timeout: float = parameter(
        0.0, readers.number, "time of a request that gives none; 0: the node's", "s", (0.0, 3600.0)
    )

    def changed(self, given: Mapping[str, Any]) -> "GroupParameters":
        """The parameters with some values changed, by their full names; those of others are left.

        Raises:
            OptionError: a value of the wrong type, or out of range.
        """
        values = {
            field.name: checked(name, field, given[name])
            for name, field in fields_of([self.name]).items()
            if name in given
        }
        return replace(self, **values)


def fields_of(groups: Iterable[str]) -> "dict[str, Field[Any]]":
    """The fields of groups by the full names of the parameters, such as ``group.left_arm.tip``."""
    own = [field for field in fields(GroupParameters) if field.metadata]
    return {f"{PREFIX}.{group}.{field.name}": field for group in groups for field in own}
