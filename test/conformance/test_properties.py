# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of properties of all steps: rest at the target, descent, bounds, continuity."""

import numpy as np
import pytest
from arms import random_arm
from cases import ARMS, CASES, NAMES, PLANAR, PUMA, SAMPLE, WAM, generic, label, placed, suits
from oracle_ik import error_and_jacobian, parts_of
from ours import options_of, our_step, stepper

SLIDER = random_arm(np.random.default_rng(1), "prismatic")
FROZEN = WAM.clip(np.full(7, 9.0))  # every joint at its upper limit
SINGULAR = {
    "wam straight": (WAM, np.zeros(7)),
    "wam wrist": (WAM, np.array([0.3, 0.5, 0.2, 1.0, 0.1, 0.0, 0.4])),
    "wam at all limits": (WAM, FROZEN),
    "puma straight": (PUMA, np.array([0.0, 0.0, -np.pi / 2, 0.0, 0.0, 0.0])),
    "planar straight": (PLANAR, np.zeros(2)),
    "planar folded": (PLANAR, PLANAR.clip([0.0, 9.0])),
    "one joint": (SLIDER, np.zeros(1)),
}
OFFSETS = [0.0, *(sign * 10.0**k for k in range(-12, -2, 3) for sign in (-1.0, 1.0))]
FEW_OFFSETS = [0.0, 1e-12, -1e-8, 1e-4]
COMBINED = [*NAMES, *SAMPLE]
LIMIT_STRATEGIES = ("tp", "ctp", "idv", "cns")


def parts(case):
    return parts_of(case[0])


def stays(case):
    """Return whether the method rests at the target; methods with an objective do not."""
    return parts(case).strategy not in ("gp", "ta", "srtp", "avoid")


def descends(case):
    """Return whether the step lowers the error, to first order, away from limits.

    J P is positive semidefinite for every law, also if single directions are damped or the whole
    step is shortened. Exceptions are: GP with a damped inverse, because I - J* J is not a null
    space projector (Deo & Walker 1993, 4); TA with a damped inverse, because the added row
    competes; weighted tasks (accuracy); ClampMag with a damped inverse, because it rotates the
    error; SDLS with sliding joints; JW and GWLN with SD or SDLS, because the directions are not
    those of J. TP and CTP equal the law outside margins, and may raise the error inside margins.
    """
    law, strategy, reach, bound = parts(case)
    exact = law == "jp" and bound in ("none", "max", "norm")
    if strategy in ("gp", "ta", "srtp", "avoid"):
        return exact and reach != "clamp"
    if strategy in ("jw", "gwln") and bound in ("sd", "sdls"):
        return False
    return (reach != "clamp" or exact) and case[1].get("policy") != "accuracy"


@pytest.mark.parametrize("case", list(filter(stays, CASES)), ids=label)
def test_step_at_the_target_is_zero(case):
    """Check inside the limits; without a push in margins also at singularities and limits."""
    name, options = case
    rng = np.random.default_rng(4)
    places = [(robot, placed(robot, "inside", rng)[0]) for robot in (WAM, ARMS["3"], ARMS["9"])]
    if parts(case).strategy not in LIMIT_STRATEGIES:
        places += SINGULAR.values()
    for robot, q in places:
        if suits(name, options, robot):
            dq = our_step(name, robot, q, robot.jacobian(q), np.zeros(6), **options)
            np.testing.assert_array_equal(dq, 0.0)


@pytest.mark.parametrize("strategy", ["gp", "ta", "srtp"])
@pytest.mark.parametrize("objective", ["limits", "centring", "manipulability", "posture"])
def test_objective_at_the_target_moves_only_in_the_null_space(strategy, objective):
    q, J, _, _ = generic(WAM, np.random.default_rng(14))
    dq = our_step(strategy, WAM, q, J, np.zeros(6), objective=objective, mu=0.2)
    assert np.linalg.norm(dq) > 1e-6
    np.testing.assert_allclose(J @ dq, 0.0, atol=1e-12 * max(1.0, np.linalg.norm(dq)))


@pytest.mark.parametrize("case", list(filter(descends, CASES)), ids=label)
def test_short_step_reduces_the_error_as_predicted(case):
    name, options = case
    rng = np.random.default_rng(5)
    weight = options.get("rotation_weight", 0.5)
    for robot in (WAM, PUMA):
        if not suits(name, options, robot):
            continue
        for _ in range(2):
            q, _, _, T_d = generic(robot, rng)
            e, J = error_and_jacobian(robot, T_d, q, weight)
            dq = our_step(name, robot, q, J, e, **{**options, "alpha": 1e-6})
            nearer = error_and_jacobian(robot, T_d, q + dq, weight)[0]
            promised = (J @ dq) @ e / np.linalg.norm(e)
            assert promised > 0.0
            gained = np.linalg.norm(e) - np.linalg.norm(nearer)
            assert gained == pytest.approx(promised, rel=1e-2, abs=1e-12)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_alpha_scales_the_step(case):
    name, options = case
    q, J, e, _ = generic(WAM, np.random.default_rng(6))
    whole = our_step(name, WAM, q, J, e, **{**options, "alpha": 1.0})
    half = our_step(name, WAM, q, J, e, **{**options, "alpha": 0.5})
    np.testing.assert_allclose(half, 0.5 * whole, rtol=1e-13, atol=1e-300)


