# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Peers that follow streams of targets, with the settings of their documentation.

Each peer integrates its own joint positions, as its examples do. A peer whose solver fails in a
cycle keeps its joint positions. Only the controller of dls_ik is told whether a target is new; the
other packages have no input for this, and follow the newest target in each cycle.
"""

import os
from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, ClassVar

import numpy as np

from benchmarks.peers.arm import BASE, tips
from benchmarks.servo_peers.job import ServoJob


class Follower(ABC):
    """Peer that follows one stream, from joint positions `start` (n,) at rest."""

    environment: ClassVar[str] = ""  # name of its file in requirements/servo_peers
    packages: ClassVar[tuple[str, ...]] = ()  # distributions whose versions are shown
    settings: ClassVar[str] = ""  # text for the table
    weighs_posture: ClassVar[bool] = False  # whether a posture has a cost instead of a priority
    max_arms: ClassVar[int] = 2  # maximum number of arms that are followed at once

    def __init__(self, job: ServoJob, start: np.ndarray) -> None:
        self.job, self.q = job, np.array(start)
        self.posture = job.posture if job.posture.size else self.q
        self.urdf = job.arm.urdf(job.velocity, job.count)
        self.tips = tips(job.count)
        self.velocity = np.tile(job.velocity, job.count)  # limits of all joints
        self.acceleration = np.tile(job.acceleration, job.count)

    def cost_of_posture(self, default: float) -> float:
        """Return the cost of the posture, or the default of the examples."""
        return default if np.isnan(self.job.posture_cost) else self.job.posture_cost

    @abstractmethod
    def step(self, T: np.ndarray, has_arrived: np.ndarray) -> bool:
        """Run a cycle towards the newest targets T (c, 4, 4) of the c arms and set `q`.

        Args:
            T: (c, 4, 4) newest target of each arm in the base frame.
            has_arrived: (c,) bool, whether the target is new in this cycle.

        Returns:
            False if the peer reports a failure.
        """


class DlsIk(Follower):
    """Controller of dls_ik."""

    packages = ("numba",)
    settings = "defaults, acceleration limits"
    options: ClassVar[dict[str, float]] = {}

    def __init__(self, job: ServoJob, start: np.ndarray) -> None:
        super().__init__(job, start)
        from dls_ik import PostureTask, RobotModel, Task, TaskStack
        from dls_ik.servo import Controller, ServoState

        robot = RobotModel.from_urdf(self.urdf, tip=self.tips)
        stack = TaskStack(Task(), PostureTask(job.posture)) if job.posture.size else None
        self._failed = (ServoState.FAULT, ServoState.NO_ROBOT)
        given: dict[str, Any] = self.options
        self._controller = Controller(robot, acceleration=self.acceleration, task=stack, **given)
        self._controller.seed(self.q)
        self._cycles = 0

    def step(self, T: np.ndarray, has_arrived: np.ndarray) -> bool:
        """Run a cycle; pass the target to the controller only if the target is new."""
        now = self.job.period * self._cycles
        self._cycles += 1
        for k in np.flatnonzero(has_arrived):
            tip = self.tips[k] if len(self.tips) > 1 else None
            self._controller.follow_pose(T[k], now, tip=tip)
        output = self._controller.cycle(now, self.job.period)
        self.q = np.array(output.q)
        return output.state not in self._failed


class DlsIkBridge(DlsIk):
    """Controller of dls_ik that bridges dropouts."""

    settings = "as dls_ik, and bridge_time 0.2 s"
    options: ClassVar[dict[str, float]] = {"bridge_time": 0.2}


class Pink(Follower):
    """One quadratic program of weighted tasks per cycle, with pink."""

    environment = "pink"
    weighs_posture = True
    packages = ("pin-pink", "pin", "daqp")
    settings = "examples: costs 1, posture 1e-3, limits of position and velocity, daqp"
    limits_acceleration = False

    def __init__(self, job: ServoJob, start: np.ndarray) -> None:
        super().__init__(job, start)
        pin, pink = import_module("pinocchio"), import_module("pink")
        self._se3, self._solve = pin.SE3, pink.solve_ik
        model = pin.buildModelFromXML(self.urdf)
        self._configuration = pink.Configuration(model, model.createData(), self.q)
        self._tips = [
            pink.tasks.FrameTask(tip, position_cost=1.0, orientation_cost=1.0) for tip in self.tips
        ]
        posture = pink.tasks.PostureTask(cost=self.cost_of_posture(1e-3))
        posture.set_target(self.posture)
        self._tasks = [*self._tips, posture]
        limits = import_module("pink.limits")
        self._limits = [limits.ConfigurationLimit(model), limits.VelocityLimit(model)]
        self._acceleration = limits.AccelerationLimit(model, self.acceleration)
        if self.limits_acceleration:
            self._limits.append(self._acceleration)

    def step(self, T: np.ndarray, has_arrived: np.ndarray) -> bool:
        """Solve, and integrate the velocity."""
        dt = self.job.period
        for task, target in zip(self._tips, T, strict=True):
            task.set_target(self._se3(target))
        try:
            v = self._solve(
                self._configuration, self._tasks, dt, solver="daqp", limits=self._limits
            )
        except Exception:  # noqa: BLE001  types of exceptions differ between versions
            self._acceleration.set_last_integration(np.zeros(len(self.q)), dt)
            return False
        self._configuration.integrate_inplace(v, dt)
        self._acceleration.set_last_integration(v, dt)
        self.q = np.array(self._configuration.q)
        return True


class PinkAcceleration(Pink):
    """Pink with its acceleration limit."""

    settings = "as pink, and its limit of acceleration"
    limits_acceleration = True


class Mink(Follower):
    """One quadratic program of weighted tasks per cycle, with mink."""

    environment = "mink"
    weighs_posture = True
    packages = ("mink", "mujoco", "daqp")
    settings = "examples: costs 1, posture 1e-2, damping 1e-3, limits of position, velocity; daqp"

    def __init__(self, job: ServoJob, start: np.ndarray) -> None:
        super().__init__(job, start)
        mujoco, mink = import_module("mujoco"), import_module("mink")
        self._se3, self._solve = mink.SE3, mink.solve_ik
        options = (
            '<mujoco><compiler fusestatic="false" boundmass="0.1" boundinertia="0.01"/></mujoco>'
        )
        model = mujoco.MjModel.from_xml_string(self.urdf.replace("</robot>", options + "</robot>"))
        self._configuration = mink.Configuration(model, self.q)
        self._tips = [
            mink.FrameTask(tip, "body", position_cost=1.0, orientation_cost=1.0, lm_damping=1.0)
            for tip in self.tips
        ]
        posture = mink.PostureTask(model, cost=self.cost_of_posture(1e-2))
        posture.set_target(self.posture)
        self._tasks = [*self._tips, posture]
        names = [model.joint(i).name for i in range(model.njnt)]
        velocities = dict(zip(names, self.velocity, strict=True))
        self._limits = [mink.ConfigurationLimit(model), mink.VelocityLimit(model, velocities)]

    def step(self, T: np.ndarray, has_arrived: np.ndarray) -> bool:
        """Solve, and integrate the velocity."""
        for task, target in zip(self._tips, T, strict=True):
            task.set_target(self._se3.from_matrix(target))
        try:
            v = self._solve(
                self._configuration,
                self._tasks,
                self.job.period,
                "daqp",
                damping=1e-3,
                limits=self._limits,
            )
        except Exception:  # noqa: BLE001  types of exceptions differ between versions
            return False
        self._configuration.integrate_inplace(v, self.job.period)
        self.q = np.array(self._configuration.q)
        return True


class Placo(Follower):
    """One quadratic program of weighted tasks per cycle, with placo."""

    environment = "placo"
    weighs_posture = True
    packages = ("placo", "pin")
    settings = "weights 1, regularization 1e-4, limits of position and velocity"
    weights = 1.0, 1.0  # costs of the position error [m] and of the rotation error [rad]
    limits_velocity = True

    def __init__(self, job: ServoJob, start: np.ndarray) -> None:
        super().__init__(job, start)
        placo = import_module("placo")
        with NamedTemporaryFile("w", suffix=".urdf") as file:
            file.write(self.urdf)
            file.flush()
            self._robot = placo.RobotWrapper(file.name, placo.Flags.ignore_collisions)
        self._names = [f"joint{i + 1}" for i in range(len(self.q))]
        self._solver = placo.KinematicsSolver(self._robot)
        self._solver.mask_fbase(True)
        for name, value in zip(self._names, self.q, strict=True):
            self._robot.set_joint(name, value)
        self._robot.update_kinematics()
        self._tips = []
        for tip in self.tips:
            task = self._solver.add_frame_task(tip, self._robot.get_T_world_frame(tip))
            task.configure(tip, "soft", *self.weights)
            self._tips.append(task)
        self._set_up()

    def _set_up(self) -> None:
        """Set limits and regularization."""
        self._solver.dt = self.job.period
        self._solver.enable_joint_limits(True)
        self._solver.enable_velocity_limits(True)
        self._solver.add_regularization_task(1e-4)
        if self.job.posture.size:
            rest = self._solver.add_joints_task()
            rest.set_joints(dict(zip(self._names, self.posture, strict=True)))
            rest.configure("posture", "soft", self.cost_of_posture(1e-4))

    def step(self, T: np.ndarray, has_arrived: np.ndarray) -> bool:
        """Solve, and let placo integrate the step."""
        for task, target in zip(self._tips, T, strict=True):
            task.T_world_frame = target
        before = self.q
        try:
            self._solver.solve(True)
        except RuntimeError:
            for name, value in zip(self._names, before, strict=True):
                self._robot.set_joint(name, value)
            return False
        self._robot.update_kinematics()
        self.q = np.array([self._robot.get_joint(name) for name in self._names])
        return True


class LeRobot(Placo):
    """Settings of LeRobot's kinematics, which are built on placo."""

    settings = "LeRobot: weights 1 and 0.01, joint limits, no velocity limit"
    weights = 1.0, 0.01
    max_arms = 1  # its kinematics has one target frame

    def _set_up(self) -> None:
        """Keep the defaults of the solver, as LeRobot does."""


