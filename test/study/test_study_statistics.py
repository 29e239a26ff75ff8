# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Intervals and tests of a study, compared with scipy, resampling and sums by hand."""

from math import comb

import numpy as np
import pytest

from dls_ik.study.definition import Study, StudyMethod, StudyRobot
from dls_ik.study.results import StudyResults
from dls_ik.study.solve import COLUMNS
from dls_ik.study.statistics import comparisons, holm, median_interval, summaries, wilson_interval

stats = pytest.importorskip("scipy.stats", reason="scipy is not installed")


def results_of(solved, times, reference=None):
    """Results of methods a, b, ... on two robots and one case; solved and times are (2, k, v)."""
    shape = (2, 1, *np.shape(solved)[1:])
    columns = {name: np.ones(shape, kind) for name, (kind, _) in COLUMNS.items()}
    columns["solved"][:] = np.reshape(solved, shape)
    columns["time"][:] = np.reshape(times, shape)
    variants = tuple(StudyMethod(label, "jp") for label in "abcdefg"[: shape[-1]])
    robots = StudyRobot("one", "wam"), StudyRobot("two", "wam")
    study = Study(robots, variants, pairs=shape[2], metrics=("time",), reference=reference)
    return StudyResults(study, columns)


@pytest.mark.parametrize(("count", "total"), [(0, 10), (3, 10), (999, 1000), (1000, 1000)])
def test_interval_of_a_share_is_wilsons(count, total):
    found = wilson_interval(count, total)
    expected = stats.binomtest(count, total).proportion_ci(method="wilson")
    assert found.value == count / total
    assert found[1:] == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize("k", [1, 4, 31, 200])
def test_interval_of_a_median_is_that_of_resampling(k):
    values = np.random.default_rng(k).lognormal(size=k)
    draws = np.random.default_rng(1).choice(values, (20_000, k))
    found = median_interval(values)
    assert found.value == np.median(values)
    ranks = np.searchsorted(np.sort(values), [found.low, found.high])
    expected = np.percentile(np.median(draws, axis=1), [2.5, 97.5])
    of_expected = np.searchsorted(np.sort(values), expected)
    # Even k: the bootstrap's median is the mean of two values, next to the one that is found
    assert np.abs(ranks - of_expected).max() <= 1 + (k == 200)


def test_median_ignores_nan_and_is_nan_without_values():
    assert median_interval(np.array([np.nan, 2.0, 2.0])).value == 2.0
    assert np.isnan(median_interval(np.array([np.nan]))).all()


def test_holm_multiplies_the_smallest_p_by_the_number_of_tests():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(holm([0.5, 0.9]), [1.0, 1.0])


def test_success_is_compared_by_discordant_pairs_and_times_by_solved_pairs():
    rng = np.random.default_rng(0)
    solved = np.ones((2, 40, 2), bool)
    solved[0, :9, 1] = False  # robot one: 9 pairs are solved by a only, 1 by b only
    solved[0, 9, 0] = False
    times = rng.uniform(1.0, 1.1, (2, 40, 2))
    times[..., 1] *= 2.0
    found = {(each.robot, each.metric): each for each in comparisons(results_of(solved, times))}
    one = found["one", "solved"]
    assert one.p == pytest.approx(2.0 * sum(comb(10, k) for k in (0, 1)) / 2**10)
    assert one.p_holm == pytest.approx(2.0 * one.p)  # two robots; the other has p = 1
    assert one.effect.value == pytest.approx(8 / 40)
    assert one.better == "a"
    assert (found["two", "solved"].p, found["two", "solved"].better) == (1.0, "")
    assert found["one", "time"].pairs == 30
    assert found["two", "time"].effect.value == pytest.approx(0.5, rel=0.05)
    assert found["two", "time"].better == "a"
    assert found["all", "solved"].pairs == 80


def test_reference_limits_the_comparisons():
    solved, times = np.ones((2, 5, 3), bool), np.ones((2, 5, 3))
    every = comparisons(results_of(solved, times))
    some = comparisons(results_of(solved, times, "b"))
    assert {(each.first, each.second) for each in every} == {("a", "b"), ("a", "c"), ("b", "c")}
    assert {(each.first, each.second) for each in some} == {("a", "b"), ("c", "b")}


def test_summary_leaves_out_methods_that_do_not_support_a_robot():
    results = results_of(np.ones((2, 5, 2), bool), np.ones((2, 5, 2)))
    results.columns["applicable"][1, ..., 1] = False
    found = [(each.robot, each.method, each.pairs) for each in summaries(results)]
    assert found == [
        ("one", "a", 5), ("one", "b", 5), ("two", "a", 5), ("all", "a", 10), ("all", "b", 5),
    ]  # fmt: skip
