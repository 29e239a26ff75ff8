# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Simulated arm without ROS: dynamics of the joints, parameters, dropouts and faults.

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
from dls_ik.ros.declare import parameter
from dls_ik.ros.params import RobotParameters

MAX_INTEGRATION_STEP = 1e-3  # [s] maximum integration step


class Path(NamedTuple):
    """Timed joint-space path through k knots, at rest before the first and after the last knot.

    A segment between two knots is cubic if both have velocities; otherwise it is straight.
    """

    times: Array  # (k,) [s] increasing
    positions: Array  # (k, n) [rad or m]
    velocities: Array  # (k, n) [rad/s or m/s], rows of NaN: no velocity

    def at(self, t: float) -> tuple[Array, Array]:
        """Return positions (n,) [rad or m] and velocities (n,) [rad/s or m/s] at a time [s]."""
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
        """Return the path with a new first knot; unchanged if `t` is not before the first knot.

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


def standstill(positions: Array, t: float) -> Path:
    """Return a path that rests at positions (n,) [rad or m]; its only knot is at time t [s]."""
    return Path(np.array([t]), positions[None], np.full((1, len(positions)), np.nan))


class Drive(NamedTuple):
    """Parameters of the drives of an arm with masses."""

    bandwidth: float = 8.0  # [Hz] bandwidth of the position control
    damping: float = 1.0  # damping ratio of the position control
    full_effort_error: float = 0.01  # [rad or m] minimum position error that causes full effort
    velocity_feedforward: float = 1.0  # fraction of the commanded velocity that is fed forward
    gravity_compensation: float = 1.0  # fraction of the weight that the drives compensate
    effort_scale: float = 1.0  # factor by which the effort limits are multiplied
    rotor_acceleration: float = 500.0  # [rad/s^2 or m/s^2] acceleration of an unloaded drive


class Dynamics(NamedTuple):
    """Response of the joints to commands."""

    velocity: Array  # (n,) [rad/s or m/s] velocity limits; infinite: no limit
    delay: float = 0.0  # [s] time between a command and its effect on the drives
    time_constant: float = 0.0  # [s] time constant of the first-order lag of the joints
    noise: float = 0.0  # [rad or m] standard deviation of measured positions
    drive: Drive = Drive()  # used only by an arm with masses


class CommandQueue:
    """Queue of commanded paths with start times; a path replaces the rest of the previous path.

    Args:
        start: (n,) joint positions before the first command [rad or m].
    """

    def __init__(self, start: Array) -> None:
        self._commands = deque([(-np.inf, standstill(start, 0.0))])

    def add(self, path: Path, now: float) -> None:
        """Add a path that is followed from the time `now` [s] on."""
        state = self._commands[-1][1].at(now)
        self._commands.append((now, path.from_here(now, *state)))

    def path(self, t: float) -> Path:
        """Return the path that is followed at time t [s]; before all paths, the oldest path."""
        oldest = self._commands[0][1]
        return next((path for since, path in reversed(self._commands) if since <= t), oldest)

    def breaks(self, begin: float, end: float) -> list[float]:
        """Return the times [s] between `begin` and `end` at which the command has a knot or ends.

        Between these times the command is smooth.
        """
        knots = {t for since, path in self._commands for t in (since, *path.times.tolist())}
        return sorted(t for t in knots if begin < t < end)

    def forget(self, end: float) -> None:
        """Drop the paths that were replaced before the time `end` [s]."""
        while len(self._commands) > 1 and self._commands[1][0] <= end:
            self._commands.popleft()


class SimulatedArm:
    """Arm without masses: joints with a delay, a first-order lag and velocity limits.

    The lag is integrated exactly for straight segments of the commanded path. Therefore the motion
    does not depend on how often :meth:`advance` is called. Times must not decrease.

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
        """True joint positions (n,) [rad or m]."""
        return self._q.copy()

    def reset(self, start: Array) -> None:
        """Set the joint positions (n,) [rad or m] at once, and drop all commands."""
        self._q = start.copy()
        self.velocity = np.zeros(len(start))  # (n,) [rad/s or m/s] mean of the last step
        self._commands = CommandQueue(start)

    def command(self, path: Path, now: float) -> None:
        """Follow a path from the time `now` [s] on instead of the rest of the previous path."""
        self._commands.add(path, now)

    def advance(self, now: float) -> None:
        """Advance the simulation to the time `now` [s]."""
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
        """Empty array (0,), because an arm without masses has no efforts."""
        return np.zeros(0)

    def measured(self) -> Array:
        """Return measured joint positions (n,) [rad or m], with new noise at each call."""
        return self._q + self.dynamics.noise * self._random.standard_normal(len(self._q))

    def _follow(self, begin: float, end: float) -> None:
        """Move the joints along the commands from time `begin` to time `end` [s]."""
        for first, last in pairwise([begin, *self._commands.breaks(begin, end), end]):
            times = np.linspace(
                first, last, 2 + int((last - first) / MAX_INTEGRATION_STEP)
            ).tolist()
            for t0, t1 in pairwise(times):
                path = self._commands.path(t0)
                self._step(path.at(t0)[0], path.at(t1)[0], t1 - t0)

    def _step(self, r0: Array, r1: Array, h: float) -> None:
        """Move the joints while the reference moves linearly from r0 (n,) to r1 (n,) in h > 0 [s].

        With a time constant T, the lag is q' = (r - q) / T. For a linear reference r the solution
        is q = r - T r' + C exp(-t / T).
        """
        dynamics, q = self.dynamics, self._q
        goal = r1
        if dynamics.time_constant > 0.0:
            trail = dynamics.time_constant * (r1 - r0) / h
            goal = r1 - trail + (q - r0 + trail) * np.exp(-h / dynamics.time_constant)
        bound = dynamics.velocity * h
        self._q = q + np.clip(goal - q, -bound, bound)


