"""What ROS finds around it: the distribution, its variables, shared memory, multicast."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

from dls_ik.cli.doctor.catalogue import CORE, LOCAL, ROS, installed_ros
from dls_ik.cli.doctor.finding import BROKEN, MISSING, OK, Finding, one_line

RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")
HIGHEST_DOMAIN = 232  # whose ports there are; above 101 they are those of other programs
SHARED = Path("/dev/shm")  # noqa: S108  looked at, not written to
LEAST_SHARED = 16e6  # bytes that Fast DDS and CycloneDDS need for a few nodes
GROUP, WAIT = "239.255.0.1", 1.0  # of DDS discovery; [s]


def python() -> Finding:
    """The Python that runs this."""
    return Finding(CORE, "python", OK, f"{platform.python_version()} on {platform.machine()}")


def ros() -> Iterator[Finding]:
    """Everything about ROS that is not a module."""
    yield _distribution()
    yield _domain()
    yield _range()
    yield _shared_memory()
    yield _multicast()


def _distribution() -> Finding:
    distro, there = os.environ.get("ROS_DISTRO"), installed_ros()
    if distro:
        return Finding(ROS, "distribution", OK, f"{distro}, sourced")
    if there:
        return Finding(
            ROS, "distribution", MISSING, f"{', '.join(there)} is installed, not sourced",
            f"source /opt/ros/{there[-1]}/setup.bash",
        )  # fmt: skip
    return Finding(ROS, "distribution", OK, "none sourced; rclpy from wheels, where there is one")


def _domain() -> Finding:
    given = os.environ.get("ROS_DOMAIN_ID", "")
    if not given:
        return Finding(ROS, "domain", OK, "0, as ROS_DOMAIN_ID is not set")
    valid = given.isascii() and given.isdigit() and int(given) <= HIGHEST_DOMAIN
    if not valid:
        words = f"ROS_DOMAIN_ID={one_line(given, 20)} is no number from 0 to 101"
        return Finding(ROS, "domain", BROKEN, words, "export ROS_DOMAIN_ID=0")
    high = ", above 101: ports may be taken" if int(given) > 101 else ""
    return Finding(ROS, "domain", OK, f"{given}{high}")


def _range() -> Finding:
    given = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "")
    if given and given.upper() not in RANGES:
        words = f"{one_line(given, 20)} is none of {', '.join(RANGES)}"
        return Finding(ROS, "discovery range", BROKEN, words, LOCAL)
    words = given or "SUBNET, as ROS_AUTOMATIC_DISCOVERY_RANGE is not set"
    if os.environ.get("ROS_LOCALHOST_ONLY") == "1":
        words = f"LOCALHOST, by ROS_LOCALHOST_ONLY=1; {words}"
    peers = os.environ.get("ROS_STATIC_PEERS")
    return Finding(ROS, "discovery range", OK, f"{words}; peers {peers}" if peers else words)


def _shared_memory() -> Finding:
    name, mend = "shared memory", "docker run --shm-size=256m, or --ipc=host"
    try:
        free = shutil.disk_usage(SHARED).free
    except OSError as error:
        return Finding(ROS, name, MISSING, f"no {SHARED}: {error.strerror}", mend)
    if not os.access(SHARED, os.W_OK):
        return Finding(
            ROS, name, BROKEN, f"{SHARED} cannot be written", f"sudo chmod 1777 {SHARED}"
        )
    if free < LEAST_SHARED:
        return Finding(ROS, name, BROKEN, f"{free / 1e6:.0f} MB free in {SHARED}", mend)
    others = sum(not os.access(file, os.R_OK | os.W_OK) for file in SHARED.glob("fast*"))
    words = f"{free / 1e6:.0f} MB free"
    if others:
        words += f"; {others} files of other users' nodes, which this user's cannot talk to by it"
    return Finding(ROS, name, OK, words)


def _multicast() -> Finding:
    try:
        heard = _hears_itself()
    except OSError as error:
        return Finding(ROS, "multicast", MISSING, error.strerror or str(error), LOCAL)
    if not heard:
        return Finding(ROS, "multicast", MISSING, "not heard on this machine", LOCAL)
    return Finding(ROS, "multicast", OK, "heard on this machine")


def _hears_itself() -> bool:
    """Whether a datagram to a group that this process is in comes back."""
    membership = struct.pack("4sl", socket.inet_aton(GROUP), socket.INADDR_ANY)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as ear:
        ear.bind(("", 0))
        ear.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        ear.settimeout(WAIT)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mouth:
            mouth.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            mouth.sendto(b"dls_ik", (GROUP, ear.getsockname()[1]))
        try:
            return ear.recv(16) == b"dls_ik"
        except TimeoutError:
            return False
