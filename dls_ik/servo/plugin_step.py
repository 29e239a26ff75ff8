# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Local motion by a plug-in: one step of a user-defined method per cycle."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dls_ik.core.avoidance import approach_bounds, stopping_time
from dls_ik.core.near_pairs import ROWS, near_rows
from dls_ik.core.scene_arrays import unpack_scene
from dls_ik.core.step import error_and_jacobian
from dls_ik.core.types import Array, GeneralProblem, Indices, Method
from dls_ik.core.workspace import new_memory
from dls_ik.model.robot import RobotModel
from dls_ik.solver.plugins import MEMORY, Plugin, StepState, checked_step
from dls_ik.solver.problem import largest_errors

MAX_STEP_HALVINGS = 8  # halvings of a step that does not reduce the error
PLUGIN_TIMEOUT = 0.5  # [s] longest time of one step; the control cycle waits for the step
MAX_SWEEPS = 40  # iterations of the projection
PROJECTION_TOLERANCE = 1e-9  # [rad or m] change of the step in the last sweep


class NearRows(NamedTuple):
    """Distance constraints of local motion, for :func:`dls_ik.core.avoidance.follow_apart`."""

    scene: tuple[Array, Indices]  # packed scene
    reach: Array  # (p + s, n) largest approach of each pair per joint motion [m per rad or m]
    least: Array  # (p + s,) required distance of each pair [m]
    known: tuple[Array, Array]  # (p + s,) lower bounds of distances [m]; joint positions (n,)
    watched: tuple[Array, Array, Indices]  # bounds and joint positions at the command; leaves
    stop: tuple[Array, float]  # (n,) accelerations of a stop [rad/s^2 or m/s^2]; its delay [s]
    influence: float  # [m] distance below which a pair is a constraint
    leaves: Indices  # (ROWS, 4) pair, two leaves and a flag of each constraint; -1: none
    pace: Array  # (1,) duration of the stop in the last cycle [s]

    @classmethod
    def of(
        cls,
        scene: tuple[Array, Indices],
        reach: Array,
        least: Array,
        watched: tuple[Array, Array, Indices],
        stop: tuple[Array, float],
        influence: float,
    ) -> NearRows:
        """Return the constraints of a scene without known distances."""
        known = np.full(len(reach), -np.inf), np.zeros(len(stop[0]))
        leaves = np.full((ROWS, 4), -1)
        pace = np.full(1, -1.0)
        return cls(scene, reach, least, known, watched, stop, influence, leaves, pace)


