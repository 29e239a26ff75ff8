# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The group of commands, and properties of every command: help, JSON, errors, pipes, Ctrl-C."""

import os
import signal
import subprocess
import time
from pathlib import Path

import click
import pytest
from cli_runner import BAD_INPUT, refusal, run
from click.testing import CliRunner
from programs import COMMAND, environment, run_command, run_python

import dls_ik
from dls_ik.cli.main import COMMAND_SUMMARIES, SECTIONS, main
from dls_ik.reproduce.experiment import EXPERIMENTS

PATIENCE = 300  # [s]
WIDE = ("COLUMNS", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
SCENARIO = Path(dls_ik.__file__).parents[1] / "examples" / "scenario.yaml"
POSES = "x,y,z,roll,pitch,yaw\n0.4,0.2,0.5,0,3,0\n0.4,0.21,0.5,0,3,0\n"

# Short runs that print; call, stream and doctor are covered by their own tests
WORK = {
    "info": ["wam", "--quick"],
    "fk": ["wam", "--random", "3"],
    "solve": ["wam", "--xyz", "0.4", "0.2", "0.5", "--rpy", "0", "3", "0"],
    "path": ["wam", "poses.csv", "--out", "-", "--rate", "10"],
    "reachability": ["planar_2r", "--resolution", "0.5", "--task", "position"],
    "collisions": ["wam", "--samples", "50"],
    "reproduce": ["figure-2", "--samples", "20"],
    "study": ["planar_2r", "--method", "auto", "--pairs", "3"],
    "scenario": [str(SCENARIO), "--method", "tpinv"],
    "tune": ["planar_2r", "--values", "0.1,1", "--task", "position", "--pairs", "10"],
}  # fmt: skip
SHOWS = {"view", "teleop", "waypoint"}  # a page, a session, or commands of its own
# Runs that take minutes, until Ctrl-C
LONG = {
    "study": ["wam", "--method", "auto", "--pairs", "1000000"],
    "reachability": ["wam", "--resolution", "0.02", "--orientations", "1000"],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "poses.csv").write_text(POSES)
    return tmp_path


def start(command, folder, stdout):
    given = {name: value for name, value in environment().items() if name not in WIDE}
    return subprocess.Popen(
        [*COMMAND, command, *(LONG if stdout is None else WORK)[command]],
        cwd=folder, env=given, stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.DEVNULL if stdout is None else stdout, stderr=subprocess.PIPE,
    )  # fmt: skip


# Group


@pytest.mark.parametrize("width", [60, 80])
def test_help_shows_every_command_in_its_section(width):
    assert dls_ik.__version__ in run("--version").output
    assert "reproduce" in run().output
    assert all(name in run("reproduce", "--help").output for name in EXPERIMENTS)
    result = CliRunner().invoke(main, ["--help"], terminal_width=width, prog_name="dls-ik")
    lines = result.stdout.splitlines()
    assert [line for line in lines if len(line) > width] == []
    for title, commands in SECTIONS.items():
        begin = lines.index(f"{title}:") + 1
        shown = [line.split(maxsplit=1) for line in lines[begin : begin + len(commands)]]
        assert shown == [list(item) for item in commands.items()]
    assert len(COMMAND_SUMMARIES) == sum(map(len, SECTIONS.values())), "each in one section"


def test_help_and_completion_import_no_command():
    code = (
        "import sys; from dls_ik.cli.main import main\n"
        "try: main(['--help'])\n"
        "finally: print(sum(m.startswith('dls_ik.cli.') for m in sys.modules), file=sys.stderr)\n"
        "assert not {'numpy', 'rich', 'numba'} & set(sys.modules)"
    )
    assert run_python("-c", code).stderr == "2\n"  # main and output


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("reproduc", "unknown command 'reproduc'; did you mean reproduce?"),
        ("cal", "did you mean call?"),
        ("zzz", ", ".join(COMMAND_SUMMARIES)),
        ("solve wam --metod x", "dls-ik: unknown option --metod; did you mean --method?\n"),
        ("solve wam --zzz x", "solve --help\n"),
        ("fk wam 1 2 3", "joint positions are separated by commas: --q 0.1,0.2\n"),
        ("solve wam --xyz 0.4 0 0.5 --seed 1 2", "separated by commas: --seed 0.1,0.2\n"),
        ("info wam 1", "unexpected extra argument (1)\n"),
    ],
)
def test_unknown_command_or_option_gets_a_suggestion(typed, said):
    assert said in refusal(*typed.split())


