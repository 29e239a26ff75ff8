"""The groups that one node serves."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, replace
from typing import Any

from dls_ik.exceptions import OptionError
from dls_ik.model.names import listing
from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import checked, declared, parameter
from dls_ik.ros.parameters.group import GroupParameters, fields_of
from dls_ik.ros.parameters.robot import RobotParameters


@dataclass(frozen=True)
class GroupsParameters(RobotParameters):
    """The robot, its groups, and which of them follows targets."""

    groups: tuple[str, ...] = parameter(
        (),
        readers.names,
        "groups that requests may name, each with group.NAME.tip, .base, .method and .timeout; "
        "empty: only the chain from base to tip",
        read_only=True,
    )
    stream_group: str = parameter(
        "",
        readers.text,
        "group whose tip follows targets; empty: base to tip, and where they are not given either "
        "the first group with one tip",
        read_only=True,
    )
    group_details: tuple[GroupParameters, ...] = ()  # one for each of the groups

    def changed(self, given: Mapping[str, Any]) -> "GroupsParameters":
        """As that of all settings, with ``group.NAME.tip`` and the like of each of the groups."""
        of_groups = self.further(given)
        before = {group.name: group for group in self.group_details}
        names = _names(given.get("groups", self.groups))
        details = [before.get(name, GroupParameters(name)).changed(given) for name in names]
        grown = replace(self, group_details=tuple(details))
        rest = {name: value for name, value in given.items() if name not in of_groups}
        return super(GroupsParameters, grown).changed(rest)

    def further(self, given: Mapping[str, Any]) -> "dict[str, Field[Any]]":
        """The parameters of each of the groups."""
        return fields_of(_names(given.get("groups", self.groups)))

    def check(self) -> None:
        """Refuse groups that do not fit each other.

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
        """Base and tip of the chain that follows targets; None where the robot tells.

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
