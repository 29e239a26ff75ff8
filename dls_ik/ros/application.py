# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Application of ``ik_node``: connects the arm to services, planning scene and servo loop."""

import gc
import math
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from rclpy.node import Node
from rclpy.task import Future

from dls_ik.core.jit import MissingKernelError
from dls_ik.core.types import Array
from dls_ik.errors import (
    Code,
    DlsIkError,
    FrameError,
    RequestError,
    RobotModelError,
    SceneError,
)
from dls_ik.model.robot import RobotModel
from dls_ik.ros import PROCESS_START, process
from dls_ik.ros.arm import PREPARING, Arm, Surroundings
from dls_ik.ros.bounds import build_workspace
from dls_ik.ros.compatibility import ServoParameters, is_servo, servo_parameters
from dls_ik.ros.frames import Frames, tf2_lookup
from dls_ik.ros.kernels import KernelBuilder
from dls_ik.ros.params import MODE_NONE, MODE_REQUIRED, Parameters
from dls_ik.ros.presets import is_of_preset, with_preset
from dls_ik.ros.process import LiveParameters, given_values, spin
from dls_ik.ros.robot_source import DescriptionTopic, robot_from_parameters
from dls_ik.ros.services.executor import LatestOnlyExecutor
from dls_ik.ros.services.robot_scene import NO_ROBOT
from dls_ik.ros.services.scene_build import FRAME_TIMEOUT, load_collision_library
from dls_ik.ros.services.scene_monitor import PlanningSceneMonitor
from dls_ik.ros.services.server import IK_SERVICES, ServiceServer
from dls_ik.ros.servo.loop import ServoLoop
from dls_ik.ros.subscriptions import TypeMonitor
from dls_ik.ros.util import give_back_memory, trace
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.srdf import Srdf
from dls_ik.servo.options import GENTLE_TIP_ACCELERATION, motion_limits
from dls_ik.text import escape, listing
from dls_ik.warm_up import SCENE_USES, can_keep_kernels

if TYPE_CHECKING:
    from dls_ik.ros.actions.motion_actions import MotionActions

MAX_KERNEL_BUILDS = 20  # maximum number of builds of missing kernels that one robot waits for
THREAD_SWITCH_INTERVAL = 3e-4  # [s] less than a cycle; Python's default is 5 ms


def describe_acceleration(arm: Arm) -> str:
    """Return a log text with the acceleration limits of an arm and the origin of the limits."""
    parameters = arm.parameters
    limits, _ = motion_limits(arm.controller.options, arm.robot)
    numbers = ", ".join(f"{limit:.3g}" for limit in limits)
    units = " and ".join(sorted({f"{unit}/s^2" for unit in arm.robot.units}, reverse=True))
    if not parameters.acceleration:
        origin = (
            f"the default, with which no single joint accelerates the tip by more than "
            f"{GENTLE_TIP_ACCELERATION:g} m/s^2; set other limits by -p acceleration:=[...]"
        )
    elif parameters.preset and is_of_preset(parameters, "acceleration"):
        origin = f"from the preset {parameters.preset}"
    else:
        origin = "from the parameter acceleration"
    return f"acceleration up to {numbers} {units}: {origin}"


def log_servo_parameters(node: Node, given: ServoParameters) -> None:
    """Log which parameters of MoveIt Servo the node uses, and why it does not use the others."""
    if given.used:
        node.get_logger().info(f"parameters of MoveIt Servo in use: {listing(given.used, 40)}")
    if given.notes:
        words = "; ".join(f"{name}: {note}" for name, note in given.notes.items())
        node.get_logger().info(f"parameters of MoveIt Servo without effect: {words}")


