# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Continuity of the motions between successive configurations of a path of poses."""

from __future__ import annotations

import numpy as np

from dls_ik.core.types import Array, Flags, Indices
from dls_ik.solver.path_candidates import CandidateGraph
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
