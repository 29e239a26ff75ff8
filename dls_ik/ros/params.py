# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Parameters of ``ik_node``: declarations, and values as a frozen dataclass."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import MethodError, OptionError
from dls_ik.model.rotations import rotation_from_quaternion, transform
from dls_ik.ros.bounds import BoundParameters
from dls_ik.ros.declare import (
    ItemList,
    ItemParameters,
    ParameterSet,
    check_unique,
    declared,
    option,
    parameter,
    start_parameter,
)
from dls_ik.servo import DEFAULT_METHOD, ControllerOptions
from dls_ik.servo.ticks import check_servo_values
from dls_ik.solver.method import AUTO_METHOD, parse_method
from dls_ik.solver.options import RESTARTS_UNTIL_TIMEOUT, SolverOptions, solver_options
from dls_ik.solver.plugins import load_plugin
from dls_ik.solver.solver import CLEARANCE_SOLVE_TYPE
from dls_ik.solver.task import AXES, WEIGHT_RANGE, Task
from dls_ik.solver.task_stack import (
    OBJECTIVES,
    FrameTask,
    ObjectiveTask,
    PostureTask,
    StackTask,
    SwivelTask,
    TaskStack,
)
from dls_ik.text import listing

COLLISIONS_ON_REQUEST, COLLISIONS_ALWAYS, COLLISIONS_IGNORED = "request", "always", "ignore"
MODE_AUTO, MODE_REQUIRED, MODE_NONE = "auto", "required", "none"
FREE_AXES = (*AXES, *(f"r{axis}" for axis in AXES))
JOINT_STATE, JOINT_TRAJECTORY = "joint_state", "joint_trajectory"
POSITION_ARRAY, VELOCITY_ARRAY = "position_array", "velocity_array"
SERVO_TICKS = "servo_ticks"
SPEED_UNITS, UNITLESS = "speed_units", "unitless"
# Limits of at least this value [rad/s^2, m/s^2, m/s or rad/s] mean no limit, as .inf does.
MIN_UNLIMITED = 1e9

METHOD_OPTIONS = "method_options"  # prefix of the parameters for options of methods
COMMAND_SCALE = "command_scale"  # prefix of the parameters for the units of commands
COMMAND_SCALE_RANGE = (0.0, 1000.0)

Ends: TypeAlias = tuple[str | None, str | tuple[str, ...] | None]  # base, and tip or several tips

_CONTROLLER_OPTIONS = {f.name for f in fields(ControllerOptions)}


class CommandScale(NamedTuple):
    """Factors by which twists and joint velocities of messages are multiplied."""

    linear: float  # [m/s] linear velocity of a twist of 1
    rotational: float  # [rad/s] angular velocity of a twist of 1
    joint: float  # [rad/s or m/s] velocity of a joint command of 1


@dataclass(frozen=True)
class RobotParameters(ParameterSet):
    """Parameters that select the robot, and the base and the tip of its chain."""

    robot: str = start_parameter(
        "",
        "name of a shipped robot, a URDF, xacro or DH file, or package://NAME/PATH; "
        "with arguments of a xacro file: 'FILE.xacro NAME:=VALUE'",
    )
    robot_description: str = start_parameter(
        "",
        "URDF of the robot as text; if 'robot' is empty too, the node waits for the topic of the "
        "same name",
    )
    base: str = start_parameter("", "first link of the chain; empty: the root")
    tip: str = start_parameter("", "last link of the chain; empty: the only possible link")

    def ends(self) -> Ends:
        """Return the names of the base and the tip; None means the default of the robot."""
        return self.base or None, self.tip or None

    def check(self) -> None:
        """Check that at most one robot is given.

        Raises:
            OptionError: If both `robot` and `robot_description` are given.
        """
        super().check()
        if self.robot and self.robot_description:
            raise OptionError("'robot' and 'robot_description' are both given; give one of them")


