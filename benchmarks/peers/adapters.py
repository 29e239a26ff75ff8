# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Solvers of dls_ik and of each peer in their best known settings, with the tested alternatives.

A function of ``PEERS`` takes an arm and returns its rows by name. Each peer runs in a separate
process, so its packages are imported within its function.
"""

import hashlib
import importlib
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.peers.arm import BASE, TIP, Arm
from benchmarks.peers.solver import (
    RESTARTS_SEED,
    TIMEOUT,
    TOLERANCE,
    Found,
    Run,
    Solver,
    UnfitError,
    one_by_one,
    quaternion,
    with_restarts,
)

EPS = TOLERANCE / math.sqrt(3.0)  # of each of six components: keeps both norms

# dls_ik

SINGLE, BATCH = "dls_ik solve", "dls_ik batch, one thread"


def ours(arm: Arm) -> dict[str, Solver]:
    """Return rows of single calls and batches, with a random seed for each pose and without."""
    from dls_ik import IkSolver, RobotModel

    solver = IkSolver(RobotModel.from_urdf(arm.urdf()), timeout=TIMEOUT)

    def batch(seeded: bool, threads: int | None) -> Run:
        def run(Ts: np.ndarray, seeds: np.ndarray, seconds: float) -> Found:
            used, begin = time.process_time(), time.perf_counter()
            result = solver.solve_batch(Ts, seeds if seeded else None, threads=threads)
            taken, used = time.perf_counter() - begin, time.process_time() - used
            return Found(result.q, 1e6 * np.array([taken]) / len(Ts), 1e6 * used / len(Ts))

        return run

    return {
        SINGLE: Solver(one_by_one(lambda T, seed: solver.solve(T, seed).q), "auto, 50 ms"),
        f"{SINGLE}, no seed": Solver(one_by_one(lambda T, _: solver.solve(T).q), "auto, 50 ms"),
        BATCH: Solver(batch(True, 1), "auto", is_batch=True),
        f"{BATCH}, no seed": Solver(batch(False, 1), "auto", is_batch=True),
        "dls_ik batch, all cores": Solver(batch(True, None), "auto", None, is_batch=True),
    }


# KDL, by PyKDL
#
# * NR and NR_JL compare each of six components with `eps`.
# * LMA compares one norm in which a radian counts a hundredth: 1e-8 keeps both in 1e-6. PyKDL
#   1.5.1 crashes on other weights under numpy 2.
# * 100 iterations: 500 solve 4 % more poses by NR_JL in four times the time; by LMA no more.
# * The velocity solver of NR and NR_JL is ``wdls`` without weights or damping; the usual ``pinv``
#   finds the same answers in twice the time. Damping does not solve more.
# * Restarts are random, as for dls_ik, until an answer is inside the limits or 50 ms are over;
#   NR_JL with 15 iterations an attempt (the best of 10, 15, 20, 30 and 50), LMA with 100.

ITERATIONS, RESTART_ITERATIONS = 100, 15
FAR = 1e6  # [rad or m] limit of a joint that has none
STARTS = 4096  # random ones, used in turn


def kdl(arm: Arm) -> dict[str, Solver]:
    """Return a row for each of KDL's solvers, and for each solver with restarts."""
    from dls_ik import RobotModel
    from dls_ik.model.kdl import kdl_chain, kdl_frame

    if arm.n < 6:
        raise UnfitError(f"KDL's solvers abort on fewer than 6 joints; {arm.name} has {arm.n}")
    chain = kdl_chain(RobotModel.from_urdf(arm.urdf()))
    import PyKDL

    def joints(q: Any) -> Any:
        result = PyKDL.JntArray(arm.n)
        for i, value in enumerate(q):
            result[i] = float(value)
        return result

    limits = (arm.lower.tolist(), arm.upper.tolist(), arm.endless.tolist(), arm.prismatic.tolist())

    def is_inside(q: Any) -> bool:
        return all(_is_inside(*each) for each in zip(q, *limits, strict=True))

    rng = np.random.default_rng(RESTARTS_SEED)
    starts = [joints(q) for q in arm.random(rng, STARTS)]
    bounds = (
        joints(np.where(arm.endless, -FAR, arm.lower)),
        joints(np.where(arm.endless, FAR, arm.upper)),
    )
    fk = PyKDL.ChainFkSolverPos_recursive(chain)
    pinv, wdls = PyKDL.ChainIkSolverVel_pinv(chain), PyKDL.ChainIkSolverVel_wdls(chain)
    nr = PyKDL.ChainIkSolverPos_NR(chain, fk, wdls, ITERATIONS, EPS)
    nr_jl = partial(PyKDL.ChainIkSolverPos_NR_JL, chain, *bounds, fk)
    lma = PyKDL.ChainIkSolverPos_LMA(chain, 1e-8, ITERATIONS, 1e-15)
    long, brief = (f"wdls, {k} iterations" for k in (ITERATIONS, RESTART_ITERATIONS))
    again = "random restarts for 50 ms"
    keep = (chain, bounds, fk, pinv, wdls)  # the solvers refer to them without owning them

    def row(setting: str, solver: Any, accepts: Callable[[Any], bool] | None = None) -> Solver:
        def given(T: np.ndarray, seed: np.ndarray) -> tuple[Any, Any]:
            return kdl_frame(PyKDL, T), (joints(seed), joints(seed), keep)

        def call(frame: Any, arrays: tuple[Any, Any, Any]) -> Any:
            seed, out, _ = arrays
            code, made = solver.CartToJnt(seed, frame, out), 0
            deadline = time.perf_counter() + TIMEOUT
            while accepts and not (code >= 0 and accepts(out)) and time.perf_counter() < deadline:
                made += 1
                code = solver.CartToJnt(starts[made % STARTS], frame, out)
            return out

        return Solver(one_by_one(call, given, list), setting)

    any_answer = lambda out: True  # noqa: E731  NR_JL never leaves the limits
    return {
        "KDL NR": row(f"{long}; ignores limits", nr),
        "KDL NR_JL, usual pinv": row(
            f"pinv, {ITERATIONS} iterations", nr_jl(pinv, ITERATIONS, EPS)
        ),
        "KDL NR_JL": row(long, nr_jl(wdls, ITERATIONS, EPS)),
        "KDL NR_JL, restarts": row(
            f"{brief}, {again}", nr_jl(wdls, RESTART_ITERATIONS, EPS), any_answer
        ),
        "KDL LMA": row(f"{ITERATIONS} iterations; ignores limits", lma),
        "KDL LMA, restarts": row(f"{ITERATIONS} iterations, {again}", lma, is_inside),
    }


