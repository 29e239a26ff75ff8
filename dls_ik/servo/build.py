"""The parts of a controller, from its options."""

from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import fields
from typing import Any

import numpy as np

from dls_ik.errors import MethodError, OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.servo.limiter import AccelerationLimiter, Limiter
from dls_ik.servo.options import JOINT_MOTION, ControllerOptions, controller_options, joint_limits
from dls_ik.servo.servo import Servo
from dls_ik.servo.tracker import Tracker
from dls_ik.solver.options import SolverOptions
from dls_ik.text import listing, suggest_names

_NAMES = tuple(f.name for f in fields(ControllerOptions))
_OF_METHODS = tuple(f.name for f in fields(SolverOptions))


def split_options(
    robot: RobotModel, given: Mapping[str, Any]
) -> tuple[ControllerOptions, dict[str, Any]]:
    """The controller's own options, complete and checked, and those left for its method.

    Raises:
        OptionError: as :func:`controller_options`.
    """
    own = {name: value for name, value in given.items() if name in _NAMES}
    of_method = {name: value for name, value in given.items() if name not in _NAMES}
    unknown = sorted(set(of_method) - set(_OF_METHODS))
    if unknown:
        known = suggest_names(unknown, (*_NAMES, *_OF_METHODS))
        raise OptionError(f"unknown option {listing(unknown)}; {known}")
    return controller_options(robot, own), of_method


def build_tracker(
    robot: RobotModel,
    method: str | None,
    options: ControllerOptions,
    of_method: Mapping[str, Any],
    executor: Executor | None,
) -> Tracker:
    """What moves the arm.

    Raises:
        MethodError, OptionError: a method or options that do not suit the robot.
    """
    if len(robot.tips) != 1:
        raise MethodError(
            f"a controller moves one tip, the robot has {len(robot.tips)}: {', '.join(robot.tips)}"
        )
    servo = Servo(robot, method, **of_method)
    tracker = Tracker(servo, _limiter(robot, options), options.when_stuck == JOINT_MOTION, executor)
    tracker.seed(robot.clip(np.zeros(robot.n)))
    return tracker


def _limiter(robot: RobotModel, options: ControllerOptions) -> Limiter:
    acceleration = joint_limits("acceleration", options.acceleration, robot)
    jerk = joint_limits("jerk", options.jerk, robot)
    if np.isinf(jerk).all():
        return AccelerationLimiter(robot, acceleration)
    from dls_ik.servo.jerk import JerkLimiter  # needs ruckig

    return JerkLimiter(robot, acceleration, jerk)
