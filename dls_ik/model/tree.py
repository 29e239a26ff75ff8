# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kinematic trees: links connected by joints, paths between links, and poses of links."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import ChainError, JointValueError, RobotModelError
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.rotations import FARTHEST, inverse
from dls_ik.text import did_you_mean, listing, quoted


class Description(NamedTuple):
    """The URDF that a tree was read from, which also contains shapes."""

    urdf: str | bytes
    folder: Path | None = None  # folder for relative paths; None if unknown


@dataclass(frozen=True, eq=False)
class Tree:
    """Links and joints with exactly one root and no cycle, validated on construction.

    Trees are equal if all names and numbers are equal, and the description, which has the shapes.

    Raises:
        RobotModelError: If names are duplicate or not printable, links are unknown, a link has two
            parents, there is no root or more than one, or the joints form a cycle.
    """

    name: str
    links: tuple[str, ...]
    joints: tuple[Joint, ...]
    description: Description | None = field(default=None, repr=False)  # None without a URDF
    root: str = field(init=False)
    joint: dict[str, Joint] = field(init=False, repr=False)  # joints by name
    parent_joint: dict[str, Joint] = field(init=False, repr=False)  # joint by child link
    child_joints: dict[str, tuple[Joint, ...]] = field(init=False, repr=False)  # link: joints
    mimic_of: dict[str, Mimic] = field(init=False, repr=False)  # key: driven joint
    unusable: dict[str, str] = field(init=False, repr=False)  # reason by joint; not in any chain

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
        }
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        """Compare all names, numbers and descriptions."""
        return isinstance(other, Tree) and (self is other or self.digest == other.digest)

    def __hash__(self) -> int:
        """Return the hash of all names, numbers and descriptions."""
        return hash(self.digest)

    @cached_property
    def digest(self) -> bytes:
        """Digest of the content; equal in every process."""
        joints = (joint.content for joint in self.joints)
        content = self.name, self.links, self.description, *joints
        return sha256(repr(content).encode()).digest()

    @cached_property
    def downward(self) -> tuple[Joint, ...]:
        """All joints, parents before children."""
        joints: list[Joint] = []
        waiting = [self.root]
        while waiting:
            below = self.child_joints[waiting.pop()]
            joints += below
            waiting += [joint.child for joint in reversed(below)]
        return tuple(joints)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Links without a child, in the order of the links."""
        return tuple(link for link in self.links if not self.child_joints[link])

    def require(self, link: str, role: str = "link") -> str:
        """Return the name of a link after checking that the link exists.

        Raises:
            ChainError: If the link is unknown; the message lists the known links, similar names
                first.
        """
        if link not in self.child_joints:
            hint = did_you_mean(link, self.links, "{} ")
            raise ChainError(f"unknown {role} {link!r}; {hint}links: {listing(self.links)}")
        return link

    def path(self, base: str, tip: str) -> tuple[Joint, ...]:
        """Return the joints from a link down to another link; empty if the links are the same.

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
        """Return the positions of all driven joints [rad or m].

        A joint that is not given is at 0, or at the limit closest to 0. Mimic joints follow their
        master; positions given for them are ignored.

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
        """Return the pose of any link.

        Args:
            link: Name of the link.
            values: Joint positions by name [rad or m]; see :meth:`values` for missing joints.
                Floating and planar joints are at their origin.

        Returns:
            ``T_root_link`` (4, 4).

        Raises:
            ChainError: If the link is unknown.
            JointValueError: If a joint is unknown, or a position is not finite.
        """
        return product(self.path(self.root, link), self.values(values))

    def fixed_offset(self, link_a: str, link_b: str) -> Array | None:
        """Return ``T_a_b`` (4, 4) of links that never move relative to each other, or None."""
        a, b = self.path(self.root, link_a), self.path(self.root, link_b)
        shared = 0
        while shared < min(len(a), len(b)) and a[shared] is b[shared]:
            shared += 1
        if any(joint.kind != "fixed" for joint in a[shared:] + b[shared:]):
            return None
        return inverse(product(a[shared:], {})) @ product(b[shared:], {})

    def _value(self, mimic: Mimic, given: Mapping[str, float]) -> float:
        """Return the position of a joint that follows a master."""
        master = self.joint[mimic.master]
        value = given.get(master.name, min(max(0.0, master.lower), master.upper))
        return mimic.multiplier * float(value) + mimic.offset


def product(joints: tuple[Joint, ...], values: Mapping[str, float]) -> Array:
    """Return the product (4, 4) of the transforms of successive joints, missing positions as 0."""
    T = np.eye(4)
    for joint in joints:
        T = T @ joint.origin @ joint.motion(values.get(joint.name, 0.0))
    return T


def _check_names(name: str, links: tuple[str, ...], joints: tuple[Joint, ...]) -> None:
    """Check that there are links, and that names are unique and printable.

    Raises:
        RobotModelError: If they are not.
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
    """Return the joints by child link.

    Raises:
        RobotModelError: If a link is unknown, or has two parents.
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
    """Return the only link without a parent.

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
    """Return the joints of the cycle above a link as text."""
    climbed: dict[str, None] = {}  # ordered
    joint = parent_joint[link]
    while joint.name not in climbed:
        climbed[joint.name] = None
        joint = parent_joint[joint.parent]
    names = list(climbed)
    return listing(reversed(names[names.index(joint.name) :]))


def resolve_mimics(joints: Mapping[str, Joint]) -> tuple[dict[str, Mimic], dict[str, str]]:
    """Return the mimic relation of every driven joint to an independent joint.

    An independent joint is related to itself.

    Returns:
        The mimic relation by joint, and for each joint without a relation the reason: the joint has
        a defect, or mimics an unknown joint, a joint that does not move, or itself.
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
    """Follow the masters of a joint to a resolved joint, then resolve its followers backwards."""
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
    """Return the master of a joint.

    Raises:
        RobotModelError: If the master is unknown or does not move.
    """
    master = joints.get(mimic.master)
    if master is None:
        known = listing(joints)
        raise joint.error(f"it mimics the unknown joint {mimic.master!r}; joints: {known}")
    if not master.is_driven:
        raise joint.error(f"it mimics {mimic.master!r}, a {master.kind} joint, which has no value")
    return master


def _compose(joint: Joint, mimic: Mimic, master: Mimic) -> Mimic:
    """Return the mimic relation of a joint to the independent joint behind its master.

    Raises:
        RobotModelError: If the multiplier or the offset is too large.
    """
    multiplier = mimic.multiplier * master.multiplier
    offset = mimic.multiplier * master.offset + mimic.offset
    if not (abs(multiplier) <= FARTHEST and abs(offset) <= FARTHEST):
        raise joint.error(
            f"mimic multiplier and offset must be within +-{FARTHEST:g}; got {multiplier:g} and "
            f"{offset:g}"
        )
    return Mimic(master.master, multiplier, offset)