def _is_inside(x: float, lower: float, upper: float, endless: bool, prismatic: bool) -> bool:
    if not prismatic and not lower <= x <= upper:
        x = upper - (upper - x) % (2.0 * math.pi)
    return endless or lower <= x <= upper


# TRAC-IK, by pytracik: Speed, which returns the first answer of its two threads
#
# * It keeps limits as 32-bit floats, so that one answer of ten is outside by 1e-7: it is given
#   limits rounded inwards.
# * 5 ms, its default timeout, leaves 5 to 7 % of the WAM's poses unsolved, 50 ms a few of 1000.
# * It is called below `trac_ik.TracIK`, which makes a quaternion of the matrix in Python each time.
# * It always starts two threads. On one core they take turns; a second row gives it all cores.


def trac_ik(arm: Arm) -> dict[str, Solver]:
    """Return rows with the default timeout and a sufficient one, on one core and on all cores."""
    import pytracik

    def given(T: np.ndarray, seed: np.ndarray) -> tuple[list[float], np.ndarray]:
        return [float(x) for x in (*T[:3, 3], *quaternion(T[:3, :3]))], seed

    def row(timeout: float, cores: int | None) -> Solver:
        kind = pytracik.SolveType.Speed
        solver = pytracik.TRAC_IK(BASE, TIP, _inwards(arm).urdf(), timeout, EPS, kind)
        held = "its two threads in turns" if cores else "its two threads side by side"
        setting = f"Speed, timeout {1e3 * timeout:g} ms, eps 1e-6 / sqrt 3, {held}"
        call = lambda pose, seed: pytracik.ik(solver, seed, *pose)  # noqa: E731
        answer = lambda result: result[1:] if result[0] >= 0 else None  # noqa: E731
        return Solver(one_by_one(call, given, answer), setting, cores)

    return {
        "TRAC-IK, 5 ms": row(0.005, 1),
        "TRAC-IK, 50 ms": row(TIMEOUT, 1),
        "TRAC-IK, 50 ms, all cores": row(TIMEOUT, None),
    }


def _inwards(arm: Arm) -> Arm:
    """Return the arm with limits that single precision cannot round outwards."""
    lower, upper = arm.lower.astype(np.float32), arm.upper.astype(np.float32)
    up, down = np.nextafter(lower, np.float32(np.inf)), np.nextafter(upper, np.float32(-np.inf))
    lower = np.where(lower < arm.lower, up, lower).astype(float)
    return arm._replace(lower=lower, upper=np.where(upper > arm.upper, down, upper).astype(float))


