# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Stream of the node in simulated time, with a record of all published messages.

The cycles, arms, parameters and messages are those of the node (:class:`ServoCycle`). Only the
thread of the loop and the middleware are replaced: time is an argument, and the joint states come
from a simulated arm that follows the commands with a lag.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import rclpy

from benchmarks.avoidance import bodies_of
from benchmarks.composition_wire import Wire, stop_positions
from benchmarks.exact_distances import PlacedPart, World, link_tree, place_links
from benchmarks.servo_runs import moving
from dls_ik import PlanningScene, RobotModel
from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.ros.arm import Arm, Surroundings
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import JOINT_STATE, JOINT_TRAJECTORY, Parameters
from dls_ik.ros.servo.cycle import MAX_COAST_PERIODS, MAX_IN_STEP_PERIODS, ServoCycle
from dls_ik.ros.servo.freshness import READING_TIMEOUT, accepted_readings
from dls_ik.ros.servo.outputs import OUTPUT_CLASSES, JointTrajectoryOutput, OutputSpec
from dls_ik.ros.servo.state_monitor import CurrentStateMonitor, JointReading, Measurement
from dls_ik.ros.servo.target_buffer import Arrival
from dls_ik.ros.util import Throttle
from dls_ik.scene.shapes import Shape
from dls_ik.servo.knots import EARLIEST
from dls_ik.servo.motion import StopPath

START = float(2**20)  # [s] initial simulated time, ahead of the machine's clock
NEAR = 6.0  # times min_distance
WINDOW, WINDOW_PERIOD = 30, 400  # cycles whose trajectory messages are kept, and their period
ARMS: dict[str, tuple[str, str | None]] = {
    "wam": ("wam7", None),
    "panda": ("fr3", None),
    "ur": ("ur5e", None),
    "lift": ("column_lwr", None),
    "two_arms": ("two_wams", "left_wam_tip"),
}


class Settings(NamedTuple):
    """Read-only parameters of a node, and the arm behind it."""

    name: str  # name in ARMS
    rate: float  # [Hz]
    acceleration: float  # [rad/s^2]; infinite: no limit
    jerk: float  # 0: none [rad/s^3]
    min_distance: float  # [m]
    output_types: tuple[str, ...]
    trajectory_points: int
    feedback_mode: str
    when_stuck: str
    lag: float  # [s] lag of the simulated arm
    noise: float  # [rad or m] noise of the encoders
    plans_late: bool  # the planner answers after some cycles

    @property
    def has_stop(self) -> bool:
        """Return whether the arm follows the stop behind a command."""
        return JOINT_TRAJECTORY in self.output_types and self.trajectory_points != 1

    def parameters(self, q: Array) -> Parameters:
        """Return the parameters of a node whose arm starts at q (n,)."""
        given: dict[str, Any] = {
            "rate": self.rate,
            "acceleration": [self.acceleration],
            "min_distance": self.min_distance,
            "output_type": list(self.output_types),
            "trajectory_points": self.trajectory_points,
            "feedback_mode": self.feedback_mode,
            "when_stuck": self.when_stuck,
            "initial_positions": q.tolist(),
        }
        return Parameters().changed(given | ({"jerk": [self.jerk]} if self.jerk else {}))


class ArmModel(NamedTuple):
    """Robot, its scene without objects, and the judge's model of both."""

    robot: RobotModel
    scene: PlanningScene
    parts: tuple[PlacedPart, ...]
    own_pairs: tuple[tuple[int, int], ...]  # numbers of parts
    moved_by: dict[str, frozenset[str]]  # joints of the chain that move a link
    links: dict[str, int]


