"""The arm of the running node with its dropouts and faults; no ROS, and time is an argument."""

import math
import threading
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.analysis import ready_configuration
from dls_ik.model.joint import checked_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.ros.sim_arm.arm import Dynamics, Path, SimulatedArm
from dls_ik.ros.sim_arm.parameters import SimArmParameters


class Joints(NamedTuple):
    """n joints."""

    names: tuple[str, ...]
    rest: Array  # (n,) [rad or m] where they stand if nobody says otherwise
    velocity: Array  # (n,) [rad/s or m/s] limits; infinite: none

    def start(self, parameters: SimArmParameters) -> Array:
        """Where they stand at the start (n,) [rad or m].

        Raises:
            JointValueError: another number of initial positions.
        """
        if not parameters.initial_positions:
            return self.rest
        return checked_configuration(parameters.initial_positions, self.names)

    def dynamics(self, parameters: SimArmParameters) -> Dynamics:
        """How they answer."""
        free = np.full(len(self.names), np.inf)
        velocity = self.velocity if parameters.limit_velocity else free
        p = parameters
        return Dynamics(velocity, p.delay, p.time_constant, p.noise)


def joints_of(robot: RobotModel) -> Joints:
    """The joints of a chain."""
    return Joints(robot.joint_names, ready_configuration(robot), robot.velocity)


def named_joints(names: tuple[str, ...]) -> Joints:
    """Joints without limits."""
    return Joints(names, np.zeros(len(names)), np.full(len(names), np.inf))


class Dropouts:
    """Gaps of one length; the times between them are those of a Poisson process.

    Args:
        rate: [1/s] gaps in a second of hearing, in the mean; 0: none.
        duration: [s] of a gap.
        seed: of the times.
        now: [s] when it begins.
    """

    def __init__(self, rate: float, duration: float, seed: int, now: float) -> None:
        self._rate, self._duration = rate, duration
        self._random = np.random.default_rng(seed)
        self._begin = now + self._wait()

    def is_out(self, now: float) -> bool:
        """Whether a time [s], which only runs forward, lies in a gap."""
        while now >= self._begin + self._duration:
            self._begin += self._duration + self._wait()
        return now >= self._begin

    def _wait(self) -> float:
        if self._rate <= 0.0 or self._duration <= 0.0:
            return math.inf
        return float(self._random.exponential(1.0 / self._rate))


class Reading(NamedTuple):
    """What is published of the joints."""

    q: Array  # (n,) [rad or m] measured
    velocity: Array  # (n,) [rad/s or m/s]


class Simulation:
    """An arm, and whether anything is heard of it; any thread may use it.

    Raises:
        JointValueError: initial positions that do not fit the joints.
    """

    def __init__(self, joints: Joints, parameters: SimArmParameters, now: float) -> None:
        self.joints = joints
        self._lock = threading.Lock()
        self._silent = False
        self._parameters = parameters
        start, seed = joints.start(parameters), parameters.random_seed
        self._arm = SimulatedArm(start, joints.dynamics(parameters), seed, now)
        self._dropouts = Dropouts(*parameters.gaps(), seed, now)

    def change(self, parameters: SimArmParameters, now: float) -> None:
        """Go on with other parameters.

        Raises:
            JointValueError: as on construction; nothing changes.
        """
        self.joints.start(parameters)
        with self._lock:
            self._arm.dynamics = self.joints.dynamics(parameters)
            if parameters.gaps() != self._parameters.gaps():
                self._dropouts = Dropouts(*parameters.gaps(), parameters.random_seed, now)
            self._parameters = parameters

    def command(self, path: Path, now: float) -> None:
        """Follow a path that arrives now [s]."""
        with self._lock:
            self._arm.command(path, now)

    def freeze(self, frozen: bool) -> None:
        """Let the drives stick, or come free; commands are taken all the same."""
        with self._lock:
            self._arm.frozen = frozen

    def silence(self, silent: bool) -> None:
        """Let nothing be heard of the arm, or all again."""
        with self._lock:
            self._silent = silent

    def reset(self) -> None:
        """Be as at the start."""
        with self._lock:
            self._silent = self._arm.frozen = False
            self._arm.reset(self.joints.start(self._parameters))

    def cycle(self, now: float) -> Reading | None:
        """Advance to now [s]; None if nothing is heard of the arm then."""
        with self._lock:
            self._arm.advance(now)
            if self._dropouts.is_out(now) or self._silent:
                return None
            return Reading(self._arm.measured(), self._arm.velocity)