# Robotics Toolbox for Python: its solvers in C++, with random restarts within the limits
#
# * `tol` bounds half the squared norm of all six errors: with 0.5e-12 every answer keeps 1e-6, with
#   1e-12 two of a hundred do not, with 1e-11 seventeen, and the time falls by under 5 %.
# * `ilimit`, iterations of an attempt, and `k`, the damping: the least mean on the WAM with every
#   pose solved, of `ilimit` 10 to 30, and of `k` 0.01 to 3 (chan), 1e-8 to 0.1 (the others).
# * GN without `pinv` is half again as fast as with it; NR with damping solves fewer poses.

TOOLBOX: dict[str, tuple[str, dict[str, Any]]] = {
    "ik_LM chan": ("ik_LM", {"method": "chan", "k": 0.2, "ilimit": 20}),
    "ik_LM sugihara": ("ik_LM", {"method": "sugihara", "k": 1e-8, "ilimit": 30}),
    "ik_LM wampler": ("ik_LM", {"method": "wampler", "k": 1e-8, "ilimit": 30}),
    "ik_NR": ("ik_NR", {"pinv": True, "ilimit": 30}),
    "ik_GN": ("ik_GN", {"pinv": False, "ilimit": 30}),
}


def toolbox(arm: Arm) -> dict[str, Solver]:
    """Return a row for each method of the toolbox."""
    from roboticstoolbox import ET, ETS

    parts = []
    for i in range(arm.n):
        kind = ET.tz if arm.prismatic[i] else ET.Rz
        parts += [ET.SE3(arm.fixed[i]), kind(qlim=[arm.lower[i], arm.upper[i]])]
    ets = ETS([*parts, ET.SE3(arm.fixed[-1])])
    found = {}
    for name, (method, own) in TOOLBOX.items():
        options = {**own, "tol": 0.5 * TOLERANCE**2, "slimit": 1000}
        call = partial(getattr(ets, method), **options)
        run = one_by_one(call, answer=lambda solution: solution.q if solution.success else None)
        words = ", ".join(f"{key}={value}" for key, value in options.items())
        found[f"toolbox {name}"] = Solver(run, f"{method}, {words}")
    return found


# Pinocchio: the loop of its example inverse-kinematics.py in Python over its C++ kinematics
#
# The example's fixed damping 1e-12 and step 0.1 take hundreds of iterations. Here a step is a whole
# one, damped by a tenth of the squared error, clipped to the limits, and few make an attempt.

ATTEMPT = 12  # iterations: the best of 8, 10, 12, 15, 20 and 30 on the WAM, also for placo


def pinocchio(arm: Arm) -> dict[str, Solver]:
    """Return the one row of Pinocchio."""
    import pinocchio as pin

    model, joint = pin.Model(), 0
    for i in range(arm.n):
        kind = pin.JointModelPZ() if arm.prismatic[i] else pin.JointModelRZ()
        joint = model.addJoint(joint, kind, pin.SE3(arm.fixed[i]), f"joint{i + 1}")
    data, tip = model.createData(), pin.SE3(arm.fixed[-1]).inverse()
    lower, upper = np.where(arm.endless, [[-np.inf], [np.inf]], [arm.lower, arm.upper])
    rng, eye = np.random.default_rng(RESTARTS_SEED), np.eye(6)

    def attempt(target: Any, q: np.ndarray) -> np.ndarray | None:
        for _ in range(ATTEMPT):
            pin.forwardKinematics(model, data, q)
            difference = data.oMi[joint].actInv(target)
            error = pin.log6(difference).vector
            square = error @ error
            if square < TOLERANCE**2:
                return q
            J = pin.computeJointJacobian(model, data, q, joint)
            J = pin.Jlog6(difference.inverse()) @ J
            q = q + J.T @ np.linalg.solve(J @ J.T + (0.1 * square) * eye, error)
            q = np.minimum(np.maximum(q, lower), upper)
        return None

    def call(target: Any, seed: np.ndarray) -> np.ndarray | None:
        return with_restarts(partial(attempt, target), arm.random, rng, seed, TIMEOUT)

    run = one_by_one(call, lambda T, seed: (pin.SE3(T) * tip, seed))
    setting = f"damping 0.1 error^2, {ATTEMPT} iterations, clipped, random restarts for 50 ms"
    return {"pinocchio CLIK, restarts": Solver(run, setting)}


