# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""ROS interface of the planning scene: topics with changes, SRDF, and the scene of move_group."""

import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from moveit_msgs.msg import AttachedCollisionObject, CollisionObject, PlanningScene
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.model.xml import MAX_XML_BYTES as MAX_SRDF_BYTES
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import Parameters
from dls_ik.ros.robot_source import DESCRIPTION_QOS
from dls_ik.ros.services.change_queue import ChangeQueue
from dls_ik.ros.services.robot_scene import RobotScene, SceneCallbacks
from dls_ik.ros.services.scene_build import SceneBuilder
from dls_ik.ros.services.whole_scene import WholeScene
from dls_ik.ros.subscriptions import read_bytes
from dls_ik.ros.util import Throttle, trace
from dls_ik.scene import planning_scene
from dls_ik.scene.formats import read_scene
from dls_ik.scene.operations import SceneChange
from dls_ik.scene.srdf import Srdf
from dls_ik.text import escape, listing, quoted

SRDF_TOPIC = "robot_description_semantic"
# Maximum times since the start of the node [s]: until a publisher of an SRDF is discovered, and
# until the SRDF of a discovered publisher arrives.
DISCOVERY_TIME = 0.5
SRDF_TIMEOUT = 2.0


class SrdfSource:
    """Source of the SRDF: a parameter, or the topic ``robot_description_semantic``.

    Args:
        node: ROS node.
        xml: Value of the parameter, as XML; if it is empty, subscribe to the topic.
        log: Log of the node.
        changed: Function that is called when a different SRDF arrives on the topic.
    """

    def __init__(self, node: Node, xml: str, log: Throttle, changed: Callable[[], None]) -> None:
        self._node, self._xml, self._log, self._changed = node, xml, log, changed
        self._has_arrived = threading.Event()
        self._start = time.monotonic()
        self._topic = node.resolve_topic_name(SRDF_TOPIC)
        if not xml:
            node.create_subscription(String, SRDF_TOPIC, self._receive, DESCRIPTION_QOS, raw=True)

    def wait(self) -> str:
        """Return the SRDF as XML; an empty text if no SRDF arrives shortly after the start.

        The wait saves time if an SRDF arrives, because without an SRDF the pairs of links that may
        touch are found by random sampling, which is slow.
        """
        while not self._xml:
            has_publisher = self._node.count_publishers(self._topic) > 0
            timeout = SRDF_TIMEOUT if has_publisher else DISCOVERY_TIME
            if time.monotonic() - self._start > timeout or self._has_arrived.wait(0.05):
                break
        return self._xml

    def _receive(self, data: bytes) -> None:
        if len(data) > MAX_SRDF_BYTES + 16:
            words = f"ignored SRDF on {self._topic}: {len(data)} bytes; at most {MAX_SRDF_BYTES}"
            self._log.warn("srdf", words)
            return
        message = read_bytes(self._node, data, String, self._topic, self._log)
        if message is None or message.data == self._xml:
            return
        self._xml = message.data
        self._has_arrived.set()
        self._changed()


SCENE_TOPICS: Mapping[str, Any] = {
    "planning_scene": PlanningScene,
    "collision_object": CollisionObject,
    "attached_collision_object": AttachedCollisionObject,
}
SCENE_QOS = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
# Maximum size of a message; reading 1 MB of triangles blocks all threads for 0.1 s.
MAX_CHANGE_BYTES = 1024 * 1024
QUICK_CHANGE_BYTES = 64 * 1024  # a change up to this size takes less than MAX_PUBLISH_DELAY
MAX_LOGGED_REFUSALS = 16  # maximum number of different refusals per topic and log period
MAX_LOGGED_NOTES = 100  # maximum number of different notes on ignored fields of messages
REFUSED_SCENE_RETRY = 5.0  # [s] time until the next request if a whole scene was refused
COARSE = (
    "objects {} have coarser spheres, because the meshes of one message, or of messages that wait "
    "together, take too much time: the arm keeps more distance from them; send fewer triangles, or "
    "send the objects again one after another"
)
LOST_CHANGES = (
    "planning scene: {} changes are lost (queue full, message too large or not readable); send the "
    "whole scene with is_diff false (topic planning_scene or service apply_planning_scene)"
)


