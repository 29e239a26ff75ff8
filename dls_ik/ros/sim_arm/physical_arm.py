# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Simulated arm with masses in MuJoCo: drives with limited efforts, gravity and contacts.

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

MAX_ADVANCE = 0.05  # [s] maximum simulated time per call, so that a late arm publishes states
# [s] maximum lag that is simulated later, for example after a stop of the process
MAX_SIMULATED_LAG = 2.0
MIN_SEPARATION_TIME = 0.05  # [s] if a pair touches again after this time, it is a new contact
MAX_EVENTS = 100  # maximum number of contacts that are not logged yet; the oldest are dropped


class ContactEvent(NamedTuple):
    """Start of a contact of two links or objects."""

    names: Pair
    is_object: bool  # whether the pair includes an object of the world
    time: float  # [s] simulated time


class ContactCounter:
    """Counter of contacts; a contact ends when its pair was separated for `MIN_SEPARATION_TIME`.

    Attributes:
        with_objects: Number of contacts of links or attached objects with objects of the world.
        between_links: Number of contacts between links.
        duration: Time with at least one contact [s].
        deepest: Maximum penetration depth [m].
        strongest: Maximum normal force [N].
        now: Current penetration depths of the pairs in contact [m].
        events: New contacts, oldest first; the reader removes them.
    """

    def __init__(self) -> None:
        self.with_objects = self.between_links = 0
        self.duration = self.deepest = self.strongest = 0.0
        self.now: dict[Pair, float] = {}
        self.events: deque[ContactEvent] = deque(maxlen=MAX_EVENTS)
        self._last: dict[Pair, float] = {}  # simulated time of the last touch by pair [s]

    def count(self, built: PhysicalModel, data: Any) -> None:
        """Count the contacts in the state `data` after a simulation step."""
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
        self.now = now  # replaced, not modified, because another thread reads the dictionary


class PhysicalFigures(NamedTuple):
    """Statistics of an arm since the last report."""

    simulated: float  # [s] simulated time
    real_time_factor: float  # simulated time / processor time; NaN: nothing was simulated
    lost: float  # [s] total time that was not simulated
    tracking_error: float  # [rad or m] maximum difference of reference and joint position
    effort_share: float  # maximum ratio of the effort of a drive to its limit
    weakest: str  # joint with this ratio


class PhysicalArm:
    """Arm with masses whose drives follow commands with limited efforts.

    The effort of each drive is the sum of a position control with velocity feedforward,
    ``kp (r - q) + kv (f r' - q')``, and the compensation of the weight, limited to the maximum
    effort of the drive. With the sum J of the inertias of the links about the joint and of the
    rotor, ``kp = (2 pi bandwidth)^2 J``, at most effort / `full_effort_error`, and
    ``kv = 2 damping sqrt(kp J)``. The reference r follows the command within the velocity limits.
    Times must not decrease.

    Args:
        robot: Robot with all its joints.
        names: (n,) commanded joints; the drives of other joints hold their initial positions.
        others: Other joints whose state is published too.
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
        self.frozen = False  # frozen drives hold the current reference
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
        """Response of the joints to commands; an assigned value takes effect at once."""
        return self._dynamics

    @dynamics.setter
    def dynamics(self, dynamics: Dynamics) -> None:
        self._dynamics = dynamics
        self._tune()

    @property
    def q(self) -> Array:
        """True joint positions (m,) [rad or m]."""
        return np.array(self._data.qpos[self._built.positions][self._reported])

    def values(self) -> dict[str, float]:
        """Return the positions of all joints of the robot by name [rad or m]."""
        found = self._data.qpos[self._built.positions].tolist()
        return dict(zip(self._robot.joints, found, strict=True))

    @property
    def velocity(self) -> Array:
        """True joint velocities (m,) [rad/s or m/s]."""
        return np.array(self._data.qvel[self._built.velocities][self._reported])

    @property
    def effort(self) -> Array:
        """Efforts of the drives (m,) [N m or N]; 0 for mimic joints."""
        return np.array(self._data.qfrc_actuator[self._built.velocities][self._reported])

    def measured(self) -> Array:
        """Return measured joint positions (m,) [rad or m], with new noise at each call."""
        return self.q + self._dynamics.noise * self._random.standard_normal(len(self._reported))

    # Commands and time

    def reset(self, start: Array) -> None:
        """Set the joint positions (n,) [rad or m] at once, and drop all commands."""
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

    def command(self, path: Path, now: float) -> None:
        """Follow a path from the time `now` [s] on instead of the rest of the previous path."""
        self._commands.add(path, now)

    def advance(self, now: float) -> None:
        """Advance by whole steps to the time `now` [s], but at most by `MAX_ADVANCE` per call."""
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
        """Return the commanded joint positions (n,) and velocities (n,) at time t [s]."""
        if self.frozen:
            return self._reference[self._order], np.zeros(len(self._order))
        return self._commands.path(t).at(t)

    # Model

    def use(self, built: PhysicalModel) -> None:
        """Continue the motion in a model of the same robot with other objects."""
        before = self._data
        data = self._library.MjData(built.model)
        for name in ("qpos", "qvel", "ctrl", "qacc_warmstart"):
            getattr(data, name)[:] = getattr(before, name)
        data.time = before.time
        self._built, self._data = built, data
        self._tune()
        self._library.mj_forward(built.model, data)

    def move_objects(self, poses: Mapping[str, Array]) -> None:
        """Move objects of the world to poses ``T_root_object`` (4, 4)."""
        for name, T in poses.items():
            index = self._built.mocap[name]
            self._data.mocap_pos[index] = T[:3, 3]
            self._data.mocap_quat[index] = wxyz(T)

    def _tune(self) -> None:
        """Set the gains and limits of the drives."""
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
        """Bandwidths of the drives of the commanded joints (n,) [Hz]."""
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
        robot: Robot with all its joints.
        joints: Commanded joints.
        parameters: Parameters of the node.
        now: Initial time [s].

    Raises:
        JointValueError: If the initial positions do not fit the joints.
        PhysicsError: If MuJoCo refuses the robot.
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
        """Replace the objects by the objects of a scene; always call this from the same thread.

        Raises:
            PhysicsError: If MuJoCo refuses an object. In this case the previous objects remain.
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
        """Counter of the contacts."""
        return self._arm.contacts

    def values(self) -> dict[str, float]:
        """Return all joint positions by name [rad or m]."""
        with self._lock:
            return self._arm.values()

    @property
    def bandwidths(self) -> Array:
        """Bandwidths of the drives of the commanded joints (n,) [Hz]; see :class:`PhysicalArm`."""
        return self._arm.bandwidths


def _differs_in_poses(before: SceneSnapshot, after: SceneSnapshot) -> bool:
    """Return whether two scenes have the same objects, and differ only in poses of objects."""
    return (
        before.attached is after.attached
        and before.allowed is after.allowed
        and before.passes is after.passes
        and before.objects.keys() == after.objects.keys()
        and all(each.body is after.objects[name].body for name, each in before.objects.items())
    )
