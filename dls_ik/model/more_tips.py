"""A further tip of a chain: on any link that the chain moves."""

from collections.abc import Mapping, Sequence

import numpy as np

from dls_ik.core.types import Array, Chain
from dls_ik.exceptions import ChainError
from dls_ik.model.chain import NamedChain, build_chain
from dls_ik.model.joint import Joint
from dls_ik.model.names import listing
from dls_ik.model.tree import Tree


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


def path_of(tree: Tree, base: str, link: str, offset: Array) -> NamedChain:
    """The chain to a single tip, (4, 4) from a link."""
    return build_chain(tree, base, (link,), offset[None])


def _is_moved(tree: Tree, joint: Joint, joint_names: Sequence[str]) -> bool:
    drive = tree.drives.get(joint.name)
    return drive is not None and drive.multiplier != 0.0 and drive.master in joint_names


def _is_free(joint: Joint, is_own: bool) -> bool:
    """Whether something else moves it."""
    return joint.kind != "fixed" and not is_own
