# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Plans for trajectories of poses that are known in advance, before the arm follows them.

A trajectory is first followed step by step from the current joint positions, as local motion would
follow the trajectory. If this fails, the trajectory is solved as a whole, which finds the branch of
solutions on which the arm can follow all poses, or the pose at which all branches end.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.jit import MissingKernelError
from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array, Indices
from dls_ik.errors import SceneError
from dls_ik.model.joint import TURN
from dls_ik.model.robot import RobotModel
from dls_ik.servo.planner import submit
from dls_ik.solver import IkSolver
from dls_ik.solver.result import IkPathResult, Reconfiguration

MAX_POSE_DISTANCE = 0.02, 0.1  # [m] and [rad] maximum distance of successive poses that are solved
MAX_PLANNED_POSES = 2000  # maximum number of solved poses, if necessary at larger distances
MAX_PLANNED_STEP = 0.5  # [rad or m] maximum joint step between poses that are solved
PATH_SEARCH_TIMEOUT = 5.0  # [s] maximum duration of each search for a whole path
MAX_START_RESTARTS = 20  # maximum number of restarts of the solver for the first pose
OTHER_BRANCH = "not reachable on the current branch of solutions"
BREAKS = {
    "limit": "beyond the limit of {}",
    "collision": "in collision: {}",
    "singularity": "behind a singularity",
    "unreachable": "out of reach or in collision",
    "step": f"reached only by a joint step of more than {MAX_PLANNED_STEP:g} rad or m",
    "timeout": f"not reached within {PATH_SEARCH_TIMEOUT:g} s of search",
}


class JointGuide(NamedTuple):
    """Joint path along a trajectory, a function of the number of periods since its first pose."""

    at: Array  # (b,) ascending numbers of periods, from 0
    q: Array  # (b, n) joint positions [rad or m]

    def positions(self, periods: float) -> Array:
        """Return joint positions (n,) [rad or m] by cubic interpolation."""
        last = len(self.at) - 1
        if periods <= 0.0 or last == 0:
            return np.array(self.q[0])
        if periods >= self.at[last]:
            return np.array(self.q[last])
        k = int(np.searchsorted(self.at, periods, side="right")) - 1
        h = float(self.at[k + 1] - self.at[k])
        u = (periods - float(self.at[k])) / h
        a, b = self.q[k], self.q[k + 1]
        va, vb = h * self._slope(k), h * self._slope(k + 1)
        blend = (1.0 - u) * (va - (b - a)) - u * (vb - (b - a))
        q: Array = a + u * (b - a) + u * (1.0 - u) * blend
        return q

    def _slope(self, k: int) -> Array:
        """Return the rate of change (n,) per period at point k."""
        a, b = max(k - 1, 0), min(k + 1, len(self.at) - 1)
        slope: Array = (self.q[b] - self.q[a]) / (self.at[b] - self.at[a])
        return slope


class TrajectoryPlan(NamedTuple):
    """How the arm can follow a trajectory from its current joint positions."""

    guide: JointGuide | None = None  # None: local motion follows the trajectory, or no path exists
    # Why the arm cannot follow the trajectory, or not on its current branch; empty if it can
    reason: str = ""
    is_final: bool = True  # whether no search for other branches is pending


class AbandonedError(Exception):
    """Error inside a search whose result is not needed any more."""


