# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures 4 to 7 of Deo & Walker: optimal damping keeps the bound with little further loss."""

import numpy as np
import pytest
from reproduce.pictures import shows_something

from dls_ik.reproduce.deo_walker import DELTA, FINEST, PLANAR_LINKS, PLANAR_START, rectangle
from dls_ik.reproduce.experiment import begin, experiment, reproduce
from dls_ik.reproduce.tabaczynski import planar_joints, planar_robot

WHATS = ("figures-4-5", "figure-6", "figure-7")
KEPT = DELTA * (1 + 2e-3)


@pytest.fixture(scope="module")
def reports():
    return {what: reproduce(experiment(what), 160) for what in WHATS}


def rows_of(report):
    return {row["method"]: row for row in report.rows}


@pytest.mark.parametrize("what", ["figures-4-5", "figure-6"])
def test_the_pseudoinverse_peaks_and_the_optimal_factor_does_not(reports, what):
    rows = rows_of(reports[what])
    assert rows["pseudoinverse"]["peak"] > 3 * DELTA
    for search in (17, 18):
        row = rows[f"optimal ({search})"]
        assert row["peak"] == pytest.approx(DELTA, rel=2e-3)
        assert row["peak"] <= KEPT
        assert rows["pseudoinverse"]["deviation"] < row["deviation"] < 0.1


@pytest.mark.parametrize("what", WHATS)
def test_searches_are_short_and_equation_18_needs_fewer_iterations(reports, what):
    rows = rows_of(reports[what])
    names = {name[:-5] for name in rows if name.endswith("(17)")}
    for name in names:
        slow, quick = rows[f"{name} (17)"], rows[f"{name} (18)"]
        assert 1 <= quick["searches"] <= slow["searches"] <= 3.5
        assert 1 <= quick["searches_anew"] <= 3.5
        assert quick["searches_anew"] <= slow["searches_anew"]
    assert shows_something(experiment(what).plot(reports[what]))
    experiment(what).plot(begin(experiment(what)))


def test_equation_18_started_at_zero_takes_the_printed_iterations(reports):
    for what, printed in (("figures-4-5", 2), ("figure-6", 3)):
        assert round(rows_of(reports[what])[FINEST]["searches_printed"]) == printed
    for what in ("figures-4-5", "figure-6"):
        assert not any("differs" in row for row in reports[what].rows)


def test_the_filter_by_a_running_estimate_moves_as_that_by_a_decomposition(reports):
    for what in ("figures-4-5", "figure-6"):
        exact, running = (
            reports[what].series[f"filter{x}"]["q"] for x in ("", ", running estimate")
        )
        np.testing.assert_allclose(running, exact, atol=1e-3)


def test_damping_only_where_the_pseudoinverse_is_too_fast(reports):
    series = reports["figures-4-5"].series
    norm = np.asarray(series["optimal (18)"]["norm"])
    assert np.all(norm <= KEPT)
    assert 1 < rows_of(reports["figures-4-5"])["optimal (18)"]["damped_percent"] < 15


def test_the_tip_comes_back_to_the_corner(reports):
    q = reports["figures-4-5"].series["optimal (18)"]["q"]
    corner = planar_joints(PLANAR_LINKS, PLANAR_START)[-1]
    assert np.linalg.norm(planar_joints(PLANAR_LINKS, q[-1])[-1] - corner) < 0.05


def test_the_rectangle_is_within_reach_and_its_corners_are_right():
    path = np.array([point.T[:2, 3] for point in rectangle(320)])
    np.testing.assert_allclose(np.ptp(path, axis=0), [0.7, 0.9], atol=1e-9)
    np.testing.assert_allclose(path[0], planar_joints(PLANAR_LINKS, PLANAR_START)[-1])
    assert np.linalg.norm(path, axis=1).max() < sum(PLANAR_LINKS)


def test_planar_joints_end_where_the_tip_is():
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (5, 3))
    points = planar_joints(PLANAR_LINKS, q)
    assert points.shape == (5, 4, 2)
    tips = planar_robot(PLANAR_LINKS).fk(q)[:, :2, 3]
    np.testing.assert_allclose(points[:, -1], tips, atol=1e-12)


def test_the_distance_criterion_brings_the_elbow_up_and_away(reports):
    rows = rows_of(reports["figure-7"])
    assert rows["distance (18)"]["elbow"] == "up"
    assert rows["no subtask (18)"]["elbow"] == "down"
    assert rows["distance (18)"]["clearance"] > 0.3
    assert rows["distance (18)"]["clearance"] > rows["reference (18)"]["clearance"]
    assert all(row["peak"] <= KEPT for row in rows.values())


def test_the_running_estimate_follows_the_least_singular_value(reports):
    for row in reports["figures-4-5"].series["estimates"]:
        assert row["worst_percent"] < 5.0
        assert row["estimate"] == pytest.approx(row["least"], rel=0.01)
