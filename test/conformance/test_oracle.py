"""The oracle beside closed forms worked out by hand: laws, policies and strategies."""

import numpy as np
import pytest
from bare import bare, diagonal, step_of
from oracle_ik import parts_of


def test_words():
    assert parts_of("odls+gp+clamp+sdls") == ("jd", "gp", "clamp", "sdls")
    assert parts_of("ed+svf") == ("svf+ed", "none", "none", "none")
    assert parts_of("ctp+sd") == ("jp", "ctp", "none", "sd")
    assert parts_of("auto") == ("ed", "active", "none", "none")


S, E = np.array([2.0, 0.5, 0.02]), np.array([0.3, -0.2, 0.1])
H = (S**3 + 10 * S**2 + 2 * S + 0.02) / (S**2 + 10 * S + 2)
LAST = np.array([0.0, 0.0, 1.0])
LAWS = {
    "jp": 1 / S,
    "jd": S / (S**2 + 0.005**2),
    "ed": S / (S**2 + 0.07),
    "ied": S / (S**2 + 0.0701),
    "svf": 1 / H,
    "svf+ed": H / (H**2 + 0.07),
    "jt": S * (S**2 @ E**2) / (S**4 @ E**2),
    "tpinv": np.array([0.5, 2.0, 50.0]),
    "jf": S / (S**2 + LAST * 0.96 * 0.02**2),
    "nf": np.array([0.5, 2.0, 0.02 / (0.0004 + 0.02 / 20 - 0.0004)]),
}


@pytest.mark.parametrize("law", LAWS)
def test_laws(law):
    options = {"error_gain": 0.5, "truncation": 0.0099}
    np.testing.assert_allclose(diagonal(law, S, E, **options), LAWS[law] * E, rtol=1e-12)


def test_truncation():
    np.testing.assert_allclose(diagonal("tpinv", S, E), [0.15, -0.4, 0.0], atol=1e-15)


def test_numerical_filtering_damps_all_by_the_second_and_the_last_by_itself_too():
    dq = diagonal("nf", [1.0, 0.04, 0.01], [1.0, 1.0, 1.0], velocity_bound=20.0)
    common, own = 0.04 / 20 - 0.0016, 0.01 / 20 - 0.0001
    expected = [1 / (1 + common), 20.0, 0.01 / (0.0001 + common + own)]
    np.testing.assert_allclose(dq, expected, rtol=1e-12)


POLICIES = {
    "error": ({}, 0.5 * 0.14),
    "manipulability": ({"w_t": 0.05}, 0.01 * (1 - 0.02 / 0.05) ** 2),
    "rate": ({}, 0.0),
    "velocity": ({"velocity_bound": 20.0}, 0.02 / 20 - 0.0004),
    "tracking": ({"tracking_bound": 0.2}, 0.0004 * 0.25),
    "condition": ({"condition_bound": 101.0}, 0.04),
    "mayorga-rank": ({}, 0.0),
}


@pytest.mark.parametrize("policy", POLICIES)
def test_policies(policy):
    options, lambda2 = POLICIES[policy]
    dq = diagonal("jd", S, E, policy=policy, **options)
    np.testing.assert_allclose(dq, S / (S**2 + lambda2) * E, rtol=1e-12)


def test_policy_condition_of_a_square_jacobian():
    """(8) with s_n: (4 - 101 * 0.0004) / 100."""
    dq = step_of("jd", np.diag(S), E, policy="condition", condition_bound=101.0)
    lambda2 = (4 - 101 * 0.0004) / 100
    np.testing.assert_allclose(dq, S / (S**2 + lambda2) * E, rtol=1e-12)
    assert (4 + lambda2) / (0.0004 + lambda2) == pytest.approx(101.0)


