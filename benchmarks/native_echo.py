# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Echo node in C, ``echo_node.c``: ``python -m benchmarks.native_echo LIBRARY`` runs it.

The node is compiled to a library, which a process of Python loads: the libraries in the wheels of
ROS 2 need the symbols of Python and the search path that importing rclpy sets. Once the node is
started, no code of Python runs.
"""

import ctypes
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).with_name("echo_node.c")
LIBRARIES = (
    "rcl",
    "rmw",
    "rcutils",
    "geometry_msgs__rosidl_typesupport_c",
    "sensor_msgs__rosidl_typesupport_c",
)


class NotBuiltError(Exception):
    """The echo node in C cannot be compiled on this machine."""


def build(folder: Path) -> Path:
    """Compile the echo node, and return the path of the library.

    Headers and libraries are those of the ROS 2 installation in AMENT_PREFIX_PATH, or of the wheels
    in this environment. The compiler also reads headers from the folders in CPATH.

    Args:
        folder: Folder for the library.

    Raises:
        NotBuiltError: If there is no compiler, or compilation fails, for example because of missing
            headers.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise NotBuiltError("no C compiler cc")
    library = folder / "libecho_node.so"
    command = [compiler, "-O2", "-Wall", "-shared", "-fPIC", str(SOURCE), "-o", str(library)]
    command += [f"-I{path}" for path in _header_folders()]
    command += [f"-L{path / 'lib'}" for path in _prefixes()]
    command += [f"-l{name}" for name in LIBRARIES]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        errors = [
            line for line in done.stderr.splitlines() if " error: " in line or "undefined" in line
        ]
        raise NotBuiltError(next(iter(errors), done.stderr.strip() or "the compiler failed"))
    return library


def _prefixes() -> list[Path]:
    """Return the folders in which ROS 2 is installed."""
    given = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    return [path for path in map(Path, [*filter(None, given), sys.prefix]) if path.is_dir()]


def _header_folders() -> Iterator[Path]:
    """Yield the folders of headers: ROS 2 installs those of a package in include/PACKAGE."""
    roots = [prefix / "include" for prefix in _prefixes()]
    roots += map(Path, filter(None, os.environ.get("CPATH", "").split(os.pathsep)))
    for root in roots:
        if root.is_dir():
            yield root
            yield from (path for path in sorted(root.iterdir()) if path.is_dir())


def main() -> None:
    """Run the node of a library until a signal stops it."""
    import rclpy  # noqa: F401  finds the libraries of ROS 2

    library, *arguments = sys.argv[1:]
    words = [b"echo_node", *(word.encode() for word in arguments)]
    sys.exit(ctypes.CDLL(library).main(len(words), (ctypes.c_char_p * len(words))(*words)))


if __name__ == "__main__":
    main()
