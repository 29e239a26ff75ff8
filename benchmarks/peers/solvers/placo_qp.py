"""placo: one quadratic program for each step, with the joint limits as its constraints.

It is made for streams of targets; here steps are repeated until the pose is reached, with random
restarts. A soft frame task of weight 1 and the default regularization of 1e-8.
"""

import tempfile
from pathlib import Path

import numpy as np
import placo

from benchmarks.peers.arm import TIP, Arm
from benchmarks.peers.solver import RESTARTS_SEED, TOLERANCE, Solver, one_by_one, until

ITERATIONS = 12  # of an attempt: the best of 8, 10, 12, 15, 20 and 30 on the WAM
SECONDS = 0.2  # for a pose: a step takes tens of microseconds


class Stepper:
    """The robot, the task, and the loop over steps."""

    def __init__(self, arm: Arm, folder: str) -> None:
        Path(folder, "robot.urdf").write_text(_limited(arm).urdf())
        self.robot = placo.RobotWrapper(folder, placo.Flags.ignore_collisions)
        self.arm, self.offset = arm, 7  # of the floating base
        self.solver = placo.KinematicsSolver(self.robot)
        self.solver.mask_fbase(True)
        self.solver.enable_joint_limits(True)
        self.task = self.solver.add_frame_task(TIP, np.eye(4))
        self.task.configure("tip", "soft", 1.0, 1.0)
        self.solver.add_regularization_task(1e-8)
        self.rng = np.random.default_rng(RESTARTS_SEED)

    def solve(self, T: np.ndarray, seed: np.ndarray) -> np.ndarray | None:
        """Attempts from the seed and from random values, until one succeeds or the time is up."""
        self.task.T_world_frame = T
        start = seed
        for attempt in until(SECONDS):
            if attempt:
                start = self.arm.random(self.rng, 1)[0]
            found = self.attempt(start)
            if found is not None:
                return found
        return None

    def attempt(self, start: np.ndarray) -> np.ndarray | None:
        """Steps until both errors are within the tolerance."""
        robot = self.robot
        q = robot.state.q.copy()
        q[self.offset :] = start
        robot.state.q = q
        position, orientation = self.task.position(), self.task.orientation()
        for _ in range(ITERATIONS):
            robot.update_kinematics()
            position.update()
            orientation.update()
            if max(position.error_norm(), orientation.error_norm()) < TOLERANCE:
                return robot.state.q[self.offset :].copy()
            try:
                self.solver.solve(True)
            except RuntimeError:  # the program has no solution
                return None
        return None


def _limited(arm: Arm) -> Arm:
    """Ten turns for joints without limits, which have two coordinates otherwise."""
    width = np.where(arm.endless, 10.0 * np.pi, 0.0)
    lower, upper = arm.lower - width, arm.upper + width
    return arm._replace(lower=lower, upper=upper, endless=np.zeros(arm.n, bool))


def solvers(arm: Arm) -> dict[str, Solver]:
    """One row."""
    with tempfile.TemporaryDirectory() as folder:
        stepper = Stepper(arm, folder)
    setting = f"steps of its QP, {ITERATIONS} an attempt, joint limits on, restarts for {SECONDS} s"
    return {"placo, restarts": Solver(one_by_one(stepper.solve), setting)}
