# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""SNS and HQP keep the bounds of all joints, and use them as far as their sources say."""

from pathlib import Path

import numpy as np
import pytest
from cases import ARMS, WAM, generic
from oracle_task import Rows
from ours import our_step

from dls_ik import IkSolver, RobotModel, Task
from dls_ik.errors import MethodError
from dls_ik.servo import Controller
from dls_ik.servo.local_ik import LocalIk

DEXTROUS = ARMS["9"]
LAWS = ["", "dls", "ed", "svf", "jf", "tpinv", "nf"]


def bounded(name, law, robot, q, J, e, most, **options):
    word = f"{name}+{law}" if law else name
    return our_step(word, robot, q, J, e, largest_change=most, **options)


def short(robot, rng):
    """Return q, J and an error whose exact step is far from all limits of the arm."""
    q, J, _, _ = generic(robot, rng)
    dq = 0.05 * rng.normal(size=robot.n)
    return q, J, J @ dq


@pytest.mark.parametrize("name", ["sns", "hqp"])
@pytest.mark.parametrize("law", LAWS)
def test_step_within_all_bounds_is_the_step_of_the_law(name, law):
    rng = np.random.default_rng(1)
    for robot in (WAM, DEXTROUS):
        for _ in range(4):
            q, J, e = short(robot, rng)
            expected = our_step(law or "jp", robot, q, J, e)
            ours = bounded(name, law, robot, q, J, e, 1.0)
            np.testing.assert_allclose(ours, expected, rtol=0.0, atol=1e-10)
            if name == "sns" and not law:
                best = bounded("sns", "", robot, q, J, e, 1.0, optimal_saturation=True)
                np.testing.assert_allclose(best, expected, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize("name", ["sns", "hqp"])
@pytest.mark.parametrize("law", LAWS)
def test_every_step_keeps_every_bound(name, law):
    rng = np.random.default_rng(2)
    for robot in (WAM, DEXTROUS):
        for _ in range(10):
            q = robot.random(rng=rng)
            near = rng.random(robot.n) < 0.3
            q = np.where(near, robot.finite_limits()[1], q)  # some joints are at a limit
            J, e = robot.jacobian(q), rng.normal(size=6)
            most = 10.0 ** rng.uniform(-2, 0)
            dq = bounded(name, law, robot, q, J, e, most)
            assert (np.abs(dq) <= most).all()
            assert (q + dq <= robot.upper + 1e-12).all()
            assert (q + dq >= robot.lower - 1e-12).all()


def scale_of(J, e, dq):
    """Return the s of J dq = s e; the direction of the tip must be kept."""
    s = e @ J @ dq / (e @ e)
    np.testing.assert_allclose(J @ dq, s * e, atol=1e-9 * np.linalg.norm(e))
    return s


def test_sns_keeps_the_direction_of_the_tip_and_the_optimal_one_is_at_least_as_fast():
    rng, better, found = np.random.default_rng(3), 0, 0
    for _ in range(200):
        q, J, e = short(DEXTROUS, rng)
        plain = bounded("sns", "", DEXTROUS, q, J, e, 0.02)
        best = bounded("sns", "", DEXTROUS, q, J, e, 0.02, optimal_saturation=True)
        exact = our_step("jp", DEXTROUS, q, J, e)
        scaled = 0.02 / np.abs(exact).max()
        s, s_best = scale_of(J, e, plain), scale_of(J, e, best)
        assert min(scaled, 1.0) - 1e-9 <= s <= s_best + 1e-9 <= 1.0 + 2e-9
        found += s > 1.05 * scaled
        better += s_best > s + 1e-6
        if abs(s - s_best) < 1e-9:  # the optimal step is the shortest one with its scale
            assert np.linalg.norm(best) <= np.linalg.norm(plain) + 1e-9
    assert found > 100
    assert better > 0


def test_hqp_leaves_the_smallest_error():
    """No other step within the bounds has a smaller error: SNS, clipped steps, random ones."""
    rng = np.random.default_rng(4)
    for _ in range(30):
        q, J, e = short(DEXTROUS, rng)
        dq = bounded("hqp", "", DEXTROUS, q, J, e, 0.02)
        left = np.linalg.norm(e - J @ dq)
        others = [
            bounded("sns", "", DEXTROUS, q, J, e, 0.02),
            np.clip(our_step("jp", DEXTROUS, q, J, e), -0.02, 0.02),
            *np.clip(dq + 1e-3 * rng.normal(size=(50, 9)), -0.02, 0.02),
        ]
        assert left <= min(np.linalg.norm(e - J @ other) for other in others) + 1e-12


@pytest.mark.parametrize("name", ["sns", "hqp"])
def test_solver_and_controller_stay_within_limits(name):
    rng, reached = np.random.default_rng(5), 0
    solver = IkSolver(WAM, name, max_restarts=20, timeout=60.0)
    for _ in range(20):
        result = solver.solve(WAM.fk(WAM.random(rng=rng)))
        assert WAM.within_limits(result.q)
        reached += result.success
    assert reached >= 18
    controller = Controller(WAM, method=name)
    q = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
    controller.seed(q)
    T = WAM.fk(q + 0.4)
    controller.follow_pose(T, 0.0)
    for k in range(1, 601):
        out = controller.cycle(0.005 * k, 0.005)
        assert (np.abs(out.q - q) <= WAM.velocity * 0.005 * (1.0 + 1e-9)).all()
        q = out.q
    assert out.position_error < 1e-6


def test_in_a_stream_other_joints_replace_one_at_its_velocity_limit():
    """jp scales the whole step for the slow first joint; SNS and HQP let other joints move more."""
    text = (Path(__file__).parents[2] / "urdf" / "wam7.urdf").read_text()
    slow = RobotModel.from_urdf(text.replace('velocity="2.0"', 'velocity="0.02"', 1))
    q = np.array([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0])
    T, left = WAM.fk(q + 0.2 * np.eye(7)[0]), {}
    for name in ("jp", "sns", "hqp"):
        local = LocalIk(slow, name, task=Task.position_only())
        local.reset(q)
        for _ in range(20):
            left[name] = local.step(T, 0.01).position_error
    assert left["sns"] < 0.5 * left["jp"]
    assert left["hqp"] < 0.5 * left["jp"]


def test_combinations_without_meaning_are_refused_with_the_reason():
    for name, words in {
        "sns+jt": "no inverse", "hqp+jt": "no inverse", "sns+sd": "each joint",
        "hqp+sdls": "each joint", "sns+odls": "optimal", "hqp+odls": "optimal",
    }.items():  # fmt: skip
        with pytest.raises(MethodError, match=words):
            IkSolver(WAM, name)
    with pytest.raises(MethodError, match="accuracy"):
        IkSolver(WAM, "hqp+jd", policy="accuracy")
    for name in ("sns+dls", "hqp", "jp"):
        with pytest.raises(MethodError, match="optimal_saturation needs the method 'sns'"):
            IkSolver(WAM, name, optimal_saturation=True)


def test_an_arm_without_limits_has_the_bound_of_the_step():
    robot = RobotModel.from_name("planar_2r")
    q, e = np.array([0.3, 0.5]), np.array([0.2, 0.1, 0.0, 0.0, 0.0, 0.0])
    J = Rows(robot, None, 0.5).jacobian(q, robot.fk(q))
    for name in ("sns", "hqp"):
        assert np.abs(our_step(name, robot, q, J, e, largest_change=0.1)).max() <= 0.1
