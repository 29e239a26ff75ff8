"""Base and tips of a chain: their choice, their offsets, and links that the chain moves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import AmbiguousTipError, ChainError, RobotModelError
from dls_ik.model.joint import Joint
from dls_ik.model.rotations import rigid_transform
from dls_ik.model.tree import Tree, product
from dls_ik.text import listing, quoted

TipNames = str | Sequence[str] | None  # a link, several that are solved together, or find it
Offsets = Sequence[Any] | None  # (4, 4) T_link_tip of each tip, None for the identity


def choose_ends(
    tree: Tree, base: str | None, tip: TipNames, has_offsets: bool = False
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
    tips = moving_tips(tree, base)
    usable = [tip for tip in tips if not _crosses_unusable(tree, base, tip)]
    if tips and not usable:
        raise RobotModelError(next(iter(tree.unusable.values())))
    if len(usable) == 1:
        return usable[0]
    if not usable:
        raise ChainError(f"no link moves against the base {base!r}; links: {listing(tree.links)}")
    message = f"several links could be the tip, name one: {listing(usable)}"
    raise AmbiguousTipError(message, usable)


def _crosses_unusable(tree: Tree, base: str, tip: str) -> bool:
    return bool(tree.unusable) and any(j.name in tree.unusable for j in tree.path(base, tip))


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
                checked[i] = rigid_transform(offset, f"the offset of tip {tip!r}")
            except ValueError as error:
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
    moved = [_is_moved(tree, joint, joint_names) for joint in path]
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


def _is_moved(tree: Tree, joint: Joint, joint_names: Sequence[str]) -> bool:
    mimic = tree.mimic_of.get(joint.name)
    return mimic is not None and mimic.multiplier != 0.0 and mimic.master in joint_names
