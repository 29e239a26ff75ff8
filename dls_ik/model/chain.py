"""From the paths in a tree to the arrays that the kernels read."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array, Chain
from dls_ik.exceptions import ChainError
from dls_ik.model.path import Element, build_path
from dls_ik.model.tree import Tree

MAX_JOINTS = 500  # variables; the work of a step grows with their square


class NamedChain(NamedTuple):
    """A chain, and what its variables are called."""

    joint_names: tuple[str, ...]  # (n,)
    chain: Chain
    continuous: NDArray[np.bool_]  # (n,) a full turn changes nothing, and nothing limits it


def build_chain(tree: Tree, base: str, tips: Sequence[str], offsets: Array) -> NamedChain:
    """The chain from a link down to each of k others, its arrays read-only.

    Variables are in the order in which the paths first meet them. Mimic joints share the variable
    of the joint that they follow, which takes that joint's name and limits even when it lies off
    the chain; their own limits narrow it, on whichever path they are.

    Args:
        offsets: (k, 4, 4) from the links to the tips.

    Raises:
        ChainError: links that do not span a chain, a path without moving joints, or with a
            floating or planar one; more than MAX_JOINTS variables.
        RobotModelError: a mimic joint's limits leave its master no room, or lengths overflow.
    """
    ends = zip(tips, offsets, strict=True)
    paths = [build_path(tree, base, tip).followed_by(offset) for tip, offset in ends]
    elements = [element for path in paths for element in path.elements]  # (m,)
    driven: dict[str, list[Element]] = {}  # by variable
    for element in elements:
        driven.setdefault(element.drive.master, []).append(element)
    names = tuple(driven)
    if len(names) > MAX_JOINTS:
        raise ChainError(f"a chain has {MAX_JOINTS} joints at most, this one {len(names)}")
    number = {name: i for i, name in enumerate(names)}
    limits = np.array([_limits(tree, name, driven[name]) for name in names])  # (n, 3)
    chain = Chain(
        fixed=np.concatenate([path.fixed for path in paths]),
        first=np.cumsum([0, *(len(path.elements) for path in paths)], dtype=np.int64),
        prismatic=np.array([element.joint.kind == "prismatic" for element in elements]),
        variable=np.array([number[element.drive.master] for element in elements], np.int64),
        scale=np.array([element.drive.multiplier for element in elements]),
        offset=np.array([element.drive.offset for element in elements]),
        lower=limits[:, 0].copy(),
        upper=limits[:, 1].copy(),
        velocity=limits[:, 2].copy(),
    )
    continuous = np.array([_is_continuous(chain, i) for i in range(len(names))])
    for array in (*chain, continuous):
        array.flags.writeable = False
    return NamedChain(names, chain, continuous)


def _limits(tree: Tree, name: str, driven: Sequence[Element]) -> tuple[float, float, float]:
    """Lower, upper and velocity limit of a variable, narrowed by the elements it drives."""
    master = tree.joint[name]
    lower, upper, velocity = master.lower, master.upper, master.velocity
    for joint, drive in driven:
        ends = sorted((end - drive.offset) / drive.multiplier for end in (joint.lower, joint.upper))
        lower, upper = max(lower, ends[0]), min(upper, ends[1])
        velocity = min(velocity, joint.velocity / abs(drive.multiplier))
        if upper < lower:
            raise joint.error(f"its limits leave {name!r}, which it follows, no room to move")
    return lower, upper, velocity


def _is_continuous(chain: Chain, variable: int) -> bool:
    driven = chain.variable == variable  # (m,)
    turns = not chain.prismatic[driven].any() and bool(np.all(chain.scale[driven] % 1.0 == 0.0))
    return turns and math.isinf(chain.lower[variable]) and math.isinf(chain.upper[variable])