class TrajectoryPlanner:
    """Plans trajectories of poses of one tip, outside the control loop.

    Args:
        robot: Robot with one tip.
        executor: Executor that plans; None: each request is planned at once.
        options: Tolerances, `task` and `scene`, as for :class:`dls_ik.IkSolver`.
    """

    def __init__(self, robot: RobotModel, executor: Executor | None, **options: Any) -> None:
        self._robot, self._executor = robot, executor
        self._step = IkSolver(robot, max_restarts=1, timeout=3600.0, **options)
        self._first = IkSolver(robot, max_restarts=MAX_START_RESTARTS, timeout=3600.0, **options)
        self._scene = self._step.scene
        self._unit = self._step.options.length_unit
        self._is_compiled = False  # whether a search has compiled or loaded all kernels
        self._requests = 0  # number of the newest request; older ones are abandoned

    def request(self, Ts: Array, q: Array) -> Future[TrajectoryPlan]:
        """Start to follow a trajectory step by step, without a search for other branches.

        If the steps do not reach all poses, the plan is not final: :meth:`request_search` follows.

        Args:
            Ts: (m, 4, 4) poses T_base_tip.
            q: (n,) joint positions before the trajectory [rad or m]; copied.
        """
        start, check = q.copy(), self._check()
        return self._submit(lambda: self.follow(Ts, start, check))

    def request_search(self, Ts: Array, q: Array) -> Future[TrajectoryPlan]:
        """Start to search for a joint path through all poses of a trajectory, on any branch.

        Args:
            Ts: (m, 4, 4) poses T_base_tip.
            q: (n,) joint positions before the trajectory [rad or m]; copied.
        """
        start, check = q.copy(), self._check()
        return self._submit(lambda: self.search(Ts, start, check))

    def _check(self) -> Callable[[int, int], None]:
        """Return a progress function that raises AbandonedError after :meth:`abandon`."""
        number = self._requests

        def check(done: int, count: int) -> None:
            if number != self._requests:
                raise AbandonedError

        return check

    def abandon(self) -> None:
        """End a running request soon; its result is an empty plan."""
        self._requests += 1

    def _submit(self, plan: Callable[[], TrajectoryPlan]) -> Future[TrajectoryPlan]:
        def work() -> TrajectoryPlan:
            try:
                return plan()
            except AbandonedError:
                return TrajectoryPlan()
            except (SceneError, MissingKernelError) as error:
                # An exact check needs a library, or kernels are still being compiled. The arm
                # follows the trajectory without a plan.
                return TrajectoryPlan(None, f"the trajectory was not planned: {error}")

        return submit(self._executor, work)

    def follow(
        self, Ts: Array, q: Array, progress: Callable[[int, int], None] | None = None
    ) -> TrajectoryPlan:
        """Follow a trajectory step by step, and return the plan.

        Args:
            Ts: (m, 4, 4) poses T_base_tip.
            q: (n,) joint positions before the trajectory [rad or m].
            progress: Function that is called with the number of reached poses and of all poses.

        Raises:
            SceneError: If an exact check of collisions needs a library that is not installed.
        """
        poses, at = self._densified(Ts)
        missed = self._first_missed(poses, q, progress)
        if missed is None:
            return TrajectoryPlan()
        return TrajectoryPlan(None, f"{_place(at[missed], len(Ts))} is {OTHER_BRANCH}", False)

    def search(
        self, Ts: Array, q: Array, progress: Callable[[int, int], None] | None = None
    ) -> TrajectoryPlan:
        """Search for a joint path through all poses of a trajectory.

        Args:
            Ts: (m, 4, 4) poses T_base_tip.
            q: (n,) joint positions [rad or m]. The path starts there if q reaches the first pose
                and such a path exists.
            progress: As for :meth:`dls_ik.IkSolver.solve_path`.

        Raises:
            SceneError: If an exact check of collisions needs a library that is not installed.
        """
        poses, at = self._densified(Ts)
        if not self._is_compiled:  # a compilation must not count as duration of the search
            self._first.solve_path(poses[:2], q, max_joint_step=MAX_PLANNED_STEP, whole=True)
            self._is_compiled = True
        path = self._whole_path(poses, q, progress)
        if path.fraction < 1.0 and np.allclose(path.q[0], q, rtol=0.0, atol=1e-3):
            # The path need not start at q.
            other = self._whole_path(poses, None, progress)
            path = other if other.fraction > path.fraction else path
        if path.fraction < 1.0:
            return TrajectoryPlan(None, _failure(path, at, len(Ts)))
        guide = JointGuide(at, path.q + self._turns(q - path.q[0]))
        return TrajectoryPlan(guide)

    def _densified(self, Ts: Array) -> tuple[Array, Array]:
        """Return poses (b, 4, 4) that include those of Ts (m, 4, 4), and their periods (b,)."""
        legs = [difference(a, b) for a, b in pairwise(Ts)]
        largest = np.repeat([MAX_POSE_DISTANCE[0] * self._unit, MAX_POSE_DISTANCE[1]], 3)
        counts = np.array([np.abs(leg / largest).max() for leg in legs])
        counts *= min(1.0, max(MAX_PLANNED_POSES - len(Ts), 1) / max(float(counts.sum()), 1.0))
        poses, at = [Ts[0]], [0.0]
        for k, (leg, count) in enumerate(zip(legs, np.ceil(counts).astype(int), strict=True)):
            for j in range(1, count):
                poses.append(moved(Ts[k], leg * (j / count)))
                at.append(k + j / count)
            poses.append(Ts[k + 1])
            at.append(k + 1.0)
        return np.ascontiguousarray(poses), np.array(at)

    def _first_missed(
        self, poses: Array, q: Array, progress: Callable[[int, int], None] | None
    ) -> int | None:
        """Return the index of the first pose (of b, 4, 4) that stepwise motion from q (n,) misses.

        The result is None if stepwise motion reaches all poses without jumps and collisions.
        """
        for i, T in enumerate(poses):
            if progress is not None:
                progress(i, len(poses))
            result = (self._step if i else self._first).solve(T, q)
            if not result.success or (i and np.abs(result.q - q).max() > MAX_PLANNED_STEP):
                return i
            if self._scene is not None and (
                self._scene.in_collision(result.q)
                or (i and self._scene.path_in_collision(q, result.q) is not None)
            ):
                return i
            q = result.q
        return None

    def _turns(self, change: Array) -> Array:
        """Return the full turns (n,) of joints without limits in a joint change (n,) [rad]."""
        return np.where(self._robot.continuous, TURN * np.round(change / TURN), 0.0)

    def _whole_path(
        self, poses: Array, q: Array | None, progress: Callable[[int, int], None] | None
    ) -> IkPathResult:
        return self._first.solve_path(
            poses,
            q,
            max_joint_step=MAX_PLANNED_STEP,
            progress=progress,
            whole=True,
            timeout=PATH_SEARCH_TIMEOUT,
        )


