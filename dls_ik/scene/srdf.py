# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reader and writer of SRDF (groups, named poses, pairs that may touch), compatible with MoveIt."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import NamedTuple

from dls_ik.errors import SceneError
from dls_ik.model.joint import Joint
from dls_ik.model.tree import Tree
from dls_ik.model.xml import Schema, XmlElement, read_document, read_elements
from dls_ik.text import did_you_mean, listing, quoted

LOG = logging.getLogger("dls_ik")
SRDF_SCHEMA: Schema = {
    "group": {"chain": {}, "joint": {}, "link": {}, "group": {}},
    "group_state": {"joint": {}},
    "link_sphere_approximation": {"sphere": {}},
    "end_effector": {},
    "virtual_joint": {},
    "passive_joint": {},
    "joint_property": {},
    "disable_collisions": {},
    "enable_collisions": {},
    "disable_default_collisions": {},
}
DEFAULT_REASON = "Default"  # reason of pairs that <disable_default_collisions> allows to touch
Pair = tuple[str, str]  # names of two links or objects in alphabetical order


class JointGroup(NamedTuple):
    """Definition of a group of joints in an SRDF.

    The group consists of all joints of its chains, its joints, the joints above its links, and the
    joints of its subgroups.
    """

    chains: tuple[tuple[str, str], ...] = ()  # base link and tip link of each chain
    joints: tuple[str, ...] = ()  # names of joints
    links: tuple[str, ...] = ()  # names of links
    groups: tuple[str, ...] = ()  # names of subgroups


class GroupEnds(NamedTuple):
    """Base link and tip links of a group; the joints of the group are between these links."""

    base: str
    tips: tuple[str, ...]


class EndEffector(NamedTuple):
    """An end effector, such as a gripper, that an SRDF defines."""

    group: str  # group of joints of the end effector
    parent_link: str  # link that carries the end effector
    parent_group: str = ""  # group of the arm that carries the end effector


class VirtualJoint(NamedTuple):
    """A virtual joint of an SRDF, which connects the robot's root link to a frame of the world."""

    kind: str  # "fixed", "planar" or "floating"
    parent_frame: str  # name of the frame of the world
    child_link: str  # name of the root link


