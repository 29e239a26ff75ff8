# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Planning scene of the robot in use, which is replaced for each robot and changed by messages."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from dls_ik.errors import SceneError, ScenePendingError
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.ros.arm import PREPARING, Arm
from dls_ik.ros.services.scene_frames import FrameLookup, JointValues, resolve_frames
from dls_ik.scene.changes import for_scene
from dls_ik.scene.messages import read_messages
from dls_ik.scene.operations import SetJoints
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.sphere_fit import WorkBudget
from dls_ik.scene.srdf import Srdf
from dls_ik.servo.guard import prepare

MAX_PUBLISH_DELAY = 0.1  # [s] maximum delay of a change for the servo loop if more are queued
JOINT_CHECK_PERIOD = 0.05  # [s] period of checks whether joints outside the chain have moved
MIN_JOINT_CHANGE = 1e-3  # [rad or m] smaller motions of joints outside the chain are ignored
NO_ROBOT = "there is no robot yet"


class SceneEntry(NamedTuple):
    """Planning scene of a robot, or the reason why there is no scene."""

    tree: Tree | None = None  # the robot
    scene: PlanningScene | None = None  # scene with all changes; None: no scene
    reason: str = NO_ROBOT  # reason why there is no scene; empty if there is a scene
    published: PlanningScene | None = None  # copy for the servo loop, with prepared kernels
    is_pending: bool = False  # whether the scene is being built


class AppliedChange(NamedTuple):
    """Result of a change of the scene."""

    tree: Tree  # tree of the changed scene
    notes: tuple[str, ...]  # one line for each ignored part of the message
    coarse: tuple[str, ...]  # objects with coarser spheres, because the work was used up


class SceneCallbacks(NamedTuple):
    """Functions that connect the scene to the other modules of the node.

    All functions except `current` are called in the thread that changes the scene.
    """

    current: Callable[[Arm], JointValues]  # returns joint positions by name [rad or m]
    adopt: Callable[[RobotModel, Srdf], None]  # uses the SRDF of a robot, for example its groups
    # Passes the scene of a robot to the servo loop, or None and the reason why there is no scene.
    equip: Callable[[RobotModel, PlanningScene | None, str], None]
    # Waits for the kernels of collision checks, and calls its argument with the reason for the
    # wait. Raises a SceneError if the kernels cannot be compiled.
    await_kernels: Callable[[Callable[[str], None]], None]
    note_restart: Callable[[], None]  # records that a scene starts without the previous objects


