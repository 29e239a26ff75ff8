# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Base and tips of chains: validation of given links, search for the tip of an arm, tip offsets."""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import AmbiguousTipError, ChainError, PoseError, RobotModelError
from dls_ik.model.joint import Joint
from dls_ik.model.pose import pose_matrix
from dls_ik.model.rotations import rigid_transform
from dls_ik.model.tree import Tree, product
from dls_ik.text import listing, quoted

# Names of the links and joints of grippers.
GRIPPER_PART = re.compile(
    r"finger|thumb|jaw|knuckle|claw|hand.*(index|middle|ring|little|pinky)", re.IGNORECASE
)
# Names of gripper joints, except names of wrist joints, which carry the gripper.
GRIPPER_JOINT = re.compile(r"gripper|grasper", re.IGNORECASE)
WRIST_JOINT = re.compile(r"wrist|roll|pitch|yaw|rotat", re.IGNORECASE)
# Names of tool frames by convention, in the order of preference.
TOOL_FRAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"tool0$",
        r"tcp",
        r"grasp",
        r"tool",
        r"(^|_)ee(_|$)|end_?effector",
        r"flange",
        r"gripper",
    )
)
# Names of sensors, wheels and similar links, which are never the tip of an arm.
ACCESSORY = re.compile(
    r"(?i:camera|optical|stereo|lidar|laser|sensor|gyro|acceleromet|sonar|wheel|caster|rotor)"
    r"|(?i:propeller|thruster|display|visual|collision|skin|motor)"
    r"|IMU|Imu|(?<![a-zA-Z])(imu|cam|rgbd?|gps|led)(?![a-z])"
)

MAX_NAMED = 5  # maximum number of tips listed in a message

TipNames = str | Sequence[str] | None  # one link, several links, or None to find the tip
Offsets = Sequence[Any] | None  # (4, 4) T_link_tip of each tip, or None for the identity


def choose_ends(
    tree: Tree, base: str | None, tip: TipNames, has_offsets: bool
) -> tuple[str, tuple[str, ...]]:
    """Return the base link and the tip links of a chain.

    Args:
        tree: Robot.
        base: Base link; None or "" stands for the root.
        tip: Tip link or links; None, "" or an empty sequence stands for the only tip of the robot.
        has_offsets: Whether the tips have offsets, so that a link may be given several times.

    Raises:
        ChainError: If a link is unknown, a tip is given twice without offsets, no link moves
            relative to the base, or several links could be the tip; the message lists these links.
        RobotModelError: If there is no tip whose joints are all usable.
    """
    base = tree.require(base or tree.root, "base link")
    tips = _given(tip) or (_only_tip(tree, base),)
    for each in tips:
        tree.require(each, "tip link")
    twice = [each for i, each in enumerate(tips) if each in tips[:i]]
    if twice and not has_offsets:
        raise ChainError(f"each tip must be given once; given more than once: {listing(twice)}")
    return base, tips


def _given(tip: TipNames) -> tuple[str, ...]:
    """Return the given tip names as a tuple; () for None, an empty name or an empty sequence.

    Raises:
        ChainError: If the value is neither a name nor a sequence of names.
    """
    if tip is None or isinstance(tip, str):
        return (tip,) if tip else ()
    if not (isinstance(tip, Sequence) and all(isinstance(each, str) for each in tip)):
        raise ChainError(f"tip must be a link name or a sequence of them; got {quoted(tip)}")
    return tuple(tip)


def moving_tips(tree: Tree, base: str) -> tuple[str, ...]:
    """Return the links without children that a joint moves relative to the base."""
    return tuple(leaf for leaf in tree.leaves if _moves(tree, base, leaf))


def _moves(tree: Tree, base: str, leaf: str) -> bool:
    """Return whether a link is below the base, with a moving joint between base and link."""
    link, moves = leaf, False
    while link not in (base, tree.root):
        moves = moves or tree.parent_joint[link].kind != "fixed"
        link = tree.parent_joint[link].parent
    return moves and link == base