def serve_ik(node: Node, stop: Future) -> bool:
    """Run ``ik_node`` until the future `stop` is done.

    Returns:
        True; False if `stop` was done while kernels were compiled, which continues in a thread.
    """
    given = given_values(node)
    live = LiveParameters(node, with_preset(given))
    if is_servo(given):
        log_servo_parameters(node, servo_parameters(given))
    kernels = KernelBuilder(node.get_logger())
    if not _compile_kernels(node, stop):
        return False
    kernels.take_over_compilation()
    load_collision_library()  # the import blocks all threads for 0.1 s
    application = Application(node, live, kernels)
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL)
    try:
        application.prepare()
        gc.collect()
        gc.freeze()  # collecting Numba's many objects would block the stream for 50 ms
        gc.enable()
        give_back_memory()
        application.start()
        spin(node, stop)
    finally:
        application.stop()
    return True


def _compile_kernels(node: Node, stop: Future) -> bool:
    """Compile or load the kernels that every node needs.

    If there is no disk cache for kernels, compile all kernels, including those of collision checks.

    Returns:
        Whether the kernels are ready; False if `stop` was done during the compilation.
    """
    announce, wanted = node.get_logger().info, lambda: not stop.done()
    if not process.warm_up(announce, wanted):
        return False
    return can_keep_kernels() or process.warm_up(announce, wanted, SCENE_USES)


