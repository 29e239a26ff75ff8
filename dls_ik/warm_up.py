# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Compilation of all kernels (Numba functions that Python calls) before their first use.

``python -m dls_ik.warm_up`` compiles the kernels that are not in the cache, in two processes. If
another installation of this user has compiled a kernel from equal sources, the kernel is copied,
see :mod:`dls_ik.shared_kernels`.

- With ``--scene``, the command compiles only the kernels of collision checks and of servo motion
  with minimum distances to obstacles. A node starts this command if these kernels are missing.
- With a folder as argument, the command compiles all kernels ahead of time into the folder.
  setup.py uses this command to build a wheel.
- With ``--kernel``, the command compiles a single kernel, whose name and signature it reads from
  standard input.
"""

import gc
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from importlib import import_module
from typing import BinaryIO

import numpy as np

from dls_ik import compat
from dls_ik.compile_progress import KernelEvents, open_terminal, wait_and_report
from dls_ik.core.jit import (
    KernelBuild,
    MissingKernelError,
    cache_failures,
    cache_folder,
    compile_in_advance,
    portable_environment,
    runs_portable,
)
from dls_ik.core.limiter import stop_after_cycle
from dls_ik.core.reach_bounds import ReachBounds, rows_beyond_reach
from dls_ik.core.se3 import difference
from dls_ik.core.search_rows import search_packed_free
from dls_ik.model.dh import DhRow
from dls_ik.model.robot import RobotModel
from dls_ik.servo.controller import Controller
from dls_ik.servo.limiter import AccelerationLimiter, boxed_limits, stop_within
from dls_ik.servo.pursuit import Pursuit
from dls_ik.shared_kernels import open_shared_kernels
from dls_ik.solver import IkSolver, announce_compilation_to

BACKWARDS_FLAG, SCENE_FLAG, KERNEL_FLAG = "--backwards", "--scene", "--kernel"
PORTABLE_FLAG = "--portable"


@cache
def _robot() -> RobotModel:
    """Return an arm with two joints; the kernels do not depend on the robot."""
    row = DhRow(a=1.0, alpha=0.5, d=0.1, lower=-2.0, upper=2.0)
    return RobotModel.from_dh([row, row])


def _solve_fast() -> None:
    robot = _robot()
    T = robot.fk(np.full(robot.n, 0.5))
    IkSolver(robot).solve(T)
    IkSolver(robot).solve(T, solve_type="distance")
    # Empty bounds suffice: computing the bounds of an arm takes longer than loading the kernel.
    kind, lines, lengths = np.zeros(0, np.int64), np.zeros((0, 2, 3)), np.zeros(0)
    bounds = ReachBounds(kind, lines, lines, lengths, lengths, lengths, np.zeros((0, 5)))
    rows_beyond_reach(bounds, T[None], 1.0, 1.0, np.zeros(1, np.bool_))


def _solve_by_the_general_step() -> None:
    robot = _robot()
    IkSolver(robot, "ctp").solve(robot.fk(np.full(robot.n, 0.5)))


def _follow() -> None:
    robot = _robot()
    T = robot.fk(np.full(robot.n, 0.5))
    # The calls below do not use the executor, so no bounds on the reach are computed.
    controller = Controller(robot, executor=ThreadPoolExecutor(1))
    controller.follow_pose(T, 0.0)
    controller.cycle(0.0, 0.01)
    controller.follow_twist(np.ones(6), 0.0)
    controller.cycle(0.01, 0.01)
    controller.pause()
    controller.cycle(0.02, 0.01)  # braking
    controller.stop_path(0.01)
    difference(T, T)
    limit = np.ones(robot.n)
    stop_within(0.0 * limit, limit, 0.0 * limit, (-limit, limit, limit, limit))
    limits = boxed_limits(robot, limit, limit, limit)
    Pursuit(limits, limit).aim(limit, limit, limit, limit, 1.0)
    state, phases, bounds = (np.zeros((*k, robot.n)) for k in ((4,), (3, 3), (2,)))
    stop_after_cycle(limits, limit, state, 1.0, phases, bounds)
    slow = Controller(robot, executor=ThreadPoolExecutor(1), max_linear_speed=0.1, acceleration=1.0)
    slow.follow_pose(T, 0.0)
    slow.cycle(0.0, 0.01)


def _use_stack() -> None:
    """Call the kernels of task stacks, of the solver and of servo motion."""
    from dls_ik.solver.swivel import load_curve_kernel
    from dls_ik.solver.task import Task
    from dls_ik.solver.task_stack import PostureTask, TaskStack

    robot, q = _robot(), np.full(2, 0.5)
    stack = TaskStack(Task.position_only(), PostureTask(q))
    IkSolver(robot, task=stack).solve(robot.fk(q), q)
    by_levels = TaskStack(PostureTask(q), Task.position_only())
    for task in (stack, by_levels):
        controller = Controller(robot, executor=ThreadPoolExecutor(1), task=task)
        controller.follow_pose(robot.fk(q), 0.0, tip=robot.tip)
        controller.cycle(0.0, 0.01)
    row = DhRow(a=0.1, alpha=0.5, d=0.1, lower=-2.0, upper=2.0)
    load_curve_kernel(RobotModel.from_dh([row] * 7))


def _guard() -> None:
    """Call the kernels of servo motion that keeps minimum distances to obstacles."""
    from dls_ik.core.avoidance import approach_bounds, stopping_time
    from dls_ik.core.near_pairs import MAX_CONTROLLED_PAIRS, near_rows
    from dls_ik.servo.guard import Guard
    from dls_ik.servo.workspace import HalfSpace

    robot = _robot()
    workspace = [HalfSpace((0.0, 0.0, 1.0), -0.5)]
    controller = Controller(robot, executor=ThreadPoolExecutor(1), workspace=workspace)
    controller.follow_pose(robot.fk(np.full(robot.n, 0.5)), 0.0)
    controller.cycle(0.0, 0.01)
    # Plug-ins call these kernels directly, see dls_ik.servo.plugin_step.
    limit, q, pairs = np.ones(robot.n), np.zeros(robot.n), MAX_CONTROLLED_PAIRS
    limiter = AccelerationLimiter(robot, limit, 1.0)
    limiter.advance_slower(limiter.motion(), 0.5, 0.01)
    near = Guard(limiter, robot, None, workspace, (0.01, 0.1), (limit, np.inf * limit)).near
    near_rows(near, q, np.empty((pairs, robot.n)), np.empty(pairs), np.empty(pairs, np.int64))
    stopping_time(near.stopping, 0.01, q)
    approach_bounds(near.stopping, 0.01, 0.1, np.zeros(1), np.zeros(1))


def _check_collisions() -> None:
    from dls_ik.core.selection import count_pair
    from dls_ik.scene.shapes import Body, Box, Mesh, Sphere
    from dls_ik.scene.snapshot import PlacedBody, SceneSnapshot, use_scene_kernels
    from dls_ik.scene.sphere_fit import fit_spheres

    robot = _robot()
    ball, corners = Sphere(0.1), np.vstack([np.zeros(3), np.eye(3)])
    pyramid = Mesh(corners, np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]))
    bodies = {link: Body(link, ((ball, np.eye(4)),)) for link in robot.link_names}
    fit_spheres(pyramid, max_leaves=2)
    fit_spheres(Box(np.ones(3)), max_leaves=2)
    world = {"pyramid": PlacedBody(Body("pyramid", ((pyramid, np.eye(4)),)), np.eye(4))}
    snapshot = SceneSnapshot(robot.tree, robot.joint_names, bodies, {}, objects=world)
    use_scene_kernels(snapshot)
    for method in ("auto", "ctp"):
        search, T = IkSolver(robot, method).search.within(snapshot), robot.fk(np.full(robot.n, 0.5))
        search.attempt(T[None, None], search.middle, 1, search.new_rows(1))
    count_pair(np.zeros(search.columns, np.int64), 0)


def _step_and_plot() -> None:
    """Call the kernels of single solver steps and of plots.

    The viewer and the commands ``dls-ik compare`` and ``dls-ik info`` use these kernels.
    """
    from dls_ik.core.limits import activation
    from dls_ik.core.search import unwind
    from dls_ik.solver.stepper import Stepper

    robot, q = _robot(), np.full(2, 0.5)
    T = robot.fk(q)
    stepper = Stepper(robot, "dls", q)
    stepper.run(T, 1)
    stepper.inverse(T)
    Stepper(robot, "jt", q).inverse(T)
    Stepper(robot, "odls", q).inverse(T)
    Stepper(robot, "dls", q, policy="accuracy").inverse(T)
    robot.jacobian(q)
    activation(0.0, -1.0, 1.0, 0.1)
    unwind(np.zeros(2, np.int64), robot.lower, robot.upper, q, q.copy())  # used to list solutions


def _solve_whole_path() -> None:
    """Call the kernels of paths that are solved as a whole, and of their timing."""
    from dls_ik.servo.path_timing import time_path
    from dls_ik.solver.task import Task

    robot, task = _robot(), Task("x", "")
    Ts = robot.fk(np.linspace([0.4, 0.4], [0.5, 0.5], 3))
    solver = IkSolver(robot, task=task)
    path = solver.solve_path(Ts, whole=True, max_joint_step=0.3)
    time_path(solver, robot.fk(path.q), path.q, path_tolerance=1.0, rotation_tolerance=1.0)


Uses = tuple[Callable[[], None], ...]
NODE_USES: Uses = (_solve_fast, _follow, _solve_by_the_general_step, _use_stack)
SCENE_USES: Uses = (_guard, _check_collisions)
USES: Uses = (*NODE_USES, *SCENE_USES, _step_and_plot, _solve_whole_path)


def use_kernels(uses: Iterable[Callable[[], None]] = NODE_USES) -> None:
    """Compile or load kernels by calling functions that use them.

    Args:
        uses: Functions of this module; by default those that use the kernels of a node.
    """
    for use in uses:
        use()


def can_keep_kernels() -> bool:
    """Return whether the kernels' cache folder is writable, so that processes can share kernels."""
    folder = cache_folder(search_packed_free)
    return folder is not None and os.access(folder, os.W_OK) and "save" not in cache_failures


