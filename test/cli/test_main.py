"""The group of commands, and properties of every command: help, JSON, errors, pipes, Ctrl-C."""

import os
import resource
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import click
import pytest
from cli_runner import refusal, run
from click.testing import CliRunner

import dls_ik
from dls_ik.cli.main import COMMANDS, SECTIONS, main
from dls_ik.reproduce.experiment import EXPERIMENTS

COMMAND = [sys.executable, "-m", "dls_ik.cli"]
PATIENCE = 120  # [s]
WIDE = ("COLUMNS", "FORCE_COLOR", "CLICOLOR_FORCE", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
PLAIN = {name: value for name, value in os.environ.items() if name not in WIDE}
POSES = "x,y,z,roll,pitch,yaw\n0.4,0.2,0.5,0,3,0\n0.4,0.21,0.5,0,3,0\n"

# Quick work that prints; call, stream and doctor have theirs in their own tests.
WORK = {
    "info": ["wam", "--quick"],
    "fk": ["wam", "--random", "3"],
    "solve": ["wam", "--xyz", "0.4", "0.2", "0.5", "--rpy", "0", "3", "0"],
    "path": ["wam", "poses.csv", "--out", "-", "--rate", "10"],
    "reachability": ["planar_2r", "--resolution", "0.5", "--task", "position"],
    "reproduce": ["figure-2", "--samples", "20"],
    "bench": ["planar_2r", "--method", "auto", "--samples", "3"],
}  # fmt: skip
SHOWS = {"view"}  # what it finds is a page, not results
# Work that takes minutes, until Ctrl-C.
LONG = {
    "bench": ["wam", "--method", "auto", "--samples", "10000000"],
    "reachability": ["wam", "--resolution", "0.02", "--orientations", "1000"],
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "poses.csv").write_text(POSES)
    return tmp_path


def environment():
    paths = [str(Path(path).resolve()) for path in sys.path if path]
    return {**PLAIN, "PYTHONPATH": os.pathsep.join(paths)}


def start(command, folder, stdout):
    return subprocess.Popen(
        [*COMMAND, command, *(LONG if stdout is None else WORK)[command]],
        cwd=folder, env=environment(), stdin=subprocess.DEVNULL, text=True,
        stdout=subprocess.DEVNULL if stdout is None else stdout, stderr=subprocess.PIPE,
    )  # fmt: skip


# The group


def test_the_version_and_help():
    assert dls_ik.__version__ in run("--version").output
    assert "reproduce" in run("--help").output
    assert "reproduce" in run().output
    assert all(name in run("reproduce", "--help").output for name in EXPERIMENTS)


def test_a_subcommand_may_be_added():
    @click.command()
    def extra():
        raise click.UsageError("two\nlines")

    main.add_command(extra)
    try:
        assert refusal("extra") == "dls-ik: two lines\n"
    finally:
        main.commands.pop("extra")


def test_help_shows_every_command_in_its_section():
    lines = CliRunner().invoke(main, ["--help"]).stdout.splitlines()
    for title, commands in SECTIONS.items():
        begin = lines.index(f"{title}:") + 1
        shown = [line.split(maxsplit=1) for line in lines[begin : begin + len(commands)]]
        assert shown == [list(item) for item in commands.items()]
    assert len(COMMANDS) == sum(map(len, SECTIONS.values())), "each in one section"


def test_help_and_completion_import_no_command():
    code = (
        "import sys; from dls_ik.cli.main import main\n"
        "try: main(['--help'])\n"
        "finally: print(sum(m.startswith('dls_ik.cli.') for m in sys.modules), file=sys.stderr)\n"
        "assert not {'numpy', 'rich', 'numba'} & set(sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stderr == "2\n"  # main and output


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("reproduc", "did you mean reproduce?"),
        ("cal", "did you mean call?"),
        ("zzz", ", ".join(COMMANDS)),
    ],
)
def test_an_unknown_command(typed, said):
    line = refusal(typed)
    assert typed in line
    assert said in line


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--metod", "no option --metod; did you mean --method?"),
        ("--zzz", "no option --zzz; dls-ik solve --help lists them"),
    ],
)
def test_an_unknown_option(typed, said):
    result = CliRunner().invoke(main, ["solve", "wam", typed, "x"], prog_name="dls-ik")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"dls-ik: {said}\n"


def test_completion():
    words = {"_DLS_IK_COMPLETE": "bash_complete", "COMP_WORDS": "dls-ik re", "COMP_CWORD": "1"}
    ended = subprocess.run(
        COMMAND, env={**os.environ, **words}, capture_output=True, text=True, check=False
    )
    wanted = [f"plain,{name}" for name in COMMANDS if name.startswith("re")]
    assert ended.stdout.splitlines() == wanted


