"""The arm of the running node with all that can befall it; no ROS, and time is an argument."""

import threading
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.ros.sim_arm.arm import SimulatedArm
from dls_ik.ros.sim_arm.dropouts import Dropouts
from dls_ik.ros.sim_arm.joints import Joints
from dls_ik.ros.sim_arm.parameters import SimArmParameters
from dls_ik.ros.sim_arm.path import Path


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
