# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Options of the controller; the options of the IK method are declared in the solver."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import (
    USUAL_NAMES,
    SolverKeywords,
    SolverOptions,
    Vector,
    checked_value,
    choice_of,
    number,
    per_joint,
    switch,
)
from dls_ik.text import listing, quoted, suggest_names

USUAL_SPEED_NAMES = ("speed", "max_speed", "tip_speed", "max_velocity")
# The joint velocity limits are those of the robot description; motion may use a share of them.
USUAL_LIMIT_NAMES = ("velocity", "joint_velocity", "velocity_limit", "velocity_limits", "max_qd")
HOLD, JOINT_MOTION = "hold", "joint_motion"
SETTLE, STOP, FINISH = "settle", "stop", "finish"

# Tip acceleration for an arm next to people: a stop from the reduced speed of ISO 10218-1
# (0.25 m/s) takes 0.2 s and 26 mm. The value is the default of linear moves of UR robots.
GENTLE_TIP_ACCELERATION = 1.2  # [m/s^2]
MAX_GENTLE_ACCELERATION = 10.0  # [rad/s^2] largest limit; applies to joints that hardly move a tip
NUM_LEVER_SAMPLES = 1000  # random configurations; the largest levers found are 1 to 2 % too short


@dataclass(frozen=True)
class ControllerOptions:
    """Options for following targets and for stopping."""

    acceleration: float | tuple[float, ...] = per_joint(
        math.inf, "rad/s^2 or m/s^2", "largest acceleration, for all joints or for each joint"
    )
    jerk: float | tuple[float, ...] = per_joint(
        math.inf,
        "rad/s^3 or m/s^3",
        "largest jerk, for all joints or for each joint; needs acceleration limits and ruckig",
    )
    when_stuck: str = choice_of(
        JOINT_MOTION,
        (JOINT_MOTION, HOLD),
        "action if the stepwise motion of the IK method stalls before it reaches a target at rest: "
        "joint_motion: move through joint space to the closest IK solution, and before a "
        "trajectory to a branch of solutions on which all its poses are reachable; hold: do not "
        "move",
    )
    feed_forward: bool = switch(
        "extrapolate a stream of poses from the last two poses until the next pose arrives"
    )
    bridge_time: float = number(
        0.0,
        0.0,
        10.0,
        "s",
        "time without messages for which a stream of poses continues at its last velocity, so that "
        "lost messages do not stop the arm; 0: the arm moves to the last pose only",
    )
    target_timeout: float = number(
        0.25,
        1e-3,
        3600.0,
        "s",
        "time without a message after which a stream of targets has ended; a target whose stamp is "
        "older than this time is ignored",
    )
    when_stream_ends: str = choice_of(
        SETTLE,
        (SETTLE, STOP, FINISH),
        "action when a stream of poses ends: settle: finish the motion to the last pose if this "
        "pose is within settle_distance and settle_angle of the command, otherwise stop; stop: "
        "always stop; finish: always finish the motion; fewer than five poses in a row are single "
        "poses, whose motion is always finished; after twists the arm always stops",
    )
    settle_distance: float = number(
        0.05,
        0.0,
        100.0,
        "m",
        "largest distance from the command to the last pose of a stream at which the motion is "
        "finished if when_stream_ends is settle",
    )
    settle_angle: float = number(
        0.2,
        0.0,
        math.pi,
        "rad",
        "largest angle from the command to the last pose of a stream at which the motion is "
        "finished if when_stream_ends is settle",
    )
    stamp_tolerance: float = number(
        0.1, 0.0, 3600.0, "s", "largest time by which the stamp of a target may be in the future"
    )
    twist_lookahead: float = number(
        0.005,
        1e-6,
        1e3,
        "m",
        "largest distance from the tip to the integral of a twist, if the tip cannot follow the "
        "twist",
    )
    supervised: bool = switch(
        "compare measurements with commands: the arm does not move without measurements, and stops "
        "if a measurement deviates by more than max_deviation"
    )
    measurement_timeout: float = number(
        0.5, 1e-3, 3600.0, "s", "longest time without a measurement before a fault"
    )
    max_deviation: float = number(
        0.5,
        1e-6,
        1e3,
        "rad or m",
        "largest deviation of measurements from commands before a fault",
    )
    min_distance: float = number(
        0.01,
        0.0,
        10.0,
        "m",
        "smallest allowed distance between links, and between links and objects of the scene",
    )
    influence_distance: float = number(
        0.1,
        1e-6,
        100.0,
        "m",
        "distance between links, or between links and objects, below which motion is slowed or "
        "deflected",
    )
    max_linear_speed: float = number(
        math.inf, 1e-6, math.inf, "m/s", "largest linear speed of the tip for all targets"
    )
    max_angular_speed: float = number(
        math.inf, 1e-6, math.inf, "rad/s", "largest angular speed of the tip"
    )
    scale: float = number(
        1.0,
        0.0,
        1.0,
        "",
        "share of the velocity and acceleration limits that motion uses; stops may use the full "
        "limits",
    )


