"""``solve_type="manipulability"``: of several solutions the one farthest from singularities."""

from itertools import pairwise

import numpy as np
import pytest
from wishes import WAM, assert_solutions, drawn, manipulability, robot_of

from dls_ik import IkSolver, Task

NAMES = ("wam", "fr3", "gen3", "puma560", "ur5e")


def measured(robot, result):
    return np.array([manipulability(robot, q) for q in result.q])


@pytest.mark.parametrize("seeded", [False, True], ids=["anywhere", "seeded"])
@pytest.mark.parametrize("name", NAMES)
def test_at_least_as_dextrous_as_the_first_solution(name, seeded):
    robot = robot_of(name)
    Ts, _, seeds = drawn(robot, 100)
    seeds = seeds if seeded else None
    solver = IkSolver(robot)
    first = solver.solve_batch(Ts, seeds)
    best = solver.solve_batch(Ts, seeds, solve_type="manipulability")
    assert_solutions(robot, Ts, best)
    ours, theirs = measured(robot, best), measured(robot, first)
    assert (ours >= theirs - 1e-9).all()
    if robot.n > 6:
        assert ours.mean() > 1.2 * theirs.mean()


def test_more_attempts_are_never_worse():
    Ts, _, seeds = drawn(WAM, 50)
    solvers = [
        IkSolver(WAM, solve_type="manipulability", num_candidates=count) for count in (1, 3, 10, 60)
    ]
    found = [measured(WAM, solver.solve_batch(Ts, seeds)) for solver in solvers]
    for fewer, more in pairwise(found):
        assert (more >= fewer - 1e-9).all()


def test_for_a_part_of_the_pose():
    Ts, _, seeds = drawn(WAM, 10)
    solver = IkSolver(WAM, task=Task.position_only(), num_candidates=20)
    first = solver.solve_batch(Ts, seeds)
    best = solver.solve_batch(Ts, seeds, solve_type="manipulability")
    assert best.success.all()

    def measure(q):
        return np.prod(np.linalg.svd(WAM.jacobian(q)[:3], compute_uv=False))

    for ours, theirs, T in zip(best.q, first.q, Ts, strict=True):
        assert WAM.within_limits(ours)
        assert np.linalg.norm(WAM.fk(ours)[:3, 3] - T[:3, 3]) <= 1.01e-6
        assert measure(ours) >= measure(theirs) - 1e-9
