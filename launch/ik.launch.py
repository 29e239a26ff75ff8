"""Inverse kinematics for any robot: the ik node, robot_state_publisher and, if asked for, RViz."""

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from dls_ik.exceptions import DlsIkError
from dls_ik.model.urdf import load_urdf

TEXTS = {  # empty if not given
    "urdf": "The robot: a URDF file, or a xacro file whose name ends in .xacro. Empty: the robot "
    "that params_file names, or else the robot_description topic of a robot that is already up; "
    "robot_state_publisher is not started then.",
    "xacro_args": "Arguments for a xacro file, such as 'name:=arm use_hand:=false'.",
    "namespace": "The namespace of all nodes; one for each arm.",
    "params_file": "A YAML file of parameters of the ik node, such as config/ik_params.yaml. The "
    "arguments below come before what it says.",
    "base": "The link that the chain starts from. Empty: found, where there is only one.",
    "tip": "The link that is to reach the target. Empty: found, where there is only one.",
    "rate": "How often the ik node answers a streamed target [Hz]. Empty: the node's default.",
    "output_type": "The types of the joint commands, with commas. Empty: the node's default.",
    "output_topic": "The topics of the joint commands, one for each type. Empty: the usual ones.",
}
SWITCHES = {
    "use_sim_time": "Whether the nodes take the time from the clock topic.",
    "rviz": "Whether to start RViz. Its fixed frame is base, or else the root link of urdf.",
}
PARAMETERS = ("base", "tip", "rate", "output_type", "output_topic")  # of the ik node


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
    return LaunchDescription([*texts, *switches, OpaqueFunction(function=nodes)])


def nodes(context: LaunchContext) -> list[Node]:
    """The nodes to start.

    The ik node has the description as a parameter, not by its topic: it then has its robot from
    the start, and the one that was asked for, whatever else is published.
    """
    given = {name: LaunchConfiguration(name).perform(context) for name in (*TEXTS, *SWITCHES)}
    urdf = description(given["urdf"], given["xacro_args"])
    robot = {"robot_description": text(urdf)} if urdf else {}
    clock = {"use_sim_time": is_true(given["use_sim_time"])}
    common = {"namespace": given["namespace"], "output": "screen"}

    ik = Node(
        package="dls_ik",
        executable="ik_node",
        parameters=[clock, *params_files(given["params_file"]), robot | chosen_parameters(given)],
        **common,
    )
    state_publisher = Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        parameters=[clock | robot],
        **common,
    )
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        arguments=rviz_arguments(given["base"], urdf),
        parameters=[clock],
        **common,
    )
    return [ik, *([state_publisher] if urdf else []), *([rviz] if is_true(given["rviz"]) else [])]


def description(urdf: str, xacro_args: str) -> str:
    """The text of a URDF file, or what xacro makes of a xacro file."""
    if not urdf:
        return ""
    path = existing_file("urdf", urdf)
    if path.suffix != ".xacro":
        return path.read_text(encoding="utf-8")
    if shutil.which("xacro") is None:
        raise RuntimeError(
            f"urdf:={urdf} needs the command xacro, which is not installed: "
            "sudo apt-get install ros-$ROS_DISTRO-xacro"
        )
    command = ["xacro", str(path), *shlex.split(xacro_args)]
    done = subprocess.run(command, stdout=subprocess.PIPE, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{shlex.join(command)} failed, its message is above")
    return done.stdout


def params_files(path: str) -> list[str]:
    return [str(existing_file("params_file", path))] if path else []


def existing_file(argument: str, value: str) -> Path:
    path = Path(value).expanduser()
    if not path.is_file():
        raise RuntimeError(f"{argument}:={value} is not a file")
    return path


def chosen_parameters(given: dict[str, str]) -> dict[str, Any]:
    chosen = {name: given[name] for name in PARAMETERS if given[name]}
    return {
        name: number(name, value) if name == "rate" else text(value)
        for name, value in chosen.items()
    }


def number(argument: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise RuntimeError(f"{argument}:={value} is not a number") from None


def text(value: str) -> ParameterValue:
    """A parameter that stays text, also where it could be read as YAML."""
    return ParameterValue(value, value_type=str)


def is_true(value: str) -> bool:
    return value.lower() == "true"


def rviz_arguments(base: str, urdf: str) -> list[str]:
    config = Path(get_package_share_directory("dls_ik"), "config", "ik.rviz")
    frame = base or root_link(urdf)
    return ["-d", str(config), *(["-f", frame] if frame else [])]


def root_link(urdf: str) -> str:
    try:
        return load_urdf(urdf).root if urdf else ""
    except DlsIkError:
        return ""  # the ik node says what is wrong with it
