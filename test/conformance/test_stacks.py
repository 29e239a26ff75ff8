# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Every method on random task stacks: lower levels never change the first level."""

import numpy as np
import pytest
from cases import NAMES, WAM

from dls_ik import CouplingTask, IkSolver, PostureTask, SwivelTask, Task, TaskStack
from dls_ik.core.se3 import difference
from dls_ik.servo.local_ik import LocalIk

UNCHANGED = 1e-9  # [m or rad] largest change of the error of the first level
DT = 0.002
FIRST = {"pose": Task(), "position": Task.position_only(), "pointing": Task.pointing("z")}


def random_level(rng):
    """Return one or two of a posture, a swivel angle and a coupling of joints."""
    names = WAM.joint_names
    some = rng.choice(names, size=rng.integers(1, 8), replace=False)
    one, other = rng.choice(names, size=2, replace=False)
    kinds = [
        PostureTask(dict(zip(some.tolist(), rng.normal(size=len(some)).tolist(), strict=True))),
        SwivelTask(rng.uniform(-1.0, 1.0), weight=rng.uniform(0.5, 2.0)),
        CouplingTask({str(one): 1.0, str(other): rng.uniform(-2.0, 2.0)}, rng.normal()),
    ]
    return [kinds[k] for k in rng.choice(3, size=rng.integers(1, 3), replace=False)]


def random_stack(rng, first):
    levels = [random_level(rng) for _ in range(rng.integers(1, 4))]
    if rng.random() < 0.5:
        levels[-1].append(PostureTask(rng.normal(size=7)))
    seen, distinct = False, []
    for level in levels:  # a stack has one swivel angle at most
        kept = [task for task in level if not (seen and isinstance(task, SwivelTask))]
        seen = seen or any(isinstance(task, SwivelTask) for task in level)
        distinct += [kept] if kept else []
    return TaskStack(first, *(distinct or [PostureTask(np.zeros(7))]))


def place(rng):
    """Return a configuration inside the limits, away from singularities."""
    lower, upper = WAM.finite_limits()
    while True:
        q = lower + (0.2 + 0.6 * rng.random(7)) * (upper - lower)
        if np.linalg.svd(WAM.jacobian(q))[1][-1] > 0.1:
            return q


def errors(first, q, T):
    """Return the errors of the axes that count (r,), [m] and [rad]."""
    e = difference(WAM.fk(q), T)
    if first == "position":
        return e[:3]
    return e if first == "pose" else np.append(e[:3], WAM.fk(q)[:3, 2] - T[:3, 2])


@pytest.mark.parametrize("name", NAMES)
def test_one_cycle_of_a_stream_changes_the_first_level_as_without_lower_levels(name):
    rng, moved = np.random.default_rng(NAMES.index(name)), 0.0
    for first, task in FIRST.items():
        stack = random_stack(rng, task)
        alone, together = LocalIk(WAM, name, task=task), LocalIk(WAM, name, task=stack)
        for reach in (0.0, 0.05):  # the arm is at rest, or moves to a target
            q = place(rng)
            T = WAM.fk(q + reach * rng.normal(size=7))
            for local in (alone, together):
                local.reset(q)
            one, other = (local.step(T, DT).q for local in (alone, together))
            change = errors(first, other, T) - errors(first, one, T)
            assert np.abs(change).max() <= UNCHANGED
            assert WAM.within_limits(other)
            assert (np.abs(other - q) <= WAM.velocity * DT * (1.0 + 1e-9)).all()
            moved = max(moved, float(np.abs(other - one).max()))
    assert moved > 1e-5


def test_an_arm_at_rest_moves_for_a_posture_below_the_pose_but_not_for_an_objective():
    q, posture = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0]), np.full(7, 0.3)
    T, stack = WAM.fk(q), TaskStack(Task(), PostureTask(posture))
    by_objective = LocalIk(WAM, "gp", objective="posture", reference=tuple(posture))
    for local, moves in ((by_objective, False), (LocalIk(WAM, "gp", task=stack), True)):
        local.reset(q)
        for _ in range(50):
            step = local.step(T, DT)
        assert (np.abs(step.q - q).max() > 1e-3) == moves
        assert step.position_error < UNCHANGED


@pytest.mark.parametrize("name", NAMES)
def test_solutions_reach_the_first_level_with_any_lower_levels(name):
    rng = np.random.default_rng(NAMES.index(name))
    task = list(FIRST.values())[NAMES.index(name) % 3]
    stack, q = random_stack(rng, task), place(rng)
    T = WAM.fk(WAM.clip(q + 0.05 * rng.normal(size=7)))
    options = {"max_restarts": 20, "timeout": 60.0, "max_iterations": 2000}
    solver = IkSolver(WAM, name, **options)
    alone, result = solver.solve(T, q, task=task), solver.solve(T, q, task=stack)
    assert result.success == alone.success
    if result.success:
        assert result.level_errors[0] <= UNCHANGED
        assert WAM.within_limits(result.q)
