# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Statistics of a study: intervals of shares and medians, and paired tests of methods.

- Shares of solved pairs have Wilson's interval (Wilson 1927).
- Medians of metrics over the solved pairs have the percentile interval of the bootstrap (Efron &
  Tibshirani 1993). The bootstrap distribution of a median is that of an order statistic, which a
  beta distribution gives without resampling.
- Success of two methods on the same pairs is compared by McNemar's exact test (McNemar 1947), a
  metric on the pairs that both solve by Wilcoxon's signed-rank test (Wilcoxon 1945).
- The p-values of all comparisons of one metric are corrected by Holm's method (Holm 1979), those of
  all robots together separately from those of single robots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import import_module
from itertools import combinations
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.study.definition import LARGER_IS_BETTER
from dls_ik.study.results import StudyResults

ALL_ROBOTS = "all"
LEVEL = 0.95  # confidence level of intervals; the level of tests is 1 - LEVEL
Z_OF_LEVEL = 1.959963984540054  # quantile of the normal distribution for an interval of LEVEL
NUM_DRAWS = 20_000  # draws of the bootstrap distribution of a median
SUCCESS = "solved"
MAX_EXACT_PAIRS = 25  # pairs up to which the distribution of the signed ranks is computed exactly
RATIO_METRICS = ("time",)  # compared by their ratio, not by their difference


class Interval(NamedTuple):
    """Estimate with an interval of the confidence LEVEL."""

    value: float
    low: float
    high: float


class Summary(NamedTuple):
    """One method on the pairs of a robot and a case."""

    robot: str  # name, or "all"
    case: str
    method: str  # label of the variant
    pairs: int
    solved: Interval  # share of the pairs
    inside: float  # share of the pairs with an answer within the joint limits
    medians: dict[str, Interval]  # median of each metric over the solved pairs


class Comparison(NamedTuple):
    """Two methods on the same pairs of a robot and a case."""

    robot: str
    case: str
    metric: str  # "solved" or a metric
    first: str
    second: str
    pairs: int  # pairs that are compared; for a metric those that both methods solve
    # For success: share solved by the first method minus share solved by the second. For a metric:
    # median over the pairs of first minus second, or for times of first divided by second.
    effect: Interval
    p: float  # p-value of the test
    p_holm: float  # p-value with Holm's correction

    @property
    def better(self) -> str:
        """Label of the better method; "" if the test does not separate the two methods."""
        if not self.p_holm < 1.0 - LEVEL:
            return ""
        middle = 1.0 if self.metric in RATIO_METRICS else 0.0
        larger = self.metric == SUCCESS or self.metric in LARGER_IS_BETTER
        # A test can be significant although the median shows no effect: few pairs then differ.
        if self.effect.value == middle:
            return ""
        return self.first if (self.effect.value > middle) == larger else self.second


# Intervals


def wilson_interval(count: int, total: int) -> Interval:
    """Return the share count / total with Wilson's interval.

    Args:
        count: Number of successes.
        total: Number of trials; with 0 trials the interval is 0 to 1, and the share NaN.
    """
    if total == 0:
        return Interval(np.nan, 0.0, 1.0)
    z2, share = Z_OF_LEVEL * Z_OF_LEVEL, count / total
    centre = (share + z2 / (2.0 * total)) / (1.0 + z2 / total)
    half = Z_OF_LEVEL * sqrt(share * (1.0 - share) / total + z2 / (4.0 * total * total))
    half /= 1.0 + z2 / total
    # With rounding, the bounds 0 and 1 would not contain a share of 0 or 1.
    return Interval(share, min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half)))


def median_interval(values: Array) -> Interval:
    """Return the median of values (k,) with the percentile interval of the bootstrap.

    The bootstrap draws k ranks uniformly, and takes the value at the median of these ranks. The
    median of k uniform numbers has the beta distribution with both parameters equal to (k + 1)/2
    for odd k; for even k, this distribution lies between those of the two middle numbers.

    Args:
        values: (k,) values; NaN and infinite values are ignored.
    """
    ordered = np.sort(values[np.isfinite(values)])
    k = len(ordered)
    if k == 0:
        return Interval(np.nan, np.nan, np.nan)
    low, high = ordered[list(_ranks_of_median(k))]
    return Interval(float(np.median(ordered)), float(low), float(high))


@lru_cache(maxsize=4096)
def _ranks_of_median(k: int) -> tuple[int, int]:
    """Return the ranks of the ends of the interval of the median of k values."""
    draws = np.random.default_rng(0).beta((k + 1) / 2.0, (k + 1) / 2.0, NUM_DRAWS)
    tail = 50.0 * (1.0 - LEVEL)
    low, high = (min(int(k * end), k - 1) for end in np.percentile(draws, [tail, 100.0 - tail]))
    return low, high


def holm(p: Sequence[float]) -> Array:
    """Return p-values (m,) corrected by Holm's step-down method."""
    given = np.asarray(p, float)
    order, m = np.argsort(given), len(given)
    stepped = np.maximum.accumulate(given[order] * (m - np.arange(m)))
    found = np.empty(m)
    found[order] = np.minimum(stepped, 1.0)
    return found


# Tables


def summaries(results: StudyResults) -> list[Summary]:
    """Return the summary of each method for each robot and case, and for all robots together."""
    found = []
    for name, robot, case, index in _groups(results):
        columns = {
            column: results.of(column, robot, index)
            for column in ("applicable", SUCCESS, "inside", *results.study.metrics)
        }
        for v, variant in enumerate(results.study.variants):
            there = columns["applicable"][v]
            if there.any():
                solved = columns[SUCCESS][v] & there
                medians = {
                    metric: median_interval(columns[metric][v][solved].astype(float))
                    for metric in results.study.metrics
                }
                total = int(there.sum())
                share = wilson_interval(int(solved.sum()), total)
                inside = float(columns["inside"][v][there].mean())
                found.append(Summary(name, case, variant.label, total, share, inside, medians))
    return found


