# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Poses of scene changes in frames that only TF knows, transformed to the root frame."""

from collections.abc import Iterable, Mapping
from typing import Protocol

from dls_ik.core.types import Array
from dls_ik.errors import FrameError, SceneError
from dls_ik.model.tree import Tree
from dls_ik.scene.changes import about_object, frame_pose
from dls_ik.scene.operations import AddObject, AttachObject, MoveObject, Operation, SetFrame
from dls_ik.scene.snapshot import SceneSnapshot

JointValues = Mapping[str, float]  # joint positions by name [rad or m]


class FrameLookup(Protocol):
    """Lookup of frames among the links of a robot and in TF; see :mod:`dls_ik.ros.frames`."""

    def T_root_frame(self, frame: str, tree: Tree, values: JointValues) -> Array:
        """Return (4, 4) ``T_root_frame``, or raise a FrameError."""


def resolve_frames(
    operations: Iterable[Operation],
    scene: SceneSnapshot,
    values: JointValues,
    frames: FrameLookup,
) -> tuple[Operation, ...]:
    """Transform poses in frames that the scene does not know to the root frame, by TF.

    Args:
        values: Current joint positions.

    Raises:
        FrameError: If neither the scene nor TF knows a frame.
    """
    added: set[str] = set()  # objects and frames that the operations add
    resolved: list[Operation] = []
    for operation in operations:
        if isinstance(operation, SetFrame):
            T = _T_root_frame(operation, operation.parent, added, scene, values, frames)
            if T is not None:
                operation = operation._replace(parent="", T=T @ operation.T)
        elif isinstance(operation, (AddObject, MoveObject, AttachObject)):
            T = _T_root_frame(operation, operation.frame, added, scene, values, frames)
            if T is not None:
                operation = operation._replace(frame="", T=T @ operation.T)
        if isinstance(operation, (AddObject, SetFrame)):
            added.add(operation.name)
        resolved.append(operation)
    return tuple(resolved)


def _T_root_frame(
    operation: Operation,
    frame: str,
    added: set[str],
    scene: SceneSnapshot,
    values: JointValues,
    frames: FrameLookup,
) -> Array | None:
    """Return (4, 4) ``T_root_frame``; None if the scene, or an earlier operation, has the frame."""
    if frame in added or frame.split("/")[0] in added:
        return None
    try:
        frame_pose(scene, frame, values)
    except SceneError:
        try:
            return frames.T_root_frame(frame, scene.tree, values)
        except FrameError as error:
            raise FrameError(about_object(operation, error)) from error
    return None
