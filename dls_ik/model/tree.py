"""A kinematic tree: links joined by joints, and the questions one asks of it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import ChainError, JointValueError, RobotModelError
from dls_ik.model.joint import Joint, Mimic, resolve_mimics
from dls_ik.model.rotations import inverse
from dls_ik.text import listing, quoted


@dataclass(frozen=True, eq=False)
class Tree:
    """Links and joints with exactly one root and no cycle, checked on construction.

    Raises:
        RobotModelError: names that are there twice or not printable, unknown links, a link with two
            parents, no root or several, a cycle.
    """

    name: str
    links: tuple[str, ...]
    joints: tuple[Joint, ...]
    root: str = field(init=False)
    joint: dict[str, Joint] = field(init=False, repr=False)  # by its name
    parent_joint: dict[str, Joint] = field(init=False, repr=False)  # by child link
    child_joints: dict[str, tuple[Joint, ...]] = field(init=False, repr=False)  # by parent link
    mimic_of: dict[str, Mimic] = field(init=False, repr=False)  # by driven joint
    # Why joints have no drive, as they have no limits or follow nothing that moves: they stand at
    # 0, and no chain may lead over them.
    broken: dict[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Check and index."""
        check_printable(self.name)
        joint = by_name(self.links, self.joints)
        above = by_child(self.links, self.joints)
        object.__setattr__(self, "joint", joint)
        object.__setattr__(self, "parent_joint", above)
        object.__setattr__(self, "child_joints", by_parent(self.links, self.joints))
        object.__setattr__(self, "root", only_root(self.links, above, self.child_joints))
        drives, broken = resolve_mimics(joint)
        object.__setattr__(self, "mimic_of", drives)
        object.__setattr__(self, "broken", broken)

    @property
    def leaves(self) -> tuple[str, ...]:
        """Links without a child, in the order of the links."""
        return tuple(link for link in self.links if not self.child_joints[link])

    def require(self, link: str, role: str = "link") -> str:
        """The link itself.

        Raises:
            ChainError: no such link; the message lists those that there are.
        """
        if link not in self.child_joints:
            raise ChainError(f"unknown {role} {link!r}; links: {listing(self.links)}")
        return link

    def path(self, base: str, tip: str) -> tuple[Joint, ...]:
        """The joints from a link down to another one, empty when they are the same.

        Raises:
            ChainError: an unknown link, or the tip is not below the base.
        """
        self.require(base, "base link")
        joints: list[Joint] = []
        link = self.require(tip, "tip link")
        while link != base:
            if link == self.root:
                raise ChainError(
                    f"no chain leads from {base!r} down to {tip!r}; links above {tip!r}: "
                    f"{listing(joint.parent for joint in reversed(joints))}; "
                    f"all links: {listing(self.links)}"
                )
            joints.append(self.parent_joint[link])
            link = self.parent_joint[link].parent
        return tuple(reversed(joints))

    def values(self, given: Mapping[str, float] | None = None) -> dict[str, float]:
        """The value of every driven joint [rad or m].

        A joint that is not given stands at 0, or at the limit next to 0. Mimic joints follow
        their master, whatever is given for them.

        Raises:
            JointValueError: an unknown joint, or a value that is not finite.
        """
        given = given or {}
        for name, value in given.items():
            if name not in self.joint:
                raise JointValueError(f"unknown joint {name!r}; joints: {listing(self.joint)}")
            if not math.isfinite(value):
                raise JointValueError(f"joint {name!r} has the value {value}, which is not finite")
        return {name: self._value(drive, given) for name, drive in self.mimic_of.items()}

    def pose(self, link: str, values: Mapping[str, float] | None = None) -> Array:
        """Forward kinematics of any link.

        Args:
            link: Name of the link.
            values: Joint values by name [rad or m], completed as by :meth:`values`. Floating and
                planar joints stand at their origin.

        Returns:
            (4, 4) ``T_root_link``.
        """
        complete = self.values(values)
        T = np.eye(4)
        for joint in self.path(self.root, link):
            T = T @ joint.origin @ joint.motion(complete.get(joint.name, 0.0))
        return T

    def fixed_offset(self, link_a: str, link_b: str) -> Array | None:
        """(4, 4) ``T_a_b`` of two links that never move against each other, else None."""
        a, b = self.path(self.root, link_a), self.path(self.root, link_b)
        shared = 0
        while shared < min(len(a), len(b)) and a[shared] is b[shared]:
            shared += 1
        if any(joint.kind != "fixed" for joint in a[shared:] + b[shared:]):
            return None
        return inverse(_product(a[shared:])) @ _product(b[shared:])

    def _value(self, drive: Mimic, given: Mapping[str, float]) -> float:
        master = self.joint[drive.master]
        value = given.get(master.name, min(max(0.0, master.lower), master.upper))
        return drive.multiplier * float(value) + drive.offset