class PluginStep:
    """Steps of a plug-in, within position and velocity limits, each of which reduces the error.

    In a scene the step becomes the closest step with which the arm can still stop before nearby
    pairs fall below their required distances (velocity dampers, Faverjon & Tournassoud 1987).

    Args:
        robot: Robot that moves.
        plugin: Plug-in that computes the steps.
        method: Any kernel method; sets the size of the kernels' memory.
        details: Task, weights and parameters of the method.

    Attributes:
        limiting_pair: Index of the pair that changed the last step most, -1 for none.
    """

    def __init__(
        self, robot: RobotModel, plugin: Plugin, method: Method, details: GeneralProblem
    ) -> None:
        self._robot, self._plugin, self._details = robot, plugin, details
        self._kernel_memory = new_memory(robot.chain, method, details)
        self.restart()

    def restart(self) -> None:
        """Start a new attempt: clear the plug-in's memory and its iteration count."""
        self._memory, self._count, self.limiting_pair = np.zeros(MEMORY), 0, -1

    def advance(
        self, q: Array, T_d: Array, dt: float, near: NearRows | None = None
    ) -> tuple[Array, list[float]] | None:
        """Step from q for `dt` [s].

        Args:
            q: (n,) joint positions within the limits [rad or m].
            T_d: (k, 4, 4) target poses.
            dt: Duration of the step [s].
            near: Distance constraints; None without a scene.

        Returns:
            The joint positions (n,) after the step, and four numbers: position and rotation error
            there, smallest and largest singular value of the scaled Jacobian at q. None if no
            part of the step reduces the error.

        Raises:
            MethodError: If the plug-in fails.
        """
        robot = self._robot
        e, J = self._error_and_jacobian(q, T_d)
        state = StepState(q.copy(), robot.lower, robot.upper, self._count, self._memory)
        self._count += 1
        dq = checked_step(self._plugin, J.copy(), e.copy(), state, PLUGIN_TIMEOUT)
        share = float(np.max(np.abs(dq) / (robot.velocity * dt), initial=1.0))
        dq, self.limiting_pair = dq / share, -1
        if near is not None:
            dq = self._avoid_pairs(q, dq, dt, near)
        for _ in range(MAX_STEP_HALVINGS):
            q_new = np.clip(q + dq, robot.lower, robot.upper)
            e_new, _ = self._error_and_jacobian(q_new, T_d)
            if e_new @ e_new < e @ e:
                s = np.linalg.svd(J, compute_uv=False)
                errors = largest_errors(self._details.task, e_new)
                return q_new, [*errors.tolist(), float(s[-1]), float(s[0])]
            dq = 0.5 * dq
        return None

    def _avoid_pairs(self, q: Array, dq: Array, dt: float, near: NearRows) -> Array:
        """Return the step (n,) closest to dq that meets all distance constraints and limits."""
        robot, n = self._robot, self._robot.n
        N, clearance, pair = np.empty((ROWS, n)), np.empty(ROWS), np.empty(ROWS, np.int64)
        found = (N, clearance, pair)
        place = (near.known, near.watched, q, near.influence, near.leaves)
        count = near_rows(unpack_scene(*near.scene), near.reach, near.least, *place, *found)
        near.pace[0] = -1.0  # kernels that continue start without the duration of a stop
        if not count:
            return dq
        b = np.empty(count)
        approach_bounds(near.stop, dt, stopping_time(near.stop, dt, dq), clearance[:count], b)
        low = np.maximum(-robot.velocity * dt, np.minimum(robot.lower - q, 0.0))
        high = np.minimum(robot.velocity * dt, np.maximum(robot.upper - q, 0.0))
        missing = b - N[:count] @ dq
        if missing.max() <= PROJECTION_TOLERANCE:
            return dq
        self.limiting_pair = int(pair[missing.argmax()])
        return _project_step(dq, N[:count], b, low, high)

    def _error_and_jacobian(self, q: Array, T_d: Array) -> tuple[Array, Array]:
        """Return the scaled error (r,) and Jacobian (r, n) at q."""
        details = self._details
        r = len(details.task.weight)
        e, J = np.empty(r), np.empty((r, self._robot.n))
        error_and_jacobian(self._robot.chain, details, self._kernel_memory, T_d, q, e, J)
        return e, J


def _project_step(dq: Array, N: Array, b: Array, low: Array, high: Array) -> Array:
    """Return the step (n,) closest to dq with N dq >= b within bounds low and high (n,).

    Hildreth's method: projects onto one row after another, each with a multiplier.

    Args:
        dq: (n,) step [rad or m].
        N: (r, n) constraints, rows of unit length.
        b: (r,) lower bounds of N dq.
        low: (n,) smallest step.
        high: (n,) largest step.
    """
    dq, multipliers, box = dq.copy(), np.zeros(len(b)), np.zeros_like(dq)
    for _ in range(MAX_SWEEPS):
        before = dq.copy()
        for i, row in enumerate(N):
            step = max(b[i] - row @ dq, -multipliers[i])
            multipliers[i] += step
            dq += step * row
        free = dq - box
        dq = np.clip(free, low, high)
        box = dq - free
        if np.abs(dq - before).max() <= PROJECTION_TOLERANCE:
            break
    return dq