def _groups(results: StudyResults) -> Iterator[tuple[str, int | None, str, int]]:
    """Yield name and index of each robot with name and index of each case; then all robots."""
    study = results.study
    robots: list[tuple[str, int | None]] = [(r.name, i) for i, r in enumerate(study.robots)]
    if len(robots) > 1:
        robots.append((ALL_ROBOTS, None))
    for name, robot in robots:
        for index, case in enumerate(study.cases):
            yield name, robot, case, index


@lru_cache(maxsize=2)  # tens of thousands of tests take minutes
def comparisons(results: StudyResults) -> tuple[Comparison, ...]:
    """Compare the methods with each other, or with the reference of the study, by paired tests.

    Raises:
        OptionError: If scipy is not installed.
    """
    tests = scipy_stats()
    study = results.study
    labels = [variant.label for variant in study.variants]
    chosen = list(combinations(range(len(labels)), 2))
    if study.reference is not None:
        base = labels.index(study.reference)
        chosen = [(i, base) for i in range(len(labels)) if i != base]
    found: list[Comparison] = []
    for name, robot, case, index in _groups(results):
        solved = results.of(SUCCESS, robot, index)
        there = results.of("applicable", robot, index)
        values = {metric: results.of(metric, robot, index) for metric in study.metrics}
        for i, j in chosen:
            both = there[i] & there[j]
            if not both.any():
                continue
            where = name, case
            pair = labels[i], labels[j]
            found.append(_of_success(tests, where, pair, solved[i][both], solved[j][both]))
            both = both & solved[i] & solved[j]
            for metric, each in values.items():
                a, b = each[i][both].astype(float), each[j][both].astype(float)
                found.append(_of_metric(tests, where, pair, metric, a, b))
    return tuple(_corrected(found))


def _of_success(
    tests: Any,
    where: tuple[str, str],
    pair: tuple[str, str],
    a: NDArray[np.bool_],
    b: NDArray[np.bool_],
) -> Comparison:
    """Compare the success (k,) of two methods by McNemar's exact test."""
    only_a, only_b, k = int((a & ~b).sum()), int((b & ~a).sum()), len(a)
    differing = only_a + only_b
    p = float(tests.binomtest(only_a, differing).pvalue) if differing else 1.0
    share = (only_a - only_b) / k
    # Standard error of the difference of two paired shares
    half = Z_OF_LEVEL * sqrt(max(differing - (only_a - only_b) ** 2 / k, 0.0)) / k
    effect = Interval(share, max(-1.0, share - half), min(1.0, share + half))
    return Comparison(*where, SUCCESS, *pair, k, effect, p, p)


def _of_metric(
    tests: Any, where: tuple[str, str], pair: tuple[str, str], metric: str, a: Array, b: Array
) -> Comparison:
    """Compare the values (k,) of a metric of two methods by Wilcoxon's signed-rank test."""
    finite = np.isfinite(a) & np.isfinite(b)
    a, b = a[finite], b[finite]
    if metric in RATIO_METRICS:
        positive = (a > 0.0) & (b > 0.0)
        a, b = a[positive], b[positive]
        effects, differences = a / b, np.log(a / b)
    else:
        effects = differences = a - b
    p = _signed_rank_p(tests, differences[differences != 0.0])
    return Comparison(*where, metric, *pair, len(a), median_interval(effects), p, p)


def _signed_rank_p(tests: Any, differences: Array) -> float:
    """Return the p-value of Wilcoxon's signed-rank test of differences (k,) other than 0."""
    k = len(differences)
    if k == 0:
        return 1.0
    has_ties = len(np.unique(np.abs(differences))) < k
    method = "exact" if k <= MAX_EXACT_PAIRS and not has_ties else "approx"
    return float(tests.wilcoxon(differences, method=method).pvalue)


def _corrected(found: list[Comparison]) -> list[Comparison]:
    """Return the comparisons with Holm's correction for each metric, see the module docstring."""
    families: dict[tuple[str, bool], list[int]] = {}
    for i, each in enumerate(found):
        families.setdefault((each.metric, each.robot == ALL_ROBOTS), []).append(i)
    corrected = list(found)
    for members in families.values():
        for i, p in zip(members, holm([found[i].p for i in members]), strict=True):
            corrected[i] = found[i]._replace(p_holm=float(p))
    return corrected


def scipy_stats() -> Any:
    """Return the module scipy.stats.

    Raises:
        OptionError: If scipy is not installed.
    """
    try:
        return import_module("scipy.stats")
    except ImportError as error:
        raise OptionError("the tests of a study need scipy: pip install 'dls-ik[study]'") from error


def summary_columns(found: Sequence[Summary]) -> dict[str, list[Any]]:
    """Return summaries as the columns of a table."""
    rows = []
    for each in found:
        row = {name: getattr(each, name) for name in ("robot", "case", "method", "pairs")}
        row |= _interval(SUCCESS, each.solved) | {"inside": each.inside}
        for metric, median in each.medians.items():
            row |= _interval(metric, median)
        rows.append(row)
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}


def comparison_columns(found: Sequence[Comparison]) -> dict[str, list[Any]]:
    """Return comparisons as the columns of a table."""
    names = ("robot", "case", "metric", "first", "second", "pairs")
    rows = []
    for each in found:
        row = {name: getattr(each, name) for name in names}
        row |= _interval("effect", each.effect)
        rows.append(row | {"p": each.p, "p_holm": each.p_holm, "better": each.better})
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else {})}


def _interval(name: str, found: Interval) -> dict[str, float]:
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
