# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Single steps of the methods, and invalid arguments."""

import numpy as np
import pytest

from dls_ik import RobotModel, Stepper, Task
from dls_ik.core import damping_policies as policies
from dls_ik.errors import JointValueError, MethodError, OptionError, PoseError

WAM = RobotModel.wam()
Q = np.array([0.3, -0.5, 0.2, 1.4, -0.3, 0.4, 0.1])
NEAR, FAR = WAM.fk(Q + 0.05), WAM.fk(Q + 0.6)
WEIGHTS = np.array([1.0, 1.0, 1.0, 0.5, 0.5, 0.5])


def test_zero_steps_return_the_start():
    stepper = Stepper(WAM, "ed", Q)
    trace = stepper.run(NEAR, 0)
    np.testing.assert_array_equal(trace.q, Q[None])
    np.testing.assert_array_equal(stepper.q, Q)
    assert trace.error.shape == (1, 6)
    assert trace.lambda2.shape == trace.searches.shape == (0,)


@pytest.mark.parametrize("method", ["ctp+svf", "odls"])
def test_a_run_equals_single_steps(method):
    once, twice = Stepper(WAM, method, Q), Stepper(WAM, method, Q)
    trace = once.run(FAR, 4)
    for k in range(4):
        np.testing.assert_allclose(trace.error[k], twice.error(FAR), rtol=0, atol=1e-14)
        dq = twice.step(FAR)
        np.testing.assert_allclose(trace.q[k] + dq, trace.q[k + 1], rtol=0, atol=1e-14)
        assert trace.lambda2[k] == twice.lambda2
        assert trace.searches[k] == twice.searches
    np.testing.assert_allclose(trace.error[4], twice.error(FAR), rtol=0, atol=1e-14)
    np.testing.assert_array_equal(once.q, trace.q[4])


def test_each_step_has_a_target_and_the_last_is_kept():
    together, apart = Stepper(WAM, "jd", Q), Stepper(WAM, "jd", Q)
    trace = together.run(np.array([NEAR, FAR]), 3)
    for k, T in enumerate((NEAR, FAR, FAR)):
        np.testing.assert_array_equal(trace.q[k], apart.q)
        apart.step(T)
    np.testing.assert_array_equal(trace.q[3], apart.q)


def test_invalid_step_counts_and_targets_are_refused():
    stepper = Stepper(WAM, "jp", Q)
    for steps in (-1, True, 1.0, "2", None):
        with pytest.raises(OptionError, match="an integer of at least 0"):
            stepper.run(NEAR, steps)
    for shape in ((4,), (3, 4), (2, 1, 1, 4, 4), (2, 3, 4, 4, 1)):
        with pytest.raises(PoseError, match="targets must be poses"):
            stepper.run(np.zeros(shape), 1)


def test_start_is_mid_range_and_can_be_reset():
    stepper = Stepper(WAM, "svf+ed")
    np.testing.assert_allclose(stepper.q, 0.5 * (WAM.lower + WAM.upper))
    stepper.run(FAR, 2)
    Q_given = Q.copy()
    stepper.reset(Q_given)
    np.testing.assert_array_equal(stepper.q, Q)
    first = stepper.run(FAR, 3).q
    np.testing.assert_array_equal(Q_given, Q)
    stepper.reset(Q)
    np.testing.assert_array_equal(stepper.run(FAR, 3).q, first)
    with pytest.raises(JointValueError):
        stepper.reset(Q[:3])


def test_rate_converts_steps_to_velocities():
    stepper = Stepper(WAM, "jp", Q)
    x_dot = np.array([0.1, -0.2, 0.05, 0.3, 0.1, -0.2])
    q_dot = stepper.rate(x_dot, 0.01)
    np.testing.assert_allclose(WAM.jacobian(Q) @ q_dot, x_dot, atol=1e-12)
    np.testing.assert_allclose(stepper.q, Q + 0.01 * q_dot, atol=1e-15)
    for bad in (x_dot[:5], np.full(6, np.nan)):
        with pytest.raises(OptionError, match=r"x_dot.*\(6,\)"):
            stepper.rate(bad, 0.01)


def test_feedback_of_rates_removes_the_error_exponentially():
    """The error from a moving target is the error at the start times exp(-K_p t)."""
    stepper, gain, dt = Stepper(WAM, "jp", Q, task=Task.position_only()), 5.0, 1e-3
    velocity, T = np.array([0.05, -0.02, 0.03]), WAM.fk(Q)
    T[:3, 3] += [0.01, 0.02, -0.01]
    before = np.linalg.norm(stepper.error(T))
    for _ in range(400):
        stepper.rate(velocity, dt, T, gain)
        T[:3, 3] += dt * velocity
    after = np.linalg.norm(stepper.error(T))
    assert after == pytest.approx(before * np.exp(-gain * 400 * dt), rel=0.05)


def test_error_and_jacobian_are_scaled_by_the_task():
    stepper = Stepper(WAM, "jp", Q)
    np.testing.assert_allclose(stepper.jacobian(), WEIGHTS[:, None] * WAM.jacobian(Q), atol=1e-14)
    np.testing.assert_allclose(stepper.error(FAR)[:3], (FAR - WAM.fk(Q))[:3, 3], atol=1e-14)


