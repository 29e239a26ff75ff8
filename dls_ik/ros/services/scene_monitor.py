"""The planning scene of the node: from the robot and its SRDF, changed by what others publish.

One thread builds the scene and applies all changes in order; it alone replaces what is kept.
Requests take the snapshot as it stands, and never wait. The stream takes the last one whose
kernels' arrays are prepared.
"""

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from importlib.util import find_spec
from typing import Any, NamedTuple

from moveit_msgs.msg import AttachedCollisionObject, CollisionObject, PlanningScene
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, FrameError, SceneError, ScenePendingError
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.model.xml import MAX_BYTES as MAX_TEXT
from dls_ik.ros.arm import PREPARING, Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import Parameters
from dls_ik.ros.robot_source import QOS as LATCHED
from dls_ik.ros.services.executor import SerialExecutor
from dls_ik.ros.services.whole_scene import WholeScene
from dls_ik.ros.subscriptions import read_bytes
from dls_ik.ros.util import Throttle, trace
from dls_ik.scene import planning_scene
from dls_ik.scene.changes import about_object, for_scene, frame_pose
from dls_ik.scene.exact import library
from dls_ik.scene.formats import read_scene
from dls_ik.scene.messages import read_messages
from dls_ik.scene.operations import (
    AddObject,
    AttachObject,
    MoveObject,
    Operation,
    SceneChange,
    SetFrame,
    SetJoints,
)
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Srdf, load_srdf
from dls_ik.servo.guard import prepare
from dls_ik.text import escape, listing, quoted

LIBRARY = "coal"
INEXACT = (
    f"without the library {LIBRARY} collisions are checked by spheres around the shapes: shapes "
    "within a few mm count as colliding; exact checks: pip install 'dls_ik[collision]'"
)
SEMANTIC = "robot_description_semantic"
TOPICS: Mapping[str, Any] = {
    "planning_scene": PlanningScene,
    "collision_object": CollisionObject,
    "attached_collision_object": AttachedCollisionObject,
}
QOS = QoSProfile(depth=1000, reliability=ReliabilityPolicy.RELIABLE)
MAX_BYTES = 1024 * 1024  # of a message; reading 1 MB of triangles stops all threads for 0.1 s
REASONS = 16  # of refusals that are logged within a period
MAX_NOTES = 100  # that are logged
MAX_WAITING, MAX_WAITING_BYTES = 10_000, 16 * 1024 * 1024  # changes
DISCOVERY = 0.5  # [s] from the start of the node, in which publishers are found
SRDF_WAIT = 2.0  # [s] the same, for an SRDF of one; then pairs are searched without it
ASK_AGAIN = 5.0  # [s] after a whole scene that was refused
SHOWN = 0.1  # [s] in which the stream sees a change, however many wait behind it
QUICK = 64 * 1024  # bytes of a change that takes no longer than that
FRAME_WAIT = 5.0  # [s] for frames of the objects of a file
LOOK_PERIOD = 0.05  # [s] between looks at joints beside the chain
MOVED = 1e-3  # [rad or m] by which such a joint has moved
NO_ROBOT = "there is no robot yet"
LOST = (
    "changes of the scene came faster than they are applied, or could not be read, {} are lost: "
    "send the whole scene (planning_scene or apply_planning_scene, is_diff false)"
)


class KeptScene(NamedTuple):
    """The scene of one description, or the reason why there is none."""

    tree: Tree | None = None
    scene: planning_scene.PlanningScene | None = None
    reason: str = NO_ROBOT  # empty with a scene
    prepared: planning_scene.PlanningScene | None = None  # as it stands for the stream
    is_pending: bool = False  # it is being prepared, for the reason given


