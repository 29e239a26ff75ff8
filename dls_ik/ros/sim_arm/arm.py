# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Simulated arm without ROS: joint dynamics, parameters, gaps in the joint states, and faults.

All times are arguments; this module reads no clock.
"""

import math
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.analysis import ready_configuration
from dls_ik.model.joint import checked_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.ros.declare import parameter, start_parameter
from dls_ik.ros.params import Ends, RobotParameters

MAX_INTEGRATION_STEP = 1e-3  # [s] maximum integration step
MAX_VELOCITY_TIME = 3600.0  # [s] longest time for which a velocity is in force


class Path(NamedTuple):
    """Timed joint-space path through k knots, at rest before the first and after the last knot.

    Between two knots the path is a cubic polynomial if both knots have velocities; otherwise it is
    straight, with constant velocity.
    """

    times: Array  # (k,) [s] increasing
    positions: Array  # (k, n) [rad or m]
    velocities: Array  # (k, n) [rad/s or m/s]; a row of NaN: the knot has no velocity

    def at(self, t: float) -> tuple[Array, Array]:
        """Return positions (n,) [rad or m] and velocities (n,) [rad/s or m/s] at time t [s]."""
        i = int(np.searchsorted(self.times, t, side="right"))
        if i == 0 or i == len(self.times):
            return self.positions[max(i - 1, 0)], np.zeros(self.positions.shape[1])
        h = float(self.times[i] - self.times[i - 1])
        s = (t - float(self.times[i - 1])) / h
        begin, rise = self.positions[i - 1], self.positions[i] - self.positions[i - 1]
        if np.isnan(self.velocities[i - 1 : i + 1]).any():
            return begin + s * rise, rise / h
        # Cubic Hermite segment.
        first, second = h * self.velocities[i - 1] - rise, rise - h * self.velocities[i]
        bend = (1.0 - s) * first + s * second
        velocity = (rise + (1.0 - 2.0 * s) * bend + s * (1.0 - s) * (second - first)) / h
        return begin + s * rise + s * (1.0 - s) * bend, velocity

    def from_here(self, t: float, positions: Array, velocities: Array) -> "Path":
        """Return the path with an additional first knot at time `t`.

        If `t` is not before the first knot, return the path unchanged.

        Args:
            t: Time of the new knot [s].
            positions: (n,) joint positions of the new knot [rad or m].
            velocities: (n,) joint velocities of the new knot [rad/s or m/s].
        """
        if t >= self.times[0]:
            return self
        return Path(
            np.concatenate([[t], self.times]),
            np.vstack([positions, self.positions]),
            np.vstack([velocities, self.velocities]),
        )


class VelocityCommand(NamedTuple):
    """Command to move at constant velocities, in force until the next command."""

    velocities: Array  # (n,) [rad/s or m/s]

    def from_here(self, t: float, positions: Array, velocities: Array) -> Path:
        """Return the path that starts at a time, at most MAX_VELOCITY_TIME long.

        Args:
            t: Time of the start [s].
            positions: (n,) joint positions at the start [rad or m].
            velocities: Not used.
        """
        if not self.velocities.any():
            return standstill(positions, t)
        ends = np.array([positions, positions + MAX_VELOCITY_TIME * self.velocities])
        return Path(np.array([t, t + MAX_VELOCITY_TIME]), ends, np.full_like(ends, np.nan))


def standstill(positions: Array, t: float) -> Path:
    """Return a path that rests at positions (n,) [rad or m]; the only knot is at time t [s]."""
    return Path(np.array([t]), positions[None], np.full((1, len(positions)), np.nan))


class Drive(NamedTuple):
    """Parameters of the drives of an arm with masses."""

    bandwidth: float = 8.0  # [Hz] bandwidth of the position control
    damping: float = 1.0  # damping ratio of the position control
    full_effort_error: float = 0.01  # [rad or m] position errors below it do not saturate a drive
    velocity_feedforward: float = 1.0  # fraction of the commanded velocity that is fed forward
    gravity_compensation: float = 1.0  # fraction of the weight that is compensated by feedforward
    effort_scale: float = 1.0  # factor by which the effort limits are multiplied
    rotor_acceleration: float = 500.0  # [rad/s^2 or m/s^2] maximum acceleration without load


class Dynamics(NamedTuple):
    """Response of n joints to commands, and noise of the measured positions."""

    velocity: Array  # (n,) [rad/s or m/s] velocity limits; infinite: no limit
    delay: float = 0.0  # [s] time between a command and its effect on the drives
    time_constant: float = 0.0  # [s] time constant of the first-order lag of the joints
    noise: float = 0.0  # [rad or m] standard deviation of measured positions
    drive: Drive = Drive()  # used only by an arm with masses


class CommandQueue:
    """Queue of commanded paths; each path is followed from a start time to that of the next path.

    Args:
        start: (n,) joint positions before the first command [rad or m].
    """

    def __init__(self, start: Array) -> None:
        self._commands = deque([(-np.inf, standstill(start, 0.0))])

    def add(self, path: Path | VelocityCommand, now: float) -> None:
        """Add a command that replaces the last path from the time `now` [s] on."""
        state = self._commands[-1][1].at(now)
        self._commands.append((now, path.from_here(now, *state)))

    def path(self, t: float) -> Path:
        """Return the path that is followed at time t [s].

        If t is before the start times of all paths in the queue, return the oldest path.
        """
        oldest = self._commands[0][1]
        return next((path for since, path in reversed(self._commands) if since <= t), oldest)

    def breaks(self, begin: float, end: float) -> list[float]:
        """Return the sorted times [s] of knots and path starts between times `begin` and `end` [s].

        The commanded motion is smooth between two successive times.
        """
        knots = {t for since, path in self._commands for t in (since, *path.times.tolist())}
        return sorted(t for t in knots if begin < t < end)

    def forget(self, end: float) -> None:
        """Drop the paths that were replaced by a newer path at or before the time `end` [s]."""
        while len(self._commands) > 1 and self._commands[1][0] <= end:
            self._commands.popleft()


class SimulatedArm:
    """Arm without masses: joints follow commands with a delay, a lag and velocity limits.

    The first-order lag is integrated exactly for straight segments of the commanded path.
    Therefore the motion does not depend on how often :meth:`advance` is called. The times that are
    passed to successive calls must not decrease.

    Args:
        start: (n,) initial joint positions, which are also the first command [rad or m].
        dynamics: Response of the joints to commands.
        seed: Seed of the measurement noise.
        now: Initial time [s].
    """

    def __init__(self, start: Array, dynamics: Dynamics, seed: int, now: float) -> None:
        self.dynamics = dynamics
        self.frozen = False  # True simulates stuck drives: the joints do not move
        self._random = np.random.default_rng(seed)
        self._time = now
        self.reset(start)

    @property
    def q(self) -> Array:
        """True joint positions (n,), without measurement noise [rad or m]."""
        return self._q.copy()

    def reset(self, start: Array) -> None:
        """Set the joint positions (n,) [rad or m] at once, and drop all commands."""
        self._q = start.copy()
        self.velocity = np.zeros(len(start))  # (n,) [rad/s or m/s] mean during the last advance
        self._commands = CommandQueue(start)

    def command(self, path: Path | VelocityCommand, now: float) -> None:
        """Follow a path or velocities from the time `now` [s] on, instead of the last command."""
        self._commands.add(path, now)

    def advance(self, now: float) -> None:
        """Advance the simulation to the time `now` [s]; do nothing if `now` is not later."""
        if now <= self._time:
            return
        before, elapsed = self._q, now - self._time
        end = now - self.dynamics.delay
        self._time = now
        if not self.frozen:
            self._follow(end - elapsed, end)
        self.velocity = (self._q - before) / elapsed
        self._commands.forget(end)

    @property
    def effort(self) -> Array:
        """Empty array, shape (0,), because an arm without masses has no efforts."""
        return np.zeros(0)

    def measured(self) -> Array:
        """Return the true joint positions plus random noise, shape (n,) [rad or m].

        Each call draws new noise.
        """
        return self._q + self.dynamics.noise * self._random.standard_normal(len(self._q))

    def _follow(self, begin: float, end: float) -> None:
        """Move the joints along the commanded paths from time `begin` to time `end` [s].

        Both are times of the commanded paths: the simulated time minus the delay.
        """
        for first, last in pairwise([begin, *self._commands.breaks(begin, end), end]):
            times = np.linspace(
                first, last, 2 + int((last - first) / MAX_INTEGRATION_STEP)
            ).tolist()
            for t0, t1 in pairwise(times):
                path = self._commands.path(t0)
                self._step(path.at(t0)[0], path.at(t1)[0], t1 - t0)

    def _step(self, r0: Array, r1: Array, h: float) -> None:
        """Advance the joint positions q (n,) by a time step h > 0 [s].

        The commanded positions r (n,) change linearly during the step, from r0 (n,) to r1 (n,)
        [rad or m]. With a time constant T [s], the lag is q' = (r - q) / T; for a linear r the
        solution is q = r - T r' + C exp(-t / T). The result is limited by the velocity limits.
        """
        dynamics, q = self.dynamics, self._q
        goal = r1
        if dynamics.time_constant > 0.0:
            trail = dynamics.time_constant * (r1 - r0) / h
            goal = r1 - trail + (q - r0 + trail) * np.exp(-h / dynamics.time_constant)
        bound = dynamics.velocity * h
        self._q = q + np.clip(goal - q, -bound, bound)


# Parameters and joints of the node

MAX_TIME_PARAMETER = 60.0  # [s] maximum of the parameters delay, time_constant and dropout_duration


@dataclass(frozen=True)
class SimArmParameters(RobotParameters):
    """Parameters of the node ``ik_sim_arm``."""

    tips: tuple[str, ...] = start_parameter(
        (), "last links of several chains from base, such as two arms, instead of tip"
    )
    joint_names: tuple[str, ...] = start_parameter(
        (),
        "joints of an arm without a robot description, in the order of position_array commands; "
        "they have no velocity limits",
    )
    rate: float = start_parameter(250.0, "rate of the joint states", "Hz", (1.0, 1000.0))
    initial_positions: tuple[float, ...] = parameter(
        (),
        "joint positions at the start and after a reset; empty: 0 or the limit closest to 0, and "
        "bent near singularities",
        "rad or m",
    )
    delay: float = parameter(
        0.0, "time between a command and its effect on the drives", "s", (0.0, MAX_TIME_PARAMETER)
    )
    time_constant: float = parameter(
        0.0,
        "time constant of the first-order lag of the joints; 0: no lag; no effect with physics",
        "s",
        (0.0, MAX_TIME_PARAMETER),
    )
    limit_velocity: bool = parameter(True, "apply the velocity limits of the robot description")
    noise: float = parameter(
        0.0, "standard deviation of the measured positions", "rad or m", (0.0, 1.0)
    )
    dropout_rate: float = parameter(
        0.0, "mean rate of random gaps in the joint states; 0: no gaps", "1/s", (0.0, 1000.0)
    )
    dropout_duration: float = parameter(0.1, "length of each gap", "s", (0.0, MAX_TIME_PARAMETER))
    random_seed: int = start_parameter(
        0, "random seed of the noise and the gaps", span=(0, 2**31 - 1)
    )

    # Parameters of an arm with masses
    physics: bool = start_parameter(
        False,
        "simulate masses, efforts and contacts in MuJoCo (pip install 'dls_ik[physics]'); the "
        "command line option --physics sets it too",
    )
    scene: str = start_parameter(
        "", "physics: file with objects around the arm, .yaml or .scene; empty: no objects"
    )
    mesh_folders: tuple[str, ...] = start_parameter(
        (),
        "physics: folders from which meshes may be read, besides ROS packages and the folder of "
        "the robot file",
    )
    all_joints: bool = start_parameter(
        False,
        "physics: also publish the joints outside the chain, which hold their positions or mimic "
        "joints",
    )
    bandwidth: float = parameter(
        Drive().bandwidth,
        "physics: bandwidth of the position control of the drives",
        "Hz",
        (0.1, 100.0),
    )
    damping: float = parameter(
        Drive().damping,
        "physics: damping ratio of the position control of the drives",
        span=(0.01, 10.0),
    )
    full_effort_error: float = parameter(
        Drive().full_effort_error,
        "physics: smallest position error at which a drive may give its maximum effort; limits the "
        "stiffness of weak drives",
        "rad or m",
        (1e-5, 10.0),
    )
    velocity_feedforward: float = parameter(
        Drive().velocity_feedforward,
        "physics: fraction of the commanded velocity that is fed forward to the drives",
        span=(0.0, 1.0),
    )
    gravity_compensation: float = parameter(
        Drive().gravity_compensation,
        "physics: fraction of the weight that the drives compensate by feedforward",
        span=(0.0, 2.0),
    )
    effort_scale: float = parameter(
        Drive().effort_scale,
        "physics: factor by which the effort limits are multiplied",
        span=(0.001, 1000.0),
    )
    rotor_acceleration: float = parameter(
        Drive().rotor_acceleration,
        "physics: acceleration of a drive without load at its maximum effort; sets the inertia of "
        "the rotor",
        "rad/s^2 or m/s^2",
        (1.0, 1e6),
    )

    def ends(self) -> Ends:
        """Return the names of the base and the tip, or several tips; None: the robot's default."""
        return self.base or None, self.tips or self.tip or None

    def check(self) -> None:
        """Check that the parameters are consistent.

        Raises:
            OptionError: If `tip` and `tips` are both given, if `joint_names` is given together with
                a robot or with `physics`, if `joint_names` contains a name twice, or if `scene` is
                given without `physics`.
        """
        super().check()
        if self.tip and self.tips:
            raise OptionError("'tip' and 'tips' are both given; give one of them")
        robot = "robot" if self.robot else "robot_description" if self.robot_description else ""
        if self.joint_names and robot:
            raise OptionError(f"'joint_names' and {robot!r} are both given; give one of them")
        if len(set(self.joint_names)) < len(self.joint_names):
            raise OptionError(
                f"joint_names must contain each name once; got {', '.join(self.joint_names)}"
            )
        if self.physics and self.joint_names:
            raise OptionError(
                "'physics' needs the links of a robot; give 'robot' instead of 'joint_names'"
            )
        if self.scene and not self.physics:
            raise OptionError("'scene' needs physics; add --physics or -p physics:=true")

    @property
    def drive(self) -> Drive:
        """Parameters of the drives of an arm with masses."""
        return Drive(*(getattr(self, name) for name in Drive._fields))

    @property
    def dropouts(self) -> tuple[float, float]:
        """Rate [1/s] and duration [s] of random gaps in the stream of joint states."""
        return self.dropout_rate, self.dropout_duration


