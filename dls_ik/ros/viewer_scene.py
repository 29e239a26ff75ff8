# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Planning scene of a running node in the viewer, which draws and changes the scene."""

import time
from collections.abc import Iterable
from copy import copy
from functools import partial
from threading import Lock
from typing import Any

from geometry_msgs.msg import Pose
from moveit_msgs.msg import CollisionObject, PlanningScene
from moveit_msgs.srv import GetPlanningScene
from rclpy.node import Node
from rclpy.qos import QoSProfile
from std_msgs.msg import Header

from dls_ik.errors import DlsIkError, SceneError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.client.connection import PATIENCE, ServiceClient
from dls_ik.ros.services.executor import LatestOnlyExecutor
from dls_ik.ros.services.scene import fill_message
from dls_ik.ros.services.scene_build import has_collision_library
from dls_ik.ros.services.scene_monitor import SCENE_QOS, SCENE_TOPICS
from dls_ik.ros.services.whole_scene import ALL_COMPONENTS, SCENE_SERVICE
from dls_ik.scene import planning_scene
from dls_ik.scene.formats import read_scene
from dls_ik.scene.messages import read_messages
from dls_ik.scene.operations import AddObject, MoveObject, Operation, RemoveObject
from dls_ik.scene.scene_message import object_fields
from dls_ik.scene.shapes import Body
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Srdf
from dls_ik.text import listing, quoted

SCENE_REQUEST_PERIOD = 1.0  # [s] period of the requests of the scene
CHANGE_DELAY = 0.1  # [s] time between a message that changes the scene and the next request
MAX_ANSWER_SHARE = 0.02  # maximum fraction of its time that the node should spend on answers
SEND_PERIOD = 0.05  # [s] period of messages while the user drags an object
OWN_CHANGE_TIME = 1.5  # [s] time for which a change in the viewer overrides answers of the node
SCENE_TOPIC = "planning_scene"
NODE_WITHOUT_SCENE_MESSAGE = "the node has no scene; see its log for the reason"
NO_LIBRARY = "objects only; for the closest pair: pip install 'dls_ik[collision]'"