# placo: one quadratic program for each step, with the joint limits as its constraints
#
# It is made for streams of targets; here steps are repeated until the pose is reached, with random
# restarts. A soft frame task of weight 1 and the default regularization of 1e-8.

PLACO_SECONDS = 0.2  # [s] time limit of a pose; a step takes tens of microseconds
FLOATING = 7  # coordinates of the floating base


def placo(arm: Arm) -> dict[str, Solver]:
    """Return the one row of placo."""
    import placo as library

    width = np.where(arm.endless, 10.0 * np.pi, 0.0)  # endless joints have two coordinates
    limited = arm._replace(
        lower=arm.lower - width, upper=arm.upper + width, endless=np.zeros(arm.n, bool)
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "robot.urdf").write_text(limited.urdf())
        robot = library.RobotWrapper(folder, library.Flags.ignore_collisions)
    solver = library.KinematicsSolver(robot)
    solver.mask_fbase(True)
    solver.enable_joint_limits(True)
    task = solver.add_frame_task(TIP, np.eye(4))
    task.configure("tip", "soft", 1.0, 1.0)
    solver.add_regularization_task(1e-8)
    rng = np.random.default_rng(RESTARTS_SEED)

    def attempt(start: np.ndarray) -> np.ndarray | None:
        q = robot.state.q.copy()
        q[FLOATING:] = start
        robot.state.q = q
        errors = task.position(), task.orientation()
        for _ in range(ATTEMPT):
            robot.update_kinematics()
            for error in errors:
                error.update()
            if max(error.error_norm() for error in errors) < TOLERANCE:
                return robot.state.q[FLOATING:].copy()
            try:
                solver.solve(True)
            except RuntimeError:  # the program has no solution
                return None
        return None

    def call(T: np.ndarray, seed: np.ndarray) -> np.ndarray | None:
        task.T_world_frame = T
        return with_restarts(attempt, arm.random, rng, seed, PLACO_SECONDS)

    setting = f"steps of its QP, {ATTEMPT} an attempt, joint limits on, restarts"
    return {"placo, restarts": Solver(one_by_one(call), f"{setting} for {PLACO_SECONDS} s")}


# ssik: closed forms, found for an arm by `ssik build` and run in its C++ backend
#
# The generated module is what its authors recommend: 40 times as fast as `Manipulator.solve` on the
# WAM (250 us, 13 ms). One solution is asked for and no seed is given, which would order them: with
# it a pose takes 30 % more. Building takes seconds for a WAM, minutes for some redundant arms.

BUILD_TIME = 1800.0  # [s]
MODULE = "arm_ik"


def ssik(arm: Arm) -> dict[str, Solver]:
    """Return the row of ssik; its setting names the method that ssik chose."""
    module = _built(arm)

    def call(T: np.ndarray, seed: np.ndarray) -> Any:
        return module.solve(T, max_solutions=1)

    run = one_by_one(call, answer=lambda found: found[0].q if found else None)
    return {"ssik": Solver(run, f"ssik build, {module.SOLVER_NAME}, max_solutions=1, no seed")}


def _built(arm: Arm) -> ModuleType:
    """Return the generated solver of an arm, stored next to the packages of the environment."""
    text = arm.urdf()
    folder = Path(sys.prefix) / "ssik" / hashlib.sha256(text.encode()).hexdigest()[:16]
    if not (folder / f"{MODULE}.py").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "arm.urdf").write_text(text)
        command = [sys.executable, "-m", "ssik.cli", "build", "arm.urdf", "--base", BASE]
        command += ["--ee", TIP, "--out", f"{MODULE}.py", "--no-validate"]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=BUILD_TIME, check=False
            )
        except subprocess.TimeoutExpired:
            raise UnfitError(f"ssik build takes more than {BUILD_TIME:g} s") from None
        if done.returncode:
            lines = (done.stderr or done.stdout).strip().splitlines()
            raise UnfitError(f"ssik build: {lines[-1] if lines else 'failed'}")
    sys.path.insert(0, str(folder))
    return importlib.import_module(MODULE)


OWN = {"dls_ik": ours, "kdl": kdl}  # run by this interpreter
APART = {  # run in the environment of the peers
    "trac_ik": trac_ik,
    "toolbox": toolbox,
    "placo": placo,
    "pinocchio": pinocchio,
    "ssik": ssik,
}
PEERS: dict[str, Callable[[Arm], dict[str, Solver]]] = {**OWN, **APART}