def test_shell_completion_lists_matching_commands():
    words = {"_DLS_IK_COMPLETE": "bash_complete", "COMP_WORDS": "dls-ik re", "COMP_CWORD": "1"}
    wanted = [f"plain,{name}" for name in COMMAND_SUMMARIES if name.startswith("re")]
    assert run_command(**words).stdout.splitlines() == wanted


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (KeyboardInterrupt(), 130, "dls-ik: interrupted\n"),
        (click.UsageError("two\nlines"), 2, "dls-ik: two lines\n"),
        (EOFError("too short"), 2, "\ndls-ik: a file is truncated: too short\n"),
    ],
)
def test_errors_of_an_added_command_give_exit_code_and_message(error, code, said, monkeypatch):
    @click.command()
    def extra():
        raise error

    monkeypatch.setitem(main.commands, "extra", extra)
    result = CliRunner().invoke(main, ["extra"])
    assert (result.exit_code, result.stderr) == (code, said)


# All commands


@pytest.mark.parametrize("command", COMMAND_SUMMARIES)
def test_every_command_has_help_that_fits_the_terminal_json_and_refusals(command):
    for width in (60, 80):
        given = {"terminal_width": width, "prog_name": "dls-ik"}
        result = CliRunner().invoke(main, [command, "--help"], **given)
        assert (result.exit_code, result.stderr) == (0, "")
        assert [line for line in result.stdout.splitlines() if len(line) > width] == []
        assert len(result.stdout.splitlines()) > 5
    found = main.get_command(click.Context(main), command)
    options = {word for param in found.params for word in param.opts}
    assert found.name == command
    assert command in SHOWS or "--json" in options
    assert "--frobnicate" in refusal(command, "--frobnicate")


@pytest.mark.parametrize("command", WORK)
def test_output_to_a_non_terminal_is_plain_text(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    result = run(command, *WORK[command])
    assert result.stdout.strip()
    assert "\x1b" not in result.output
    assert "\r" not in result.output.replace("\r\n", "\n")


@pytest.mark.parametrize("command", ["info", "path", "reproduce"])
def test_closed_output_pipe_causes_no_traceback(command, folder):
    """The reader has exited, as in ``| head -1`` after one line."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out, start(command, folder, out) as process:
        out.close()
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode != 2, errors
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


@pytest.mark.parametrize("command", ["info", "path"])
def test_full_disk_on_stdout_is_reported(command, folder):
    with open("/dev/full", "w") as out, start(command, folder, out) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2, errors
    assert errors == "dls-ik: cannot write the output: No space left on device\n"


@pytest.mark.parametrize(
    "words",
    [
        "path wam poses.csv --out q.csv",
        "path wam poses.csv --out q.bag",
        "path wam poses.csv --out q.bag --storage mcap",
        "reachability planar_2r --resolution 0.2 --task position",
    ],
)
def test_full_disk_on_an_output_file_leaves_no_file(words, folder, no_room, monkeypatch):
    """A limit on file sizes is enforced by the system at the same point as a full disk."""
    line = (folder / "poses.csv").read_text().splitlines()[-1]
    with (folder / "poses.csv").open("a") as file:
        file.writelines(f"{line}\n" for _ in range(100))
    there = sorted(folder.iterdir())
    monkeypatch.chdir(folder)
    with no_room(600):
        result = run(*words.split(), code=BAD_INPUT)
    said = [line for line in result.stderr.splitlines() if line.startswith("dls-ik: ")]
    assert "cannot write" in said[-1]
    written = [each for each in sorted(folder.iterdir()) if ".parts" not in each.name]
    assert written == there


@pytest.mark.parametrize("command", LONG)
def test_ctrl_c_during_work_exits_with_one_message(command, folder):
    with start(command, folder, None) as process:
        maps = Path(f"/proc/{process.pid}/maps")
        deadline = time.monotonic() + PATIENCE
        while "llvmlite" not in maps.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(1.0)  # the command probably works by now; an earlier Ctrl-C has the same effect
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    said = [line for line in errors.splitlines() if line.startswith("dls-ik: ")]
    # If exec() was creating code, Python exits by the signal itself, which shells call 130 too.
    assert process.returncode in (130, -signal.SIGINT), errors
    assert len(said) == 1, errors
    assert "interrupted" in said[0]
    assert "Traceback" not in errors


def test_teleop_names_what_works_without_ros():
    code = (
        "import sys; sys.modules['rclpy'] = None; from dls_ik.cli.main import main; "
        "main(['teleop', 'joy'])"
    )
    done = run_python("-c", code)
    assert done.returncode == 3
    assert "ROS 2 is not available" in done.stderr
    assert "dls-ik view" in done.stderr
    assert "docs/teleop.md#without-ros" in done.stderr
