"""One path of a chain: what moves between two links of a tree, and what is fixed in between."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import ChainError, RobotModelError
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.names import listing
from dls_ik.model.rigid import rotation_from_z, transform
from dls_ik.model.tree import Tree


class Element(NamedTuple):
    """One moving element of a chain."""

    joint: Joint
    drive: Mimic  # who drives it


class Path(NamedTuple):
    """The m elements from a link down to another one."""

    elements: tuple[Element, ...]  # (m,)
    fixed: Array  # (m + 1, 3, 4) transforms between their frames, each with its motion along z

    def followed_by(self, offset: Array) -> "Path":
        """The path that goes on by a transform (4, 4)."""
        fixed = self.fixed.copy()
        fixed[-1] = self.fixed[-1] @ offset
        return self._replace(fixed=fixed)


@np.errstate(over="ignore", invalid="ignore")  # refused at the end
def build_path(tree: Tree, base: str, tip: str) -> Path:
    """The path between two links.

    Raises:
        ChainError: the links do not span a chain, it has no moving joints, or a floating or planar
            one.
        RobotModelError: one of the joints has no limits, or follows another that does not move.
    """
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
        if joint.name in tree.broken:
            raise RobotModelError(tree.broken[joint.name])
        drive = tree.drives[joint.name]
        if drive.multiplier == 0.0:  # follows its master by not moving at all
            T = T @ joint.motion(drive.offset)
            continue
        element_from_z = transform(rotation_from_z(joint.axis))
        fixed.append((T @ element_from_z)[:3])
        elements.append(Element(joint, drive))
        T = element_from_z.T
    if not elements:
        raise ChainError(
            f"no moving joint lies between {base!r} and {tip!r}; links: {listing(tree.links)}"
        )
    return Path(tuple(elements), np.array([*fixed, T[:3]]))
