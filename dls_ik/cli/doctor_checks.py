# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Checks of ``dls-ik doctor``: tests, the features that need them, and commands that fix failures.

Only the standard library is imported before a check runs. Checks run in another process, which
calls :func:`main`, because a check may crash.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import socket
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import NamedTuple

CHECK_OK, CHECK_MISSING, CHECK_BROKEN = "ok", "missing", "broken"
SECTION_NEEDED, SECTION_EXTRAS, SECTION_PARTS, SECTION_ROS, SECTION_NODE, SECTION_ROBOT = (
    "Needed",
    "Extras",
    "Parts",
    "ROS 2",
    "Node",
    "Robot",
)
CHECK_TIMEOUT = 60.0  # maximum time of a check [s]
WAM_POSITIONS = (0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0)  # [rad] away from limits and singularities
LOCALHOST_EXPORT = "export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST"
RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")
# Ports of domain ids above 232 do not exist; those above 101 may be in use by other programs.
MAX_DOMAIN, MAX_SAFE_DOMAIN = 232, 101
SHARED = Path("/dev/shm")  # noqa: S108  the folder is only read
LOCKS = ("_el", "_sl")  # suffixes of the lock files of a Fast DDS port
MIN_SHARED = 16e6  # [bytes] needed by Fast DDS and CycloneDDS for a few nodes
GROUP, MULTICAST_TIMEOUT = "239.255.0.1", 1.0  # multicast address of DDS discovery, timeout [s]


class Finding(NamedTuple):
    """Result of one check, one row of the report."""

    section: str
    name: str
    state: str  # CHECK_OK, CHECK_MISSING or CHECK_BROKEN
    words: str  # version, result or reason
    mend: str = ""  # command or hint that fixes a failure


class Check(NamedTuple):
    """A test of one part of the installation."""

    section: str
    name: str  # name of the module to import, or name of the test if there is one
    use: str  # features that need the part
    mend: str = ""  # command or hint that fixes a failure
    test: Callable[[], str] | None = None  # returns a result text; None imports the module `name`
    timeout: float = CHECK_TIMEOUT  # [s]

    def finding(self, state: str, words: str, mend: str = "") -> Finding:
        """Return the finding for a result of this check.

        Args:
            state: OK, CHECK_MISSING or CHECK_BROKEN.
            words: Version, result or reason.
            mend: Command that fixes the failure; empty uses the command of the check.
        """
        name = self.name.removesuffix(".msg").removesuffix(".srv")
        if state == CHECK_MISSING and self.use:
            words = f"{words}; for {self.use}"
        return Finding(
            self.section, name, state, words, "" if state == CHECK_OK else mend or self.mend
        )


class TroubleError(Exception):
    """Failure found by a test; its arguments are state, text, and possibly a command that helps."""


def _require(package: str) -> None:
    """Check that an optional package is installed.

    Raises:
        TroubleError: If the package is not installed; the state is CHECK_MISSING.
    """
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise TroubleError(CHECK_MISSING, f"needs {package}") from error


def one_line(text: object, limit: int = 160) -> str:
    """Return a text without line breaks, shortened to at most `limit` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


# Parts of this package


def _kernels() -> str:
    """Check the cache of compiled kernels; load all kernels from it, or compile them."""
    from dls_ik.core.jit import cache_failures, cache_folder
    from dls_ik.core.search_rows import search_packed
    from dls_ik.shared_kernels import others_can_write
    from dls_ik.solver import announce_compilation_to
    from dls_ik.warm_up import use_kernels

    folder = cache_folder(search_packed)
    if folder is not None and (reason := others_can_write(Path(folder).resolve())):
        words = "other users could add code to the kernel cache, which would run here"
        raise RuntimeError(f"{words}: {reason}")
    compiled: list[str] = []
    announce_compilation_to(compiled.append)
    begin = time.monotonic()
    use_kernels()
    seconds = time.monotonic() - begin
    if folder is None:
        raise RuntimeError("no folder for kernels is writable; kernels are compiled at every start")
    if "save" in cache_failures:
        raise RuntimeError(cache_failures["save"])
    access = "" if os.access(folder, os.W_OK) else ", which is not writable"
    how = "compiled now and stored in" if compiled else "loaded from"
    return f"{how} {folder}{access} ({seconds:.1f} s)"


def _threading() -> str:
    """Return a text with Numba's threading layer and number of threads."""
    from numba import config

    asked = str(config.THREADING_LAYER)
    return f"{asked}, {config.NUMBA_NUM_THREADS} threads; kernels use Python threads instead"


