# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint positions along a path of poses: the answer of each pose is the seed of the next pose.

With a scene, the straight joint motion between two successive answers may collide, or a joint may
jump (change by more than a given maximum). The path is then repaired: the solver searches for other
solutions of the poses around this motion that can be connected by collision-free motions without
jumps. If the search fails, it is repeated for a longer section of the path, which starts at an
earlier pose. During a repair, several joint paths, called tracks, are followed from pose to pose.
:mod:`.whole_path` solves a path as a whole instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik.core.selection import SELECT_FIRST, SELECT_NEAREST, STEPS_COLUMN
from dls_ik.core.types import Array, Indices, Rows
from dls_ik.errors import OptionError
from dls_ik.lazy_property import cached_property
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike
from dls_ik.solver.calls import batch_result, solve_rows
from dls_ik.solver.conclusion import has_answer
from dls_ik.solver.method import AUTO_METHOD
from dls_ik.solver.options import checked_timeout
from dls_ik.solver.poses import batch_poses, checked_poses
from dls_ik.solver.result import IkPathResult, Status
from dls_ik.solver.search import Search, found, put_back, some_rows
from dls_ik.solver.whole_path import solve_whole_path
from dls_ik.text import listing, quoted

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.scene.snapshot import PathContact

Progress = Callable[[int, int], None]
JointSteps = float | Sequence[float] | Array | Mapping[str, float]

DEFAULT_JOINT_STEP = 0.5  # [rad or m] maximum joint step if none is given
MAX_JOINT_STEP = 1e6  # [rad or m] larger maximum steps, such as infinity, are equivalent

# Number of repaired poses before and after a broken motion, and the factor if a repair fails.
INITIAL_WINDOW, WINDOW_GROWTH = 8, 4
MAX_TRACKS = 24  # maximum number of joint paths that are followed at the same time
# Tracks differ at a pose if sqrt(joint weight) * difference is larger for some joint [rad or m].
MIN_TRACK_DIFFERENCE = 0.1
MAX_PARENTS = 3  # maximum number of previous answers from which a motion to an answer is tried
MAX_START_OFFSET = 1.0  # [rad or m] maximum offset of random starts from a track
AT_SEED_TOLERANCE = 1e-3  # [rad or m] maximum distance at which the seed equals the first answer


def solve_path(
    search: Search,
    Ts: PoseLike,
    seed: JointValues | None,
    max_joint_step: JointSteps,
    progress: Progress | None = None,
    whole: bool = False,
    timeout: float | None = None,
) -> IkPathResult:
    """Solve for a path of poses; :meth:`dls_ik.IkSolver.solve_path` explains the arguments."""
    begin = time.perf_counter()
    steps = joint_steps(search.robot, max_joint_step)
    poses = batch_poses(Ts, len(search.robot.tips), search.position_only)
    start = None if seed is None else search.checked_seed(seed)
    if whole:
        limit = None if timeout is None else checked_timeout(timeout)
        return solve_whole_path(search, poses, start, steps, limit, progress)
    if timeout is not None:
        raise OptionError(
            f"timeout can only be given with whole=True; got timeout={timeout!r}; without "
            "whole=True, max_restarts limits the search for each pose"
        )
    walk, b, i = _Walk(search, poses, start, steps), len(poses), 0
    while i < b:
        walk.step(i)
        i = 1 + (walk.repair(i) if walk.is_broken(i) else i)
        if progress is not None:
            progress(i, b)
    return IkPathResult(
        **vars(batch_result(search, walk.rows, walk.status, walk.success, begin)),
        jumps=walk.jumps,
        contacts=() if search.snapshot is None else tuple(walk.contacts),
    )


class _Tracks(NamedTuple):
    """Solutions of one pose, each the last configuration of a track (joint path) to this pose."""

    q: Array  # (w, n) joint positions [rad or m]
    figures: Array  # (w, 3) errors and measure of the joint positions, as in Rows
    length: Array  # (w,) length of each track up to this pose, in the joint metric
    parent: Indices  # (w,) index of the solution of the previous pose from which a track comes