class _Branch(NamedTuple):
    """Candidate tips that do not move relative to each other, and the joints that move the tips."""

    joints: tuple[str, ...]  # moving joints on the path from the base to the links
    links: tuple[str, ...]  # candidate tips
    has_tool: bool  # whether a link has the name of a tool frame, or carries a gripper

    def continues(self, other: "_Branch") -> bool:
        """Return whether the joints of this branch are those of another branch and further ones."""
        n = len(other.joints)
        return len(self.joints) > n and self.joints[:n] == other.joints

    def is_minor_to(self, other: "_Branch") -> bool:
        """Return whether another branch is preferred as the arm.

        This branch then has no tool, and has fewer joints than the other branch or continues it.
        """
        is_shorter = len(self.joints) < len(other.joints)
        return not self.has_tool and (is_shorter or self.continues(other))


def _only_tip(tree: Tree, base: str) -> str:
    """Return the only link that can be the tip of the arm.

    Grippers, sensors and further frames on the last link are excluded.

    Raises:
        ChainError: If no link moves relative to the base.
        AmbiguousTipError: If several links could be the tip, as on a robot with two arms.
        RobotModelError: If there is no tip whose joints are all usable.
    """
    tips = moving_tips(tree, base)
    usable = [tip for tip in tips if not any(j.name in tree.unusable for j in tree.path(base, tip))]
    if tips and not usable:
        raise RobotModelError(next(iter(tree.unusable.values())))
    if not usable:
        raise ChainError(
            f"no link moves relative to the base {base!r}; links: {listing(tree.links)}"
        )
    branches = _branches(tree, base, usable)
    arms = _arms(branches)
    found = _tool_frame(arms[0]) if len(arms) == 1 else None
    if found is not None:
        return found
    candidates = _candidates(arms)
    named = " or ".join(f"tip={tip!r}" for tip in candidates)
    raise AmbiguousTipError(f"several links could be the tip; choose one: {named}", candidates)


def _branches(tree: Tree, base: str, tips: Sequence[str]) -> list[_Branch]:
    """Return the branches of a robot without grippers and accessories.

    A tip in a gripper is replaced by the link that carries the gripper. An accessory, such as a
    camera, is replaced by the child link of the last moving joint above the accessory. This link is
    used only if no other candidate tip is fixed to the link.
    """
    carried: dict[str, str] = {}  # replacement of a tip, by tip name
    for tip in tips:
        mount = _gripper_mount(tree, base, tip)
        if mount is not None and _moves(tree, base, mount):
            carried[tip] = mount
        elif mount is None and len(tips) > 1 and ACCESSORY.search(tip):
            carried[tip] = _moving_joints(tree, base, tip)[-1].child
    mounts = {carried[tip] for tip in carried if _gripper_mount(tree, base, tip) is not None}
    links = dict.fromkeys(carried.get(tip, tip) for tip in tips)
    wanted = [link for link in links if not ACCESSORY.search(link)] or list(tips)
    groups: dict[tuple[str, ...], list[str]] = {}
    for link in wanted:
        joints = tuple(joint.name for joint in _moving_joints(tree, base, link))
        groups.setdefault(joints, []).append(link)
    outer = [link for link in mounts if mounts.isdisjoint(_ancestors(tree, base, link))]
    return [_branch(joints, group, tips, outer) for joints, group in groups.items()]


def _ancestors(tree: Tree, base: str, link: str) -> list[str]:
    """Return the parent links of all joints between the base and a link."""
    return [joint.parent for joint in tree.path(base, link)]


def _branch(
    joints: tuple[str, ...], group: Sequence[str], tips: Sequence[str], mounts: Collection[str]
) -> _Branch:
    """Return the branch of a group of links that the same joints move.

    Args:
        joints: Moving joints on the path from the base to the links.
        group: Links.
        tips: Links without children; they are preferred as candidate tips.
        mounts: Links that carry a gripper; they are candidate tips if no link is in `tips`.
    """
    leaves = [link for link in group if link in tips]
    carriers = [link for link in group if link in mounts]
    links = leaves or carriers or group
    has_tool = bool(carriers) or any(p.search(link) for p in TOOL_FRAMES for link in links)
    return _Branch(joints, tuple(links), has_tool)


def _arms(branches: Sequence[_Branch]) -> list[_Branch]:
    """Return the branches that could be the arm.

    If exactly one branch has a tool and is preferred to all other branches, it is the arm.
    Otherwise all branches that no other branch continues could be the arm.
    """
    with_tool = [branch for branch in branches if branch.has_tool]
    if len(with_tool) == 1:
        others = [branch for branch in branches if branch is not with_tool[0]]
        if all(branch.is_minor_to(with_tool[0]) for branch in others):
            return with_tool
    return [each for each in branches if not any(other.continues(each) for other in branches)]


