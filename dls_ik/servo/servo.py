"""The streaming controller: one step toward the target each cycle, never past a limit."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.follow import follow
from dls_ik.core.types import Array, Details, Method
from dls_ik.core.workspace import new_memory
from dls_ik.exceptions import MethodError, OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.model.values import checked_configuration
from dls_ik.servo.status import ServoCode
from dls_ik.solver.method import AUTO, parse_method
from dls_ik.solver.options import solver_options
from dls_ik.solver.poses import checked_poses
from dls_ik.solver.problem import build_details

DEFAULT_METHOD, WITHOUT_LIMITS = "ctp+sd+svf", "svf+sd"
HELD = 0.99  # activation from which a joint counts as held


class ServoOutput(NamedTuple):
    """The command of one cycle."""

    q: Array  # (n,) [rad or m]
    code: ServoCode
    position_error: float  # [m] of the command; NaN without a target
    rotation_error: float  # [rad]


class Servo:
    """Steps joint values toward a target, from the last command and not from a measurement.

    No step passes a position limit or is faster than the velocity limits; joint values beyond a
    limit at the start come back at that speed. Each step lowers the error, so that the arm settles
    at the nearest configuration that its method finds when a target is out of reach.

    Args:
        robot: the chain to move.
        method: a name from :func:`dls_ik.method_names`; default: ``ctp+sd+svf``, or ``svf+sd``
            where no joint has limits.
        options: as for :class:`dls_ik.IkSolver`.

    Raises:
        MethodError, OptionError: as :class:`dls_ik.IkSolver`.
    """

    def __init__(self, robot: RobotModel, method: str | None = None, **options: Any) -> None:
        choice = parse_method(method or default_method(robot))
        if choice.is_kdl:
            raise MethodError(f"method {choice.name!r} solves for poses and follows no target")
        self.robot = robot
        self.method = choice.name
        self.options = solver_options(choice, options)
        self._method = self.options.method(choice)._replace(following=True)
        self._details = build_details(robot, choice, self.options, None)
        self._descending, self._plain = _descending(robot)
        self._goal = self.options.goal()
        self._seen = np.zeros(4)  # see core/follow.py
        self.reset(robot.clip(np.zeros(robot.n)))

    @property
    def command(self) -> Array:
        """The joint values of the last cycle (n,) [rad or m]; a copy."""
        return self._q.copy()

    def reset(self, q: ArrayLike) -> None:
        """Start from these joint values (n,) [rad or m], inside the limits or not.

        Raises:
            JointValueError: for the wrong length, or values that are not finite.
        """
        self._q = checked_configuration(q, self.robot.joint_names).copy()
        self._motion = np.append(np.zeros(self.robot.n), 1.0)  # see core/follow.py
        self._memory = new_memory(self.robot.chain, self._method, self._details)

    def step(self, T_d: ArrayLike | None, dt: float) -> ServoOutput:
        """Advance by one cycle.

        Args:
            T_d: (4, 4) desired ``T_base_tip`` [m], (k, 4, 4) for k tips; None to stand still.
            dt: time since the last cycle [s].

        Raises:
            PoseError: for a pose that is not valid; the command stays.
            OptionError: for a dt that is not positive and finite.
        """
        elapsed = _checked_duration(dt)
        if T_d is None:
            return ServoOutput(self.command, ServoCode.OK, np.nan, np.nan)
        poses = checked_poses(T_d, len(self.robot.tips))
        follow(
            self.robot.chain,
            self._method,
            self._descending,
            self._goal,
            self._details,
            self._plain,
            poses,
            elapsed,
            self._q,
            self._motion,
            self._memory,
            self._seen,
        )
        position, rotation = float(self._seen[0]), float(self._seen[1])
        return ServoOutput(self.command, self._code(position, rotation), position, rotation)

    def _code(self, position: float, rotation: float) -> ServoCode:
        goal = self._goal
        if position <= goal.position_tolerance and rotation <= goal.rotation_tolerance:
            return ServoCode.OK
        if self._seen[3] >= HELD:
            return ServoCode.JOINT_BOUND
        if self._seen[2] < 2.0 * self.options.sigma0:
            return ServoCode.NEAR_SINGULARITY
        return ServoCode.OK


def default_method(robot: RobotModel) -> str:
    """The method that a robot is moved by when nobody names one."""
    return DEFAULT_METHOD if robot.limited.any() else WITHOUT_LIMITS


def _descending(robot: RobotModel) -> tuple[Method, Details]:
    """The solver's own: error damping and an active set lead down from anywhere but a valley."""
    auto = parse_method(AUTO)
    options = solver_options(auto, {})
    return options.method(auto), build_details(robot, auto, options, None)


def _checked_duration(dt: Any) -> float:
    """Return a time above zero [s], or raise OptionError."""
    try:
        duration = float(dt)
    except (TypeError, ValueError):
        duration = np.nan
    if not 0.0 < duration < np.inf or isinstance(dt, str):
        raise OptionError(f"dt is a time above 0 [s], not {dt!r}")
    return duration
