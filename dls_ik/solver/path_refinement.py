# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Refinement of a joint path along its self-motion: all configurations are moved together.

Each iteration computes displacements in the null spaces that shorten the motions
(:mod:`dls_ik.core.path_refinement`), and attempts of the solver bring the tips back to their poses.
Configurations whose displacement leads to a collision, a limit or a jump are held by an increasing
weight of their displacements, and the iteration is repeated.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from dls_ik.core.path_refinement import null_bases, smoothing_step
from dls_ik.core.types import Array, Flags
from dls_ik.solver.method import AUTO_METHOD, parse_method
from dls_ik.solver.path_candidates import CandidateGraph, JointSequence
from dls_ik.solver.problem import build_details
from dls_ik.solver.search import found

MAX_REFINEMENT_STEPS = 30
MIN_DECREASE = 0.01  # relative decrease of the objective below which the refinement ends
# Weights of displacements, relative to the mean weight of the motions: FIRST_STAY is the initial
# weight, STAY_FACTOR multiplies it after a rejected displacement, and a configuration with a weight
# above MAX_STAY is fixed
FIRST_STAY, STAY_FACTOR, MAX_STAY = 1e-4, 100.0, 1e3
HELD_STAY = 1e6  # weight of the displacements of configurations that do not move
MAX_DISPLACEMENT = 0.3  # [rad or m] maximum displacement of a joint in an iteration
MIN_INTERVAL_SHARE = 0.1  # minimum length of a path segment relative to the mean length


class RefinedPath(NamedTuple):
    """Joint path, and its errors."""

    q: Array  # (s, n) [rad or m]
    figures: Array  # (s, 3) errors and measure of the configurations, as in Rows


class PathRefiner:
    """Refinement of the best sequence of a graph.

    Args:
        graph: Graph.
        sequence: Sequence of candidates.
        is_start_fixed: Whether the first configuration must not change.
    """

    def __init__(
        self, graph: CandidateGraph, sequence: JointSequence, is_start_fixed: bool
    ) -> None:
        self._graph, self._is_jump = graph, sequence.is_jump
        search = graph.plain
        self._search, self._poses = search, np.ascontiguousarray(graph.poses[sequence.poses])
        self._scale = np.sqrt(graph.steps.weights)
        choice = parse_method(AUTO_METHOD)
        self._details = build_details(search.robot, choice, search.options, search.tasks)
        tolerance = self._details.task.tolerance
        self._free = max(search.robot.n - int(np.count_nonzero(tolerance == 0.0)), 0)
        self._pull = self._weights()
        self._unit = float(self._pull.mean()) if self._pull.any() else 1.0
        self._stay = np.full(len(sequence.q), FIRST_STAY * self._unit)
        if is_start_fixed:
            self._stay[0] = np.inf

    def _weights(self) -> Array:
        """Return the weights (s - 1,) of the motions: 0 for jumps, larger for shorter segments."""
        moved = np.diff(self._poses[:, :, :3, 3], axis=0)
        turned = np.diff(self._poses[:, :, :3, :3], axis=0)
        weight = self._search.options.rotation_weight
        length = np.linalg.norm(moved, axis=2).max(axis=1, initial=0.0)
        angle = np.sqrt(0.5) * np.linalg.norm(turned, axis=(2, 3)).max(axis=1, initial=0.0)
        length += weight * angle
        mean = float(length.mean()) if len(length) else 0.0
        shares = np.ones(len(length)) if mean == 0.0 else length / mean
        return np.where(self._is_jump[1:], 0.0, 1.0 / np.maximum(shares, MIN_INTERVAL_SHARE))

    def hold(self, which: Flags) -> None:
        """Fix the configurations marked in `which` (s,) during later refinements."""
        self._stay[which] = np.inf

    def refine(self, q: Array) -> RefinedPath:
        """Refine a path q (s, n) of solutions, and return the refined path."""
        q, figures, is_good = self._project(q)
        if not is_good.all() or self._free == 0 or len(q) < 2:
            return RefinedPath(q, figures)
        value = self._objective(q)
        for _ in range(MAX_REFINEMENT_STEPS):
            if time.perf_counter() > self._graph.until:
                break
            there, is_good = self._trial(q)
            after = self._objective(there)
            if not is_good.all():
                self._stay[~is_good] *= STAY_FACTOR
            elif not after < value:
                self._stay *= STAY_FACTOR
            else:
                q, decrease, value = there, value - after, after
                if decrease < MIN_DECREASE * value:
                    break
        return RefinedPath(*self._project(q)[:2])

    def _objective(self, q: Array) -> float:
        motion = np.diff(q * self._scale, axis=0)
        return float(self._pull @ (motion**2).sum(axis=1))

    def _trial(self, q: Array) -> tuple[Array, Flags]:
        """Return displaced configurations (s, n), and whether each is acceptable (s,).

        An acceptable configuration solves its pose within the joint limits, is collision-free, and
        is within the maximum joint steps of its neighbours.
        """
        robot, problem = self._search.robot, self._search.problem
        bases = np.empty((*q.shape, self._free))
        null_bases(robot.chain, problem.method, self._details, self._poses, q, self._scale, bases)
        is_held = self._stay > MAX_STAY * self._unit
        stay = np.where(is_held, HELD_STAY * self._unit, self._stay)
        moved = smoothing_step(q * self._scale, bases, self._pull, stay) / self._scale
        moved *= min(1.0, MAX_DISPLACEMENT / max(float(np.abs(moved).max()), MAX_DISPLACEMENT))
        there, _, is_good = self._project(np.clip(q + moved, robot.lower, robot.upper))
        there[is_held], is_good[is_held] = q[is_held], True
        change = np.abs(np.diff(there, axis=0))
        is_far = (change > self._graph.steps.step).any(axis=1) & ~self._is_jump[1:]
        is_good[1:] &= ~is_far
        is_good[:-1] &= ~is_far
        which = np.flatnonzero(is_good & ~is_held)
        is_good[which] = self._graph.are_free(there[which], self._graph.has_margin)
        return there, is_good

    def _project(self, q: Array) -> tuple[Array, Array, Flags]:
        """Return the solutions (s, n) found from q (s, n), their errors, and which were found."""
        rows = self._search.new_rows(len(q))
        self._search.attempt(self._poses, q, 1, rows)
        return rows.best, rows.figures, found(rows) & self._search.is_inside(rows.best)
