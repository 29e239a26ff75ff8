# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Launch file of two WAMs in one description, with an ik node for each arm.

Each arm has its own namespace: /left/target_pose, /right/compute_ik, ... Both share one
robot_state_publisher and the topic /joint_states at the root, on which each node publishes its own
joints and receives those of the other arm. Targets may thus be given in a frame of the other arm.
"""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from dls_ik.ros.util import check_executables

SHARE = Path(get_package_share_directory("dls_ik"))
SIDES = ("left", "right")
START = [0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0]  # [rad] bent, of each arm
SWITCHES = {
    "sim": "Whether to start a simulated arm on each side, driven by joint_trajectory.",
    "use_sim_time": "Whether the nodes take the time from the clock topic.",
    "rviz": "Whether to start RViz, with a marker for each arm to drag its target with.",
    "respawn": "Whether a node that ended is started again, 2 s later; RViz is not.",
}


def generate_launch_description() -> LaunchDescription:
    rate = DeclareLaunchArgument(
        "rate", default_value="100.0", description="How often each answers a streamed target [Hz]."
    )
    switches = [
        DeclareLaunchArgument(
            name,
            default_value="false",
            choices=["true", "false", "True", "False"],
            description=description,
        )
        for name, description in SWITCHES.items()
    ]
    return LaunchDescription([rate, *switches, OpaqueFunction(function=nodes)])


def nodes(context: LaunchContext) -> list[Node]:
    on = {name: LaunchConfiguration(name).perform(context).lower() == "true" for name in SWITCHES}
    text = (SHARE / "urdf" / "two_wams.urdf").read_text(encoding="utf-8")
    robot = {"robot_description": ParameterValue(text, value_type=str)}
    clock = {"use_sim_time": on["use_sim_time"]}
    lasting = {"output": "screen", "respawn": on["respawn"], "respawn_delay": 2.0}
    arms = [node for side in SIDES for node in arm(side, clock | robot, on, lasting)]
    state_publisher = Node(
        package="robot_state_publisher",
        executable="robot_state_publisher",
        parameters=[clock | robot],
        **lasting,
    )
    rviz = Node(
        package="rviz2",
        executable="rviz2",
        arguments=["-d", str(SHARE / "config" / "two_wams.rviz")],
        parameters=[clock],
        output="screen",
    )
    chosen = [*arms, state_publisher, *([rviz] if on["rviz"] else [])]
    check_executables(chosen, context)
    return chosen


def arm(
    side: str, shared: dict[str, object], on: dict[str, bool], lasting: dict[str, object]
) -> list[Node]:
    """Return the ik node of a side, and its simulated arm."""
    chain = shared | {"base": f"{side}_wam_base", "tip": f"{side}_wam_tip"}
    chain["initial_positions"] = START
    rate = ParameterValue(LaunchConfiguration("rate"), value_type=float)
    more = {"output_type": "joint_trajectory"} if on["sim"] else {}
    if on["rviz"]:
        more["interactive_marker"] = True
    common = {
        "package": "dls_ik",
        "namespace": side,
        "remappings": [("joint_states", "/joint_states")],
        **lasting,
    }
    ik = Node(executable="ik_node", parameters=[chain | {"rate": rate} | more], **common)
    simulated = Node(executable="ik_sim_arm", parameters=[chain], **common)
    return [ik, *([simulated] if on["sim"] else [])]