class NodeScene:
    """Copy of the planning scene of a node; changes of the copy are published to the node.

    The scene of the node is requested every second, and shortly after a message that changes the
    scene. The page of the viewer moves objects of :attr:`scene`, and passes the names of the moved
    objects to :meth:`publish`.

    Args:
        node: ROS node of the viewer.
        robot: Robot of the node that is shown.
    """

    def __init__(self, node: Node, robot: RobotModel) -> None:
        self.scene, self.note = _own_scene(robot)
        self._default_note = self.note
        self._robot = robot
        self._service = ServiceClient(node, GetPlanningScene, SCENE_SERVICE)
        self._publisher = node.create_publisher(PlanningScene, SCENE_TOPIC, SCENE_QOS)
        for topic, kind in SCENE_TOPICS.items():
            node.create_subscription(kind, topic, self._note_change, QoSProfile(depth=1), raw=True)
        self._executor = LatestOnlyExecutor(self._fail)
        self._has_news = False
        self._pending: Any = None  # future of the pending request
        # Steady time of the last request, and time from this request to its answer [s].
        self._request_time, self._answer_duration = float("-inf"), 0.0
        self._answer: Any = None  # last scene of the node, a moveit_msgs/PlanningScene
        self._shapes: dict[str, Any] = {}  # results of shapes_of for the last scene, by name
        self._known: dict[str, Body] = {}  # shapes of the objects that the node knows, by name
        self._lock = Lock()  # guards the next three attributes
        self._changed: dict[str, None] = {}  # names of objects to publish
        self._own: dict[str, float] = {}  # steady times of changes in the viewer [s]
        self._sent = float("-inf")  # steady time of the last message [s]

    def publish(self, name: str) -> None:
        """Publish an object that was moved, added or removed in the viewer, in the next step."""
        with self._lock:
            self._changed[name] = None
            self._own[name] = time.monotonic()

    def load(self, file: str) -> tuple[str, ...]:
        """Add the objects of a scene file to the scene of the node.

        Returns:
            Notes on ignored contents of the file, one line each.

        Raises:
            SceneError: If the file cannot be read, or the frame of an object is not the root.
        """
        change = read_scene(file)
        added = [each for each in change.operations if isinstance(each, AddObject)]
        for each in added:
            if each.frame not in ("", self._robot.tree.root):
                raise SceneError(
                    f"objects must be in the root frame {self._robot.tree.root} to be added by the "
                    f"viewer; object {quoted(each.name)} is in frame {quoted(each.frame)}; publish "
                    f"this object on {SCENE_TOPIC}"
                )
        self.scene.apply(added, prepare=False)
        for each in added:
            self.publish(each.name)
        others = {type(each).__name__ for each in change.operations if each not in added}
        others -= {RemoveObject.__name__, "ResetAllowed", "RemoveAttached"}
        ignored = (
            ("of this scene file only the objects are sent to the node, not its other settings",)
            if others
            else ()
        )
        return (*change.notes, *ignored)

    def step(self, now: float) -> None:
        """Publish changed objects, and request the scene of the node if a request is due.

        The viewer calls this method periodically.

        Args:
            now: Current steady time [s].
        """
        self._send(now)
        if self._pending is not None:
            if self._pending.done():
                self._answer_duration = now - self._request_time
                self._executor.submit(partial(self._take, self._pending))
            elif now < self._request_time + PATIENCE:
                return
            else:
                self._pending.cancel()
            self._pending = None
        wait = max(
            CHANGE_DELAY if self._has_news else SCENE_REQUEST_PERIOD,
            self._answer_duration / MAX_ANSWER_SHARE,
        )
        if now < self._request_time + wait:
            return
        self._request_time, self._has_news = now, False
        if not self._service.is_served:
            self.note = f"no node offers {self._service.name}"
            return
        request = GetPlanningScene.Request()
        request.components.components = ALL_COMPONENTS
        self._pending = self._service.send(request)

    def close(self) -> None:
        """Stop processing answers of the node."""
        self._executor.close()

    def _note_change(self, _: bytes) -> None:
        self._has_news = True

    def _fail(self, error: Exception) -> None:
        self.note = f"internal error: {error!r}"

    # The scene of the node

    def _take(self, answer: Any) -> None:
        """Update the scene and the note from the answer of the node to a request for its scene.

        Args:
            answer: Future with the response of the service ``get_planning_scene``.
        """
        message = answer.result().scene
        if not message.robot_model_name:
            self.note = NODE_WITHOUT_SCENE_MESSAGE
            return
        try:
            self.note = self._adopt(message) or self._default_note
        except DlsIkError as error:
            self.note = f"cannot show the scene of the node: {error}"

    def _adopt(self, message: Any) -> str:
        """Change the scene to that of a ``moveit_msgs/PlanningScene`` message.

        Returns:
            Note on contents of the message that are not shown; empty if all are shown.
        """
        self._remove_chain_joints(message.robot_state.joint_state)
        with self._lock:
            oldest = time.monotonic() - OWN_CHANGE_TIME
            held = {*self._changed, *(name for name, made in self._own.items() if made > oldest)}
            self._own = {name: made for name, made in self._own.items() if name in held}
        if message == self._answer:
            return self.note
        change = read_messages(message)
        shapes = {each.id: shapes_of(each) for each in message.world.collision_objects}
        after = self.scene.apply(self._news(change.operations, shapes, held))
        # After recent changes in the viewer, an equal answer must be processed again later.
        self._answer = None if held else message
        self._shapes = shapes
        self._known = {name: after.objects[name].body for name in shapes if name in after.objects}
        return listing(change.notes) if change.notes else ""

    def _news(
        self, operations: Iterable[Operation], shapes: dict[str, Any], held: set[str]
    ) -> list[Operation]:
        """Return the operations that change the scene of the viewer to that of the node.

        The node has sent its scene in an answer to the viewer. An object whose shapes have not
        changed is moved; other objects are removed or added.

        Args:
            operations: Operations that build the whole scene of the node.
            shapes: Results of :func:`shapes_of` for the objects of the node, by name.
            held: Names of objects that a person changed recently in the viewer. These objects are
                not changed, because the node may not know them yet.
        """
        before, found = self.scene.snapshot.objects, list[Operation]()
        for given in operations:
            each: Operation = given
            if isinstance(each, RemoveObject):  # the operations of a whole scene remove all objects
                gone = [name for name in before if name not in shapes and name not in held]
                found += map(RemoveObject, gone)
                continue
            if isinstance(each, AddObject):
                if each.name in held:
                    continue
                is_same = self._shapes.get(each.name) == shapes[each.name]
                if is_same and each.name in before:
                    each = MoveObject(each.name, each.frame, each.T)
            found.append(each)
        return found

    def _remove_chain_joints(self, state: Any) -> None:
        """Remove the joints of the chain from a ``sensor_msgs/JointState``.

        The viewer sets the positions of these joints itself.
        """
        tree, chain = self._robot.tree, self._robot.joint_names
        rows = [
            (name, value)
            for name, value in zip(state.name, state.position, strict=False)
            if name in tree.mimic_of and name not in chain
        ]
        state.header = Header()
        state.name, state.position = [name for name, _ in rows], [value for _, value in rows]
        state.velocity, state.effort = [], []

    # Changes in the viewer

    def _send(self, now: float) -> None:
        """Publish the changed objects, if there is a subscriber and SEND_PERIOD has passed.

        Args:
            now: Current steady time [s].
        """
        with self._lock:
            is_due = self._changed and now >= self._sent + SEND_PERIOD
            if not is_due or not self._publisher.get_subscription_count():
                return
            names, self._changed, self._sent = [*self._changed], {}, now
            self._own |= dict.fromkeys(names, now)
        message = PlanningScene(is_diff=True)
        message.robot_state.is_diff = True
        world = self.scene.snapshot
        message.world.collision_objects = [self._as_message(name, world) for name in names]
        self._publisher.publish(message)
        self._has_news = True

    def _as_message(self, name: str, world: SceneSnapshot) -> Any:
        placed, root = world.objects.get(name), world.tree.root
        if placed is None:
            self._known.pop(name, None)
            return CollisionObject(id=name, operation=CollisionObject.REMOVE)
        fields = object_fields(placed.body, placed.T, root, placed.subframes)
        if self._known.get(name) is placed.body:
            fields = {key: fields[key] for key in ("header", "pose", "id")}
            fields["operation"] = CollisionObject.MOVE
        self._known[name] = placed.body
        return fill_message(CollisionObject(), fields)


def _own_scene(robot: RobotModel) -> tuple[planning_scene.PlanningScene, str]:
    """Return a scene without objects, and a note if the scene lacks the shapes of the robot.

    The pairs of links that may touch are not computed here, because the node sends them.
    """
    pairs = Srdf(robot.name)
    if not has_collision_library():
        return planning_scene.PlanningScene(robot, pairs, bodies={}), NO_LIBRARY
    try:
        return planning_scene.PlanningScene(robot, pairs), ""
    except DlsIkError as error:
        return planning_scene.PlanningScene(robot, pairs, bodies={}), f"objects only: {error}"


def shapes_of(given: Any) -> Any:
    """Return a copy of a ``moveit_msgs/CollisionObject`` without its pose and header.

    Two objects have the same shapes if their copies are equal. The messages are not compared in
    serialized form, because serialization leaves the padding bytes between fields undefined.
    """
    shapes = copy(given)
    shapes.header, shapes.pose = Header(), Pose()
    if len([*given.primitives, *given.meshes, *given.planes]) == 1:
        # The pose of a single shape determines the pose of the object, so that it is removed too.
        shapes.primitive_poses, shapes.mesh_poses, shapes.plane_poses = [], [], []
    return shapes