def _solve() -> str:
    """Solve a pose of the WAM ten times; return a text with median time and error."""
    import numpy as np

    from dls_ik import IkSolver, RobotModel

    robot = RobotModel.wam()
    T = robot.fk(np.full(robot.n, 0.3))
    solver = IkSolver(robot)
    results = [solver.solve(T, timeout=5.0) for _ in range(10)]
    result, times = results[-1], [each.duration for each in results]
    error = float(np.abs(robot.fk(result.q) - T).max())
    if not result.success or error > 1e-5 or not robot.within_limits(result.q, 1e-9):
        raise ValueError(f"a reachable pose of the WAM is missed by {error:.2g}: {result.status}")
    return f"WAM in {1e6 * float(np.median(times)):.0f} us, error {error:.0e}"


def _batch() -> str:
    """Solve a batch of poses of the WAM; return a text with the rate."""
    import numpy as np

    from dls_ik import IkSolver, RobotModel

    robot = RobotModel.wam()
    poses = robot.fk(robot.random(500, np.random.default_rng(0)))
    result = IkSolver(robot).solve_batch(poses)
    if not result.success.all():
        raise ValueError(f"{np.sum(~result.success)} of 500 reachable poses are not solved")
    return f"500 poses, {500 / result.duration:.0f}/s on {os.cpu_count()} cores"


def _follow() -> str:
    """Follow a close target with the streaming controller until the target is reached."""
    import numpy as np

    from dls_ik import RobotModel
    from dls_ik.servo import Controller, ServoState

    robot, q = RobotModel.wam(), np.array(WAM_POSITIONS)
    controller = Controller(robot)
    controller.seed(q)
    controller.follow_pose(robot.fk(q + 0.05), 0.0)
    for k in range(1000):
        output = controller.cycle(0.01 * k, 0.01)
        if output.state is ServoState.REACHED:
            return f"reached a target after {k} cycles"
    raise ValueError(f"a close target is not reached: {output.message}")


def _pictures() -> str:
    """Render a picture with matplotlib."""
    _require("matplotlib")
    import io

    import numpy as np

    from dls_ik import RobotModel
    from dls_ik.plot import joint_bands

    robot = RobotModel.wam()
    file = io.BytesIO()
    joint_bands(robot, [0.0, 1.0], np.zeros((2, robot.n))).savefig(file, format="png", dpi=40)
    return f"a PNG of {len(file.getvalue())} bytes"


def _pykdl() -> str:
    """Solve a pose with a method of PyKDL."""
    _require("PyKDL")
    import numpy as np

    from dls_ik import IkSolver, RobotModel

    robot, q = RobotModel.wam(), np.array(WAM_POSITIONS)
    result = IkSolver(robot, "kdl_lma").solve(robot.fk(q), q + 0.01)
    if not result.success:
        raise ValueError(f"kdl_lma does not reach a close pose: {result.status}")
    return "methods kdl_lma, kdl_nr, kdl_nr_jl"


