# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures 1 and 2 of Colome & Torras: the paper's claims about the laws."""

import numpy as np
import pytest
from reproduce.pictures import shows_something

from dls_ik.reproduce.experiment import begin, experiment, reproduce


@pytest.fixture(scope="module")
def conditions():
    return reproduce(experiment("figure-1"), 60)


@pytest.fixture(scope="module")
def gains():
    return reproduce(experiment("figure-2"), 100)


def test_condition_number_of_svf_stays_below_its_bound(conditions):
    rows = {row["method"]: row for row in conditions.rows}
    assert not any("differs" in row for row in rows.values())
    assert rows["svf"]["last"] == pytest.approx(rows["svf"]["bound"], rel=1e-3)
    svf = conditions.series["condition"]["svf"]
    assert np.all(svf <= rows["svf"]["bound"] * (1 + 1e-9))
    assert np.all(np.diff(svf) > -1e-6 * svf[1:])


def test_pseudoinverse_and_transpose_have_equal_condition_numbers(conditions):
    by_method = conditions.series["condition"]
    np.testing.assert_allclose(by_method["jp"], by_method["jt"], rtol=1e-6)
    assert by_method["jp"][-1] > 1e9


def test_damping_has_the_two_cases_of_the_appendix(conditions):
    sigma, jd = conditions.series["sigma"], conditions.series["condition"]["jd"]
    s1, lambda_ = np.linalg.norm([1, 2, 3, 4]), 1e-3
    peak = (s1**2 + lambda_**2) / (2 * s1 * lambda_)
    middle = (sigma > lambda_**2 / s1 * 3) & (sigma < 0.1)
    assert jd[middle].max() == pytest.approx(peak, rel=0.1)
    near = sigma < lambda_**2 / s1 / 3
    assert np.all(np.diff(jd[near]) > 0)


def test_gains_are_those_of_the_formulas(gains):
    sigma, by_method = gains.series["sigma"], gains.series["gain"]
    np.testing.assert_allclose(by_method["jp"], 1 / sigma, rtol=1e-9)
    np.testing.assert_allclose(by_method["jd"], sigma / (sigma**2 + 1e-6), rtol=1e-9)
    h = (sigma**3 + 10 * sigma**2 + 2 * sigma + 0.01) / (sigma**2 + 10 * sigma + 2)
    np.testing.assert_allclose(by_method["svf"], 1 / h, rtol=1e-9)
    np.testing.assert_allclose(by_method["svf+ed"], h / (h**2 + 5e-5), rtol=1e-9)


def test_peak_gains_match_the_formulas_of_the_appendix(gains):
    rows = {row["method"]: row for row in gains.rows}
    assert not gains.printed
    for method in ("jd", "jf", "ed", "svf"):
        assert rows[method]["peak"] == pytest.approx(rows[method]["peak_by_formula"], rel=0.02)


@pytest.mark.parametrize("what", ["figure-1", "figure-2"])
def test_figures_1_and_2_are_drawn_with_and_without_results(what, conditions, gains):
    full = conditions if what == "figure-1" else gains
    assert shows_something(experiment(what).plot(full))
    experiment(what).plot(begin(experiment(what)))


def test_a_relative_error_grows_by_the_condition_number_at_most(conditions):
    rows = {row["method"]: row for row in conditions.rows}
    assert all(0.0 < row["bound_share"] <= 1.0 + 1e-9 for row in rows.values())
    assert rows["jd"]["bound_share"] > 0.9


def test_error_bound_holds_for_random_cases_and_is_low_for_svf(conditions):
    rows = {row["method"]: row for row in conditions.series["random"]}
    assert all(0.0 < row["share"] <= 1.0 + 1e-9 for row in rows.values())
    assert rows["jp"]["largest_kappa"] == pytest.approx(rows["jt"]["largest_kappa"], rel=1e-6)
    assert rows["svf"]["largest_kappa"] < rows["jp"]["largest_kappa"]
    assert rows["ed"]["kappa"] < rows["jp"]["kappa"]  # far goals increase the damping
