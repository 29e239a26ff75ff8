# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Base link and tip links of a chain: validation, default tip of an arm, and tip offsets."""

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

# Patterns in the names of the links and joints of grippers.
GRIPPER_PART = re.compile(
    r"finger|thumb|jaw|knuckle|claw|hand.*(index|middle|ring|little|pinky)", re.IGNORECASE
)
# A moving joint belongs to a gripper if its name matches the first pattern and not the second one.
GRIPPER_JOINT = re.compile(r"gripper|grasper", re.IGNORECASE)
WRIST_JOINT = re.compile(r"wrist|roll|pitch|yaw|rotat", re.IGNORECASE)
# Patterns in the names of tool frames by convention, in the order of preference.
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
# Patterns in the names of sensors, wheels and similar links, which are never the tip of an arm.
ACCESSORY = re.compile(
    r"(?i:camera|optical|stereo|lidar|laser|sensor|gyro|acceleromet|sonar|wheel|caster|rotor)"
    r"|(?i:propeller|thruster|display|visual|collision|skin|motor)"
    r"|IMU|Imu|(?<![a-zA-Z])(imu|cam|rgbd?|gps|led)(?![a-z])"
)

MAX_NAMED = 5  # maximum number of tips listed in a message

TipNames = str | Sequence[str] | None  # one link, several links, or None for the default tip
Offsets = Sequence[Any] | None  # (4, 4) T_link_tip of each tip, or None for the identity


def choose_ends(
    tree: Tree, base: str | None, tip: TipNames, has_offsets: bool
) -> tuple[str, tuple[str, ...]]:
    """Return the names of the base link and of the tip links of a chain.

    Args:
        tree: Robot.
        base: Base link; None or "" stands for the root of the tree.
        tip: Tip link or links; None, "" or an empty sequence stands for the tip of the only arm.
        has_offsets: Whether the caller gives an offset for each tip. In this case `tip` may contain
            a link several times.

    Raises:
        ChainError: If a link is unknown, a tip is given twice without offsets, no link moves
            relative to the base, or several links could be the tip of the arm. In the last case
            the message lists these links.
        RobotModelError: If each possible tip has an unusable joint, such as a joint without limits.
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
    """Return tip names as a tuple; for None, "" or an empty sequence, return ().

    Raises:
        ChainError: If the value is neither a name nor a sequence of names.
    """
    if tip is None or isinstance(tip, str):
        return (tip,) if tip else ()
    if not (isinstance(tip, Sequence) and all(isinstance(each, str) for each in tip)):
        raise ChainError(f"tip must be a link name or a sequence of them; got {quoted(tip)}")
    return tuple(tip)


def moving_tips(tree: Tree, base: str) -> tuple[str, ...]:
    """Return the links without children that a joint below the base link moves."""
    return tuple(leaf for leaf in tree.leaves if _moves(tree, base, leaf))


def _moves(tree: Tree, base: str, leaf: str) -> bool:
    """Return whether a joint that is not fixed is on the path from the base down to a link.

    The result is False if the link is not below the base.

    Args:
        tree: Robot.
        base: Base link.
        leaf: Link.
    """
    link, moves = leaf, False
    while link not in (base, tree.root):
        moves = moves or tree.parent_joint[link].kind != "fixed"
        link = tree.parent_joint[link].parent
    return moves and link == base


class _Branch(NamedTuple):
    """Candidate tips of an arm that the same joints move, and these joints.

    A branch has a tool if a candidate tip is named like a tool frame or carries a gripper.
    """

    joints: tuple[str, ...]  # moving joints on the path from the base to the candidate tips
    links: tuple[str, ...]  # candidate tips
    has_tool: bool

    def continues(self, other: "_Branch") -> bool:
        """Return whether this branch has all joints of another branch, followed by more joints."""
        n = len(other.joints)
        return len(self.joints) > n and self.joints[:n] == other.joints

    def is_minor_to(self, other: "_Branch") -> bool:
        """Return whether another branch is preferred to this branch as the arm of the robot.

        The other branch is preferred if this branch has no tool, and either has fewer joints than
        the other branch or continues the other branch (see :meth:`continues`).
        """
        is_shorter = len(self.joints) < len(other.joints)
        return not self.has_tool and (is_shorter or self.continues(other))


def _only_tip(tree: Tree, base: str) -> str:
    """Return the only link below the base that can be the tip of an arm.

    Links of grippers and sensors are not candidates. Among several frames that are fixed to the
    last link of the arm, the frame that is named like a tool frame is the tip.

    Raises:
        ChainError: If no link moves relative to the base.
        AmbiguousTipError: If several links could be the tip, as on a robot with two arms.
        RobotModelError: If each possible tip has an unusable joint, such as a joint without limits.
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
    """Group tips by the joints that move them, after replacing links of grippers and accessories.

    A tip that is a link of a gripper is replaced by the link that carries the gripper. An
    accessory, such as a camera, is replaced by the child link of the last moving joint above the
    accessory; this child link is a candidate tip only if no other tip is fixed to it.

    Args:
        tree: Robot.
        base: Base link.
        tips: Links without children that move relative to the base.

    Returns:
        One branch for each group of tips.
    """
    carried: dict[str, str] = {}  # the link that replaces a tip, by the name of the tip
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
    """Return the names of all links between the base and a link, from the base to the parent."""
    return [joint.parent for joint in tree.path(base, link)]


