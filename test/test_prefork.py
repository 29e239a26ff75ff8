# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the programs that a template forks: they start and end as if they had been executed."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from prefork import (
    EXECUTE,
    FIRST_ENVIRONMENT,
    ForkingPopen,
    is_executed,
    own_template,
    template_name,
)
from programs import LONG

pytestmark = pytest.mark.skipif(is_executed(FIRST_ENVIRONMENT), reason="programs are executed")

HERE = Path(__file__).resolve().parent
COMMAND = [sys.executable, "-m", "prefork_program"]
STREAMS = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
OF_THE_PROCESS = ("pid", "session")
OWNER = """
import sys
from prefork import FIRST_ENVIRONMENT, ForkingPopen
process = ForkingPopen([sys.executable, "-m", "prefork_program"], env=FIRST_ENVIRONMENT)
process.wait()
"""


def started(popen, *words, **options):
    """Start the program; return its process, and its first line of output, read as JSON."""
    given = {"cwd": HERE, "env": {**FIRST_ENVIRONMENT, "ROS_DOMAIN_ID": "77"}, **STREAMS, **options}
    process = popen([*COMMAND, *words], text=True, **given)
    return process, json.loads(process.stdout.readline())


@pytest.mark.parametrize("is_leader", [False, True])
def test_a_fork_starts_as_an_executed_program_does(is_leader):
    seen = []
    for popen in (subprocess.Popen, ForkingPopen):
        process, found = started(popen, "a b", "", start_new_session=is_leader)
        with process:
            out, err = process.communicate("7\n")
        assert (process.returncode, out, err) == (7, "", "to standard error\n")
        assert found["pid"] == process.pid
        assert (found["session"] == process.pid) == is_leader
        found["environment"].pop("LC_CTYPE", None)  # set by the start of Python
        seen.append({key: value for key, value in found.items() if key not in OF_THE_PROCESS})
    assert seen[0] == seen[1]
    assert seen[1]["parent"] == os.getpid()
    assert seen[1]["environment"]["ROS_DOMAIN_ID"] == "77"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_end_a_fork_with_their_exit_codes(number):
    process, _ = started(ForkingPopen)
    with process:
        assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.01)
        process.send_signal(number)
        assert process.wait() == -number


def test_forks_end_with_their_owner():
    path = os.pathsep.join([FIRST_ENVIRONMENT["PYTHONPATH"], str(HERE)])
    environment = {**FIRST_ENVIRONMENT, "PYTHONPATH": path}
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    owner = subprocess.Popen([sys.executable, "-c", OWNER], env=environment, **options)
    with owner:
        found = json.loads(owner.stdout.readline())
        assert found["parent"] == owner.pid
        fork = os.pidfd_open(found["pid"])
        owner.kill()
        ended, _, _ = select.select([fork], [], [], LONG)
    os.close(fork)
    assert ended


@pytest.mark.parametrize(
    ("command", "environment"),
    [
        (COMMAND, {"NUMBA_CACHE_DIR": "elsewhere"}),
        (COMMAND, {"PYTHONPATH": "elsewhere"}),
        (COMMAND, EXECUTE),
        (COMMAND, {"COLCON": "1"}),
        (COMMAND, {"COVERAGE_FILE": "elsewhere"}),
        (["sh", "-c", 'exec "$@"', "sh", *COMMAND], {}),
        ([sys.executable, "-m", "json.tool"], {}),
        ([sys.executable, "-c", "import prefork_program"], {}),
        ([sys.executable], {}),
        (sys.executable, {}),
    ],
)
def test_other_programs_and_environments_are_executed(command, environment):
    assert template_name(COMMAND, FIRST_ENVIRONMENT) == "load_nothing"
    assert template_name(command, {**FIRST_ENVIRONMENT, **environment}) is None


def test_an_early_interrupt_is_not_lost():
    for _ in range(20):
        given = {"cwd": HERE, "env": FIRST_ENVIRONMENT, **STREAMS}
        with ForkingPopen(COMMAND, text=True, **given) as process:
            process.send_signal(signal.SIGINT)
            process.communicate()
        assert process.returncode == -signal.SIGINT


def test_a_template_that_has_ended_is_replaced():
    template = own_template("load_nothing")
    template._process.kill()
    template._process.wait()
    process, _ = started(ForkingPopen)
    with process:
        process.communicate("3\n")
    assert process.returncode == 3