def _product(joints: tuple[Joint, ...]) -> Array:
    T = np.eye(4)
    for joint in joints:
        T = T @ joint.origin
    return T


def by_name(links: tuple[str, ...], joints: tuple[Joint, ...]) -> dict[str, Joint]:
    """Joints by name, refusing two of one name and a robot without links."""
    if not links:
        raise RobotModelError("the robot has no links")
    for name in (*links, *(joint.name for joint in joints)):
        check_printable(name)
    named: dict[str, Joint] = {}
    for joint in joints:
        if joint.name in named:
            raise RobotModelError(f"two joints are named {joint.name!r}")
        named[joint.name] = joint
    seen: set[str] = set()
    for link in links:
        if link in seen:
            raise RobotModelError(f"two links are named {link!r}")
        seen.add(link)
    return named


def check_printable(name: str) -> None:
    """Refuse names that would steer a terminal, or begin a line in a log."""
    if not name.isprintable():
        raise RobotModelError(f"the name {quoted(name)} has characters that cannot be printed")


def by_child(links: tuple[str, ...], joints: tuple[Joint, ...]) -> dict[str, Joint]:
    """The joint above each link, refusing unknown links and a second parent."""
    known = set(links)
    above: dict[str, Joint] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in known:
                raise joint.error(f"unknown {role} link {link!r}; links: {listing(links)}")
        if joint.child in above:
            other = above[joint.child].name
            raise joint.error(f"its child link {joint.child!r} already hangs on joint {other!r}")
        above[joint.child] = joint
    return above


def by_parent(links: tuple[str, ...], joints: tuple[Joint, ...]) -> dict[str, tuple[Joint, ...]]:
    """The joints below each link, all of whose links are known."""
    below: dict[str, list[Joint]] = {link: [] for link in links}
    for joint in joints:
        below[joint.parent].append(joint)
    return {link: tuple(hanging) for link, hanging in below.items()}


def only_root(
    links: tuple[str, ...],
    above: Mapping[str, Joint],
    below: Mapping[str, tuple[Joint, ...]],
) -> str:
    """The one link that all others hang on, refusing none, several and cycles."""
    roots = [link for link in links if link not in above]
    if not roots:
        raise RobotModelError(f"no root link: the joints form a cycle, {_cycle(links[0], above)}")
    if len(roots) > 1:
        raise RobotModelError(f"{len(roots)} root links, expected one: {listing(roots)}")
    reached = _reached(roots[0], below)
    for link in links:
        if link not in reached:
            raise RobotModelError(f"the joints form a cycle, {_cycle(link, above)}")
    return roots[0]


def _reached(root: str, below: Mapping[str, tuple[Joint, ...]]) -> set[str]:
    reached, waiting = {root}, [root]
    while waiting:
        children = [joint.child for joint in below[waiting.pop()]]
        reached.update(children)
        waiting.extend(children)
    return reached


def _cycle(link: str, above: Mapping[str, Joint]) -> str:
    """The joints of the cycle that one runs into by climbing from a link."""
    climbed: dict[str, None] = {}  # ordered
    joint = above[link]
    while joint.name not in climbed:
        climbed[joint.name] = None
        joint = above[joint.parent]
    names = list(climbed)
    return listing(reversed(names[names.index(joint.name) :]))
