# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Compilation: the first process announces it, later processes load kernels silently."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dls_ik.solver import COMPILING, COMPILING_UNKEPT, compilation_message

SOLVE = """
import dls_ik
robot = dls_ik.RobotModel.wam()
print(dls_ik.IkSolver(robot).solve(robot.fk([0.1] * 7)).status, flush=True)
"""


SMALL = "fast_*/table.fill-*.nbc"  # kernel of core/fast that every call needs

BEFORE = """
import sys
import numpy as np
from dls_ik.model.robot import RobotModel
from dls_ik.warm_up import USES, use_kernels

def signatures():
    core = [module for name, module in sys.modules.items() if name.startswith("dls_ik.core")]
    kernels = [(k, v) for m in core for k, v in vars(m).items() if hasattr(v, "overloads")]
    return {(name, len(kernel.overloads)) for name, kernel in kernels}

robot = RobotModel.wam()
"""
LIFE = """
from dls_ik.servo import Controller

def cycles(controller, count, begin, measured=None):
    for k in range(count):
        controller.cycle(begin + 0.01 * k, 0.01, measured)

use_kernels()
before = signatures()
q = np.full(robot.n, 0.3)
for options in ({}, {"acceleration": 8.0, "supervised": True}, {"method": "odls"}):
    controller = Controller(robot, **options)
    controller.seed(q)
    cycles(controller, 2, 0.0, q)
    controller.follow_pose(robot.fk(q + 0.05), 0.1)
    cycles(controller, 50, 0.1, q)
    controller.follow_twist(np.full(6, 0.1), 1.0)
    cycles(controller, 50, 1.0)
    controller.follow_trajectory([robot.fk(q), robot.fk(q + 0.02)], 0.05, 2.0)
    cycles(controller, 20, 2.0)
    controller.follow_pose(robot.fk(-q) + 3.0 * np.eye(4, k=3), 3.0)
    cycles(controller, 100, 3.0)
    controller.pause()
    cycles(controller, 10, 5.0)
print(sorted(signatures() - before))
"""
PAGE = """
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.solver import IkSolver
from dls_ik.viewer.session import local_session

use_kernels(USES)
before = signatures()
scene = PlanningScene(robot)
scene.add_sphere("ball", 0.1, np.eye(4) + 2.0 * np.eye(4, k=3))
session, presets = local_session(robot, scene=scene)
for k, preset in enumerate([None, *presets]):
    if preset is not None:
        session.play(preset)
    for i in range(30):
        q = session.step(k + 0.01 * i)[0].sample.q
IkSolver(robot, scene=scene).solve_all(robot.fk(q), 3)
scene.plan(q, q + 0.1)
session.close()
print(len(presets), sorted(signatures() - before))
"""

EVERY_ENTRY = """
import sys, tempfile
from pathlib import Path
import numpy as np
import dls_ik
from dls_ik import IkSolver, PlanningScene, RobotModel, Task, method_names
from dls_ik.core.jit import compile_elsewhere
from dls_ik.model.analysis import conditioning, ready_configuration, singularities
from dls_ik.model.reach import tip_extent
from dls_ik.reachability import reachability_map
from dls_ik.servo import Controller
from dls_ik.servo.workspace import HalfSpace, SphereBound
from dls_ik.solver.comparison import compare_on_path
from dls_ik.solver.hard_paths import reach_path, singular_path

compile_elsewhere(lambda missing: None)  # a kernel that is not on disk raises an error
wam, rng = RobotModel.wam(), np.random.default_rng(0)
q = wam.random(rng=rng)
T, away = wam.fk(q), wam.fk(wam.random(rng=rng))
far = T + 5.0 * np.eye(4, k=3)
pair = RobotModel.from_tree(wam.tree, wam.base, ["wam_link4", wam.tip])
TASKS = {
    wam: [None, Task.position_only(), Task.pointing(), Task.ball(0.01), Task.cylinder(0.01, 0.1),
          Task(rotation_tolerance=0.1), Task(rotation_tolerance=0.1, angles="euler"),
          Task(position="z", rotation="x", frame="target")],
    pair: [None, Task.position_only(), [Task.position_only(), Task()]],
}
scene = PlanningScene(wam)
scene.add_box("box", (0.1, 0.2, 0.3), np.eye(4) + 1.5 * np.eye(4, k=3))
scene.add_mesh("tetrahedron", np.vstack([np.zeros(3), np.eye(3)]) + 3.0,
               [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])
for robot, tasks in TASKS.items():
    Ts = robot.fk(robot.random(3, rng))
    for world in (None, scene):
        for task in tasks:
            solver = IkSolver(robot, task=task, scene=world)
            for options in ({}, {"solve_type": "distance"}, {"solve_type": "manipulability"},
                            {"approximate": True}, {"max_joint_change": 0.5}):
                solver.solve(Ts[0], robot.random(rng=rng), **options)
            solver.solve(Ts[0] + 5.0 * np.eye(4, k=3))
            solver.solve_batch(Ts)
            solver.solve_path(Ts)
            solver.solve_all(Ts[0], 2)
    robot.jacobian(q)
IkSolver(wam, scene=scene, solve_type="clearance").solve(T)
for method in method_names():
    for world in (None, scene):
        IkSolver(wam, method, scene=world).solve(T, q + 0.1)
for query in (scene.in_collision, scene.clearance, scene.contacts, scene.distance):
    query(q)
scene.path_in_collision(q, q + 0.1)
scene.plan(np.zeros(7), np.full(7, 0.1))
for method in (None, "dls", "svf", "sdls", "ctp", "odls", "gp", "gwln", "jt"):
    for limits in ({}, {"acceleration": 8.0}, {"acceleration": 8.0, "jerk": 80.0},
                   {"max_linear_speed": 0.2, "max_angular_speed": 1.0}, {"scene": scene},
                   {"workspace": [HalfSpace((0.0, 0.0, 1.0), -0.5), SphereBound(2.0)]}):
        controller = Controller(wam, method, **limits)
        controller.seed(np.clip(q, wam.lower + 0.2, wam.upper - 0.2))
        for k in range(6):
            if k == 0:
                controller.follow_pose(T, 0.0)
            elif k == 2:
                controller.follow_twist(np.full(6, 0.1), 0.02)
            elif k == 4:
                controller.follow_trajectory([T, away], 0.5, 0.04)
            controller.cycle(0.01 * k, 0.01)
        controller.pause()
        controller.cycle(0.06, 0.01)
        controller.stop_path(0.01)
        controller.trajectory(0.01, 5)
for task in ("pose", "pointing", "position"):
    reachability_map(wam, 0.5, 1, task=task, max_restarts=2)
reachability_map(wam, 0.5, 1, max_restarts=2, scene=scene)
compare_on_path(wam, ["dls", "svf+sd"], singular_path(wam))
reach_path(wam)
conditioning(wam), singularities(wam), ready_configuration(wam), tip_extent(wam)
print("every kernel is on disk")
"""


