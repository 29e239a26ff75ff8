"""Base and tips of a chain: which they are, their offsets, and further ones."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dls_ik.core.types import Array, Chain
from dls_ik.errors import AmbiguousTipError, ChainError, RobotModelError
from dls_ik.model.chain import NamedChain
from dls_ik.model.joint import FARTHEST, ROUGHNESS, Joint
from dls_ik.model.rotations import nearest_rotation, not_a_rotation, roughness
from dls_ik.model.tree import Tree
from dls_ik.text import listing, quoted

TipNames = str | Sequence[str] | None  # a link, several that are solved together, or find it
Offsets = Sequence[Any] | None  # (4, 4) T_link_tip of each tip, None for none


def choose_ends(
    tree: Tree, base: str | None, tip: TipNames, is_offset: bool = False
) -> tuple[str, tuple[str, ...]]:
    """The base and the tips of a chain: as given, else the root, and the only tip that moves.

    Args:
        is_offset: tips have offsets, so that a link may have several.

    Raises:
        ChainError: an unknown link, a tip given twice, or several links could be the tip; the
            message lists them.
    """
    base = tree.require(base or tree.root, "base link")
    tips = _given(tip) or (_only_tip(tree, base),)
    for each in tips:
        tree.require(each, "tip link")
    twice = [each for i, each in enumerate(tips) if each in tips[:i]]
    if twice and not is_offset:
        raise ChainError(f"each tip is given once; more than once: {listing(twice)}")
    return base, tips


def checked_offsets(tips: Sequence[str], offsets: Offsets) -> Array:
    """(k, 4, 4) ``T_link_tip`` of k tips, read-only.

    Raises:
        ChainError: another number of offsets, or what is no rigid transform.
    """
    if offsets is None:
        offsets = (None,) * len(tips)
    if len(offsets) != len(tips):
        raise ChainError(f"{len(tips)} tips have one offset each, not {len(offsets)}")
    checked = np.array([_checked_offset(*each) for each in zip(tips, offsets, strict=True)])
    checked.flags.writeable = False
    return checked


def _checked_offset(tip: str, offset: Any) -> Array:
    """An offset of a link (4, 4), its rotation made exact.

    Raises:
        ChainError: no rigid transform.
    """
    if offset is None:
        return np.eye(4)
    try:
        T = np.array(offset, np.float64)
    except (TypeError, ValueError, OverflowError):
        T = np.empty(0)
    what = f"the offset of tip {tip!r} is a rigid transform (4, 4) within {FARTHEST:g} m"
    is_finite = T.shape == (4, 4) and bool((np.abs(T) <= FARTHEST).all())
    if not is_finite or (T[3] != (0.0, 0.0, 0.0, 1.0)).any():
        raise ChainError(f"{what}, not {quoted(offset)}")
    if not roughness(T[:3, :3]) <= ROUGHNESS:
        reason = not_a_rotation(T[:3, :3], ROUGHNESS)
        raise ChainError(f"{what}, not {quoted(offset)}: of its rotation R, {reason}")
    T[:3, :3] = nearest_rotation(T[:3, :3])
    return T


def _given(tip: TipNames) -> tuple[str, ...]:
    """The names given, none for an empty name or sequence."""
    if tip is None or isinstance(tip, str):
        return (tip,) if tip else ()
    if not (isinstance(tip, Sequence) and all(isinstance(each, str) for each in tip)):
        raise ChainError(f"a tip is the name of a link or a sequence of names, not {quoted(tip)}")
    return tuple(tip)


def moving_tips(tree: Tree, base: str) -> tuple[str, ...]:
    """The links without a child that some joint moves against a base: what a tip may be."""
    return tuple(leaf for leaf in tree.leaves if _moves(tree, base, leaf))


def _only_tip(tree: Tree, base: str) -> str:
    found = moving_tips(tree, base)
    moving = [tip for tip in found if not _broken_above(tree, base, tip)]
    if found and not moving:
        raise RobotModelError(next(iter(tree.broken.values())))
    if len(moving) == 1:
        return moving[0]
    if not moving:
        raise ChainError(f"no link moves against the base {base!r}; links: {listing(tree.links)}")
    words = f"several links could be the tip, name one: {listing(moving)}"
    raise AmbiguousTipError(words, moving)


def _broken_above(tree: Tree, base: str, tip: str) -> bool:
    """Whether a joint between them follows nothing that moves."""
    return bool(tree.broken) and any(j.name in tree.broken for j in tree.path(base, tip))


def _moves(tree: Tree, base: str, leaf: str) -> bool:
    """Whether a leaf hangs below the base with a joint between them that moves."""
    link, moves = leaf, False
    while link not in (base, tree.root):
        moves = moves or tree.parent_joint[link].kind != "fixed"
        link = tree.parent_joint[link].parent
    return moves and link == base


def moved_link(
    tree: Tree,
    base: str,
    joint_names: Sequence[str],
    link: str,
    others: Mapping[str, float] | None,
) -> tuple[str, Array]:
    """The last link on the way to one that the variables of a chain move, and the way from there.

    Returns:
        The link, and (4, 4) from there to the one asked for, with joints off the chain at their
        values.

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
    alien = [
        joint.name for joint, own in zip(path[:last], moved, strict=False) if _is_free(joint, own)
    ]
    if alien:
        raise ChainError(
            f"link {link!r} is moved by joints of the chain below others that are not: "
            f"{listing(alien)}"
        )
    values, T = tree.values(others), np.eye(4)
    for joint in path[last + 1 :]:
        T = T @ joint.origin @ joint.motion(values.get(joint.name, 0.0))
    return path[last].child, T


def extended(chain: NamedChain, path: NamedChain) -> NamedChain:
    """A chain of k tips and one more path, of joints that the chain has: k + 1 tips."""
    one, more = chain.chain, path.chain
    which = np.array([chain.joint_names.index(name) for name in path.joint_names], np.int64)
    lower, upper, velocity = one.lower.copy(), one.upper.copy(), one.velocity.copy()
    lower[which] = np.maximum(lower[which], more.lower)  # of mimic joints on the path
    upper[which] = np.minimum(upper[which], more.upper)
    velocity[which] = np.minimum(velocity[which], more.velocity)
    continuous = chain.continuous.copy()
    continuous[which] &= path.continuous
    joined = Chain(
        fixed=np.concatenate([one.fixed, more.fixed]),
        first=np.append(one.first, one.first[-1] + more.first[-1]),
        prismatic=np.concatenate([one.prismatic, more.prismatic]),
        variable=np.concatenate([one.variable, which[more.variable]]),
        scale=np.concatenate([one.scale, more.scale]),
        offset=np.concatenate([one.offset, more.offset]),
        lower=lower,
        upper=upper,
        velocity=velocity,
    )
    for array in (*joined, continuous):
        array.flags.writeable = False
    return NamedChain(chain.joint_names, joined, continuous)


def _is_moved(tree: Tree, joint: Joint, joint_names: Sequence[str]) -> bool:
    drive = tree.mimic_of.get(joint.name)
    return drive is not None and drive.multiplier != 0.0 and drive.master in joint_names


def _is_free(joint: Joint, is_own: bool) -> bool:
    """Whether something else moves it."""
    return joint.kind != "fixed" and not is_own
