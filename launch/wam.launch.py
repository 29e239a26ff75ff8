# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Launch file of the Barrett WAM: ik.launch.py with other defaults of some arguments."""

from pathlib import Path

from ament_index_python.packages import get_package_share_directory
from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription

SHARE = Path(get_package_share_directory("dls_ik"))


def generate_launch_description() -> LaunchDescription:
    robot = DeclareLaunchArgument(
        "urdf",
        default_value=str(SHARE / "urdf" / "wam7.urdf"),
        description="The WAM: a URDF or xacro file, of one with a hand or a stand for example.",
    )
    parameters = DeclareLaunchArgument(
        "params_file",
        default_value=str(SHARE / "config" / "ik_params.yaml"),
        description="A YAML file of parameters of the ik node; the default one has its arm bent.",
    )
    simulated = DeclareLaunchArgument(
        "sim_params_file",
        default_value=str(SHARE / "config" / "sim_params.yaml"),
        description="A YAML file of parameters of the simulated arm; the default one is bent too.",
    )
    view = DeclareLaunchArgument(
        "rviz_config",
        default_value=str(SHARE / "config" / "wam.rviz"),
        description="What RViz opens; the default one has its floor where this WAM stands.",
    )
    ik = IncludeLaunchDescription(str(SHARE / "launch" / "ik.launch.py"))
    return LaunchDescription([robot, parameters, simulated, view, ik])
