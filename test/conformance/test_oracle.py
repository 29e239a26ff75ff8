"""The oracle beside closed forms worked out by hand."""

from types import SimpleNamespace

import numpy as np
import oracle_bounds as bounds
import oracle_objectives as objectives
import oracle_task
import pytest
from bare import bare, diagonal, step_of
from cases import PLANAR, WAM
from oracle import difference_jacobian, rotation
from oracle_ik import Oracle, error_and_jacobian, parts_of
from oracle_task import Rows

from dls_ik.solver.options import SolverOptions


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


def planar(q):
    """J of the position in the plane of two links of 1 m."""
    s1, s12, c1, c12 = np.sin(q[0]), np.sin(q.sum()), np.cos(q[0]), np.cos(q.sum())
    return np.array([[-s1 - s12, -s12], [c1 + c12, c12]])


@pytest.mark.parametrize("q", [np.array([0.3, 0.7]), np.array([-1.0, 2.0])])
def test_two_links(q):
    """The closed form of J^-1 = 1 / sin q2 [[c12, s12], [-c1 - c12, -s1 - s12]]."""
    task = SimpleNamespace(position="xy", rotation="", frame="base", weights=None, tip=None)
    T_d = PLANAR.fk(q + np.array([0.1, -0.2]))
    oracle = Oracle("jp", PLANAR, SolverOptions(), task)
    e, J = oracle.error_and_jacobian(q, T_d)
    np.testing.assert_allclose(J, planar(q), atol=1e-14)
    c1, c12, s1, s12 = np.cos(q[0]), np.cos(q.sum()), np.sin(q[0]), np.sin(q.sum())
    inverse = np.array([[c12, s12], [-c1 - c12, -s1 - s12]]) / np.sin(q[1])
    np.testing.assert_allclose(oracle.step(q, J, e), inverse @ e, rtol=1e-12)


@pytest.mark.parametrize("frame", ["base", "target"])
@pytest.mark.parametrize("axes", ["xyz", "xy", "yz", "xz", "x", "y", "z"])
def test_rotation_errors_near_the_target_are_rows_of_the_rotation_vector(axes, frame):
    rng = np.random.default_rng(1)
    q = WAM.random(rng)
    task = SimpleNamespace(position="", rotation=axes, frame=frame, weights=None, tip=None)
    T_d = WAM.fk(q + 1e-5 * rng.normal(size=7))
    e = error_and_jacobian(WAM, T_d, q, 1.0, task)[0]
    full = oracle_task.pose_error(T_d, WAM.fk(q))[3:]
    full = T_d[:3, :3].T @ full if frame == "target" else full
    rows = ["xyz".index(axis) for axis in axes]
    np.testing.assert_allclose(e, full[rows], atol=1e-9)
    goal = WAM.fk(q)
    numeric = difference_jacobian(WAM.fk, q)[3:]
    numeric = goal[:3, :3].T @ numeric if frame == "target" else numeric
    np.testing.assert_allclose(
        error_and_jacobian(WAM, goal, q, 1.0, task)[1], numeric[rows], atol=1e-8
    )


def test_swing_and_twist():
    """Tipped by 0.3 about x after a turn by 0.8 about z: swing and twist tell them apart."""
    z, x = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    R = rotation(x, 0.3) @ rotation(z, 0.8)
    np.testing.assert_allclose(oracle_task.swing(R, z), swing_of(R), atol=1e-12)
    np.testing.assert_allclose(oracle_task.twist(R, z), 0.8 * z, atol=1e-12)
    R = rotation(z, 0.8)
    np.testing.assert_allclose(oracle_task.swing(R, z), 0.0, atol=1e-12)
    np.testing.assert_allclose(oracle_task.swing(rotation(x, 0.3), z), 0.3 * x, atol=1e-12)
    assert np.linalg.norm(oracle_task.swing(rotation(x, np.pi), z)) == pytest.approx(np.pi)