class Oink(Follower):
    """One quadratic program of weighted tasks per cycle, with OInK of roboplan."""

    environment = "oink"
    packages = ("roboplan-oink",)
    settings = "costs 1, limits of position and velocity"
    limits_acceleration = False

    def __init__(self, job: ServoJob, start: np.ndarray) -> None:
        super().__init__(job, start)
        core, ik = import_module("roboplan.core"), import_module("roboplan.optimal_ik")
        description = core.loadUrdfSceneDescriptionFromXml(self.urdf)
        self._scene = core.Scene("arm", description)
        self._scene.setJointPositions(self.q)
        settings = ik.OinkSettings()
        settings.warm_start = True
        self._oink = ik.Oink(self._scene, settings)
        self._tips = []
        for tip in self.tips:
            pose = self._scene.forwardKinematics(self.q, tip)
            goal = core.CartesianConfiguration(BASE, tip, pose)
            options = ik.FrameTaskOptions()
            self._tips.append(ik.FrameTask(self._oink, self._scene, goal, options))
        dt = job.period
        self._acceleration = ik.AccelerationLimit(self._oink, dt, self.acceleration)
        self._limits = [
            ik.PositionLimit(self._oink),
            ik.VelocityLimit(self._oink, dt, self.velocity),
        ]
        if self.limits_acceleration:
            self._limits.append(self._acceleration)
        self._tasks = [*self._tips]
        if job.posture.size:  # the posture acts in the null space of the tip: no cost is needed
            options, weights = ik.ConfigurationTaskOptions(priority=2), np.ones(len(self.q))
            self._tasks.append(ik.ConfigurationTask(self._oink, self.posture, weights, options))
        self._step = np.zeros(len(self.q))

    def step(self, T: np.ndarray, has_arrived: np.ndarray) -> bool:
        """Solve, and integrate the displacement."""
        for task, target in zip(self._tips, T, strict=True):
            task.setTargetFrameTransform(np.asfortranarray(target))
        try:
            self._oink.solveIk(self.q, self._tasks, self._limits, self._step)
        except RuntimeError:
            self._acceleration.reset()
            return False
        self._acceleration.setLastVelocity(self._step / self.job.period)
        self.q = np.asarray(self._scene.integrate(self.q, self._step))
        return True


