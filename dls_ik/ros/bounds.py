# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Workspace bounds as parameters: ``bounds`` lists the names, ``bound.NAME.*`` are the values.

A bound is a box, a sphere or a half-space in a frame that is fixed relative to the root link. It
contains the origins of the listed links; if no links are listed, the origin of the tip.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import FrameError, OptionError
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.model.tree import Tree
from dls_ik.ros.declare import ItemParameters, start_parameter
from dls_ik.servo.workspace import Bound, BoxBound, HalfSpace, SphereBound
from dls_ik.text import listing, quoted

BOUND_SHAPES = ("box", "sphere", "half_space")


@dataclass(frozen=True)
class BoundParameters(ItemParameters):
    """Parameters ``bound.NAME.*`` of one workspace bound."""

    PREFIX: ClassVar = "bound"

    box: tuple[float, ...] = start_parameter(
        (), "box with its centre at the pose: edge lengths along x, y, z", "m"
    )
    sphere: float = start_parameter(
        0.0, "radius of a sphere with its centre at the pose; 0: no sphere", "m", (0.0, 1e3)
    )
    half_space: tuple[float, ...] = start_parameter(
        (),
        "points with normal . x >= offset in the frame of the pose: normal x, y, z, to the allowed "
        "side, and offset [m]; 0, 0, 1, 0.1: at least 0.1 m above the frame",
    )
    frame: str = start_parameter(
        "",
        "frame of the pose: a link that is fixed relative to the root, or a TF frame; empty: the "
        "root",
    )
    position: tuple[float, ...] = start_parameter((), "x, y, z of the pose; empty: zeros", "m")
    orientation: tuple[float, ...] = start_parameter(
        (), "roll, pitch, yaw of the pose; empty: zeros", "rad"
    )
    links: tuple[str, ...] = start_parameter(
        (), "links whose origins must stay inside; empty: the tip"
    )

    def check(self) -> None:
        """Check that the bound has one shape, and that all values of the bound are usable.

        Raises:
            OptionError: If there is not exactly one shape, if a list has the wrong length, if an
                edge length of the box is not positive, or if the normal has length 0.
        """
        given = [name for name in BOUND_SHAPES if getattr(self, name)]
        if len(given) != 1:
            raise OptionError(
                f"bound {self.name!r} must have exactly one shape, "
                f"{listing(f'{self.PREFIX}.{self.name}.{name}' for name in BOUND_SHAPES)}; got "
                f"{listing(given) if given else 'none'}"
            )
        for name, count in (("box", 3), ("half_space", 4), ("position", 3), ("orientation", 3)):
            value = getattr(self, name)
            if value and len(value) != count:
                raise OptionError(
                    f"{self.PREFIX}.{self.name}.{name} must be {count} numbers; got {len(value)}"
                )
        if self.box and min(self.box) <= 0.0:
            name = f"{self.PREFIX}.{self.name}.box"
            raise OptionError(f"{name} must be lengths above 0 m; got {self.box}")
        if self.half_space and not any(self.half_space[:3]):
            raise OptionError(
                f"the normal of {self.PREFIX}.{self.name}.half_space must not have length 0"
            )


def build_workspace(
    details: Iterable[BoundParameters], tree: Tree, lookup: Callable[[str], Array]
) -> tuple[Bound, ...]:
    """Return workspace bounds in the frame of the root link, built from parameters.

    Args:
        details: Parameters of the bounds.
        tree: Robot.
        lookup: Function that returns ``T_root_frame`` (4, 4) of a TF frame, or raises a FrameError.

    Raises:
        OptionError: If a frame is unknown, or is a link that moves relative to the root.
    """
    return tuple(_build(each, _pose(each, tree, lookup)) for each in details)


def _build(given: BoundParameters, T: Array) -> Bound:
    name, links = given.name, given.links
    if given.box:
        return BoxBound(np.array(given.box), T, links=links, name=name)
    if given.sphere:
        return SphereBound(given.sphere, T, links=links, name=name)
    length = float(np.linalg.norm(given.half_space[:3]))
    normal = T[:3, :3] @ np.array(given.half_space[:3]) / length
    offset = given.half_space[3] / length + float(normal @ T[:3, 3])
    return HalfSpace(normal, offset, links=links, name=name)


def _pose(given: BoundParameters, tree: Tree, lookup: Callable[[str], Array]) -> Array:
    frame = given.frame.removeprefix("/") or tree.root
    if frame not in tree.child_joints:
        try:
            T_root_frame = lookup(frame)
        except FrameError as error:
            raise OptionError(f"{given.PREFIX}.{given.name}.frame: {error}") from error
    elif (fixed := tree.fixed_offset(tree.root, frame)) is None:
        links = (each for each in tree.links if tree.fixed_offset(tree.root, each) is not None)
        raise OptionError(
            f"{given.PREFIX}.{given.name}.frame must be fixed relative to the root; "
            f"{quoted(frame)} moves; fixed links: {listing(links)}"
        )
    else:
        T_root_frame = fixed
    R = rotation_from_rpy(*(given.orientation or (0.0, 0.0, 0.0)))
    return T_root_frame @ transform(R, np.array(given.position or (0.0, 0.0, 0.0)))
