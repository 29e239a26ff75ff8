# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Launch file of two WAMs in one description, with an ik node for each arm.

Each arm has its own namespace: /left/target_pose, /right/compute_ik, ... Both share one
robot_state_publisher and the topic /joint_states at the root, on which each node publishes its own
joints and receives those of the other arm. Targets may thus be given in a frame of the other arm.

With carry:=true a single ik node moves both arms, which carry a bar along a loop: the parameter
relative_pose keeps the hands together, and dls_ik.ros.demo.carry publishes the path of the left.
physics:=true simulates masses, efforts and contacts of both arms in MuJoCo.
"""

import sys
from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchContext, LaunchDescription
from launch.actions import DeclareLaunchArgument, ExecuteProcess, OpaqueFunction
from launch.substitutions import LaunchConfiguration
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from dls_ik.ros.util import check_executables

SHARE = Path(get_package_share_directory("dls_ik"))
SIDES = ("left", "right")
START = [0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0]  # [rad] bent, of each arm
# Pose of the right hand in the frame of the left one at START: x, y, z, and the quaternion.
HANDS = [0.0, -0.8, 0.0, 0.0, 0.0, 0.0, 1.0]
SWITCHES = {
    "sim": "Whether to start a simulated arm on each side, driven by joint_trajectory.",
    "carry": "Whether both arms carry one object along a path, moved by one ik node.",
    "physics": "With carry: whether the simulated arms have masses, in MuJoCo.",
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


def nodes(context: LaunchContext) -> list[Node | ExecuteProcess]:
    on = {name: LaunchConfiguration(name).perform(context).lower() == "true" for name in SWITCHES}
    text = (SHARE / "urdf" / "two_wams.urdf").read_text(encoding="utf-8")
    robot = {"robot_description": ParameterValue(text, value_type=str)}
    clock = {"use_sim_time": on["use_sim_time"]}
    lasting = {"output": "screen", "respawn": on["respawn"], "respawn_delay": 2.0}
    if on["physics"] and not on["carry"]:
        raise RuntimeError("physics:=true needs carry:=true, which simulates both arms together")
    if on["carry"]:
        arms = both_arms(clock | robot, on, lasting)
    else:
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
        arguments=["-d", str(SHARE / "config" / ("ik.rviz" if on["carry"] else "two_wams.rviz"))],
        parameters=[clock],
        output="screen",
    )
    chosen = [*arms, state_publisher, *([rviz] if on["rviz"] else [])]
    check_executables(chosen, context)
    if on["carry"]:
        command = [sys.executable, "-m", "dls_ik.ros.demo.carry", "--ros-args"]
        command += ["-p", f"use_sim_time:={str(on['use_sim_time']).lower()}"]
        links = [f"{side}_wam_link{k}" for side in SIDES for k in (5, 6, 7)]
        command += ["-p", f"touch_links:=[{','.join(links)}]"]
        return [*chosen, ExecuteProcess(cmd=command, output="screen")]
    return chosen


def both_arms(
    shared: dict[str, object], on: dict[str, bool], lasting: dict[str, object]
) -> list[Node]:
    """Return the ik node of both arms, and their simulated arm."""
    tips = [f"{side}_wam_tip" for side in SIDES]
    common = shared | {"initial_positions": START * len(SIDES)}
    ik = {
        "groups": ["both"],
        "group.both.tip": tips,
        "stream_group": "both",
        "relative_pose": HANDS,
        "rate": ParameterValue(LaunchConfiguration("rate"), value_type=float),
    }
    is_simulated = on["sim"] or on["physics"]
    if is_simulated:
        ik["output_type"] = "joint_trajectory"
    nodes = [Node(package="dls_ik", executable="ik_node", parameters=[common | ik], **lasting)]
    if is_simulated:
        sim = {"tips": tips, "physics": on["physics"]}
        nodes += [
            Node(package="dls_ik", executable="ik_sim_arm", parameters=[common | sim], **lasting)
        ]
    return nodes


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