class PlanningSceneMonitor:
    """ROS interface of the planning scene of the robot in use.

    One thread, the thread of the scene, builds and changes the scene.

    Args:
        node: ROS node.
        parameters: Parameters of the node.
        current: Function that returns the current joint positions of an arm by name [rad or m].
        frames: Lookup of frames that the scene does not have.
        adopt: Function that is called in the thread of the scene with a robot and its SRDF.
        equip: Function that is called in the thread of the scene with a robot and the scene for
            the servo loop, or with None and the reason why there is no scene.
        await_kernels: Function that waits until the kernels of collision checks are loaded, or
            raises a SceneError. Its argument is a function that it calls with the reason for the
            wait.

    Raises:
        SceneError: If the file of the parameter `scene` cannot be read.
    """

    def __init__(
        self,
        node: Node,
        parameters: Parameters,
        current: Callable[[Arm], Mapping[str, float]],
        frames: Frames,
        adopt: Callable[[RobotModel, Srdf], None],
        equip: Callable[[RobotModel, planning_scene.PlanningScene | None, str], None],
        await_kernels: Callable[[Callable[[str], None]], None] = lambda tell: None,
    ) -> None:
        self._node, self._log, self._noted = node, Throttle(node), set[str]()
        file, folders = parameters.scene, parameters.mesh_folders
        change = read_scene(file, allow=folders) if file else SceneChange(())
        self._queue = ChangeQueue(self._publish, self._fault)
        restart = self._queue.note_whole_scene
        callbacks = SceneCallbacks(current, adopt, equip, await_kernels, restart)
        topics = tuple(map(node.resolve_topic_name, SCENE_TOPICS))
        logger = node.get_logger()
        self._scene = RobotScene(frames, callbacks)
        srdf = parameters.robot_description_semantic
        source = SrdfSource(node, srdf, self._log, self._build_again)
        self._builder = SceneBuilder(self._scene, change, folders, source.wait, topics, logger)
        for topic, kind in SCENE_TOPICS.items():
            self._subscribe(kind, topic)
        self._move_group: WholeScene | None = None
        if topic := parameters.monitored_planning_scene:
            self._subscribe(PlanningScene, topic)
            self._move_group = WholeScene(node, topic, self._log, self._apply_whole)

    def use(self, arm: Arm) -> None:
        """Use another arm; if it has another robot, build a scene for it in the background."""
        before, self._scene.arm = self._scene.arm, arm
        if before is not None and before.tree is arm.tree:
            return
        self._build_again()
        self._request_whole()

    def close(self) -> None:
        """Stop building scenes and applying changes."""
        self._queue.close()

    def scene(self, tree: Tree) -> planning_scene.PlanningScene:
        """Return the scene of a robot; see :meth:`RobotScene.find` for the errors."""
        return self._scene.find(tree)

    def check_stream(
        self, arm: Arm, now: float, measured: Callable[[], Mapping[str, float]]
    ) -> str:
        """Update the joints outside the chain in the scene; return a reason to stop the arm.

        The servo loop calls this in each cycle.

        Args:
            arm: Arm in use.
            now: Current steady time [s].
            measured: Function that returns measured joint positions by name [rad or m].

        Returns:
            Reason why the arm must hold its position, if changes of the scene were lost; otherwise
            an empty text.
        """
        if arm.outside_joints:
            update = self._scene.joint_update(arm, now, measured)
            if update is not None:
                self._queue.submit(update, is_quick=True)
        lost = self._queue.num_lost
        is_lost = lost > 0 and arm.surroundings.scene is not None
        return LOST_CHANGES.format(lost) if is_lost else ""

    def submit(self, job: Callable[[], None]) -> bool:
        """Queue a job for the thread of the scene; return False if the queue is full."""
        return self._queue.submit(job)

    def change(self, message: Any, source: str, at_once: bool = False) -> bool:
        """Apply a change of the scene; if the change is refused, log the reason.

        This method must be called in the thread of the scene.

        Args:
            message: moveit_msgs/PlanningScene, CollisionObject or AttachedCollisionObject.
            source: Name of the topic or service of the message.
            at_once: Whether to publish the scene to the servo loop before returning.

        Returns:
            Whether the change was applied.
        """
        try:
            tree, notes, coarse = self._scene.apply(message, not self._queue.has_more)
            self._publish(at_once)
        except DlsIkError as error:
            words = f"a change of the planning scene on {source} is refused and ignored: {error}"
            self._log.warn_each(f"refused on {source}", words, MAX_LOGGED_REFUSALS)
            return False
        if not self._queue.has_more:
            self._scene.renew_budget()
        if coarse:
            words = f"planning scene on {source}: {COARSE.format(listing(coarse))}"
            self._log.warn_each(f"coarse on {source}", words, MAX_LOGGED_REFUSALS)
        if not getattr(message, "is_diff", True):
            self._queue.note_whole_scene()
        model = getattr(message, "robot_model_name", "")
        if model and model != tree.name:
            note = f"the message is for robot {quoted(model)}; applied to {tree.name!r}"
            self._note_once(note, source)
        for note in notes:
            self._note_once(note, source)
        return True

    # Functions that run in the thread of the scene

    def _publish(self, at_once: bool) -> None:
        self._scene.publish(time.monotonic(), self._queue.has_more and not at_once)

    def _build(self, robot: RobotModel) -> None:
        if self._builder.build(robot):
            self._request_whole()

    def _fault(self, error: Exception) -> None:
        self._node.get_logger().error(trace(error))
        self._scene.fail(f"internal error: {error!r}")

    def _note_once(self, note: str, source: str) -> None:
        if note not in self._noted and len(self._noted) < MAX_LOGGED_NOTES:
            self._noted.add(note)
            self._node.get_logger().warning(escape(f"planning scene on {source}: {note}"))

    # Functions that run in other threads

    def _build_again(self) -> None:
        arm = self._scene.arm
        if arm is not None:
            self._queue.submit(partial(self._build, arm.robot), is_bounded=False)

    def _request_whole(self, after: float = 0.0) -> None:
        """Request the whole scene of move_group after a time [s].

        Do nothing if the parameter monitored_planning_scene is empty.
        """
        if self._move_group is not None:
            self._move_group.request_again(after)

    def _apply_whole(self, message: Any, source: str) -> None:
        """Queue the whole scene of move_group; if it is refused later, request it again."""

        def apply() -> None:
            if not self.change(message, source) and self._scene.exists:
                self._request_whole(REFUSED_SCENE_RETRY)

        self._queue.submit(apply, is_bounded=False)

    def _subscribe(self, kind: Any, topic: str) -> None:
        name = self._node.resolve_topic_name(topic)

        def enqueue(data: bytes) -> None:
            def change() -> None:
                message = read_bytes(self._node, data, kind, name, self._log)
                if message is None:
                    self._queue.note_unreadable()
                    self._report_lost(name)
                else:
                    self.change(message, name)

            is_quick = len(data) <= QUICK_CHANGE_BYTES
            if not self._queue.submit(change, len(data), is_quick=is_quick):
                self._queue.note_dropped()
                self._report_lost(name)

        def receive(data: bytes) -> None:
            if len(data) > MAX_CHANGE_BYTES:
                self._log.warn(
                    f"bytes on {name}",
                    f"a message on {name} has {len(data)} bytes, more than {MAX_CHANGE_BYTES}: "
                    "ignored; send large meshes by apply_planning_scene",
                )
                self._queue.note_dropped()
                self._report_lost(name)
                return
            enqueue(data)
            if self._move_group is not None:
                self._move_group.note_change(partial(enqueue, data))

        self._node.create_subscription(kind, topic, receive, SCENE_QOS, raw=True)

    def _report_lost(self, topic: str) -> None:
        words = f"{LOST_CHANGES.format(self._queue.num_lost)}; last lost change: on {topic}"
        self._log.warn("lost", words)
        self._request_whole()
