# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Local motion by a plug-in: in each cycle, one step of a user-defined IK method."""

from __future__ import annotations

import numpy as np

from dls_ik.core.near_pairs import NearRows
from dls_ik.core.step import error_and_jacobian
from dls_ik.core.types import Array, GeneralProblem, Method
from dls_ik.core.workspace import new_memory
from dls_ik.model.robot import RobotModel
from dls_ik.servo.near_constraints import near_constraints
from dls_ik.solver.plugins import MEMORY, Plugin, StepState, checked_step
from dls_ik.solver.problem import largest_errors

MAX_STEP_HALVINGS = 8  # maximum number of halvings of a step that does not reduce the error
PLUGIN_TIMEOUT = 0.5  # [s] longest time of one step; the control cycle waits for the step
MAX_SWEEPS = 40  # maximum number of iterations over all constraints
PLUGIN_STEP_TOLERANCE = 1e-9  # [rad or m] change of the step in an iteration that ends the search


class PluginStep:
    """Computes steps by a plug-in, within position and velocity limits.

    Only steps that reduce the error are taken. With a scene, each step of the plug-in is replaced
    by the closest step after which the arm can still stop in time: before any nearby pair is closer
    than its required distance (velocity dampers, Faverjon & Tournassoud 1987).

    Args:
        robot: Robot that moves.
        plugin: Plug-in that computes the steps.
        method: Any built-in method; it only determines the size of the kernels' memory.
        details: Task, weights and parameters of the method.
        mobility: (n,) factors of the joint motions, 0 for frozen joints.

    Attributes:
        limiting_pair: Index of the pair whose distance constraint changed the last step most; -1 if
            no constraint changed the step.
    """

    def __init__(
        self,
        robot: RobotModel,
        plugin: Plugin,
        method: Method,
        details: GeneralProblem,
        mobility: Array,
    ) -> None:
        self._robot, self._plugin, self._details = robot, plugin, details
        self._mobility = mobility
        self._kernel_memory = new_memory(robot.chain, method, details)
        self.restart()

    def restart(self) -> None:
        """Start a new motion: clear the plug-in's memory and its iteration count."""
        self._memory, self._count, self.limiting_pair = np.zeros(MEMORY), 0, -1

    def advance(
        self, q: Array, T_d: Array, dt: float, near: NearRows | None = None
    ) -> tuple[Array, list[float]] | None:
        """Return the joint positions after a step of the plug-in toward the target poses.

        Args:
            q: (n,) joint positions before the step, within the limits [rad or m].
            T_d: (k, 4, 4) target poses.
            dt: Duration of the cycle [s].
            near: Minimum distances as constraints on the step; None without a scene.

        Returns:
            The joint positions (n,) after the step [rad or m], and a list of four numbers: the
            position error [m] and the rotation error [rad] after the step, and the smallest and the
            largest singular value of the scaled Jacobian at `q`. None instead of both if neither
            the step nor a shorter step in its direction reduces the error.

        Raises:
            MethodError: If the plug-in fails.
        """
        robot = self._robot
        e, J = self._error_and_jacobian(q, T_d)
        state = StepState(q.copy(), robot.lower, robot.upper, self._count, self._memory)
        self._count += 1
        J *= self._mobility
        dq = checked_step(self._plugin, J.copy(), e.copy(), state, PLUGIN_TIMEOUT) * self._mobility
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
        """Return the step (n,) closest to `dq` that satisfies all distance and joint limits.

        Args:
            q: (n,) joint positions before the step [rad or m].
            dq: (n,) step of the plug-in [rad or m].
            dt: Duration of the cycle [s].
            near: Minimum distances as constraints on the step.
        """
        robot = self._robot
        N, b, pair = near_constraints(near, q, dq, dt)
        N = N * (self._mobility > 0.0)
        near.pace[0] = -1.0  # kernels do not use a braking time of the previous cycle
        if not len(b):
            return dq
        low = np.maximum(-robot.velocity * dt, np.minimum(robot.lower - q, 0.0))
        high = np.minimum(robot.velocity * dt, np.maximum(robot.upper - q, 0.0))
        missing = b - N @ dq
        if missing.max() <= PLUGIN_STEP_TOLERANCE:
            return dq
        self.limiting_pair = int(pair[missing.argmax()])
        return _project_step(dq, N, b, low, high)

    def _error_and_jacobian(self, q: Array, T_d: Array) -> tuple[Array, Array]:
        """Return the error (r,) and the Jacobian (r, n) at q (n,), scaled by the task's weights."""
        details = self._details
        r = len(details.task.weight)
        e, J = np.empty(r), np.empty((r, self._robot.n))
        error_and_jacobian(self._robot.chain, details, self._kernel_memory, T_d, q, e, J)
        return e, J


def _project_step(dq: Array, N: Array, b: Array, low: Array, high: Array) -> Array:
    """Return the step x (n,) closest to `dq` that satisfies N x >= b and low <= x <= high.

    Hildreth's method projects the step onto one constraint after another, with one Lagrange
    multiplier per constraint, until the step no longer changes.

    Args:
        dq: (n,) step [rad or m].
        N: (r, n) constraint matrix with rows of unit length.
        b: (r,) lower bounds on N x [rad or m].
        low: (n,) smallest step [rad or m].
        high: (n,) largest step [rad or m].
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
        if np.abs(dq - before).max() <= PLUGIN_STEP_TOLERANCE:
            break
    return dq
