# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Template process: imports the modules of programs once, then forks for each start of a program.

Started by prefork.py as ``prefork_template.py LOAD SOCKET OWNER``: the name of a function of this
module that imports, a connected socket, and the process id of the owner. A request on the socket
has three file descriptors, the standard streams, with the length of the JSON text that follows.
"""

import ctypes
import faulthandler
import gc
import json
import os
import re
import runpy
import signal
import socket
import sys
import threading
import time
import warnings
from functools import partial
from importlib import import_module
from pathlib import Path

PR_SET_PDEATHSIG = 1
SIZE = 8  # the same number as in prefork.py
# Modules that programs import late, in this package; these import the others.
COMMANDS = ("cli.main", "cli.record", "cli.replay", "cli.stream", "cli.teleop")
NODES = (
    "ros.actions.motion_actions",
    "ros.application",
    "ros.compatibility",
    "ros.sim_arm.application",
)
LIBC = ctypes.CDLL(None)
BLOCKED = (ctypes.c_byte * 128)()  # sigset_t in which LTTng keeps the blocked signals


def load_nodes():
    """Import what nodes and the commands for nodes import; load the kernels that nodes call."""
    for name in (*COMMANDS, *NODES):
        import_module(f"dls_ik.{name}")
    from dls_ik.ros.services.scene_build import load_collision_library
    from dls_ik.warm_up import NODE_USES, SCENE_USES, use_kernels

    use_kernels((*NODE_USES, *SCENE_USES))
    load_collision_library()
    import_module("urdf_parser_py.urdf")
    for module in list(sys.modules.values()):
        if re.fullmatch(r"\w+\.(msg|srv|action)", module.__name__):
            load_type_supports(module)


def load_type_supports(module):
    """Load the libraries of the message types of a package, which clients of ROS load when used."""
    for kind in vars(module).values():
        load = getattr(kind, "__import_type_support__", None)
        if load is not None:
            load()


def load_nothing():
    """Import nothing."""


def serve(connection, owner):
    """Fork for each request from the owner.

    Returns:
        In a fork, the start (module, arguments, ...) and the streams of the program; in the
        template, None when the owner has ended.
    """
    while True:
        header, streams, _, _ = socket.recv_fds(connection, SIZE, 3)
        if not header:  # the owner ended
            return None
        start = json.loads(receive(connection, int.from_bytes(header, "little")))
        pid = fork_child_of(owner)
        if pid == 0:
            connection.close()
            return start, streams
        for stream in streams:
            os.close(stream)
        connection.sendall(pid.to_bytes(SIZE, "little"))


def receive(connection, size):
    """Receive exactly `size` bytes from a socket, and return them."""
    text = b""
    while len(text) < size:
        text += connection.recv(size - len(text))
    return text


def fork_child_of(owner):
    """Fork a process that becomes a child of the owner; return its id, and 0 in the fork.

    An intermediate process makes the fork and exits, so that the owner, a subreaper, becomes the
    parent of the fork.
    """
    is_inherited, told = os.pipe()
    read, write = os.pipe()
    between = os.fork()
    if between == 0:
        os.close(told)
        pid = os.fork()
        if pid == 0:
            os.close(read)
            os.close(write)
            os.read(is_inherited, 1)  # returns when this pipe has no writer
            os.close(is_inherited)
            LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            if os.getppid() != owner:  # it ended before
                os._exit(1)
            return 0
        os.write(write, pid.to_bytes(SIZE, "little"))
        os._exit(0)
    os.close(write)
    pid = int.from_bytes(os.read(read, SIZE), "little")
    os.waitpid(between, 0)
    for end in (read, is_inherited, told):
        os.close(end)
    if not pid:
        sys.exit("prefork: the process between could not fork")
    return pid


def become(start, streams):
    """Give this process the arguments, environment, folder and streams of a program.

    Returns:
        The module of the program.
    """
    module, arguments, environment, folder, is_leader = start
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    if is_leader:
        os.setsid()
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    for stream in streams:
        if stream > 2:
            os.close(stream)
    for file in (sys.stdout, sys.stderr):
        is_unbuffered = bool(environment.get("PYTHONUNBUFFERED"))
        file.reconfigure(
            line_buffering=file is sys.stderr or file.isatty(), write_through=is_unbuffered
        )
    if environment.get("PYTHONFAULTHANDLER"):
        faulthandler.enable()
    sys.argv = [module, *arguments]
    sys.path[0] = folder  # python -m does this
    if not hasattr(sys.modules.get(module), "__path__"):
        sys.modules.pop(module, None)  # runpy executes the module again
    now = time.monotonic()
    for name, loaded in list(sys.modules.items()):
        if name.startswith("dls_ik.ros") and hasattr(loaded, "PROCESS_START"):
            loaded.PROCESS_START = now
    gc.enable()
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    return module


def follow_forks_in_lttng():
    """Register the functions that LTTng, loaded by libraries of ROS, needs before and after forks.

    Otherwise LTTng in an exiting fork would cancel threads that exist only in the template.
    """
    maps = Path("/proc/self/maps").read_text()
    for path in set(re.findall(r"\S*/liblttng-ust[-.][^/\s]*so\S*", maps)):
        library = ctypes.CDLL(path)
        for prefix in ("ust", "lttng_ust"):  # two versions of LTTng
            if hasattr(library, f"{prefix}_before_fork"):
                calls = [
                    partial(getattr(library, f"{prefix}_{when}"), ctypes.byref(BLOCKED))
                    for when in ("before_fork", "after_fork_parent", "after_fork_child")
                ]
                os.register_at_fork(
                    before=calls[0], after_in_parent=calls[1], after_in_child=calls[2]
                )


def main(load, number, owner):
    """Import and serve; in a fork, run the program."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the owner
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # a fork keeps it until `become`
    gc.disable()
    globals()[load]()
    follow_forks_in_lttng()
    if threading.active_count() > 1:
        sys.exit(f"prefork: a fork would lack these threads: {threading.enumerate()}")
    gc.freeze()  # collections in forks would copy all pages
    warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
    served = serve(socket.socket(fileno=int(number)), int(owner))
    if served is None:
        os._exit(0)
    module = become(*served)
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    del sys.path[0]  # the folder of the tests, whose modules no program imports
    sys.path.insert(0, "")
    main(*sys.argv[1:])
