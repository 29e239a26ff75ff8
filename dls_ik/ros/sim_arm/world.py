# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""ROS interface of the arm with masses: objects from a file and from topics, contact reports."""

import math
import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node
from sensor_msgs.msg import JointState

from dls_ik.errors import DlsIkError, SceneError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.frames import Frames, tf2_lookup
from dls_ik.ros.services.change_queue import MAX_QUEUED_BYTES, MAX_QUEUED_CHANGES
from dls_ik.ros.services.executor import SerialExecutor
from dls_ik.ros.services.robot_scene import MAX_PUBLISH_DELAY
from dls_ik.ros.services.scene_frames import resolve_frames
from dls_ik.ros.services.scene_monitor import MAX_CHANGE_BYTES, SCENE_QOS, SCENE_TOPICS
from dls_ik.ros.services.whole_scene import WholeScene
from dls_ik.ros.servo.monitor import DIAGNOSTICS_PERIOD, DIAGNOSTICS_TOPIC
from dls_ik.ros.sim_arm.arm import SimArmParameters, SimulatedJoints
from dls_ik.ros.sim_arm.physical_arm import PhysicalFigures, PhysicalSimulation
from dls_ik.ros.sim_arm.physics_model import RobotPhysics
from dls_ik.ros.sim_arm.physics_shapes import mujoco
from dls_ik.ros.subscriptions import call_every, read_bytes
from dls_ik.ros.util import Throttle, trace
from dls_ik.scene.changes import apply_changes
from dls_ik.scene.formats import read_scene
from dls_ik.scene.messages import read_messages
from dls_ik.scene.operations import Operation, ReplaceAllowed, ResetAllowed, SetPadding, SetScale
from dls_ik.scene.shapes import Body, link_bodies
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.text import escape, listing, span

SCENE_TOPIC = "planning_scene"  # topic of the scene; get_planning_scene is in the same namespace
MIN_SATURATED_SHARE = 0.999  # fraction of its effort limit at which a drive counts as saturated
# These operations affect planning, but not the contacts of an arm with masses, and are ignored.
PLANNING = (ReplaceAllowed, ResetAllowed, SetPadding, SetScale)


class Stage(NamedTuple):
    """Simulation of an arm with masses, and the scene with the objects around the arm."""

    simulation: PhysicalSimulation
    scene: SceneSnapshot  # scene after all received changes
    shown: SceneSnapshot  # scene in the MuJoCo model, possibly without the last changes


