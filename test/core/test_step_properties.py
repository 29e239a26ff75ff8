"""What every step owes its user: finite, bounded, still at the target, downhill, no jumps."""

import numpy as np
import pytest
from arms import random_arm
from kernels import WAM, options_of, step
from oracle_ik import error_and_jacobian, parts_of

from dls_ik import RobotModel, method_names

NAMES = method_names()
BOUNDED = [name for name in NAMES if parts_of(name).bound == "sd"]
FREE = [name for name in NAMES if parts_of(name).strategy in ("none", "jc")]
CTP = [name for name in NAMES if parts_of(name).strategy == "ctp"]
PUMA, PLANAR = RobotModel.from_name("puma560"), RobotModel.from_name("planar_2r")
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


def generic(robot, rng):
    """A configuration away from margins and singularities, with a target: q, J, e."""
    while True:
        q = 0.5 * (robot.lower + robot.upper) + 0.7 * (
            robot.random(rng) - 0.5 * (robot.lower + robot.upper)
        )
        e, J = error_and_jacobian(robot, robot.fk(robot.random(rng)), q)
        if np.linalg.svd(J)[1][-1] > 0.05:
            return q, J, e


@pytest.mark.parametrize("case", SINGULAR)
@pytest.mark.parametrize("name", NAMES)
def test_finite_at_a_singularity(name, case):
    robot, q = SINGULAR[case]
    rng = np.random.default_rng(2)
    for _ in range(5):
        e, J = error_and_jacobian(robot, robot.fk(robot.random(rng)), q)
        dq = step(name, robot, q, J, e)
        assert np.isfinite(dq).all()
        assert np.linalg.norm(dq) <= bound_of(name, e, J)


def bound_of(name, e, J):
    """How far a step may go: the largest gain of the law, with room for the strategy's own motion.

    The pseudoinverse passes over what is exactly singular; its gain is that of the least singular
    value that is left, of any set of free joints.
    """
    gains = {"jp": 1e12, "jd": 0.5 / 0.005, "svf": 1 / 0.01, "ed": 0.5 / np.sqrt(0.1 * (e @ e))}
    law, strategy, bound = parts_of(name)
    if bound == "sd":
        return 0.5 * (1.0 + 1e-12)
    gain = gains["jp" if (law, strategy) == ("svf", "ctp") else law]
    own = 10.0 if strategy in ("ctp", "active") else 0.0
    return gain * (np.linalg.norm(e) + own * np.linalg.norm(J)) + own


@pytest.mark.parametrize("name", BOUNDED)
@pytest.mark.parametrize("gamma_max", [1e-3, 0.1, 0.5])
def test_selective_damping_keeps_its_bound(name, gamma_max):
    rng = np.random.default_rng(3)
    longest = 0.0
    for _ in range(20):
        q = WAM.random(rng)
        J, e = WAM.jacobian(q), 10.0 ** rng.uniform(-3, 2) * rng.normal(size=6)
        dq = step(name, WAM, q, J, e, gamma_max=gamma_max)
        longest = max(longest, np.linalg.norm(dq))
    assert 0.9 * gamma_max < longest <= gamma_max * (1.0 + 1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_at_the_target_it_stays(name):
    rng = np.random.default_rng(4)
    for robot in (WAM, PUMA):
        for _ in range(5):
            q, J, _ = generic(robot, rng)
            np.testing.assert_array_equal(step(name, robot, q, J, np.zeros(6)), 0.0)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in CTP])
def test_at_the_target_it_stays_even_where_it_is_singular_or_at_a_limit(name):
    for robot, q in SINGULAR.values():
        J = robot.jacobian(q)
        np.testing.assert_array_equal(step(name, robot, q, J, np.zeros(6)), 0.0)


@pytest.mark.parametrize("name", CTP)
def test_ctp_moves_joints_at_their_limits_toward_mid_range(name):
    middle = 0.5 * (WAM.lower + WAM.upper)
    dq = step(name, WAM, FROZEN, WAM.jacobian(FROZEN), np.zeros(6))
    away = 0.2 * (middle - FROZEN)
    if parts_of(name).bound == "sd":
        away *= 0.5 / np.linalg.norm(away)
    np.testing.assert_allclose(dq, away, atol=1e-12)


@pytest.mark.parametrize("name", FREE)
@pytest.mark.parametrize("robot", [WAM, PUMA], ids=["wam", "puma560"])
def test_a_short_step_is_downhill(name, robot):
    rng = np.random.default_rng(5)
    for _ in range(10):
        q = generic(robot, rng)[0]
        T_d = robot.fk(robot.random(rng))
        e, J = error_and_jacobian(robot, T_d, q)
        dq = step(name, robot, q, J, e, alpha=1e-6)
        nearer = error_and_jacobian(robot, T_d, q + dq)[0]
        promised = (J @ dq) @ e / np.linalg.norm(e)
        assert promised > 0.0
        gained = np.linalg.norm(e) - np.linalg.norm(nearer)
        assert gained == pytest.approx(promised, rel=1e-2, abs=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_alpha_scales_the_step(name):
    q, J, e = generic(WAM, np.random.default_rng(6))
    half = step(name, WAM, q, J, e, alpha=0.5)
    np.testing.assert_allclose(half, 0.5 * step(name, WAM, q, J, e), rtol=1e-13)


@pytest.mark.parametrize("name", CTP)
@pytest.mark.parametrize("j", range(7))
def test_ctp_does_not_jump_where_a_margin_begins_or_ends(name, j):
    rng = np.random.default_rng([7, j])
    q, _, _ = generic(WAM, rng)
    T_d = WAM.fk(WAM.random(rng))
    size = WAM.upper[j] - WAM.lower[j]
    for edge in (WAM.upper[j] - 0.05 * size, WAM.upper[j], WAM.lower[j] + 0.05 * size):
        before, after = q.copy(), q.copy()
        before[j], after[j] = edge - 1e-9, edge + 1e-9
        steps = [step(name, WAM, x, *reversed(error_and_jacobian(WAM, T_d, x)))
                 for x in (before, after)]  # fmt: skip
        np.testing.assert_allclose(steps[0], steps[1], atol=1e-4)


@pytest.mark.parametrize("name", CTP)
def test_ctp_away_from_all_limits_is_the_method_without_it(name):
    law, _, bound = parts_of(name)
    plain = "+".join(part for part in (law, bound) if part not in ("jp", "none")) or "jp"
    assert options_of(plain) == options_of(name)
    rng = np.random.default_rng(8)
    for _ in range(10):
        q, J, e = generic(WAM, rng)
        expected = step(plain, WAM, q, J, e)
        np.testing.assert_allclose(step(name, WAM, q, J, e), expected, atol=1e-11)
