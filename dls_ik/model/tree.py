# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kinematic trees: links connected by joints, paths between links, and poses of links."""

import math
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import ChainError, JointValueError, RobotModelError
from dls_ik.lazy_property import cached_property
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.rotations import inverse
from dls_ik.text import did_you_mean, listing, quoted


class Description(NamedTuple):
    """The URDF text from which a tree was read, which also describes the shapes of links."""

    urdf: str | bytes  # URDF text
    folder: Path | None = None  # folder to which relative paths in the URDF refer; None if unknown


@dataclass(frozen=True, eq=False)
class Tree:
    """Kinematic tree of a robot: links and joints, validated on construction.

    A driven joint has one joint position: it is revolute, continuous or prismatic. Two trees are
    equal if all their names, all numbers and the texts of their URDFs are equal.

    Raises:
        RobotModelError: If a name is duplicate or not printable, a joint has an unknown link, a
            link has two parents, there is no root link or more than one, or the joints form a
            cycle.
    """

    name: str
    links: tuple[str, ...]
    joints: tuple[Joint, ...]
    description: Description | None = field(default=None, repr=False)  # None without a URDF
    root: str = field(init=False)  # link without a parent
    joint: dict[str, Joint] = field(init=False, repr=False)  # joints by name
    parent_joint: dict[str, Joint] = field(init=False, repr=False)  # joint above each link
    child_joints: dict[str, tuple[Joint, ...]] = field(init=False, repr=False)  # keys: links
    # Results of resolve_mimics: mimic relations of driven joints to independent joints, by joint
    # name, and the reasons why chains cannot contain the other driven joints, by joint name.
    mimic_of: dict[str, Mimic] = field(init=False, repr=False)
    unusable: dict[str, str] = field(init=False, repr=False)
    # Results that other modules derive from this tree and keep for its lifetime, by their own keys.
    derived: dict[Hashable, Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Validate the names, and index links and joints."""
        _check_names(self.name, self.links, self.joints)
        joint = {each.name: each for each in self.joints}
        parent_joint = _by_child(self.links, self.joints)
        below: dict[str, list[Joint]] = {link: [] for link in self.links}
        for each in self.joints:
            below[each.parent].append(each)
        child_joints = {link: tuple(joints) for link, joints in below.items()}
        mimic_of, unusable = resolve_mimics(joint)
        fields = {
            "joint": joint,
            "parent_joint": parent_joint,
            "child_joints": child_joints,
            "root": _only_root(self.links, parent_joint, child_joints),
            "mimic_of": mimic_of,
            "unusable": unusable,
            "derived": {},
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for pickling, without derived results."""
        return {**self.__dict__, "derived": {}}

    def __eq__(self, other: object) -> bool:
        """Return whether all names and numbers and the URDF text of another tree are equal."""
        return isinstance(other, Tree) and (self is other or self.digest == other.digest)

    def __hash__(self) -> int:
        """Return the hash of all names and numbers and of the URDF text."""
        return hash(self.digest)

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 digest of all names and numbers and of the URDF text, equal in every process."""
        joints = (joint.content for joint in self.joints)
        content = self.name, self.links, self.description, *joints
        return sha256(repr(content).encode()).digest()

    @cached_property
    def downward(self) -> tuple[Joint, ...]:
        """All joints of the tree, in an order in which each joint is after the joints above it."""
        joints: list[Joint] = []
        waiting = [self.root]
        while waiting:
            below = self.child_joints[waiting.pop()]
            joints += below
            waiting += [joint.child for joint in reversed(below)]
        return tuple(joints)

    def locked(self, values: Mapping[str, float]) -> "Tree":
        """Return the tree with driven joints replaced by fixed joints at given positions.

        Mimic joints of a locked joint are locked too.

        Args:
            values: Position of each joint to lock, by name [rad or m].

        Raises:
            JointValueError: If a joint is unknown, follows another joint, has no position, or the
                position is not finite or outside the limits.
        """
        driven = [name for name, mimic in self.mimic_of.items() if mimic.master == name]
        for name, value in values.items():
            if name not in driven:
                hint = did_you_mean(name, driven, "; {}")
                raise JointValueError(
                    f"cannot lock joint {quoted(name)}: joints to lock are {listing(driven)}{hint}"
                )
            each = self.joint[name]
            if not each.lower <= value <= each.upper or not math.isfinite(value):
                raise JointValueError(
                    f"joint {name!r} must be locked from {each.lower:g} to {each.upper:g}; "
                    f"got {quoted(value)}"
                )
        joints = []
        for each in self.joints:
            mimic = self.mimic_of.get(each.name)
            if mimic is not None and mimic.master in values:
                value = mimic.multiplier * values[mimic.master] + mimic.offset
                each = Joint(
                    each.name, "fixed", each.parent, each.child, each.origin @ each.motion(value)
                )
            joints.append(each)
        return Tree(self.name, self.links, tuple(joints), self.description)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Names of the links without a child link, in the order of `links`."""
        return tuple(link for link in self.links if not self.child_joints[link])

    def require(self, link: str, role: str = "link") -> str:
        """Check that a link exists, and return its name `link` unchanged.

        Args:
            link: Name of the link.
            role: Description of the link for the error message, such as "base link".

        Raises:
            ChainError: If the link is unknown; the message suggests similar names and lists all
                links.
        """
        if link not in self.child_joints:
            hint = did_you_mean(link, self.links, "{} ")
            raise ChainError(f"unknown {role} {link!r}; {hint}links: {listing(self.links)}")
        return link

    def path(self, base: str, tip: str) -> tuple[Joint, ...]:
        """Return the joints on the path from a base link down to a tip link, in this order.

        The path from a link to itself is empty.

        Raises:
            ChainError: If a link is unknown, or the tip is not below the base.
        """
        self.require(base, "base link")
        joints: list[Joint] = []
        link = self.require(tip, "tip link")
        while link != base:
            if link == self.root:
                raise ChainError(
                    f"there is no chain from {base!r} down to {tip!r}; links above {tip!r}: "
                    f"{listing(joint.parent for joint in reversed(joints))}; "
                    f"all links: {listing(self.links)}"
                )
            joints.append(self.parent_joint[link])
            link = self.parent_joint[link].parent
        return tuple(reversed(joints))

    def values(self, given: Mapping[str, float] | None = None) -> dict[str, float]:
        """Return the positions of all driven joints by name [rad or m].

        Mimic joints follow their master; positions given for mimic joints are ignored.

        Args:
            given: Joint positions by name [rad or m]. A joint that is missing is at 0, or at its
                limit closest to 0.

        Raises:
            JointValueError: If a joint is unknown, or a position is not finite.
        """
        given = given or {}
        for name, value in given.items():
            if name not in self.joint:
                raise JointValueError(f"unknown joint {name!r}; joints: {listing(self.joint)}")
            if not math.isfinite(value):
                raise JointValueError(f"joint {name!r} has the value {value}, which is not finite")
        return {name: self._value(mimic, given) for name, mimic in self.mimic_of.items()}

    def pose(self, link: str, values: Mapping[str, float] | None = None) -> Array:
        """Return the pose of any link in the frame of the root link.

        Args:
            link: Name of the link.
            values: Joint positions by name [rad or m]; :meth:`values` explains the positions of
                missing joints. Floating and planar joints do not move.

        Returns:
            ``T_root_link`` (4, 4) [m].

        Raises:
            ChainError: If the link is unknown.
            JointValueError: If a joint is unknown, or a position is not finite.
        """
        return product(self.path(self.root, link), self.values(values))

    def fixed_offset(self, link_a: str, link_b: str) -> Array | None:
        """Return the constant transform ``T_a_b`` (4, 4) [m] between two links.

        The result is None if a joint can move the links relative to each other.

        Raises:
            ChainError: If a link is unknown.
        """
        a, b = self.path(self.root, link_a), self.path(self.root, link_b)
        shared = 0
        while shared < min(len(a), len(b)) and a[shared] is b[shared]:
            shared += 1
        if any(joint.kind != "fixed" for joint in a[shared:] + b[shared:]):
            return None
        return inverse(product(a[shared:], {})) @ product(b[shared:], {})

    def _value(self, mimic: Mimic, given: Mapping[str, float]) -> float:
        """Return the position [rad or m] of a joint from its mimic relation.

        Args:
            mimic: Mimic relation of the joint to an independent joint.
            given: Joint positions by name [rad or m]. If the independent joint is missing, it is at
                0, or at its limit closest to 0.
        """
        master = self.joint[mimic.master]
        value = given.get(master.name, min(max(0.0, master.lower), master.upper))
        return mimic.multiplier * float(value) + mimic.offset


def product(joints: tuple[Joint, ...], values: Mapping[str, float]) -> Array:
    """Return the transform (4, 4) [m] from the last child frame to the first parent frame.

    Args:
        joints: Successive joints on a path; the child link of a joint is the parent link of the
            next joint.
        values: Joint positions by name [rad or m]; a joint that is missing is at 0.
    """
    T = np.eye(4)
    for joint in joints:
        T = T @ joint.origin @ joint.motion(values.get(joint.name, 0.0))
    return T


def _check_names(name: str, links: tuple[str, ...], joints: tuple[Joint, ...]) -> None:
    """Check that a robot has links, and that all names are unique and printable.

    Args:
        name: Name of the robot.
        links: Names of the links.
        joints: Joints.

    Raises:
        RobotModelError: If there is no link, or a name is duplicate or not printable.
    """
    if not links:
        raise RobotModelError("the robot has no links")
    joint_names = tuple(joint.name for joint in joints)
    for each in (name, *links, *joint_names):
        if not each.isprintable():
            raise RobotModelError(f"the name {quoted(each)} contains non-printable characters")
    for kind, names in (("joints", joint_names), ("links", links)):
        seen: set[str] = set()
        for each in names:
            if each in seen:
                raise RobotModelError(f"two {kind} are named {each!r}")
            seen.add(each)


def _by_child(links: tuple[str, ...], joints: tuple[Joint, ...]) -> dict[str, Joint]:
    """Return the joint above each link, by the name of the link; root links have no entry.

    Args:
        links: Names of all links.
        joints: All joints.

    Raises:
        RobotModelError: If a joint has an unknown link, or two joints have the same child link.
    """
    known = set(links)
    found: dict[str, Joint] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in known:
                raise joint.error(f"unknown {role} link {link!r}; links: {listing(links)}")
        if joint.child in found:
            other = found[joint.child].name
            raise joint.error(f"its child link {joint.child!r} is also the child of {other!r}")
        found[joint.child] = joint
    return found


def _only_root(
    links: tuple[str, ...],
    parent_joint: Mapping[str, Joint],
    child_joints: Mapping[str, tuple[Joint, ...]],
) -> str:
    """Return the name of the root, which is the only link without a parent.

    Args:
        links: Names of all links.
        parent_joint: Joint above each link.
        child_joints: Joints below each link.

    Raises:
        RobotModelError: If there is no root or more than one, or the joints form a cycle.
    """
    roots = [link for link in links if link not in parent_joint]
    if not roots:
        cycle = _cycle(links[0], parent_joint)
        raise RobotModelError(f"there is no root link: the joints form a cycle, {cycle}")
    if len(roots) > 1:
        raise RobotModelError(f"there must be one root link; got {len(roots)}: {listing(roots)}")
    reached, waiting = {roots[0]}, [roots[0]]
    while waiting:
        children = [joint.child for joint in child_joints[waiting.pop()]]
        reached.update(children)
        waiting.extend(children)
    for link in links:
        if link not in reached:
            raise RobotModelError(f"the joints form a cycle, {_cycle(link, parent_joint)}")
    return roots[0]


def _cycle(link: str, parent_joint: Mapping[str, Joint]) -> str:
    """Return the names of the joints in a cycle, joined by commas.

    Args:
        link: Link in the cycle or below it.
        parent_joint: Joint above each link.
    """
    climbed: dict[str, None] = {}  # names of visited joints, in this order
    joint = parent_joint[link]
    while joint.name not in climbed:
        climbed[joint.name] = None
        joint = parent_joint[joint.parent]
    names = list(climbed)
    return listing(reversed(names[names.index(joint.name) :]))


def resolve_mimics(joints: Mapping[str, Joint]) -> tuple[dict[str, Mimic], dict[str, str]]:
    """Return the mimic relation of every driven joint to an independent joint.

    An independent joint mimics no other joint; its relation is to itself, with multiplier 1 and
    offset 0. If a joint mimics a mimic joint, its relation is to the independent joint that the
    latter follows.

    Args:
        joints: All joints by name.

    Returns:
        Two mappings by joint name. The first contains the relations. The second contains the driven
        joints without relation, with the reason as text: the joint has a defect, or mimics
        (directly or through other mimic joints) itself, an unknown joint, a joint that is not
        driven, or a joint with a defect.
    """
    mimic_of: dict[str, Mimic] = {}
    unusable: dict[str, str] = {}
    for joint in joints.values():
        if joint.is_driven:
            _resolve(joint, joints, mimic_of, unusable)
    return mimic_of, unusable


def _resolve(
    joint: Joint, joints: Mapping[str, Joint], mimic_of: dict[str, Mimic], unusable: dict[str, str]
) -> None:
    """Add the mimic relations of a joint, of its master, of the master's master etc. to `mimic_of`.

    The function goes from joint to master until it finds an independent joint or a joint whose
    relation is known. It then computes the relations of the joints before in reverse order. If the
    relation of a joint cannot be computed, the reason is added to `unusable`.

    Args:
        joint: Driven joint.
        joints: All joints by name.
        mimic_of: Known relations to independent joints by joint name; extended in place.
        unusable: Reasons why joints have no relation by joint name; extended in place.
    """
    followers: dict[str, Mimic] = {}
    try:
        while joint.name not in mimic_of:
            if joint.defect:
                unusable.setdefault(joint.name, str(joint.error(joint.defect)))
            if joint.name in unusable:
                raise RobotModelError(unusable[joint.name])
            if joint.mimic is None:
                mimic_of[joint.name] = Mimic(joint.name)
                break
            if joint.name in followers:
                raise joint.error(f"mimic cycle through {listing(followers)}")
            followers[joint.name] = joint.mimic
            joint = _master(joint, joint.mimic, joints)
        for name, mimic in reversed(followers.items()):
            mimic_of[name] = _compose(joints[name], mimic, mimic_of[mimic.master])
    except RobotModelError as error:
        unusable.update({name: str(error) for name in followers if name not in mimic_of})


def _master(joint: Joint, mimic: Mimic, joints: Mapping[str, Joint]) -> Joint:
    """Return the master joint that a joint mimics.

    Args:
        joint: Mimic joint, for the error message.
        mimic: Relation of the mimic joint to its master.
        joints: All joints by name.

    Raises:
        RobotModelError: If the master is unknown or is not a driven joint.
    """
    master = joints.get(mimic.master)
    if master is None:
        known = listing(joints)
        raise joint.error(f"it mimics the unknown joint {mimic.master!r}; joints: {known}")
    if not master.is_driven:
        raise joint.error(f"it mimics {mimic.master!r}, a {master.kind} joint, which has no value")
    return master


def _compose(joint: Joint, mimic: Mimic, master: Mimic) -> Mimic:
    """Return the mimic relation of a joint to the independent joint that its master follows.

    Args:
        joint: Mimic joint, for the error message.
        mimic: Relation of the mimic joint to its master.
        master: Relation of the master to an independent joint.

    Raises:
        RobotModelError: If the multiplier or the offset is too large.
    """
    multiplier = mimic.multiplier * master.multiplier
    offset = mimic.multiplier * master.offset + mimic.offset
    if not (abs(multiplier) <= MAX_POSE_COORDINATE and abs(offset) <= MAX_POSE_COORDINATE):
        raise joint.error(
            f"mimic multiplier and offset must be within +-{MAX_POSE_COORDINATE:g}; got "
            f"{multiplier:g} and {offset:g}"
        )
    return Mimic(master.master, multiplier, offset)