# Parameters and joints of the node

MAX_TIME_PARAMETER = 60.0  # [s] upper bound of the parameters that are times


@dataclass(frozen=True)
class SimArmParameters(RobotParameters):
    """Parameters of ``ik_sim_arm``."""

    joint_names: tuple[str, ...] = parameter(
        (),
        "names of joints without a robot description, in the order of position_array; without "
        "velocity limits",
        read_only=True,
    )
    rate: float = parameter(250.0, "rate of the joint states", "Hz", (1.0, 1000.0), read_only=True)
    initial_positions: tuple[float, ...] = parameter(
        (),
        "joint positions at the start and after a reset; empty: 0, or the limit next to it, and "
        "bent if that is near a singularity",
        "rad or m",
    )
    delay: float = parameter(
        0.0, "time from a command to the drives", "s", (0.0, MAX_TIME_PARAMETER)
    )
    time_constant: float = parameter(
        0.0, "first-order lag behind the commands; 0: none", "s", (0.0, MAX_TIME_PARAMETER)
    )
    limit_velocity: bool = parameter(True, "keep the velocity limits of the robot description")
    noise: float = parameter(
        0.0, "standard deviation of the measured positions", "rad or m", (0.0, 1.0)
    )
    dropout_rate: float = parameter(
        0.0, "mean rate of random gaps in the joint states", "1/s", (0.0, 1000.0)
    )
    dropout_duration: float = parameter(0.1, "length of each gap", "s", (0.0, MAX_TIME_PARAMETER))
    random_seed: int = parameter(0, "seed of noise and gaps", span=(0, 2**31 - 1), read_only=True)

    # Parameters of an arm with masses
    physics: bool = parameter(
        False,
        "simulate masses, efforts and contacts, by MuJoCo (extra `physics`); also by --physics",
        read_only=True,
    )
    scene: str = parameter(
        "",
        "physics: file of the objects around the arm, .yaml or .scene; empty: none",
        read_only=True,
    )
    mesh_folders: tuple[str, ...] = parameter(
        (),
        "physics: folders in which meshes may be read, beside ROS packages and the robot's folder",
        read_only=True,
    )
    all_joints: bool = parameter(
        False,
        "physics: publish the joints beside the chain too, which hold their place",
        read_only=True,
    )
    bandwidth: float = parameter(
        Drive().bandwidth, "physics: of the position control of the drives", "Hz", (0.1, 100.0)
    )
    damping: float = parameter(
        Drive().damping, "physics: damping ratio of the position control", span=(0.01, 10.0)
    )
    full_effort_error: float = parameter(
        Drive().full_effort_error,
        "physics: least position error at which a drive gives its full effort, which bounds the "
        "stiffness of weak drives",
        "rad or m",
        (1e-5, 10.0),
    )
    velocity_feedforward: float = parameter(
        Drive().velocity_feedforward,
        "physics: share of the commanded velocity that the drives know",
        span=(0.0, 1.0),
    )
    gravity_compensation: float = parameter(
        Drive().gravity_compensation,
        "physics: share of the weight that the drives carry ahead of the control",
        span=(0.0, 2.0),
    )
    effort_scale: float = parameter(
        Drive().effort_scale, "physics: factor of the effort limits", span=(0.001, 1000.0)
    )
    rotor_acceleration: float = parameter(
        Drive().rotor_acceleration,
        "physics: acceleration that its full effort gives a drive alone, for the inertia of its "
        "rotor",
        "rad/s^2 or m/s^2",
        (1.0, 1e6),
    )

    def check(self) -> None:
        """Check that the parameters are consistent.

        Raises:
            OptionError: If the joints are given twice, if a joint has a duplicate, or if `physics`
                or `scene` is given without a parameter that it needs.
        """
        super().check()
        robot = "robot" if self.robot else "robot_description" if self.robot_description else ""
        if self.joint_names and robot:
            raise OptionError(f"'joint_names' and {robot!r} are both given; give one of them")
        if len(set(self.joint_names)) < len(self.joint_names):
            raise OptionError(f"joint_names has a name twice: {', '.join(self.joint_names)}")
        if self.physics and self.joint_names:
            raise OptionError("physics needs the links of a robot: give 'robot', not 'joint_names'")
        if self.scene and not self.physics:
            raise OptionError("'scene' is for physics: add --physics, or -p physics:=true")

    @property
    def drive(self) -> Drive:
        """Parameters of the drives of an arm with masses."""
        return Drive(*(getattr(self, name) for name in Drive._fields))

    @property
    def dropouts(self) -> tuple[float, float]:
        """Rate [1/s] and duration [s] of random gaps in the stream of joint states."""
        return self.dropout_rate, self.dropout_duration