class ControllerKeywords(SolverKeywords, total=False):
    """Types of the keyword arguments of a controller, for type checkers.

    The keywords are the fields of :class:`ControllerOptions` and the options of the solver.
    """

    acceleration: float | Vector
    jerk: float | Vector
    when_stuck: Literal["joint_motion", "hold"]
    feed_forward: bool
    bridge_time: float
    target_timeout: float
    when_stream_ends: Literal["settle", "stop", "finish"]
    settle_distance: float
    settle_angle: float
    stamp_tolerance: float
    twist_lookahead: float
    supervised: bool
    measurement_timeout: float
    max_deviation: float
    min_distance: float
    influence_distance: float
    max_linear_speed: float
    max_angular_speed: float
    scale: float


def split_options(
    given: Mapping[str, Any], joint_names: tuple[str, ...] = ()
) -> tuple[ControllerOptions, dict[str, Any]]:
    """Split options into controller options, which are validated, and options of the IK method.

    Args:
        given: Options by name.
        joint_names: Joint names, for error messages about options with one value per joint.

    Raises:
        OptionError: If an option is unknown or a value is out of range.
    """
    own = {f.name: f for f in fields(ControllerOptions)}
    method_options = {f.name for f in fields(SolverOptions)}
    unknown = sorted(set(given) - set(own) - method_options)
    if unknown:
        usual = {**USUAL_NAMES, **dict.fromkeys(USUAL_SPEED_NAMES, "max_linear_speed")}
        usual |= dict.fromkeys(USUAL_LIMIT_NAMES, "scale")
        known = suggest_names(unknown, (*own, *sorted(method_options)), usual)
        raise OptionError(f"unknown option {listing(unknown)}; {known}")
    checked = {n: checked_value(own[n], given[n], joint_names) for n in given if n in own}
    left = {name: value for name, value in given.items() if name not in own}
    return ControllerOptions(**checked), left


def motion_limits(options: ControllerOptions, robot: RobotModel) -> tuple[Array, Array]:
    """Return the acceleration limits (n,) and the jerk limits (n,) of the joints.

    The units are rad/s^2 or m/s^2, and rad/s^3 or m/s^3.

    Raises:
        OptionError: If the number of limits does not fit the robot, a limit is not positive, or
            a jerk limit is given without acceleration limits.
    """
    acceleration = _joint_limits("acceleration", options.acceleration, robot)
    jerk = _joint_limits("jerk", options.jerk, robot)
    if np.isfinite(jerk).any() and not np.isfinite(acceleration).all():
        raise OptionError(
            "jerk is limited, but acceleration is not limited for every joint; set acceleration"
        )
    return acceleration, jerk


def gentle_acceleration(robot: RobotModel) -> Array:
    """Return acceleration limits (n,) for an arm next to people [rad/s^2 or m/s^2].

    A single joint that accelerates at its limit accelerates no tip by more than 1.2 m/s^2, in
    almost all configurations. The limit of a joint is therefore inversely proportional to the
    largest distance of a tip from the axis of the joint.
    """
    q = np.random.default_rng(0).uniform(*robot.finite_limits(), (NUM_LEVER_SAMPLES, robot.n))
    J = robot.jacobian(q).reshape(NUM_LEVER_SAMPLES, -1, 6, robot.n)
    # (n,) largest distance of a tip from the axis of each joint [m/rad]; 1 for prismatic joints
    lever = np.linalg.norm(J[:, :, :3], axis=2).max(axis=(0, 1))
    shortest = GENTLE_TIP_ACCELERATION / MAX_GENTLE_ACCELERATION
    limits: Array = GENTLE_TIP_ACCELERATION / np.maximum(lever, shortest)
    return limits


def _joint_limits(name: str, value: float | tuple[float, ...], robot: RobotModel) -> Array:
    """Return the limits (n,) of the joints, after checking them.

    Args:
        name: Name of the option, for error messages.
        value: Limit of all joints, or a limit for each joint.
        robot: Robot with the joints.

    Raises:
        OptionError: If the number of limits does not fit the robot, or a limit is not positive.
    """
    limits = np.atleast_1d(np.asarray(value, float))
    if len(limits) not in (1, robot.n):
        raise OptionError(
            f"{name} must be one number, or {robot.n} numbers for {', '.join(robot.joint_names)}; "
            f"got {len(limits)} numbers"
        )
    if not (limits > 0.0).all():
        raise OptionError(f"{name} must be above 0; got {quoted(value)}")
    return np.broadcast_to(limits, robot.n).copy()