def _gripper_mount(tree: Tree, base: str, tip: str) -> str | None:
    """Return the link that carries the gripper of a tip, or None if no gripper has the tip."""
    for joint in tree.path(base, tip):
        is_part = GRIPPER_PART.search(joint.name) or GRIPPER_PART.search(joint.child)
        is_moving = joint.kind != "fixed" and not WRIST_JOINT.search(joint.name)
        if is_part or (is_moving and GRIPPER_JOINT.search(joint.name)):
            return joint.parent
    return None


def _moving_joints(tree: Tree, base: str, link: str) -> list[Joint]:
    """Return the joints on the path from the base to a link, without fixed joints."""
    return [joint for joint in tree.path(base, link) if joint.kind != "fixed"]


def _tool_frame(branch: _Branch) -> str | None:
    """Return the link of a branch that is the tool frame by its name.

    The result is None if several names match the first matching pattern, or no name matches.
    """
    if len(branch.links) == 1:
        return branch.links[0]
    for pattern in TOOL_FRAMES:
        named = [tip for tip in branch.links if pattern.search(tip)]
        if named:
            return named[0] if len(named) == 1 else None
    return None


def _candidates(arms: Sequence[_Branch]) -> list[str]:
    """Return up to `MAX_NAMED` links to propose as tips.

    The links are those of a single branch, or one link of each of several branches.
    """
    if len(arms) == 1:
        return list(arms[0].links[:MAX_NAMED])
    ranked = sorted(arms, key=lambda branch: (not branch.has_tool, -len(branch.joints)))
    return [_tool_frame(branch) or branch.links[0] for branch in ranked[:MAX_NAMED]]


def checked_offsets(tips: Sequence[str], offsets: Offsets) -> Array:
    """Validate the offsets of k tips, and make their rotations exact.

    Args:
        tips: (k,) tip links.
        offsets: (k,) ``T_link_tip`` (4, 4) of each tip, or None for the identity.

    Returns:
        (k, 4, 4) ``T_link_tip``, read-only.

    Raises:
        ChainError: If the number of offsets is not k, or an offset is not rigid.
    """
    if offsets is None:
        offsets = (None,) * len(tips)
    if len(offsets) != len(tips):
        raise ChainError(f"{len(tips)} tips need one offset each; got {len(offsets)}")
    checked = np.tile(np.eye(4), (len(tips), 1, 1))
    for i, (tip, offset) in enumerate(zip(tips, offsets, strict=True)):
        if offset is not None:
            try:
                checked[i] = rigid_transform(pose_matrix(offset), f"the offset of tip {tip!r}")
            except (PoseError, ValueError) as error:
                raise ChainError(str(error)) from None
    checked.flags.writeable = False
    return checked


def moved_link(
    tree: Tree,
    base: str,
    joint_names: Sequence[str],
    link: str,
    others: Mapping[str, float] | None,
) -> tuple[str, Array]:
    """Find the child link of the last joint, on the path to a given link, that a chain moves.

    Args:
        tree: Robot.
        base: Base of the chain.
        joint_names: Variables of the chain.
        link: Given link below the base.
        others: Positions of joints outside the chain by name [rad or m].

    Returns:
        Name of the link found, and the transform (4, 4) from the link found to the given link, in
        which joints outside the chain have the positions `others`.

    Raises:
        ChainError: If the link is unknown, not below the base, not moved by the chain, or moved by
            a joint outside the chain that is above a joint of the chain.
        JointValueError: If a joint in `others` is unknown, or a value is not finite.
    """
    path = tree.path(base, link)
    drives = [tree.mimic_of.get(joint.name) for joint in path]
    moved = [d is not None and d.multiplier != 0.0 and d.master in joint_names for d in drives]
    if not any(moved):
        raise ChainError(
            f"no joint of the chain moves link {link!r}, which is below {base!r}; joints of the "
            f"chain: {listing(joint_names)}"
        )
    last = len(moved) - 1 - moved[::-1].index(True)
    foreign = [path[i].name for i in range(last) if path[i].kind != "fixed" and not moved[i]]
    if foreign:
        raise ChainError(
            f"link {link!r} is also moved by joints outside the chain: {listing(foreign)}"
        )
    return path[last].child, product(path[last + 1 :], tree.values(others))
