"""The arm of the node with its parameters, gaps and faults; no ROS, and time is an argument."""

import math
import threading
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.analysis import ready_configuration
from dls_ik.model.joint import checked_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.ros.params.declare import parameter
from dls_ik.ros.params.robot import RobotParameters
from dls_ik.ros.sim_arm.arm import Dynamics, Path, SimulatedArm

MAX_TIME = 60.0  # [s] of a parameter


@dataclass(frozen=True)
class SimArmParameters(RobotParameters):
    """Parameters of ``ik_sim_arm``."""

    joint_names: tuple[str, ...] = parameter(
        (),
        "joints without a robot description, in the order of position_array; without velocity "
        "limits",
        read_only=True,
    )
    rate: float = parameter(250.0, "rate of the joint states", "Hz", (1.0, 1000.0), read_only=True)
    initial_positions: tuple[float, ...] = parameter(
        (),
        "joint positions at the start and after a reset; empty: 0, or the limit next to it, and "
        "bent if that is near a singularity",
        "rad or m",
    )
    delay: float = parameter(0.0, "time from a command to the drives", "s", (0.0, MAX_TIME))
    time_constant: float = parameter(
        0.0, "first-order lag behind the commands; 0: none", "s", (0.0, MAX_TIME)
    )
    limit_velocity: bool = parameter(
        True, "whether joints keep to the velocity limits of the robot description"
    )
    noise: float = parameter(
        0.0, "standard deviation of the measured positions", "rad or m", (0.0, 1.0)
    )
    dropout_rate: float = parameter(
        0.0, "mean rate of random gaps in the joint states", "1/s", (0.0, 1000.0)
    )
    dropout_duration: float = parameter(0.1, "length of each gap", "s", (0.0, MAX_TIME))
    random_seed: int = parameter(0, "seed of noise and gaps", span=(0, 2**31 - 1), read_only=True)

    def check(self) -> None:
        """Refuse two sources of joints, and a joint given twice.

        Raises:
            OptionError: names them.
        """
        super().check()
        robot = "robot" if self.robot else "robot_description" if self.robot_description else ""
        if self.joint_names and robot:
            raise OptionError(f"'joint_names' and {robot!r} are both given; give one of them")
        if len(set(self.joint_names)) < len(self.joint_names):
            raise OptionError(f"joint_names has a name twice: {', '.join(self.joint_names)}")

    @property
    def dropouts(self) -> tuple[float, float]:
        """Rate [1/s] and duration [s] of gaps."""
        return self.dropout_rate, self.dropout_duration


class SimulatedJoints(NamedTuple):
    """The n joints of the arm."""

    names: tuple[str, ...]
    rest: Array  # (n,) [rad or m] default of the initial positions
    velocity: Array  # (n,) [rad/s or m/s] limits; infinite: none

    def start(self, parameters: SimArmParameters) -> Array:
        """Return the initial positions (n,) [rad or m].

        Raises:
            JointValueError: the parameter has another number of values.
        """
        if not parameters.initial_positions:
            return self.rest
        return checked_configuration(parameters.initial_positions, self.names)

    def dynamics(self, parameters: SimArmParameters) -> Dynamics:
        """Return how the joints respond to commands."""
        free = np.full(len(self.names), np.inf)
        velocity = self.velocity if parameters.limit_velocity else free
        p = parameters
        return Dynamics(velocity, p.delay, p.time_constant, p.noise)


def joints_of(robot: RobotModel) -> SimulatedJoints:
    """Return the joints of a chain."""
    return SimulatedJoints(robot.joint_names, ready_configuration(robot), robot.velocity)


def named_joints(names: tuple[str, ...]) -> SimulatedJoints:
    """Return joints without limits."""
    return SimulatedJoints(names, np.zeros(len(names)), np.full(len(names), np.inf))


class Dropouts:
    """Gaps of one length that begin at random, as in a Poisson process.

    Args:
        rate: [1/s] of gaps, counted in the time between them; 0: none.
        duration: [s] of a gap.
        seed: of the times.
        now: [s] initial time.
    """

    def __init__(self, rate: float, duration: float, seed: int, now: float) -> None:
        self._rate, self._duration = rate, duration
        self._random = np.random.default_rng(seed)
        self._begin = now + self._wait()

    def is_out(self, now: float) -> bool:
        """Return True if a time [s] is in a gap; times only run forward."""
        while now >= self._begin + self._duration:
            self._begin += self._duration + self._wait()
        return now >= self._begin

    def _wait(self) -> float:
        if self._rate <= 0.0 or self._duration <= 0.0:
            return math.inf
        return float(self._random.exponential(1.0 / self._rate))


class Reading(NamedTuple):
    """Published state of the joints."""

    q: Array  # (n,) [rad or m] measured
    velocity: Array  # (n,) [rad/s or m/s]


class Simulation:
    """An arm with dropouts and faults; any thread may use it.

    Raises:
        JointValueError: initial positions that do not fit the joints.
    """

    def __init__(self, joints: SimulatedJoints, parameters: SimArmParameters, now: float) -> None:
        self.joints = joints
        self._lock = threading.Lock()
        self._silent = False
        self._parameters = parameters
        start, seed = joints.start(parameters), parameters.random_seed
        self._arm = SimulatedArm(start, joints.dynamics(parameters), seed, now)
        self._dropouts = Dropouts(*parameters.dropouts, seed, now)

    def change(self, parameters: SimArmParameters, now: float) -> None:
        """Continue with other parameters.

        Raises:
            JointValueError: as the constructor; nothing changes.
        """
        self.joints.start(parameters)
        with self._lock:
            self._arm.dynamics = self.joints.dynamics(parameters)
            if parameters.dropouts != self._parameters.dropouts:
                self._dropouts = Dropouts(*parameters.dropouts, parameters.random_seed, now)
            self._parameters = parameters

    def command(self, path: Path, now: float) -> None:
        """Follow a path that arrives now [s]."""
        with self._lock:
            self._arm.command(path, now)

    def freeze(self, frozen: bool) -> None:
        """Let the drives stick, or free them; commands are taken all the same."""
        with self._lock:
            self._arm.frozen = frozen

    def silence(self, silent: bool) -> None:
        """Stop the joint states, or resume them."""
        with self._lock:
            self._silent = silent

    def reset(self) -> None:
        """Return to the initial positions, without faults."""
        with self._lock:
            self._silent = self._arm.frozen = False
            self._arm.reset(self.joints.start(self._parameters))

    def cycle(self, now: float) -> Reading | None:
        """Advance to a time [s]; None while no joint states come."""
        with self._lock:
            self._arm.advance(now)
            if self._dropouts.is_out(now) or self._silent:
                return None
            return Reading(self._arm.measured(), self._arm.velocity)
