# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The command as a process: exit codes, pipes, narrow terminals, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from programs import COMMAND, run_command

from dls_ik.cli.output import defer_sigint, record_sigint

SLOW = """
import sys, time
from dls_ik.cli import reproduce
from dls_ik.cli.main import main
from dls_ik.reproduce.experiment import Experiment
from dls_ik.reproduce.experiment import Column, ResultTable
from dls_ik.plot.canvas import new_figure

def run(report, progress):
    for i in progress.track(range(1000), "slow"):
        if i == 2:
            print("ready", file=sys.stderr, flush=True)
        if i >= 2:
            time.sleep(0.05)
        report.rows.append({"method": f"m{i}"})

def plot(report):
    figure = new_figure(1, 1)
    figure.subplots().plot([1, 2])
    return figure

table = ResultTable((Column("method", "method", is_name=True),))
slow = Experiment("figure-2", "nobody", "slow", (table,), run, plot, 1, "samples")
reproduce.experiment = lambda what: slow
main()
"""

SLOW_PATH = """
import sys, time
import dls_ik.cli.path as solving
from dls_ik.cli.main import main

def wait(*args, **options):
    print("ready", file=sys.stderr, flush=True)
    for _ in range(6000):  # a signal just before a sleep is heard after it
        time.sleep(0.1)

solving.solve_along = wait
main()
"""


def test_invalid_numba_environment_gives_a_one_line_error():
    result = run_command("solve", "wam", "--xyz", 0, 0, 0, NUMBA_NUM_THREADS="0")
    assert (result.returncode, result.stdout) == (3, "")
    assert "NUMBA_NUM_THREADS=0" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_output_folder_is_refused(tmp_path):
    tmp_path.chmod(0o500)
    result = run_command("reproduce", "figure-2", "--json", str(tmp_path / "x.json"))
    assert (result.returncode, result.stdout) == (2, "")
    assert "permission denied" in result.stderr


def ignore_interrupts():
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def test_ctrl_c_during_table_v_writes_incomplete_json(tmp_path):
    path = tmp_path / "x.json"
    command = [*COMMAND, "reproduce", "table-v", "--samples", "5000", "--json", str(path)]
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "FORCE_COLOR": "1"},  # shows its progress, although there is no terminal
    ) as process:
        assert process.stderr.read(1), "what it works at"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert process.returncode == 130
    found = json.loads(path.read_text())
    assert not found["complete"]
    assert len(found["printed"]) in (0, 19)  # none if kernels were still being compiled


@pytest.mark.parametrize(
    ("target", "begin"),
    [("-", None), ("file", ignore_interrupts)],
    ids=["terminal", "script's job"],
)
def test_ctrl_c_keeps_finished_rows_and_picture(tmp_path, target, begin):
    path, picture = tmp_path / "x.json", tmp_path / "x.png"
    arguments = ["reproduce", "figure-2", "--plot", str(picture), "--json"]
    arguments.append(target if target == "-" else str(path))
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=begin,
    ) as process:
        assert process.stderr.readline() == "ready\n"
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=300)
    assert process.returncode == 130
    assert stderr.count("\n") == 1
    found = json.loads(stdout if target == "-" else path.read_text())
    assert len(found["rows"]) >= 2
    assert not found["complete"]
    assert picture.is_file()
    if target == "file":
        assert "interrupted" in stdout


def test_fk_output_can_be_piped_into_path():
    shell = (
        f"{' '.join(COMMAND)} fk wam --random 3 --json | "
        f"""{sys.executable} -c 'import json, sys; print(json.dumps(
            [{{"matrix": p["matrix"]}} for a in json.load(sys.stdin) for p in a["poses"].values()]
        ))' | {" ".join(COMMAND)} path wam - --out - --format json --rate 1 --max-joint-step 10"""
    )
    result = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["success"] == [True, True, True]


def test_ctrl_c_during_path_leaves_no_output_file(tmp_path):
    poses = tmp_path / "poses.csv"
    poses.write_text("x,y,z,roll,pitch,yaw\n0.5,0,0.3,0,3,0\n")
    words = ["path", "wam", str(poses), "--out", str(tmp_path / "o.csv")]
    with subprocess.Popen(
        [sys.executable, "-c", SLOW_PATH, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=300)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "dls-ik: interrupted\n"
    assert [each.name for each in tmp_path.iterdir()] == ["poses.csv"]


def test_defer_sigint_raises_the_interrupt_after_the_block():
    before, done = signal.getsignal(signal.SIGINT), []

    def work():
        with defer_sigint():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            done.append(True)

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    with defer_sigint():
        pass  # no interrupt arrives without Ctrl-C
    assert signal.getsignal(signal.SIGINT) is before


class Finalized:
    """Object in whose __del__ Python only reports exceptions, and continues."""

    def __del__(self):
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_record_sigint_keeps_an_interrupt_lost_in_a_finalizer():
    before = signal.getsignal(signal.SIGINT)
    with record_sigint() as ended:
        assert not ended.is_set()
        Finalized()
        assert ended.is_set()
    with pytest.raises(KeyboardInterrupt), record_sigint() as ended:
        signal.raise_signal(signal.SIGINT)
    assert ended.is_set()
    assert signal.getsignal(signal.SIGINT) is before