class SimulatedJoints(NamedTuple):
    """Properties of the n commanded joints of the arm, and names of its other published joints."""

    names: tuple[str, ...]
    rest: Array  # (n,) [rad or m] default initial positions
    velocity: Array  # (n,) [rad/s or m/s] velocity limits; infinite: no limit
    others: tuple[str, ...] = ()  # other published joints, which hold still or mimic joints

    def start(self, parameters: SimArmParameters) -> Array:
        """Return the initial joint positions (n,) [rad or m].

        These are the parameter `initial_positions`, or the default positions if it is empty.

        Raises:
            JointValueError: If the parameter has a wrong number of values, or a value that is not
                finite.
        """
        if not parameters.initial_positions:
            return self.rest
        return checked_configuration(parameters.initial_positions, self.names)

    def dynamics(self, parameters: SimArmParameters) -> Dynamics:
        """Return the response of the joints to commands that the parameters describe."""
        p = parameters
        velocity = self.velocity if p.limit_velocity else np.full(len(self.names), np.inf)
        return Dynamics(velocity, p.delay, p.time_constant, p.noise, p.drive)


def joints_of(robot: RobotModel) -> SimulatedJoints:
    """Return the joints of a robot's chain, with the velocity limits of the robot."""
    return SimulatedJoints(robot.joint_names, ready_configuration(robot), robot.velocity)