@dataclass(frozen=True)
class GroupParameters(ItemParameters):
    """Parameters ``group.NAME.*`` of one group."""

    # The prefix cannot be "groups", because this is the parameter with the names, and in YAML a key
    # cannot have both a value and members.
    PREFIX: ClassVar = "group"

    tip: tuple[str, ...] = start_parameter(
        (), "tips of the group, one or more links; empty: the tip of the node"
    )
    base: str = start_parameter(
        "", "first link of the chains of the group; empty: the base of the node"
    )
    method: str = parameter("", "method for requests of the group; empty: the method of the node")
    timeout: float = parameter(
        0.0,
        "timeout of requests of the group that give no timeout; 0: the timeout of the node",
        "s",
        (0.0, 3600.0),
    )


@dataclass(frozen=True)
class GroupsParameters(RobotParameters):
    """Parameters that select the robot, its groups, and the group that follows targets."""

    groups: tuple[str, ...] = start_parameter(
        (),
        "names of groups for requests, each with group.NAME.tip, .base, .method and .timeout; "
        "empty: only the chain from base to tip",
    )
    stream_group: str = start_parameter(
        "",
        "group whose tips follow targets; empty: the chain from base to tip, or if these are empty "
        "the first group with one tip",
    )
    group_details: tuple[GroupParameters, ...] = ()  # one item for each name in groups

    ITEM_LISTS: ClassVar[tuple[ItemList, ...]] = (
        ItemList("groups", "group_details", GroupParameters),
    )

    def check(self) -> None:
        """Check that the groups are consistent.

        Raises:
            OptionError: If a group is listed twice, if `stream_group` and `base` or `tip` are both
                given, or if no group follows targets.
        """
        super().check()
        if self.stream_group and (self.base or self.tip):
            raise OptionError("'stream_group' and 'base' or 'tip' are both given; give one of them")
        self.ends()

    def ends(self) -> Ends:
        """Return the names of the base and the tip, or several tips, of the chain for targets.

        None means the default of the robot.

        Raises:
            OptionError: If `stream_group` is not a group, or if there is no group with exactly one
                tip.
        """
        group = self.followed_group()
        if group is None:
            return super().ends()
        tips = group.tip[0] if len(group.tip) == 1 else group.tip or None
        return group.base or None, tips

    def stream_tips(self) -> tuple[str, ...]:
        """Return the names of the tips that follow targets, if there are several; otherwise ()."""
        _, tips = self.ends()
        return tips if isinstance(tips, tuple) else ()

    def followed_group(self) -> GroupParameters | None:
        """Return the parameters of the group whose tip follows targets.

        Returns:
            Parameters; None if the chain from `base` to `tip` follows targets instead of a group.

        Raises:
            OptionError: If `stream_group` is not a group, or if there is no group with exactly one
                tip.
        """
        if not self.stream_group and (self.base or self.tip or not self.groups):
            return None
        groups = {group.name: group for group in self.group_details}
        single = [group.name for group in self.group_details if len(group.tip) < 2]
        name = self.stream_group or next(iter(single), "")
        if name not in groups:
            what = "must name one of the groups" if name else "is empty, and no group has one tip"
            raise OptionError(f"stream_group {what} ({listing(groups)}); got {name!r}")
        return groups[name]


