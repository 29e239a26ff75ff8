# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Properties of the strategies by priority: secondary tasks, and transitions at joint limits."""

import numpy as np
import pytest
from cases import WAM, generic, placed
from oracle_ik import error_and_jacobian
from oracle_objectives import closest
from ours import options_of, our_step, stepper

from dls_ik import IkSolver, Stepper
from dls_ik.errors import MethodError

BOUNDED = ("sd", "sdls", "sdls_near")
OBSTACLE = (0.15, 0.25, 0.45)


def null_space(J):
    return np.eye(J.shape[1]) - np.linalg.pinv(J) @ J


@pytest.mark.parametrize("objective", ["centring", "posture", "limits"])
def test_srtp_lowers_its_objective_by_mu_where_the_tasks_are_compatible(objective):
    """Without error and damping, the step is along the projected gradient of the objective."""
    q, J, _, _ = generic(WAM, np.random.default_rng(3))
    options = {"objective": objective, "lambda_max": 0.0}
    dq = our_step("srtp", WAM, q, J, np.zeros(6), mu=1e-3, **options)
    gradient_step = our_step("gp", WAM, q, J, np.zeros(6), mu=1.0, objective=objective)
    np.testing.assert_allclose(J @ dq, 0.0, atol=1e-12)
    cosine = dq @ gradient_step / np.linalg.norm(dq) / np.linalg.norm(gradient_step)
    assert cosine == pytest.approx(1.0, abs=1e-12)


def test_srtp_is_bounded_at_an_algorithmic_singularity():
    """Both tasks have full rank, but their rows are almost dependent.

    The step of equation (8) of Chiaverini 1997 becomes long, that of equation (34) does not.
    """
    q, J, e, _ = generic(WAM, np.random.default_rng(5))
    row = J[0] + 1e-6 * null_space(J)[0]  # gradient of the objective, almost a row of J
    reference = q - row
    given = {"objective": "posture", "reference": reference, "lambda_max": 0.0, "mu": 0.2}
    dq = our_step("srtp", WAM, q, J, e, **given)
    x = -0.2 * 0.5 * row @ row
    P = np.linalg.pinv(J)
    robust = P @ e + null_space(J) @ row * x / (row @ row)
    classic = P @ e + np.linalg.pinv((row @ null_space(J))[None])[:, 0] * (x - row @ P @ e)
    np.testing.assert_allclose(dq, robust, atol=1e-9)
    assert np.linalg.norm(classic) > 1e3 * np.linalg.norm(dq)


def test_avoid_moves_the_closest_point_away_by_the_gains_of_the_task():
    """Near the obstacle J_o dq = x and J dq = e; beyond the influence distance the step is jp's."""
    q, J, e, _ = generic(WAM, np.random.default_rng(1))
    o = options_of("avoid", obstacle=OBSTACLE)
    d, row = closest(o, WAM, q)
    options = {"obstacle": OBSTACLE, "lambda_max": 0.0, "mu": 0.1}
    dq = our_step("avoid", WAM, q, J, e, influence=2.5 * d, **options)
    assert row @ dq == pytest.approx(0.1 * 1.25 * d * min(1.25**2 - 1.0, 1.0), abs=1e-8)
    np.testing.assert_allclose(J @ dq, e, atol=1e-9)
    beyond = our_step("avoid", WAM, q, J, e, influence=0.99 * d, **options)
    np.testing.assert_allclose(beyond, our_step("jp", WAM, q, J, e), atol=1e-12)


def test_avoid_keeps_the_tip_and_its_gain_is_continuous():
    q = np.array([0.3, 0.5, 0.0, 1.5, 0.0, 0.5, 0.0])
    o = options_of("avoid", obstacle=OBSTACLE)
    ours = Stepper(WAM, "avoid+nfd", q, obstacle=OBSTACLE, influence=0.6)
    target, before = WAM.fk(q), closest(o, WAM, q)[0]
    trace = ours.run(target, 60)
    assert closest(o, WAM, ours.q)[0] > before + 0.01
    assert np.linalg.norm(trace.error[-1]) < 2e-3
    J, e = ours.jacobian(), np.full(6, 0.02)
    steps = [
        our_step("avoid", WAM, q, J, e, obstacle=OBSTACLE, influence=influence)
        for influence in np.linspace(0.5 * before, 3.0 * before, 400)
    ]
    jumps = np.linalg.norm(np.diff(steps, axis=0), axis=1)
    assert jumps.max() < 0.05 * np.linalg.norm(np.ptp(steps, axis=0))