def named_joints(names: tuple[str, ...]) -> SimulatedJoints:
    """Return joints with the given names, initial positions of 0 and no velocity limits."""
    return SimulatedJoints(names, np.zeros(len(names)), np.full(len(names), np.inf))


class Dropouts:
    """Random gaps of equal length in the joint states; gaps start as a Poisson process.

    Args:
        rate: Mean number of gaps per second of time outside gaps [1/s]; 0: no gaps.
        duration: Length of each gap [s]; 0: no gaps.
        seed: Random seed of the start times of gaps.
        now: Initial time [s].
    """

    def __init__(self, rate: float, duration: float, seed: int, now: float) -> None:
        self._rate, self._duration = rate, duration
        self._random = np.random.default_rng(seed)
        self._begin = now + self._wait()

    def is_out(self, now: float) -> bool:
        """Return whether the time `now` [s] is in a gap; `now` must not decrease between calls."""
        while now >= self._begin + self._duration:
            self._begin += self._duration + self._wait()
        return now >= self._begin

    def _wait(self) -> float:
        if self._rate <= 0.0 or self._duration <= 0.0:
            return math.inf
        return float(self._random.exponential(1.0 / self._rate))


class ArmReading(NamedTuple):
    """State of the m published joints: first the commanded joints, then the other joints."""

    positions: Array  # (m,) measured positions [rad or m]
    velocities: Array  # (m,) true velocities [rad/s or m/s]
    effort: Array  # (m,) efforts [N m or N]; (0,) if the arm has no masses