def _collisions() -> str:
    """Query the distance of the WAM to a sphere at its tip, which is in collision."""
    _require("coal")
    import numpy as np

    from dls_ik import PlanningScene, RobotModel

    scene = PlanningScene(RobotModel.wam())
    scene.add_sphere("ball", 0.1, scene.robot.fk(WAM_POSITIONS))
    closest = scene.distance(np.array(WAM_POSITIONS))
    if closest is None or "ball" not in closest.names or closest.distance >= 0.0:
        raise ValueError(f"a ball at the tip of the WAM is not in collision: {closest}")
    return f"a ball at the tip of the WAM, {1e3 * -closest.distance:.0f} mm deep"


# A robot


def _description(robot: str) -> str:
    from dls_ik.model.load import find_tree

    tree = find_tree(robot)
    moving = sum(joint.kind != "fixed" for joint in tree.joints)
    return f"{tree.name}: {len(tree.links)} links, {moving} joints that move"


def _collision_geometry(robot: str) -> str:
    """Return a text with the number of moving links that have collision shapes.

    Raises:
        TroubleError: If no moving link has a collision shape, which is a defect of the URDF.
    """
    from dls_ik.model.load import find_tree
    from dls_ik.scene.shapes import link_bodies

    tree = find_tree(robot)
    bodies = {} if tree.description is None else link_bodies(tree.description)
    moving = [
        link
        for link in tree.links
        if any(joint.kind != "fixed" for joint in tree.path(tree.root, link))
    ]
    count = sum(link in bodies for link in moving)
    if not count:
        which = "link that moves" if bodies else "link"
        words = f"no {which} has <collision> geometry: collisions of the arm cannot be checked"
        raise TroubleError(CHECK_MISSING, words)
    return f"shapes of {count} of {len(moving)} links that move"


# ROS 2


def _call(module: str, function: str) -> str:
    """Call a function of a module without arguments, and return its result as text."""
    return str(getattr(import_module(module), function)())


_middleware = partial(_call, "rclpy", "get_rmw_implementation_identifier")
_two_processes = partial(_call, "dls_ik.ros.selftest", "hear_another_process")
_ik_node = partial(_call, "dls_ik.ros.selftest", "start_and_ask")
_presets = partial(_call, "dls_ik.ros.presets", "summary")


def _python() -> str:
    """Return a text with the version of Python and the type of the machine."""
    return f"{platform.python_version()} on {platform.machine()}"


def _distribution() -> str:
    """Return a text with the name of the ROS distribution whose setup script was sourced.

    Raises:
        TroubleError: If a distribution is installed, but not sourced.
    """
    if distro := os.environ.get("ROS_DISTRO"):
        return f"{distro}, sourced"
    if installed := installed_ros():
        words = f"{', '.join(installed)} is installed, but not sourced"
        raise TroubleError(CHECK_MISSING, words, f"source /opt/ros/{installed[-1]}/setup.bash")
    return "none sourced; rclpy is used from wheels if installed"


def _domain() -> str:
    """Check ROS_DOMAIN_ID, and return a text with the domain id.

    Raises:
        TroubleError: If the value is not a valid domain id.
    """
    given = os.environ.get("ROS_DOMAIN_ID", "")
    if not given:
        return "0, because ROS_DOMAIN_ID is not set"
    if not (given.isascii() and given.isdigit() and int(given) <= MAX_DOMAIN):
        words = f"ROS_DOMAIN_ID must be a number from 0 to 101; got {one_line(given, 20)}"
        raise TroubleError(CHECK_BROKEN, words)
    return f"{given}{', above 101: ports may be in use' if int(given) > MAX_SAFE_DOMAIN else ''}"


def _range() -> str:
    """Check ROS_AUTOMATIC_DISCOVERY_RANGE, and return a text with the discovery range.

    Raises:
        TroubleError: If the value is unknown.
    """
    given = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "")
    if given and given.upper() not in RANGES:
        raise TroubleError(
            CHECK_BROKEN, f"must be one of {', '.join(RANGES)}; got {one_line(given, 20)}"
        )
    words = given or "SUBNET, because ROS_AUTOMATIC_DISCOVERY_RANGE is not set"
    if os.environ.get("ROS_LOCALHOST_ONLY") == "1":
        words = f"LOCALHOST, due to ROS_LOCALHOST_ONLY=1; {words}"
    peers = os.environ.get("ROS_STATIC_PEERS")
    return f"{words}; peers {peers}" if peers else words