@cache
def arm_model(name: str, velocity: float = 2.0) -> ArmModel:
    """Return a robot of ARMS with a velocity limit for all joints [rad/s or m/s]."""
    file, tip = ARMS[name]
    robot = moving(file, velocity, tip)
    bodies = bodies_of(robot.tree) if name not in ("wam", "two_arms") else None
    scene = PlanningScene(robot, bodies=bodies)
    tree = link_tree(str(robot.tree.description.urdf))  # type: ignore[union-attr]
    links = {link: k for k, link in enumerate(tree.links)}
    moved: dict[str, frozenset[str]] = {tree.links[0]: frozenset()}
    for j, parent in enumerate(tree.model.parent.tolist()):
        own = {tree.mimic[j][0]} & set(robot.joint_names)
        moved[tree.links[j + 1]] = moved[tree.links[parent]] | own
    bodied = scene.snapshot.links
    parts = tuple(
        PlacedPart(link, links[link], shape, T)
        for link, body in bodied.items()
        for shape, T in body.parts
    )
    checked = set(scene.snapshot.names)
    pairs = tuple(
        (i, j)
        for j, b in enumerate(parts)
        for i, a in enumerate(parts[:j])
        if ((a.name, b.name) in checked or (b.name, a.name) in checked)
        and moved[a.name] != moved[b.name]
    )
    return ArmModel(robot, scene, parts, pairs, moved, links)


class Thing(NamedTuple):
    """Object that the campaign added to the scene."""

    shape: Shape
    T: Array  # (4, 4) T_root_object, or T_link_object if a link carries it
    link: str = ""  # link that carries the object; empty: none
    touch_links: frozenset[str] = frozenset()


class Surrounding:
    """Record of the campaign's objects, and the scenes for the node."""

    def __init__(self, model: ArmModel, values: dict[str, float]) -> None:
        self.things: dict[str, Thing] = {}
        self.values = dict(values)  # positions of joints outside the chain
        self._count = 0
        self.use(model)

    def use(self, model: ArmModel) -> None:
        """Place the objects around another robot; attached objects are dropped."""
        self.model, self.scene = model, model.scene.copy()
        self.things = {name: each for name, each in self.things.items() if not each.link}
        known = model.robot.tree.joint
        self.values = {name: value for name, value in self.values.items() if name in known}
        if self.values:
            self.scene.set_joints(self.values)
        for name, each in self.things.items():
            self.scene.add(name, each.shape, each.T)

    def new_name(self) -> str:
        """Return an unused object name."""
        self._count += 1
        return f"object{self._count}"

    def world(self, extra: dict[str, Thing] | None = None) -> World:
        """Return the shapes whose distances the judge computes."""
        model, things = self.model, {**self.things, **(extra or {})}
        parts, pairs = list(model.parts), list(model.own_pairs)
        moved = model.moved_by
        for name, thing in things.items():
            number, own = len(parts), moved[thing.link] if thing.link else frozenset[str]()
            for k, other in enumerate(parts):
                thing_of = things.get(other.name)
                link = other.name if thing_of is None else thing_of.link
                theirs = moved[link] if link else frozenset[str]()
                touch = thing.touch_links if thing_of is None else thing_of.touch_links
                carries = thing.link or (thing_of is not None and thing_of.link)
                may_touch = (other.name == thing.link) or (
                    bool(carries) and (other.name in thing.touch_links or name in touch)
                )
                if theirs != own and not may_touch:
                    pairs.append((k, number))
            frame = model.links[thing.link] if thing.link else 0
            parts.append(PlacedPart(name, frame, thing.shape, thing.T))
        tree = link_tree(str(model.robot.tree.description.urdf))  # type: ignore[union-attr]
        kinematics = tree.for_joints(model.robot.joint_names, self.values)
        return World(kinematics, parts, np.array(pairs, np.int64).reshape(-1, 2))

    def link_pose(self, link: str, q: Array) -> Array:
        """Return T_root_link (4, 4) at q (n,)."""
        tree = link_tree(str(self.model.robot.tree.description.urdf))  # type: ignore[union-attr]
        kinematics = tree.for_joints(self.model.robot.joint_names, self.values)
        frames = np.empty((len(tree.links), 3, 4))
        place_links(kinematics, q, frames)
        return np.vstack([frames[self.model.links[link]], [0.0, 0.0, 0.0, 1.0]])


