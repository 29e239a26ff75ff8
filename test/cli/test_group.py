"""The group: help and completion from the table alone, and commands that are alike."""

import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from dls_ik.cli.main import COMMANDS, SECTIONS, main

COMMAND = [sys.executable, "-m", "dls_ik.cli"]


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
    result = CliRunner().invoke(main, [typed])
    assert (result.exit_code, result.stdout) == (2, "")
    assert typed in result.stderr
    assert said in result.stderr
    assert result.stderr.count("\n") == 1


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
