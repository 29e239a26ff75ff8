# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Random lines, arcs and polylines, and an exhaustive search for continuous joint paths.

The exhaustive search uses only single attempts of the solver, and no part of the search for whole
paths. From all configurations found for the first pose, it computes a dense sample of the
configurations that a continuous motion along the path can reach.
"""

import time
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.common import columns
from dls_ik import IkSolver, RobotModel
from dls_ik.core.types import Array, Flags
from dls_ik.model.rotations import nearest_rotation, rotation_about

URDF = Path(__file__).resolve().parents[1] / "test" / "urdf"
NUM_POSES = 100  # number of poses of a path
MAX_SOLVER_RESTARTS = 300  # limit of the solver that decides which paths are reachable
KINDS = ("line", "arc", "polyline")
# Ranges relative to the reach: length of a line, radius of an arc, length of a polyline segment
LINE_LENGTHS, ARC_RADII, SEGMENT_LENGTHS, NUM_SEGMENTS = (0.1, 0.6), (0.05, 0.25), (0.1, 0.3), 3
ARC_ANGLES = (1.0, 2.0 * np.pi)  # [rad]
# Numbers of starts and samples of the exhaustive search
NUM_FIRST_STARTS, MAX_REACHED = 20_000, 4000
SPACING_SHARE = 0.3  # spacing of the samples relative to the maximum joint step
FRACTIONS = (0.5, 0.25, 0.75)  # points of a motion where the tip must be close to the path
# Maximum deviation of a continuous motion: share of its length, and [rad or m]
MAX_DEVIATION = 0.25, 1e-3
COMPLETENESS = columns(
    "robot; joints :d; paths :d; to the end :d; below 1 :d; first reasons; "
    "of these found exhaustively :d; median [ms] :.1f; largest [ms] :.0f; all [s] :.1f"
)


class RandomPath(NamedTuple):
    """Path of poses, and a configuration at its first pose."""

    kind: str  # entry of KINDS
    poses: Array  # (NUM_POSES, 4, 4)
    start: Array  # (n,) [rad or m]


def arms() -> list[RobotModel]:
    """Return the six arms whose random paths are measured; Fetch has a prismatic torso."""
    files = ("fr3", "ur5e", "iiwa14", "fetch")
    return [
        RobotModel.wam(),
        *(RobotModel.from_urdf(URDF / f"{name}.urdf") for name in files),
        RobotModel.from_name("puma560"),
    ]


def random_path(robot: RobotModel, reach: float, rng: np.random.Generator) -> RandomPath:
    """Return a random path; the poses after the first one need not be reachable.

    Args:
        robot: Robot with one tip.
        reach: Length to which the size of the path is proportional [m].
        rng: Random numbers.
    """
    q, kind = robot.random(rng=rng), KINDS[rng.integers(len(KINDS))]
    T, u = robot.fk(q), np.linspace(0.0, 1.0, NUM_POSES)
    poses = np.tile(T, (NUM_POSES, 1, 1))
    if kind == "arc":
        a, b = np.linalg.qr(rng.normal(size=(3, 2)))[0].T
        radius, angles = reach * rng.uniform(*ARC_RADII), u * rng.uniform(*ARC_ANGLES)
        poses[:, :3, 3] += radius * (
            (np.cos(angles) - 1.0)[:, None] * a + np.sin(angles)[:, None] * b
        )
        if rng.random() < 0.5:  # the tip turns with the arc
            axis = np.cross(a, b)
            poses[:, :3, :3] = [rotation_about(axis, x) @ T[:3, :3] for x in angles]
    else:
        count = 1 if kind == "line" else NUM_SEGMENTS
        directions = rng.normal(size=(count, 3))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        lengths = reach * rng.uniform(
            *(LINE_LENGTHS if kind == "line" else SEGMENT_LENGTHS), (count, 1)
        )
        corners = np.vstack([np.zeros(3), (lengths * directions).cumsum(axis=0)])
        at = np.append(0.0, lengths.cumsum())
        poses[:, :3, 3] += np.array([np.interp(u * at[-1], at, c) for c in corners.T]).T
    return RandomPath(kind, poses, q)


def reachable_paths(robot: RobotModel, count: int, seed: int) -> list[RandomPath]:
    """Return random paths of which the solver reaches every pose."""
    rng, solver = np.random.default_rng(seed), IkSolver(robot, max_restarts=MAX_SOLVER_RESTARTS)
    reach = float(np.linalg.norm(robot.fk(robot.random(200, rng))[:, :3, 3], axis=1).max())
    paths = list[RandomPath]()
    while len(paths) < count:
        path = random_path(robot, reach, rng)
        if all(solver.solve_batch(T).success.all() for T in (path.poses[::-20], path.poses)):
            paths.append(path)
    return paths


class ExhaustiveSearch:
    """Search for a continuous joint path, without a scene.

    The search keeps samples of the configurations that are reachable by a continuous motion along
    the path so far. At the next pose, attempts start from each sample and from random displacements
    of the sample.

    Args:
        robot: Robot with one tip.
        step: Maximum joint step between successive poses [rad or m].
        seed: Seed of the random numbers.
    """

    def __init__(self, robot: RobotModel, step: float, seed: int = 0) -> None:
        self._robot, self._step = robot, step
        self._attempt = IkSolver(robot, max_restarts=1, random_seed=seed)
        self._rng = np.random.default_rng(seed)
        self._turn = np.where(np.isinf(robot.lower) & np.isinf(robot.upper), 2.0 * np.pi, 0.0)
        self._displacements = 1 if robot.n <= 6 else 2 if robot.n == 7 else 3

    def find(self, poses: Array) -> Array | None:
        """Return a continuous joint path (b, n) for poses (b, 4, 4), or None if none is found."""
        first = self._solutions(poses[0], self._robot.random(NUM_FIRST_STARTS, self._rng))[0]
        layers, parents = [self._thin(first)[0]], list[Array]()
        for a, b in pairwise(poses):
            before = layers[-1]
            source = np.tile(np.arange(len(before)), 1 + self._displacements)
            starts = before[source]
            width = self._rng.uniform(-self._step, self._step, starts.shape)
            width[: len(before)] = 0.0
            q, which = self._solutions(b, starts + width)
            q = self._near(q, before[source[which]])
            is_good = self._are_continuous(a, b, before[source[which]], q)
            q, kept = self._thin(q[is_good])
            if not len(q):
                return None
            layers.append(q)
            parents.append(source[which][is_good][kept])
        at, path = 0, [layers[-1][0]]
        for q, parent in zip(layers[-2::-1], parents[::-1], strict=True):
            at = int(parent[at])
            path.append(self._near(q[at : at + 1], path[-1][None])[0])
        return np.array(path[::-1])

    def _solutions(self, T: Array, starts: Array) -> tuple[Array, Array]:
        """Return the solutions (f, n) found from starts (s, n), and the indices of their starts."""
        found = self._attempt.solve_batch(np.tile(T, (len(starts), 1, 1)), starts)
        return found.q[found.success], np.flatnonzero(found.success)

    def _near(self, q: Array, others: Array) -> Array:
        """Return q (s, n) with unlimited joints shifted by full turns to be close to `others`."""
        turn = np.where(self._turn == 0.0, 1.0, self._turn)
        shift = np.where(self._turn == 0.0, 0.0, np.round((q - others) / turn))
        return q - shift * self._turn

    def _are_continuous(self, T_a: Array, T_b: Array, a: Array, b: Array) -> Flags:
        """Return whether the motions from a to b (s, n) are continuous, and within the steps."""
        length = np.abs(b - a).max(axis=1)
        is_good = length <= self._step
        for share in FRACTIONS:
            which = np.flatnonzero(is_good)
            T = _between(T_a, T_b, share)
            middle = (1.0 - share) * a[which] + share * b[which]
            q, solved = self._solutions(T, middle)
            is_good[which] = False
            off = np.abs(self._near(q, middle[solved]) - middle[solved]).max(axis=1, initial=0.0)
            allowed = MAX_DEVIATION[0] * length[which[solved]] + MAX_DEVIATION[1]
            is_good[which[solved[off <= allowed]]] = True
        return is_good

    def _thin(self, q: Array) -> tuple[Array, Array]:
        """Return at most `MAX_REACHED` configurations of q (s, n) on a grid, and their indices."""
        order = self._rng.permutation(len(q))
        wrapped = np.where(self._turn == 0.0, q, np.mod(q, 2.0 * np.pi))
        cells = np.floor(wrapped[order] / (SPACING_SHARE * self._step)).astype(np.int64)
        _, first = np.unique(cells, axis=0, return_index=True)
        kept = order[np.sort(first)[:MAX_REACHED]]
        return q[kept], kept


def _between(T_a: Array, T_b: Array, share: float) -> Array:
    """Return the pose (4, 4) at a share, 0 to 1, of the motion between two close poses."""
    T = (1.0 - share) * T_a + share * T_b
    T[:3, :3] = nearest_rotation(T[:3, :3])
    return T


def completeness_row(robot: RobotModel, paths: Sequence[RandomPath], step: float) -> list[Any]:
    """Return the table row of a robot: paths solved as a whole, and the exhaustive search.

    The exhaustive search runs only for the paths that the solver does not follow to the end.

    Args:
        robot: Robot with one tip.
        paths: Paths whose poses are all reachable.
        step: Maximum joint step between successive poses [rad or m].
    """
    solver, times, breaks, missed = IkSolver(robot), list[float](), Counter[str](), 0
    for path in paths:
        begin = time.process_time()
        result = solver.solve_path(path.poses, whole=True, max_joint_step=step)
        times.append(time.process_time() - begin)
        if result.fraction < 1.0:
            first = next(iter(result.reconfigurations), None)
            breaks["unreachable" if first is None else first.reason] += 1
            missed += ExhaustiveSearch(robot, step).find(path.poses) is not None
    reasons = ", ".join(f"{reason} {count}" for reason, count in sorted(breaks.items())) or "-"
    ms = 1e3 * np.array(times)
    return [
        robot.name, robot.n, len(paths), len(paths) - breaks.total(), breaks.total(), reasons,
        missed, float(np.median(ms)), float(ms.max()), sum(times),
    ]  # fmt: skip
