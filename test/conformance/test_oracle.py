# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the oracle against closed forms derived by hand."""

from types import SimpleNamespace

import numpy as np
import oracle_bounds as bounds
import pytest
from bare import bare, diagonal, step_of
from oracle_ik import parts_of


def test_parts_of_splits_method_names():
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
    "lm": S / (S**2 + 0.071),
    "nfd": S / (S**2 + 0.005**2 + LAST * 0.96 * 0.02**2),
    "gdls": S / (S**2 + 0.0004 * np.exp(-100.0 * S**2)),
    "svf": 1 / H,
    "svf+ed": H / (H**2 + 0.07),
    "jt": S * (S**2 @ E**2) / (S**4 @ E**2),
    "tpinv": np.array([0.5, 2.0, 50.0]),
    "jf": S / (S**2 + LAST * 0.96 * 0.02**2),
    "nf": np.array([0.5, 2.0, 0.02 / (0.0004 + 0.02 / 20 - 0.0004)]),
}


@pytest.mark.parametrize("law", LAWS)
def test_oracle_laws_match_closed_forms(law):
    options = {"error_gain": 0.5, "truncation": 0.0099}
    np.testing.assert_allclose(diagonal(law, S, E, **options), LAWS[law] * E, rtol=1e-12)


def test_oracle_truncation_drops_small_singular_values():
    np.testing.assert_allclose(diagonal("tpinv", S, E), [0.15, -0.4, 0.0], atol=1e-15)


def test_numerical_filtering_adds_damping_for_the_last_direction():
    dq = diagonal("nf", [1.0, 0.04, 0.01], [1.0, 1.0, 1.0], velocity_bound=20.0)
    common, own = 0.04 / 20 - 0.0016, 0.01 / 20 - 0.0001
    expected = [1 / (1 + common), 20.0, 0.01 / (0.0001 + common + own)]
    np.testing.assert_allclose(dq, expected, rtol=1e-12)


def test_jacobian_weighting_matches_closed_form():
    """Check J = [1 1]: joints share by 1 / w, and w is 1 for the joint without rising slope."""
    oracle = bare("jw", 2, np.zeros(1, int))
    slope = 400.0 * 2 * 9.0 / (4 * 1.0 * 19.0**2)  # slope at 9 in a range of +-10
    dq = oracle.step(np.array([9.0, 0.0]), np.array([[1.0, 1.0]]), np.array([1.0]))
    w = 1.0 + slope
    np.testing.assert_allclose(dq, [1 / (1 + w), w / (1 + w)], rtol=1e-12)
    dq = oracle.step(np.array([9.0, 0.0]), np.array([[1.0, 1.0]]), np.array([1.0]))
    np.testing.assert_allclose(dq, [0.5, 0.5], rtol=1e-12)


def test_gradient_projection_matches_equations_22_to_24():
    """Check (24), (23) and (22) for J = [1 0], v = (0.1, 0.3)."""
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


def test_task_augmentation_matches_closed_form():
    """Check rows (1, 0) and w_c grad H = 2 (-1, -3), for 0.7 and -2 mu H = -2 * 0.1 * 5."""
    options = {"objective": "posture", "reference": (1.0, 3.0), "mu": 0.1, "w_c": 2.0}
    dq = step_of("ta", [[1.0, 0.0]], [0.7], **options)
    np.testing.assert_allclose(dq, [0.7, (1.0 - 1.4) / 6.0], rtol=1e-12)


def test_jc_holds_joints_at_limits_and_tp_and_ctp_push_back():
    """Check a limit of 10, margin 0.5: jc holds joints pushed outward; tp and ctp push back."""
    J, e, q = [[1.0, 1.0]], [1.0], [10.0, 0.0]
    np.testing.assert_allclose(step_of("jc", J, e, q), [0.0, 1.0])
    np.testing.assert_allclose(step_of("jc", J, [-1.0], q), [-0.5, -0.5])
    np.testing.assert_allclose(step_of("tp", J, e, q, mu=0.2), [-2.0, 3.0])
    np.testing.assert_allclose(step_of("ctp", J, e, q, mu=0.2), [-2.0, 3.0])


def test_tp_holds_joints_in_margins_fully_and_ctp_by_half():
    """Check h = 1/2 in the middle of a margin of 1: TP holds the joint, CTP holds it by half."""
    J, e, q = [[1.0, 1.0]], [1.0], [9.5, 0.0]
    z = -0.5 * 0.2 * 9.5
    np.testing.assert_allclose(step_of("tp", J, e, q), [z, 1.0 - z])
    left = 1.0 - z
    expected = [z + 0.25 * left, 0.25 * left + 0.5 * left]
    np.testing.assert_allclose(step_of("ctp", J, e, q), expected)


def test_ctp_transpose_with_half_held_joint_matches_closed_form():
    """Check d = (I - H) J^T l = (1/2, 1) l for J = [1 1]: J d = 3/2 l, so that a = 2/3."""
    left = 1.0 + 0.5 * 0.2 * 9.5
    expected = [1.0 - left + left / 3.0, 2.0 * left / 3.0]
    np.testing.assert_allclose(step_of("ctp+jt", [[1.0, 1.0]], [1.0], [9.5, 0.0]), expected)


def test_max_and_norm_bounds_scale_the_step():
    e = [0.3, 3.0, -4.0]
    np.testing.assert_allclose(diagonal("max", [1, 1, 1], e, largest_change=2.0),
                               [0.15, 1.5, -2.0])  # fmt: skip
    np.testing.assert_allclose(diagonal("norm", [3, 1, 1], [0, 3, -4], Delta=0.5), [0, 0.3, -0.4])


