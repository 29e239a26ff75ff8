# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Transformation of poses in scene changes from TF frames to the root frame of the robot."""

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
        """Return the pose ``T_root_frame`` (4, 4) of a frame.

        Args:
            frame: Name of a link or a TF frame.
            tree: Robot.
            values: Joint positions by name [rad or m].

        Raises:
            FrameError: If the frame is unknown.
        """


def resolve_frames(
    operations: Iterable[Operation],
    scene: SceneSnapshot,
    values: JointValues,
    frames: FrameLookup,
) -> tuple[Operation, ...]:
    """Return operations in which poses in TF frames are transformed to the root frame.

    Poses in frames that the scene or an earlier operation defines are not changed.

    Args:
        operations: Operations of a scene change.
        scene: Scene before the change.
        values: Current joint positions by name [rad or m].
        frames: Lookup of frames.

    Raises:
        FrameError: If neither the scene nor TF knows a frame.
    """
    added: set[str] = set()  # names of objects and frames that previous operations add
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
    """Return the pose ``T_root_frame`` (4, 4) of a TF frame.

    Args:
        operation: Operation that uses the frame, for the error message.
        frame: Name of the frame.
        added: Names of objects and frames that previous operations add.
        scene: Scene before the change.
        values: Current joint positions by name [rad or m].
        frames: Lookup of frames.

    Returns:
        Pose; None if the scene or a previous operation defines the frame.

    Raises:
        FrameError: If the frame is unknown.
    """
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