def compile_kernels(ahead: str = "", of_scene: bool = False) -> None:
    """Compile all kernels, or the kernels that are not in the cache, in two processes.

    The processes compile the list of kernels in opposite orders. If a process needs a kernel that
    the other process is compiling, it waits and then loads the kernel.

    Machine code for all processors of this architecture is shared with later installations of this
    user. It is compiled into `ahead`, or, if this processor runs such code and all kernels are
    wanted, into the cache of this machine.

    Args:
        ahead: Folder into which all kernels are compiled, for all processors of this architecture.
            If empty, the missing kernels are compiled into the cache of this machine.
        of_scene: Whether to compile only the kernels of collision checks and of servo motion with
            minimum distances to obstacles.

    Raises:
        RuntimeError: If `ahead` is given, and the package does not know which processor features
            all processors of this architecture have.
        subprocess.CalledProcessError: If a process failed.
    """
    with tempfile.TemporaryDirectory() as nothing_kept:
        environment, portable = dict(os.environ), portable_environment()
        if ahead:
            if portable is None:
                raise RuntimeError(
                    "cannot compile kernels ahead of time: the features that all processors of "
                    "this architecture have are unknown; omit the folder to compile for this "
                    "processor"
                )
            environment |= {"NUMBA_CACHE_DIR": nothing_kept}
        is_portable = bool(ahead) or (runs_portable() and not of_scene)
        if is_portable:
            environment |= portable or {}
        command = [sys.executable, "-c", f"from {__spec__.name} import _run; _run()"]
        flags = {SCENE_FLAG: of_scene, PORTABLE_FLAG: is_portable}
        given = [ahead, *(flag for flag, is_set in flags.items() if is_set)]
        both = [
            subprocess.Popen(  # noqa: S603  fixed command
                [*command, *given, *order], env=environment, stdout=subprocess.PIPE, text=True
            )
            for order in ([], [BACKWARDS_FLAG])
        ]
        codes = wait_and_report(both, open_terminal() if ahead else sys.stdout)
        if any(codes):
            raise subprocess.CalledProcessError(max(codes, key=abs), command)
    if is_portable and (shared := open_shared_kernels()) is not None:
        shared.trim()


