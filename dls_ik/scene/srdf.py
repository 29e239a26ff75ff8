"""SRDF: groups, named poses and pairs of links that may touch, as MoveIt reads and writes them."""

import logging
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from xml.sax.saxutils import quoteattr

from dls_ik.errors import SceneError
from dls_ik.model.joint import Joint
from dls_ik.model.tree import Tree
from dls_ik.model.xml import Schema, XmlElement, read_document, read_elements
from dls_ik.text import did_you_mean, listing, quoted

LOG = logging.getLogger("dls_ik")
SCHEMA: Schema = {
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
ALWAYS_ALLOWED = "Default"  # reason of the pairs of disable_default_collisions
Pair = tuple[str, str]  # of links, in alphabetical order


class JointGroup(NamedTuple):
    """A group as it is written."""

    chains: tuple[tuple[str, str], ...] = ()  # base and tip links
    joints: tuple[str, ...] = ()
    links: tuple[str, ...] = ()  # with the joints above them
    groups: tuple[str, ...] = ()


class GroupEnds(NamedTuple):
    """The links between which a group moves."""

    base: str
    tips: tuple[str, ...]


class EndEffector(NamedTuple):
    """A hand."""

    group: str
    parent_link: str
    parent_group: str = ""


class VirtualJoint(NamedTuple):
    """A joint between the robot's root and the world."""

    kind: str  # fixed, planar or floating
    parent_frame: str
    child_link: str


@dataclass(frozen=True, eq=False)
class Srdf:
    """A semantic description of a robot; what names unknown links or joints is left out."""

    name: str
    groups: Mapping[str, JointGroup] = field(default_factory=dict)
    states: Mapping[Pair, Mapping[str, tuple[float, ...]]] = field(default_factory=dict)
    # by group and name, the values [rad or m] by joint; several of a joint with many
    end_effectors: Mapping[str, EndEffector] = field(default_factory=dict)
    virtual_joints: Mapping[str, VirtualJoint] = field(default_factory=dict)
    passive_joints: tuple[str, ...] = ()
    joint_properties: tuple[tuple[str, str, str], ...] = ()  # joint, property, value
    disabled: Mapping[Pair, str] = field(default_factory=dict)  # reasons, of pairs that may touch
    enabled: frozenset[Pair] = frozenset()  # despite disabled_by_default
    disabled_by_default: tuple[str, ...] = ()  # links that may touch any other
    spheres: Mapping[str, tuple[tuple[float, float, float, float], ...]] = field(
        default_factory=dict
    )  # by link: centres and radii [m] of its approximation
    unknown: tuple[str, ...] = ()  # one line each: what was left out

    def allowed_pairs(self, links: Iterable[str]) -> dict[Pair, str]:
        """Return the pairs among some links that may touch, with the reason of each."""
        known = sorted(links)
        among = set(known)
        free = [link for link in self.disabled_by_default if link in among]
        found = {
            pair_of(link, other): ALWAYS_ALLOWED
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
        """Return the joints of a group, fixed ones too, parents before children.

        Raises:
            SceneError: If a group is unknown or contains itself.
        """
        chosen = self._joints(tree, group, ())
        return tuple(each.name for each in tree.downward if each.name in chosen)

    def ends(self, tree: Tree, group: str) -> GroupEnds:
        """Find the links between which a group moves.

        They are those of its only chain. Else the base is above all its joints, and there is a tip
        for each joint that is the last to move: the parent link of an end effector, or the last
        link that is fixed to it.

        Raises:
            SceneError: If a group is unknown, or its joints are not connected or do not move.
        """
        joints = [tree.joint[name] for name in self.group_joints(tree, group)]
        if not any(joint.is_driven for joint in joints):
            raise SceneError(f"group {group!r} has no joints that move")
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
                    f"group {group!r} is not connected: {missing[0]!r} moves {name!r}, and is not "
                    "in it"
                )
        hands = {each.parent_link for each in self.end_effectors.values()}
        tips: dict[str, str] = {}  # by the last joint that moves
        above: set[str] = set()  # joints with others that move below
        for path in paths.values():
            moving = [each.name for each in path if each.kind != "fixed"]
            above.update(moving[:-1])
            if moving and moving[-1] in paths and tips.get(moving[-1]) not in hands:
                tips[moving[-1]] = path[-1].child
        last = [tip for joint, tip in tips.items() if joint not in above]
        return GroupEnds(base, tuple(last))

    def state(self, name: str, group: str | None = None) -> dict[str, float]:
        """Return the joint values of a named pose, of joints with one value.

        Args:
            name: Name of the pose.
            group: Its group; default: the only one that has a pose of that name.

        Raises:
            SceneError: If the pose is unknown, or several groups have a pose of that name.
        """
        found = [key for key in self.states if key[1] == name and group in (None, key[0])]
        if not found:
            known = [key[1] for key in self.states if group in (None, key[0])]
            hint = did_you_mean(name, known, "; {}")
            where = "" if group is None else f" of group {group!r}"
            raise SceneError(f"unknown pose {name!r}{where}{hint}; known: {listing(known)}")
        if len(found) > 1:
            raise SceneError(f"pose {name!r} is of groups {listing(key[0] for key in found)}")
        return {
            joint: values[0] for joint, values in self.states[found[0]].items() if len(values) == 1
        }

    def with_pairs(self, pairs: Mapping[Pair, str]) -> "Srdf":
        """Return the same with other pairs of links that may touch, with their reasons."""
        return replace(self, disabled=dict(pairs), enabled=frozenset(), disabled_by_default=())

    def _joints(self, tree: Tree, group: str, above: tuple[str, ...]) -> set[str]:
        if group in above:
            raise SceneError(f"groups contain each other: {listing((*above, group))}")
        definition = self.groups.get(group)
        if definition is None:
            hint = did_you_mean(group, self.groups, "; {}")
            raise SceneError(f"unknown group {group!r}{hint}; known: {listing(self.groups)}")
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
    """Return two links in alphabetical order."""
    return (link, other) if link <= other else (other, link)


def _lowest_common(paths: Sequence[tuple[Joint, ...]], root: str) -> str:
    """Return the last link that paths from the root have in common."""
    base = root
    for joints in zip(*paths, strict=False):
        if any(joint is not joints[0] for joint in joints):
            break
        base = joints[0].child
    return base


# Reading


def load_srdf(source: str | os.PathLike[str], tree: Tree) -> Srdf:
    """Read an SRDF, which need not be trusted, and fit it to a robot.

    Elements that name unknown links, joints or groups are left out, as by MoveIt, and listed in
    ``unknown`` and in Python's log.

    Args:
        source: The XML itself, a string whose first visible character is ``<``, or the path of a
            file.
        tree: Tree of the robot.

    Raises:
        SceneError: If the text is not an SRDF; the message gives the line.
    """
    text, folder = read_document(source, "SRDF", SceneError)
    file = "" if folder is None else f"{quoted(os.fspath(source))}: "
    try:
        srdf = _Reader(read_elements(text, SCHEMA, "SRDF", "robot", SceneError), tree).read()
    except SceneError as error:
        raise SceneError(f"{file}{error}") from error
    if srdf.unknown:
        LOG.warning(f"{file}SRDF of {srdf.name}: {listing(srdf.unknown, 3)}")
    return srdf


class _Reader:
    """The elements of a document, checked against the names of a robot."""

    def __init__(self, root: XmlElement, tree: Tree) -> None:
        self.root, self.tree = root, tree
        self.links, self.joints = {*tree.links}, {*tree.joint}
        self.unknown: dict[str, None] = {}  # an ordered set

    def read(self) -> Srdf:
        name, tree = self.root.name(), self.tree
        if name != tree.name:
            self.unknown[f"it is of robot {name!r}, not {tree.name!r}"] = None
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
        """Return elements whose attributes are among known names; note the others."""
        found = []
        for each in (within or self.root).all(tag):
            wrong = [key for key, known in names.items() if each.name(key) not in known]
            if wrong:
                self.unknown[f"<{tag}> has the unknown {wrong[0]} {each.name(wrong[0])!r}"] = None
            else:
                found.append(each)
        return found

    def _virtual(self, element: XmlElement) -> VirtualJoint:
        kind = element.name("type")
        if kind not in ("fixed", "planar", "floating"):
            element.refuse(f"virtual joint of type {kind!r}; known: fixed, planar, floating")
        return VirtualJoint(kind, element.name("parent_frame"), element.name("child_link"))

    def _group(self, element: XmlElement, virtual: Mapping[str, VirtualJoint]) -> JointGroup:
        ends = {"base_link": self.links, "tip_link": self.links}
        chains = []
        for each in self._known("chain", ends, element):
            base, tip = each.name("base_link"), each.name("tip_link")
            if not self._leads(base, tip):
                each.refuse(f"no chain leads from {base!r} down to {tip!r}")
            chains.append((base, tip))
        joints = [each.name() for each in self._known("joint", {"name": self.joints}, element)]
        return JointGroup(
            tuple(chains),
            tuple(joint for joint in joints if joint not in virtual),
            tuple(each.name() for each in self._known("link", {"name": self.links}, element)),
            tuple(each.name() for each in element.all("group")),
        )

    def _leads(self, base: str, tip: str) -> bool:
        while tip != base and tip in self.tree.parent_joint:
            tip = self.tree.parent_joint[tip].parent
        return tip == base

    def _check_subgroups(self, groups: dict[str, JointGroup]) -> None:
        for name, group in groups.items():
            known = tuple(part for part in group.groups if part in groups)
            for part in {*group.groups} - {*known}:
                self.unknown[f"group {name!r} has the unknown group {part!r}"] = None
            groups[name] = group._replace(groups=known)
        done: set[str] = set()
        for name in groups:
            _visit(name, groups, done, ())

    def _state(self, element: XmlElement) -> dict[str, tuple[float, ...]]:
        return {
            each.name(): tuple(each.numbers("value", len(each.attributes.get("value", "").split())))
            for each in self._known("joint", {"name": self.joints}, element)
        }

    def _pairs(self, tag: str) -> dict[Pair, XmlElement]:
        ends = {"link1": self.links, "link2": self.links}
        return {
            pair_of(each.name("link1"), each.name("link2")): each for each in self._known(tag, ends)
        }


def _visit(
    name: str, groups: Mapping[str, JointGroup], done: set[str], above: tuple[str, ...]
) -> None:
    if name in above:
        raise SceneError(f"groups contain each other: {listing((*above, name))}")
    if name not in done:
        for part in groups[name].groups:
            _visit(part, groups, done, (*above, name))
        done.add(name)


def _sphere(element: XmlElement) -> tuple[float, float, float, float]:
    x, y, z = element.numbers("center", 3)
    (radius,) = element.numbers("radius", 1)
    return x, y, z, radius


# Writing


def srdf_text(srdf: Srdf) -> str:
    """Write an SRDF as MoveIt takes it."""
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<robot name={quoteattr(srdf.name)}>"]
    lines += [line for section in _SECTIONS for line in section(srdf)]
    return "\n".join([*lines, "</robot>", ""])


def _tag(tag: str, indent: int = 2, /, **attributes: str) -> str:
    words = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items() if value)
    return f"{' ' * indent}<{tag}{words}/>"


def _nested(tag: str, lines: Iterable[str], **attributes: str) -> list[str]:
    return [_tag(tag, **attributes).removesuffix("/>") + ">", *lines, f"  </{tag}>"]


def _numbers(values: Iterable[float]) -> str:
    return " ".join(map(repr, values))


def _groups(srdf: Srdf) -> list[str]:
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