@dataclass(frozen=True)
class Parameters(GroupsParameters):
    """All parameters of ``ik_node``."""

    preset: str = start_parameter(
        "",
        "name of a known arm whose preset replaces the defaults of tip, acceleration, controller "
        "and others; given parameters override the preset; empty: no preset",
    )

    compatibility: str = start_parameter(
        "",
        "moveit_servo: names, units and defaults of MoveIt Servo, whose parameters are read too "
        "(moveit_servo.*); empty: none",
        choices=("", "moveit_servo"),
    )
    plugins: tuple[str, ...] = start_parameter(
        (),
        "Python files with additional methods for method, stream_method and group.NAME.method; the "
        "files run with the permissions of this node",
    )

    # Solution of requests
    group_name: tuple[str, ...] = parameter(
        (),
        "group names in requests that mean the chain that follows targets; empty: any name if "
        "there are no groups",
    )
    method: str = parameter(AUTO_METHOD, "method that solves requests")
    position_tolerance: float = option(SolverOptions, "position_tolerance")
    rotation_tolerance: float = option(SolverOptions, "rotation_tolerance")
    rotation_weight: float = option(SolverOptions, "rotation_weight")
    timeout: float = option(SolverOptions, "timeout")
    solve_type: str = option(SolverOptions, "solve_type")
    random_seed: int = option(SolverOptions, "random_seed")
    avoid_collisions: str = parameter(
        COLLISIONS_ON_REQUEST,
        "when answers must be free of collisions and self-collisions: request: if the request sets "
        "avoid_collisions; always; ignore: never; requests that need a check are refused without a "
        "scene",
        choices=(COLLISIONS_ON_REQUEST, COLLISIONS_ALWAYS, COLLISIONS_IGNORED),
    )

    # The scene
    robot_description_semantic: str = start_parameter(
        "",
        "SRDF of the robot as text, with groups and links that may touch; empty: the SRDF on the "
        "topic of the same name",
    )
    mesh_folders: tuple[str, ...] = start_parameter(
        (),
        "folders from which meshes may be read, besides ROS packages and the folder of the robot "
        "file",
    )
    monitored_planning_scene: str = start_parameter(
        "",
        "topic on which move_group publishes its scene, such as /monitored_planning_scene; the "
        "whole scene is requested from get_planning_scene in the same namespace; empty: no topic",
    )

    # Actions and planning
    motion_actions: bool = start_parameter(
        True, "serve the actions ~/follow_joint_trajectory and ~/move_to_pose"
    )
    move_group_interface: bool = start_parameter(
        False,
        "serve the planning services and the actions of move_group: plan_kinematic_path, "
        "compute_cartesian_path, execute_trajectory and move_action; false while move_group runs",
    )

    # Limits of requests
    service_threads: int = start_parameter(
        2,
        "number of threads that solve requests which take longer than a millisecond",
        span=(1, 64),
    )
    service_queue: int = start_parameter(
        64,
        "maximum number of requests that wait for a service thread; further requests are refused",
        span=(1, 10_000),
    )
    max_timeout: float = start_parameter(
        10.0,
        "maximum timeout of a request; longer timeouts are shortened to this time",
        "s",
        (1e-3, 3600.0),
    )

    # Scene and bounds of the stream
    stream_avoid_collisions: str = start_parameter(
        MODE_AUTO,
        "whether the arm keeps min_distance to objects and between links while it follows targets: "
        "auto: if there is a scene (targets wait until it is built); required: yes, no motion "
        "without a scene; none: no",
        choices=(MODE_AUTO, MODE_REQUIRED, MODE_NONE),
    )
    scene: str = start_parameter(
        "", "file of the planning scene at the start, .yaml or .scene; empty: no objects"
    )
    min_distance: float = option(ControllerOptions, "min_distance", read_only=True)
    influence_distance: float = option(ControllerOptions, "influence_distance", read_only=True)
    bounds: tuple[str, ...] = start_parameter(
        (),
        "names of workspace bounds, each with bound.NAME.box, .sphere or .half_space, a pose and "
        "links",
    )
    bound_details: tuple[BoundParameters, ...] = ()  # one item for each name in bounds
    max_linear_speed: float = parameter(
        math.inf, "maximum linear speed of the tip; .inf: no limit", "m/s", (1e-6, math.inf)
    )
    max_angular_speed: float = parameter(
        math.inf, "maximum angular speed of the tip; .inf: no limit", "rad/s", (1e-6, math.inf)
    )
    scale: float = option(ControllerOptions, "scale")

    # Use of the redundancy by an arm that follows targets
    free_axes: tuple[str, ...] = parameter(
        (),
        "axes of the target along (x, y, z) or about (rx, ry, rz) which the tip may deviate, such "
        "as [rz] for a tool that is free to turn about its own z axis; empty: none",
        choices=FREE_AXES,
    )
    frozen_joints: tuple[str, ...] = parameter(
        (), "names of joints that do not move while the arm follows targets"
    )
    joint_weights: tuple[float, ...] = parameter(
        (),
        "weight of each joint: one with the weight 4 moves about a quarter as far; empty: equal",
        span=WEIGHT_RANGE,
    )
    swivel: tuple[float, ...] = parameter(
        (),
        "desired swivel angle of the elbow of a 7-joint arm, one number (0: elbow up), as far as "
        "the targets permit; empty: any angle",
        "rad",
    )
    posture: tuple[float, ...] = parameter(
        (),
        "joint positions to stay close to, one for each joint of the chain, as far as targets and "
        "swivel permit; empty: none",
        "rad or m",
    )
    relative_pose: tuple[float, ...] = parameter(
        (),
        "pose of the second tip of stream_group in the frame of the first, with priority over all "
        "targets: x, y, z, then the quaternion x, y, z, w; empty: each tip has its own target",
        "m and 1",
    )
    stream_objective: str = parameter(
        "",
        "use of the freedom that targets, swivel and posture leave: manipulability, limits or "
        "centring; empty: none",
        choices=("", *OBJECTIVES),
    )

    # Following of targets; parameters that affect safety are read-only
    stream_method: str = parameter(DEFAULT_METHOD, "method with which the arm follows targets")
    rate: float = start_parameter(100.0, "rate of the control cycles", "Hz", (1.0, 1000.0))
    thread_priority: int = start_parameter(
        50,
        "real-time priority of the servo loop (SCHED_FIFO), if permitted, and one below of the "
        "threads of Fast DDS; 0: no real-time priority",
        span=(0, 99),
    )
    acceleration: tuple[float, ...] = start_parameter(
        (),
        "maximum acceleration, one value for all joints or one for each; empty: computed from the "
        "reach of the arm; [.inf]: no limit",
        "rad/s^2 or m/s^2",
        (1e-6, math.inf),
    )
    jerk: tuple[float, ...] = option(ControllerOptions, "jerk", read_only=True)
    when_stuck: str = option(ControllerOptions, "when_stuck")
    feed_forward: bool = option(ControllerOptions, "feed_forward")
    bridge_time: float = option(ControllerOptions, "bridge_time")
    target_timeout: float = option(ControllerOptions, "target_timeout")
    when_stream_ends: str = option(ControllerOptions, "when_stream_ends")
    settle_distance: float = option(ControllerOptions, "settle_distance")
    settle_angle: float = option(ControllerOptions, "settle_angle")
    stamp_tolerance: float = option(ControllerOptions, "stamp_tolerance")
    twist_lookahead: float = option(ControllerOptions, "twist_lookahead")
    command_in_type: str = parameter(
        SPEED_UNITS,
        "unit of twists and joint velocities: speed_units: m/s and rad/s; unitless: from -1 to 1, "
        "multiplied by command_scale.*",
        choices=(SPEED_UNITS, UNITLESS),
    )
    command_scale_linear: float = parameter(
        0.4,
        "linear velocity of a unitless twist of 1",
        "m/s",
        COMMAND_SCALE_RANGE,
        group=COMMAND_SCALE,
    )
    command_scale_rotational: float = parameter(
        0.8,
        "angular velocity of a unitless twist of 1",
        "rad/s",
        COMMAND_SCALE_RANGE,
        group=COMMAND_SCALE,
    )
    command_scale_joint: float = parameter(
        0.5,
        "joint velocity of a unitless command of 1 on target_joint_jog",
        "rad/s or m/s",
        COMMAND_SCALE_RANGE,
        group=COMMAND_SCALE,
    )
    twist_frame: str = start_parameter(
        "", "frame of geometry_msgs/Twist messages on target_twist; empty: the root"
    )
    trajectory_period: float = parameter(
        0.1, "time between two poses of a target_trajectory", "s", (1e-3, 3600.0)
    )
    feedback_mode: str = start_parameter(
        MODE_AUTO,
        "use of joint states: auto: as the start state of the arm, before which no commands are "
        "sent to a controller; required: also to supervise the motion; none: ignored",
        choices=(MODE_AUTO, MODE_REQUIRED, MODE_NONE),
    )
    measurement_timeout: float = option(ControllerOptions, "measurement_timeout", read_only=True)
    max_deviation: float = option(ControllerOptions, "max_deviation", read_only=True)
    initial_positions: tuple[float, ...] = parameter(
        (),
        "start positions of the chain's joints if there are no joint states; empty: 0 or the limit "
        "closest to 0, and bent near singularities",
        "rad or m",
    )

    # Outputs
    output_type: tuple[str, ...] = start_parameter(
        (JOINT_STATE,),
        "message types of the commands, one or more",
        choices=(JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY, VELOCITY_ARRAY, SERVO_TICKS),
    )
    output_topic: tuple[str, ...] = start_parameter(
        (),
        "topics of the commands, one for each output_type; empty: the default topic of each type",
    )
    output_joints: tuple[str, ...] = start_parameter(
        (), "names of the joints in the order of all outputs; empty: from base to tip"
    )
    output_names: tuple[str, ...] = start_parameter(
        (),
        "names that the driver uses for the output_joints, in commands and joint_states; empty: "
        "the names in the robot description",
    )
    servo_resolution: tuple[float, ...] = start_parameter(
        (),
        "servo_ticks: joint motion per tick, one number for all output_joints or one for each",
        "rad or m",
        (0.0, 1e3),
    )
    servo_offset: tuple[float, ...] = start_parameter(
        (),
        "servo_ticks: goal position of the servos at joint position 0, one number or one for each "
        "joint; empty: 0",
        "ticks",
        (-1e9, 1e9),
    )
    servo_direction: tuple[float, ...] = start_parameter(
        (),
        "servo_ticks: 1, or -1 if goal positions decrease as joint positions increase, one number "
        "or one for each joint; empty: 1",
        span=(-1.0, 1.0),
    )
    trajectory_points: int = start_parameter(
        0,
        "number of points of a joint_trajectory: 1: only the command; 0: the command and a braking "
        "trajectory with as many points as the acceleration limits need; above 1: as 0, but with "
        "at least this number of points while the arm moves",
        span=(0, 100),
    )
    trajectory_accelerations: bool = start_parameter(
        False,
        "also write accelerations to the points of a joint_trajectory; needs jerk limits, because "
        "otherwise the accelerations jump at the points",
    )
    trail: float = start_parameter(
        5.0, "duration of the recent path of the tip that the markers show", "s", (0.0, 60.0)
    )
    interactive_marker: bool = start_parameter(
        False, "publish an RViz marker with which the user can drag the target"
    )

    # Options of methods, for services and stream
    alpha: float = option(SolverOptions, "alpha", group=METHOD_OPTIONS)
    lambda_: float = option(SolverOptions, "lambda_", group=METHOD_OPTIONS)
    nu: float = option(SolverOptions, "nu", group=METHOD_OPTIONS)
    sigma0: float = option(SolverOptions, "sigma0", group=METHOD_OPTIONS)
    gamma_max: float = option(SolverOptions, "gamma_max", group=METHOD_OPTIONS)
    margin: float = option(SolverOptions, "margin", group=METHOD_OPTIONS)
    mu: float = option(SolverOptions, "mu", group=METHOD_OPTIONS)

    ITEM_LISTS: ClassVar[tuple[ItemList, ...]] = (
        *GroupsParameters.ITEM_LISTS, ItemList("bounds", "bound_details", BoundParameters)
    )  # fmt: skip
    FORMER_NAMES: ClassVar = {
        name: f"{METHOD_OPTIONS}.{name}"
        for name in ("alpha", "lambda", "nu", "sigma0", "gamma_max", "margin", "mu")
    }

    def foreign_prefixes(self) -> tuple[str, ...]:
        """Return the prefix of the parameters of MoveIt Servo, if the node reads them."""
        return (f"{self.compatibility}.",) if self.compatibility else ()

    def check(self) -> None:
        """Check that the values are consistent.

        Raises:
            OptionError: If parameters of robots, groups, bounds or outputs contradict each other.
            MethodError: If a method is unknown or cannot follow targets, or its options violate a
                condition.
        """
        super().check()
        for file in self.plugins:
            _load_plugin(file)
        self._check_outputs()
        for bound in self.bound_details:
            bound.check()
        self.stream_task()
        of_groups = [group.method for group in self.group_details if group.method]
        for method in (self.method, self.stream_method, *of_groups):
            solver_options(parse_method(method), self.solver_options())
        choice = parse_method(self.stream_method)
        if choice.follows_no_target:  # checked here, even before there is a robot
            raise MethodError(
                f"stream_method must be a method that can follow targets; got "
                f"{self.stream_method!r}, which cannot"
            )

    def _check_outputs(self) -> None:
        types, topics = self.output_type, self.output_topic
        if not types:
            raise OptionError("output_type must contain at least one type; got none")
        if topics and len(topics) != len(types):
            raise OptionError(
                f"output_topic must be empty or contain one topic for each output_type "
                f"({', '.join(types)}); got {', '.join(topics)}"
            )
        if SERVO_TICKS in types:
            check_servo_values(self.servo_resolution, self.servo_direction)
        if self.trajectory_accelerations and not self.jerk:
            raise OptionError(
                "trajectory_accelerations needs jerk limits, without which accelerations jump at "
                "the points of a trajectory; set jerk, such as jerk:=[50.0], or set "
                "trajectory_accelerations to false"
            )
        if self.trajectory_accelerations and self.trajectory_points == 1:
            raise OptionError(
                "trajectory_accelerations needs points with velocities; set trajectory_points to 0 "
                "or above 1; got 1"
            )
        for name in ("output_joints", "output_names"):
            check_unique(name, getattr(self, name))

    def command_scale(self) -> CommandScale:
        """Return the factors of twists and joint velocities in messages."""
        if self.command_in_type == SPEED_UNITS:
            return CommandScale(1.0, 1.0, 1.0)
        return CommandScale(
            self.command_scale_linear, self.command_scale_rotational, self.command_scale_joint
        )

    def solver_options(self) -> dict[str, Any]:
        """Return the options of a solver by name, which also apply to the method of a controller.

        Options with default values are left out, because some methods have other defaults. The
        `solve_type` "clearance" is left out, because it needs a solver with a scene.
        """
        defaults = {f.name: f.default for f in fields(SolverOptions)}
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name in defaults}
        if given["solve_type"] == CLEARANCE_SOLVE_TYPE:
            given["solve_type"] = defaults["solve_type"]
        return {n: value for n, value in given.items() if value not in (defaults[n], ())}

    def service_options(self, method: str) -> dict[str, Any]:
        """Return the options of the solver of a service, which searches until a request's timeout.

        Args:
            method: Name of the method. Methods other than "auto" keep their number of restarts.
        """
        options = self.solver_options()
        options.pop("joint_weights", None)  # these weights are for the stream
        if parse_method(method).name == AUTO_METHOD:
            options["max_restarts"] = RESTARTS_UNTIL_TIMEOUT
        return options

    def controller_options(self) -> dict[str, Any]:
        """Return the options of a controller by name, without the options of the method."""
        own = (f.name for f in fields(self) if f.name in _CONTROLLER_OPTIONS)
        given = {name: getattr(self, name) for name in own}
        given["supervised"] = self.feedback_mode == MODE_REQUIRED
        if self.acceleration:
            given["acceleration"] = tuple(
                math.inf if limit >= MIN_UNLIMITED else limit for limit in self.acceleration
            )
        for name in ("max_linear_speed", "max_angular_speed"):
            given[name] = math.inf if given[name] >= MIN_UNLIMITED else given[name]
        return {name: _per_joint(value) for name, value in given.items() if value != ()}

    @property
    def needs_surroundings(self) -> bool:
        """Whether a scene or workspace bounds must be known before the arm follows targets."""
        return self.stream_avoid_collisions != MODE_NONE or bool(self.bounds)

    def stream_settings(self) -> tuple[Any, ...]:
        """Return the settings that determine a controller; equal settings, equal controllers."""
        redundancy = self.free_axes, self.frozen_joints, self.task_levels(), self.relative_pose
        return (self.stream_method, self.controller_options(), self.solver_options(), redundancy)

    def stream_task(self) -> Task | TaskStack | None:
        """Return the task of an arm that follows targets; None for the full pose.

        Raises:
            OptionError: If all axes are free, or a target of a lower level is not valid.
        """
        task = None
        if self.free_axes:
            position = "".join(axis for axis in AXES if axis not in self.free_axes)
            rotation = "".join(axis for axis in AXES if f"r{axis}" not in self.free_axes)
            task = Task(position, rotation, frame="target")
        levels, relative = self.task_levels(), self._relative_task()
        if relative is not None:
            rest = [task or Task()] * (len(self.stream_tips()) - 2)
            return TaskStack(relative, [task or Task(), Task.free(), *rest], *levels)
        return TaskStack(task or Task(), *levels) if levels else task

    def _relative_task(self) -> FrameTask | None:
        """Return the task of the second tip relative to the first; None without one.

        Raises:
            OptionError: If the pose is not a position and a unit quaternion, or `stream_group` has
                fewer than two tips.
        """
        given, tips = self.relative_pose, self.stream_tips()
        if not given:
            return None
        if len(tips) < 2:
            raise OptionError(
                "relative_pose needs a stream_group with several tips, such as "
                "groups:=[both], group.both.tip:=[LEFT, RIGHT], stream_group:=both"
            )
        length = math.hypot(*given[3:])
        if len(given) != 7 or not all(map(math.isfinite, given)) or abs(length - 1.0) > 0.01:
            raise OptionError(
                "relative_pose must be x, y, z and the unit quaternion x, y, z, w, or empty; got "
                f"{list(given)}"
            )
        return FrameTask(tips[1], relative_matrix(given), reference=tips[0])

    def task_levels(self) -> tuple[StackTask, ...]:
        """Return the tasks below the target pose, one per level.

        Raises:
            OptionError: If a value is not valid.
        """
        if len(self.swivel) > 1:
            raise OptionError(f"swivel must be empty or one angle; got {len(self.swivel)} numbers")
        levels: list[StackTask] = [SwivelTask(angle) for angle in self.swivel]
        levels += [PostureTask(self.posture)] if self.posture else []
        levels += [ObjectiveTask(self.stream_objective)] if self.stream_objective else []
        return tuple(levels)


def relative_matrix(numbers: Sequence[float]) -> Array:
    """Return the pose (4, 4) for x, y, z and the quaternion x, y, z, w."""
    return transform(rotation_from_quaternion(numbers[3:]), np.array(numbers[:3]))


def _per_joint(value: Any) -> Any:
    """Return the number in a tuple of one number, which applies to all joints.

    Return all other values unchanged.
    """
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value


@cache
def _load_plugin(file: str) -> tuple[str, ...]:
    """Run a plugin file, which adds methods; each file is run only once in a process.

    Returns:
        Result of :func:`dls_ik.solver.plugins.load_plugin`.
    """
    return load_plugin(file)


DECLARED = declared(Parameters)  # all parameters except group.NAME.* and bound.NAME.*
ROS_NAMES = {field.name: name for name, field in DECLARED.items()}  # names in ROS by field name
