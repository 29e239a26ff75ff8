# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Construction of the planning scene of a robot from SRDF, scene file and previous scene."""

import time
from collections.abc import Callable, Iterable
from functools import partial
from importlib.util import find_spec
from typing import Any

from dls_ik.errors import DlsIkError, FrameError, SceneError
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.ros.arm import PREPARING
from dls_ik.ros.services.robot_scene import RobotScene, SceneEntry, driven_values
from dls_ik.ros.services.scene_frames import FrameLookup, JointValues, resolve_frames
from dls_ik.scene.changes import for_scene
from dls_ik.scene.exact import library
from dls_ik.scene.operations import SceneChange
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.sphere_fit import WorkBudget
from dls_ik.scene.srdf import Srdf, load_srdf
from dls_ik.text import escape, listing, quoted

COLLISION_LIBRARY = "coal"
APPROXIMATE_CHECKS = (
    f"the library {COLLISION_LIBRARY} is not installed: collisions are checked by spheres around "
    "the shapes, and shapes within a few mm count as colliding; for exact checks: "
    "pip install 'dls_ik[collision]'"
)
FRAME_TIMEOUT = 5.0  # [s] maximum time to wait until TF has the frames of a scene file
FRAME_POLL_PERIOD = 0.1  # [s] time between lookups of a frame that TF does not have yet


def has_collision_library() -> bool:
    """Return whether the library for exact collision checks (coal) is installed."""
    return find_spec(COLLISION_LIBRARY) is not None


def load_collision_library() -> None:
    """Import the library for exact collision checks (coal) if it is installed."""
    if has_collision_library():
        library()


def read_srdf(text: str, tree: Tree, logger: Any) -> Srdf | None:
    """Return the contents of an SRDF; None if the text is empty or invalid.

    If the text is invalid, log the reason.

    Args:
        text: SRDF as XML.
        tree: Robot.
        logger: Logger of the node.
    """
    if not text:
        return None
    try:
        if not text.lstrip("\ufeff \t\r\n").startswith("<"):  # load_srdf would read it as a file
            raise SceneError(f"an SRDF must be XML; got {quoted(text)}")
        return load_srdf(text, tree)
    except DlsIkError as error:
        logger.error(
            "SRDF refused; links that may touch are found by sampling instead: "
            f"{escape(str(error))}"
        )
        return None


def new_scene(robot: RobotModel, srdf: Srdf | None, mesh_folders: Iterable[str]) -> PlanningScene:
    """Return a planning scene of a robot, without objects.

    Args:
        robot: Robot.
        srdf: SRDF with the pairs of links that may touch; None: find the pairs by sampling.
        mesh_folders: Folders from which meshes may be read.
    """
    return PlanningScene(robot, srdf, allow=tuple(mesh_folders), exact=has_collision_library())


