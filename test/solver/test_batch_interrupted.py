"""Ctrl-C in a process of its own, in the middle of a batch."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

PROGRAM = """
import json, sys
import numpy as np
from dls_ik import IkSolver, RobotModel, Status
from dls_ik.errors import BatchInterrupted

robot = RobotModel.wam()
rng = np.random.default_rng(1)
T = robot.fk(robot.random(rng, 1000))
T[::9, :3, :3] = robot.fk(robot.random(rng, 112))[:, :3, :3]  # some out of grasp, so slow
solver = IkSolver(robot, max_restarts=200)
solver.solve_batch(T[:2])
whole = np.tile(T, (500, 1, 1))

def progress(done, count):
    if done < 5000:
        print("working", flush=True)

try:
    solver.solve_batch(whole, threads=int(sys.argv[1]), progress=progress)
    print(json.dumps("finished"))
except BatchInterrupted as error:
    r = error.result
    kinds = {Status(k).name: int((r.status == k).sum()) for k in set(r.status.tolist())}
    done = np.flatnonzero(r.status != Status.INTERRUPTED)
    again = solver.solve_batch(whole[done[:200]])
    same = bool((again.q == r.q[done[:200]]).all())
    empty = bool(np.isnan(r.q[r.status == Status.INTERRUPTED]).all())
    print(json.dumps({"kinds": kinds, "same": same, "empty": empty}))
"""
UNCAUGHT = PROGRAM.split("try:")[0] + "solver.solve_batch(whole, threads=2, progress=progress)\n"


def interrupted(program, *arguments):
    """Run it until it works, press Ctrl-C, and return what it leaves."""
    process = subprocess.Popen(
        [sys.executable, "-c", program, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        assert process.stdout.readline() == "working\n"
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    return process.returncode, out.splitlines()[-1:], err


@pytest.mark.parametrize("threads", ["1", "2", "5"])
def test_results_so_far_come_along(threads):
    code, lines, err = interrupted(PROGRAM, threads)
    assert code == 0, err
    told = json.loads(lines[0])
    assert told != "finished"
    assert told["same"]
    assert told["empty"]
    counts = told["kinds"]
    assert sum(counts.values()) == 500_000
    assert 0 < counts["INTERRUPTED"] < 500_000
    assert np.sum([counts[kind] for kind in counts if kind != "INTERRUPTED"]) >= 1


def test_who_does_not_ask_for_it_ends():
    code, _, err = interrupted(UNCAUGHT)
    assert code in (-signal.SIGINT, 130, 1)
    assert "BatchInterrupted" in err