def start(*arguments, **environment):
    root = Path(__file__).resolve().parents[2]
    path = os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen(
        [sys.executable, *(arguments or ("-c", SOLVE))],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )


def test_compilation_is_announced_when_it_starts(tmp_path):
    process = start(NUMBA_CACHE_DIR=str(tmp_path))
    try:
        assert "compiling kernels" in process.stderr.readline()
        assert process.poll() is None
    finally:
        process.kill()
        process.communicate()


def test_an_old_numba_is_refused_with_a_remedy():
    said = compilation_message("0.58.1")
    assert "0.58.1" in said
    assert said.endswith("pip install 'numba>=0.59'")
    assert {compilation_message(v) for v in ("0.59.0", "0.68.1", "1.0.0rc1")} == {COMPILING}
    assert compilation_message("0.68.1", is_kept=False) == COMPILING_UNKEPT


def test_damaged_and_unsaveable_kernels_are_compiled_and_used(kernel_cache):
    """Each is reported in one log line; kernels on disk are loaded silently."""

    def solve():
        out, err = start(NUMBA_CACHE_DIR=str(kernel_cache)).communicate()
        assert out == "SUCCESS\n"
        return err.splitlines()

    solve()
    for path in kernel_cache.rglob(SMALL):
        path.write_bytes(b"")
    (line,) = solve()
    assert line.startswith(f"compiling kernels again, which takes up to a minute: {kernel_cache}")
    assert line.endswith("is damaged")
    assert solve() == []
    for path in kernel_cache.rglob(SMALL):
        path.unlink()
        path.mkdir()
    read, unwritten = solve()
    assert "Is a directory" in read
    assert f"cannot be kept in {path.parent} (Is a directory)" in unwritten


def test_a_controller_compiles_nothing_after_its_warm_up():
    out, err = start("-c", BEFORE + LIFE).communicate()
    assert (out, err) == ("[]\n", "")


def test_the_installation_warm_up_compiles_every_kernel():
    """Presets, plots, obstacles, all solutions and paths of the documentation compile nothing."""
    pytest.importorskip("viser")
    pytest.importorskip("coal")
    out, err = start("-c", BEFORE + PAGE).communicate()
    assert (out, err) == ("3 []\n", "")


ELSEWHERE = """
import subprocess, sys
import numpy as np
from dls_ik.compat import on_numba_compilation
from dls_ik.core.jit import MissingKernelError, compile_elsewhere
from dls_ik.core.selection import count_pair
from dls_ik.warm_up import kernel_name

asked, compiled, counts = [], [], np.zeros(40, np.int64)
on_numba_compilation(lambda kernel: compiled.append(kernel.py_func.__name__))
compile_elsewhere(asked.append)
try:
    count_pair(counts, 0)
except MissingKernelError as error:
    print(error)
assert len(asked) == 1 and not compiled and not counts.any()
command = [sys.executable, "-m", "dls_ik.warm_up", "--kernel"]
subprocess.run(command, input=kernel_name(asked[0]), check=True)
count_pair(counts, 0)
assert counts.any() and not compiled and len(asked) == 1
"""


def test_a_process_that_must_not_compile_reports_the_missing_kernel(kernel_cache):
    for file in kernel_cache.rglob("selection.count_pair-*"):
        file.unlink()
    process = start("-c", ELSEWHERE, NUMBA_CACHE_DIR=str(kernel_cache))
    out, err = process.communicate()
    assert (process.returncode, err) == (0, "")
    assert "the kernel count_pair is not compiled yet" in out


def test_no_public_entry_compiles():
    """Every entry runs in a process in which a kernel that is not on disk raises an error."""
    pytest.importorskip("coal")
    pytest.importorskip("PyKDL")
    out, err = start("-c", EVERY_ENTRY).communicate()
    assert (out, err) == ("every kernel is on disk\n", "")
