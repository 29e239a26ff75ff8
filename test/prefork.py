# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Quick start of programs of the package, as forks of a process that has imported their modules.

:class:`ForkingPopen` is a :class:`subprocess.Popen` for commands ``python -m MODULE ARGUMENT...``.
If MODULE is in ``PROGRAMS``, the program is a fork of a *template* (prefork_template.py), a process
that has imported the modules of the program. The fork has its own arguments, environment, working
directory, standard streams, process id, exit code and signals, and is a child of the calling
process. Other commands are executed as usual; so is a program whose environment differs from that
of the template in a variable that imports may read, such as ``NUMBA_CACHE_DIR``.

Differences from an executed process: ``/proc/PID/cmdline`` and shared memory are those of the
template. Tests of the start itself, of memory and of processor time therefore execute the program.

A template forks for the process that started it, and ends with this process; so do its forks.
"""

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
TEMPLATE = HERE / "prefork_template.py"
PR_SET_CHILD_SUBREAPER = 36
SIZE = 8  # bytes of the numbers that both processes exchange

# Function of prefork_template.py that makes the imports of a program, by the program's module.
# The command line is for tests of nodes; other tests call commands in their own process.
PROGRAMS = {
    "dls_ik.cli": "load_nodes",
    "dls_ik.ros.node": "load_nodes",
    "dls_ik.ros.sim_arm.node": "load_nodes",
    "prefork_program": "load_nothing",  # the program of test_prefork.py
}

# Beginnings of the names of variables that a program reads after its imports.
READ_LATE = ("FASTDDS_", "FASTRTPS_", "PYTEST_", "ROS_", "PYTHONFAULTHANDLER", "PYTHONUNBUFFERED")
# Variable with which a program is executed instead of forked, for tests in which forks differ.
EXECUTE = {"DLS_IK_NO_FORKS": "1"}
# Beginnings of the names of variables with which programs are executed: coverage counts the lines
# of executed programs, and colcon tests installed programs.
EXECUTED = ("COVERAGE_", "COV_CORE_", *EXECUTE)

_templates: "dict[str, Template]" = {}
_lock = threading.Lock()


def python_path():
    """Return the value of PYTHONPATH with which processes import the same package as this one."""
    import dls_ik  # once conftest.py has found the package

    root = str(Path(dls_ik.__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [root, os.environ.get("PYTHONPATH")]))


FIRST_ENVIRONMENT = {**os.environ, "PYTHONPATH": python_path()}  # tests change variables later


class Template:
    """Process that has imported the modules of programs, and forks to start one of them.

    Args:
        load: Name of the function of prefork_template.py that makes the imports.

    Attributes:
        owner: Id of the process that started the template; it becomes the parent of the forks.
    """

    def __init__(self, load):
        from isolation import SESSION_PROCESSES  # imports pytest

        self.owner = os.getpid()
        self._socket, theirs = socket.socketpair()
        with theirs:
            words = (load, str(theirs.fileno()), str(self.owner))
            self._process = subprocess.Popen(
                [sys.executable, TEMPLATE, *words],
                env=FIRST_ENVIRONMENT,
                cwd=HERE.parent,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        SESSION_PROCESSES.add(self._process.pid)

    @property
    def has_ended(self):
        """Whether the process has ended, as it does with the thread that started it."""
        return self._process.poll() is not None

    def fork(self, start, streams):
        """Fork a process that runs a program, and return its process id.

        Args:
            start: Module, arguments, environment, working directory of the program, and whether it
                starts a session.
            streams: File descriptors of the standard streams of the program.
        """
        request = json.dumps(start).encode()
        # The parent of the fork ends at once, so that this process becomes its parent.
        set_subreaper(True)
        try:
            socket.send_fds(self._socket, [len(request).to_bytes(SIZE, "little")], streams)
            self._socket.sendall(request)
            answer = self._socket.recv(SIZE)
        finally:
            set_subreaper(False)
        if not answer:
            raise RuntimeError(f"the template of {start[0]} exited with {self._process.wait()}")
        return int.from_bytes(answer, "little")


class ForkingPopen(subprocess.Popen):
    """Popen that forks a template if the command and its environment allow this."""

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *others):
        _, _, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *rest = others
        environment = dict(os.environ if env is None else env)
        is_plain = close_fds and not (executable or preexec_fn or pass_fds or shell)
        load = template_name(args, environment) if is_plain else None
        if load is None:
            given = (args, executable, preexec_fn, close_fds, pass_fds, cwd, env)
            super()._execute_child(*given, *others)
            return
        is_leader = bool(rest[5])  # argument start_new_session of Popen
        module, *arguments = map(os.fspath, args[2:])
        start = (module, arguments, environment, os.fspath(cwd or os.getcwd()), is_leader)
        own = (p2cread, c2pwrite, errwrite)
        streams = [number if each == -1 else each for number, each in enumerate(own)]
        with _lock:
            self.pid = own_template(load).fork(start, streams)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)


def template_name(command, environment):
    """Return the name of the template whose fork can run a command; None: none can.

    Args:
        command: Words of the command.
        environment: All variables of its environment.
    """
    if isinstance(command, (str, bytes, os.PathLike)) or list(command[:2]) != [
        sys.executable,
        "-m",
    ]:
        return None
    if is_executed(environment):
        return None
    if read_early(environment) != read_early(FIRST_ENVIRONMENT):
        return None
    return PROGRAMS.get(command[2])


def is_executed(environment):
    """Return whether programs with this environment are executed, whatever else it contains."""
    return "COLCON" in environment or any(name.startswith(EXECUTED) for name in environment)


def read_early(environment):
    """Return the variables of an environment that imports may read."""
    return {name: value for name, value in environment.items() if not name.startswith(READ_LATE)}


def own_template(load):
    """Return the template of this process with this name; start it if necessary."""
    template = _templates.get(load)
    if template is None or template.owner != os.getpid() or template.has_ended:
        template = _templates[load] = Template(load)
    return template


def set_subreaper(is_one):
    """Set whether descendants of this process whose parent ends become its children."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, int(is_one), 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")
