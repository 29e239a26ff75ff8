"""A domain that nobody else is on, and one node that most tests share."""

import os
import random

import pytest


@pytest.fixture(scope="session", autouse=True)
def private_domain():
    """Never meet a robot, nor the nodes of another run on this machine."""
    os.environ["ROS_DOMAIN_ID"] = str(random.SystemRandom().randint(1, 101))
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    if os.environ.get("ROS_DISTRO") == "humble":
        os.environ["ROS_LOCALHOST_ONLY"] = "1"


@pytest.fixture(scope="session")
def wam_node(private_domain):
    """A node with the WAM, which no test may stop or leave changed."""
    from ros_client import NodeProcess

    with NodeProcess("-p", "robot:=wam", "-p", "group_name:=arm, wam") as node:
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
        node.wait_for_line("ready")
        client.process = node
        yield client
