"""The first solve says why it takes long; later processes have nothing to say."""

import os
import subprocess
import sys
from pathlib import Path

from dls_ik.solver.compilation import WORDS, words

SOLVE = """
import dls_ik
robot = dls_ik.RobotModel.wam()
print(dls_ik.IkSolver(robot).solve(robot.fk([0.1] * 7)).status, flush=True)
"""


def start(**environment):
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, "-c", SOLVE],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def test_compilation_is_announced_before_it_is_over(tmp_path):
    process = start(NUMBA_CACHE_DIR=str(tmp_path))
    try:
        assert "compiling kernels" in process.stderr.readline()
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_an_old_numba_is_named_with_what_mends_it():
    said = words("0.58.1")
    assert "0.58.1" in said
    assert said.endswith("pip install 'numba>=0.59'")
    assert words("0.59.0") == words("0.68.1") == words("1.0.0rc1") == WORDS


def test_kernels_on_disk_are_loaded_without_a_word():
    start().communicate()
    out, err = start().communicate()
    assert out == "SUCCESS\n"
    assert err == ""
