# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robots, seeds and targets with extreme numbers give an answer or a documented error."""

from functools import cache

import numpy as np
import pytest
from kernels import serves

from dls_ik import IkSolver, RobotModel, Status
from dls_ik.model import DhRow

HALF = np.pi / 2
METHODS = ("jp", "jt", "dls", "odls", "ed", "svf+sd", "sdls", "jw", "gp+odls", "ta", "jc", "tp",
           "ctp+sd+svf")  # fmt: skip


def six_joint_arm(length=1.0, lower=-2.5, upper=2.5):
    """Return an arm of 6 joints with a spherical wrist."""
    a, d = [0.1, 0.5, 0.02, 0.0, 0.0, 0.0], [0.4, 0.0, 0.0, 0.5, 0.0, 0.1]
    alpha = [HALF, 0.0, HALF, -HALF, HALF, 0.0]
    rows = zip(a, alpha, d, strict=True)
    return [DhRow(length * x, y, length * z, lower=lower, upper=upper) for x, y, z in rows]


def dh_row(kind="revolute", a=0.0, alpha=0.0, room=1.0):
    return DhRow(a=a, alpha=alpha, kind=kind, lower=-room, upper=room)


def planar_chain(n, alpha, room=2.0):
    return [dh_row(a=0.1, alpha=alpha * (-1) ** i, room=room) for i in range(n)]


ROWS = {
    **{
        f"lengths of {length:g}": six_joint_arm(length)
        for length in (1e-300, 1e-160, 1e-9, 1e3, 1e8)
    },
    "from a hair to a thousand km": [dh_row(a=10.0 ** (3 * i - 12), alpha=1.0) for i in range(7)],
    "60 joints in a plane": planar_chain(60, 0.0),
    "60 joints in space": planar_chain(60, HALF),
    "60 joints that hardly move": planar_chain(60, HALF, 1e-6),
    "60 joints that move by denormals": planar_chain(60, HALF, 1e-310),
    "one that turns": [dh_row(a=0.3)],
    "one that slides": [dh_row("prismatic")],
    "all coincide": [dh_row()] * 6,
    "all meet": [dh_row(alpha=1.0)] * 7,
    "none can move": [DhRow(a=0.3, alpha=1.0, lower=0.5, upper=0.5)] * 7,
    "every other can": [dh_row(a=0.3, alpha=1.0, room=2.0 * (i % 2)) for i in range(14)],
    "slides of a hair": [dh_row("prismatic", alpha=HALF, room=1e-300)] * 3 + six_joint_arm(),
    "slides without an end": [dh_row("prismatic", alpha=HALF, room=1e300)] * 3 + six_joint_arm(),
    "turns without an end": six_joint_arm(lower=-1e16, upper=1e16),
}


@cache
def robot_of(name):
    return RobotModel.from_dh(ROWS[name])


def configurations(robot):
    """Return configurations (14, n): ordinary, at limits, and extreme."""
    rng = np.random.default_rng(0)
    ends = np.clip([robot.lower, robot.upper], -1e9, 1e9)
    absurd = [np.full(robot.n, x) for x in (1e15, -1e160, 1e308, -1e308, -0.0, 5e-324, -1e-310)]
    return np.vstack([robot.random(4, rng), robot.clip(np.zeros((1, robot.n))), ends, *absurd])


def targets(robot):
    """Return poses: reached, at the seed, half a turn away, as far as possible, nearly zero."""
    q = robot.random(14, np.random.default_rng(1))
    Ts = robot.fk(q)
    Ts[2] = robot.fk(configurations(robot)[2])
    Ts[3, :3, :3] = Ts[3, :3, :3] @ np.diag([1.0, -1.0, -1.0])
    Ts[[1, 4], :3, 3] = 1e9
    Ts[[0, 6], :3, 3] = 5e-324
    Ts[[5, 7], :3, 3] = -0.0
    return Ts


@pytest.mark.parametrize("name", ROWS)
def test_extreme_values_give_an_answer_or_an_error(name):
    robot = robot_of(name)
    q, Ts = configurations(robot), targets(robot)
    k = list(ROWS).index(name)
    for method in ("auto", *METHODS[k % 3 :: 3]):
        if not serves(method, robot) or (method == "ta" and robot.n <= 6):
            continue
        solver = IkSolver(robot, method, max_iterations=12, max_restarts=5)
        result = solver.solve_batch(Ts, q, threads=1)
        assert (result.status != Status.REFUSED).all()
        assert np.isfinite(result.q).all(), method
        if not np.isin("prismatic", [row.kind for row in ROWS[name]]):
            assert np.isfinite(result.position_error).all(), method
            assert np.isfinite(result.rotation_error).all(), method
        if solver.search.keeps_limits:
            assert robot.within_limits(result.q).all()
        for T, one in zip(Ts, result, strict=True):
            if one.success:
                reached = robot.fk(one.q)
                size = np.abs(one.q).max() * 1e-15 + 1e-15 * np.abs(T[:3, 3]).max()
                assert np.abs(reached - T).max() <= 1.01e-6 + 8.0 * size


@pytest.mark.parametrize(
    "name", [name for name in ROWS if not name.startswith(("60 joints that", "none", "every"))]
)
def test_auto_solves_the_reachable_poses(name):
    robot = robot_of(name)
    rng = np.random.default_rng(2)
    result = IkSolver(robot, max_restarts=300).solve_batch(robot.fk(robot.random(6, rng)))
    assert result.success.all()


def test_other_calls_accept_extreme_values():
    for name in ("one that turns", "all coincide", "none can move", "60 joints in space"):
        robot = robot_of(name)
        solver, T = (
            IkSolver(robot, max_restarts=30),
            robot.fk(robot.random(rng=np.random.default_rng(3))),
        )
        assert len(solver.solve_all(T, 2)) >= 1
        for wish in ("distance", "manipulability"):
            assert solver.solve(T, robot.clip(np.zeros(robot.n)), solve_type=wish).success
        far = T + 1e8 * np.eye(4, k=3)
        assert not solver.solve(far, timeout=3600.0).success
