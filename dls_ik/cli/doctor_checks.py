"""Checks of ``dls-ik doctor``: what is tried, what needs it, and the command that mends it.

Only the standard library is imported before a check, and checks that may crash run in a process of
their own, see :func:`main`.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import socket
import stat
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from importlib import import_module, metadata
from pathlib import Path
from typing import NamedTuple

OK, MISSING, BROKEN = "ok", "missing", "broken"
CORE, EXTRAS, PARTS, ROS, NODE, ROBOT = "Needed", "Extras", "Parts", "ROS 2", "Node", "Robot"
PATIENCE = 60.0  # [s] for one check
MIDDLE = (0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0)  # [rad] of the WAM
LOCAL = "export ROS_AUTOMATIC_DISCOVERY_RANGE=LOCALHOST"
RANGES = ("SUBNET", "LOCALHOST", "OFF", "SYSTEM_DEFAULT")
MAX_DOMAIN, MAX_SAFE_DOMAIN = 232, 101  # ports of higher ones do not exist, or may be taken
SHARED = Path("/dev/shm")  # noqa: S108  not written to
LOCKS = ("_el", "_sl")  # endings of files beside a port
MIN_SHARED = 16e6  # bytes that Fast DDS and CycloneDDS need for a few nodes
GROUP, MULTICAST_TIMEOUT = "239.255.0.1", 1.0  # of DDS discovery; [s]


class Finding(NamedTuple):
    """One row of the report."""

    section: str
    name: str
    state: str  # OK, MISSING or BROKEN
    words: str  # version, result, or reason
    mend: str = ""  # command or line that helps


class Check(NamedTuple):
    """Something to try."""

    section: str
    name: str  # of an import, or of a test
    use: str  # feature that needs it
    mend: str = ""
    test: Callable[[], str] | None = None  # returns words about the result; None: an import
    patience: float = PATIENCE  # [s]

    def finding(self, state: str, words: str, mend: str = "") -> Finding:
        """Return the row of a result; `mend` goes before the check's own."""
        name = self.name.removesuffix(".msg").removesuffix(".srv")
        if state == MISSING and self.use:
            words = f"{words}; for {self.use}"
        return Finding(self.section, name, state, words, "" if state == OK else mend or self.mend)


class TroubleError(Exception):
    """State, words and remedy of a test that found no error of Python."""


def _require(package: str) -> None:
    """Let a test of an extra end as missing where its package is not installed."""
    try:
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise TroubleError(MISSING, f"without {package}") from error