ArmFactory = Callable[[Array, Dynamics, int, float], Any]  # has the arguments of SimulatedArm


class Simulation:
    """Simulated arm with gaps in the joint states and with faults; methods are thread-safe.

    Args:
        joints: Joints of the arm.
        parameters: Parameters of the node.
        now: Initial time [s].
        make: Function that returns the simulated arm, with or without masses.

    Raises:
        JointValueError: If the parameter `initial_positions` has a wrong number of values, or a
            value that is not finite.
    """

    def __init__(
        self,
        joints: SimulatedJoints,
        parameters: SimArmParameters,
        now: float,
        make: ArmFactory = SimulatedArm,
    ) -> None:
        self.joints = joints
        self._lock = threading.Lock()
        self._silent = False
        self._parameters = parameters
        start, seed = joints.start(parameters), parameters.random_seed
        self._arm = make(start, joints.dynamics(parameters), seed, now)
        self._dropouts = Dropouts(*parameters.dropouts, seed, now)

    def change(self, parameters: SimArmParameters, now: float) -> None:
        """Apply changed parameters from the time `now` [s] on.

        Raises:
            JointValueError: If the parameter `initial_positions` has a wrong number of values, or a
                value that is not finite. The previous parameters stay in effect in this case.
        """
        self.joints.start(parameters)
        with self._lock:
            self._arm.dynamics = self.joints.dynamics(parameters)
            if parameters.dropouts != self._parameters.dropouts:
                self._dropouts = Dropouts(*parameters.dropouts, parameters.random_seed, now)
            self._parameters = parameters

    def command(self, path: Path | VelocityCommand, now: float) -> None:
        """Follow a path or velocities that were received at the time `now` [s]."""
        with self._lock:
            self._arm.command(path, now)

    def freeze(self, frozen: bool) -> None:
        """Freeze the drives if `frozen` is True, otherwise release them.

        Commands are still accepted while the drives are frozen, but do not move the joints.
        """
        with self._lock:
            self._arm.frozen = frozen

    def silence(self, silent: bool) -> None:
        """Stop publishing joint states if `silent` is True, otherwise resume publishing them."""
        with self._lock:
            self._silent = silent

    def reset(self) -> None:
        """Set the joint positions to the initial positions at once, and clear all faults."""
        with self._lock:
            self._silent = self._arm.frozen = False
            self._arm.reset(self.joints.start(self._parameters))

    def cycle(self, now: float) -> ArmReading | None:
        """Advance the simulation to the time `now` [s], and return the state to publish.

        Returns:
            State of the published joints; None during a gap in the joint states, or while
            :meth:`silence` is in effect.
        """
        with self._lock:
            self._arm.advance(now)
            if self._dropouts.is_out(now) or self._silent:
                return None
            return ArmReading(self._arm.measured(), self._arm.velocity, self._arm.effort)
