# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Service that answers at once in a separate process: the cost of a call on this machine."""

import os
from pathlib import Path

import rclpy
from prefork import python_path
from rclpy.node import Node
from ros_client import NodeProcess
from std_srvs.srv import Trigger

NAME = "echo"


class EchoProcess(NodeProcess):
    """The service as a process."""

    module = Path(__file__).stem

    def __init__(self, *ros_arguments):
        here = Path(__file__).parent
        folders = [str(here), str(here.parent), python_path()]
        super().__init__(*ros_arguments, PYTHONPATH=os.pathsep.join(folders))


def main():
    rclpy.init()
    node = Node("echo_node")
    node.create_service(Trigger, NAME, lambda request, response: response)
    node.get_logger().info("echo ready")
    rclpy.spin(node)


if __name__ == "__main__":
    main()
