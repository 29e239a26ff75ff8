# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures 1 to 3 of Deo & Walker: claims of the text, norms and searches, errata."""

import numpy as np
import pytest
from reproduce.pictures import shows_something

from dls_ik.reproduce import deo_walker_damping as damping
from dls_ik.reproduce.experiment import begin, experiment, reproduce
from dls_ik.reproduce.tabaczynski import planar_robot
from dls_ik.solver.stepper import Stepper

WHAT = "figures-1-3"


@pytest.fixture(scope="module")
def report():
    return reproduce(experiment(WHAT), 40)


@pytest.fixture(scope="module")
def case():
    rng = np.random.default_rng(4)
    return rng.normal(size=(2, 3)), rng.normal(size=2), rng.normal(size=3)


def test_plain_and_total_norms_match_explicit_vectors(case):
    J, x_dot, v = case
    plain, total = damping.plain_norm(J, x_dot), damping.total_norm(J, x_dot, v, 0.0)
    for a in (1e-3, 0.1, 2.0):
        inverse = J.T @ np.linalg.inv(J @ J.T + a * np.eye(2))
        assert plain(np.array(a)) == pytest.approx(np.linalg.norm(inverse @ x_dot), rel=1e-9)
        both = inverse @ x_dot + (np.eye(3) - inverse @ J) @ v / a
        assert total(np.array(a)) == pytest.approx(np.linalg.norm(both), rel=1e-9)
        shifted = damping.total_norm(J, x_dot, v, 0.05)(np.array(a - 0.05))
        assert shifted == pytest.approx(float(total(np.array(a))), rel=1e-9)
        step = 1e-6 * a
        rise = plain(np.array([a - step, a + step]))
        assert plain.slope(a) == pytest.approx((rise[1] - rise[0]) / (2 * step), rel=1e-5)


@pytest.mark.parametrize("search", [17, 18])
def test_both_iterations_find_the_factor_of_the_kernel(search):
    robot, q = planar_robot(damping.PLANAR_LINKS), damping.PLANAR_START
    norm = damping.plain_norm(robot.jacobian(q)[:2], damping.TIP_VELOCITY)
    found = damping.iterates(norm, search)
    options = {"Delta": damping.DELTA, "Delta_tolerance": 1e-12, "search": search}
    stepper = Stepper(robot, "odls", q, task=damping.PLANAR_TASK, **options)
    stepper.rate(damping.TIP_VELOCITY, 0.0)
    assert found[-1] == pytest.approx(stepper.lambda2, rel=1e-8)


def test_the_factor_with_a_subtask_is_the_root_of_29_plus_the_shift():
    robot, q = planar_robot(damping.PLANAR_LINKS), damping.PLANAR_START
    norm = damping.total_norm(
        robot.jacobian(q)[:2], damping.TIP_VELOCITY, damping.SUBTASK, damping.SHIFT
    )
    options = {"Delta": damping.DELTA, "Delta_tolerance": 1e-12, "mu": 1.0}
    options |= {"objective": "posture", "reference": tuple(np.radians([-30.0, 0.0, 0.0]).tolist())}
    stepper = Stepper(robot, "gp+odls", q, task=damping.PLANAR_TASK, **options)
    stepper.rate(damping.TIP_VELOCITY, 0.0)
    root = damping.iterates(norm, 18)[-1]
    assert stepper.lambda2 == pytest.approx(root + damping.SHIFT, rel=1e-8)  # (28)
    J, T = stepper.jacobian(), stepper.lambda2
    inverse = J.T @ np.linalg.inv(J @ J.T + T * np.eye(2))
    expected = inverse @ damping.TIP_VELOCITY + (np.eye(3) - inverse @ J) @ damping.SUBTASK / T
    assert np.linalg.norm(expected) == pytest.approx(damping.DELTA, rel=1e-8)


def test_damping_of_each_law_agrees_with_the_text(report):
    assert len(report.rows) == len(damping.DAMPING_LAWS)
    assert sum(row.get("damped_Y_says") == "no" for row in report.rows) == 3
    assert not report.printed
    assert not any("differs" in row for row in report.rows)
    rows = {row["law"]: row for row in report.rows}
    for law in ("velocity (6)", "filter", "filter, running estimate", "optimal (18)"):
        assert rows[law]["norm_X"] == pytest.approx(damping.DELTA, rel=1e-3)
    assert rows["tracking (7)"]["lost_X"] == pytest.approx(50.0, abs=0.1)


def test_steep_origin_slows_equation_17_but_not_18(report):
    by_17 = [row["iterations_17"] for row in report.series["steep"]]
    assert np.all(np.diff(by_17) > 0)
    assert all(row["iterations_18"] <= 3 for row in report.series["steep"])
    figure_2 = [row for row in report.series["searches"] if row["figure"] == "Figure 2"]
    # The start, and the 2 iterations of the paper
    assert sum("factor_18" in row for row in figure_2) == 3


def test_equations_are_right_as_corrected_and_wrong_as_printed(report):
    rows = report.series["errata"]
    assert len(rows) == 4
    for row in rows:
        assert row["corrected"] == pytest.approx(row["checked"], rel=1e-3)
        assert abs(row["as_printed"] / row["checked"] - 1.0) > 1e-3


def test_norms_decrease_with_the_damping_factor_and_are_drawn(report):
    curves = report.series["curves"]
    for name in ("Figure 2", "with its pole (27)", "shifted (29)"):
        assert np.all(np.diff(curves[name]) < 0.0)
    assert shows_something(experiment(WHAT).plot(report))
    experiment(WHAT).plot(begin(experiment(WHAT)))
