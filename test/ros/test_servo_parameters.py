# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Parameters of MoveIt Servo, translated to those of the node."""

import pytest

from dls_ik.errors import OptionError
from dls_ik.ros.compatibility import choose_variant, servo_parameters
from dls_ik.ros.presets import with_preset
from dls_ik.ros.process import NodeVariant

SERVO = {"compatibility": "moveit_servo"}


def prefixed(**given):
    return {f"moveit_servo.{name.replace('__', '.')}": value for name, value in given.items()}


def test_defaults_are_those_of_servo():
    parameters = with_preset(SERVO)
    assert parameters.command_scale() == (0.4, 0.8, 0.5)
    assert parameters.target_timeout == 0.1
    assert parameters.output_type == ("joint_trajectory",)
    assert with_preset({}).command_scale() == (1.0, 1.0, 1.0)
    panda = with_preset({**SERVO, "preset": "panda"})
    assert panda.output_topic == ("panda_arm_controller/joint_trajectory",)
    assert panda.command_in_type == "unitless"


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ({"publish_period": 0.004}, {"rate": 250.0}),
        ({"scale__linear": 0.2, "scale__joint": 1.0},
         {"command_scale.linear": 0.2, "command_scale.joint": 1.0}),
        ({"command_in_type": "speed_units", "scale__linear": 0.2, "scale__rotational": 0.0},
         {"command_in_type": "speed_units", "max_linear_speed": 0.2}),
        ({"incoming_command_timeout": 0.3}, {"target_timeout": 0.3}),
        ({"check_collisions": False}, {"stream_avoid_collisions": "none"}),
        ({"override_velocity_scaling_factor": 0.5}, {"scale": 0.5}),
        ({"override_velocity_scaling_factor": 0.0}, {}),
        ({"command_out_topic": "/arm/joint_trajectory"},
         {"output_type": "joint_trajectory", "output_topic": "/arm/joint_trajectory"}),
        ({"command_out_type": "std_msgs/Float64MultiArray", "command_out_topic": "/v/commands",
          "publish_joint_positions": False, "publish_joint_velocities": True},
         {"output_type": "velocity_array", "output_topic": "/v/commands"}),
        ({"command_out_type": "std_msgs/Float64MultiArray"}, {"output_type": "position_array"}),
    ],
)  # fmt: skip
def test_parameters_with_a_counterpart_are_translated(given, values):
    found = servo_parameters(SERVO | prefixed(**given))
    assert found.values == values
    assert not found.notes
    with_preset(SERVO | prefixed(**given))


def test_parameters_without_an_effect_are_explained():
    given = prefixed(
        move_group_name="arm", use_smoothing=True, publish_joint_accelerations=True,
        apply_twist_commands_about_ee_frame=False,
    )  # fmt: skip
    found = servo_parameters(SERVO | given)
    assert set(found.notes) == {name.removeprefix("moveit_servo.") for name in given}
    assert "jerk" in found.notes["publish_joint_accelerations"]
    assert not found.used


def test_own_parameters_override_those_of_servo():
    given = SERVO | prefixed(command_out_topic="/servo") | {"output_topic": "own"}
    assert "output_topic" in given
    assert with_preset(given).output_topic == ()  # the node declares what was given


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"publish_perod": 0.01}, "unknown parameter moveit_servo.publish_perod; known: "),
        ({"publish_period": 0.0}, "publish_period must be a number above 0"),
        ({"publish_period": "fast"}, "got 'fast'"),
        ({"command_out_type": "Float64"}, "command_out_type must be trajectory_msgs/JointTraj"),
        ({"command_in_type": "metres"}, "command_in_type must be one of speed_units, unitless"),
        ({"scale__linear": -1.0}, r"command_scale.linear must be from 0 to 1000 \[m/s\]"),
        ({"apply_twist_commands_about_ee_frame": 1}, "must be true or false"),
    ],
)
def test_bad_parameters_are_refused(given, words):
    with pytest.raises(OptionError, match=words):
        with_preset(SERVO | prefixed(**given))


def test_topic_parameters_become_remappings():
    assert choose_variant("dls_ik", {}) == NodeVariant("dls_ik")
    assert choose_variant("dls_ik", SERVO) == NodeVariant("servo_node")
    given = prefixed(cartesian_command_in_topic="jog", status_topic="~/status", joint_topic="/arm")
    rules = ("-r", "~/delta_twist_cmds:=jog", "-r", "joint_states:=/arm")
    assert choose_variant("dls_ik", SERVO | given) == NodeVariant("servo_node", rules)
    with pytest.raises(OptionError, match="joint_topic must be a topic; got 7"):
        choose_variant("dls_ik", SERVO | prefixed(joint_topic=7))