def test_policy_mayorga_condition():
    """Of A = diag(4, 1): bound 2 / 4 * (17 / 2) = 4.25, which is above the true 4."""
    dq = diagonal("jd", [2.0, 1.0], [1.0, 1.0], policy="mayorga-condition", condition_bound=2.0)
    lambda2 = 0.01 * (1 - 4.25 / 2) ** 2
    np.testing.assert_allclose(dq, [2 / (4 + lambda2), 1 / (1 + lambda2)], rtol=1e-12)
    dq = diagonal("jd", [2.0, 1.0], [1.0, 1.0], policy="mayorga-condition", condition_bound=4.3)
    np.testing.assert_allclose(dq, [0.5, 1.0], rtol=1e-12)


def test_policies_that_look_back():
    J = np.array([[1.0, 0.0, 0.0], [0.0, 0.5, 0.0]])
    less = np.array([[1.0, 0.0, 0.0], [0.0, 0.2, 0.0]])
    for policy, lambda2 in (("rate", 0.01 * (1 - 0.4)), ("mayorga-rank", 0.0)):
        oracle = bare("jd", 3, np.zeros(2, int), policy=policy)
        oracle.step(np.zeros(3), J, np.ones(2))
        oracle.step(np.zeros(3), less, np.ones(2))
        assert oracle.lambda2 == pytest.approx(lambda2)
    oracle.step(np.zeros(3), J, np.ones(2))  # changes by 0.3, s_min was 0.2
    assert oracle.lambda2 == pytest.approx(0.01 * (1 - 1.5) ** 2)
    oracle.reset()
    oracle.step(np.zeros(3), less, np.ones(2))
    assert oracle.lambda2 == 0.0


def test_policy_accuracy():
    """Near 0.75: lambda^2 = 0.75 * 0.04, w = 1 - sqrt(0.75) * 0.9 on the direction given up."""
    options = {"policy": "accuracy", "epsilon": 0.2, "lambda_max": 0.2, "w_min": 0.1}
    lambda2, w = 0.75 * 0.04, 1 - np.sqrt(0.75) * 0.9
    dq = diagonal("jd", [1.0, 0.1], [1.0, 1.0], **options)
    np.testing.assert_allclose(dq, [1 / (1 + lambda2), w**2 * 0.1 / (w**2 * 0.01 + lambda2)])
    dq = diagonal("jd", [1.0, 0.1], [1.0, 1.0], direction=(2.0, 0.0), **options)
    np.testing.assert_allclose(dq, [w**2 / (w**2 + lambda2), 0.1 / (0.01 + lambda2)])


def test_optimal_damping_of_one_direction():
    """s e / (s^2 + lambda) = Delta: lambda = s e / Delta - s^2."""
    oracle = bare("jd", 2, np.zeros(1, int), policy="optimal", Delta=0.5)
    dq = oracle.step(np.zeros(2), np.array([[0.2, 0.0]]), np.array([0.3]))
    np.testing.assert_allclose(dq, [0.5, 0.0], rtol=1e-12)
    assert oracle.lambda2 == pytest.approx(0.12 - 0.04)
    dq = oracle.step(np.zeros(2), np.array([[2.0, 0.0]]), np.array([0.3]))
    np.testing.assert_allclose(dq, [0.15, 0.0], rtol=1e-12)


def test_optimal_damping_with_an_objective():
    """(27) for J = [0.2 0]: ((0.2 * 0.3 + v_1) / (0.04 + lambda))^2 + (v_2 / lambda)^2."""
    oracle = bare(
        "gp+odls", 2, np.zeros(1, int), policy="optimal", Delta=0.5, objective="posture",
        reference=(-1.0, -3.0), mu=0.1,
    )  # fmt: skip
    dq = oracle.step(np.zeros(2), np.array([[0.2, 0.0]]), np.array([0.3]))
    lambda2 = oracle.lambda2
    expected = [(0.06 - 0.1) / (0.04 + lambda2), -0.3 / lambda2]
    np.testing.assert_allclose(dq, expected, rtol=1e-9)
    assert np.linalg.norm(dq) == pytest.approx(0.5)