class SimulatedJoints(NamedTuple):
    """The n joints of the arm."""

    names: tuple[str, ...]
    rest: Array  # (n,) [rad or m] default initial positions
    velocity: Array  # (n,) [rad/s or m/s] velocity limits; infinite: no limit
    others: tuple[str, ...] = ()  # further published joints: fixed, or mimics of the n joints

    def start(self, parameters: SimArmParameters) -> Array:
        """Return the initial joint positions (n,) [rad or m].

        Raises:
            JointValueError: If the parameter `initial_positions` does not fit the joints.
        """
        if not parameters.initial_positions:
            return self.rest
        return checked_configuration(parameters.initial_positions, self.names)

    def dynamics(self, parameters: SimArmParameters) -> Dynamics:
        """Return the response of the joints to commands."""
        p = parameters
        velocity = self.velocity if p.limit_velocity else np.full(len(self.names), np.inf)
        return Dynamics(velocity, p.delay, p.time_constant, p.noise, p.drive)


def joints_of(robot: RobotModel) -> SimulatedJoints:
    """Return the joints of a chain."""
    return SimulatedJoints(robot.joint_names, ready_configuration(robot), robot.velocity)


def named_joints(names: tuple[str, ...]) -> SimulatedJoints:
    """Return joints with the given names and without limits."""
    return SimulatedJoints(names, np.zeros(len(names)), np.full(len(names), np.inf))


class Dropouts:
    """Random gaps of equal length in the joint states, which start as a Poisson process.

    Args:
        rate: Mean number of gaps per second, without the duration of gaps [1/s]; 0: no gaps.
        duration: Length of each gap [s].
        seed: Seed of the start times.
        now: Initial time [s].
    """

    def __init__(self, rate: float, duration: float, seed: int, now: float) -> None:
        self._rate, self._duration = rate, duration
        self._random = np.random.default_rng(seed)
        self._begin = now + self._wait()

    def is_out(self, now: float) -> bool:
        """Return whether the time `now` [s] is in a gap; times must not decrease."""
        while now >= self._begin + self._duration:
            self._begin += self._duration + self._wait()
        return now >= self._begin

    def _wait(self) -> float:
        if self._rate <= 0.0 or self._duration <= 0.0:
            return math.inf
        return float(self._random.exponential(1.0 / self._rate))


class ArmReading(NamedTuple):
    """State of the m published joints: first the joints of the arm, then all other joints."""

    positions: Array  # (m,) measured positions [rad or m]
    velocities: Array  # (m,) true velocities [rad/s or m/s]
    effort: Array  # (m,) efforts [N m or N]; (0,) if the arm has no masses


ArmFactory = Callable[[Array, Dynamics, int, float], Any]  # see SimulatedArm for the arguments


class Simulation:
    """Simulated arm with dropouts and faults; its methods are thread-safe.

    Args:
        joints: Joints of the arm.
        parameters: Parameters of the node.
        now: Initial time [s].
        make: Constructor of the arm, with or without masses.

    Raises:
        JointValueError: If the initial positions do not fit the joints.
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
        """Continue with other parameters; keep the present parameters if an error is raised.

        Raises:
            JointValueError: If the initial positions do not fit the joints.
        """
        self.joints.start(parameters)
        with self._lock:
            self._arm.dynamics = self.joints.dynamics(parameters)
            if parameters.dropouts != self._parameters.dropouts:
                self._dropouts = Dropouts(*parameters.dropouts, parameters.random_seed, now)
            self._parameters = parameters

    def command(self, path: Path, now: float) -> None:
        """Follow a path that was received at the time `now` [s]."""
        with self._lock:
            self._arm.command(path, now)

    def freeze(self, frozen: bool) -> None:
        """Freeze the drives, or release them; commands are still received while they are frozen."""
        with self._lock:
            self._arm.frozen = frozen

    def silence(self, silent: bool) -> None:
        """Stop the joint states if `silent` is True, or resume them."""
        with self._lock:
            self._silent = silent

    def reset(self) -> None:
        """Set the joint positions to the initial positions at once, and clear all faults."""
        with self._lock:
            self._silent = self._arm.frozen = False
            self._arm.reset(self.joints.start(self._parameters))

    def cycle(self, now: float) -> ArmReading | None:
        """Advance to the time `now` [s], and return the state of the published joints.

        Returns:
            None if no joint states are published now, during a gap or after :meth:`silence`.
        """
        with self._lock:
            self._arm.advance(now)
            if self._dropouts.is_out(now) or self._silent:
                return None
            return ArmReading(self._arm.measured(), self._arm.velocity, self._arm.effort)
