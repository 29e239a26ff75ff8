"""The commands as processes: pipes, narrow terminals, Ctrl-C."""

import json
import os
import signal
import subprocess
import sys

COMMAND = [sys.executable, "-m", "dls_ik.cli"]
SOLVE = ["solve", "wam", "--xyz", "0.4", "0.2", "0.5"]

SLOW = """
import sys, time
import dls_ik.cli.path_solving as solving
from dls_ik.cli.main import main

def wait(*args):
    print("ready", file=sys.stderr, flush=True)
    for _ in range(6000):  # a signal just before a sleep is heard after it
        time.sleep(0.1)

solving.solved_path = wait
main()
"""


def run(*arguments, **environment):
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **environment},
    )


def test_sixty_columns_in_a_pipe():
    result = run(*SOLVE, COLUMNS="60")
    assert result.returncode == 0, result.stderr
    assert all(len(line) <= 60 for line in result.stdout.splitlines())
    assert "\x1b" not in result.stdout


def test_one_command_feeds_another():
    shell = (
        f"{' '.join(COMMAND)} fk wam --random 3 --json | "
        f"""{sys.executable} -c 'import json, sys; print(json.dumps(
            [{{"matrix": p["matrix"]}} for a in json.load(sys.stdin) for p in a["poses"].values()]
        ))' | {" ".join(COMMAND)} path wam - --out - --format json --rate 1 --jump 10"""
    )
    result = subprocess.run(shell, shell=True, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["success"] == [True, True, True]


def test_ctrl_c_leaves_no_file(tmp_path):
    poses = tmp_path / "poses.csv"
    poses.write_text("x,y,z,roll,pitch,yaw\n0.5,0,0.3,0,3,0\n")
    words = ["path", "wam", str(poses), "--out", str(tmp_path / "o.csv")]
    with subprocess.Popen(
        [sys.executable, "-c", SLOW, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout) == (130, "")
    assert stderr == "dls-ik: interrupted\n"
    assert [each.name for each in tmp_path.iterdir()] == ["poses.csv"]
