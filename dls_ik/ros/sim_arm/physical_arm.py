# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arm with masses, simulated in MuJoCo: drives with limited efforts, gravity and contacts.

This module imports no ROS. All times are arguments; this module reads no wall clock.
"""

import time
from collections import deque
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.ros.sim_arm.arm import (
    CommandQueue,
    Dynamics,
    Path,
    SimArmParameters,
    SimulatedJoints,
    Simulation,
    VelocityCommand,
)
from dls_ik.ros.sim_arm.physics_model import (
    SIMULATION_STEP,
    PhysicalModel,
    RobotPhysics,
    touching_pairs,
)
from dls_ik.ros.sim_arm.physics_shapes import mujoco, wxyz
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair

MAX_ADVANCE = 0.05  # [s] maximum simulated time per call, so that a late cycle still ends soon
# [s] maximum lag behind the clock; time beyond it is skipped, not simulated
MAX_SIMULATED_LAG = 2.0
MIN_SEPARATION_TIME = 0.05  # [s] if a pair touches again after this time, it is a new contact
MAX_EVENTS = 100  # maximum number of contacts that wait to be logged; the oldest are dropped


class ContactEvent(NamedTuple):
    """Start of a contact between two links, or between a link and an object."""

    names: Pair
    is_object: bool  # whether the pair includes an object of the world
    time: float  # [s] simulated time


class ContactCounter:
    """Counter of contacts between links and objects.

    A pair that touches again is counted again only if it was separated for `MIN_SEPARATION_TIME`.

    Attributes:
        with_objects: Number of contacts of links or attached objects with objects of the world.
        between_links: Number of contacts between links.
        duration: Simulated time with at least one contact [s].
        deepest: Maximum penetration depth of all contacts [m].
        strongest: Maximum normal force of all contacts [N].
        now: Current penetration depth of each pair that is in contact [m].
        events: New contacts, oldest first; a reader must remove the events that it has read.
    """

    def __init__(self) -> None:
        self.with_objects = self.between_links = 0
        self.duration = self.deepest = self.strongest = 0.0
        self.now: dict[Pair, float] = {}
        self.events: deque[ContactEvent] = deque(maxlen=MAX_EVENTS)
        self._last: dict[Pair, float] = {}  # [s] last simulated time at which a pair touched

    def count(self, built: PhysicalModel, data: Any) -> None:
        """Update the counts after a simulation step.

        Args:
            built: Model of the robot and objects.
            data: State of the model after the step (mujoco.MjData).
        """
        now: dict[Pair, float] = {}
        if not data.ncon:
            self.now = now
            return
        force, t = np.zeros(6), float(data.time)
        for names, is_object, depth, index in touching_pairs(built, data):
            mujoco().mj_contactForce(built.model, data, index, force)
            self.strongest = max(self.strongest, abs(float(force[0])))
            now[names] = max(now.get(names, 0.0), depth)
            if t - self._last.get(names, -np.inf) > MIN_SEPARATION_TIME:
                self.with_objects += is_object
                self.between_links += not is_object
                self.events.append(ContactEvent(names, is_object, t))
            self._last[names] = t
        if now:
            self.duration += SIMULATION_STEP
            self.deepest = max(self.deepest, *now.values())
        self.now = now  # a new dictionary, because another thread may be reading the previous one


class PhysicalFigures(NamedTuple):
    """Statistics of an arm with masses since the previous report."""

    simulated: float  # [s] simulated time
    real_time_factor: float  # simulated time / processor time; NaN: nothing was simulated
    lost: float  # [s] time that was not simulated, since the start of the simulation
    tracking_error: float  # [rad or m] maximum of |reference - joint position| over all joints
    effort_share: float  # maximum of |effort| / effort limit over all drives
    weakest: str  # name of the joint with the maximum effort_share


class PhysicalArm:
    """Arm with masses whose drives follow commands with limited efforts.

    The effort of a drive is ``kp (r - q) + kv (f r' - q')`` plus the compensation of gravity,
    limited to the maximum effort of the drive. Here q is the joint position, r the reference,
    which follows the commanded position within the velocity limits, and f the fraction
    `velocity_feedforward`. With the maximum inertia J about the joint, of the links and of the
    rotor of the drive, the gains are ``kp = (2 pi bandwidth)^2 J``, but at most the maximum effort
    divided by `full_effort_error`, and ``kv = 2 damping sqrt(kp J)``. The times that are passed to
    successive calls must not decrease.

    Args:
        robot: Masses, drives and shapes of the robot.
        names: (n,) commanded joints; the drives of other joints hold their default positions.
        others: (m - n,) other joints whose state is also published.
        start: (n,) initial joint positions, which are also the first command [rad or m].
        dynamics: Response of the joints to commands.
        seed: Seed of the measurement noise.
        now: Initial time [s].
    """

    def __init__(
        self,
        robot: RobotPhysics,
        names: tuple[str, ...],
        others: tuple[str, ...],
        start: Array,
        dynamics: Dynamics,
        seed: int,
        now: float,
    ) -> None:
        self.frozen = False  # True: the drives hold their current reference and ignore commands
        self.contacts = ContactCounter()
        self._robot, self._library = robot, mujoco()
        self._order = np.array([robot.drives.index(name) for name in names])
        self.joint_names = (*names, *others)  # (m,) published joints
        self._reported = np.array([robot.joints.index(name) for name in self.joint_names])
        rest = robot.tree.values()
        self._rest = np.array([rest[name] for name in robot.drives])
        self._random = np.random.default_rng(seed)
        self._time, self._lost = now, 0.0
        self._dynamics = dynamics
        self._built = robot.build()
        self._data = self._library.MjData(self._built.model)
        self._tune()
        self.reset(start)
        self._begin_report()

    # State

    @property
    def dynamics(self) -> Dynamics:
        """Response of the joints to commands; an assigned value takes effect immediately."""
        return self._dynamics

    @dynamics.setter
    def dynamics(self, dynamics: Dynamics) -> None:
        self._dynamics = dynamics
        self._tune()

    @property
    def q(self) -> Array:
        """True positions of the published joints (m,) [rad or m]."""
        return np.array(self._data.qpos[self._built.positions][self._reported])

    def values(self) -> dict[str, float]:
        """Return the positions of all moving joints of the robot by joint name [rad or m]."""
        found = self._data.qpos[self._built.positions].tolist()
        return dict(zip(self._robot.joints, found, strict=True))

    @property
    def velocity(self) -> Array:
        """True velocities of the published joints (m,) [rad/s or m/s]."""
        return np.array(self._data.qvel[self._built.velocities][self._reported])

    @property
    def effort(self) -> Array:
        """Efforts of the drives of the published joints (m,) [N m or N]; 0 for mimic joints."""
        return np.array(self._data.qfrc_actuator[self._built.velocities][self._reported])

    def measured(self) -> Array:
        """Return the true positions of the published joints plus noise, shape (m,) [rad or m].

        Each call draws new noise.
        """
        return self.q + self._dynamics.noise * self._random.standard_normal(len(self._reported))

    # Commands and time

    def reset(self, start: Array) -> None:
        """Set the positions (n,) [rad or m] of the commanded joints at once; drop all commands.

        All other joints are set to their default positions.
        """
        data, model = self._data, self._built.model
        kept = data.mocap_pos.copy(), data.mocap_quat.copy(), data.time
        self._library.mj_resetData(model, data)
        data.mocap_pos[:], data.mocap_quat[:], data.time = kept
        full = self._rest.copy()
        full[self._order] = start
        data.qpos[:] = self._robot.values(full, self._built)
        self._reference = full
        self._commands = CommandQueue(start)
        self._library.mj_forward(model, data)

    def command(self, path: Path | VelocityCommand, now: float) -> None:
        """Follow a path or velocities from the time `now` [s] on, instead of the last command."""
        self._commands.add(path, now)

    def advance(self, now: float) -> None:
        """Advance the simulation by whole steps toward the time `now` [s].

        A call advances by at most `MAX_ADVANCE`; later calls catch up. If the simulation lags by
        more than `MAX_SIMULATED_LAG`, the excess is not simulated.
        """
        if now - self._time > MAX_SIMULATED_LAG:
            self._lost += now - MAX_SIMULATED_LAG - self._time
            self._time = now - MAX_SIMULATED_LAG
        begin = time.thread_time()
        steps = int((min(now, self._time + MAX_ADVANCE) - self._time) / SIMULATION_STEP + 1e-6)
        for _ in range(steps):
            self._step()
        self._commands.forget(self._time - self._dynamics.delay)
        self._busy += time.thread_time() - begin

    def _step(self) -> None:
        self._time += SIMULATION_STEP
        data = self._data
        goal, velocity = self._goal(self._time - self._dynamics.delay)
        step = np.zeros(len(self._reference))
        bound = self._dynamics.velocity * SIMULATION_STEP
        step[self._order] = np.clip(goal - self._reference[self._order], -bound, bound)
        self._reference += step
        known = np.zeros(len(step))
        known[self._order] = np.clip(velocity, -self._dynamics.velocity, self._dynamics.velocity)
        known *= self._dynamics.drive.velocity_feedforward
        data.ctrl[:] = self._kp * self._reference + self._kv * known
        self._library.mj_step(self._built.model, data)
        self.contacts.count(self._built, data)
        self._report(data)

    def _goal(self, t: float) -> tuple[Array, Array]:
        """Return the commanded positions (n,) [rad or m] and velocities (n,) at time t [s].

        If the drives are frozen, these are the current reference and 0.
        """
        if self.frozen:
            return self._reference[self._order], np.zeros(len(self._order))
        return self._commands.path(t).at(t)

    # Model

    def use(self, built: PhysicalModel) -> None:
        """Replace the model by another model of the same robot with other objects.

        The motion of the robot continues, because its state is copied.
        """
        before = self._data
        data = self._library.MjData(built.model)
        for name in ("qpos", "qvel", "ctrl", "qacc_warmstart"):
            getattr(data, name)[:] = getattr(before, name)
        data.time = before.time
        self._built, self._data = built, data
        self._tune()
        self._library.mj_forward(built.model, data)

    def move_objects(self, poses: Mapping[str, Array]) -> None:
        """Move objects of the world to the given poses ``T_root_object`` (4, 4), by object name."""
        for name, T in poses.items():
            index = self._built.mocap[name]
            self._data.mocap_pos[index] = T[:3, 3]
            self._data.mocap_quat[index] = wxyz(T)

    def _tune(self) -> None:
        """Set the gains, effort limits and rotor inertias of the drives in the MuJoCo model."""
        drive, loads, model = self._dynamics.drive, self._robot.loads, self._built.model
        k = len(self._robot.drives)
        effort = drive.effort_scale * loads.effort
        rotor = loads.effort / drive.rotor_acceleration
        inertia = loads.inertia + rotor
        wanted = (2.0 * np.pi * drive.bandwidth) ** 2 * inertia
        self._kp = np.minimum(wanted, effort / drive.full_effort_error)
        self._kv = 2.0 * drive.damping * np.sqrt(self._kp * inertia)
        self._effort = effort
        joints = model.actuator_trnid[:, 0]
        model.actuator_gainprm[:, 0] = 1.0
        model.actuator_biasprm[:, 1], model.actuator_biasprm[:, 2] = -self._kp, -self._kv
        limits = np.column_stack([-effort, effort])
        model.actuator_forcerange[:], model.jnt_actfrcrange[joints] = limits, limits
        model.dof_armature[self._built.velocities[:k]] = rotor
        model.body_gravcomp[1:] = drive.gravity_compensation

    @property
    def bandwidths(self) -> Array:
        """Bandwidths of the drives of the commanded joints (n,) [Hz].

        A bandwidth is smaller than the parameter `bandwidth` if `full_effort_error` limits the
        gain of the drive.
        """
        loads, drive = self._robot.loads, self._dynamics.drive
        inertia = loads.inertia + loads.effort / drive.rotor_acceleration
        return np.array((np.sqrt(self._kp / inertia) / (2.0 * np.pi))[self._order])

    # Report

    def _begin_report(self) -> None:
        self._busy = self._error = self._share = 0.0
        self._weakest, self._since = "", float(self._data.time)

    def _report(self, data: Any) -> None:
        k = len(self._robot.drives)
        error = np.abs(data.qpos[self._built.positions[:k]] - self._reference)
        self._error = max(self._error, float(error[self._order].max()))
        share = np.abs(data.qfrc_actuator[self._built.velocities[:k]]) / self._effort
        worst = int(np.argmax(share))
        if share[worst] > self._share:
            self._share, self._weakest = float(share[worst]), self._robot.drives[worst]

    def figures(self) -> PhysicalFigures:
        """Return the statistics since the previous call of this method."""
        simulated = float(self._data.time) - self._since
        factor = simulated / self._busy if self._busy > 0.0 else np.nan
        found = PhysicalFigures(
            simulated, factor, self._lost, self._error, self._share, self._weakest
        )
        self._begin_report()
        return found


class PhysicalSimulation(Simulation):
    """Simulation of an arm with masses among objects.

    Methods are thread-safe, except :meth:`use_scene`.

    Args:
        robot: Masses, drives and shapes of the robot.
        joints: Commanded joints.
        parameters: Parameters of the node.
        now: Initial time [s].

    Raises:
        JointValueError: If the parameter `initial_positions` has a wrong number of values, or a
            value that is not finite.
        PhysicsError: If MuJoCo cannot compile the model of the robot.
    """

    _arm: PhysicalArm

    def __init__(
        self,
        robot: RobotPhysics,
        joints: SimulatedJoints,
        parameters: SimArmParameters,
        now: float,
    ) -> None:
        self.robot = robot
        self._scene: SceneSnapshot | None = None
        others = tuple(name for name in robot.joints if name not in joints.names)
        others = others if parameters.all_joints else ()

        def make(start: Array, dynamics: Dynamics, seed: int, at: float) -> PhysicalArm:
            return PhysicalArm(robot, joints.names, others, start, dynamics, seed, at)

        super().__init__(joints._replace(others=others), parameters, now, make)

    def use_scene(self, scene: SceneSnapshot) -> None:
        """Replace the simulated objects by the objects of a scene.

        All calls must come from the same thread.

        Raises:
            PhysicsError: If MuJoCo cannot compile a model with the objects. In this case the
                previous objects remain.
        """
        before = self._scene
        if before is not None and _differs_in_poses(before, scene):
            moved = {
                name: each.T
                for name, each in scene.objects.items()
                if each.T is not before.objects[name].T
            }
            with self._lock:
                self._arm.move_objects(moved)
        else:
            built = self.robot.build(scene)
            with self._lock:
                self._arm.use(built)
        self._scene = scene

    def figures(self) -> PhysicalFigures:
        """Return the statistics since the previous call of this method."""
        with self._lock:
            return self._arm.figures()

    @property
    def contacts(self) -> ContactCounter:
        """Counter of the contacts since the start of the simulation."""
        return self._arm.contacts

    def values(self) -> dict[str, float]:
        """Return the positions of all moving joints of the robot by joint name [rad or m]."""
        with self._lock:
            return self._arm.values()

    @property
    def bandwidths(self) -> Array:
        """Bandwidths of the drives of the commanded joints (n,) [Hz]; see :class:`PhysicalArm`."""
        return self._arm.bandwidths


def _differs_in_poses(before: SceneSnapshot, after: SceneSnapshot) -> bool:
    """Return whether two scenes differ in nothing but the poses of objects of the world."""
    return (
        before.attached is after.attached
        and before.allowed is after.allowed
        and before.passes is after.passes
        and before.objects.keys() == after.objects.keys()
        and all(each.body is after.objects[name].body for name, each in before.objects.items())
    )