def _shared_memory() -> str:
    """Check the shared memory folder of the middleware; return a text with its free space.

    Raises:
        TroubleError: If the folder does not exist, is not writable, or has too little free space.
    """
    try:
        free = shutil.disk_usage(SHARED).free
    except OSError as error:
        raise TroubleError(CHECK_MISSING, f"{SHARED} does not exist: {error.strerror}") from error
    if not os.access(SHARED, os.W_OK):
        raise TroubleError(CHECK_BROKEN, f"{SHARED} is not writable", f"sudo chmod 1777 {SHARED}")
    if free < MIN_SHARED:
        raise TroubleError(CHECK_BROKEN, f"only {free / 1e6:.0f} MB free in {SHARED}")
    others = sum(not os.access(file, os.R_OK | os.W_OK) for file in SHARED.glob("fast*"))
    hint = f"; {others} files of other users, whose nodes it cannot reach" if others else ""
    if left := abandoned_ports():
        hint += (
            f"; {len(left)} ports of killed nodes: if a node ends with SIGSEGV at its start, stop "
            f"all nodes and rm {SHARED}/fastdds_port*"
        )
    return f"{free / 1e6:.0f} MB free{hint}"


def abandoned_ports() -> list[str]:
    """Return the Fast DDS ports in shared memory that are not open in any process of this user.

    A killed node leaves such a port behind. If the node was writing to the port when it was killed,
    the next node that uses the port ends with a segmentation fault (Fast DDS, issue 6501).
    """
    used: set[str] = set()
    mapped = re.compile(
        rf"{re.escape(str(SHARED.resolve()))}/(fast\w+_port\d+)(?= |$)", re.MULTILINE
    )
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):  # a process of another user, or one that has exited
            used.update(mapped.findall(maps.read_text()))
    found = {file.name for file in SHARED.glob("fast*_port*") if not file.name.endswith(LOCKS)}
    return sorted(name for name in found - used if os.access(SHARED / name, os.W_OK))


def _multicast() -> str:
    """Check that this machine receives multicast messages, which DDS uses for discovery.

    Raises:
        TroubleError: If multicast messages are not received.
    """
    try:
        if _receives_own_multicast():
            return "received on this machine"
    except OSError as error:
        raise TroubleError(CHECK_MISSING, error.strerror or str(error)) from error
    raise TroubleError(CHECK_MISSING, "not received on this machine")


def _receives_own_multicast() -> bool:
    """Return whether this process receives a datagram that it sends to a multicast group."""
    membership = struct.pack("4sl", socket.inet_aton(GROUP), socket.INADDR_ANY)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("", 0))
        receiver.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
        receiver.settimeout(MULTICAST_TIMEOUT)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 1)
            sender.sendto(b"dls_ik", (GROUP, receiver.getsockname()[1]))
        try:
            return receiver.recv(16) == b"dls_ik"
        except TimeoutError:
            return False


# The table


def _extra(name: str) -> str:
    """Return the command that installs an optional extra of this package, such as ``viewer``."""
    return f"pip install 'dls-ik[{name}]'"


