# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Launches that start the nodes of the package, and a client of them."""

import pytest
from ament_prefix import IMPORTED, Launch, Prefix

EXECUTABLES = {"ik_node": "dls_ik.ros.node", "ik_sim_arm": "dls_ik.ros.sim_arm.node"}
STATE_PUBLISHER = """
import rclpy
from rclpy.executors import ExternalShutdownException
from rclpy.qos import DurabilityPolicy, QoSProfile
from std_msgs.msg import String
rclpy.init()
node = rclpy.create_node("robot_state_publisher")
description = node.declare_parameter("robot_description", "").value
latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
node.create_publisher(String, "robot_description", latched).publish(String(data=description))
try:
    rclpy.spin(node)
except (KeyboardInterrupt, ExternalShutdownException):
    pass
"""


def program(module):
    """A script that runs a node of the package that the tests import."""
    lines = ["import sys", f"sys.path.insert(0, {IMPORTED!r})", f"from {module} import main"]
    return "\n".join([*lines, "sys.exit(main())"])


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    """The nodes of the package; a stand-in where there is no robot_state_publisher."""
    made = Prefix(tmp_path_factory.mktemp("prefix"))
    for name, module in EXECUTABLES.items():
        made.add("dls_ik", name, program(module))
    packages = pytest.importorskip("ament_index_python.packages")
    try:
        packages.get_package_prefix("robot_state_publisher")
    except (packages.PackageNotFoundError, OSError):  # the latter where no prefix is sourced
        made.add("robot_state_publisher", "robot_state_publisher", STATE_PUBLISHER)
    return made


@pytest.fixture
def start(prefix):
    started: list[Launch] = []

    def start(file, *arguments):
        started.append(prefix.start(file, *arguments))
        return started[-1]

    yield start
    for launch in started:
        launch.interrupted()


@pytest.fixture
def client():
    import rclpy

    rclpy.init()
    node = rclpy.create_node("client")
    yield node
    node.destroy_node()
    rclpy.shutdown()
