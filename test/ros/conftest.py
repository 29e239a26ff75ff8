# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Requirements of the tests of this folder, and their shared nodes."""

from importlib.util import find_spec
from pathlib import Path

import pytest
from isolation import SESSION_PROCESSES

HERE = Path(__file__).parent
MISSING = [name for name in ("rclpy", "moveit_msgs") if find_spec(name) is None]
QUICK = ("-p", "acceleration:=[10.0]")
collect_ignore_glob = ["test_*.py"] if MISSING else []


def pytest_terminal_summary(terminalreporter):
    """Print why no test of this folder ran."""
    if MISSING:
        terminalreporter.write_line(f"test/ros is left out: it needs {' and '.join(MISSING)}")


def pytest_collection_modifyitems(items):
    """Mark the tests that start nodes, or use a shared node."""
    for item in items:
        if HERE in Path(item.fspath).parents and item.get_closest_marker("ros"):
            item.add_marker("alone")


@pytest.fixture
def node(private_domain):
    """Return a node of this process, in a context of its own."""
    import rclpy
    from rclpy.context import Context
    from rclpy.node import Node

    context = Context()
    rclpy.init(context=context)
    made = Node("test_node", context=context, use_global_arguments=False)
    yield made
    made.destroy_node()
    context.try_shutdown()


@pytest.fixture(scope="session")
def wam_node(private_domain):
    """A node with the WAM, which no test may stop or leave changed."""
    from ros_client import NodeProcess

    with NodeProcess("-p", "robot:=wam", "-p", "group_name:=arm, wam", *QUICK) as node:
        SESSION_PROCESSES.add(node.process.pid)
        node.wait_for_line("ready")
        yield node


@pytest.fixture(scope="session")
def client(wam_node):
    """A client of that node."""
    from ros_client import Client

    with Client() as client:
        yield client


@pytest.fixture(scope="session")
def arms_client(private_domain):
    """A client of a node with two WAMs, in a namespace, which no test may leave changed."""
    from ros_arms import ARGUMENTS
    from ros_client import Client, NodeProcess

    with NodeProcess("-r", "__ns:=/arms", *ARGUMENTS) as node, Client("/arms") as client:
        SESSION_PROCESSES.add(node.process.pid)
        node.wait_for_line("planning scene built" if find_spec("coal") else "ready")
        client.process = node
        yield client
