"""Kernels compiled, or loaded from disk, before anybody waits for them."""

import numpy as np

from dls_ik.model.dh import DhRow
from dls_ik.model.robot import RobotModel
from dls_ik.servo.controller import Controller
from dls_ik.solver import IkSolver


def use_kernels() -> None:
    """Solve and follow once. Any robot will do: kernels do not depend on it."""
    row = DhRow(a=1.0, alpha=0.5, d=0.1, lower=-2.0, upper=2.0)
    robot = RobotModel.from_dh([row, row])
    T = robot.fk(np.full(robot.n, 0.5))
    IkSolver(robot).solve(T)
    IkSolver(robot).solve(T + np.eye(4, k=3))  # beyond reach
    IkSolver(robot).solve(T, solve_type="distance")
    IkSolver(robot, "ctp").solve(T)  # the general step
    controller = Controller(robot)
    controller.follow_pose(T, 0.0)
    controller.cycle(0.0, 0.01)
    controller.follow_twist(np.ones(6), 0.0)
    controller.cycle(0.01, 0.01)
    controller.pause()
    controller.cycle(0.02, 0.01)  # brakes


if __name__ == "__main__":
    use_kernels()
