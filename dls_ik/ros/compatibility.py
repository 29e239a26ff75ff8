# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Names, defaults and parameters with which ``ik_node`` can replace the node of MoveIt Servo.

The parameter ``compatibility`` selects them. Sources: ``servo_parameters.yaml`` and
``servo_node.cpp`` of moveit2 2.15.0.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from dls_ik.errors import OptionError
from dls_ik.ros.declare import read_number
from dls_ik.ros.process import NodeVariant
from dls_ik.text import listing, quoted

COMPATIBILITY, MOVEIT_SERVO = "compatibility", "moveit_servo"
SERVO_NODE_NAME = "servo_node"  # default name of the node, and name in the topics of its clients
PREFIX = "moveit_servo."  # MoveIt Servo declares its parameters with this prefix
SERVO_NAMES = {  # names of topics and services by their names without `compatibility`
    "target_pose": "~/pose_target_cmds",
    "target_twist": "~/delta_twist_cmds",
    "target_joint_jog": "~/delta_joint_cmds",
    "~/pause": "~/pause_servo",
}
TOPIC_PARAMETERS = {  # topics by the parameters of MoveIt Servo that rename them
    "pose_command_in_topic": "~/pose_target_cmds",
    "cartesian_command_in_topic": "~/delta_twist_cmds",
    "joint_command_in_topic": "~/delta_joint_cmds",
    "status_topic": "~/status",
    "joint_topic": "joint_states",
    "monitored_planning_scene_topic": "planning_scene",
}
SERVO_TRAJECTORY_TYPE, SERVO_ARRAY_TYPE = (
    "trajectory_msgs/JointTrajectory",
    "std_msgs/Float64MultiArray",
)
# Defaults of parameters in MoveIt Servo that differ from those of the node.
SERVO_DEFAULTS: Mapping[str, Any] = {
    "command_in_type": "unitless",
    "target_timeout": 0.1,
    "output_type": "joint_trajectory",
    "when_stream_ends": "stop",
}
DAMPED = "the method damps near singularities, without a stop"
HELD_JOINTS = "only the joint at its limit stops"
DISTANCES = "set min_distance and influence_distance"
LIMITS = "acceleration and jerk limits replace the filter"
# Parameters of MoveIt Servo without a counterpart, with the reason or the remedy.
WITHOUT_EFFECT = {
    "move_group_name": "set base and tip, preset, or stream_group",
    "active_subgroup": "set base and tip, or stream_group",
    "max_expected_latency": "each trajectory includes the complete stop",
    "pose_tracking.linear_tolerance": "poses are tracked exactly",
    "pose_tracking.angular_tolerance": "poses are tracked exactly",
    "check_octomap_collisions": "publish collision objects; see docs/collisions.md",
    "is_primary_planning_scene_monitor": "get_planning_scene is always served",
    "use_smoothing": LIMITS,
    "smoothing_filter_plugin_name": LIMITS,
    "self_collision_proximity_threshold": DISTANCES,
    "scene_collision_proximity_threshold": DISTANCES,
    "collision_check_rate": "distances are checked in each cycle",
    "lower_singularity_threshold": DAMPED,
    "hard_stop_singularity_threshold": DAMPED,
    "leaving_singularity_threshold_multiplier": DAMPED,
    "singularity_step_scale": DAMPED,
    "halt_all_joints_in_joint_mode": HELD_JOINTS,
    "halt_all_joints_in_cartesian_mode": HELD_JOINTS,
    "joint_limit_margins": "the full range is used; see method_options.margin",
}


class ServoParameters(NamedTuple):
    """Parameters of MoveIt Servo that were given to the node, as parameters of the node."""

    values: dict[str, Any]  # values by the names of the node
    used: list[str]  # names of the given parameters that have an effect
    notes: dict[str, str]  # why a given parameter has no effect, by its name


def is_servo(given: Mapping[str, Any]) -> bool:
    """Return whether given parameters select the names and defaults of MoveIt Servo."""
    return bool(given.get(COMPATIBILITY) == MOVEIT_SERVO)


def public_name(name: str, compatibility: str) -> str:
    """Return the name of a topic or service of the node.

    Args:
        name: Name without `compatibility`, such as ``target_twist``.
        compatibility: Value of the parameter ``compatibility``.
    """
    return SERVO_NAMES.get(name, name) if compatibility == MOVEIT_SERVO else name


def choose_variant(name: str, given: Mapping[str, Any]) -> NodeVariant:
    """Return the default name and the remappings of a node, from the parameters given to it.

    Args:
        name: Default name of the node without `compatibility`.
        given: Parameter values by name.

    Raises:
        OptionError: If the value of a parameter in `TOPIC_PARAMETERS` is not text, or is empty.
    """
    if not is_servo(given):
        return NodeVariant(name)
    rules = []
    for parameter, topic in TOPIC_PARAMETERS.items():
        renamed = given.get(PREFIX + parameter, topic)
        if not isinstance(renamed, str) or not renamed:
            raise OptionError(f"{PREFIX}{parameter} must be a topic; got {quoted(renamed)}")
        if renamed != topic:
            rules += ["-r", f"{topic}:={renamed}"]
    return NodeVariant(SERVO_NODE_NAME, tuple(rules))