PYKDL = "sudo apt-get install python3-pykdl"
NEEDED = ("numpy", "numba", "urdf_parser_py", "click", "rich")
FIXED_CHECKS = (
    Check(SECTION_NEEDED, "python", "", "", _python),
    *(
        Check(SECTION_NEEDED, name, "everything", f"pip install {name.replace('_', '-')}")
        for name in NEEDED
    ),
    Check(SECTION_EXTRAS, "matplotlib", "pictures: --plot, --report", _extra("demo")),
    Check(SECTION_EXTRAS, "viser", "dls-ik view", _extra("viewer")),
    Check(SECTION_EXTRAS, "yourdfpy", "dls-ik view", _extra("viewer")),
    Check(SECTION_EXTRAS, "rosbags", "bags from dls-ik path", _extra("bag")),
    Check(SECTION_EXTRAS, "ruckig", "jerk limits", _extra("jerk")),
    Check(
        SECTION_EXTRAS,
        "coal",
        "collisions: --srdf, --scene, the scene of ik_node",
        _extra("collision"),
    ),
    Check(SECTION_EXTRAS, "mujoco", "ik_sim_arm --physics", _extra("physics")),
    Check(SECTION_EXTRAS, "robot_descriptions", "robots NAME_description", _extra("descriptions")),
    Check(SECTION_EXTRAS, "distributed", "maps on a cluster (Dask)", _extra("cluster")),
    Check(SECTION_EXTRAS, "zarr", "maps in zarr files", _extra("zarr")),
    Check(SECTION_EXTRAS, "xacro", "robots in xacro files", "pip install xacro"),
    Check(SECTION_EXTRAS, "PyKDL", "methods kdl_*", PYKDL),
    Check(
        SECTION_PARTS,
        "kernels",
        "everything",
        "export NUMBA_CACHE_DIR=~/.cache/dls_ik",
        _kernels,
        600.0,
    ),
    Check(SECTION_PARTS, "threading layer", "", "", _threading),
    Check(SECTION_PARTS, "solve", "everything", "", _solve),
    Check(SECTION_PARTS, "batch", "many poses at once", "", _batch),
    Check(SECTION_PARTS, "follow", "the streaming controller", "", _follow),
    Check(
        SECTION_PARTS,
        "collisions",
        "--srdf, --scene, ik_node",
        _extra("collision"),
        _collisions,
        120.0,
    ),
    Check(SECTION_PARTS, "pictures", "--plot, --report", _extra("demo"), _pictures),
    Check(SECTION_PARTS, "PyKDL's methods", "methods kdl_*", PYKDL, _pykdl),
    Check(SECTION_ROS, "distribution", "", "", _distribution),
    Check(SECTION_ROS, "domain", "", "export ROS_DOMAIN_ID=0", _domain),
    Check(SECTION_ROS, "discovery range", "", LOCALHOST_EXPORT, _range),
    Check(
        SECTION_ROS,
        "shared memory",
        "",
        "docker run --shm-size=256m, or --ipc=host",
        _shared_memory,
    ),
    Check(SECTION_ROS, "multicast", "", LOCALHOST_EXPORT, _multicast),
    Check(SECTION_ROS, "presets", "ik_node", "install the complete package", _presets),
)
# Modules that the node imports.
MESSAGES = (
    "builtin_interfaces.msg", "rcl_interfaces.msg", "std_msgs.msg", "std_srvs.srv",
    "geometry_msgs.msg", "sensor_msgs.msg", "shape_msgs.msg", "trajectory_msgs.msg",
    "visualization_msgs.msg", "diagnostic_msgs.msg", "moveit_msgs.srv",
)  # fmt: skip
ONLY_DISTRIBUTION = {
    "tf2_ros": "frames from tf2 in targets and requests",
    "launch_ros": "ros2 launch dls_ik",
    "ament_index_python": "packages by name",
}
NODE_CHECKS = (
    Check(SECTION_NODE, "middleware", "ik_node", "unset RMW_IMPLEMENTATION", _middleware),
    Check(
        SECTION_NODE,
        "two processes",
        "communication between nodes",
        LOCALHOST_EXPORT,
        _two_processes,
    ),
    Check(SECTION_NODE, "ik_node", "services and streaming", "", _ik_node, 180.0),
)
TESTS = {check.name: check.test for check in (*FIXED_CHECKS, *NODE_CHECKS) if check.test}
COLLISION_ELEMENTS = (
    "add a <collision> element with a box, a sphere, a cylinder or a mesh to each link of the "
    "URDF; in Python: PlanningScene(robot, bodies=...)"
)