@dataclass(frozen=True, eq=False)
class Srdf:
    """Content of an SRDF, the semantic description of a robot.

    Elements that name unknown links, joints or groups are left out.
    """

    name: str  # name of the robot in the SRDF
    groups: Mapping[str, JointGroup] = field(default_factory=dict)
    # Named poses: by group and name of the pose, a mapping from joint name to position [rad or m].
    # A joint with several degrees of freedom has several numbers.
    states: Mapping[Pair, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    end_effectors: Mapping[str, EndEffector] = field(default_factory=dict)
    virtual_joints: Mapping[str, VirtualJoint] = field(default_factory=dict)
    passive_joints: tuple[str, ...] = ()
    joint_properties: tuple[tuple[str, str, str], ...] = ()  # names of joint and property, value
    disabled: Mapping[Pair, str] = field(default_factory=dict)  # pairs that may touch, with reasons
    enabled: frozenset[Pair] = frozenset()  # exceptions from `disabled_by_default`
    disabled_by_default: tuple[str, ...] = ()  # links that may touch all other links
    # Spheres that approximate each link: centre x, y, z and radius [m].
    spheres: Mapping[str, tuple[tuple[float, float, float, float], ...]] = field(
        default_factory=dict
    )
    unknown: tuple[str, ...] = ()  # a line of text for each element that was left out

    def allowed_pairs(self, links: Iterable[str]) -> dict[Pair, str]:
        """Return the pairs of links that may touch, with the reason for each pair.

        Args:
            links: Links; pairs with other links are left out.
        """
        known = sorted(links)
        among = set(known)
        free = [link for link in self.disabled_by_default if link in among]
        found = {
            pair_of(link, other): DEFAULT_REASON
            for link in free
            for other in known
            if other != link
        }
        for pair in self.enabled:
            found.pop(pair, None)
        return found | {
            pair: reason for pair, reason in self.disabled.items() if among.issuperset(pair)
        }

    def group_joints(self, tree: Tree, group: str) -> tuple[str, ...]:
        """Return the names of all joints of a group, including fixed joints.

        A joint is after the joints above it in the tree.

        Args:
            tree: Robot.
            group: Name of the group.

        Raises:
            SceneError: If a group is unknown or contains itself.
        """
        chosen = self._joints(tree, group, ())
        return tuple(each.name for each in tree.downward if each.name in chosen)

    def ends(self, tree: Tree, group: str) -> GroupEnds:
        """Return the base link and the tip links of a group.

        If the group is a single chain, the links are those of the chain. Otherwise the base is the
        lowest link that is above all joints of the group. There is one tip for each moving joint
        below which no other joint of the group moves. The tip is the link that carries an end
        effector, if the joint moves such a link; otherwise it is the last link of the group that is
        fixed to the child link of the joint.

        Args:
            tree: Robot.
            group: Name of the group.

        Raises:
            SceneError: If a group is unknown, or its joints are not connected or do not move.
        """
        joints = [tree.joint[name] for name in self.group_joints(tree, group)]
        if not any(joint.is_driven for joint in joints):
            raise SceneError(f"group {group!r} has no moving joints")
        definition = self.groups[group]
        if len(definition.chains) == 1 and not any(definition[1:]):
            return GroupEnds(definition.chains[0][0], (definition.chains[0][1],))
        paths = {joint.name: tree.path(tree.root, joint.child) for joint in joints}
        base = _lowest_common([path[:-1] for path in paths.values()], tree.root)
        for name, path in paths.items():
            between = path[len(tree.path(tree.root, base)) :]
            others = [each.name for each in between if each.kind != "fixed"]
            if missing := [each for each in others if each not in paths]:
                raise SceneError(
                    f"group {group!r} is not connected: joint {missing[0]!r}, which moves "
                    f"{name!r}, is not in the group"
                )
        hands = {each.parent_link for each in self.end_effectors.values()}
        tips: dict[str, str] = {}  # tip by the name of the last moving joint above the tip
        above: set[str] = set()  # names of moving joints above other moving joints
        for path in paths.values():
            moving = [each.name for each in path if each.kind != "fixed"]
            above.update(moving[:-1])
            if moving and moving[-1] in paths and tips.get(moving[-1]) not in hands:
                tips[moving[-1]] = path[-1].child
        last = [tip for joint, tip in tips.items() if joint not in above]
        return GroupEnds(base, tuple(last))

    def state(self, name: str, group: str | None = None) -> dict[str, float]:
        """Return the joint positions [rad or m], by joint name, of a pose that the SRDF names.

        Joints with several degrees of freedom, such as floating joints, are left out.

        Args:
            name: Name of the pose.
            group: Group to which the pose belongs; None if only one group has a pose of this name.

        Raises:
            SceneError: If the pose is unknown, or several groups have a pose of this name.
        """
        found = [key for key in self.states if key[1] == name and group in (None, key[0])]
        if not found:
            known = [key[1] for key in self.states if group in (None, key[0])]
            hint = did_you_mean(name, known, "; {}")
            where = "" if group is None else f" of group {group!r}"
            known_poses = listing(known)
            raise SceneError(f"unknown pose {name!r}{where}{hint}; known poses: {known_poses}")
        if len(found) > 1:
            groups = listing(key[0] for key in found)
            raise SceneError(f"several groups have a pose {name!r}; choose one of: {groups}")
        return {
            joint: values[0] for joint, values in self.states[found[0]].items() if len(values) == 1
        }

    def with_pairs(self, pairs: Mapping[Pair, str]) -> "Srdf":
        """Return a copy in which exactly the given pairs of links may touch.

        Args:
            pairs: Reasons why a pair may touch, by pair.
        """
        return replace(self, disabled=dict(pairs), enabled=frozenset(), disabled_by_default=())

    def _joints(self, tree: Tree, group: str, above: tuple[str, ...]) -> set[str]:
        """Return the names of the joints of a group and of its subgroups.

        Args:
            tree: Robot.
            group: Name of the group.
            above: Names of the groups that contain the group, from the outermost inward.

        Raises:
            SceneError: If a group is unknown or contains itself.
        """
        if group in above:
            raise SceneError(f"groups contain each other: {listing((*above, group))}")
        definition = self.groups.get(group)
        if definition is None:
            hint = did_you_mean(group, self.groups, "; {}")
            known = listing(self.groups)
            raise SceneError(f"unknown group {group!r}{hint}; known groups: {known}")
        chosen = {*definition.joints}
        for base, tip in definition.chains:
            chosen.update(joint.name for joint in tree.path(base, tip))
        for link in definition.links:
            if link in tree.parent_joint:
                chosen.add(tree.parent_joint[link].name)
        for part in definition.groups:
            chosen |= self._joints(tree, part, (*above, group))
        return chosen


def pair_of(link: str, other: str) -> Pair:
    """Return the names of two links or objects in alphabetical order."""
    return (link, other) if link <= other else (other, link)


def _lowest_common(paths: Sequence[tuple[Joint, ...]], root: str) -> str:
    """Return the lowest link that all given paths contain.

    Args:
        paths: Paths, each of which is a sequence of joints that starts at the root link.
        root: Name of the root link, the result if the paths have no joint in common.
    """
    base = root
    for joints in zip(*paths, strict=False):
        if any(joint is not joints[0] for joint in joints):
            break
        base = joints[0].child
    return base


# Reading


def load_srdf(source: str | os.PathLike[str], tree: Tree) -> Srdf:
    """Read an SRDF, which need not be trusted, and compare its names with those of a robot.

    Elements that name unknown links, joints or groups are ignored, as in MoveIt. The field
    ``unknown`` of the result and a warning in Python's log list the ignored elements.

    Args:
        source: Path of an SRDF file, or SRDF text. A string whose first character after white space
            is ``<`` is a text.
        tree: Robot.

    Raises:
        SceneError: If the content is not a valid SRDF; the message gives the line.
    """
    text, folder = read_document(source, "SRDF", SceneError)
    file = "" if folder is None else f"{quoted(os.fspath(source))}: "
    try:
        srdf = _Reader(read_elements(text, SRDF_SCHEMA, "SRDF", "robot", SceneError), tree).read()
    except SceneError as error:
        raise SceneError(f"{file}{error}") from error
    if srdf.unknown:
        LOG.warning(f"{file}SRDF of {srdf.name}: {listing(srdf.unknown, 3)}")
    return srdf


class _Reader:
    """Reader of the elements of an SRDF that ignores elements with names unknown to a robot."""

    def __init__(self, root: XmlElement, tree: Tree) -> None:
        self.root, self.tree = root, tree
        self.links, self.joints = {*tree.links}, {*tree.joint}
        self.unknown: dict[str, None] = {}  # texts about ignored elements; an ordered set

    def read(self) -> Srdf:
        """Read all elements, and return the content of the SRDF.

        Raises:
            SceneError: If an element is not valid.
        """
        name, tree = self.root.name(), self.tree
        if name != tree.name:
            self.unknown[f"the SRDF is of robot {name!r}; expected {tree.name!r}"] = None
        virtual = {each.name(): self._virtual(each) for each in self.root.all("virtual_joint")}
        self.joints |= {*virtual}
        groups = {each.name(): self._group(each, virtual) for each in self.root.all("group")}
        self._check_subgroups(groups)
        states: dict[Pair, Mapping[str, tuple[float, ...]]] = {}
        for each in self._known("group_state", {"group": groups}):
            states[each.name("group"), each.name()] = self._state(each)
        disabled = self._pairs("disable_collisions")
        return Srdf(
            name=name,
            groups=groups,
            states=states,
            end_effectors={
                each.name(): EndEffector(
                    each.name("group"),
                    each.name("parent_link"),
                    each.attributes.get("parent_group", ""),
                )
                for each in self._known(
                    "end_effector", {"group": groups, "parent_link": self.links}
                )
            },
            virtual_joints=virtual,
            passive_joints=tuple(
                each.name() for each in self._known("passive_joint", {"name": self.joints})
            ),
            joint_properties=tuple(
                (each.name("joint_name"), each.name("property_name"), each.attributes["value"])
                for each in self._known("joint_property", {"joint_name": self.joints})
                if "value" in each.attributes
            ),
            disabled={pair: each.attributes.get("reason", "") for pair, each in disabled.items()},
            enabled=frozenset(self._pairs("enable_collisions")),
            disabled_by_default=tuple(
                each.name("link")
                for each in self._known("disable_default_collisions", {"link": self.links})
            ),
            spheres={
                each.name("link"): tuple(map(_sphere, each.all("sphere")))
                for each in self._known("link_sphere_approximation", {"link": self.links})
            },
            unknown=tuple(self.unknown),
        )

    def _known(
        self, tag: str, names: Mapping[str, Iterable[str]], within: XmlElement | None = None
    ) -> list[XmlElement]:
        """Return the elements with a given tag that contain only known names.

        A text about each of the other elements is added to `unknown`.

        Args:
            tag: Tag of the elements.
            names: Known names for each attribute whose value is a name.
            within: Parent of the elements; None for the root element.
        """
        found = []
        for each in (within or self.root).all(tag):
            wrong = [key for key, known in names.items() if each.name(key) not in known]
            if wrong:
                self.unknown[f"<{tag}> has the unknown {wrong[0]} {each.name(wrong[0])!r}"] = None
            else:
                found.append(each)
        return found

    def _virtual(self, element: XmlElement) -> VirtualJoint:
        """Return the virtual joint that a <virtual_joint> element describes."""
        kind = element.name("type")
        if kind not in ("fixed", "planar", "floating"):
            element.refuse(
                f"type of a virtual joint must be fixed, planar or floating; got {kind!r}"
            )
        return VirtualJoint(kind, element.name("parent_frame"), element.name("child_link"))

    def _group(self, element: XmlElement, virtual: Mapping[str, VirtualJoint]) -> JointGroup:
        """Return the group that a <group> element describes.

        Args:
            element: Element.
            virtual: Virtual joints by name, which are not part of a group.
        """
        ends = {"base_link": self.links, "tip_link": self.links}
        chains = []
        for each in self._known("chain", ends, element):
            base, tip = each.name("base_link"), each.name("tip_link")
            if not self._leads(base, tip):
                each.refuse(f"there is no chain from {base!r} down to {tip!r}")
            chains.append((base, tip))
        joints = [each.name() for each in self._known("joint", {"name": self.joints}, element)]
        return JointGroup(
            tuple(chains),
            tuple(joint for joint in joints if joint not in virtual),
            tuple(each.name() for each in self._known("link", {"name": self.links}, element)),
            tuple(each.name() for each in element.all("group")),
        )

    def _leads(self, base: str, tip: str) -> bool:
        """Return whether the link `tip` is the link `base`, or is below `base` in the tree."""
        while tip != base and tip in self.tree.parent_joint:
            tip = self.tree.parent_joint[tip].parent
        return tip == base

    def _check_subgroups(self, groups: dict[str, JointGroup]) -> None:
        """Remove unknown subgroups from the definitions of groups.

        Args:
            groups: Groups by name; changed in place.

        Raises:
            SceneError: If a group contains itself, directly or through other groups.
        """
        for name, group in groups.items():
            known = tuple(part for part in group.groups if part in groups)
            for part in {*group.groups} - {*known}:
                self.unknown[f"group {name!r} has the unknown group {part!r}"] = None
            groups[name] = group._replace(groups=known)
        done: set[str] = set()
        for name in groups:
            _visit(name, groups, done, ())

    def _state(self, element: XmlElement) -> dict[str, tuple[float, ...]]:
        """Return the joint positions [rad or m], by joint name, in a <group_state> element."""
        return {
            each.name(): tuple(each.numbers("value", len(each.attributes.get("value", "").split())))
            for each in self._known("joint", {"name": self.joints}, element)
        }

    def _pairs(self, tag: str) -> dict[Pair, XmlElement]:
        """Return the elements with a given tag, by the pair of links that each element names."""
        ends = {"link1": self.links, "link2": self.links}
        return {
            pair_of(each.name("link1"), each.name("link2")): each for each in self._known(tag, ends)
        }


def _visit(
    name: str, groups: Mapping[str, JointGroup], done: set[str], above: tuple[str, ...]
) -> None:
    """Check that a group does not contain itself, directly or through other groups.

    Args:
        name: Name of the group.
        groups: All groups.
        done: Names of the groups that were already checked; this function adds the group.
        above: Names of the groups that contain the group, from the outermost inward.

    Raises:
        SceneError: If the group contains itself.
    """
    if name in above:
        raise SceneError(f"groups contain each other: {listing((*above, name))}")
    if name not in done:
        for part in groups[name].groups:
            _visit(part, groups, done, (*above, name))
        done.add(name)


def _sphere(element: XmlElement) -> tuple[float, float, float, float]:
    """Return the centre x, y, z and the radius [m] of the sphere in a <sphere> element."""
    x, y, z = element.numbers("center", 3)
    (radius,) = element.numbers("radius", 1)
    return x, y, z, radius


# Writing


def srdf_text(srdf: Srdf) -> str:
    """Return the text of an SRDF file with a given content, which MoveIt can read."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f'<robot name="{escape(srdf.name)}">']
    lines += [line for section in _SECTIONS for line in section(srdf)]
    return "\n".join([*lines, "</robot>", ""])


def _tag(tag: str, indent: int = 2, /, **attributes: str) -> str:
    """Return the text of an XML element without children.

    Args:
        tag: Tag of the element.
        indent: Number of spaces before the element.
        **attributes: Values of attributes by name; an attribute with an empty value is omitted.
    """
    words = "".join(f' {key}="{escape(value)}"' for key, value in attributes.items() if value)
    return f"{' ' * indent}<{tag}{words}/>"


def _nested(tag: str, lines: Iterable[str], **attributes: str) -> list[str]:
    """Return the lines of text of an XML element with children.

    Args:
        tag: Tag of the element.
        lines: Lines of text of the children.
        **attributes: Values of attributes by name; an attribute with an empty value is omitted.
    """
    return [_tag(tag, **attributes).removesuffix("/>") + ">", *lines, f"  </{tag}>"]


def _numbers(values: Iterable[float]) -> str:
    """Return numbers as text in full precision, separated by spaces."""
    return " ".join(map(repr, values))


def _groups(srdf: Srdf) -> list[str]:
    """Return the lines of an SRDF file that describe groups and named poses."""
    lines = []
    for name, group in srdf.groups.items():
        inside = [_tag("chain", 4, base_link=base, tip_link=tip) for base, tip in group.chains]
        inside += [_tag("joint", 4, name=each) for each in group.joints]
        inside += [_tag("link", 4, name=each) for each in group.links]
        inside += [_tag("group", 4, name=each) for each in group.groups]
        lines += _nested("group", inside, name=name)
    for (name, pose), values in srdf.states.items():
        inside = [_tag("joint", 4, name=each, value=_numbers(v)) for each, v in values.items()]
        lines += _nested("group_state", inside, name=pose, group=name)
    return lines


def _joints(srdf: Srdf) -> list[str]:
    """Return the lines of an SRDF file for end effectors and virtual and passive joints.

    The lines also describe properties of joints.
    """
    lines = [
        _tag("end_effector", name=name, **each._asdict())
        for name, each in srdf.end_effectors.items()
    ]
    for name, virtual in srdf.virtual_joints.items():
        kind, frame, link = virtual
        lines += [_tag("virtual_joint", name=name, type=kind, parent_frame=frame, child_link=link)]
    lines += [_tag("passive_joint", name=name) for name in srdf.passive_joints]
    return lines + [
        _tag("joint_property", joint_name=joint, property_name=name, value=value)
        for joint, name, value in srdf.joint_properties
    ]


def _collisions(srdf: Srdf) -> list[str]:
    """Return the lines of an SRDF file for sphere approximations and pairs that may touch."""
    lines = []
    for link, spheres in srdf.spheres.items():
        inside = [_tag("sphere", 4, center=_numbers(s[:3]), radius=repr(s[3])) for s in spheres]
        lines += _nested("link_sphere_approximation", inside, link=link)
    lines += [_tag("disable_default_collisions", link=link) for link in srdf.disabled_by_default]
    lines += [
        _tag("enable_collisions", link1=link, link2=other) for link, other in sorted(srdf.enabled)
    ]
    return lines + [
        _tag("disable_collisions", link1=link, link2=other, reason=reason)
        for (link, other), reason in sorted(srdf.disabled.items())
    ]


_SECTIONS: tuple[Callable[[Srdf], list[str]], ...] = (_groups, _joints, _collisions)