def add_file_objects(
    scene: PlanningScene,
    change: SceneChange,
    values: JointValues,
    frames: FrameLookup,
    logger: Any,
    timeout: float = FRAME_TIMEOUT,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Add the objects of a scene file to a new scene, and log the names of the objects.

    Args:
        scene: New scene.
        change: Contents of the file.
        values: Current joint positions by name [rad or m].
        frames: Lookup of the frames of objects.
        logger: Logger of the node.
        timeout: Maximum time to wait for TF frames of the objects [s].
        clock: Function that returns the current time [s].
        sleep: Function that waits for a given time [s].

    Raises:
        SceneError: If a frame is still unknown after the timeout, or an object is not valid.
    """
    change, start, budget = for_scene(change, scene.snapshot), clock(), WorkBudget()
    while True:
        try:
            operations = resolve_frames(change.operations, scene.snapshot, values, frames)
            scene.apply(operations, at=values, budget=budget)
            break
        except FrameError as error:
            if clock() - start > timeout:
                raise SceneError(f"{change.source}{error}") from error
            sleep(FRAME_POLL_PERIOD)
        except DlsIkError as error:
            raise SceneError(f"{change.source}{error}") from error
    objects = [*scene.snapshot.objects, *scene.snapshot.attached]
    logger.info(escape(f"objects of {change.source}{listing(objects)}"))
    for note in change.notes:
        logger.warning(escape(f"{change.source}{note}"))
    if budget.coarse:
        words = "the meshes of the file take too much time: the arm keeps more distance from them"
        named = f"objects {listing(budget.coarse)} have coarser spheres, because {words}"
        logger.warning(f"{escape(change.source)}{named}; use fewer triangles")


def log_new_scene(scene: PlanningScene, topics: Iterable[str], logger: Any) -> None:
    """Log how many links and pairs the collision checks of a new scene include.

    Args:
        scene: New scene.
        topics: Names of the topics with changes of the scene.
        logger: Logger of the node.
    """
    snapshot = scene.snapshot
    origin = "found by sampling" if scene.srdf is None else "from the SRDF"
    if not snapshot.links:
        logger.warning(
            "the robot description has no <collision> geometry: nothing is checked for "
            "collisions, and the stream does not avoid objects"
        )
        return
    logger.info(
        f"planning scene built: collisions of {len(snapshot.links)} links, "
        f"{len(set(snapshot.names))} pairs; {len(scene.pairs)} other pairs may touch, {origin}; "
        f"changes on {listing(topics)}"
    )
    if not snapshot.exact:
        logger.warning(APPROXIMATE_CHECKS)


class SceneBuilder:
    """Builder of the scene of each new robot, with objects of the previous scene or of a file.

    Args:
        scene: Holder of the scene of the robot in use, which receives each new scene.
        file: Contents of the scene file, whose objects are added to the first scene.
        mesh_folders: Folders from which meshes may be read.
        await_srdf: Function that waits for the SRDF and returns it as XML, or as an empty text.
        topics: Names of the topics with changes, for log messages.
        logger: Logger of the node.
    """

    def __init__(
        self,
        scene: RobotScene,
        file: SceneChange,
        mesh_folders: tuple[str, ...],
        await_srdf: Callable[[], str],
        topics: tuple[str, ...],
        logger: Any,
    ) -> None:
        self._scene, self._file, self._folders = scene, file, mesh_folders
        self._await_srdf, self._topics, self._logger = await_srdf, topics, logger

    def build(self, robot: RobotModel) -> bool:
        """Build the scene of a robot and use it, unless another robot is in use now.

        Returns:
            Whether an earlier build for this robot had failed, and this build has succeeded. In
            this case changes of the scene were refused since then and are missing.
        """
        target, tree, arm = self._scene, robot.tree, self._scene.arm
        if arm is None or arm.tree is not tree:
            return False
        previous = target.scene_of_root(tree)
        if target.entry.tree is not tree:
            if previous is None:
                self._log_lost_objects()
                target.callbacks.note_restart()
            target.set_pending(tree, PREPARING)
        before = target.entry
        srdf = read_srdf(self._await_srdf(), tree, self._logger)
        if srdf is not None:
            target.callbacks.adopt(robot, srdf)
        if before.scene is not None and before.scene.srdf is None and srdf is None:
            return False  # the scene would not change
        try:
            target.callbacks.await_kernels(partial(target.set_pending, tree))
            scene = new_scene(robot, srdf, self._folders)
            self._fill(scene, previous)
            _ = scene.snapshot.packed
        except DlsIkError as error:
            self._note_failed_build(robot, before, error)
            return False
        published = scene.copy()
        if target.replace(SceneEntry(tree, scene, "", published)):
            log_new_scene(scene, self._topics, self._logger)
            target.callbacks.equip(robot, published, "")
        return before.scene is None and not before.is_pending

    def _fill(self, scene: PlanningScene, previous: PlanningScene | None) -> None:
        """Add objects to a new scene.

        These are the objects of the previous scene; without a previous scene, those of the file.
        """
        if previous is not None:
            left_out = scene.take_over(previous)
            if left_out:
                words = (
                    f"objects {listing(left_out)} are removed, because the new robot does not have "
                    "their frames"
                )
                self._logger.warning(escape(f"{words}; publish them again"))
        elif self._file.operations:
            tree, arm, frames = scene.robot.tree, self._scene.arm, self._scene.frames
            current: JointValues = {}
            if arm is not None and arm.tree is tree:  # another robot may be in use meanwhile
                current = self._scene.callbacks.current(arm)
            values = driven_values(current, tree)
            add_file_objects(scene, self._file, values, frames, self._logger)

    def _log_lost_objects(self) -> None:
        """Log how many objects of the previous scene are removed, if there are any."""
        scene = self._scene.entry.scene
        count = 0 if scene is None else len(scene.snapshot.objects) + len(scene.snapshot.attached)
        if count:
            self._logger.warning(
                f"the new robot has another root link: {count} objects of the previous scene are "
                "removed; publish them again"
            )

    def _note_failed_build(self, robot: RobotModel, before: SceneEntry, error: DlsIkError) -> None:
        if before.scene is not None:
            self._logger.error(escape(f"the previous planning scene stays in use: {error}"))
            return
        # Replaced before the message, so that who reads the message gets the new answers
        if self._scene.replace(SceneEntry(robot.tree, None, str(error))):
            self._scene.callbacks.equip(robot, None, str(error))
        self._logger.warning(
            escape(f"collisions are not checked, and requests for checks are refused: {error}")
        )