class Application:
    """Application of ``ik_node``: owns the arm in use, the services, the scene and the servo loop.

    When the robot or a parameter changes, a new :class:`~dls_ik.ros.arm.Arm` replaces the arm in
    use. A robot from the topic is prepared in a separate thread before it replaces the previous
    robot. Requests that arrived before the replacement are answered with the previous robot.
    """

    def __init__(
        self, node: Node, live: LiveParameters[Parameters], kernels: KernelBuilder | None = None
    ) -> None:
        self._node, self._kernels = node, kernels
        self._live = live
        self._parameters = live.current  # current values, or values that are about to be current
        self._arm: Arm | None = None
        self._first: Arm | None = None  # arm with the robot of the parameters
        self._reason = ""  # reason why the robot of the parameters is not usable
        self._swap = threading.Lock()  # guards changes of the arm and the parameters
        self._builder = LatestOnlyExecutor(self._fault)
        self._description: DescriptionTopic | None = None  # None: the parameters give the robot
        self._executor = ThreadPoolExecutor(1, "planner")
        frames = Frames(tf2_lookup(node))
        self._loop = ServoLoop(node, live.current, frames)
        current = self._loop.cycle.current
        self._frames = frames
        waits = () if kernels is None else (kernels.await_scene,)
        self._scenes = PlanningSceneMonitor(
            node, live.current, current, frames, self._adopt, self._equip, *waits
        )
        self._loop.cycle.set_hold_check(self._scenes.check_stream)
        self._services = ServiceServer(node, self.arm, current, frames, live.current, self._scenes)
        self._actions = self._new_actions(node, live.current)
        TypeMonitor(node)
        live.on_change(self._change)

    def prepare(self) -> None:
        """Build the arm for the robot of the parameters, if they select a usable robot.

        This is done before the stream starts, because it would block the stream.

        Raises:
            DlsIkError: If a parameter does not fit the robot.
        """
        try:
            robot = robot_from_parameters(self._live.current)
        except RobotModelError as error:
            self._reason = str(error)
        else:
            if robot is not None:
                self._first = self._new_arm(robot)
                self._first.prepare()

    def start(self) -> None:
        """Start the services and the servo loop with the arm that :meth:`prepare` has built.

        If there is no such arm, wait for a robot on the topic ``robot_description``. If the robot
        of the parameters is not usable, also log the reason.

        Raises:
            DlsIkError: If a parameter does not fit the robot.
        """
        if self._first is None:
            self._wait_for_robot(self._reason)
        else:
            self._use(self._first)
        self._loop.start()
        self._services.start()
        if self._actions is not None:
            self._actions.start()

    def stop(self) -> None:
        """Stop the services, the scene and the servo loop."""
        self._builder.close()
        if self._kernels is not None:
            self._kernels.close()
        self._scenes.close()
        self._services.close()
        self._loop.stop()
        if self._actions is not None:
            self._actions.close()
        self._executor.shutdown(wait=False, cancel_futures=True)

    def _new_actions(self, node: Node, parameters: Parameters) -> "MotionActions | None":
        """Return the actions that the parameters demand; None if they demand none."""
        if not (parameters.motion_actions or parameters.move_group_interface):
            return None
        try:  # not imported at the top, because the imports take time
            from dls_ik.ros.actions.motion import MotionContext
            from dls_ik.ros.actions.motion_actions import MotionActions
        except ImportError as error:
            node.get_logger().warning(f"no actions are served: {error}; install control_msgs")
            return None
        loop, scenes = self._loop, self._scenes
        context = MotionContext(node, self.arm, loop.cycle, self._frames, scenes)
        return MotionActions(parameters, context)

    def arm(self) -> Arm:
        """Return the arm in use.

        Raises:
            RequestError: If there is no arm; the message gives the reason.
        """
        if self._arm is None:
            reason = "" if self._description is None else self._description.reason
            words = f"there is no robot: {reason}" if reason else NO_ROBOT
            raise RequestError(Code.FAILURE, words)
        return self._arm

    def _wait_for_robot(self, reason: str) -> None:
        self._description = DescriptionTopic(
            self._node,
            self._live.current,
            self._take,
            lambda: self._arm is not None,
            reason,
            self._builder.submit,
        )
        self._description.remind()

    def _take(self, robot: RobotModel) -> None:
        """Build an arm for a robot from the topic, and use it; called in the builder's thread."""
        arm = self._new_arm(robot)
        arm.prepare()
        with self._swap:
            if arm.parameters is not self._parameters:  # a parameter was changed during the build
                arm = arm.changed(self._parameters)
            self._use(arm)

    def _new_arm(self, robot: RobotModel) -> Arm:
        parameters = self._parameters
        hold_reason = PREPARING if parameters.needs_surroundings else ""
        around = Surroundings(hold_reason=hold_reason)
        return Arm(robot, parameters, self._executor, surroundings=around)

    def _equip(self, robot: RobotModel, scene: PlanningScene | None, reason: str) -> None:
        """Set the scene and the workspace bounds that limit the stream.

        This is called in the thread of the scene. Do nothing if `robot` is not in use any more.

        Args:
            robot: Robot of the scene.
            scene: Scene of the robot; None: no scene.
            reason: Reason why there is no scene; empty if there is a scene.
        """
        builds = 0  # number of kernel builds that this call has waited for
        while (before := self._arm) is not None and before.robot is robot:
            if not before.parameters.needs_surroundings:
                return
            try:
                arm = before.within(self._surroundings(before, scene, reason))
            except Exception as error:  # noqa: BLE001  after any error the arm must hold
                kernels = self._kernels if isinstance(error, MissingKernelError) else None
                if kernels is not None and builds < MAX_KERNEL_BUILDS:
                    builds += 1
                    kernels.wait()
                    continue
                if not isinstance(error, DlsIkError):
                    self._node.get_logger().error(trace(error))
                words = str(error) if isinstance(error, DlsIkError) else repr(error)
                self._node.get_logger().error(f"the stream accepts no targets: {escape(words)}")
                arm = before.within(Surroundings(hold_reason=words))
            with self._swap:
                if self._arm is before:  # otherwise a parameter was changed: start again
                    self._use(arm)
                    self._log_surroundings(arm)
                    return

    def _surroundings(self, arm: Arm, scene: PlanningScene | None, reason: str) -> Surroundings:
        parameters = arm.parameters
        mode = parameters.stream_avoid_collisions
        if mode == MODE_NONE:
            scene, reason = None, "stream_avoid_collisions is none"
        elif mode == MODE_REQUIRED and (scene is None or not scene.snapshot.links):
            why = reason or "the robot description has no collision geometry"
            raise SceneError(f"stream_avoid_collisions is required, and there is no scene: {why}")
        elif parameters.scene and scene is None:
            raise SceneError(reason)
        workspace = build_workspace(
            parameters.bound_details, arm.tree, lambda frame: self._await_frame(frame, arm)
        )
        return Surroundings(scene, workspace, reason=reason)

    def _await_frame(self, frame: str, arm: Arm) -> Array:
        """Return the pose ``T_root_frame`` (4, 4) of a frame; wait if TF does not have it yet.

        Raises:
            FrameError: If the frame is still unknown after FRAME_TIMEOUT.
        """
        end = time.monotonic() + FRAME_TIMEOUT
        while True:
            try:
                return self._frames.T_root_frame(frame, arm.tree, {})
            except FrameError:
                if time.monotonic() > end:
                    raise
            time.sleep(0.1)

    def _adopt(self, robot: RobotModel, srdf: Srdf) -> None:
        """Add the groups of an SRDF to the arm in use, if the arm has this robot.

        This is called in the thread of the scene.
        """
        while (before := self._arm) is not None and before.robot is robot:
            arm = before.with_srdf(srdf)
            arm.prepare()
            with self._swap:
                if self._arm is before:  # otherwise a parameter was changed: start again
                    self._use(arm)
                    return

    def _fault(self, error: Exception) -> None:
        if self._description is not None:
            self._description.reason = f"internal error: {error!r}"
        self._node.get_logger().error(trace(error))

    def _change(self, parameters: Parameters) -> None:
        with self._swap:
            if self._arm is not None:
                self._use(self._arm.changed(parameters))
            self._parameters = parameters

    def _use(self, arm: Arm) -> None:
        is_new = self._arm is None or self._arm.robot is not arm.robot
        self._loop.use(arm)
        self._arm = arm
        self._scenes.use(arm)
        if is_new:
            self._announce(arm)

    def _log_surroundings(self, arm: Arm) -> None:
        around, options = arm.surroundings, arm.controller.options
        has_links = around.scene is not None and bool(around.scene.snapshot.links)
        if not has_links and not around.workspace:
            return
        distance = f"keeps distances of {options.min_distance:g} m" if has_links else ""
        names = [bound.name for bound in around.workspace]
        inside = f"stays inside {listing(names)}" if names else ""
        self._node.get_logger().info(f"the stream {' and '.join(filter(None, (distance, inside)))}")
        if tight := arm.controller.tight_pairs:
            self._node.get_logger().warning(
                f"min_distance = {options.min_distance:g} m stops the arm in many configurations "
                f"because of {listing(map(str, tight))}; lower min_distance, or disable these "
                "pairs in the SRDF"
            )

    def _announce(self, arm: Arm) -> None:
        robot, node = arm.robot, self._node
        services = " and ".join(map(node.resolve_service_name, IK_SERVICES))
        groups = f" for {', '.join(arm.parameters.groups)}" if arm.parameters.groups else ""
        node.get_logger().info(
            f"ready after {time.monotonic() - PROCESS_START:.1f} s: {robot.name}, {robot.base} to "
            f"{' and '.join(robot.tips)}, joints {listing(robot.joint_names)}; {services} by "
            f"{arm.solver.method}{groups}; targets on {self._loop.target_topics} by "
            f"{arm.controller.method} at {arm.parameters.rate:g} Hz to "
            f"{' and '.join(self._loop.topics)}"
        )
        node.get_logger().info(describe_acceleration(arm))
        pairs = zip(robot.joint_names, robot.velocity, strict=True)
        unlimited = [name for name, velocity in pairs if not math.isfinite(velocity)]
        if unlimited:
            node.get_logger().warning(
                f"no velocity limit is given for {listing(unlimited)}: these joints follow targets "
                "at any speed; add <limit velocity=...> to the robot description"
            )
