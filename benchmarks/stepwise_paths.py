# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint motion of paths solved as a whole, compared with solvers that follow them step by step.

Step by step, each pose is solved from the solution of the pose before, as move_group computes
Cartesian paths. Every solver starts at the same configuration.
"""

import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Any

import numpy as np

from benchmarks.common import Table, columns
from benchmarks.peers.adapters import OWN
from benchmarks.peers.arm import Arm, arm_of
from benchmarks.peers.process import Peer, PeerError
from benchmarks.random_paths import RandomPath
from dls_ik import DlsIkError, IkSolver, RobotModel
from dls_ik.core.types import Array

KDL_ROWS, TRAC_IK_ROW = ("KDL LMA", "KDL NR_JL"), "TRAC-IK, 5 ms"  # rows of benchmarks.peers
TIME_LIMIT = 1.0  # [s] limit for a pose
RELATIVE_TOLERANCE = 1e-3  # relative difference between motions along the same path
MOTIONS = columns(
    "robot; step by step; paths :d; solved :d; also as a whole :d; "
    "motion of the whole at most that [%] :.1f; ratio of the motions, median :.3f"
)
Follow = Callable[[Array, Array], Array | None]  # pose and seed to a solution


def joint_motion(q: Array) -> float:
    """Return the length of a joint path (b, n) [rad or m]."""
    return float(np.linalg.norm(np.diff(q, axis=0), axis=1).sum())


def followers(robot: RobotModel, python: str, stack: ExitStack) -> dict[str, Follow]:
    """Return the installed solvers; those that are missing are named on stderr.

    Args:
        robot: Robot with one tip.
        python: Interpreter with pytracik.
        stack: Closes the process of TRAC-IK.
    """
    arm, found = arm_of(robot), dict[str, Follow]()
    try:
        rows = OWN["kdl"](arm)
        found.update({name: _follower(rows[name].run) for name in KDL_ROWS})
    except DlsIkError as error:
        print(f"without KDL: {error}", file=sys.stderr)
    try:
        found["TRAC-IK"] = _trac_ik(arm, python, stack)
    except PeerError as error:
        print(f"without TRAC-IK: {error}", file=sys.stderr)
    return found


def _follower(run: Callable[..., Any]) -> Follow:
    return lambda T, q: run(T[None], q[None], TIME_LIMIT).q[0]


def _trac_ik(arm: Arm, python: str, stack: ExitStack) -> Follow:
    """Return TRAC-IK in a process of its own.

    Raises:
        PeerError: If it is not installed.
    """
    peer = Peer("trac_ik", python, arm)
    stack.callback(peer.close)
    peer.described()
    return lambda T, q: peer.solve(TRAC_IK_ROW, T[None], q[None], TIME_LIMIT).q[0]


def follow(
    robot: RobotModel, solve: Follow, path: RandomPath, step: float, tolerance: float = 1e-5
) -> Array | None:
    """Return the joint path (b, n) of a solver step by step; None if it fails or jumps.

    Args:
        robot: Robot, whose limits must be respected.
        solve: Solver of a pose.
        path: Path, whose start is the first configuration.
        step: Maximum joint step [rad or m].
        tolerance: Maximum error of a solution [m and rad].
    """
    q, turn = [path.start], np.isinf(robot.upper - robot.lower)
    for T in path.poses[1:]:
        there = solve(T, q[-1])
        if there is None or not np.isfinite(there).all():
            return None
        shift = np.where(turn, np.round((there - q[-1]) / (2.0 * np.pi)), 0.0)
        there = there - 2.0 * np.pi * shift
        off = np.abs(robot.fk(there) - T).max()
        if np.abs(there - q[-1]).max() > step or off > tolerance or not robot.within_limits(there):
            return None
        q.append(there)
    return np.array(q)


def motion_table(
    robots: Sequence[RobotModel], paths: Sequence[Sequence[RandomPath]], step: float, python: str
) -> Table:
    """Return the table of joint motions for the paths of each robot."""
    table = Table("Joint motion against solvers step by step, from the same start", MOTIONS)
    for robot, given in zip(robots, paths, strict=True):
        solver = IkSolver(robot)
        whole = [
            solver.solve_path(p.poses, p.start, whole=True, max_joint_step=step) for p in given
        ]
        with ExitStack() as stack:
            for name, solve in followers(robot, python, stack).items():
                ratios, solved = list[float](), 0
                for path, ours in zip(given, whole, strict=True):
                    theirs = follow(robot, solve, path, step)
                    solved += theirs is not None
                    if theirs is not None and ours.fraction == 1.0:
                        ratios.append(joint_motion(ours.q) / joint_motion(theirs))
                share, middle = None, None
                if ratios:
                    share = 100.0 * float(np.mean(np.array(ratios) <= 1.0 + RELATIVE_TOLERANCE))
                    middle = float(np.median(ratios))
                row = [robot.name, name, len(given), solved, len(ratios), share, middle]
                table.rows.append(row)
    return table
