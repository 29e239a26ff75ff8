# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Target of the command line: exit codes are 0 to 3, and an error is one line."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

import click
from click.testing import CliRunner

from dls_ik.cli.main import COMMAND_SUMMARIES, main
from fuzz.guard import require
from fuzz.source import Source
from fuzz.targets.robots import robot_text
from fuzz.targets.solving import PARTS

RUN = ("fk", "solve", "path", "info")  # the others, which take long or wait, are only parsed
ROBOTS = ("wam", "planar_2r", "robot.urdf", "arm.yaml", "poses.csv", "x", "package://a/b", "", ".")
VALUES = (
    "0", "1", "0.1,0.2", "0.1 0.2", "0,0,0,0,0,0,0", "joint1=0.3", "wam_j1=9", "=", "a=b", "nan",
    "1e400", "inf", "-", "x,y", "auto", "svf,jt", "a/b", "\u0663", "poses.csv", "out.json",
    "1 0 0 0.4 0 1 0 0.2 0 0 1 0.5", "wam_link4", "position_tolerance=1e-3", "nu=x", "", "json",
)  # fmt: skip
SAFE = {  # values that bound the work
    "--random": ("3", "0", "x"),
    "--timeout": ("0", "0.001", "-1", "x"),
    "--all": ("2", "0", "x"),
    "--out": ("-", "out.csv", "out.json", "no/such.csv", "x", ""),
    "--plot": ("-", "x.txt", "no/such.png"),
    "--set": ("nu=1", "position_tolerance=0.1", "x=1", "a", "direction=1,2", "soft=true"),
}
FOLDER = tempfile.mkdtemp(prefix="dls_ik_fuzz_")
POSES = "x,y,z,roll,pitch,yaw\n0.4,0.2,0.5,0,3,0\n0.4,0.21,0.5,0,3,0\n"


def fuzz_commands(source: Source) -> None:
    """Run a command in a new folder, or parse it."""
    os.chdir(FOLDER)
    Path("arm.yaml").write_text("rows:\n- {a: 0.3, kind: continuous}\n")
    command = source.pick((*RUN, *RUN, *COMMAND_SUMMARIES, "", "x"))
    Path("robot.urdf").write_text(robot_text(source), errors="surrogatepass")
    Path("poses.csv").write_bytes(_poses(source))
    words = _words(source, command)
    if command in COMMAND_SUMMARIES and command not in RUN:
        _parsed(command, words)
        return
    result = CliRunner().invoke(main, [command, *words], input=_poses(source))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    require(result.exit_code in (0, 1, 2, 3), "exit code", result.exit_code, command, words)
    if result.exit_code == 2:
        lines = [line for line in result.stderr.splitlines() if line.startswith("dls-ik: ")]
        require(len(lines) == 1, "the error is not one line", result.stderr)


def _parsed(command: str, words: list[str]) -> None:
    context = click.Context(main)
    with suppress(click.ClickException, click.exceptions.Exit):
        main.get_command(context, command).make_context(command, words, parent=context)


def _words(source: Source, command: str) -> list[str]:
    found = main.get_command(click.Context(main), command) if command in COMMAND_SUMMARIES else None
    params = [] if found is None else [p for p in found.params if isinstance(p, click.Option)]
    words = [source.pick(ROBOTS)] if source.below(8) else []
    if command == "path":
        words += [source.pick(("poses.csv", "-", "x")), "--out", source.pick(SAFE["--out"])]
    if command == "info":
        words.append("--quick")  # the rest is a second of work
    if command == "solve" and source.below(4):
        words += ["--xyz", "0.4", "0.2", "0.5"]
    for _ in range(source.below(4) if params else 0):
        words += _option(source, source.pick(params))
    return words


def _option(source: Source, param: click.Option) -> list[str]:
    name = source.pick(param.opts)
    if param.is_flag or name in ("--help", "--version"):
        return [name]
    if name == "--method":
        return [name, "+".join(source.pick(PARTS) for _ in range(1 + source.below(2)))]
    values = SAFE.get(name, VALUES)
    if isinstance(param.type, click.Choice) and source.below(4):
        values = tuple(map(str, param.type.choices))
    return [name, *(source.pick(values) for _ in range(param.nargs))]


def _poses(source: Source) -> bytes:
    if source.below(4):
        data = bytearray(POSES.encode())
        for _ in range(source.below(4)):
            data[source.below(len(data))] = source.pick(b"0,.-e\n\"'x# \xff\0[")
        return bytes(data)
    entries = [f"[{', '.join(str(source.number()) for _ in range(4))}]" for _ in range(4)]
    return f'[[{", ".join(entries)}], {{"matrix": 1, "t": {source.number()}}}]'.encode()
