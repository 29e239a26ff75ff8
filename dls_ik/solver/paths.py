"""Paths of poses: each from the answer before, and among obstacles along other solutions.

With a scene, an answer that the joints do not reach freely from the one before is mended: other
solutions of the poses around it, along the redundancy and on other branches, are joined by free
motions, from as far back as needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.selection import FIRST, NEAREST, STEPS
from dls_ik.core.types import Array, Indices, Rows
from dls_ik.errors import OptionError
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.scene.snapshot import PathContact
from dls_ik.solver.calls import batch_result, solve_rows
from dls_ik.solver.conclusion import has_answer
from dls_ik.solver.method import AUTO
from dls_ik.solver.poses import batch_poses, checked_poses
from dls_ik.solver.result import IkPathResult, Status
from dls_ik.solver.search import Search, found, put_back, some_rows
from dls_ik.text import quoted

Progress = Callable[[int, int], None]

WINDOW, GROWTH = 8, 4  # poses on either side of one that is mended, at first; times that they grow
TRACKS = 24  # ways that are followed side by side, at most
APART = 0.1  # by which some joint of two of them differs, in the joint metric [rad or m]
PARENTS = 3  # answers before, from which a way to one is looked for
WIDEST = 1.0  # [rad or m] from a way to the starts of others beside it, at most
SAME = 1e-3  # [rad or m] between the seed and the first answer, if that is where the arm stands


def solve_path(
    search: Search,
    Ts: PoseLike,
    seed: JointValues | None,
    max_joint_step: float,
    progress: Progress | None = None,
) -> IkPathResult:
    """Solve for a path of poses as :meth:`dls_ik.IkSolver.solve_path`."""
    begin = time.perf_counter()
    if not _is_positive(max_joint_step):
        given = quoted(max_joint_step)
        raise OptionError(f"max_joint_step is a number above 0 [rad or m], not {given}")
    poses = batch_poses(Ts, len(search.robot.tips), search.position_only)
    start = None if seed is None else search.checked_seed(seed)
    walk, b, i = _Walk(search, poses, start, max_joint_step), len(poses), 0
    while i < b:
        walk.step(i)
        i = 1 + (walk.mend(i) if walk.is_broken(i) else i)
        if progress is not None:
            progress(i, b)
    return IkPathResult(
        **vars(batch_result(search, walk.rows, walk.status, walk.success, begin)),
        jumps=walk.jumps,
        contacts=() if search.snapshot is None else tuple(walk.contacts),
    )


class _Tracks(NamedTuple):
    """Ways side by side, at one pose."""

    q: Array  # (w, n) [rad or m]
    figures: Array  # (w, 3) of Rows
    length: Array  # (w,) of each way, in the joint metric
    parent: Indices  # (w,) track that each comes from, at the pose before


class _Walk:
    """The answers along a path as far as they are known.

    Args:
        start: (n,) seed of the first pose, or None.
        largest: change of a joint from one pose to the next, beyond which it is a jump.
    """

    def __init__(self, search: Search, poses: Array, start: Array | None, largest: float) -> None:
        b = len(poses)
        self._search, self._poses, self._start, self._largest = search, poses, start, largest
        self.rows, self.status = search.new_rows(b), np.full(b, int(Status.REFUSED))
        self.jumps, self.success = np.zeros(b, np.bool_), np.zeros(b, np.bool_)
        self.contacts: list[PathContact | None] = [None] * b
        self._last = start
        self._base = 0  # the first pose whose answer may still change
        self._end = -1  # pose that no way goes on to

    def step(self, i: int) -> None:
        """Solve for pose i from the last answer."""
        search, last, one = self._search, self._last, slice(i, i + 1)
        row, start = some_rows(self.rows, one), search.middle if last is None else last[None]
        self.status[one] = solve_rows(search, self._poses[one], start, last is not None, row)
        reached = self.status[i] == Status.SUCCESS
        if last is not None and reached:
            self.jumps[i] = _is_jump(search, self._poses[i], start, row, self._largest)
        self.success[one] = has_answer(search, self.status[one], row.best, start)
        if i and self.success[i - 1] and self.success[i]:
            self.contacts[i] = self._contact(self.rows.best[i - 1], self.rows.best[i])
        if not i or not reached or self.status[i - 1] != Status.SUCCESS:
            self._base = i
        if reached:
            self._last = self.rows.best[i]

    def is_broken(self, i: int) -> bool:
        """Test if another answer at pose i may be reached freely where this one is not."""
        hit = self.contacts[i] is not None or bool(self.jumps[i])
        return hit and i > self._base and self._search.snapshot is not None

    def mend(self, i: int) -> int:
        """Look for ways to pose i and some poses on, from farther and farther back.

        Returns:
            The pose up to which there are answers now.
        """
        size, until = WINDOW, i
        while i != self._end:
            first = max(self._base, i - size)
            layers, is_whole = self._follow(first, min(len(self._poses) - 1, i + size))
            until = first + len(layers) - 1
            if is_whole or first == self._base:
                if until >= i:
                    self._take(first, layers)
                    self._end = -1 if is_whole else until + 1
                    return until
                break
            size *= GROWTH
        self._base = i
        return i

    def _follow(self, first: int, last: int) -> tuple[list[_Tracks], bool]:
        """Follow ways from one pose to another, and return them pose by pose as far as they go.

        Returns:
            True too if they go as far as there are answers.
        """
        layers = [self._first_tracks(first)]
        for j in range(first + 1, last + 1):
            tracks, any_reached = self._next_tracks(j, layers[-1])
            if not len(tracks.q):
                best = layers[-1].q[layers[-1].length.argmin()]
                return layers, not any_reached and not self._is_reached(j, best)
            layers.append(tracks)
        return layers, True

    def _first_tracks(self, first: int) -> _Tracks:
        """The answer where a way begins, and where it is free to choose other solutions too."""
        q, figures = self.rows.best[[first]], self.rows.figures[[first]]
        if first != self._base or (first == 0 and self._stands_there):
            return _Tracks(q, figures, np.zeros(1), np.zeros(1, np.int64))
        start = q if self._start is None or first else self._start[None]
        more = self._solutions(first, self._around(first, q))
        near = self._search.is_near(more.best, start)
        q, figures = np.vstack([q, more.best[near]]), np.vstack([figures, more.figures[near]])
        length = self._lengths(q, start)[:, 0]
        kept = list[int]()
        for k in length.argsort(kind="stable").tolist():
            if len(kept) < TRACKS and self._is_apart(q[k], q[kept]):
                kept.append(k)
        return _Tracks(q[kept], figures[kept], length[kept], np.zeros(len(kept), np.int64))

    @property
    def _stands_there(self) -> bool:
        """True if the seed is a solution of the first pose: the arm is there already."""
        return self._start is not None and bool(
            (abs(self.rows.best[0] - self._start) <= SAME).all()
        )

    def _around(self, first: int, q: Array) -> Array:
        """Starts (s, n) of the solutions of a pose: spread, and near an answer (1, n)."""
        rng = np.random.default_rng([self._search.options.random_seed, first])
        lower, upper = self._search.robot.finite_limits()
        anywhere = rng.uniform(lower, upper, (3 * TRACKS, len(lower)))
        beside = q + rng.uniform(-WIDEST, WIDEST, (TRACKS, len(lower)))
        return np.vstack([anywhere, beside])

    def _next_tracks(self, j: int, before: _Tracks) -> tuple[_Tracks, bool]:
        """Return the shortest free ways to pose j that differ, and if any solution was found."""
        rng = np.random.default_rng([self._search.options.random_seed, j])
        width = min(self._largest, WIDEST)
        beside = before.q + rng.uniform(-width, width, before.q.shape)
        more = self._solutions(j, np.vstack([before.q, beside]))
        q, kept, parents = more.best, list[int](), list[int]()
        lengths = self._lengths(q, before.q)  # (m, w)
        change = abs(q[:, None] - before.q)
        may_follow = (change <= np.minimum(self._largest, self._search.max_change)).all(axis=2)
        lengths = np.where(may_follow, lengths + before.length, np.inf)
        for k in lengths.min(axis=1, initial=np.inf).argsort(kind="stable").tolist():
            if len(kept) == TRACKS or not np.isfinite(lengths[k]).any():
                break
            if not self._is_apart(q[k], q[kept]):
                continue
            for w in lengths[k].argsort(kind="stable")[:PARENTS].tolist():
                if np.isfinite(lengths[k, w]) and self._contact(before.q[w], q[k]) is None:
                    kept.append(k)
                    parents.append(w)
                    break
        parent = np.array(parents, np.int64)
        return _Tracks(q[kept], more.figures[kept], lengths[kept, parent], parent), bool(len(q))

    def _solutions(self, j: int, starts: Array) -> Rows:
        """Solutions of pose j from starts (s, n) that keep the limits, as rows."""
        search, pose = self._anywhere, self._poses[j : j + 1]
        rows = search.new_rows(len(starts))
        search.attempt(np.repeat(pose, len(starts), axis=0), starts, 1, rows)
        self.rows.counts[j, STEPS] += rows.counts[:, STEPS].sum()
        return some_rows(rows, np.flatnonzero(found(rows) & search.is_inside(rows.best)))

    @cached_property
    def _anywhere(self) -> Search:
        search = self._search
        return replace(search, kind=FIRST, max_change=np.full(search.robot.n, np.inf))

    def _is_reached(self, j: int, q: Array) -> bool:
        row = self._search.new_rows(1)
        ended = solve_rows(self._search, self._poses[j : j + 1], q[None], True, row)
        return bool(ended[0] == Status.SUCCESS)

    def _lengths(self, q: Array, before: Array) -> Array:
        """(m, w) from each of (w, n) to each of (m, n), in the joint metric."""
        weights = self._search.problem.starts.joint_weights
        squared = ((q[:, None] - before) ** 2) @ weights
        return np.asarray(np.sqrt(squared))

    def _is_apart(self, q: Array, others: Array) -> bool:
        scale = np.sqrt(self._search.problem.starts.joint_weights)
        return bool(((scale * abs(others - q)).max(axis=1, initial=0.0) > APART).all())

    def _contact(self, q0: Array, q1: Array) -> PathContact | None:
        snapshot = self._search.snapshot
        return None if snapshot is None else snapshot.path_in_collision(q0, q1)

    def _take(self, first: int, layers: list[_Tracks]) -> None:
        """Write the shortest way as the answers from a pose on."""
        k = int(layers[-1].length.argmin())
        self._last = layers[-1].q[k].copy()
        for i in range(first + len(layers) - 1, first - 1, -1):
            tracks = layers[i - first]
            self.rows.best[i], self.rows.figures[i] = tracks.q[k], tracks.figures[k]
            self.status[i], self.success[i] = Status.SUCCESS, True
            self.jumps[i], self.contacts[i] = False, None
            k = int(tracks.parent[k])
        if first and self.success[first - 1]:
            before, q = self.rows.best[first - 1], self.rows.best[first]
            self.contacts[first] = self._contact(before, q)
            self.jumps[first] = (abs(q - before) > self._largest).any()


def _is_jump(search: Search, T: Array, start: Array, row: Rows, largest: float) -> bool:
    """Return whether the nearest answer is too far from the one before; write that to the row."""
    if _largest_change(row, start) > largest and search.method == AUTO:
        poses, nearest = checked_poses(T, len(search.robot.tips))[None], search.new_rows(1)
        candidates = search.options.num_candidates
        replace(search, kind=NEAREST).attempt(poses, start, candidates, nearest)
        if found(nearest)[0]:
            put_back(row, np.array([0]), nearest)
    return _largest_change(row, start) > largest


def _largest_change(row: Rows, start: Array) -> float:
    return float(np.abs(row.best - start).max())


def _is_positive(given: Any) -> bool:
    """Return whether a value is a number above 0, of hundreds of digits or infinite too."""
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    return is_number and bool(given > 0)
