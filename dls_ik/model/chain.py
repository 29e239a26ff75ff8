"""From a path in a tree to the arrays that the kernels read."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array, Chain
from dls_ik.exceptions import ChainError, RobotModelError
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.names import listing
from dls_ik.model.rigid import rotation_from_z, transform
from dls_ik.model.tree import Tree


class Element(NamedTuple):
    """One moving element of a chain."""

    joint: Joint
    drive: Mimic  # who drives it


class NamedChain(NamedTuple):
    """A chain, and what its variables are called."""

    joint_names: tuple[str, ...]  # (n,)
    chain: Chain
    continuous: NDArray[np.bool_]  # (n,) a full turn changes nothing, and nothing limits it


def build_chain(tree: Tree, base: str, tip: str) -> NamedChain:
    """The chain from a link down to another one, its arrays read-only.

    Mimic joints share the variable of the joint that they follow, which takes that joint's name and
    limits even when it lies off the chain; their own limits narrow it.

    Raises:
        ChainError: the links do not span a chain, it has no moving joints, or a floating or planar
            one.
        RobotModelError: a mimic joint's limits leave its master no room, or lengths overflow.
    """
    elements, fixed = _elements(tree, base, tip)
    names = tuple(dict.fromkeys(element.drive.master for element in elements))
    if not names:
        raise ChainError(
            f"no moving joint lies between {base!r} and {tip!r}; links: {listing(tree.links)}"
        )
    limits = np.array([_limits(tree, name, elements) for name in names])  # (n, 3)
    chain = Chain(
        fixed=fixed,
        prismatic=np.array([element.joint.kind == "prismatic" for element in elements]),
        variable=np.array([names.index(element.drive.master) for element in elements], np.int64),
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


@np.errstate(over="ignore", invalid="ignore")  # refused at the end
def _elements(tree: Tree, base: str, tip: str) -> tuple[list[Element], Array]:
    """The m elements, and the (m + 1, 3, 4) fixed transforms between their frames."""
    elements: list[Element] = []
    fixed: list[Array] = []
    T = np.eye(4)  # from the previous element's frame
    for joint in tree.path(base, tip):
        T = T @ joint.origin
        if joint.kind == "fixed":
            continue
        if not joint.is_driven:
            raise ChainError(
                f"joint {joint.name!r} between {base!r} and {tip!r} is {joint.kind}; a chain takes "
                "revolute, continuous, prismatic and fixed joints"
            )
        drive = tree.drives[joint.name]
        if drive.multiplier == 0.0:  # follows its master by not moving at all
            T = T @ joint.motion(drive.offset)
            continue
        element_from_z = transform(rotation_from_z(joint.axis))
        fixed.append((T @ element_from_z)[:3])
        elements.append(Element(joint, drive))
        T = element_from_z.T
    return elements, _finite([*fixed, T[:3]], base, tip)


def _finite(fixed: list[Array], base: str, tip: str) -> Array:
    stacked = np.array(fixed)  # (m + 1, 3, 4)
    if not np.isfinite(stacked).all():
        raise RobotModelError(f"the lengths between {base!r} and {tip!r} overflow")
    return stacked


def _limits(tree: Tree, name: str, elements: Sequence[Element]) -> tuple[float, float, float]:
    """Lower, upper and velocity limit of a variable, narrowed by the elements it drives."""
    master = tree.joint[name]
    lower, upper, velocity = master.lower, master.upper, master.velocity
    for joint, drive in elements:
        if drive.master != name:
            continue
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