def robot_checks(robot: str) -> list[Check]:
    """Return the checks of one robot.

    Args:
        robot: Name or file of the robot, see :func:`dls_ik.model.load.find_tree`.
    """
    description = partial(_description, robot)
    geometry = partial(_collision_geometry, robot)
    use = "collisions: min_distance, avoid_collisions, --srdf, --scene"
    return [
        Check(SECTION_ROBOT, "description", "all commands", "dls-ik info", description),
        Check(SECTION_ROBOT, "collision geometry", use, COLLISION_ELEMENTS, geometry),
    ]


def checks() -> list[Check]:
    """Return all checks except those of a robot and the NODE_CHECKS.

    The NODE_CHECKS run later, and only if the packages that a node needs work.
    """
    uses = {
        "rclpy": "ik_node, dls-ik call, stream",
        **dict.fromkeys(MESSAGES, "ik_node"),
        **ONLY_DISTRIBUTION,
    }
    packages = {name: _ros_package(name.partition(".")[0]) for name in uses}
    return [
        *FIXED_CHECKS,
        *(Check(SECTION_ROS, name, uses[name], mend) for name, mend in packages.items()),
    ]


def _ros_package(name: str) -> str:
    """Return a command, or a hint, to install a ROS package on this machine."""
    if distro := os.environ.get("ROS_DISTRO"):
        return f"sudo apt-get install ros-{distro}-{name.replace('_', '-')}"
    if installed := installed_ros():
        return f"source /opt/ros/{installed[-1]}/setup.bash"
    if name in ONLY_DISTRIBUTION:
        return "available only in a ROS 2 installation: docs.ros.org"
    return "scripts/setup in a checkout" if name == "moveit_msgs" else _extra("ros")


def installed_ros() -> list[str]:
    """Return the names of the ROS distributions installed in /opt/ros, sourced or not."""
    return sorted(path.parent.name for path in Path("/opt/ros").glob("*/setup.bash"))


# Run


def main(names: Sequence[str], robot: str = "") -> None:
    """Run checks, and print the result of each as one line of JSON.

    Everything that libraries print to stdout is redirected to stderr.

    Args:
        names: Names of the checks.
        robot: Name or file of the robot for the checks of :func:`robot_checks`; empty for none.
    """
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        for name in names:
            out.write(json.dumps(run_check(name, robot)) + "\n")
            out.flush()


def run_check(name: str, robot: str = "") -> tuple[str, ...]:
    """Run one check, and return state, text and possibly a command that fixes a failure.

    An exception raised by the check gives the state CHECK_MISSING or CHECK_BROKEN; it is not
    propagated.

    Args:
        name: Name of the check.
        robot: Name or file of the robot for the checks of :func:`robot_checks`; empty for none.
    """
    tests = {**TESTS, **{check.name: check.test for check in robot_checks(robot)}}
    test = tests.get(name)
    try:
        return CHECK_OK, test() if test else version(name)
    except TroubleError as trouble:
        return trouble.args
    except ModuleNotFoundError as error:
        if not test and error.name in (name, name.partition(".")[0]):
            return CHECK_MISSING, "not installed"
        return CHECK_BROKEN, one_line(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001  any error is the finding
        return CHECK_BROKEN, one_line(f"{type(error).__name__}: {error}")


def version(name: str) -> str:
    """Import a module, and return its version, or "installed" if the version is unknown."""
    module = import_module(name)
    top = name.partition(".")[0]
    distribution, *_ = metadata.packages_distributions().get(top, [top])
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        found = getattr(module, "__version__", None) or getattr(module, "VERSION", None)
        return str(found) if found else "installed"