class PhysicalWorld:
    """Simulated arm with masses, with the topics of objects and the reports of contacts.

    One thread replaces the arm and applies all changes of objects, in the order of arrival.

    Raises:
        PhysicsError: If MuJoCo is not installed.
    """

    def __init__(self, node: Node, parameters: SimArmParameters, log: Throttle) -> None:
        mujoco()
        self._node, self._parameters, self._log = node, parameters, log
        self._frames = Frames(tf2_lookup(node))
        self._stage: Stage | None = None
        self._last_update = -math.inf  # [s] time of the last update of the MuJoCo model
        self._said = set[str]()
        self._whole: WholeScene | None = None  # client that requests the scene of the ik node
        self._executor = SerialExecutor("scene", self._fault, MAX_QUEUED_CHANGES, MAX_QUEUED_BYTES)
        for topic, kind in SCENE_TOPICS.items():
            self._subscribe(kind, topic)
        self._publisher = node.create_publisher(DiagnosticArray, DIAGNOSTICS_TOPIC, 10)
        call_every(node, DIAGNOSTICS_PERIOD, self._publish)

    def simulate(self, robot: RobotModel, joints: SimulatedJoints) -> PhysicalSimulation:
        """Return a new simulation of a robot with the objects of the scene file, if one is given.

        Also start to apply the changes of objects from topics to this simulation.

        Raises:
            DlsIkError: If the robot cannot be simulated, or if the scene file cannot be read.
        """
        logger, tree = self._node.get_logger(), robot.tree
        bodies: dict[str, Body] = {}
        if tree.description is not None:
            try:
                bodies = link_bodies(tree.description, self._parameters.mesh_folders)
            except SceneError as error:
                logger.warning(escape(f"contacts of the links are not simulated: {error}"))
        physics = RobotPhysics(tree, bodies)
        for note in physics.notes:
            logger.warning(escape(note))
        scene = SceneSnapshot(tree, robot.joint_names, bodies, {})
        simulation = PhysicalSimulation(physics, joints, self._parameters, time.monotonic())
        if file := self._parameters.scene:
            change = read_scene(file, allow=self._parameters.mesh_folders)
            try:
                scene = self._changed(scene, change.operations, simulation)
            except DlsIkError as error:
                raise SceneError(f"{change.source}{error}") from error
            simulation.use_scene(scene)
            names = escape(listing(scene.objects))
            logger.info(f"loaded the objects of {escape(file)}: {names}")
        if note := physics.solids.note:
            logger.warning(note)
        logger.info(
            f"simulating with MuJoCo {mujoco().__version__}: position control with a bandwidth of "
            f"{span(simulation.bandwidths.tolist(), 'Hz')}; objects are received on "
            f"{listing(map(self._node.resolve_topic_name, SCENE_TOPICS))}"
        )
        self._submit(partial(self._use, Stage(simulation, scene, scene)), is_bounded=False)
        if self._whole is None:
            self._whole = WholeScene(
                self._node, SCENE_TOPIC, self._log, self._add_whole, has_own=False
            )
        else:
            self._whole.request_again()
        return simulation

    def close(self) -> None:
        """Stop accepting objects, and log the number of contacts."""
        self._executor.close()
        if self._stage is None:
            return
        found = self._stage.simulation.contacts
        self._node.get_logger().info(
            f"contacts: {found.with_objects} with objects, {found.between_links} between links; "
            f"time in contact: {found.duration:.3f} s"
        )

    # Objects

    def _subscribe(self, kind: Any, topic: str) -> None:
        name = self._node.resolve_topic_name(topic)

        def change_later(data: bytes) -> None:
            def change() -> None:
                message = read_bytes(self._node, data, kind, name, self._log)
                if message is not None:
                    self._change(message, name)

            if not self._submit(change, len(data)):
                self._log.warn(
                    f"queue of {name}",
                    f"dropped a message on {name}: too many changes of objects are queued",
                )
                if self._whole is not None:
                    self._whole.request_again()

        def receive(data: bytes) -> None:
            if len(data) > MAX_CHANGE_BYTES:
                reason = f"it has {len(data)} bytes, more than {MAX_CHANGE_BYTES}"
                self._log.warn(f"bytes on {name}", f"ignored a message on {name}: {reason}")
                return
            change_later(data)
            if self._whole is not None:
                self._whole.note_change(partial(change_later, data))

        self._node.create_subscription(kind, topic, receive, SCENE_QOS, raw=True)

    def _submit(self, job: Callable[[], None], size: int = 0, *, is_bounded: bool = True) -> bool:
        def run() -> None:
            try:
                job()
            finally:  # also after an error, because earlier changes may not be in the model yet
                self._show()

        return self._executor.submit(run, size, is_bounded)

    def _use(self, stage: Stage) -> None:
        self._stage = stage

    def _add_whole(self, scene: Any, source: str) -> None:
        """Queue the objects of a whole scene, which are added to the current objects.

        Args:
            scene: ``moveit_msgs/PlanningScene`` message; changed by this method.
            source: Name of the service that sent the scene, for messages.
        """
        scene.is_diff = scene.robot_state.is_diff = True
        scene.robot_state.joint_state = JointState()

        def add() -> None:
            self._change(scene, source)
            if self._stage is not None and (names := list(self._stage.scene.objects)):
                self._node.get_logger().info(
                    escape(f"received the scene of {source}; objects: {listing(names)}")
                )

        self._submit(add, is_bounded=False)

    def _change(self, message: Any, source: str) -> None:
        """Apply a message with changes of objects; if it is refused, log the reason.

        Args:
            message: ROS message of one of the SCENE_TOPICS, or a whole scene.
            source: Topic or service of the message, for log messages.
        """
        stage = self._stage
        try:
            if stage is None:
                raise SceneError("there is no robot yet")
            change = read_messages(message)
            scene = self._changed(stage.scene, change.operations, stage.simulation)
        except DlsIkError as error:
            self._log.warn(f"refused on {source}", f"ignored a message of {source}: {error}")
            return
        self._stage = stage._replace(scene=scene)
        for note in set(change.notes) - self._said:
            self._said.add(note)
            self._node.get_logger().warning(escape(f"message of {source}: {note}"))

    def _show(self) -> None:
        """Update the MuJoCo model to the current scene, if the scene has changed.

        Postpone the update if more changes are queued and the last update is less than
        MAX_PUBLISH_DELAY ago.
        """
        stage, now = self._stage, time.monotonic()
        if stage is None or stage.shown is stage.scene:
            return
        if self._executor.has_more and now - self._last_update < MAX_PUBLISH_DELAY:
            return
        try:
            stage.simulation.use_scene(stage.scene)
        except DlsIkError as error:
            self._log.warn("not put", f"cannot apply the last changes of objects: {error}")
            self._stage = stage._replace(scene=stage.shown)
        else:
            self._stage = stage._replace(shown=stage.scene)
        self._last_update = time.monotonic()
        if note := stage.simulation.robot.solids.note:
            self._log.once("hulls", note)

    def _changed(
        self,
        scene: SceneSnapshot,
        operations: tuple[Operation, ...],
        simulation: PhysicalSimulation,
    ) -> SceneSnapshot:
        """Return the scene that results from applying operations to `scene`.

        Args:
            scene: Scene before the operations.
            operations: Changes of objects; operations that affect only planning are ignored.
            simulation: Simulation whose joint positions determine the frames of links.
        """
        values = simulation.values()
        physical = (each for each in operations if not isinstance(each, PLANNING))
        found = resolve_frames(physical, scene, values, self._frames)
        return apply_changes(scene, found, {}, values)

    def _fault(self, error: Exception) -> None:
        self._node.get_logger().error(trace(error))

    # Contacts

    def report_contacts(self) -> None:
        """Log the contacts that started since the previous call of this method."""
        if self._stage is None:
            return
        events = self._stage.simulation.contacts.events
        while events:
            names, is_object, t = events.popleft()
            kind = "contact" if is_object else "contact between links"
            message = f"{kind}: {names[0]} and {names[1]} (simulated time {t:.3f} s)"
            self._log.warn(f"contact {names}", message)

    def _publish(self) -> None:
        """Publish contacts, and statistics since the previous call, as a DiagnosticArray."""
        if self._stage is None:
            return
        simulation = self._stage.simulation
        figures, contacts = simulation.figures(), simulation.contacts
        touching = [f"{a} and {b}" for a, b in contacts.now]
        values = {
            "contacts with objects": contacts.with_objects,
            "contacts between links": contacts.between_links,
            "touching now": listing(touching) if touching else "nothing",
            "time in contact [s]": f"{contacts.duration:.3f}",
            "maximum penetration depth [m]": f"{contacts.deepest:.2g}",
            "maximum contact force [N]": f"{contacts.strongest:.3g}",
            "maximum tracking error [rad or m]": f"{figures.tracking_error:.3g}",
            "maximum effort / effort limit": f"{figures.effort_share:.2f}",
            "joint with this maximum": figures.weakest,
            "simulated time / processor time": f"{figures.real_time_factor:.3g}",
            "time not simulated [s]": f"{figures.lost:.3f}",
        }
        level, sentence = _level(figures, touching)
        status = DiagnosticStatus(level=level, name=f"{self._node.get_name()}: physics")
        status.message = sentence
        status.hardware_id = self._node.get_fully_qualified_name()
        status.values = [KeyValue(key=key, value=str(value)) for key, value in values.items()]
        message = DiagnosticArray(status=[status])
        message.header.stamp = self._node.get_clock().now().to_msg()
        self._publisher.publish(message)


def _level(figures: PhysicalFigures, touching: list[str]) -> tuple[Any, str]:
    """Return the level and the message of a diagnostic status.

    Args:
        figures: Statistics since the previous status.
        touching: Current contacts, each as a text "NAME and NAME".
    """
    if touching:
        return DiagnosticStatus.WARN, f"contact: {touching[0]}"
    if figures.effort_share >= MIN_SATURATED_SHARE:
        return DiagnosticStatus.WARN, f"the drive of {figures.weakest} is at its effort limit"
    if figures.simulated < 0.5 * DIAGNOSTICS_PERIOD:
        return DiagnosticStatus.WARN, "the simulation is slower than real time on this machine"
    return DiagnosticStatus.OK, "no contact"