def swing_of(R):
    """What turns the direction R^T z onto z: about the axis between, by the angle between."""
    z = np.array([0.0, 0.0, 1.0])
    a = R.T @ z
    axis = np.cross(a, z) / np.linalg.norm(np.cross(a, z))
    turned = rotation(axis, np.arccos(a @ z)) @ a
    np.testing.assert_allclose(turned, z, atol=1e-12)
    return np.arccos(a @ z) * axis


@pytest.mark.parametrize("objective", ["limits", "centring", "posture", "obstacle"])
def test_gradients_are_those_of_the_values(objective):
    options = SolverOptions(objective=objective, obstacle=(0.1, 0.2, 0.3), influence=0.9)
    rows, rng = Rows(WAM), np.random.default_rng(3)
    q = 0.4 * (WAM.lower + WAM.upper) + 0.2 * WAM.random(rng)
    numeric = [
        (objectives.value(options, rows, q + h) - objectives.value(options, rows, q - h)) / 2e-6
        for h in 1e-6 * np.eye(7)
    ]
    assert np.abs(numeric).max() > 1e-3
    np.testing.assert_allclose(objectives.gradient(options, rows, q), numeric, rtol=1e-5, atol=1e-7)


def test_criterion_of_the_limits_is_0_in_the_middle_and_rises():
    rows = Rows(WAM)
    middle = 0.5 * (WAM.lower + WAM.upper)
    values = [objectives.value(SolverOptions(), rows, middle + share * (WAM.upper - middle))
              for share in (0.0, 0.3, 0.9, 0.99)]  # fmt: skip
    assert values[0] == pytest.approx(0.0, abs=1e-14)
    assert values == sorted(values)
    assert values[1] == pytest.approx(0.5 * 4.0 * (1 / (1 - 0.09) - 1))


def test_paths_end_at_the_tip_and_segments_have_distances():
    q = WAM.random(np.random.default_rng(4))
    (points,) = objectives.paths(WAM.chain, q)
    assert len(points) == 8
    np.testing.assert_allclose(points[-1], WAM.fk(q)[:3, 3], atol=1e-14)
    a, b = np.zeros(3), np.array([2.0, 0.0, 0.0])
    assert objectives.to_segment(np.array([1.0, 1.0, 0.0]), a, b) == 1.0
    assert objectives.to_segment(np.array([5.0, 4.0, 0.0]), a, b) == 5.0
    assert objectives.to_segment(np.array([0.0, 0.0, 3.0]), a, a) == 3.0


def test_step_bounds():
    e = [0.3, 3.0, -4.0]
    np.testing.assert_allclose(diagonal("max", [1, 1, 1], e, largest_change=2.0),
                               [0.15, 1.5, -2.0])  # fmt: skip
    np.testing.assert_allclose(diagonal("norm", [3, 1, 1], [0, 3, -4], Delta=0.5), [0, 0.3, -0.4])


def test_selective_damping():
    """Each of three directions, worth 1 each, is cut at gamma, and the whole in its 2-norm."""
    cut = np.array([0.3, 0.5, -0.5])
    dq = diagonal("sd", [3.0, 2.0, 1.0], [0.9, 6.0, -4.0])
    np.testing.assert_allclose(dq, 0.5 * cut / np.linalg.norm(cut))
    dq = diagonal("sd", [3.0, 2.0, 1.0], [0.9, 6.0, -4.0], bug_compatible=True)
    cut[2] = -4.0  # its largest component, signed, is 0
    np.testing.assert_allclose(dq, 0.5 * cut / np.linalg.norm(cut))


