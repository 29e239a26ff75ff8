"""A cycle of following a target by a method of the user's own, a plug-in."""

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

HALVINGS = 8  # of a step that would lead away from the target, before it is left out
LONGEST = 0.5  # [s] of a step, as the arm waits for it
SWEEPS, CONVERGED = 40, 1e-9  # of the projection [rad or m]


class NearRows(NamedTuple):
    """Pairs that local motion keeps apart, for :func:`dls_ik.core.avoidance.follow_apart`."""

    scene: tuple[Array, Indices]  # packed
    reach: Array  # (p + s, n)
    least: Array  # (p + s,) distance that each pair keeps [m]
    known: tuple[Array, Array]  # (p + s,) bounds of the distances [m] at joint values (n,)
    watched: tuple[Array, Array, Indices]  # the same of the command, as it was seen last
    stop: tuple[Array, float]  # (n,) its accelerations [rad/s^2 or m/s^2]; begins so late [s]
    influence: float  # [m]
    leaves: Indices  # (ROWS, 4)
    pace: Array  # (1,) time of the stop in the last cycle [s]

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
        """Return the rows of a scene of which nothing is known yet."""
        known = np.full(len(reach), -np.inf), np.zeros(len(stop[0]))
        leaves = np.full((ROWS, 4), -1)
        pace = np.full(1, -1.0)
        return cls(scene, reach, least, known, watched, stop, influence, leaves, pace)


class OwnStep:
    """The steps of a plug-in, within limits of position and velocity, lowering the error.

    In a scene the step becomes the nearest one that lets pairs which are near come no nearer than
    they can stop (velocity dampers, Faverjon & Tournassoud 1987).

    Args:
        method: any of the kernels, for its memory.

    Attributes:
        hindrance: the pair that changed the last step most, -1 for none.
    """

    def __init__(
        self, robot: RobotModel, plugin: Plugin, method: Method, details: GeneralProblem
    ) -> None:
        self._robot, self._plugin, self._details = robot, plugin, details
        self._kernel_memory = new_memory(robot.chain, method, details)
        self.restart()

    def restart(self) -> None:
        """Begin an attempt: an empty memory, and iteration 0."""
        self._memory, self._count, self.hindrance = np.zeros(MEMORY), 0, -1

    def advance(
        self, q: Array, T_d: Array, dt: float, near: NearRows | None = None
    ) -> tuple[Array, list[float]] | None:
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
        dq = checked_step(self._plugin, J.copy(), e.copy(), state, LONGEST)
        share = float(np.max(np.abs(dq) / (robot.velocity * dt), initial=1.0))
        dq, self.hindrance = dq / share, -1
        if near is not None:
            dq = self._kept_apart(q, dq, dt, near)
        for _ in range(HALVINGS):
            there = np.clip(q + dq, robot.lower, robot.upper)
            left, _ = self._look(there, T_d)
            if left @ left < e @ e:
                s = np.linalg.svd(J, compute_uv=False)
                errors = largest_errors(self._details.task, left)
                return there, [*errors.tolist(), float(s[-1]), float(s[0])]
            dq = 0.5 * dq
        return None

    def _kept_apart(self, q: Array, dq: Array, dt: float, near: NearRows) -> Array:
        """Return the nearest step (n,) that keeps the rows of near pairs, and all limits."""
        robot, n = self._robot, self._robot.n
        N, room, pair = np.empty((ROWS, n)), np.empty(ROWS), np.empty(ROWS, np.int64)
        found = (N, room, pair)
        place = (near.known, near.watched, q, near.influence, near.leaves)
        count = near_rows(unpack_scene(*near.scene), near.reach, near.least, *place, *found)
        near.pace[0] = -1.0  # kernels that take over know no stop before
        if not count:
            return dq
        b = np.empty(count)
        approach_bounds(near.stop, dt, stopping_time(near.stop, dt, dq), room[:count], b)
        low = np.maximum(-robot.velocity * dt, np.minimum(robot.lower - q, 0.0))
        high = np.minimum(robot.velocity * dt, np.maximum(robot.upper - q, 0.0))
        missing = b - N[:count] @ dq
        if missing.max() <= CONVERGED:
            return dq
        self.hindrance = int(pair[missing.argmax()])
        return _projected(dq, N[:count], b, low, high)

    def _look(self, q: Array, T_d: Array) -> tuple[Array, Array]:
        """Return the scaled error (r,) and Jacobian (r, n) at q."""
        details = self._details
        r = len(details.task.weight)
        e, J = np.empty(r), np.empty((r, self._robot.n))
        error_and_jacobian(self._robot.chain, details, self._kernel_memory, T_d, q, e, J)
        return e, J


def _projected(dq: Array, N: Array, b: Array, low: Array, high: Array) -> Array:
    """Return the step (n,) nearest to dq with N dq >= b, rows of unit length, and low, high (n,).

    Hildreth's method: each row in turn, with its multiplier.
    """
    dq, multipliers, box = dq.copy(), np.zeros(len(b)), np.zeros_like(dq)
    for _ in range(SWEEPS):
        before = dq.copy()
        for i, row in enumerate(N):
            step = max(b[i] - row @ dq, -multipliers[i])
            multipliers[i] += step
            dq += step * row
        free = dq - box
        dq = np.clip(free, low, high)
        box = dq - free
        if np.abs(dq - before).max() <= CONVERGED:
            break
    return dq