class OinkAcceleration(Oink):
    """OInK with its acceleration limit."""

    settings = "as OInK, and its limit of acceleration"
    limits_acceleration = True


class Embodik(Follower):
    """One step of embodik's prioritised solver per cycle."""

    environment = "embodik"
    packages = ("embodik",)
    settings = "examples: one position step, gain 10, limits of position and velocity"
    limits_acceleration = False
    gain = 10.0  # [1/s]
    max_arms = 1  # a position step has one target frame

    def __init__(self, job: ServoJob, start: np.ndarray) -> None:
        super().__init__(job, start)
        embodik = import_module("embodik")
        with NamedTemporaryFile("w", suffix=".urdf") as file:
            file.write(self.urdf)
            file.flush()
            self._robot = embodik.RobotModel(file.name)
        self._robot.update_configuration(self.q)
        self._success = embodik.SolverStatus.SUCCESS
        self._options = embodik.PositionStepOptions()
        self._options.position_gain = self._options.orientation_gain = self.gain
        self._solver = embodik.KinematicsSolver(self._robot)
        self._solver.dt = job.period
        self._solver.add_frame_task("tip", self.tips[0]).priority = 0
        if job.posture.size:
            rest = self._solver.add_posture_task("posture")
            rest.priority = 1
            rest.set_target_configuration(self.posture)
        self._solver.enable_position_limits(True)
        self._solver.enable_velocity_limits(True)
        if self.limits_acceleration:
            self._solver.set_acceleration_limits(self.acceleration)
            self._solver.enable_acceleration_limits(True)

    def step(self, T: np.ndarray, has_arrived: np.ndarray) -> bool:
        """Make one position step."""
        target = np.asfortranarray(T[0])
        found = self._solver.solve_position_step(self.q, target, "tip", self._options)
        if found.status != self._success:
            return False
        self.q = np.array(found.q_solution)
        return True