def test_selective_damping_where_joints_cancel():
    """v = (1, -1) / sqrt 2 and M = 1: its largest component is cut at gamma, the whole in its norm.

    Where the column that says how far a joint moves the tip is 4, M is 4 and gamma a quarter.
    """
    dq = step_of("sd", [[0.01, -0.01]], [1.0], gamma_max=0.4)
    np.testing.assert_allclose(dq, np.array([0.4, -0.4]) / np.sqrt(2.0))
    P, J = np.array([[1.0], [0.0]]), np.array([[0.5, 4.0]])
    o = SimpleNamespace(gamma_max=0.4, bug_compatible=False)
    moved = bounds.selectively_damped(P, J, np.zeros(2), np.array([9.0]), o, 8.0 * J)
    np.testing.assert_allclose(moved, [0.1, 0.0])  # M = 4


def test_sdls():
    """Two groups of one row each, u = (1, 1) / sqrt 2: N = sqrt 2. M is 2 * sqrt 2 / s * s / 2.

    Softly, the one direction ends below gamma_max, and the whole is left as it is.
    """
    J = np.array([[1.0, 0.0], [1.0, 0.0]])
    one = {"groups": [0, 0], "gamma_max": 0.4}
    two = {"groups": [0, 1], "gamma_max": 0.4}
    np.testing.assert_allclose(step_of("sdls", J, [3.0, 3.0], **one), [0.4, 0.0])  # N = M = 1
    np.testing.assert_allclose(step_of("sdls", J, [3.0, 3.0], **two), [0.4, 0.0])  # N = M = sqrt 2
    soft = step_of("sdls", J, [3.0, 3.0], soft=True, **two)
    np.testing.assert_allclose(soft, [0.4 * 3.0 / 3.4, 0.0])
    np.testing.assert_allclose(step_of("sdls", J, [3.0, 3.0], slides=[0], **two), [3.0, 0.0])


def test_sdls_where_joints_work_against_each_other():
    """P = (1, 1) for a J whose columns are 2 and 3 long: M = 5, N = 1, gamma = 0.08."""
    o = SimpleNamespace(gamma_max=0.4, soft=False)
    P, J = np.array([[1.0], [1.0]]), np.array([[-2.0, 3.0]])
    still = np.zeros(2)
    dq = bounds.sdls(P, J, still, np.array([1.0]), o, J, np.zeros(1), np.zeros(2, bool))
    np.testing.assert_allclose(dq, [0.08, 0.08])
    dq = bounds.sdls(P, J, still, np.array([1.0]), o, J, np.zeros(1), np.array([True, False]))
    np.testing.assert_allclose(dq, [1.0, 0.08])


def test_clamp():
    o = SimpleNamespace(D_max=1.0, adaptive=False, bug_compatible=False)
    e, groups = np.array([3.0, 4.0, 0.6, 0.0]), np.array([0, 0, 1, 1])
    np.testing.assert_allclose(bounds.clamped(o, e, groups, None, e), [0.6, 0.8, 0.6, 0.0])
    o.adaptive = True
    np.testing.assert_allclose(bounds.clamped(o, e, groups, None, e), e)
    last = np.array([0.0, 4.5, 9.0, 0.0])  # moved away by 0.5, and nearer
    np.testing.assert_allclose(bounds.clamped(o, e, groups, last, e), [0.9, 1.2, 0.6, 0.0])


def test_clamp_by_the_published_slip():
    """Group 1 of two positions looks at components 1 to 3 of the last error, not 3 to 5."""
    o = SimpleNamespace(D_max=1.0, adaptive=True, bug_compatible=True)
    e, groups = np.array([0.0, 0, 0, 5.0, 0, 0]), np.array([0, 0, 0, 1, 1, 1])
    last = np.array([0.0, 2.0, 0, 2.0, 0, 5.0])
    expected = [0, 0, 0, 1.0 + 5.0 - np.sqrt(8.0), 0, 0]
    np.testing.assert_allclose(bounds.clamped(o, e, groups, last, e), expected)


def test_halve():
    """What is out of reach of J = [1 0]^T, 0.4, is halved until it is within 0.15: twice."""
    J = np.array([[1.0], [0.0]])
    o = SimpleNamespace(halving=0.15)
    np.testing.assert_allclose(bounds.halved(o, np.array([2.0, 0.4]), J), [0.5, 0.1])
