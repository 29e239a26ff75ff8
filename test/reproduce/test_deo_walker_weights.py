# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Full weights and task augmentation of Deo & Walker: the claims of the text."""

import numpy as np
import pytest
from reproduce.pictures import shows_something

from dls_ik.reproduce import deo_walker_weights as weights
from dls_ik.reproduce.deo_walker_damping import PLANAR_LINKS
from dls_ik.reproduce.experiment import begin, experiment, reproduce
from dls_ik.reproduce.tabaczynski import planar_robot
from dls_ik.solver.stepper import Stepper


@pytest.fixture(scope="module")
def report():
    return reproduce(experiment("weights"), 500)


@pytest.fixture(scope="module")
def rows(report):
    return {row["way"]: row for row in report.rows}


@pytest.mark.parametrize("q", [[0.3, 0.1, 1.2], [0.3, 0.0, 1.2], [0.3, 1.5, 1.2]])
def test_weight_and_damping_by_distance_match_equation_19(q):
    robot = planar_robot(PLANAR_LINKS)
    task, (name, options) = weights.AUGMENTED_METHODS[weights.BY_DISTANCE]
    stepper = Stepper(robot, name, q, task=task, rotation_weight=1.0, **options)
    x_dot = np.array([0.3, -0.2, 0.5])
    J = robot.jacobian(q)[[0, 1, 5]]
    s = np.linalg.svd(J, compute_uv=False)[-1]
    near = max(0.0, 1.0 - (s / weights.WEIGHT_EPSILON) ** 2)
    w, lambda_ = 1.0 - near**0.5 * (1.0 - weights.W_MIN), near * options["lambda_max"] ** 2
    W = np.diag([1.0, 1.0, w * w])  # W_e = I, W_c = w^2
    expected = np.linalg.lstsq(J.T @ W @ J + lambda_ * np.eye(3), J.T @ W @ x_dot)[0]
    np.testing.assert_allclose(stepper.rate(x_dot, 0.0), expected, rtol=1e-6, atol=1e-9)


def test_the_arm_begins_where_both_tasks_are_met():
    T = planar_robot(PLANAR_LINKS).fk(weights.first_configuration())
    np.testing.assert_allclose(T, weights.there_and_back(64)[0].T, atol=1e-12)


def test_only_weights_by_distance_keep_main_task_and_restore_second(report, rows):
    assert not any("differs" in row for row in report.rows)
    assert rows["pseudoinverse"]["peak"] > 100.0
    assert rows["constant lambda"]["off"] > 20.0 * rows[weights.BY_DISTANCE]["off"]
    assert rows[weights.CONSTANT_LABEL]["turned_last"] > 5.0
    series = report.series[weights.BY_DISTANCE]
    before = np.asarray(series["t"]) < 0.8  # s is above epsilon
    assert np.abs(np.asarray(series["turned"])[before]).max() < 0.05
    assert np.abs(report.series[weights.CONSTANT_LABEL]["turned"])[before].max() > 0.5


def test_full_weights_reduce_the_weighted_quantities(report):
    found = {row["weights"]: row for row in report.series["full weights"]}
    plain, diagonal, links = (found[name] for name in weights.FULL_WEIGHTS)
    assert diagonal["off_diagonal"] < 0.5 * plain["off_diagonal"]
    assert diagonal["off_across"] > 0.9 * plain["off_across"]
    assert links["peak_links"] < plain["peak_links"]


def test_weights_of_energy_do_not_depend_on_the_unit_of_length(report):
    found = {row["weights"]: row for row in report.series["units"]}
    assert found[weights.ENERGY_WEIGHTS]["change_percent"] < 1e-6
    assert found[weights.PLAIN_WEIGHTS]["change_percent"] > 50.0


def test_weights_are_drawn_with_and_without_results(report):
    assert shows_something(experiment("weights").plot(report))
    experiment("weights").plot(begin(experiment("weights")))