def _failure(path: IkPathResult, at: Array, count: int) -> str:
    """Return a message that names the first pose of a trajectory that a path misses, and why.

    Args:
        path: Path that is not continuous.
        at: (b,) numbers of periods of its poses.
        count: Number of poses of the trajectory.
    """
    missed: Indices = np.flatnonzero(~path.success)
    first: Reconfiguration | None = next(iter(path.reconfigurations), None)
    if len(missed) and (first is None or missed[0] <= first.pose):
        reason = "timeout" if not path.is_complete else "unreachable"
        return f"{_place(at[missed[0]], count)} is {BREAKS[reason]}"
    if first is None:
        return f"no continuous joint path through all {count} poses was found"
    index = min(first.last + 1, len(at) - 1) if path.is_complete else first.pose
    return f"{_place(at[index], count)} is {BREAKS[first.reason].format(', '.join(first.names))}"


def _place(periods: float, count: int) -> str:
    """Return the name of a pose of a trajectory, or of a pose between two of its poses.

    Args:
        periods: Number of periods from the first pose to the pose.
        count: Number of poses of the trajectory.
    """
    if periods == round(periods):
        return f"pose {round(periods)} (of 0 to {count - 1})"
    return f"a pose between {int(periods)} and {int(periods) + 1} (of 0 to {count - 1})"
