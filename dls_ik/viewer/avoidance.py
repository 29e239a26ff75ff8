# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Simulated arm of the viewer that avoids collisions by moving around obstacles or stopping."""

from __future__ import annotations

import math
from concurrent.futures import Future
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.servo import ServoState
from dls_ik.servo.joint_motion import MotionPlan, plan_motion
from dls_ik.servo.local_ik import default_method
from dls_ik.solver.hard_paths import BARE_STEP_DURATION
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.stepper import paced_stepper
from dls_ik.solver.task import Tasks
from dls_ik.viewer.redundancy import Redundancy
from dls_ik.viewer.source import NO_LEVELS, LocalSource, Sample, sample_at

# Joint speed on a planned path relative to the velocity limit. A joint without a velocity limit is
# treated as if its limit were 1 rad/s or m/s.
PATH_SPEED_SHARE = 0.5
# Minimum time [s] between two searches if scene or target have changed, and if they have not
NEW_SEARCH_INTERVAL, SAME_SEARCH_INTERVAL = 0.2, 2.0
NUM_STEP_CHECKS = 4  # number of configurations that are tested for collisions in each step
GOAL_TIMEOUT = 0.1  # time limit of the search for configurations at the target [s]
MAX_SEARCH_NODES = 1000  # maximum number of planner nodes in a search


class AvoidingSource(LocalSource):
    """Simulated arm that follows the target like :class:`LocalSource`, but avoids collisions.

    If the next step would collide, the arm stops, and another thread plans a joint path around the
    obstacle to a collision-free configuration at the target. Then the arm follows this path.

    Args:
        scene: Scene of the robot; each step uses the current state of the scene.
        robot, method, start, task, options: See :class:`LocalSource`.
    """

    def __init__(
        self,
        robot: RobotModel,
        scene: PlanningScene,
        method: str | None = None,
        start: Array | None = None,
        task: Tasks = None,
        redundancy: Redundancy = NO_LEVELS,
        **options: Any,
    ) -> None:
        self._scene = scene
        self._solver = self._planning_solver(robot, task)
        still = robot.clip(np.zeros(robot.n))
        self._probe = paced_stepper(robot, default_method(robot), still, BARE_STEP_DURATION, task)
        bounded = np.where(np.isfinite(robot.velocity), robot.velocity, 1.0)
        self._speed = PATH_SPEED_SHARE * bounded  # (n,) joint speeds on the path [rad/s or m/s]
        self._path: list[Array] = []  # remaining configurations (n,) of the planned path
        self._search: Future[MotionPlan] | None = None
        # Scene and target of the last search
        self._asked: tuple[SceneSnapshot, Array] | None = None
        self._again = -math.inf  # start time of the last search [s]
        self._pair: Pair | None = None  # pair that blocks the motion
        super().__init__(robot, method, start, task, redundancy, **options)

    def _planning_solver(self, robot: RobotModel, task: Tasks) -> IkSolver:
        """Return the solver of the goals of planned paths."""
        return IkSolver(
            robot, task=task, scene=self._scene, timeout=GOAL_TIMEOUT, solve_type="distance"
        )

    def set_redundancy(self, wanted: Redundancy) -> None:
        """Change levels and frozen joints; discard a planned path if the frozen joints change."""
        is_other = wanted.frozen != self.redundancy.frozen
        super().set_redundancy(wanted)
        if is_other:
            with self._lock:
                self._path, self._search = [], None

    def _arm_at(self, q: Array) -> RobotModel:
        """Return the robot with the limits of frozen joints narrowed to q (n,) [rad or m]."""
        frozen = self.redundancy.frozen
        if not frozen:
            return self.robot
        still = self.robot.clip(q)
        held = {name: x for name, x in self.robot.named(still).items() if name in frozen}
        return self.robot.narrowed(held, held, near=still)

    def place(self, q: Array) -> None:
        """Set the joint positions (n,) [rad or m] without motion, even if they are in collision."""
        super().place(q)
        self._path, self._pair = [], None

    def _move(self, now: float, dt: float) -> Sample:
        before, world = self._motion.q.copy(), self._scene.snapshot
        self._take_plan()
        if self._path:
            return self._follow_plan(now, dt, before, world)
        sample = super()._move(now, dt)
        self._pair = contact(world, before, sample.q)
        if self._pair is None:
            return sample
        self._motion.seed(before)
        self._start_search(now, before, world)
        return self._sample(
            now, before, np.zeros(self.robot.n), ServoState.STALLED, BLOCKED_MESSAGE
        )

    def _start_search(self, now: float, q: Array, world: SceneSnapshot) -> None:
        """Start a search for a path from q to the target, unless a search is running or was recent.

        Args:
            now: Time [s].
            q: (n,) current joint positions [rad or m].
            world: Current state of the scene.
        """
        target, asked = self._target, self._asked
        if target is None or self._search is not None:
            return
        is_same = asked is not None and asked[0] is world and np.array_equal(asked[1], target)
        if now >= self._again + (SAME_SEARCH_INTERVAL if is_same else NEW_SEARCH_INTERVAL):
            self._again, self._asked = now, (world, target)
            seed, arm = int(1e3 * max(now, 0.0)), self._arm_at(q)
            solver = self._solver
            if arm is not self.robot:
                solver = self._planning_solver(arm, self.task)
            self._search = self._executor.submit(
                plan_motion, solver, world, q, target, max_nodes=MAX_SEARCH_NODES, seed=seed
            )

    def _take_plan(self) -> None:
        if self._search is not None and self._search.done():
            plan, self._search = self._search.result(), None
            self._path = [*plan.path[1:]]

    def _follow_plan(self, now: float, dt: float, before: Array, world: SceneSnapshot) -> Sample:
        """Make one step along the planned path; discard the path if the step would collide.

        Args:
            now: Time [s].
            dt: Duration of the step [s].
            before: (n,) joint positions before the step [rad or m].
            world: Current state of the scene.
        """
        ahead = self._path[0] - before
        share = min(1.0, dt / max(float((np.abs(ahead) / self._speed).max()), 1e-9))
        q = before + share * ahead
        if world.colliding_pair(before) is None and contact(world, before, q) is not None:
            self._path, q = [], before
        elif share == 1.0:
            self._path.pop(0)
        self._motion.seed(q)
        return self._sample(now, q, (q - before) / dt, ServoState.JOINT_MOTION, AROUND_MESSAGE)

    def _sample(
        self, now: float, q: Array, velocity: Array, state: ServoState, words: str
    ) -> Sample:
        pair = " and ".join(self._pair) if self._pair else "an obstacle"
        return sample_at(self._probe, now, q, velocity, self._target, state, words.format(pair))


BLOCKED_MESSAGE, AROUND_MESSAGE = "stopped before a collision: {}", "moving around: {}"


def contact(world: SceneSnapshot, before: Array, q: Array) -> Pair | None:
    """Return the first pair that collides on the straight joint path to q, or None.

    Args:
        world: State of the scene.
        before: (n,) start of the path [rad or m].
        q: (n,) end of the path [rad or m].
    """
    steps = np.linspace(before, q, NUM_STEP_CHECKS + 1)[1:]
    for each in steps[world.in_collision(steps)]:
        return world.colliding_pair(each)
    return None