@pytest.mark.parametrize("case", CASES, ids=label)
def test_steps_are_finite_at_and_near_singularities(case):
    name, options = case
    for robot, singular in SINGULAR.values():
        if not suits(name, options, robot):
            continue
        rng = np.random.default_rng(2)
        T_d, direction = robot.fk(robot.random(rng=rng)), rng.normal(size=robot.n)
        ours = stepper(name, robot, singular, **options)
        for offset in OFFSETS if name in NAMES and not options else FEW_OFFSETS:
            q = singular + offset * direction
            e, J = error_and_jacobian(robot, T_d, q)
            ours.reset(q)
            assert np.isfinite(ours.step_for(e, J)).all(), (q, offset)


# The bound sdls_near limits steps near the target only
@pytest.mark.parametrize(
    "name", [n for n in COMBINED if parts_of(n).bound not in ("none", "sdls_near")]
)
@pytest.mark.parametrize("most", [1e-3, 0.5])
def test_steps_respect_the_step_bound(name, most):
    option = {"max": "largest_change", "norm": "Delta"}.get(parts_of(name).bound, "gamma_max")
    slides = ARMS["8 with slides"].chain.prismatic
    longest, shapes = 0.0, [(WAM, np.ones(7, bool)), (ARMS["8 with slides"], ~slides)]
    for robot, turning in shapes:
        rng = np.random.default_rng(3)
        for _ in range(8):
            q, J, _, _ = generic(robot, rng)
            e = 10.0 ** rng.uniform(-3, 2) * rng.normal(size=6)
            dq = our_step(name, robot, q, J, e, alpha=1.0, D_max=0.4, **{option: most})
            every = np.ones(robot.n, bool) if parts_of(name).bound != "sdls" else turning
            in_norm = parts_of(name).bound in ("sd", "norm")
            size = np.linalg.norm(dq) if in_norm else np.abs(dq[every]).max()
            assert size <= most * (1.0 + 1e-12)
            longest = max(longest, size)
    assert longest > 0.5 * most


@pytest.mark.parametrize("name", ["odls", "gp+odls", "ta+odls", "jc+odls"])
@pytest.mark.parametrize(("search", "Delta"), [(17, 0.01), (18, 0.5), (17, 5.0)])
def test_optimal_damping_damps_only_steps_longer_than_delta(name, search, Delta):
    """Check that steps are undamped if short enough, and otherwise have the allowed length."""
    rng = np.random.default_rng(9)
    plain = name.replace("odls", "jp")
    for scale in (1e-3, 0.1, 1.0, 10.0):
        q, J, e, _ = generic(WAM, rng)
        options = {"objective": "centring"}
        dq = our_step(name, WAM, q, J, scale * e, Delta=Delta, search=search, **options)
        undamped = our_step(plain, WAM, q, J, scale * e, **options)
        assert np.linalg.norm(dq) <= Delta * (1.0 + 1e-12)
        if np.linalg.norm(undamped) <= Delta:
            np.testing.assert_allclose(dq, undamped, rtol=1e-9, atol=1e-12)
        elif name != "gp+odls":  # lambda of gp+odls is at least T
            assert np.linalg.norm(dq) >= Delta * (1.0 - 2e-3)


@pytest.mark.parametrize("off", [1e-9, 1e-12, 3e-14, 1e-14, 0.0])
def test_optimal_damping_is_within_its_bound_where_an_objective_pushes_hard(off):
    """Check a limit next to a singularity, without redundancy for the push."""
    q = np.array([PUMA.upper[0], -0.5, 0.4, 0.2, off, 0.1])
    _, J = error_and_jacobian(PUMA, PUMA.fk(q), q)
    dq = our_step("gp+odls", PUMA, q, J, np.zeros(6))
    assert np.linalg.norm(dq) <= 0.5 * (1.0 + 1e-12)


@pytest.mark.parametrize("law", ["jp", "dls", "svf"])
def test_ctp_does_not_jump_anywhere_in_a_margin(law):
    """Check that small steps through a margin and beyond cause proportionate changes."""
    q, _, _, T_d = generic(WAM, np.random.default_rng(13))
    size = WAM.upper[5] - WAM.lower[5]
    path = []
    for value in np.linspace(WAM.upper[5] - 0.06 * size, WAM.upper[5] + 0.01 * size, 1001):
        q[5] = value
        path.append(our_step(f"ctp+{law}", WAM, q, *reversed(error_and_jacobian(WAM, T_d, q))))
    jumps = np.linalg.norm(np.diff(path, axis=0), axis=1)
    assert jumps.max() < 0.03 * (np.linalg.norm(path[0] - path[-1]) + np.linalg.norm(path[0]))


@pytest.mark.parametrize("name", [n for n in COMBINED if parts_of(n).strategy in LIMIT_STRATEGIES])
def test_limit_strategies_equal_the_plain_method_away_from_limits(name):
    words = [word for word in name.split("+") if word not in LIMIT_STRATEGIES]
    plain = "+".join(words) or "jp"
    assert options_of(plain) == options_of(name)
    rng = np.random.default_rng(8)
    for _ in range(5):
        q, J, e, _ = generic(WAM, rng)
        expected = our_step(plain, WAM, q, J, e)
        np.testing.assert_allclose(our_step(name, WAM, q, J, e), expected, rtol=1e-9, atol=1e-11)
