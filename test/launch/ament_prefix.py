# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""An ament prefix with this source tree as the package dls_ik, and launches run against it."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import yaml
from robots import ROOT

import dls_ik

IMPORTED = str(Path(dls_ik.__file__).resolve().parents[1])  # the folder that dls_ik lies in
# Writes how it was called, and the contents of its parameter files.
RECORDER = """
import json, os, sys
from pathlib import Path
words = sys.argv[1:]
files = [Path(b).read_text() for a, b in zip(words, words[1:]) if a == "--params-file"]
Path(f"{__file__}.{os.getpid()}.json").write_text(json.dumps([words, files]))
"""
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
arguments = [argument.split(":=", 1) for argument in sys.argv[2:]]
service = LaunchService(noninteractive=True)  # it passes signals on to the nodes
service.include_launch_description(
    LaunchDescription([IncludeLaunchDescription(sys.argv[1], launch_arguments=arguments)])
)
sys.exit(service.run())
"""


class Call(NamedTuple):
    """Recorded call of an executable by a launch file."""

    arguments: list[str]  # arguments before --ros-args
    namespace: str
    parameters: dict[str, object]
    remappings: tuple[str, ...] = ()


class Launch:
    """Running launch."""

    def __init__(self, command, environment, log):
        self.killed = 0  # nodes, by the test
        self._log = log
        with log.open("w") as file:
            self._process = subprocess.Popen(
                command, env=environment, stdout=file, stderr=subprocess.STDOUT
            )

    def output(self):
        return self._log.read_text()

    def check(self):
        """Raise an error with all output if a node exited."""
        output = self.output()
        assert output.count("process has died") <= self.killed, output

    def kill(self, name):
        """Kill a node that was started once, as a crash does."""
        [pid] = re.findall(rf"\[{name}-\d+\]: process started with pid \[(\d+)\]", self.output())
        self.killed += 1
        os.kill(int(pid), signal.SIGKILL)

    def ended(self, timeout):
        """Wait for the exit, and return the exit code."""
        try:
            return self._process.wait(timeout)
        finally:
            self._process.kill()

    def interrupted(self, timeout=30.0):
        """Interrupt the launch, and return its exit code."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
        return self.ended(timeout)


class Prefix:
    """Folder that ament and launch accept as an installation."""

    def __init__(self, folder):
        self.folder = folder
        self.index = folder / "share" / "ament_index" / "resource_index" / "packages"
        self.share = folder / "share" / "dls_ik"
        self.index.mkdir(parents=True)
        self.share.mkdir(parents=True)
        for name in ("launch", "config", "urdf"):
            (self.share / name).symlink_to(ROOT / name)

    def add(self, package, executable, script):
        """Put a Python script in as an executable of a package."""
        (self.index / package).touch()
        path = self.folder / "lib" / package / executable
        path.parent.mkdir(parents=True, exist_ok=True)
        write_executable(path, f"#!{sys.executable}\n{script}")

    def environment(self, **changes):
        prefixes = [str(self.folder), os.environ.get("AMENT_PREFIX_PATH", "")]
        paths = [IMPORTED, os.environ.get("PYTHONPATH", "")]
        ours = {
            "AMENT_PREFIX_PATH": os.pathsep.join(filter(None, prefixes)),
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "ROS_LOG_DIR": str(self.folder / "log"),
        }
        return os.environ | ours | changes

    def start(self, file, *arguments, **environment):
        """Launch a file as `ros2 launch dls_ik FILE ARGUMENTS` does."""
        command = [sys.executable, "-c", LAUNCH, str(self.share / "launch" / file), *arguments]
        return Launch(command, self.environment(**environment), self.folder / "output.txt")

    def output(self, file, *arguments, **environment):
        """The exit code and all output of a launch that ends by itself."""
        launch = self.start(file, *arguments, **environment)
        return launch.ended(timeout=60), launch.output()

    def calls(self, file, *arguments, **environment):
        """What a launch starts, by executable, each once; all executables are recorders."""
        records = self.records(file, *arguments, **environment)
        calls = dict(records)
        assert len(calls) == len(records)
        return calls

    def records(self, file, *arguments, **environment):
        """What a launch starts, with the names of the executables, in their order."""
        for old in self.folder.glob("lib/*/*.json"):
            old.unlink()
        code, output = self.output(file, *arguments, **environment)
        assert code == 0, output
        files = sorted(self.folder.glob("lib/*/*.json"))
        return [(f.name.split(".")[0], _call(*json.loads(f.read_text()))) for f in files]


def write_executable(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def write_command(folder, name, *lines):
    """A shell script in a folder; the folder is returned, to be put on the search path."""
    write_executable(folder / name, "\n".join(["#!/bin/sh", *lines, ""]))
    return folder


def path_with(folder):
    return os.pathsep.join([str(folder), os.environ["PATH"]])


def _call(arguments, files):
    ros = arguments.index("--ros-args")
    rules = [word.partition(":=") for word in arguments[ros:]]
    namespace = next((value for rule, _, value in rules if rule == "__ns"), "/")
    parameters: dict[str, object] = {}
    for file in files:  # the later come before the earlier; launch writes lists as tuples
        for node in yaml.full_load(file).values():
            parameters |= node["ros__parameters"]
    pairs = zip(arguments[ros:], arguments[ros + 1 :], strict=False)
    names = tuple(rule for flag, rule in pairs if flag == "-r" and not rule.startswith("__"))
    return Call(arguments[:ros], namespace, parameters, names)