def test_ctrl_c_that_a_command_does_not_know_of():
    @click.command()
    def extra():
        raise KeyboardInterrupt

    main.add_command(extra)
    try:
        result = CliRunner().invoke(main, ["extra"])
    finally:
        main.commands.pop("extra")
    assert (result.exit_code, result.stderr) == (130, "dls-ik: interrupted\n")


# Every command


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("width", [60, 80])
def test_help_fits_the_terminal(command, width):
    result = CliRunner().invoke(main, [command, "--help"], terminal_width=width, prog_name="dls-ik")
    assert result.exit_code == 0
    assert result.stderr == ""
    assert [line for line in result.stdout.splitlines() if len(line) > width] == []
    assert len(result.stdout.splitlines()) > 5


@pytest.mark.parametrize("width", [60, 80])
def test_the_list_of_commands_fits_the_terminal(width):
    result = CliRunner().invoke(main, ["--help"], terminal_width=width, prog_name="dls-ik")
    assert [line for line in result.stdout.splitlines() if len(line) > width] == []
    for command, words in COMMANDS.items():
        assert f"{command} " in result.stdout
        assert words in result.stdout  # on one line


@pytest.mark.parametrize("command", COMMANDS)
def test_results_come_as_json_too(command):
    found = main.get_command(click.Context(main), command)
    options = {word for param in found.params for word in param.opts}
    assert found.name == command
    assert command in SHOWS or "--json" in options


@pytest.mark.parametrize("command", COMMANDS)
def test_an_unknown_option_is_one_line(command):
    assert "--frobnicate" in refusal(command, "--frobnicate")


@pytest.mark.parametrize("command", WORK)
def test_a_file_gets_plain_text(command, folder):
    with (folder / "out").open("w") as out, start(command, folder, out) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    text = (folder / "out").read_text()
    assert process.returncode == 0, errors
    assert text.strip()
    assert "\x1b" not in text + errors
    assert "\r" not in text.replace("\r\n", "\n") + errors


@pytest.mark.parametrize("command", WORK)
def test_nobody_reads_the_output(command, folder):
    """As ``| head -1``, which has gone before the second line."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out, start(command, folder, out) as process:
        out.close()
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode != 2, errors
    assert "Traceback" not in errors
    assert "Exception ignored" not in errors


@pytest.mark.parametrize("command", ["info", "path"])
def test_the_disk_of_the_output_is_full(command, folder):
    with open("/dev/full", "w") as out, start(command, folder, out) as process:
        _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 2, errors
    assert errors == "dls-ik: cannot write the output: No space left on device\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ["path", "wam", "poses.csv", "--out", "q.csv"],
        ["path", "wam", "poses.csv", "--out", "q.bag"],
        ["path", "wam", "poses.csv", "--out", "q.bag", "--storage", "mcap"],
        ["reachability", "planar_2r", "--resolution", "0.2", "--task", "position"],
    ],
)
def test_the_disk_of_a_file_is_full(arguments, folder):
    """As a limit on the size of files has it, which the system enforces in the same place."""
    line = (folder / "poses.csv").read_text().splitlines()[-1]
    with (folder / "poses.csv").open("a") as file:
        file.writelines(f"{line}\n" for _ in range(100))
    there = sorted(folder.iterdir())
    ended = subprocess.run(
        [*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, check=False,
        env={**environment(), "PYTHONDONTWRITEBYTECODE": "1"},
        preexec_fn=partial(resource.setrlimit, resource.RLIMIT_FSIZE, (600, 600)),
    )  # fmt: skip
    said = [line for line in ended.stderr.splitlines() if line.startswith("dls-ik: ")]
    assert ended.returncode == 2, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "cannot write" in said[-1]
    written = [each for each in sorted(folder.iterdir()) if ".parts" not in each.name]
    assert written == there


@pytest.mark.parametrize("command", LONG)
def test_ctrl_c_during_work(command, folder):
    with start(command, folder, None) as process:
        maps = Path(f"/proc/{process.pid}/maps")
        deadline = time.monotonic() + PATIENCE
        while "llvmlite" not in maps.read_text() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(3.0)  # most likely at work by now; Ctrl-C before is as good
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    said = [line for line in errors.splitlines() if line.startswith("dls-ik: ")]
    # Python ends by the signal itself, which shells call 130 too, if code was made by exec() then.
    assert process.returncode in (130, -signal.SIGINT), errors
    assert len(said) == 1, errors
    assert "interrupted" in said[0]
    assert "Traceback" not in errors