def test_jacobian_weighting():
    """For J = [1 1] the joints share by 1 / w; w is 1 for the one whose slope does not rise."""
    oracle = bare("jw", 2, np.zeros(1, int))
    slope = 400.0 * 2 * 9.0 / (4 * 1.0 * 19.0**2)  # at 9 of +-10
    dq = oracle.step(np.array([9.0, 0.0]), np.array([[1.0, 1.0]]), np.array([1.0]))
    w = 1.0 + slope
    np.testing.assert_allclose(dq, [1 / (1 + w), w / (1 + w)], rtol=1e-12)
    dq = oracle.step(np.array([9.0, 0.0]), np.array([[1.0, 1.0]]), np.array([1.0]))
    np.testing.assert_allclose(dq, [0.5, 0.5], rtol=1e-12)


def test_gradient_projection():
    """(24), (23) and (22) for J = [1 0], v = (0.1, 0.3)."""
    options = {"objective": "posture", "reference": (1.0, 3.0), "mu": 0.1, "lambda_": 0.5}
    v = np.array([0.1, 0.3])
    plain = step_of("gp", [[1.0, 0.0]], [0.7], **options)
    np.testing.assert_allclose(plain, [0.7, 0.3], rtol=1e-12)
    dq = step_of("gp+jd", [[1.0, 0.0]], [0.7], **options)
    np.testing.assert_allclose(dq, [(0.7 + 0.25 * 0.1) / 1.25, 0.3], rtol=1e-12)
    options |= {"alpha1": 0.3, "alpha2": 0.4}
    dq = step_of("gp+jd", [[1.0, 0.0]], [0.7], form=23, **options)
    np.testing.assert_allclose(dq, [(0.7 + 0.09 * 0.1) / 1.25, 0.36 * 0.3], rtol=1e-12)
    options["joint_weights"] = (1.0, 2.0)
    dq = step_of("gp+jd", [[1.0, 0.0]], [0.7], form=22, **options)
    np.testing.assert_allclose(dq, [(0.7 + 0.09 * v[0]) / 1.25, 0.09 * v[1] / 0.41], rtol=1e-12)


def test_task_augmentation():
    """Rows (1, 0) and w_c grad H = 2 (-1, -3), for 0.7 and -2 mu H = -2 * 0.1 * 5."""
    options = {"objective": "posture", "reference": (1.0, 3.0), "mu": 0.1, "w_c": 2.0}
    dq = step_of("ta", [[1.0, 0.0]], [0.7], **options)
    np.testing.assert_allclose(dq, [0.7, (1.0 - 1.4) / 6.0], rtol=1e-12)


def test_joints_at_limits():
    """At a limit of 10, margin 0.5: jc drops what is pushed out, tp and ctp push to the middle."""
    J, e, q = [[1.0, 1.0]], [1.0], [10.0, 0.0]
    np.testing.assert_allclose(step_of("jc", J, e, q), [0.0, 1.0])
    np.testing.assert_allclose(step_of("jc", J, [-1.0], q), [-0.5, -0.5])
    np.testing.assert_allclose(step_of("tp", J, e, q, mu=0.2), [-2.0, 3.0])
    np.testing.assert_allclose(step_of("ctp", J, e, q, mu=0.2), [-2.0, 3.0])


def test_joints_in_margins():
    """Half way into a margin of 1: h = 1/2. TP holds it, CTP half and half."""
    J, e, q = [[1.0, 1.0]], [1.0], [9.5, 0.0]
    z = -0.5 * 0.2 * 9.5
    np.testing.assert_allclose(step_of("tp", J, e, q), [z, 1.0 - z])
    left = 1.0 - z
    expected = [z + 0.25 * left, 0.25 * left + 0.5 * left]
    np.testing.assert_allclose(step_of("ctp", J, e, q), expected)


def test_transpose_with_a_joint_half_held():
    """d = (I - H) J^T l = (1/2, 1) l for J = [1 1]: J d = 3/2 l, so that a = 2/3."""
    left = 1.0 + 0.5 * 0.2 * 9.5
    expected = [1.0 - left + left / 3.0, 2.0 * left / 3.0]
    np.testing.assert_allclose(step_of("ctp+jt", [[1.0, 1.0]], [1.0], [9.5, 0.0]), expected)