class RobotScene:
    """Planning scene of the robot in use, with all changes applied so far.

    One thread applies changes, publishes and replaces the scene. Any thread may call :meth:`find`.

    Args:
        frames: Lookup of frames that the scene does not have.
        callbacks: Functions that connect the scene to the other modules of the node.
    """

    def __init__(self, frames: FrameLookup, callbacks: SceneCallbacks) -> None:
        self.frames, self.callbacks = frames, callbacks
        self.entry = SceneEntry()
        self.arm: Arm | None = None  # the arm in use; set by any thread
        # Steady times of the last publication and of the last check of joints [s].
        self._budget = WorkBudget()  # shared by the spheres of all waiting changes
        self._publish_time = self._joint_check_time = -math.inf

    @property
    def exists(self) -> bool:
        """Whether there is a scene, either of the robot in use or of the previous robot."""
        return self.entry.scene is not None

    def find(self, tree: Tree) -> PlanningScene:
        """Return the scene of a robot.

        Args:
            tree: Robot.

        Raises:
            ScenePendingError: If the scene of this robot is still being built.
            SceneError: If there is no scene; the message gives the reason.
        """
        entry = self.entry
        if entry.tree is not tree:
            raise ScenePendingError(PREPARING)
        if entry.scene is None:
            raise (ScenePendingError if entry.is_pending else SceneError)(entry.reason)
        return entry.scene

    # Changes

    def renew_budget(self) -> None:
        """Renew the work for spheres, which all changes share that wait together."""
        self._budget = WorkBudget()

    def apply(self, message: Any, prepare_snapshot: bool) -> AppliedChange:
        """Apply all changes of a message to the scene, or none if a change is not valid.

        Spheres are fitted to the new shapes here, so that no request has to fit them.

        Args:
            message: moveit_msgs/PlanningScene, CollisionObject or AttachedCollisionObject, or a
                mapping with the same fields.
            prepare_snapshot: Whether to prepare the changed scene for collision checks now; if
                False, the next request prepares it.

        Returns:
            Robot of the changed scene, notes on ignored fields of the message, and the objects
            that got coarser spheres.

        Raises:
            DlsIkError: If the message is not valid, or there is no scene.
        """
        arm = self.arm
        if arm is None:
            raise SceneError(NO_ROBOT)
        scene = self.scene_of_root(arm.tree) or self.find(arm.tree)
        values = driven_values(self.callbacks.current(arm), scene.robot.tree)
        change = for_scene(read_messages(message), scene.snapshot)
        operations = resolve_frames(change.operations, scene.snapshot, values, self.frames)
        self._budget.coarse.clear()
        scene.apply(operations, at=values, prepare=prepare_snapshot, budget=self._budget)
        return AppliedChange(scene.robot.tree, change.notes, tuple(self._budget.coarse))

    def publish(self, now: float, may_delay: bool) -> None:
        """Publish the current scene to the servo loop, if the scene has changed.

        Args:
            now: Current steady time [s].
            may_delay: Whether to do nothing if the last publication was less than
                MAX_PUBLISH_DELAY ago.
        """
        entry = self.entry
        if entry.scene is None or entry.published is None:
            return
        snapshot = entry.scene.snapshot
        if entry.published.snapshot is snapshot:
            return
        if may_delay and now - self._publish_time < MAX_PUBLISH_DELAY:
            return
        prepare(snapshot)
        entry.published.replace_snapshot(snapshot)
        self._publish_time = now

    def joint_update(
        self, arm: Arm, now: float, measured: Callable[[], JointValues]
    ) -> Callable[[], None] | None:
        """Return a job that updates the positions of the joints outside the chain in the scene.

        Args:
            arm: Arm in use.
            now: Current steady time [s].
            measured: Function that returns measured joint positions by name [rad or m].

        Returns:
            Job, which must be run in the thread that changes the scene; None if no joint outside
            the chain has moved, or if the last check was less than JOINT_CHECK_PERIOD ago.
        """
        entry = self.entry
        if now - self._joint_check_time < JOINT_CHECK_PERIOD:
            return None
        self._joint_check_time = now
        if entry.scene is None or entry.tree is not arm.tree:
            return None
        known, before = measured(), entry.scene.snapshot.values
        values = {name: known[name] for name in arm.outside_joints if name in known}
        if not any(
            abs(value - before.get(name, math.inf)) > MIN_JOINT_CHANGE
            for name, value in values.items()
        ):
            return None
        return partial(_set_joints, entry.scene, values)

    # Replacement

    def scene_of_root(self, tree: Tree) -> PlanningScene | None:
        """Return the current scene if the robot of the scene and `tree` have the same root link.

        Returns:
            Scene; None if the root links differ, or if there is no scene.
        """
        scene = self.entry.scene
        return scene if scene is not None and scene.robot.tree.root == tree.root else None

    def set_pending(self, tree: Tree, reason: str) -> None:
        """Record that the scene of a robot is being built, unless a scene of the robot exists.

        Args:
            tree: Robot.
            reason: Reason for the wait, with which requests are refused.
        """
        if self.entry.tree is not tree or self.entry.scene is None:
            self.entry = SceneEntry(tree, None, reason, is_pending=True)

    def replace(self, entry: SceneEntry) -> bool:
        """Use a new scene; return whether the robot of this scene is still the robot in use."""
        self.entry = entry
        return self.arm is not None and self.arm.tree is entry.tree

    def fail(self, reason: str) -> None:
        """Record the reason why there is no scene, after an internal error while building it.

        If there is already a scene, do nothing.
        """
        entry, arm = self.entry, self.arm
        if entry.scene is not None:
            return
        self.entry = entry._replace(reason=reason, is_pending=False)
        if arm is not None and arm.tree is entry.tree:
            self.callbacks.equip(arm.robot, None, reason)


def driven_values(values: JointValues, tree: Tree) -> dict[str, float]:
    """Return the positions by name [rad or m] of the movable joints of a robot.

    Args:
        values: Joint positions by name [rad or m]; other names are left out.
        tree: Robot.
    """
    return {name: value for name, value in values.items() if name in tree.mimic_of}


def _set_joints(scene: PlanningScene, values: JointValues) -> None:
    scene.apply([SetJoints(values)], prepare=False)
