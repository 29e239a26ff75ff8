"""Check of a launch file: the executables of its nodes are looked up before any of them starts."""

from collections.abc import Sequence

from ament_index_python.packages import PackageNotFoundError
from launch import LaunchContext
from launch.substitutions import SubstitutionFailure
from launch_ros.actions import Node
from launch_ros.substitutions import ExecutableInPackage


def check_executables(nodes: Sequence[Node], context: LaunchContext) -> None:
    """Look up the executables of all nodes.

    A launch that finds one missing midway ends, and leaves running what it has started.

    Raises:
        RuntimeError: one or more are not installed; the message names each.
    """
    missing = {}
    for node in nodes:
        package, name = node.node_package, node.node_executable
        try:
            ExecutableInPackage(executable=name, package=package).perform(context)
        except (PackageNotFoundError, SubstitutionFailure):
            missing[package] = name
    if missing:
        listed = " and ".join(
            name if name == package else f"{name} of {package}" for package, name in missing.items()
        )
        packages = " ".join(f"ros-$ROS_DISTRO-{each.replace('_', '-')}" for each in missing)
        raise RuntimeError(
            f"nothing was started, as {listed} cannot be found: sudo apt-get install {packages}, "
            "or source the workspace that has it, or leave out the argument that asks for it"
        )
