# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Launch file of the ik node and robot_state_publisher for any robot.

A simulated arm that follows the commands, and RViz, are optional.
"""

import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from dls_ik.errors import DlsIkError
from dls_ik.model.urdf import load_urdf
from dls_ik.ros.util import check_executables

TEXTS = {  # empty if not given
    "urdf": "The robot: a URDF file, or a xacro file whose name ends in .xacro. Empty: the robot "
    "that params_file names, or else the robot_description topic of a robot that is already up; "
    "robot_state_publisher is not started then.",
    "srdf": "The SRDF of the robot, a file or a xacro file: links that may touch, and groups. "
    "Empty: what is published on robot_description_semantic, or none.",
    "scene": "A file of the objects around the arm, .yaml or .scene, of the ik node, and of the "
    "simulated arm with physics. Empty: none until they are published.",
    "xacro_args": "Arguments for a xacro file, such as 'name:=arm use_hand:=false'.",
    "namespace": "The namespace of all nodes; one for each arm.",
    "params_file": "A YAML file of parameters of the ik node, such as config/ik_params.yaml. The "
    "arguments below come before what it says.",
    "preset": "The name of a known arm, such as ur5e or fr3, for its tip, accelerations and "
    "controller. Empty: none.",
    "compatibility": "moveit_servo: names, units and defaults of MoveIt Servo. Empty: none.",
    "base": "The link that the chain starts from. Empty: found, where there is only one.",
    "tip": "The link that is to reach the target. Empty: found, where there is only one.",
    "rate": "How often the ik node answers a streamed target [Hz]. Empty: the node's default.",
    "output_type": "The types of the joint commands, with commas. Empty: the node's default, or "
    "joint_trajectory for the simulated arm.",
    "output_topic": "The topics of the joint commands, one for each type. Empty: the usual ones, "
    "or where the simulated arm takes them.",
    "sim_params_file": "A YAML file of parameters of the simulated arm, such as "
    "config/sim_params.yaml. Empty: its defaults.",
    "rviz_config": "What RViz opens. Empty: config/ik.rviz.",
}
SWITCHES = {
    "sim": "Whether to start a simulated arm, which takes the commands and publishes joint_states.",
    "physics": "Whether the simulated arm has masses, limited efforts and contacts, by MuJoCo.",
    "use_sim_time": "Whether the nodes take the time from the clock topic.",
    "rviz": "Whether to start RViz. Its fixed frame is base, or else the root link of urdf.",
    "respawn": "Whether a node that ended is started again, 2 s later; RViz is not. The ik node "
    "then begins where the arm is measured to be, and waits for a new target.",
}
DRAGGED = "Whether there is a marker in RViz to drag the target with. Empty: where rviz is true."
SIMULATED = {  # command topics of the simulated arm
    "joint_state": "joint_commands",
    "joint_trajectory": "joint_trajectory_controller/joint_trajectory",
    "position_array": "forward_position_controller/commands",
    "velocity_array": "forward_velocity_controller/commands",
}
MOVEIT_SERVO = "moveit_servo"  # value of the argument compatibility
# Names of the ik node by default, and with compatibility:=moveit_servo
USUAL_NAME, SERVO_NAME = "dls_ik", "servo_node"
SHOWN = (  # topics and the service of the ik node that RViz uses
    "markers",
    "target/update",
    "target/feedback",
    "target/get_interactive_markers",
)
Given = dict[str, str]  # arguments of the launch file
Values = dict[str, Any]
ENDS, MARKER = ("base", "tip"), "interactive_marker"
PARAMETERS = (
    "preset",
    "compatibility",
    *ENDS,
    "rate",
    "output_type",
    "output_topic",
    MARKER,
)  # parameters of the ik node


def generate_launch_description() -> LaunchDescription:
    texts = [
        DeclareLaunchArgument(name, default_value="", description=description)
        for name, description in TEXTS.items()
    ]
    booleans = ["true", "false", "True", "False"]
    switches = [
        DeclareLaunchArgument(
            name, default_value="false", choices=booleans, description=description
        )
        for name, description in SWITCHES.items()
    ]
    marker = DeclareLaunchArgument(
        MARKER, default_value="", choices=["", *booleans], description=DRAGGED
    )
    return LaunchDescription([*texts, *switches, marker, OpaqueFunction(function=nodes)])


def nodes(context: LaunchContext) -> list[Node]:
    """Return the nodes to start.

    The ik node gets the description as a parameter, not by its topic: it then has the requested
    robot from the start, whatever else is published on the topic.
    """
    given = {
        name: LaunchConfiguration(name).perform(context) for name in (*TEXTS, *SWITCHES, MARKER)
    }
    urdf = description("urdf", given)
    robot = {"robot_description": text(urdf)} if urdf else {}
    clock = {"use_sim_time": is_true(given["use_sim_time"])}
    common = {"namespace": given["namespace"], "output": "screen"}
    lasting = common | {"respawn": is_true(given["respawn"]), "respawn_delay": 2.0}
    wanted = {
        ik_node(given, clock, robot | semantic(given), lasting): True,
        sim_arm(given, clock, robot, lasting): is_true(given["sim"]),
        state_publisher(clock | robot, lasting): bool(urdf),
        rviz(given, urdf, clock, common): is_true(given["rviz"]),
    }
    chosen = [node for node, is_wanted in wanted.items() if is_wanted]
    check_executables(chosen, context)
    return chosen


def ik_node(given: Given, clock: Values, robot: Values, common: Values) -> Node:
    if is_true(given["sim"]):
        given = given | driving_outputs(given)
    if is_true(given["rviz"]):
        given = {**given, MARKER: given[MARKER] or "true"}
    return Node(
        package="dls_ik",
        executable="ik_node",
        parameters=[
            clock,
            *params_files("params_file", given),
            robot | scene(given) | chosen_parameters(given, PARAMETERS),
        ],
        **common,
    )


def sim_arm(given: Given, clock: Values, robot: Values, common: Values) -> Node:
    return Node(
        package="dls_ik",
        executable="ik_sim_arm",
        parameters=[
            clock,
            *params_files("sim_params_file", given),
            robot
            | chosen_parameters(given, ENDS)
            | ({"physics": True, **scene(given)} if is_true(given["physics"]) else {}),
        ],
        **common,
    )


def state_publisher(parameters: Values, common: Values) -> Node:
    name = "robot_state_publisher"
    return Node(package=name, executable=name, parameters=[parameters], **common)


def rviz(given: Given, urdf: str, clock: Values, common: Values) -> Node:
    return Node(
        package="rviz2",
        executable="rviz2",
        arguments=rviz_arguments(given, urdf),
        parameters=[clock],
        remappings=renamed(given),
        **common,
    )


def renamed(given: Given) -> list[tuple[str, str]]:
    """Return remappings of RViz to the topics of the ik node, if it is called servo_node.

    The configuration of RViz contains the topics of a node that is called dls_ik.
    """
    if given["compatibility"] != MOVEIT_SERVO:
        return []
    return [(f"{USUAL_NAME}/{topic}", f"{SERVO_NAME}/{topic}") for topic in SHOWN]


def driving_outputs(given: Given) -> Given:
    """Return the output parameters for the simulated arm that the user did not set."""
    kind = given["output_type"] or "joint_trajectory"
    if not any(each.strip() in SIMULATED for each in kind.split(",")):
        raise RuntimeError(
            f"the simulated arm accepts no {kind}; with sim:=true give one of "
            f"{', '.join(SIMULATED)} in output_type, or none"
        )
    topic = given["output_topic"] or SIMULATED.get(kind, "")
    return {"output_type": kind, "output_topic": topic}


def description(argument: str, given: Given) -> str:
    """Return the text of a URDF or SRDF file, or the output of xacro for a xacro file."""
    if not given[argument]:
        return ""
    path = existing_file(argument, given[argument])
    if path.suffix != ".xacro":
        return path.read_text(encoding="utf-8")
    if shutil.which("xacro") is None:
        raise RuntimeError(
            f"{argument}:={path} needs the command xacro, which is not installed: "
            "sudo apt-get install ros-$ROS_DISTRO-xacro"
        )
    more = shlex.split(given["xacro_args"]) if argument == "urdf" else []
    command = ["xacro", str(path), *more]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} failed, its message is above")
    return done.stdout


def semantic(given: Given) -> Values:
    """Return the SRDF as a parameter of the ik node, if it is given."""
    srdf = description("srdf", given)
    return {"robot_description_semantic": text(srdf)} if srdf else {}


def scene(given: Given) -> Values:
    """Return the file of objects as a parameter, if it is given."""
    if not given["scene"]:
        return {}
    return {"scene": text(str(existing_file("scene", given["scene"]).absolute()))}


def params_files(argument: str, given: Given) -> list[str]:
    return [str(existing_file(argument, given[argument]))] if given[argument] else []


def existing_file(argument: str, value: str) -> Path:
    path = Path(value).expanduser()
    if not path.is_file():
        raise RuntimeError(f"{argument}:={value} is not a file")
    return path


def chosen_parameters(given: Given, names: Sequence[str]) -> dict[str, Any]:
    return {name: typed(name, given[name]) for name in names if given[name]}


def typed(name: str, value: str) -> Any:
    """Return a parameter with the type that the ik node declares."""
    if name == "rate":
        return number(name, value)
    return is_true(value) if name == MARKER else text(value)


def number(argument: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise RuntimeError(f"{argument}:={value} is not a number") from None


def text(value: str) -> ParameterValue:
    """Return a parameter that stays text even if it is valid YAML."""
    return ParameterValue(value, value_type=str)


def is_true(value: str) -> bool:
    return value.lower() == "true"


def rviz_arguments(given: Given, urdf: str) -> list[str]:
    ours = Path(get_package_share_directory("dls_ik"), "config", "ik.rviz")
    own = given["rviz_config"]
    config = existing_file("rviz_config", own) if own else ours
    frame = given["base"] or root_link(urdf)
    return ["-d", str(config), *(["-f", frame] if frame else [])]


def root_link(urdf: str) -> str:
    try:
        return load_urdf(urdf).root if urdf else ""
    except DlsIkError:
        return ""  # the ik node says what is wrong with it