def _branch(
    joints: tuple[str, ...], group: Sequence[str], tips: Sequence[str], mounts: Collection[str]
) -> _Branch:
    """Return the branch of a group of links that the same joints move.

    The candidate tips of the branch are the links of the group that are in `tips`. If no link of
    the group is in `tips`, the links in `mounts` are the candidates, or else the whole group.

    Args:
        joints: Moving joints on the path from the base to the links.
        group: Links.
        tips: Links without children.
        mounts: Links that carry a gripper.
    """
    leaves = [link for link in group if link in tips]
    carriers = [link for link in group if link in mounts]
    links = leaves or carriers or group
    has_tool = bool(carriers) or any(p.search(link) for p in TOOL_FRAMES for link in links)
    return _Branch(joints, tuple(links), has_tool)


def _arms(branches: Sequence[_Branch]) -> list[_Branch]:
    """Return the branches that could be the arm of the robot.

    If exactly one branch has a tool, and all other branches are minor to this branch (see
    :meth:`_Branch.is_minor_to`), only this branch is returned. Otherwise the result contains all
    branches that no other branch continues (see :meth:`_Branch.continues`).
    """
    with_tool = [branch for branch in branches if branch.has_tool]
    if len(with_tool) == 1:
        others = [branch for branch in branches if branch is not with_tool[0]]
        if all(branch.is_minor_to(with_tool[0]) for branch in others):
            return with_tool
    return [each for each in branches if not any(other.continues(each) for other in branches)]


def _gripper_mount(tree: Tree, base: str, tip: str) -> str | None:
    """Return the link that carries the gripper to which a tip belongs.

    The link is the parent of the first joint, on the path from the base to the tip, that belongs to
    a gripper by its name or by the name of its child link. The result is None if there is no such
    joint.
    """
    for joint in tree.path(base, tip):
        is_part = GRIPPER_PART.search(joint.name) or GRIPPER_PART.search(joint.child)
        is_moving = joint.kind != "fixed" and not WRIST_JOINT.search(joint.name)
        if is_part or (is_moving and GRIPPER_JOINT.search(joint.name)):
            return joint.parent
    return None


def _moving_joints(tree: Tree, base: str, link: str) -> list[Joint]:
    """Return the joints on the path from the base to a link, except the fixed joints."""
    return [joint for joint in tree.path(base, link) if joint.kind != "fixed"]


def _tool_frame(branch: _Branch) -> str | None:
    """Return the candidate tip of a branch that is named like a tool frame.

    A single candidate is returned whatever its name. The names of several candidates are compared
    with the patterns `TOOL_FRAMES` in turn. Return None if no name matches any pattern, or if
    several names match the first pattern that matches any name.
    """
    if len(branch.links) == 1:
        return branch.links[0]
    for pattern in TOOL_FRAMES:
        named = [tip for tip in branch.links if pattern.search(tip)]
        if named:
            return named[0] if len(named) == 1 else None
    return None


def _candidates(arms: Sequence[_Branch]) -> list[str]:
    """Return up to `MAX_NAMED` links that an error message proposes as tips.

    If there is one branch, these are its candidate tips; otherwise one link of each branch.
    """
    if len(arms) == 1:
        return list(arms[0].links[:MAX_NAMED])
    ranked = sorted(arms, key=lambda branch: (not branch.has_tool, -len(branch.joints)))
    return [_tool_frame(branch) or branch.links[0] for branch in ranked[:MAX_NAMED]]


def checked_offsets(tips: Sequence[str], offsets: Offsets) -> Array:
    """Validate the offsets of k tips, and correct small errors of their rotation matrices.

    Args:
        tips: (k,) tip links.
        offsets: (k,) ``T_link_tip`` (4, 4) of each tip, or None for the identity.

    Returns:
        (k, 4, 4) ``T_link_tip``, read-only.

    Raises:
        ChainError: If the number of offsets is not k, or an offset is not a rigid transform.
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
    """Find the last joint of a chain above a given link, and return the child link of this joint.

    Joints outside the chain can move the given link only relative to the returned link. They have
    the positions `others`.

    Args:
        tree: Robot.
        base: Base link of the chain.
        joint_names: Names of the variables of the chain.
        link: Given link below the base.
        others: Positions of joints outside the chain by name [rad or m].

    Returns:
        Name of the child link, and the pose (4, 4) [m] of the given link in the child link's frame.

    Raises:
        ChainError: If the given link is unknown, not below the base, or not moved by the chain, or
            if a joint outside the chain is between the base and the returned link.
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
