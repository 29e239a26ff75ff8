"""What is handed to the kernels where the options say nothing, and where they do."""

import numpy as np
import pytest
from robots import joint, urdf

from dls_ik.model import RobotModel
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.problem import build_details
from dls_ik.solver.task import Task, build_task

WAM = RobotModel.wam()
WHEEL = RobotModel.from_urdf(
    urdf(
        "a b c",
        joint("turn", "continuous", parent="a", child="b"),
        joint("j", "prismatic", parent="b", child="c"),
    )
)


def details(robot=WAM, task=None, **options):
    return build_details(robot, parse_method("jp"), SolverOptions(**options), task)


@pytest.mark.parametrize("robot", [WAM, WHEEL], ids=["wam", "wheel"])
def test_the_posture_is_the_middle_of_the_limits(robot):
    lower, upper = robot.finite_limits()
    middle = [
        0.5 * (a + b) if limited else 0.0
        for a, b, limited in zip(lower, upper, robot.limited, strict=True)
    ]
    np.testing.assert_array_equal(details(robot, Task("x", "")).reference, middle)
    own = np.linspace(0.1, 0.2, robot.n)
    np.testing.assert_array_equal(
        details(robot, Task("x", ""), reference=tuple(own)).reference, own
    )


@pytest.mark.parametrize("task", [None, Task.position_only(), Task("zx", "y")])
def test_the_direction_is_the_last_row(task):
    r = 6 if task is None else task.rows
    np.testing.assert_array_equal(details(WAM, task).direction, [*np.zeros(r - 1), 1.0])
    given = details(WAM, task, direction=(3.0, 4.0, *np.zeros(r - 2))).direction
    np.testing.assert_allclose(given, [0.6, 0.8, *np.zeros(r - 2)], atol=1e-15)


def test_lengths_are_in_the_unit_of_the_robot():
    given = details(WAM, obstacle=(0.1, -0.2, 0.3), influence=0.4, length_unit=1000.0)
    np.testing.assert_array_equal(given.obstacle, [100.0, -200.0, 300.0])
    assert given.settings.influence == 400.0


def test_a_row_beyond_its_slack_is_brought_inside():
    built = build_task(WAM, Task(position_tolerance=(0.0, 0.1, 0.2)), 0.5)
    np.testing.assert_array_equal(built.aim[[0, 3, 4, 5]], 0.0)
    assert (built.aim[1:3] < built.slack[1:3]).all()
    assert (built.aim[1:3] > 0.9 * built.slack[1:3]).all()


@pytest.mark.parametrize(("angles", "component"), [("euler", 4), ("vector", None)])
def test_a_slack_that_no_angle_is_beyond_bounds_nothing(angles, component):
    """The second of three angles is never beyond a quarter turn, the others a half turn."""
    for k in (3, 4, 5):
        largest = np.pi / 2 if k == component else np.pi
        for slack, is_row in ((0.999 * largest, True), (largest, False)):
            each = np.zeros(3)
            each[k - 3] = slack
            built = build_task(WAM, Task(rotation_tolerance=tuple(each), angles=angles), 0.5)
            assert (k in built.component) == is_row