def test_selective_damping_limits_each_direction_and_the_whole_step():
    """Check that three directions are limited to gamma, and the whole step in its 2-norm."""
    cut = np.array([0.3, 0.5, -0.5])
    dq = diagonal("sd", [3.0, 2.0, 1.0], [0.9, 6.0, -4.0])
    np.testing.assert_allclose(dq, 0.5 * cut / np.linalg.norm(cut))
    dq = diagonal("sd", [3.0, 2.0, 1.0], [0.9, 6.0, -4.0], bug_compatible=True)
    cut[2] = -4.0  # its largest signed component is 0, that of the sum 0.5
    np.testing.assert_allclose(dq, cut)


def test_selective_damping_of_cancelling_joints_matches_closed_form():
    """Check v = (1, -1) / sqrt 2, M = 1: limits on the largest component and on the whole norm.

    If the column of the joint that moves the tip is 4, M is 4 and gamma is a quarter.
    """
    dq = step_of("sd", [[0.01, -0.01]], [1.0], gamma_max=0.4)
    np.testing.assert_allclose(dq, np.array([0.4, -0.4]) / np.sqrt(2.0))
    P, J = np.array([[1.0], [0.0]]), np.array([[0.5, 4.0]])
    o = SimpleNamespace(gamma_max=0.4, bug_compatible=False)
    moved = bounds.selectively_damped(P, J, np.zeros(2), np.array([9.0]), o, 8.0 * J)
    np.testing.assert_allclose(moved, [0.1, 0.0])  # M = 4


def test_sdls_limits_row_groups_as_in_closed_form():
    """Check two groups of one row, u = (1, 1) / sqrt 2: N = sqrt 2, M = 2 * sqrt 2 / s * s / 2.

    With soft clamping the direction ends below gamma_max, and the whole step is unchanged.
    """
    J = np.array([[1.0, 0.0], [1.0, 0.0]])
    one = {"groups": [0, 0], "gamma_max": 0.4}
    two = {"groups": [0, 1], "gamma_max": 0.4}
    np.testing.assert_allclose(step_of("sdls", J, [3.0, 3.0], **one), [0.4, 0.0])  # N = M = 1
    np.testing.assert_allclose(step_of("sdls", J, [3.0, 3.0], **two), [0.4, 0.0])  # N = M = sqrt 2
    soft = step_of("sdls", J, [3.0, 3.0], soft=True, **two)
    np.testing.assert_allclose(soft, [0.4 * 3.0 / 3.4, 0.0])
    np.testing.assert_allclose(step_of("sdls", J, [3.0, 3.0], slides=[0], **two), [3.0, 0.0])


def test_sdls_of_opposing_joints_matches_closed_form():
    """Check P = (1, 1) for columns of J with the lengths 2 and 3: M = 5, N = 1, gamma = 0.08."""
    o = SimpleNamespace(gamma_max=0.4, soft=False)
    P, J = np.array([[1.0], [1.0]]), np.array([[-2.0, 3.0]])
    still = np.zeros(2)
    dq = bounds.sdls(P, J, still, np.array([1.0]), o, J, np.zeros(1), np.zeros(2, bool))
    np.testing.assert_allclose(dq, [0.08, 0.08])
    dq = bounds.sdls(P, J, still, np.array([1.0]), o, J, np.zeros(1), np.array([True, False]))
    np.testing.assert_allclose(dq, [1.0, 0.08])


def test_clamp_limits_each_group_and_adapts_to_the_last_error():
    o = SimpleNamespace(D_max=1.0, adaptive=False, adaptive_by="divergence", bug_compatible=False)
    e, groups = np.array([3.0, 4.0, 0.6, 0.0]), np.array([0, 0, 1, 1])
    np.testing.assert_allclose(bounds.clamped(o, e, groups, None, e), [0.6, 0.8, 0.6, 0.0])
    o.adaptive = True
    np.testing.assert_allclose(bounds.clamped(o, e, groups, None, e), e)
    last = np.array([0.0, 4.5, 9.0, 0.0])  # moved away by 0.5, and closer by 1.5
    np.testing.assert_allclose(bounds.clamped(o, e, groups, last, e), [0.9, 1.2, 0.6, 0.0])
    o.adaptive_by = "approach"  # closer by 1.5
    last = np.array([0.0, 6.5, 9.0, 0.0])
    np.testing.assert_allclose(bounds.clamped(o, e, groups, last, e), [1.5, 2.0, 0.6, 0.0])


def test_bug_compatible_clamp_reads_shifted_error_components():
    """Check that group 1 of two positions uses components 1 to 3 of the last error, not 3 to 5."""
    o = SimpleNamespace(D_max=1.0, adaptive=True, adaptive_by="divergence", bug_compatible=True)
    e, groups = np.array([0.0, 0, 0, 5.0, 0, 0]), np.array([0, 0, 0, 1, 1, 1])
    last = np.array([0.0, 2.0, 0, 2.0, 0, 5.0])
    expected = [0, 0, 0, 1.0 + 5.0 - np.sqrt(8.0), 0, 0]
    np.testing.assert_allclose(bounds.clamped(o, e, groups, last, e), expected)


def test_halve_halves_the_unreachable_part_of_the_error():
    """Check that the unreachable part 0.4 for J = [1 0]^T is halved twice, to at most 0.15."""
    J = np.array([[1.0], [0.0]])
    o = SimpleNamespace(halving=0.15)
    np.testing.assert_allclose(bounds.halved(o, np.array([2.0, 0.4]), J), [0.5, 0.1])