class DelayedExecutor(Executor):
    """Executor in simulated time that runs each job some cycles after its submission."""

    def __init__(self, delay: int) -> None:
        self._delay, self._jobs = delay, list[tuple[int, Any, Future[Any]]]()
        self._cycle = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a job."""
        future: Future[Any] = Future()
        self._jobs.append((self._cycle + self._delay, lambda: fn(*args, **kwargs), future))
        return future

    def tick(self) -> None:
        """Run the jobs that are due."""
        self._cycle += 1
        due = [job for job in self._jobs if job[0] <= self._cycle]
        self._jobs = [job for job in self._jobs if job[0] > self._cycle]
        for _, work, future in due:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work())
                except Exception as error:  # noqa: BLE001  the future carries it
                    future.set_exception(error)


class SimulatedStates(CurrentStateMonitor):
    """Joint states of a simulated arm, with the freshness rules of the node."""

    def __init__(self, node: Any, display_only: bool, noise: float, seed: int) -> None:
        super().__init__(node, None, display_only)
        self._changed = -np.inf  # the subscription counts as old
        self.positions: dict[str, float] = {}
        self.heard = START  # [s] arrival of the last message
        self._noise, self._rng = noise, np.random.default_rng([seed, 99])

    def hear(self, now: float) -> None:
        """Receive joint states now [s]."""
        noise = self._noise * self._rng.standard_normal(len(self.positions))
        self.seen = dict(
            zip(
                self.positions, (np.array([*self.positions.values()]) + noise).tolist(), strict=True
            )
        )
        self.heard = now

    def values(self) -> dict[str, float]:
        """Return the last position of every joint."""
        return dict(self.seen)

    def latest(
        self, names: Any, now: float, timeout: float = READING_TIMEOUT
    ) -> Measurement | None:
        """Return the positions (n,) of joints; None without a reading of the last `timeout` [s]."""
        names, reading = tuple(names), JointReading(0.0, self.heard, self.heard)
        if not accepted_readings([reading], now, self.since_stall(now), timeout):
            return None
        if any(name not in self.seen for name in names):
            return None
        q = np.array([self.seen[name] for name in names])
        return Measurement(q, np.full(len(q), self.heard))


@cache
def quiet_node() -> Any:
    """Return the node that all streams of this process share for log lines and joint states."""
    context = rclpy.Context()
    context.init()
    node = rclpy.create_node("compositions", context=context)
    node.get_logger().set_level(rclpy.logging.LoggingSeverity.FATAL)
    return node


def close_node() -> None:
    """Shut the node of :func:`quiet_node` down, if there is one."""
    if quiet_node.cache_info().currsize:
        node = quiet_node()
        quiet_node.cache_clear()
        node.destroy_node()
        node.context.shutdown()


class Stream:
    """Stream that runs cycle by cycle, and its record.

    Args:
        q: (n,) where the arm starts.
        values: of the joints outside the chain.

    Attributes:
        wire: everything that was published, for the judges.
        failure: an exception that no caller expects; None: none so far.
    """

    def __init__(self, settings: Settings, q: Array, values: dict[str, float], seed: int) -> None:
        self.settings, self.now, self.cycles = settings, START, 0
        self.model = arm_model(settings.name)
        self.around = Surrounding(self.model, values)
        self.planner = DelayedExecutor(3 if settings.plans_late else 0)
        display_only = set(settings.output_types) == {JOINT_STATE}
        node = quiet_node()
        self.states = SimulatedStates(node, display_only, settings.noise, seed)
        log = Throttle(node, clock=lambda: self.now)
        self.cycle = ServoCycle(self.states, Frames(), log, display_only, settings.has_stop)
        self.parameters = settings.parameters(q)
        self.failure: Exception | None = None
        self.report: Any = None
        self.message: Any = None  # target of the next cycle
        self.streamed: Array | None = None  # (4, 4) the last pose of a stream
        self.slider: tuple[int, int] | None = None  # changes left, and cycles between two
        self.conveyor: tuple[str, Array, int] | None = None  # object, step (3,), steps left
        self.delay, self.lateness = (
            1.0,
            0.0,
        )  # next cycle: delay [periods], lateness of its command [s]
        self.dropout = 0  # remaining cycles without joint states
        self.truths = {
            "measurement": False,
            "plug-in": True,
            "slow plug-in": True,
            "deviation": False,
        }
        self._elapsed = (
            0.0  # time since the start [s]; `now` does not resolve fractions of a nanosecond
        )
        self._unheard = 0.0  # [s]
        self._arm_in_use: Arm | None = None
        self._gap = 0.0  # [s] time of cycles whose commands were not published
        self._stop: StopPath | None = None
        self.wire = Wire(settings)
        self.arm_q: Array = q.copy()  # (n,) position of the simulated arm
        self._goal = q.copy()
        self._hear()
        self._use(self._new_arm())

    @property
    def controller(self) -> Any:
        """The controller of the arm that moves."""
        arm = self._arm_in_use or self.arm
        return arm.controller

    @property
    def q(self) -> Array:
        """The command (n,) of the arm that moves; before the first cycle, where the arm stands."""
        if self._arm_in_use is None:
            return self.arm_q
        return np.asarray(self.controller.command)

    @property
    def period(self) -> float:
        """Period of the loop [s]."""
        return 1.0 / self.settings.rate

    def _new_arm(self) -> Arm:
        around = Surroundings(self.around.scene)
        return Arm(self.model.robot, self.parameters, self.planner, surroundings=around)

    def _use(self, arm: Arm) -> None:
        self.arm = arm
        self.cycle.use(arm)

    # Events

    def change(self, values: dict[str, Any]) -> bool:
        """Change live parameters; return False if the node refuses the values."""
        try:
            parameters = self.parameters.changed(values)
            arm = self.arm.changed(parameters)
        except DlsIkError:
            return False
        self.parameters = parameters
        self._use(arm)
        return True

    def describe(self, velocity: float) -> None:
        """Replace the robot by one with the same joints and another velocity limit."""
        self.model = arm_model(self.settings.name, velocity)
        carried = {name: each for name, each in self.around.things.items() if each.link}
        self.around.use(self.model)
        for name, each in carried.items():
            self.around.things[name] = each
            self.around.scene.add(name, each.shape, np.eye(4))
            self.around.scene.attach(name, each.link, each.touch_links, T=each.T)
        self._use(self._new_arm())
        self.scene_changed()

    def replace(self, name: str, q: Array, values: dict[str, float]) -> None:
        """Replace the robot by one with other joints, at rest at q (n,)."""
        self.settings = self.settings._replace(name=name)
        self.model = arm_model(name)
        self.around = Surrounding(self.model, values)
        self.parameters = self.parameters.changed({"initial_positions": q.tolist()})
        self._use(self._new_arm())

    @property
    def has_taken_up(self) -> bool:
        """Return whether the arm in use has the joints of the latest robot."""
        return self.robot.joint_names == self.model.robot.joint_names

    def scene_changed(self) -> None:
        """Record the current scene from the next cycle on."""
        if self._arm_in_use is not None:
            self.wire.scene(self.around.world())

    # Cycles

    @property
    def is_free(self) -> bool:
        """Return whether the arm follows no commands, so it may be moved otherwise."""
        return self.report is not None and not self.report.is_command

    @property
    def brakes(self) -> bool:
        """Return whether the arm moves near an object, where events matter most."""
        output = None if self.report is None else self.report.output
        if output is None or output.nearest is None:
            return False
        return bool(
            output.nearest.distance < NEAR * self.settings.min_distance and self.cycle.moves
        )

    def push(self, q: Array) -> None:
        """Move an arm that follows no commands to q (n,)."""
        self.arm_q, self._goal = q.copy(), q.copy()

    def advance(self, periods: float = 1.0) -> None:
        """Run a cycle, with the delays and dropouts of the events."""
        delay, self.delay = max(self.delay, periods) if self.delay > 1.0 else periods, 1.0
        late, self.lateness = self.lateness, 0.0
        is_silent, self.dropout = self.dropout > 0, max(self.dropout - 1, 0)
        self._unheard = self._unheard + delay * self.period if is_silent else 0.0
        if self._unheard > 0.4:
            self.truths["measurement"] = True
        self.step(delay, late, is_silent)

    def step(self, periods: float, lateness: float, is_silent: bool) -> None:
        """Run a cycle some periods after the last one.

        Args:
            lateness: [s] after which its command would go out.
            is_silent: no joint states are received.
        """
        self.cycles += 1
        self.now += periods * self.period
        self._elapsed += periods * self.period
        gap = self._gap + periods * self.period
        if self._stop is not None and gap > (1.0 + EARLIEST) * self.period:
            self._goal = stop_positions(self._stop, np.array([gap - self.period]))[0]
        self._follow(periods * self.period)
        if not is_silent:
            self._hear()
        arrival = None if self.message is None else Arrival(self.message, self.now, 1)
        self.message = None
        self.planner.tick()
        try:
            report = self.cycle.run(self.now, round(1e9 * self.now), gap, arrival)
            is_late = report.is_command and self.cycle.is_too_late(report, lateness)
            if is_late:
                self.cycle.roll_back(self._stop)
        except Exception as error:  # noqa: BLE001  any exception is a finding
            self.failure = error
            return
        self._gap = gap if is_late else 0.0
        self._take_up(report, gap)
        if is_late:
            self.wire.withdraw(self._stop is not None)
            return
        self.report = report
        self._publish(report, gap)

    def _take_up(self, report: Any, gap: float) -> None:
        """Record that another arm is in use from this cycle on."""
        before, arm = self._arm_in_use, report.arm
        if arm is before:
            return
        self._arm_in_use = arm
        is_same = before is not None and before.robot.joint_names == arm.robot.joint_names
        if not is_same:
            self._stop = None
            _, dt, _ = self._advance(gap, arm)
            output = report.output
            start = self.q if output is None else output.q - output.velocity * dt
            self.arm_q, self._goal = start.copy(), start.copy()
            self.wire.chapter(self.model, self.around.world(), start)
            self._outputs = self._new_outputs()
            self._hear()
        self.wire.limits(arm.robot, arm.parameters)

    def _new_outputs(self) -> list[Any]:
        names = self.model.robot.joint_names
        spec = OutputSpec(names, self.period)
        return [OUTPUT_CLASSES[each](spec) for each in self.settings.output_types]

    def _publish(self, report: Any, gap: float) -> None:
        """Record the command and all other data for the judges."""
        self._stop = None
        self.wire.state(report, self.cycles)
        if not report.is_command or report.output is None:
            self.wire.silence(None if report.output is None else report.output.q.copy())
            return
        controller, output = report.arm.controller, report.output
        stop = controller.stop_path(self.period)
        self._stop = stop if self.settings.has_stop else None
        measured = self.states.measurement(report.arm, self.now)
        rest, dt, elapsed = self._advance(gap, report.arm)
        q, knots = output.q, None
        if JOINT_TRAJECTORY in self.settings.output_types:
            knots = controller.trajectory(self.period, self.settings.trajectory_points)
        for each in self._outputs:
            is_trajectory = isinstance(each, JointTrajectoryOutput)
            if is_trajectory and self.cycles % WINDOW_PERIOD >= WINDOW:
                continue
            message = each.fill(output.q, output.velocity, round(1e9 * self.now), knots)
            if is_trajectory and self.settings.has_stop:
                self.wire.trajectory(message, self._elapsed, self.cycles)
            elif not is_trajectory:
                q = np.array(message.position if hasattr(message, "position") else message.data)
        seen = None if measured is None else measured.q
        self.wire.command(self.cycles, q, output.velocity, dt, elapsed, rest, seen, stop)
        self._goal = q

    def _advance(self, gap: float, arm: Arm) -> tuple[bool, float, float]:
        """Return how a command continues the previous command after a gap [s].

        Returns:
            True if it starts at rest; the time to it [s]; and how long the arm was on the stop
            before that [s].
        """
        if self.settings.has_stop:
            if gap <= (1.0 + EARLIEST) * self.period:
                return False, gap, 0.0
            return False, self.period, gap - self.period
        return (
            gap > MAX_COAST_PERIODS * self.period,
            gap if gap <= MAX_IN_STEP_PERIODS * self.period else self.period,
            0.0,
        )

    # The arm behind the node

    def _follow(self, dt: float) -> None:
        share = min(1.0, dt / max(self.settings.lag, 1e-9))
        self.arm_q = self.arm_q + share * (self._goal - self.arm_q)

    def _hear(self) -> None:
        robot = self.robot
        known = dict(zip(robot.joint_names, self.arm_q.tolist(), strict=True))
        self.states.positions = {**self.around.values, **known}
        self.states.hear(self.now)

    @property
    def robot(self) -> RobotModel:
        """The robot that moves."""
        return self.model.robot if self._arm_in_use is None else self._arm_in_use.robot
