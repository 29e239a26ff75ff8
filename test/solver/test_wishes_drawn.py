"""Any arm, any seed, any wish: answers are solutions, where they may be, or are told as none."""

import numpy as np
from arms import random_arm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from wishes import errors, is_solution

from dls_ik import IkSolver, Status

KINDS = st.lists(
    st.sampled_from(["revolute", "revolute", "prismatic", "continuous", "mimic"]), max_size=7
)
CHANGES = st.sampled_from([0.0, 0.01, 0.3, 2.0, 10.0, np.inf])
FAR = st.sampled_from([0.0, 0.0, 1.0, 5.0, 100.0])
TYPES = st.sampled_from(["speed", "distance", "manipulability"])


def check(robot, T, seed, change, approximate, result):
    """What holds of an answer whatever was asked."""
    assert np.isfinite(result.q).all()
    assert robot.within_limits(result.q)
    position, rotation = errors(robot, T, result.q)
    np.testing.assert_allclose(result[3:5], [position, rotation], atol=1e-9)
    possible = (seed - change <= robot.upper).all() and (seed + change >= robot.lower).all()
    rounding = 1e-15 * np.abs(seed).max() + 1e-15
    if result.status is Status.SUCCESS:
        assert is_solution(robot, T, result.q)
    if possible:
        assert (np.abs(result.q - seed) <= change + rounding).all()
        assert result.success == (approximate or result.status is Status.SUCCESS)
    else:
        assert (result.success, result.status) == (False, Status.FAR_FROM_SEED)


@settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
@given(
    st.integers(0, 10**6), KINDS, TYPES, FAR, st.booleans(), st.data(), st.sampled_from([0.7, 3.0])
)
def test_answers_are_what_was_asked_for(seed, kinds, kind, far, approximate, data, reach):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    n = robot.n
    change = np.array(data.draw(st.lists(CHANGES, min_size=n, max_size=n)))
    solver = IkSolver(robot, solve_type=kind, num_candidates=10, max_restarts=12)
    Ts = robot.fk(robot.random(rng, 4))
    Ts[2:, :3, 3] *= reach
    seeds = robot.random(rng, 4) + far * rng.uniform(-1.0, 1.0, (4, n))
    wish = {"max_joint_change": change, "approximate": approximate}
    batch = solver.solve_batch(Ts, seeds, **wish)
    for T, start, row in zip(Ts, seeds, batch, strict=True):
        check(robot, T, start, change, approximate, row)
        alone = solver.solve(T, start, timeout=3600.0, **wish)
        np.testing.assert_array_equal(alone.q, row.q)
        assert alone[:2] == row[:2]
        assert alone[3:7] == row[3:7]
