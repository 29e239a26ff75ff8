# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Continuity of the motions along a path of poses, and the reasons why continuous sections end.

To find the reason, a section is continued from pose to pose by attempts that ignore the scene; the
reason is a collision if the result collides. If an attempt finds no solution within the maximum
joint steps, Newton's method without joint limits distinguishes the other reasons.
"""

from __future__ import annotations

import numpy as np

from dls_ik.core.step import error_and_jacobian
from dls_ik.core.types import Array, Flags, Indices
from dls_ik.core.workspace import new_memory
from dls_ik.solver.method import AUTO_METHOD, parse_method
from dls_ik.solver.path_candidates import CandidateGraph
from dls_ik.solver.problem import build_details
from dls_ik.solver.result import Reconfiguration
from dls_ik.solver.search import found

# Maximum distance of the solution at the middle pose from the middle of a continuous motion:
# MIDDLE_SHARE times the largest joint change plus MIDDLE_DEVIATION [rad or m].
MIDDLE_SHARE, MIDDLE_DEVIATION = 0.25, 1e-3


def are_continuous(graph: CandidateGraph, poses: Indices, q: Array, which: Indices) -> Flags:
    """Return whether motions are continuous and, with a scene, collision-free.

    A motion is continuous if the arm stays on one branch of solutions: a solution of the pose half
    way is close to the middle of the joint motion.

    Args:
        graph: Graph with the search, the scene and the poses.
        poses: (s,) indices of the poses of the configurations.
        q: (s, n) configurations [rad or m].
        which: (w,) indices of the motions; index k stands for the motion to configuration k.

    Returns:
        (w,) results.
    """
    if not len(which):
        return np.zeros(0, np.bool_)
    a, b = q[which - 1], q[which]
    middles = middle_poses(graph.poses[poses[which - 1]], graph.poses[poses[which]])
    rows = graph.plain.new_rows(len(which))
    graph.plain.attempt(middles, 0.5 * (a + b), 1, rows)
    allowed = MIDDLE_SHARE * np.abs(b - a).max(axis=1) + MIDDLE_DEVIATION
    is_good = found(rows)
    is_good &= np.abs(rows.best - 0.5 * (a + b)).max(axis=1) <= allowed
    snapshot = graph.search.snapshot
    if snapshot is not None:
        for k in np.flatnonzero(is_good).tolist():
            is_good[k] = snapshot.path_in_collision(a[k], b[k]) is None
    return is_good


def middle_poses(a: Array, b: Array) -> Array:
    """Return the poses (w, k, 4, 4) half way between the poses a and b (w, k, 4, 4)."""
    middle = 0.5 * (a + b)
    turns = np.argwhere((a[..., :3, :3] != b[..., :3, :3]).any(axis=(2, 3)))
    if len(turns):
        at = tuple(turns.T)
        U, _, Vt = np.linalg.svd(middle[at][:, :3, :3])
        some = middle[at]
        some[:, :3, :3] = U @ Vt
        middle[at] = some
    return np.ascontiguousarray(middle)


NUM_NEWTON_STEPS = 30  # maximum number of steps without joint limits
NEWTON_TOLERANCE = 1e-8  # [m] maximum norm of the scaled error of a solution
MAX_NEWTON_STEP = 0.2  # [rad or m] maximum joint change in a Newton step


def explain_break(
    graph: CandidateGraph, q: Array, pose: int, is_complete: bool = True
) -> Reconfiguration:
    """Return the reconfiguration to a pose, with the reason why the section before it ends.

    Args:
        graph: Graph with the search and the poses.
        q: (n,) last configuration of the section before [rad or m].
        pose: Index of the pose to which the reconfiguration leads.
        is_complete: False if the timeout or Ctrl-C stopped the search.
    """
    snapshot, step = graph.search.snapshot, graph.steps.step
    for i in range(pose, len(graph.poses)):
        if not graph.is_valid[i]:
            return Reconfiguration(pose, i - 1, "unreachable", ())
        there, _, _ = graph.attempt(i, q[None])
        is_near = len(there) > 0 and bool((np.abs(there[0] - q) <= step).all())
        if not is_near:
            return Reconfiguration(pose, i - 1, *_reason_without_limits(graph, q, i))
        if snapshot is not None:
            pair = snapshot.colliding_pair(there[0])
            if pair is None and (contact := snapshot.path_in_collision(q, there[0])) is not None:
                pair = contact.names
            if pair is not None:
                return Reconfiguration(pose, i - 1, "collision", pair)
        q = there[0]
    last = len(graph.poses) - 1
    return Reconfiguration(pose, last, "step" if is_complete else "timeout", ())


def _reason_without_limits(graph: CandidateGraph, q: Array, i: int) -> tuple[str, tuple[str, ...]]:
    """Return the reason why no solution of pose i is near q (n,), and the joints at limits.

    Newton's method without joint limits looks for a solution near q.
    """
    search, robot = graph.plain, graph.search.robot
    choice = parse_method(AUTO_METHOD)
    details = build_details(robot, choice, search.options, search.tasks)
    memory, x = new_memory(robot.chain, search.problem.method, details), q.copy()
    r = len(details.task.weight)
    e, J = np.empty(r), np.empty((r, robot.n))
    for _ in range(NUM_NEWTON_STEPS):
        error_and_jacobian(robot.chain, details, memory, graph.poses[i], x, e, J)
        if np.linalg.norm(e) < NEWTON_TOLERANCE:
            break
        dx = np.linalg.lstsq(J, e, rcond=1e-6)[0]
        x += dx * min(1.0, MAX_NEWTON_STEP / max(float(np.abs(dx).max()), MAX_NEWTON_STEP))
    is_reached = np.linalg.norm(e) < NEWTON_TOLERANCE
    is_near = bool((np.abs(x - q) <= graph.steps.step).all())
    outside = np.flatnonzero((x < robot.lower) | (x > robot.upper))
    if is_reached and is_near:
        if len(outside):
            return "limit", tuple(robot.joint_names[j] for j in outside)
        return "step", ()
    if not len(graph.layers[i]):
        return "unreachable", ()
    is_other_branch = is_reached and not len(outside) and _is_regular(J)
    return ("step" if is_other_branch else "singularity"), ()


def _is_regular(J: Array) -> bool:
    """Return whether J (r, n) is far from singular."""
    values = np.linalg.svd(J, compute_uv=False)
    return bool(values[-1] > 0.05 * values[0])
