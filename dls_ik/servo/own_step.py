"""A cycle of following a target by a method of the user's own, a plug-in."""

from __future__ import annotations

import numpy as np

from dls_ik.core.step import error_and_jacobian
from dls_ik.core.types import Array, GeneralProblem, Method
from dls_ik.core.workspace import new_memory
from dls_ik.model.robot import RobotModel
from dls_ik.solver.plugins import MEMORY, Plugin, StepState, checked_step
from dls_ik.solver.problem import largest_errors

HALVINGS = 8  # of a step that would lead away from the target, before it is left out


class OwnStep:
    """The steps of a plug-in, within limits of position and velocity, lowering the error.

    Args:
        method: any of the kernels, for its memory.
    """

    def __init__(
        self, robot: RobotModel, plugin: Plugin, method: Method, details: GeneralProblem
    ) -> None:
        self._robot, self._plugin, self._details = robot, plugin, details
        self._kernel_memory = new_memory(robot.chain, method, details)
        self.restart()

    def restart(self) -> None:
        """Begin an attempt: an empty memory, and iteration 0."""
        self._memory, self._count = np.zeros(MEMORY), 0

    def advance(self, q: Array, T_d: Array, dt: float) -> tuple[Array, list[float]] | None:
        """Return where a step of `dt` [s] leads, and the figures there; None: nowhere nearer.

        Args:
            q: (n,) within the limits.
            T_d: (k, 4, 4).

        Returns:
            (n,), and 4 numbers: position and rotation error there, least and greatest singular
            value of the scaled Jacobian at q.

        Raises:
            MethodError: the plug-in fails.
        """
        robot = self._robot
        e, J = self._look(q, T_d)
        state = StepState(q.copy(), robot.lower, robot.upper, self._count, self._memory)
        self._count += 1
        dq = checked_step(self._plugin, J.copy(), e.copy(), state)
        share = float(np.max(np.abs(dq) / (robot.velocity * dt), initial=1.0))
        dq = dq / share
        for _ in range(HALVINGS):
            there = np.clip(q + dq, robot.lower, robot.upper)
            left, _ = self._look(there, T_d)
            if left @ left < e @ e:
                s = np.linalg.svd(J, compute_uv=False)
                errors = largest_errors(self._details.task, left)
                return there, [*errors.tolist(), float(s[-1]), float(s[0])]
            dq = 0.5 * dq
        return None

    def _look(self, q: Array, T_d: Array) -> tuple[Array, Array]:
        """Return the scaled error (r,) and Jacobian (r, n) at q."""
        details = self._details
        r = len(details.task.weight)
        e, J = np.empty(r), np.empty((r, self._robot.n))
        error_and_jacobian(self._robot.chain, details, self._kernel_memory, T_d, q, e, J)
        return e, J
