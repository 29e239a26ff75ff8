"""The planning scene of a node on the page: asked for, drawn, and changed from there."""

import time
from collections.abc import Iterable
from functools import partial
from threading import Lock
from typing import Any

from geometry_msgs.msg import Pose
from moveit_msgs.msg import CollisionObject, PlanningScene
from moveit_msgs.srv import GetPlanningScene
from rclpy.node import Node
from rclpy.qos import QoSProfile
from rclpy.serialization import serialize_message
from std_msgs.msg import Header

from dls_ik.errors import DlsIkError, SceneError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.client.connection import PATIENCE, ServiceClient
from dls_ik.ros.services.executor import LatestOnlyExecutor
from dls_ik.ros.services.scene import fill_message
from dls_ik.ros.services.scene_build import has_collision_library
from dls_ik.ros.services.scene_monitor import SCENE_QOS, SCENE_TOPICS
from dls_ik.ros.services.whole_scene import SCENE_SERVICE
from dls_ik.scene import planning_scene
from dls_ik.scene.formats import read_scene
from dls_ik.scene.messages import read_messages
from dls_ik.scene.operations import AddObject, MoveObject, Operation, RemoveObject
from dls_ik.scene.scene_message import object_fields
from dls_ik.scene.shapes import Body
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Srdf
from dls_ik.text import listing, quoted

PERIOD, SOON = 1.0, 0.1  # [s] between two questions to the node, and after news on a topic
SHARE = 0.02  # of its time that the node spends on answers, at most
SEND_PERIOD = 0.05  # [s] between two messages of a drag
HOLD = 1.5  # [s] that a change made here stands against the answers of the node
TOPIC = "planning_scene"
NO_SCENE = "the node has no scene; its log says why"
NO_LIBRARY = "objects only; for the nearest pair: pip install 'dls_ik[collision]'"


