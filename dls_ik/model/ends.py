"""Ends of chains: base and tips, given or found; offsets on tips; links that joints move."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import AmbiguousTipError, ChainError, PoseError, RobotModelError
from dls_ik.model.pose import pose_matrix
from dls_ik.model.rotations import rigid_transform
from dls_ik.model.tree import Tree, product
from dls_ik.text import listing, quoted

# Parts of a gripper move beyond the tip of an arm: their links and joints have such names.
GRIPPER = re.compile(r"finger|jaw|knuckle|claw", re.IGNORECASE)
# Frames for tools on one link, by convention; earlier ones first.
TOOL_FRAMES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (r"tool0$", r"tcp", r"grasp", r"tool", r"(^|_)ee(_|$)|end_?effector", r"gripper")
)

MAX_NAMED = 12  # tips in a message

TipNames = str | Sequence[str] | None  # a link, several that are solved together, or find it
Offsets = Sequence[Any] | None  # (4, 4) T_link_tip of each tip, None for the identity


def choose_ends(
    tree: Tree, base: str | None, tip: TipNames, has_offsets: bool
) -> tuple[str, tuple[str, ...]]:
    """Choose the base and the tips of a chain: as given, else the root and the only moving tip.

    Args:
        has_offsets: Tips have offsets, so that a link may have several.

    Raises:
        ChainError: an unknown link, a tip given twice, or several links could be the tip; the
            message lists them.
    """
    base = tree.require(base or tree.root, "base link")
    tips = _given(tip) or (_only_tip(tree, base),)
    for each in tips:
        tree.require(each, "tip link")
    twice = [each for i, each in enumerate(tips) if each in tips[:i]]
    if twice and not has_offsets:
        raise ChainError(f"each tip is given once; more than once: {listing(twice)}")
    return base, tips


def _given(tip: TipNames) -> tuple[str, ...]:
    """Return the names given, none for an empty name or sequence."""
    if tip is None or isinstance(tip, str):
        return (tip,) if tip else ()
    if not (isinstance(tip, Sequence) and all(isinstance(each, str) for each in tip)):
        raise ChainError(f"a tip is the name of a link or a sequence of names, not {quoted(tip)}")
    return tuple(tip)


def moving_tips(tree: Tree, base: str) -> tuple[str, ...]:
    """List the links without a child that some joint moves against a base."""
    return tuple(leaf for leaf in tree.leaves if _moves(tree, base, leaf))


def _moves(tree: Tree, base: str, leaf: str) -> bool:
    """Check that a leaf is below the base with a joint between them that moves."""
    link, moves = leaf, False
    while link not in (base, tree.root):
        moves = moves or tree.parent_joint[link].kind != "fixed"
        link = tree.parent_joint[link].parent
    return moves and link == base


def _only_tip(tree: Tree, base: str) -> str:
    """Return the only tip, or the one that an arm with a gripper or several tool frames has."""
    tips = moving_tips(tree, base)
    usable = [tip for tip in tips if not any(j.name in tree.unusable for j in tree.path(base, tip))]
    if tips and not usable:
        raise RobotModelError(next(iter(tree.unusable.values())))
    if not usable:
        raise ChainError(f"no link moves against the base {base!r}; links: {listing(tree.links)}")
    candidates = _without_grippers(tree, base, usable)
    found = candidates[0] if len(candidates) == 1 else _tool_frame(tree, candidates)
    if found is not None:
        return found
    named = " or ".join(f"tip={tip!r}" for tip in candidates[:MAX_NAMED])
    more = f" and {len(candidates) - MAX_NAMED} more" if len(candidates) > MAX_NAMED else ""
    message = f"several links could be the tip, name one: {named}{more}"
    raise AmbiguousTipError(message, candidates)


def _without_grippers(tree: Tree, base: str, tips: Sequence[str]) -> list[str]:
    """Return the tips that are no part of a gripper, or where all are the links they move on.

    All remain where those links do not move: the robot is a gripper or a hand.
    """
    mounts = {tip: _gripper_mount(tree, base, tip) for tip in tips}
    others = [tip for tip in tips if mounts[tip] is None]
    if others:
        return others
    links = [*dict.fromkeys(mount for mount in mounts.values() if mount is not None)]
    return links if all(_moves(tree, base, link) for link in links) else list(tips)


def _gripper_mount(tree: Tree, base: str, tip: str) -> str | None:
    """Return the link that carries the gripper which a tip is a part of; None if it is of none."""
    for joint in tree.path(base, tip):
        names = joint.name, joint.child
        if joint.kind != "fixed" and any(GRIPPER.search(name) for name in names):
            return joint.parent
    return None


def _tool_frame(tree: Tree, tips: Sequence[str]) -> str | None:
    """Return the frame for tools by its name, among tips that are fixed to one link."""
    if any(tree.fixed_offset(tips[0], tip) is None for tip in tips[1:]):
        return None
    for pattern in TOOL_FRAMES:
        named = [tip for tip in tips if pattern.search(tip)]
        if named:
            return named[0] if len(named) == 1 else None
    return None


def checked_offsets(tips: Sequence[str], offsets: Offsets) -> Array:
    """Check the offsets of k tips and make their rotations exact.

    Returns:
        (k, 4, 4) ``T_link_tip``, read-only.

    Raises:
        ChainError: another number of offsets, or one that is not rigid.
    """
    if offsets is None:
        offsets = (None,) * len(tips)
    if len(offsets) != len(tips):
        raise ChainError(f"{len(tips)} tips have one offset each, not {len(offsets)}")
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
    """Find the last link above a given one that the variables of a chain move.

    Returns:
        The name of that link, and (4, 4) from there to the given one, with joints off the chain at
        their values.

    Raises:
        ChainError: an unknown link, or one that is not below the base, or that the chain does not
            move, or not alone.
        JointValueError: an unknown joint in `others`, or a value that is not finite.
    """
    path = tree.path(base, link)
    drives = [tree.mimic_of.get(joint.name) for joint in path]
    moved = [d is not None and d.multiplier != 0.0 and d.master in joint_names for d in drives]
    if not any(moved):
        raise ChainError(
            f"link {link!r} is below {base!r}, but no joint of the chain moves it: "
            f"{listing(joint_names)}"
        )
    last = len(moved) - 1 - moved[::-1].index(True)
    foreign = [path[i].name for i in range(last) if path[i].kind != "fixed" and not moved[i]]
    if foreign:
        raise ChainError(
            f"link {link!r} is moved by joints of the chain below others that are not: "
            f"{listing(foreign)}"
        )
    return path[last].child, product(path[last + 1 :], tree.values(others))