def _run() -> None:
    gc.disable()  # saves a tenth of the time
    announce_compilation_to(lambda message: None)  # suppresses the message about compilation
    ahead, *options = sys.argv[1:]
    if PORTABLE_FLAG in options:
        compile_in_advance(KernelBuild(ahead, is_portable=True, shared=open_shared_kernels()))
    uses = SCENE_USES if SCENE_FLAG in options else USES
    events = KernelEvents((use.__name__ for use in uses), sys.stdout)
    use_kernels(reversed(uses) if BACKWARDS_FLAG in options else uses)
    events.tell_done()
    if "save" in cache_failures:
        sys.exit(f"warm_up: {cache_failures['save']}")


def kernel_name(missing: MissingKernelError) -> bytes:
    """Serialise the name and signature of a missing kernel.

    The result is the standard input of ``python -m dls_ik.warm_up --kernel``, which compiles the
    kernel.

    Args:
        missing: Error that was raised because the kernel is missing.
    """
    function = missing.function
    return compat.numba_serialize((function.__module__, function.__name__, missing.signature))


def _compile_one(name: BinaryIO) -> None:
    announce_compilation_to(lambda message: None)
    module, function, signature = pickle.load(name)  # noqa: S301  written by the parent node
    getattr(import_module(module), function).compile(signature)
    if "save" in cache_failures:
        sys.exit(f"warm_up: {cache_failures['save']}")


if __name__ == "__main__":
    try:
        given = sys.argv[1:]
        if given == [KERNEL_FLAG]:
            _compile_one(sys.stdin.buffer)
        else:
            compile_kernels(
                "".join(each for each in given if each != SCENE_FLAG), SCENE_FLAG in given
            )
    except (RuntimeError, subprocess.CalledProcessError) as error:
        sys.exit(f"warm_up: {error}")