def test_a_step_for_given_error_and_jacobian_keeps_the_state():
    stepper = Stepper(WAM, "jp", Q)
    J, e = stepper.jacobian(), stepper.error(FAR)
    np.testing.assert_allclose(stepper.step_for(e, J), np.linalg.pinv(J) @ e, atol=1e-10)
    np.testing.assert_array_equal(stepper.q, Q)
    for wrong in ((e[:5], J), (e, J[:, :6]), (e, J.T)):
        with pytest.raises(OptionError, match=r"[eJ] .*\(6"):
            stepper.step_for(*wrong)


@pytest.mark.parametrize("name", ["jp", "jd", "ed", "svf", "jf", "nf", "tpinv"])
def test_the_inverse_matches_its_singular_values(name):
    stepper = Stepper(WAM, name, Q)
    P, s, gain = stepper.inverse(FAR)
    J = stepper.jacobian()
    np.testing.assert_allclose(s, np.linalg.svd(J, compute_uv=False), rtol=1e-10)
    np.testing.assert_allclose(np.linalg.svd(P, compute_uv=False), np.sort(gain)[::-1], rtol=1e-9)
    np.testing.assert_allclose(np.linalg.svd(P @ J, compute_uv=False)[:6].max(), (gain * s).max())
    e = stepper.error(FAR)
    np.testing.assert_allclose(P @ e, stepper.step_for(e, J, FAR), atol=1e-9)


@pytest.mark.parametrize("policy", [name for name in policies.POLICY_NAMES if name != "constant"])
@pytest.mark.parametrize("bent", [1.4, 0.01], ids=["anywhere", "near a singularity"])
def test_the_policy_determines_the_damping(policy, bent):
    options = {"Delta": 0.1, "w_t": 1.0, "condition_bound": 2.0, "epsilon": 1.0, "w_min": 0.5}
    options |= {"velocity_bound": 0.1, "rate_t": 1.0, "direction": (1.0, 2.0, 0.0, 0.0, 1.0, 0.0)}
    q = np.where(np.arange(7) == 3, bent, Q)
    stepper = Stepper(WAM, "dls", q, policy=policy, **options)
    for steps in (0, 1, 2):
        stepper.run(FAR, min(steps, 1))
        J, e = stepper.jacobian(), stepper.error(FAR)
        P = stepper.inverse(FAR).P
        again = stepper.inverse(FAR)
        np.testing.assert_array_equal(again.P, P)  # no state is kept
        dq = stepper.step_for(e, J, FAR)
        np.testing.assert_allclose(P @ e, dq, rtol=2e-3 if policy == "optimal" else 0, atol=1e-9)
        if steps == 2:
            s, lambda2 = again.s, stepper.lambda2
            np.testing.assert_allclose(again.gain, s / (s * s + lambda2), rtol=1e-3)


def test_the_default_maximum_step_is_an_eighth_of_a_turn():
    for given, most in (({}, np.pi / 4), ({"largest_change": 0.1}, 0.1)):
        dq = Stepper(WAM, "jp+max", Q, **given).step(WAM.fk(-Q))
        assert np.abs(dq).max() == pytest.approx(most)


@pytest.mark.parametrize("Delta", [0.05, 0.4])
@pytest.mark.parametrize("objective", ["centring", "limits"])
def test_the_optimal_policy_uses_the_maximum_step(objective, Delta):
    """The whole step, with gradient projection, has the maximum length."""
    options = {"policy": "optimal", "objective": objective, "Delta": Delta}
    dq = Stepper(WAM, "gp+jd", Q, **options).step(FAR)
    assert np.linalg.norm(dq) == pytest.approx(Delta, rel=1e-9)


def test_kdl_methods_have_no_steps():
    with pytest.raises(MethodError, match="has no single steps"):
        Stepper(WAM, "kdl_lma", Q)


T = WAM.fk(Q)
ODD = [None, "x", 1j, [1, [2]], [10**400] * 6, np.nan, np.zeros(6, "M8[s]"), object()]


POSES = [[T, None], np.full((4, 4), 1j), T[:3], np.empty((0, 4, 4))]
VECTORS = [np.zeros(5), np.full(6, np.inf), np.full(6, -1e300)]
STILL, GAINS = np.zeros(6), [1.0, -1.0, [0.1], np.inf]  # positive gains need a pose
REFUSED = {  # error, words, call, further refused values
    "step": (PoseError, None, lambda s, T: s.step(T), POSES),
    "run": (PoseError, None, lambda s, T: s.run(T, 2), POSES),
    "gain": (OptionError, "gain", lambda s, gain: s.rate(STILL, 0.01, None, gain), GAINS),
    "x_dot": (OptionError, "x_dot", lambda s, x_dot: s.rate(x_dot, 0.01), VECTORS),
    "e": (OptionError, "e must be", lambda s, e: s.step_for(e, WAM.jacobian(Q)), VECTORS),
    "J": (OptionError, "J must be", lambda s, J: s.step_for(np.zeros(6), J), VECTORS),
    "dt": (OptionError, "dt", lambda s, dt: s.rate(np.zeros(6), dt), [[0.1], np.inf, 1e300]),
}


@pytest.mark.parametrize("what", REFUSED)
def test_invalid_values_are_refused_and_keep_the_state(what):
    stepper = Stepper(WAM, "svf", Q)
    error, words, call, more = REFUSED[what]
    for bad in (*ODD, *more):
        with pytest.raises(error, match=words):
            call(stepper, bad)
    np.testing.assert_array_equal(stepper.q, Q)
