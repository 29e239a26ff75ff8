"""What is looked for, what for, and the command that brings it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

CORE, EXTRAS, PARTS, ROS, NODE = "Needed", "Extras", "Parts", "ROS 2", "Node"


class Thing(NamedTuple):
    """Something to try."""

    section: str
    name: str  # of an import or a part, as the worker knows it
    use: str  # what is not to be had without it
    mend: str = ""


def _extra(name: str) -> str:
    return f"pip install 'dls-ik[{name}]'"


CORE_THINGS = tuple(
    Thing(CORE, name, "everything", f"pip install {dist}")
    for name, dist in (
        ("numpy", "numpy"),
        ("numba", "numba"),
        ("urdf_parser_py", "urdf-parser-py"),
        ("click", "click"),
        ("rich", "rich"),
    )
)
EXTRA_THINGS = (
    Thing(EXTRAS, "matplotlib", "pictures: --plot, --report", _extra("demo")),
    Thing(EXTRAS, "viser", "dls-ik view", _extra("viewer")),
    Thing(EXTRAS, "yourdfpy", "dls-ik view", _extra("viewer")),
    Thing(EXTRAS, "rosbags", "bags from dls-ik path", _extra("bag")),
    Thing(EXTRAS, "ruckig", "limits of jerk", _extra("jerk")),
    Thing(EXTRAS, "distributed", "maps on a cluster (Dask)", _extra("cluster")),
    Thing(EXTRAS, "zarr", "maps in zarr files", _extra("zarr")),
    Thing(EXTRAS, "xacro", "robots in xacro files", "pip install xacro"),
    Thing(EXTRAS, "PyKDL", "methods kdl_*", "sudo apt-get install python3-pykdl"),
)
PART_THINGS = (
    Thing(PARTS, "kernels", "everything", "export NUMBA_CACHE_DIR=~/.cache/dls_ik"),
    Thing(PARTS, "threading layer", ""),
    Thing(PARTS, "solve", "everything"),
    Thing(PARTS, "batch", "many poses at once"),
    Thing(PARTS, "follow", "the streaming controller"),
    Thing(PARTS, "pictures", "--plot, --report", _extra("demo")),
    Thing(PARTS, "PyKDL's methods", "methods kdl_*", "sudo apt-get install python3-pykdl"),
)
# Beside each message package a module of it that the node imports: without, it is not whole.
MESSAGES = {
    "builtin_interfaces": "msg",
    "rcl_interfaces": "msg",
    "std_msgs": "msg",
    "std_srvs": "srv",
    "geometry_msgs": "msg",
    "sensor_msgs": "msg",
    "shape_msgs": "msg",
    "trajectory_msgs": "msg",
    "visualization_msgs": "msg",
    "diagnostic_msgs": "msg",
    "moveit_msgs": "srv",
}
ONLY_DISTRIBUTION = {
    "tf2_ros": "frames from tf2 in targets and requests",
    "launch_ros": "ros2 launch dls_ik",
    "ament_index_python": "packages by name",
}


def ros_things() -> tuple[Thing, ...]:
    """What the node imports, and what only a ROS 2 installation has."""
    messages = [
        Thing(ROS, f"{package}.{kind}", "ik_node", _ros_package(package))
        for package, kind in MESSAGES.items()
    ]
    others = [Thing(ROS, name, use, _ros_package(name)) for name, use in ONLY_DISTRIBUTION.items()]
    return (
        Thing(ROS, "rclpy", "ik_node, dls-ik call, stream", _ros_package("rclpy")),
        *messages,
        *others,
    )


def node_things() -> tuple[Thing, ...]:
    """What ROS does here."""
    return (
        Thing(NODE, "middleware", "ik_node", "unset RMW_IMPLEMENTATION"),
        Thing(NODE, "two processes", "nodes that hear each other", LOCAL),
        Thing(NODE, "ik_node", "services and streaming"),
    )


LOCAL = "export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST"


def installed_ros() -> list[str]:
    """The distributions below /opt/ros, sourced or not."""
    return sorted(path.parent.name for path in Path("/opt/ros").glob("*/setup.bash"))


def _ros_package(name: str) -> str:
    """The command that brings a ROS package, for the ROS that there is."""
    distro = os.environ.get("ROS_DISTRO")
    if distro:
        return f"sudo apt-get install ros-{distro}-{name.replace('_', '-')}"
    if installed_ros():
        return f"source /opt/ros/{installed_ros()[-1]}/setup.bash"
    if name in ONLY_DISTRIBUTION:
        return "only in a ROS 2 installation: docs.ros.org"
    return "scripts/setup in a checkout" if name == "moveit_msgs" else _extra("ros")