class PlanningSceneMonitor:
    """Keeps the planning scene of the robot in use, replaced with the robot.

    Args:
        current: Returns joint positions of an arm by name [rad or m].
        adopt: Takes the SRDF of a robot, in the thread of the scene.
        equip: Takes the scene of a robot for its stream, in that thread; or the reason why there is
            none.
        await_kernels: Returns when the kernels of a scene are loaded, or raises a SceneError; gets
            a function to call with the reason while they are not.

    Raises:
        SceneError: If the file of the parameter `scene` is not one.
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
        self._node, self._current, self._frames = node, current, frames
        self._adopt, self._equip, self._await_kernels = adopt, equip, await_kernels
        self._folders = parameters.mesh_folders
        file = parameters.scene
        self._first = read_scene(file, allow=self._folders) if file else SceneChange(())
        self._log, self._said = Throttle(node), set[str]()
        self._executor = SerialExecutor("scene", self._fault, MAX_WAITING, MAX_WAITING_BYTES)
        self._kept = KeptScene()
        self._arm: Arm | None = None
        self._semantic = parameters.robot_description_semantic  # XML
        self._heard = threading.Event()  # an SRDF
        self._shown = -math.inf  # [s] when the stream saw the last change
        self._lost = 0  # changes that were too long or too many; the receiving thread counts them
        self._unread = 0  # changes that were not readable; the thread of the scene counts them
        self._lost_before = 0  # the same, when the job that runs came
        self._made_good = 0  # the same, when a whole scene came that was applied
        self._looked = -math.inf  # [s] when joints beside the chain were looked at
        self._begin = time.monotonic()
        if not self._semantic:
            self._topic = node.resolve_topic_name(SEMANTIC)
            node.create_subscription(String, SEMANTIC, self._take_srdf, LATCHED, raw=True)
        for topic, kind in TOPICS.items():
            self._subscribe(kind, topic)
        self._move_group: WholeScene | None = None
        if parameters.monitored_planning_scene:
            self._subscribe(PlanningScene, parameters.monitored_planning_scene)
            self._move_group = WholeScene(
                node, parameters.monitored_planning_scene, self._log, self._take_whole
            )

    def use(self, arm: Arm) -> None:
        """Take the robot that is in use from now on; its scene is built in a thread."""
        before, self._arm = self._arm, arm
        if before is not None and before.tree is arm.tree:
            return
        self._build_later(arm)
        if self._move_group is not None:
            self._move_group.ask_anew()

    def _build_later(self, arm: Arm) -> None:
        self.submit(partial(self._build, arm.robot), is_bounded=False)

    def close(self) -> None:
        """Build and change no more."""
        self._executor.close()

    def scene(self, tree: Tree) -> planning_scene.PlanningScene:
        """Return the scene of the robot in use.

        Raises:
            ScenePendingError: If the scene is being prepared.
            SceneError: If there is none; with the reason.
        """
        kept = self._kept
        if kept.tree is not tree:
            raise ScenePendingError(PREPARING)
        if kept.scene is None:
            raise (ScenePendingError if kept.is_pending else SceneError)(kept.reason)
        return kept.scene

    def look(self, arm: Arm, now: float, measured: Callable[[], Mapping[str, float]]) -> str:
        """Look at the scene of an arm in a cycle of its stream.

        Args:
            now: [s] steady.
            measured: Returns measured positions by name [rad or m].

        Returns:
            Why the stream may not move: changes of the scene were lost. Empty: it may.
        """
        if arm.beside:
            self._look_at_joints(arm, now, measured)
        lost = self._lost - self._made_good + self._unread
        return LOST.format(lost) if lost > 0 and arm.surroundings.scene is not None else ""

    def _look_at_joints(
        self, arm: Arm, now: float, measured: Callable[[], Mapping[str, float]]
    ) -> None:
        """Place links that joints beside the chain move, where these have moved."""
        kept = self._kept
        if now - self._looked < LOOK_PERIOD:
            return
        self._looked = now
        if kept.scene is None or kept.tree is not arm.tree:
            return
        values = measured()
        before = kept.scene.snapshot.values
        beside = {name: values[name] for name in arm.beside if name in values}
        if any(abs(value - before.get(name, math.inf)) > MOVED for name, value in beside.items()):
            self.submit(partial(self._place, kept, beside), is_quick=True)

    def _place(self, kept: KeptScene, values: Mapping[str, float]) -> None:
        if kept.scene is not None:
            kept.scene.apply([SetJoints(values)], prepare=False)

    def _show(self, at_once: bool = False) -> None:
        """Let the stream see the scene as it stands, unless more changes are about to come.

        Args:
            at_once: Whatever is about to come.
        """
        now, kept = time.monotonic(), self._kept
        if kept.scene is None or kept.prepared is None:
            return
        snapshot = kept.scene.snapshot
        if kept.prepared.snapshot is snapshot:
            return
        if self._executor.has_more and now - self._shown < SHOWN and not at_once:
            return
        prepare(snapshot)
        kept.prepared.replace_snapshot(snapshot)
        self._shown = now

    def submit(
        self,
        job: Callable[[], None],
        size: int = 0,
        *,
        is_quick: bool = False,
        is_bounded: bool = True,
    ) -> bool:
        """Run a job in the thread of the scene, after all changes so far; False: too many wait.

        Args:
            size: Bytes that it holds.
            is_quick: It takes less than SHOWN: the stream need not see the changes before it first.
            is_bounded: False: it is taken however many wait.
        """
        lost = self._lost

        def run() -> None:
            self._lost_before = lost
            try:
                if not is_quick:
                    self._show(at_once=True)
            finally:
                try:
                    job()
                finally:  # whatever it was: a change before it may not be shown yet
                    self._show()

        return self._executor.submit(run, size, is_bounded)

    def change(self, message: Any, source: str, at_once: bool = False) -> bool:
        """Apply a message, in the thread of the scene; log why it is refused.

        Args:
            message: moveit_msgs/PlanningScene, CollisionObject or AttachedCollisionObject.
            source: The topic or service that it came by.
            at_once: The stream sees it before this returns.

        Returns:
            True if the scene was changed.
        """
        arm = self._arm
        try:
            if arm is None:
                raise SceneError(NO_ROBOT)
            scene = self._scene_of_root(arm.tree) or self.scene(arm.tree)
            current, tree = self._current(arm), scene.robot.tree
            values = {name: value for name, value in current.items() if name in tree.mimic_of}
            change = for_scene(read_messages(message), scene.snapshot)
            operations = located(change.operations, scene.snapshot, values, self._frames)
            scene.apply(operations, at=values, prepare=not self._executor.has_more)
            self._show(at_once)
        except DlsIkError as error:
            message = f"a change of the scene on {source} is refused, the scene stays: {error}"
            self._log.warn_each(f"refused on {source}", message, REASONS)
            return False
        if not getattr(message, "is_diff", True):
            self._make_good()
        model = getattr(message, "robot_model_name", "")
        if model and model != tree.name:
            self._say_once(f"it is for robot {quoted(model)}, and used for {tree.name!r}", source)
        for note in change.notes:
            self._say_once(note, source)
        return True

    def _scene_of_root(self, tree: Tree) -> planning_scene.PlanningScene | None:
        """Return the kept scene if its poses are in the frame of the root link of a robot."""
        scene = self._kept.scene
        return scene if scene is not None and scene.robot.tree.root == tree.root else None

    def _take_whole(self, message: Any, source: str) -> None:
        """Apply the scene of move_group later; where it is refused, ask for it again."""

        def take() -> None:
            is_taken = self.change(message, source)
            if not is_taken and self._kept.scene is not None and self._move_group is not None:
                self._move_group.ask_anew(ASK_AGAIN)

        self.submit(take, is_bounded=False)

    def _say_once(self, note: str, source: str) -> None:
        if note not in self._said and len(self._said) < MAX_NOTES:
            self._said.add(note)
            self._node.get_logger().warning(escape(f"scene on {source}: {note}"))

    # Topics

    def _subscribe(self, kind: Any, topic: str) -> None:
        name = self._node.resolve_topic_name(topic)

        def change_later(data: bytes) -> None:
            def change() -> None:
                message = read_bytes(self._node, data, kind, name, self._log)
                if message is None:
                    self._unread += 1
                    self._tell_of_lost(name)
                else:
                    self.change(message, name)

            if not self.submit(change, len(data), is_quick=len(data) <= QUICK):
                self._lose(name)

        def receive(data: bytes) -> None:
            if len(data) > MAX_BYTES:
                self._log.warn(
                    f"bytes on {name}",
                    f"a message on {name} has {len(data)} bytes, more than {MAX_BYTES}: it is not "
                    "read; send large meshes by apply_planning_scene",
                )
                self._lose(name)
                return
            change_later(data)
            if self._move_group is not None:
                self._move_group.note(partial(change_later, data))

        self._node.create_subscription(kind, topic, receive, QOS, raw=True)

    def _lose(self, topic: str) -> None:
        """Record a change that is not applied; the scene is not known until a whole one comes."""
        self._lost += 1
        self._tell_of_lost(topic)

    def _tell_of_lost(self, topic: str) -> None:
        lost = self._lost - self._made_good + self._unread
        self._log.warn("lost", f"{LOST.format(lost)}; the last on {topic}")
        if self._move_group is not None:
            self._move_group.ask_anew()

    def _make_good(self) -> None:
        """Forget the changes that were lost before this job came: a whole scene replaced them.

        Unreadable changes are found in the order in which jobs came, so all of them came before.
        """
        self._made_good = max(self._made_good, self._lost_before)
        self._unread = 0

    def _take_srdf(self, data: bytes) -> None:
        """Take a serialized SRDF; one that is too long is not read."""
        if len(data) > MAX_TEXT + 16:
            self._log.warn("srdf", f"the SRDF on {self._topic} is larger than {MAX_TEXT} bytes")
            return
        message = read_bytes(self._node, data, String, self._topic, self._log)
        if message is None or message.data == self._semantic:
            return
        self._semantic = message.data
        self._heard.set()
        arm = self._arm
        if arm is not None:
            self._build_later(arm)

    # The thread of the scene

    def _build(self, robot: RobotModel) -> None:
        """Build the scene of a robot, with the objects of the scene before."""
        tree, arm = robot.tree, self._arm
        if arm is None or arm.tree is not tree:
            return  # replaced meanwhile
        source = self._scene_of_root(tree)
        if self._kept.tree is not tree:
            if source is None:
                self._tell_of_lost_objects()
                self._make_good()
            self._tell_pending(tree, PREPARING)
        before = self._kept
        self._await_srdf()
        text = self._semantic
        srdf = self._read_srdf(text, tree)
        if srdf is not None:
            self._adopt(robot, srdf)
        if before.scene is not None and before.scene.srdf is None and srdf is None:
            return
        try:
            self._await_kernels(partial(self._tell_pending, tree))
            scene = self._new_scene(robot, srdf)
            if source is not None:
                self._tell_of_left_out(scene.take_over(source))
            elif self._first.operations:
                self._begin_with_file(scene, tree)
            _ = scene.snapshot.packed
        except DlsIkError as error:
            if before.scene is not None:
                self._node.get_logger().error(escape(f"the scene before stays: {error}"))
                return
            self._node.get_logger().warning(
                escape(f"collisions are not checked, requests for that are refused: {error}")
            )
            if self._keep(KeptScene(tree, None, str(error))):
                self._equip(robot, None, str(error))
            return
        kept = KeptScene(tree, scene, "", scene.copy())
        if self._keep(kept):
            self._announce(scene)
            self._equip(robot, kept.prepared, "")
        if before.scene is None and not before.is_pending and self._move_group is not None:
            self._move_group.ask_anew()  # changes that came meanwhile were refused

    def _tell_pending(self, tree: Tree, reason: str) -> None:
        """Answer requests with the reason why the scene is not there yet, if there is none."""
        if self._kept.tree is not tree or self._kept.scene is None:
            self._kept = KeptScene(tree, None, reason, is_pending=True)

    def _tell_of_lost_objects(self) -> None:
        """Log how many objects of the robot before are gone."""
        scene = self._kept.scene
        count = 0 if scene is None else len(scene.snapshot.objects) + len(scene.snapshot.attached)
        if count:
            self._node.get_logger().warning(
                f"another root link, another scene: {count} objects of the robot before are gone, "
                "publish them anew"
            )

    def _tell_of_left_out(self, names: tuple[str, ...]) -> None:
        """Log which objects of the robot before have no place in the scene of another robot."""
        if names:
            self._node.get_logger().warning(
                escape(f"another robot: it lacks the frames of {listing(names)}; publish them anew")
            )

    def _begin_with_file(self, scene: planning_scene.PlanningScene, tree: Tree) -> None:
        """Put the objects of the file into a new scene, once TF knows their frames."""
        first, begin = for_scene(self._first, scene.snapshot), time.monotonic()
        arm = self._arm
        now = {} if arm is None or arm.tree is not tree else self._current(arm)
        values = {name: value for name, value in now.items() if name in tree.mimic_of}
        while True:
            try:
                found = located(first.operations, scene.snapshot, values, self._frames)
                scene.apply(found, at=values)
                break
            except FrameError as error:
                if time.monotonic() - begin > FRAME_WAIT:
                    raise SceneError(f"{first.source}{error}") from error
                time.sleep(0.1)
            except DlsIkError as error:
                raise SceneError(f"{first.source}{error}") from error
        objects = [*scene.snapshot.objects, *scene.snapshot.attached]
        logger = self._node.get_logger()
        logger.info(escape(f"objects of {first.source}{listing(objects) or 'none'}"))
        for note in first.notes:
            logger.warning(escape(f"{first.source}{note}"))

    def _await_srdf(self) -> None:
        """Wait for an SRDF that somebody is about to send, as pairs are found by it at once."""
        while not self._semantic:
            has_publisher = self._node.count_publishers(self._topic) > 0
            waited = time.monotonic() - self._begin
            if waited > (SRDF_WAIT if has_publisher else DISCOVERY) or self._heard.wait(0.05):
                return

    def _read_srdf(self, text: str, tree: Tree) -> Srdf | None:
        if not text:
            return None
        try:
            if not text.lstrip("\ufeff \t\r\n").startswith("<"):  # else it would name a file
                raise SceneError(f"an SRDF is XML, not {quoted(text)}")
            return load_srdf(text, tree)
        except DlsIkError as error:
            self._node.get_logger().error(
                f"SRDF refused, links that may touch are found without it: {escape(str(error))}"
            )
            return None

    def _new_scene(self, robot: RobotModel, srdf: Srdf | None) -> planning_scene.PlanningScene:
        exact = find_spec(LIBRARY) is not None
        return planning_scene.PlanningScene(robot, srdf, allow=self._folders, exact=exact)

    def _keep(self, kept: KeptScene) -> bool:
        """Use a scene; return False if the robot was replaced meanwhile, whose scene follows."""
        self._kept = kept
        return self._arm is not None and self._arm.tree is kept.tree

    def _announce(self, scene: planning_scene.PlanningScene) -> None:
        now = scene.snapshot
        origin = "found by samples" if scene.srdf is None else "of the SRDF"
        logger = self._node.get_logger()
        if not now.links:
            logger.warning(
                "the robot description has no <collision> geometry: nothing is checked for "
                "collisions, and the stream keeps no distances"
            )
            return
        logger.info(
            f"scene known: collisions of {len(now.links)} links, {len(set(now.names))} pairs; "
            f"{len(scene.pairs)} others may touch, {origin}; changes on "
            f"{listing(map(self._node.resolve_topic_name, TOPICS))}"
        )
        if not now.exact:
            logger.warning(INEXACT)

    def _fault(self, error: Exception) -> None:
        kept = self._kept
        self._node.get_logger().error(trace(error))
        if kept.scene is None:
            self._kept = kept._replace(reason=f"internal error: {error!r}", is_pending=False)
            arm = self._arm
            if arm is not None and arm.tree is kept.tree:
                self._equip(arm.robot, None, self._kept.reason)


def located(
    operations: Iterable[Operation],
    scene: SceneSnapshot,
    values: Mapping[str, float],
    frames: Frames,
) -> tuple[Operation, ...]:
    """Give poses in frames that the scene does not know in the root frame, by TF.

    Args:
        values: Joint positions by name [rad or m].

    Raises:
        FrameError: a frame that nobody knows.
    """
    added: set[str] = set()  # frames that the changes themselves bring
    found: list[Operation] = []
    for given in operations:
        each = given
        if isinstance(each, (AddObject, MoveObject, AttachObject, SetFrame)):
            frame = each.parent if isinstance(each, SetFrame) else each.frame
            T = None
            if frame not in added and frame.split("/")[0] not in added:
                try:
                    T = _found_by_tf(frame, scene, values, frames)
                except FrameError as error:
                    raise FrameError(about_object(each, error)) from error
            if T is not None and isinstance(each, SetFrame):
                each = each._replace(parent="", T=T @ each.T)
            elif T is not None and not isinstance(each, SetFrame):
                each = each._replace(frame="", T=T @ each.T)
        if isinstance(each, (AddObject, SetFrame)):
            added.add(each.name)
        found.append(each)
    return tuple(found)


def _found_by_tf(
    frame: str, scene: SceneSnapshot, values: Mapping[str, float], frames: Frames
) -> Array | None:
    """Return (4, 4) ``T_root_frame`` of a frame; None: the scene knows it."""
    try:
        frame_pose(scene, frame, values)
    except SceneError:
        return frames.T_root_frame(frame, scene.tree, values)
    return None


def load_collision_library() -> None:
    """Load the library that checks collisions exactly, if it is installed."""
    if find_spec(LIBRARY) is not None:
        library()