def test_avoid_needs_an_obstacle_and_one_inverse():
    with pytest.raises(MethodError, match="avoid needs the position of the obstacle"):
        IkSolver(WAM, "avoid")
    for name in ("avoid+jt", "srtp+jt", "idv+jt"):
        with pytest.raises(MethodError, match="combines several inverses"):
            IkSolver(WAM, name)
    for strategy in ("avoid", "idv", "cns"):
        for bound in BOUNDED:
            with pytest.raises(MethodError, match="use the step bound max or norm"):
                IkSolver(WAM, f"{strategy}+{bound}")


# Transitions at limits ----------------------------------------------------------------------------

CONTINUOUS = ("ctp", "idv", "cns")


def jumps_along(name, start, end, T_d, count, **options):
    """Return the largest change of the step between neighbours of `count` points on a line.

    The line leads from the configuration `start` to `end`, both (n,).
    """
    steps, ours = [], stepper(name, WAM, start, margin=0.1, **options)
    for u in np.linspace(0.0, 1.0, count):
        q = start + u * (end - start)
        ours.reset(q)
        steps.append(ours.step(T_d))
    return np.linalg.norm(np.diff(steps, axis=0), axis=1).max()


@pytest.mark.parametrize("law", ["jp", "dls"])
def test_transitions_of_two_joints_are_continuous_but_not_those_of_tp(law):
    """Two joints cross their margins one after the other, on a line of configurations.

    With 8 times as many points on the line, the largest change of a continuous step is smaller.
    """
    q, _, _, T_d = generic(WAM, np.random.default_rng(13))
    size = WAM.upper - WAM.lower
    start, end = q.copy(), q.copy()
    for j, (first, last) in {3: (0.16, 0.02), 5: (0.13, -0.01)}.items():
        start[j], end[j] = WAM.upper[j] - first * size[j], WAM.upper[j] - last * size[j]
    found = {
        name: [jumps_along(f"{name}+{law}", start, end, T_d, count) for count in (60, 473)]
        for name in ("tp", *CONTINUOUS)
    }
    for name in CONTINUOUS:
        assert found[name][1] < 0.3 * found[name][0], name
    assert found["tp"][1] > 0.9 * found["tp"][0]
    assert found["tp"][1] > 10.0 * max(found[name][1] for name in CONTINUOUS)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_transitions_hold_joints_at_their_limits_and_free_them_outside_margins(name):
    rng = np.random.default_rng(2)
    for place, same in (("inside", True), ("at limits", False)):
        q, near = placed(WAM, place, rng)
        e, J = error_and_jacobian(WAM, WAM.fk(WAM.random(rng=rng)), q)
        dq, plain = (our_step(each, WAM, q, J, e, mu=0.0) for each in (name, "jp"))
        np.testing.assert_allclose(dq[near], 0.0, atol=1e-12)
        if same:
            np.testing.assert_allclose(dq, plain, atol=1e-10)


def test_idv_of_one_joint_is_that_of_the_paper():
    """The joint makes x = h z + (1 - h) dq, where dq is the step without its limit task.

    The other joints correct the remaining error.
    """
    q, _, _, T_d = generic(WAM, np.random.default_rng(7))
    q[4] = WAM.upper[4] - 0.04 * (WAM.upper - WAM.lower)[4]
    e, J = error_and_jacobian(WAM, T_d, q)
    dq, free = our_step("idv", WAM, q, J, e, margin=0.1), our_step("jp", WAM, q, J, e)
    h = 0.5 * (1.0 + np.tanh(1.0 / 0.4 - 1.0 / 0.6))  # 0.4 of the margin is left to the limit
    z = -h * 0.2 * (q[4] - 0.5 * (WAM.upper + WAM.lower)[4])
    assert dq[4] == pytest.approx(z + (1.0 - h) * free[4], abs=1e-10)
    np.testing.assert_allclose(J @ dq, e, atol=1e-10)