def servo_parameters(given: Mapping[str, Any]) -> ServoParameters:
    """Translate the parameters of MoveIt Servo among given parameters.

    Args:
        given: Parameter values by name, with which the node was started.

    Raises:
        OptionError: If a value is not valid, or a name is unknown.
    """
    servo = {k.removeprefix(PREFIX): value for k, value in given.items() if k.startswith(PREFIX)}
    values: dict[str, Any] = {}
    notes: dict[str, str] = {}
    is_unitless = servo.get("command_in_type", given.get("command_in_type")) != "speed_units"
    for name, value in servo.items():
        if name in WITHOUT_EFFECT:
            notes[name] = WITHOUT_EFFECT[name]
        elif name in _TRANSLATORS:
            _TRANSLATORS[name](name, value, values, is_unitless)
        elif name not in TOPIC_PARAMETERS and name not in OUTPUT_PARAMETERS:
            known = sorted({*_TRANSLATORS, *TOPIC_PARAMETERS, *OUTPUT_PARAMETERS, *WITHOUT_EFFECT})
            raise OptionError(f"unknown parameter {PREFIX}{name}; known: {listing(known, 60)}")
    if servo.get("apply_twist_commands_about_ee_frame") is False:
        notes["apply_twist_commands_about_ee_frame"] = "a twist is always the velocity of the tip"
    values |= _outputs(servo, notes)
    return ServoParameters(values, sorted(set(servo) - set(notes)), notes)


def _rename(own: str) -> "Translate":
    def translate(name: str, value: Any, values: dict[str, Any], is_unitless: bool) -> None:
        values[own] = value

    return translate


def _number(name: str, value: Any, least: float) -> float:
    """Return a number above `least`.

    Raises:
        OptionError: If the value is not such a number.
    """
    try:
        number = read_number(value)
    except ValueError:
        number = least
    if not number > least:
        raise OptionError(f"{PREFIX}{name} must be a number above {least:g}; got {quoted(value)}")
    return number


def _translate_period(name: str, value: Any, values: dict[str, Any], is_unitless: bool) -> None:
    values["rate"] = 1.0 / _number(name, value, 0.0)


def _translate_scale(name: str, value: Any, values: dict[str, Any], is_unitless: bool) -> None:
    """Set the factor of unitless commands, or otherwise the limit of the speed of the tip."""
    if is_unitless:
        values[f"command_{name}"] = value
    elif (limit := _number(name, value, -1.0)) > 0.0:
        own = {"scale.linear": "max_linear_speed", "scale.rotational": "max_angular_speed"}
        values[own[name]] = limit


def _translate_check(name: str, value: Any, values: dict[str, Any], is_unitless: bool) -> None:
    values["stream_avoid_collisions"] = "auto" if value else "none"


def _translate_override(name: str, value: Any, values: dict[str, Any], is_unitless: bool) -> None:
    if (factor := _number(name, value, -1.0)) > 0.0:
        values["scale"] = factor


def _check_switch(name: str, value: Any, values: dict[str, Any], is_unitless: bool) -> None:
    if not isinstance(value, bool):
        raise OptionError(f"{PREFIX}{name} must be true or false; got {quoted(value)}")


# Function that writes the values of a parameter of MoveIt Servo: name, value, values, is_unitless.
Translate = Callable[[str, Any, dict[str, Any], bool], None]
OUTPUT_PARAMETERS = (
    "command_out_topic",
    "command_out_type",
    "publish_joint_positions",
    "publish_joint_velocities",
    "publish_joint_accelerations",
)
_TRANSLATORS: Mapping[str, Translate] = {
    "thread_priority": _rename("thread_priority"),
    "publish_period": _translate_period,
    "command_in_type": _rename("command_in_type"),
    "scale.linear": _translate_scale,
    "scale.rotational": _translate_scale,
    "scale.joint": _rename("command_scale.joint"),
    "incoming_command_timeout": _rename("target_timeout"),
    "apply_twist_commands_about_ee_frame": _check_switch,
    "check_collisions": _translate_check,
    "override_velocity_scaling_factor": _translate_override,
}


def _outputs(servo: Mapping[str, Any], notes: dict[str, str]) -> dict[str, Any]:
    """Return the parameters of the outputs, and note the values that have no effect.

    Raises:
        OptionError: If the type of the output is unknown.
    """
    kind = servo.get("command_out_type", SERVO_TRAJECTORY_TYPE)
    if kind not in (SERVO_TRAJECTORY_TYPE, SERVO_ARRAY_TYPE):
        raise OptionError(
            f"{PREFIX}command_out_type must be {SERVO_TRAJECTORY_TYPE} or {SERVO_ARRAY_TYPE}; got "
            f"{quoted(kind)}"
        )
    values: dict[str, Any] = {}
    has_positions = servo.get("publish_joint_positions", True)
    if kind == SERVO_ARRAY_TYPE:
        values["output_type"] = "position_array" if has_positions else "velocity_array"
    elif not has_positions:
        notes["publish_joint_positions"] = "trajectories always have positions"
    if kind == SERVO_TRAJECTORY_TYPE and servo.get("publish_joint_velocities") is False:
        notes["publish_joint_velocities"] = "set trajectory_points to 1 to omit velocities"
    if servo.get("publish_joint_accelerations") is True:
        notes["publish_joint_accelerations"] = "set trajectory_accelerations and jerk"
    if "command_out_topic" in servo:
        values["output_topic"] = servo["command_out_topic"]
        values.setdefault("output_type", "joint_trajectory")
    return values
