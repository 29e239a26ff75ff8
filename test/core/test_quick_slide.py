"""Along the solutions of a pose toward the seed: as in NumPy, and to one that is nearer."""

import numpy as np
import pytest
from kernels import WAM, options_of
from oracle_ik import pose_error

from dls_ik import RobotModel
from dls_ik.core.fast.kinematics import aim, observe_arm
from dls_ik.core.fast.step import slide
from dls_ik.core.fast.table import LEAF
from dls_ik.core.jit import kernel
from dls_ik.core.workspace import fast_workspace
from dls_ik.model.chain import build_arm
from dls_ik.solver.problem import random_starts

GOAL = options_of("auto").goal()
WEIGHT = GOAL.rotation_weight
ROOTS = np.linspace(0.7, 1.4, 7)  # of the joints' weights
SCALE = np.repeat([1.0, WEIGHT], 3)
STEPS, CORRECTIONS, LONGEST, ENOUGH, FAR = 30, 6, 0.5, 0.01, 0.2 * WEIGHT


@kernel
def slid(arm, goal, starts, T_d, seed, q, work):
    """A kernel of its own, as the slide is a part of a loop."""
    aim(arm.base, arm.tip, T_d, work.target)
    observe_arm(arm, goal.rotation_weight, q, work)
    return slide(arm, goal, starts, seed, q, work)


def kernel_slide(robot, T_d, seed, q):
    """Where it ends (n,), and the steps it took."""
    arm, q = build_arm(robot.chain), q.copy()
    starts = random_starts(robot, ROOTS[: robot.n] ** 2, True)
    return q, slid(arm, GOAL, starts, T_d, seed, q, fast_workspace(arm, LEAF))


def numpy_step(q, J, e, z):
    """z + P (e - J z), with joints that it takes past a limit at it (n,)."""
    dq, free = z.copy(), np.ones(len(q), bool)
    while True:
        part = np.linalg.pinv(J[:, free] / ROOTS[free]) @ (e - J @ dq)
        tried = dq.copy()
        tried[free] += part / ROOTS[free]
        there = q + tried
        beyond = free & (WAM.clip(there) != there)
        if not beyond.any():
            return tried
        dq[beyond] = (WAM.clip(there) - q)[beyond]
        free &= ~beyond


def numpy_slide(T_d, seed, q):
    """As the docstrings say."""
    arrived, error = False, 0.0
    for k in range(STEPS):
        arrived = arrived or k >= STEPS - CORRECTIONS
        goes = not arrived and error <= FAR
        z = (seed - q) * goes
        z *= LONGEST / max(LONGEST, np.abs(z * ROOTS).max())
        e = SCALE * pose_error(T_d, WAM.fk(q))
        dq = numpy_step(q, SCALE[:, None] * WAM.jacobian(q), e, z)
        largest = np.abs(dq * ROOTS).max()
        q = WAM.clip(q + dq * min(1.0, LONGEST / largest))
        off = pose_error(T_d, WAM.fk(q))
        position, rotation = np.linalg.norm(off[:3]), np.linalg.norm(off[3:])
        error = position + WEIGHT * rotation
        if arrived and position <= GOAL.position_tolerance and rotation <= GOAL.rotation_tolerance:
            break
        arrived = arrived or (goes and largest < ENOUGH)
    return q, k + 1


def away(rng):
    """A pose, a solution of it, and a seed that is not near it."""
    q = WAM.lower + (WAM.upper - WAM.lower) * rng.uniform(0.05, 0.95, 7)
    return WAM.fk(q), WAM.random(rng), q


@pytest.mark.parametrize("number", range(25))
def test_slides_as_in_numpy(number):
    T_d, seed, q = away(np.random.default_rng(number))
    ours, steps = kernel_slide(WAM, T_d, seed, q)
    theirs, count = numpy_slide(T_d, seed, q)
    assert steps == count
    np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-6)


def test_most_solutions_come_nearer_and_all_keep_the_limits():
    rng, nearer, solved = np.random.default_rng(4), 0, 0
    for _ in range(40):
        T_d, seed, q = away(rng)
        ours, _ = kernel_slide(WAM, T_d, seed, q)
        assert WAM.within_limits(ours)
        off = pose_error(T_d, WAM.fk(ours))
        solved += np.linalg.norm(off[:3]) <= GOAL.position_tolerance
        nearer += np.linalg.norm((ours - seed) * ROOTS) < np.linalg.norm((q - seed) * ROOTS)
    assert solved >= 30
    assert nearer >= 36


def test_without_redundancy_there_is_nothing_to_slide_along():
    robot = RobotModel.from_name("puma560")
    q = 0.3 * robot.upper
    ours, steps = kernel_slide(robot, robot.fk(q), robot.clip(q + 0.5), q)
    assert steps == 0
    np.testing.assert_array_equal(ours, q)