def one_line(text: object, limit: int = 160) -> str:
    """Return the beginning of an error in one line."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


# Parts of this package


def _kernels() -> str:
    from dls_ik.core.jit import cache_failures, cache_folder
    from dls_ik.core.search_rows import search_packed
    from dls_ik.solver import announce_compilation_to
    from dls_ik.warm_up import use_kernels

    folder = cache_folder(search_packed)
    if folder is not None and (reason := others_can_write(Path(folder).resolve())):
        words = "others could put code of theirs among the kernels, to be run here"
        raise RuntimeError(f"{words}: {reason}")
    compiled: list[str] = []
    announce_compilation_to(compiled.append)
    begin = time.monotonic()
    use_kernels()
    seconds = time.monotonic() - begin
    if folder is None:
        raise RuntimeError("no folder can be written: they are compiled anew at every start")
    if "save" in cache_failures:
        raise RuntimeError(cache_failures["save"])
    access = "" if os.access(folder, os.W_OK) else ", which cannot be written"
    how = "compiled just now, and kept in" if compiled else "ready in"
    return f"{how} {folder}{access} ({seconds:.1f} s)"


def _threading() -> str:
    from numba import config

    asked = str(config.THREADING_LAYER)
    return f"{asked}, {config.NUMBA_NUM_THREADS} threads; kernels use Python's threads instead"


def _solve() -> str:
    import numpy as np

    from dls_ik import IkSolver, RobotModel

    robot = RobotModel.wam()
    T = robot.fk(np.full(robot.n, 0.3))
    solver = IkSolver(robot)
    results = [solver.solve(T, timeout=5.0) for _ in range(10)]
    result, times = results[-1], [each.duration for each in results]
    error = float(np.abs(robot.fk(result.q) - T).max())
    if not result.success or error > 1e-5 or not robot.within_limits(result.q, 1e-9):
        raise ValueError(f"the WAM is {error:.2g} off a pose within its reach: {result.status}")
    return f"the WAM in {1e6 * float(np.median(times)):.0f} us, {error:.0e} off"


def _batch() -> str:
    import numpy as np

    from dls_ik import IkSolver, RobotModel

    robot = RobotModel.wam()
    poses = robot.fk(robot.random(np.random.default_rng(0), 500))
    result = IkSolver(robot).solve_batch(poses)
    if not result.success.all():
        raise ValueError(f"{np.sum(~result.success)} of 500 poses within reach are not solved")
    return f"500 poses, {500 / result.duration:.0f}/s on {os.cpu_count()} cores"


def _follow() -> str:
    import numpy as np

    from dls_ik import RobotModel
    from dls_ik.servo import Controller, ServoState

    robot, q = RobotModel.wam(), np.array(MIDDLE)
    controller = Controller(robot)
    controller.seed(q)
    controller.follow_pose(robot.fk(q + 0.05), 0.0)
    for k in range(1000):
        output = controller.cycle(0.01 * k, 0.01)
        if output.state is ServoState.REACHED:
            return f"a target reached after {k} cycles"
    raise ValueError(f"a near target is not reached: {output.message}")


def _pictures() -> str:
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
    _require("PyKDL")
    import numpy as np

    from dls_ik import IkSolver, RobotModel

    robot, q = RobotModel.wam(), np.array(MIDDLE)
    result = IkSolver(robot, "kdl_lma").solve(robot.fk(q), q + 0.01)
    if not result.success:
        raise ValueError(f"kdl_lma does not come from a pose to the next: {result.status}")
    return "methods kdl_lma, kdl_nr, kdl_nr_jl"


def _collisions() -> str:
    _require("coal")
    import numpy as np

    from dls_ik import PlanningScene, RobotModel

    scene = PlanningScene(RobotModel.wam())
    scene.add_sphere("ball", 0.1, scene.robot.fk(MIDDLE))
    closest = scene.distance(np.array(MIDDLE))
    if closest is None or "ball" not in closest.names or closest.distance >= 0.0:
        raise ValueError(f"a ball about the tip of the WAM is not in collision: {closest}")
    return f"a ball in the WAM, {1e3 * -closest.distance:.0f} mm deep"


def others_can_write(folder: Path) -> str:
    """Return why other users could put files into a folder; empty where they cannot.

    Groups are trusted: many systems give each user their own.
    """
    if not hasattr(os, "geteuid"):  # not POSIX
        return ""
    for path in (folder, *folder.parents):
        about = path.stat()
        if about.st_uid not in (0, os.geteuid()):
            return f"{path} belongs to another user"
        keeps_owners = path != folder and about.st_mode & stat.S_ISVTX
        if about.st_mode & stat.S_IWOTH and not keeps_owners:
            return f"all users can write {path}"
    return ""


# A robot


def _description(robot: str) -> str:
    from dls_ik.model.load import find_tree

    tree = find_tree(robot)
    moving = sum(joint.kind != "fixed" for joint in tree.joints)
    return f"{tree.name}: {len(tree.links)} links, {moving} joints that move"


def _collision_geometry(robot: str) -> str:
    """Say how many links of a robot have shapes; none on moving links is a defect of the URDF."""
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
        words = f"no {which} has <collision> geometry: nothing of the arm can be checked"
        raise TroubleError(MISSING, words)
    return f"shapes of {count} of {len(moving)} links that move"


# ROS 2


def _call(module: str, function: str) -> str:
    return str(getattr(import_module(module), function)())


_middleware = partial(_call, "rclpy", "get_rmw_implementation_identifier")
_two_processes = partial(_call, "dls_ik.ros.selftest", "hear_another_process")
_ik_node = partial(_call, "dls_ik.ros.selftest", "start_and_ask")
_presets = partial(_call, "dls_ik.ros.presets", "summary")


def _python() -> str:
    return f"{platform.python_version()} on {platform.machine()}"


def _distribution() -> str:
    if distro := os.environ.get("ROS_DISTRO"):
        return f"{distro}, sourced"
    if installed := installed_ros():
        words = f"{', '.join(installed)} is installed, not sourced"
        raise TroubleError(MISSING, words, f"source /opt/ros/{installed[-1]}/setup.bash")
    return "none sourced; rclpy from wheels if installed"


def _domain() -> str:
    given = os.environ.get("ROS_DOMAIN_ID", "")
    if not given:
        return "0, as ROS_DOMAIN_ID is not set"
    if not (given.isascii() and given.isdigit() and int(given) <= MAX_DOMAIN):
        words = f"ROS_DOMAIN_ID={one_line(given, 20)} is not a number from 0 to 101"
        raise TroubleError(BROKEN, words)
    return f"{given}{', above 101: ports may be taken' if int(given) > MAX_SAFE_DOMAIN else ''}"


def _range() -> str:
    given = os.environ.get("ROS_AUTOMATIC_DISCOVERY_RANGE", "")
    if given and given.upper() not in RANGES:
        raise TroubleError(BROKEN, f"{one_line(given, 20)} is not one of {', '.join(RANGES)}")
    words = given or "SUBNET, as ROS_AUTOMATIC_DISCOVERY_RANGE is not set"
    if os.environ.get("ROS_LOCALHOST_ONLY") == "1":
        words = f"LOCALHOST, by ROS_LOCALHOST_ONLY=1; {words}"
    peers = os.environ.get("ROS_STATIC_PEERS")
    return f"{words}; peers {peers}" if peers else words


def _shared_memory() -> str:
    try:
        free = shutil.disk_usage(SHARED).free
    except OSError as error:
        raise TroubleError(MISSING, f"no {SHARED}: {error.strerror}") from error
    if not os.access(SHARED, os.W_OK):
        raise TroubleError(BROKEN, f"{SHARED} cannot be written", f"sudo chmod 1777 {SHARED}")
    if free < MIN_SHARED:
        raise TroubleError(BROKEN, f"{free / 1e6:.0f} MB free in {SHARED}")
    others = sum(not os.access(file, os.R_OK | os.W_OK) for file in SHARED.glob("fast*"))
    hint = f"; {others} files of other users, whose nodes are not reached by it" if others else ""
    if left := abandoned_ports():
        hint += (
            f"; {len(left)} ports of nodes that were killed: if a node ends with SIGSEGV at its "
            f"start, rm {SHARED}/fastdds_port*, while none runs"
        )
    return f"{free / 1e6:.0f} MB free{hint}"


def abandoned_ports() -> list[str]:
    """List the ports of Fast DDS in shared memory that no process of this user has open.

    A node that was killed leaves its port; where it was just writing there, the next node on that
    port ends with a segmentation fault (Fast DDS, issue 6501).
    """
    used: set[str] = set()
    mapped = re.compile(
        rf"{re.escape(str(SHARED.resolve()))}/(fast\w+_port\d+)(?= |$)", re.MULTILINE
    )
    for maps in Path("/proc").glob("[0-9]*/maps"):
        with suppress(OSError):  # of another user, or gone
            used.update(mapped.findall(maps.read_text()))
    found = {file.name for file in SHARED.glob("fast*_port*") if not file.name.endswith(LOCKS)}
    return sorted(name for name in found - used if os.access(SHARED / name, os.W_OK))


def _multicast() -> str:
    try:
        if _receives_own_multicast():
            return "heard on this machine"
    except OSError as error:
        raise TroubleError(MISSING, error.strerror or str(error)) from error
    raise TroubleError(MISSING, "not heard on this machine")


def _receives_own_multicast() -> bool:
    """Return True if a datagram to a group of this process comes back."""
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
    return f"pip install 'dls-ik[{name}]'"


PYKDL = "sudo apt-get install python3-pykdl"
NEEDED = ("numpy", "numba", "urdf_parser_py", "click", "rich")
FIXED_CHECKS = (
    Check(CORE, "python", "", "", _python),
    *(Check(CORE, name, "everything", f"pip install {name.replace('_', '-')}") for name in NEEDED),
    Check(EXTRAS, "matplotlib", "pictures: --plot, --report", _extra("demo")),
    Check(EXTRAS, "viser", "dls-ik view", _extra("viewer")),
    Check(EXTRAS, "yourdfpy", "dls-ik view", _extra("viewer")),
    Check(EXTRAS, "rosbags", "bags from dls-ik path", _extra("bag")),
    Check(EXTRAS, "ruckig", "limits of jerk", _extra("jerk")),
    Check(EXTRAS, "coal", "collisions: --srdf, --scene, the scene of ik_node", _extra("collision")),
    Check(EXTRAS, "mujoco", "ik_sim_arm --physics", _extra("physics")),
    Check(EXTRAS, "robot_descriptions", "robots NAME_description", _extra("descriptions")),
    Check(EXTRAS, "distributed", "maps on a cluster (Dask)", _extra("cluster")),
    Check(EXTRAS, "zarr", "maps in zarr files", _extra("zarr")),
    Check(EXTRAS, "xacro", "robots in xacro files", "pip install xacro"),
    Check(EXTRAS, "PyKDL", "methods kdl_*", PYKDL),
    Check(
        PARTS, "kernels", "everything", "export NUMBA_CACHE_DIR=~/.cache/dls_ik", _kernels, 600.0
    ),
    Check(PARTS, "threading layer", "", "", _threading),
    Check(PARTS, "solve", "everything", "", _solve),
    Check(PARTS, "batch", "many poses at once", "", _batch),
    Check(PARTS, "follow", "the streaming controller", "", _follow),
    Check(PARTS, "collisions", "--srdf, --scene, ik_node", _extra("collision"), _collisions, 120.0),
    Check(PARTS, "pictures", "--plot, --report", _extra("demo"), _pictures),
    Check(PARTS, "PyKDL's methods", "methods kdl_*", PYKDL, _pykdl),
    Check(ROS, "distribution", "", "", _distribution),
    Check(ROS, "domain", "", "export ROS_DOMAIN_ID=0", _domain),
    Check(ROS, "discovery range", "", LOCAL, _range),
    Check(ROS, "shared memory", "", "docker run --shm-size=256m, or --ipc=host", _shared_memory),
    Check(ROS, "multicast", "", LOCAL, _multicast),
    Check(ROS, "presets", "ik_node", "install the package whole", _presets),
)
# Modules that the node imports: a package without them is incomplete.
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
    Check(NODE, "middleware", "ik_node", "unset RMW_IMPLEMENTATION", _middleware),
    Check(NODE, "two processes", "nodes that hear each other", LOCAL, _two_processes),
    Check(NODE, "ik_node", "services and streaming", "", _ik_node, 180.0),
)
TESTS = {check.name: check.test for check in (*FIXED_CHECKS, *NODE_CHECKS) if check.test}
COLLISION_ELEMENTS = (
    "add a <collision> element with a box, a sphere, a cylinder or a mesh to each link of the "
    "URDF; in Python: PlanningScene(robot, bodies=...)"
)


def robot_checks(robot: str) -> list[Check]:
    """Return the checks of a robot: a name or a file, see dls_ik.model.load.find_tree."""
    description = partial(_description, robot)
    geometry = partial(_collision_geometry, robot)
    use = "collisions: min_distance, avoid_collisions, --srdf, --scene"
    return [
        Check(ROBOT, "description", "all commands", "dls-ik info", description),
        Check(ROBOT, "collision geometry", use, COLLISION_ELEMENTS, geometry),
    ]


def checks() -> list[Check]:
    """Return all checks but those of NODE_CHECKS, which need some of these."""
    uses = {
        "rclpy": "ik_node, dls-ik call, stream",
        **dict.fromkeys(MESSAGES, "ik_node"),
        **ONLY_DISTRIBUTION,
    }
    packages = {name: _ros_package(name.partition(".")[0]) for name in uses}
    return [*FIXED_CHECKS, *(Check(ROS, name, uses[name], mend) for name, mend in packages.items())]


def _ros_package(name: str) -> str:
    """Return the command that installs a ROS package here."""
    if distro := os.environ.get("ROS_DISTRO"):
        return f"sudo apt-get install ros-{distro}-{name.replace('_', '-')}"
    if installed := installed_ros():
        return f"source /opt/ros/{installed[-1]}/setup.bash"
    if name in ONLY_DISTRIBUTION:
        return "only in a ROS 2 installation: docs.ros.org"
    return "scripts/setup in a checkout" if name == "moveit_msgs" else _extra("ros")


def installed_ros() -> list[str]:
    """Return the distributions in /opt/ros, sourced or not."""
    return sorted(path.parent.name for path in Path("/opt/ros").glob("*/setup.bash"))


# Run


def main(names: Sequence[str], robot: str = "") -> None:
    """Run checks, and write a line of JSON for each; output of libraries goes to stderr.

    Args:
        names: Names of the checks.
        robot: Robot of the checks of :func:`robot_checks`.
    """
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)
        for name in names:
            out.write(json.dumps(run_check(name, robot)) + "\n")
            out.flush()


def run_check(name: str, robot: str = "") -> tuple[str, ...]:
    """Return state and words of a check, perhaps with a remedy; nothing is raised.

    Args:
        name: Name of the check.
        robot: Robot of the checks of :func:`robot_checks`.
    """
    tests = {**TESTS, **{check.name: check.test for check in robot_checks(robot)}}
    test = tests.get(name)
    try:
        return OK, test() if test else version(name)
    except TroubleError as trouble:
        return trouble.args
    except ModuleNotFoundError as error:
        if not test and error.name in (name, name.partition(".")[0]):
            return MISSING, "not installed"
        return BROKEN, one_line(error)
    except (Exception, SystemExit) as error:  # noqa: BLE001  any error is the finding
        return BROKEN, one_line(f"{type(error).__name__}: {error}")


def version(name: str) -> str:
    """Import a module, and return its version if known."""
    module = import_module(name)
    top = name.partition(".")[0]
    distribution, *_ = metadata.packages_distributions().get(top, [top])
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        found = getattr(module, "__version__", None) or getattr(module, "VERSION", None)
        return str(found) if found else "installed"