class _Walk:
    """Solver of a path; it has the answers from the first pose to the pose solved last.

    Args:
        search: Search for the answer of a pose.
        poses: (b, k, 4, 4) poses of the path.
        start: (n,) seed of the first pose [rad or m], or None.
        largest: (n,) maximum change of each joint between successive poses; larger changes are
            jumps [rad or m].
    """

    def __init__(self, search: Search, poses: Array, start: Array | None, largest: Array) -> None:
        b = len(poses)
        self._search, self._poses, self._start, self._largest = search, poses, start, largest
        self.rows, self.status = search.new_rows(b), np.full(b, int(Status.REFUSED))
        self.jumps, self.success = np.zeros(b, np.bool_), np.zeros(b, np.bool_)
        self.contacts: list[PathContact | None] = [None] * b
        self._last = start
        self._base = 0  # index of the first pose whose answer a repair may still change
        self._end = -1  # index of the pose that no track reached in the last repair, or -1

    def step(self, i: int) -> None:
        """Solve for pose i, with the answer of the previous pose as the seed."""
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
        """Return whether the motion to pose i collides or jumps, and a repair can be tried."""
        hit = self.contacts[i] is not None or bool(self.jumps[i])
        return hit and i > self._base and self._search.snapshot is not None

    def repair(self, i: int) -> int:
        """Repair the path around pose i; if a repair fails, try again from an earlier pose.

        Returns:
            The index of the last repaired pose, or i if the repair fails.
        """
        size, until = INITIAL_WINDOW, i
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
            size *= WINDOW_GROWTH
        self._base = i
        return i

    def _follow(self, first: int, last: int) -> tuple[list[_Tracks], bool]:
        """Follow tracks from pose `first` toward pose `last`.

        Returns:
            A list with the tracks at each pose, up to the last pose that a track reaches; and
            whether a longer section cannot help: true if pose `last` is reached, or if the pose
            after the last reached one has no solution.
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
        """Return the tracks with which a repair begins at pose `first`.

        These are the answer of this pose and, if a repair may change this answer, other solutions.
        """
        q, figures = self.rows.best[[first]], self.rows.figures[[first]]
        if first != self._base or (first == 0 and self._starts_at_seed):
            return _Tracks(q, figures, np.zeros(1), np.zeros(1, np.int64))
        start = q if self._start is None or first else self._start[None]
        more = self._solutions(first, self._around(first, q))
        near = self._search.is_near(more.best, start)
        q, figures = np.vstack([q, more.best[near]]), np.vstack([figures, more.figures[near]])
        length = self._lengths(q, start)[:, 0]
        kept = list[int]()
        for k in length.argsort(kind="stable").tolist():
            if len(kept) < MAX_TRACKS and self._is_different(q[k], q[kept]):
                kept.append(k)
        return _Tracks(q[kept], figures[kept], length[kept], np.zeros(len(kept), np.int64))

    @property
    def _starts_at_seed(self) -> bool:
        """Whether the seed equals the answer of the first pose, which then must not change."""
        return self._start is not None and bool(
            (abs(self.rows.best[0] - self._start) <= AT_SEED_TOLERANCE).all()
        )

    def _around(self, first: int, q: Array) -> Array:
        """Return random starts (s, n) [rad or m] for other solutions of pose `first`.

        Most starts are anywhere within the limits; the others are near the answer q (1, n).
        """
        rng = np.random.default_rng([self._search.options.random_seed, first])
        lower, upper = self._search.robot.finite_limits()
        anywhere = rng.uniform(lower, upper, (3 * MAX_TRACKS, len(lower)))
        offset = rng.uniform(-MAX_START_OFFSET, MAX_START_OFFSET, (MAX_TRACKS, len(lower)))
        return np.vstack([anywhere, q + offset])

    def _next_tracks(self, j: int, before: _Tracks) -> tuple[_Tracks, bool]:
        """Continue the tracks `before`, which are at pose j - 1, to pose j.

        Each solution of pose j is reached by the shortest track with a collision-free last motion
        without a jump. Solutions that no track reaches are dropped.

        Returns:
            The tracks at pose j, whose solutions are distinct; and whether any solution of pose j
            was found.
        """
        rng = np.random.default_rng([self._search.options.random_seed, j])
        width = np.minimum(self._largest, MAX_START_OFFSET)
        offset = before.q + rng.uniform(-width, width, before.q.shape)
        more = self._solutions(j, np.vstack([before.q, offset]))
        q, kept, parents = more.best, list[int](), list[int]()
        lengths = self._lengths(q, before.q)  # (m, w)
        change = abs(q[:, None] - before.q)
        may_follow = (change <= np.minimum(self._largest, self._search.max_change)).all(axis=2)
        lengths = np.where(may_follow, lengths + before.length, np.inf)
        for k in lengths.min(axis=1, initial=np.inf).argsort(kind="stable").tolist():
            if len(kept) == MAX_TRACKS or not np.isfinite(lengths[k]).any():
                break
            if not self._is_different(q[k], q[kept]):
                continue
            for w in lengths[k].argsort(kind="stable")[:MAX_PARENTS].tolist():
                if np.isfinite(lengths[k, w]) and self._contact(before.q[w], q[k]) is None:
                    kept.append(k)
                    parents.append(w)
                    break
        parent = np.array(parents, np.int64)
        return _Tracks(q[kept], more.figures[kept], lengths[kept, parent], parent), bool(len(q))

    def _solutions(self, j: int, starts: Array) -> Rows:
        """Return the solutions of pose j within the joint limits, from one attempt per start.

        Args:
            j: Index of the pose.
            starts: (s, n) start configurations [rad or m].
        """
        search, pose = self._anywhere, self._poses[j : j + 1]
        rows = search.new_rows(len(starts))
        search.attempt(np.repeat(pose, len(starts), axis=0), starts, 1, rows)
        self.rows.counts[j, STEPS_COLUMN] += rows.counts[:, STEPS_COLUMN].sum()
        return some_rows(rows, np.flatnonzero(found(rows) & search.is_inside(rows.best)))

    @cached_property
    def _anywhere(self) -> Search:
        search = self._search
        return replace(search, kind=SELECT_FIRST, max_change=np.full(search.robot.n, np.inf))

    def _is_reached(self, j: int, q: Array) -> bool:
        row = self._search.new_rows(1)
        ended = solve_rows(self._search, self._poses[j : j + 1], q[None], True, row)
        return bool(ended[0] == Status.SUCCESS)

    def _lengths(self, q: Array, before: Array) -> Array:
        """Return the distances (m, w) between m configurations `q` and w configurations `before`.

        The shapes are (m, n) and (w, n) [rad or m]; distances are in the joint metric.
        """
        weights = self._search.problem.starts.joint_weights
        squared = ((q[:, None] - before) ** 2) @ weights
        return np.asarray(np.sqrt(squared))

    def _is_different(self, q: Array, others: Array) -> bool:
        scale = np.sqrt(self._search.problem.starts.joint_weights)
        difference = (scale * abs(others - q)).max(axis=1, initial=0.0)
        return bool((difference > MIN_TRACK_DIFFERENCE).all())

    def _contact(self, q0: Array, q1: Array) -> PathContact | None:
        snapshot = self._search.snapshot
        return None if snapshot is None else snapshot.path_in_collision(q0, q1)

    def _take(self, first: int, layers: list[_Tracks]) -> None:
        """Replace the answers from pose `first` on by the shortest track.

        Args:
            first: Index of the first pose of the tracks.
            layers: Tracks at pose `first` and each following pose.
        """
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


def _is_jump(search: Search, T: Array, start: Array, row: Rows, largest: Array) -> bool:
    """Return whether the motion to the answer of a pose is a jump.

    If it is, and the method is "auto", the solution closest to the start is searched for and
    written to the row; the result is then whether the motion to this solution is a jump.

    Args:
        search: Search.
        T: (k, 4, 4) pose.
        start: (1, n) answer of the previous pose [rad or m].
        row: State of the search with the answer, read and written.
        largest: (n,) larger changes of a joint are jumps [rad or m].
    """
    if _is_farther(row, start, largest) and search.method == AUTO_METHOD:
        poses, nearest = checked_poses(T, len(search.robot.tips))[None], search.new_rows(1)
        candidates = search.options.num_candidates
        replace(search, kind=SELECT_NEAREST).attempt(poses, start, candidates, nearest)
        if found(nearest)[0]:
            put_back(row, np.array([0]), nearest)
    return _is_farther(row, start, largest)


def _is_farther(row: Rows, start: Array, largest: Array) -> bool:
    return bool((np.abs(row.best - start) > largest).any())


def joint_steps(robot: RobotModel, given: JointSteps) -> Array:
    """Return the maximum joint steps (n,) [rad or m] from the argument `max_joint_step`.

    Args:
        robot: Robot.
        given: One number for all joints, a number for each joint, or a mapping from names of joints
            or the joint types ``"revolute"`` and ``"prismatic"`` to numbers. Joints that a mapping
            does not name have the maximum step `DEFAULT_JOINT_STEP`.

    Raises:
        OptionError: If a number is not above 0, the number of joints is wrong, or a name is
            unknown.
    """
    values: list[Any]
    names, kinds = robot.joint_names, {"rad": "revolute", "m": "prismatic"}
    if isinstance(given, Mapping):
        unknown = [key for key in given if key not in (*names, *kinds.values())]
        if unknown:
            raise OptionError(
                f"max_joint_step has the unknown name {quoted(unknown[0])}; valid are "
                f"{listing(names)}, revolute and prismatic"
            )
        types = [kinds[unit] for unit in robot.units]
        values = [
            given.get(name, given.get(kind, DEFAULT_JOINT_STEP))
            for name, kind in zip(names, types, strict=True)
        ]
    elif isinstance(given, Real | str) or not isinstance(given, Iterable):
        values = [given] * robot.n
    else:
        values = list(given)
        if len(values) != robot.n:
            raise OptionError(
                f"max_joint_step must be one number or {robot.n} numbers, one for each joint "
                f"({listing(names)}); got {len(values)}"
            )
    for value in values:
        if not _is_positive(value):
            raise OptionError(
                f"max_joint_step must be a number above 0 [rad or m]; got {quoted(value)}; "
                "math.inf switches the check off"
            )
    return np.array([float(min(value, MAX_JOINT_STEP)) for value in values])


def _is_positive(given: Any) -> bool:
    """Return whether a value is a number above 0; infinity and huge integers are accepted."""
    is_number = isinstance(given, Real) and not isinstance(given, bool)
    return is_number and bool(given > 0)
