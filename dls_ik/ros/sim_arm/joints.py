"""The joints that are simulated: of a robot, or by their names alone."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.ready import ready_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.model.values import checked_configuration
from dls_ik.ros.sim_arm.arm import Dynamics
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