class EmbodikAcceleration(Embodik):
    """Embodik with its acceleration limit."""

    settings = "as embodik, gain 50, and its limit of acceleration"
    limits_acceleration = True
    gain = 50.0


class RelaxedIk(Follower):
    """One optimisation of weighted goals per cycle, with RangedIK of relaxed_ik_core."""

    environment = "relaxed_ik"
    packages = ("relaxed_ik_core",)
    settings = "defaults; no limits of velocity or acceleration exist, only costs of both"
    max_arms = 1  # its Python module passes one target

    def __init__(self, job: ServoJob, start: np.ndarray) -> None:
        super().__init__(job, start)
        module = import_module("relaxed_ik_lib")
        with TemporaryDirectory() as folder:
            configs = Path(folder, "configs")
            configs.joinpath("urdfs").mkdir(parents=True)
            configs.joinpath("urdfs", "arm.urdf").write_text(self.urdf)
            lines = [
                "urdf: arm.urdf",
                "link_radius: 0.05",
                f"base_links:\n  - {BASE}",
                f"ee_links:\n  - {self.tips[0]}",
                f"starting_config: [{', '.join(repr(float(value)) for value in start)}]",
            ]
            configs.joinpath("settings.yaml").write_text("\n".join(lines))
            before = Path.cwd()
            os.chdir(folder)  # the URDF is searched below the working directory
            try:
                self._solver = module.RelaxedIK(str(configs / "settings.yaml"))
            finally:
                os.chdir(before)

    def step(self, T: np.ndarray, has_arrived: np.ndarray) -> bool:
        """Solve for the joint positions of the next cycle."""
        found = self._solver.solve(np.array(T[0, :3, 3]), quaternion(T[0, :3, :3]))
        self.q = np.array(found[0] if isinstance(found, tuple) else found)
        return True


def quaternion(R: np.ndarray) -> np.ndarray:
    """Return the quaternion w x y z (4,) of a rotation R (3, 3)."""
    # The matrix 4 p p^T of the quaternion p; its largest diagonal entry is at least 1.
    A = np.empty((4, 4))
    A[0, 0] = 1.0 + np.trace(R)
    A[0, 1:] = A[1:, 0] = R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]
    A[1:, 1:] = R + R.T + (1.0 - np.trace(R)) * np.eye(3)
    row = A[np.argmax(np.diag(A))]
    return np.asarray(row / np.linalg.norm(row))


PEERS: dict[str, type[Follower]] = {
    "dls_ik": DlsIk,
    "dls_ik, bridge_time": DlsIkBridge,
    "pink": Pink,
    "pink, acceleration limit": PinkAcceleration,
    "mink": Mink,
    "placo": Placo,
    "LeRobot": LeRobot,
    "OInK": Oink,
    "OInK, acceleration limit": OinkAcceleration,
    "embodik": Embodik,
    "embodik, acceleration limit": EmbodikAcceleration,
    "relaxed_ik": RelaxedIk,
}
