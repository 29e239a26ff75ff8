"""For each process of tests a ROS domain that nobody else is on, and Ctrl-C for its children."""

import os
import random
import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def private_domain():
    """Never meet a robot, nor the nodes of another run, or of another worker, on this machine."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        number = 8 * os.getppid() + int(worker.removeprefix("gw"))
    else:
        number = random.SystemRandom().randrange(100)
    os.environ["ROS_DOMAIN_ID"] = str(1 + number % 100)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    if os.environ.get("ROS_DISTRO") == "humble":
        os.environ["ROS_LOCALHOST_ONLY"] = "1"


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """A shell's background job ignores Ctrl-C, and so would all that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
