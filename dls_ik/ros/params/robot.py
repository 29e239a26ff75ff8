"""Parameters that choose the robot, its groups, and which group follows targets."""

from collections.abc import Iterable, Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from dls_ik.errors import OptionError
from dls_ik.ros.params.declare import ParameterSet, checked, declared, parameter
from dls_ik.text import listing

# Not `groups`, which is the list of their names: YAML, and `ros2 param dump`, cannot have both.
PREFIX = "group"


@dataclass(frozen=True)
class RobotParameters(ParameterSet):
    """The robot, and the ends of its chain."""

    robot: str = parameter(
        "",
        "name of a shipped robot, a URDF, xacro or DH file, or package://NAME/PATH; "
        "with arguments of a xacro file: 'FILE.xacro NAME:=VALUE'",
        read_only=True,
    )
    robot_description: str = parameter(
        "",
        "URDF of the robot as text; without it and 'robot' the node waits for the topic",
        read_only=True,
    )
    base: str = parameter("", "first link of the chain; empty: root", read_only=True)
    tip: str = parameter("", "last link of the chain; empty: the only one", read_only=True)

    def ends(self) -> tuple[str | None, str | None]:
        """Return base and tip; None: the robot determines it."""
        return self.base or None, self.tip or None

    def check(self) -> None:
        """Refuse two robots.

        Raises:
            OptionError: both are given.
        """
        super().check()
        if self.robot and self.robot_description:
            raise OptionError("'robot' and 'robot_description' are both given; give one of them")


@dataclass(frozen=True)
class GroupParameters:
    """The parameters of one group."""

    name: str
    tip: tuple[str, ...] = parameter(
        (),
        "tips of the group, one or several links; empty: the node's tip",
        read_only=True,
    )
    base: str = parameter("", "first link of its chains; empty: the node's base", read_only=True)
    method: str = parameter("", "method of its requests; empty: the node's method")
    timeout: float = parameter(
        0.0, "timeout of its requests without one; 0: the node's timeout", "s", (0.0, 3600.0)
    )

    def changed(self, given: Mapping[str, Any]) -> "GroupParameters":
        """Return them with some values changed, by full names; names of other groups are ignored.

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
    """Return the fields of groups by full parameter names, such as ``group.left_arm.tip``."""
    own = [field for field in fields(GroupParameters) if field.metadata]
    return {f"{PREFIX}.{group}.{field.name}": field for group in groups for field in own}


@dataclass(frozen=True)
class GroupsParameters(RobotParameters):
    """The robot, its groups, and which of them follows targets."""

    groups: tuple[str, ...] = parameter(
        (),
        "names of groups for requests, each with group.NAME.tip, .base, .method and .timeout; "
        "empty: only the chain from base to tip",
        read_only=True,
    )
    stream_group: str = parameter(
        "",
        "group whose tip follows targets; empty: base to tip, or the first group with one tip if "
        "neither is given",
        read_only=True,
    )
    group_details: tuple[GroupParameters, ...] = ()  # one for each of the groups

    def changed(self, given: Mapping[str, Any]) -> "GroupsParameters":
        """Return them with some values changed, ``group.NAME.tip`` and the like among them."""
        names = _names(given.get("groups", self.groups))
        before = {group.name: group for group in self.group_details}
        details = [before.get(name, GroupParameters(name)).changed(given) for name in names]
        with_groups = replace(self, group_details=tuple(details))
        of_groups = fields_of(names)
        rest = {name: value for name, value in given.items() if name not in of_groups}
        return super(GroupsParameters, with_groups).changed(rest)

    def further(self, given: Mapping[str, Any]) -> "dict[str, Field[Any]]":
        """Return the parameters of each of the groups."""
        return fields_of(_names(given.get("groups", self.groups)))

    def check(self) -> None:
        """Refuse groups that contradict each other.

        Raises:
            OptionError: a name given twice, or no single tip to follow targets.
        """
        super().check()
        twice = sorted({name for name in self.groups if self.groups.count(name) > 1})
        if twice:
            raise OptionError(f"groups has {listing(twice)} more than once")
        if self.stream_group and (self.base or self.tip):
            raise OptionError("'stream_group' and 'base' or 'tip' are both given; give one of them")
        self.ends()

    def ends(self) -> tuple[str | None, str | None]:
        """Return base and tip of the chain that follows targets; None: the robot determines it.

        Raises:
            OptionError: there is no such group, or it has several tips.
        """
        if not self.stream_group and (self.base or self.tip or not self.groups):
            return super().ends()
        single = {group.name: group for group in self.group_details if len(group.tip) < 2}
        name = self.stream_group or next(iter(single), "")
        if name not in single:
            raise OptionError(
                f"targets are followed by one tip: stream_group is one of the groups with one tip "
                f"({listing(single)}), not {name!r}"
            )
        return single[name].base or None, single[name].tip[0] if single[name].tip else None


def _names(given: Any) -> Any:
    return checked("groups", declared(GroupsParameters)["groups"], given)