class NodeScene:
    """Shows the scene of a node as a scene here, and publishes what is changed in it.

    The node is asked for its scene every second, and soon after a message about it. The page moves
    objects of :attr:`scene`, and names them to :meth:`publish`.
    """

    def __init__(self, node: Node, robot: RobotModel) -> None:
        self.scene, self.note = _own_scene(robot)
        self._missing = self.note  # said where the node has nothing to say
        self._robot = robot
        self._service = ServiceClient(node, GetPlanningScene, SCENE_SERVICE)
        self._publisher = node.create_publisher(PlanningScene, TOPIC, SCENE_QOS)
        for topic, kind in SCENE_TOPICS.items():
            node.create_subscription(kind, topic, self._hear, QoSProfile(depth=1), raw=True)
        self._executor = LatestOnlyExecutor(self._fail)
        self._has_news = False
        self._question: Any = None  # a future
        self._asked, self._took = float("-inf"), 0.0  # [s]
        self._content = b""  # of the last answer
        self._shapes: dict[str, bytes] = {}  # of its objects
        self._known: dict[str, Body] = {}  # that the node has
        self._lock = Lock()  # of the next three
        self._changed: dict[str, None] = {}  # names to publish
        self._own: dict[str, float] = {}  # [s] when they were changed here
        self._sent = float("-inf")  # [s]

    def publish(self, name: str) -> None:
        """Tell the node of an object as it stands here: moved, added or removed."""
        with self._lock:
            self._changed[name] = None
            self._own[name] = time.monotonic()

    def load(self, file: str) -> tuple[str, ...]:
        """Add the objects of a file to the scene of the node.

        Returns:
            A line for each part that is not sent.

        Raises:
            SceneError: If the message is not a scene, or an object is in the frame of a link other
                than the root.
        """
        change = read_scene(file)
        added = [each for each in change.operations if isinstance(each, AddObject)]
        for each in added:
            if each.frame not in ("", self._robot.tree.root):
                raise SceneError(
                    f"object {quoted(each.name)} is in frame {quoted(each.frame)}: publish it on "
                    f"{TOPIC}, the page adds objects in {self._robot.tree.root} only"
                )
        self.scene.apply(added, prepare=False)
        for each in added:
            self.publish(each.name)
        others = {type(each).__name__ for each in change.operations if each not in added}
        others -= {RemoveObject.__name__, "ResetAllowed", "RemoveAttached"}
        left = ("its objects alone are sent to the node",) if others else ()
        return (*change.notes, *left)

    def step(self, now: float) -> None:
        """Send what has changed, and ask the node, when it is time [s] on the steady clock."""
        self._send(now)
        if self._question is not None:
            if self._question.done():
                self._took = now - self._asked
                self._executor.submit(partial(self._take, self._question))
            elif now < self._asked + PATIENCE:
                return
            else:
                self._question.cancel()
            self._question = None
        wait = max(SOON if self._has_news else PERIOD, self._took / SHARE)
        if now < self._asked + wait:
            return
        self._asked, self._has_news = now, False
        if not self._service.is_served:
            self.note = f"nobody serves {self._service.name}"
            return
        request = GetPlanningScene.Request()
        request.components.components = 1023  # all
        self._question = self._service.send(request)

    def close(self) -> None:
        """Read no more answers."""
        self._executor.close()

    def _hear(self, _: bytes) -> None:
        self._has_news = True

    def _fail(self, error: Exception) -> None:
        self.note = f"internal error: {error!r}"

    # The scene of the node

    def _take(self, answer: Any) -> None:
        """Show an answer of the node."""
        message = answer.result().scene
        if not message.robot_model_name:
            self.note = NO_SCENE
            return
        try:
            self.note = self._adopt(message) or self._missing
        except DlsIkError as error:
            self.note = f"the scene of the node cannot be shown: {error}"

    def _adopt(self, message: Any) -> str:
        """Take the scene of a message; return what it has that is not shown."""
        self._keep_joints_beside(message.robot_state.joint_state)
        with self._lock:
            late = time.monotonic() - HOLD
            held = {*self._changed, *(name for name, made in self._own.items() if made > late)}
            self._own = {name: made for name, made in self._own.items() if name in held}
        content = serialize_message(message)
        if content == self._content:
            return self.note
        change = read_messages(message)
        shapes = {each.id: _shape_bytes(each) for each in message.world.collision_objects}
        after = self.scene.apply(self._news(change.operations, shapes, held))
        self._content = b"" if held else content  # what is held back is looked at again
        self._shapes = shapes
        self._known = {name: after.objects[name].body for name in shapes if name in after.objects}
        return listing(change.notes) if change.notes else ""

    def _news(
        self, operations: Iterable[Operation], shapes: dict[str, bytes], held: set[str]
    ) -> list[Operation]:
        """Return what an answer changes here: a body that stays is not built again."""
        before, found = self.scene.snapshot.objects, list[Operation]()
        for given in operations:
            each: Operation = given
            if isinstance(each, RemoveObject):  # all of them
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

    def _keep_joints_beside(self, state: Any) -> None:
        """Leave the values of joints beside the chain; the page knows those of the chain."""
        tree, chain = self._robot.tree, self._robot.joint_names
        rows = [
            (name, value)
            for name, value in zip(state.name, state.position, strict=False)
            if name in tree.mimic_of and name not in chain
        ]
        state.header = Header()
        state.name, state.position = [name for name, _ in rows], [value for _, value in rows]
        state.velocity, state.effort = [], []

    # Changes on the page

    def _send(self, now: float) -> None:
        """Publish the objects that have changed, if somebody listens."""
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
    """Return a scene to show the node's in, and why it lacks the shapes of the robot.

    The pairs that may touch come from the node.
    """
    pairs = Srdf(robot.name)
    if not has_collision_library():
        return planning_scene.PlanningScene(robot, pairs, bodies={}), NO_LIBRARY
    try:
        return planning_scene.PlanningScene(robot, pairs), ""
    except DlsIkError as error:
        return planning_scene.PlanningScene(robot, pairs, bodies={}), f"objects only: {error}"


def _shape_bytes(given: Any) -> bytes:
    """Serialize an object of the world without its place."""
    kept = given.header, given.pose
    given.header, given.pose = Header(), Pose()
    single = [*given.primitives, *given.meshes, *given.planes]
    poses = given.primitive_poses, given.mesh_poses, given.plane_poses
    if len(single) == 1:  # the pose of its only shape is its own
        given.primitive_poses, given.mesh_poses, given.plane_poses = [], [], []
    content: bytes = serialize_message(given)
    given.header, given.pose = kept
    given.primitive_poses, given.mesh_poses, given.plane_poses = poses
    return content
