# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Test whether random sampling alone explains our differences from Table V of the paper.

The paper is Colome & Torras 2012. Its authors and we ran each method from random start
configurations to random goal poses, with different random numbers. The null hypothesis is that both
ran the same methods, so that our numbers and the printed ones differ only by the random choice of
starts and goals.

All numbers in our table come from the same pairs of start and goal, so they are correlated, and a
normal distribution of independent z-scores does not apply. The distribution under the null
hypothesis is therefore computed by a bootstrap: two samples are drawn with replacement from the
pairs of our run. The numbers of the first sample replace ours; the numbers of the second sample,
rounded as in the paper, replace the printed ones. The z-scores that result are one draw of the
distribution.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.reproduce.colome_torras_outcomes import Outcomes, figures, scores
from dls_ik.reproduce.colome_torras_readings import COMPARED, NOT_EXPLAINED, NUM_PAPER_PAIRS
from dls_ik.reproduce.experiment import SIGMAS, Row

NUM_BOOTSTRAP_SAMPLES = 400
DIGITS = {"residual": 3}  # decimals printed in the paper, by column; 1 in all other columns
# Share of the identity matrix that is added to the correlation matrix to make it invertible
CORRELATION_SHRINKAGE = 0.1

Scores = Mapping[tuple[str, str], float]  # z-score of the number in a row and column of the table


class NullDistribution(NamedTuple):
    """Distribution of the z-scores if our numbers and the printed ones differ only by chance.

    The z-scores compare k numbers of Table V in b bootstrap draws; see the module
    :mod:`dls_ik.reproduce.colome_torras_sampling`. Their covariance is estimated from the first
    half of the draws. The statistic that uses the covariance is computed for the second half,
    because it would be too small for draws from which the covariance was estimated.
    """

    names: tuple[tuple[str, str], ...]  # method and column key of each of the k numbers
    z: Array  # (b, k) z-scores; 0 where a number is undefined in a draw

    @property
    def inverse(self) -> Array:
        """Inverse (k, k) of the covariance matrix of the z-scores.

        CORRELATION_SHRINKAGE mixes the correlation matrix with the identity to make it invertible.
        """
        z = self.z[: len(self.z) // 2]
        spread = z.std(axis=0)
        moving = z / np.where(spread > 0.0, spread, 1.0)
        correlation = moving.T @ moving / len(moving)
        k = len(self.names)
        shrunk = (1.0 - CORRELATION_SHRINKAGE) * correlation + CORRELATION_SHRINKAGE * np.eye(k)
        inverse = np.linalg.inv(shrunk)
        scale = np.where(spread > 0.0, 1.0 / np.where(spread > 0.0, spread, 1.0), 0.0)
        return np.asarray(scale[:, None] * inverse * scale)

    def vector(self, found: Scores) -> Array:
        """Return z-scores as an array (k,) in the order of `names`; 0 for missing z-scores."""
        return np.array([found.get(name, 0.0) for name in self.names])


def null_distribution(
    outcomes: Mapping[str, Outcomes], rng: np.random.Generator, samples: int, size: int = 0
) -> NullDistribution:
    """Compute the distribution of z-scores under the null hypothesis by a bootstrap.

    Each draw takes two samples, with replacement, from the outcomes of a run: one in place of our
    run, and one with NUM_PAPER_PAIRS pairs of start and goal in place of the paper's run.

    Args:
        outcomes: Outcomes of each method, by name, for the same n pairs of start and goal.
        rng: Source of random numbers.
        samples: Number of draws.
        size: Number of pairs in the sample in place of our run; 0 stands for n.
    """
    n = len(next(iter(outcomes.values())).solved)
    drawn: list[dict[tuple[str, str], float]] = []
    for _ in range(samples):
        ours, theirs = rng.integers(n, size=size or n), rng.integers(n, size=NUM_PAPER_PAIRS)
        found: dict[tuple[str, str], float] = {}
        for method, each in outcomes.items():
            row = scores(each.of(ours), _as_printed(figures(each.of(theirs))), NUM_PAPER_PAIRS)
            found |= {(method, key): value for key, value in row.items()}
        drawn.append(found)
    names = tuple(dict.fromkeys(name for found in drawn for name in found))
    names = tuple(name for name in names if name != NOT_EXPLAINED)
    return NullDistribution(
        names, np.array([[found.get(name, 0.0) for name in names] for found in drawn])
    )


def _as_printed(row: Row) -> Row:
    return {
        key: None if value is None else round(value, DIGITS.get(key, 1))
        for key, value in row.items()
    }


def null_test(null: NullDistribution, found: Scores, reading: str) -> Row:
    """Return a table row that compares the z-scores of a run with their null distribution.

    The row has the number of z-scores with an absolute value above SIGMAS, and the mean and the
    99 % quantile of this number under the null hypothesis. It also has the p-values (see
    :func:`share_above`) of these statistics: the mean of z^2; z^T C^-1 z, where C is the covariance
    of the z-scores; and for each column of Table V the absolute difference of the numbers of
    positive and negative z-scores.

    Args:
        null: Distribution of the z-scores under the null hypothesis.
        found: z-scores of the run, by method and column key.
        reading: Name of the run's reading (interpretation of the paper), which is copied to the
            row.
    """
    z, inverse, other = null.vector(found), null.inverse, null.z[len(null.z) // 2 :]
    beyond = np.sum(np.abs(null.z) > SIGMAS, axis=1)
    row: Row = {
        "reading": reading,
        "figures": len(null.names),
        "beyond": int(np.sum(np.abs(z) > SIGMAS)),
        "beyond_mean": float(beyond.mean()),
        "beyond_99": float(np.quantile(beyond, 0.99)),
        "mean_z2": float(np.mean(z**2)),
        "mean_z2_p": share_above(np.mean(null.z**2, axis=1), float(np.mean(z**2))),
        "covariance_p": share_above(
            np.einsum("bi,ij,bj->b", other, inverse, other), float(z @ inverse @ z)
        ),
    }
    for key in COMPARED:
        columns = [i for i, (_, column) in enumerate(null.names) if column == key]
        signs = np.abs(np.sign(null.z[:, columns]).sum(axis=1))
        row[f"sign_{key}_p"] = share_above(signs, float(abs(np.sign(z[columns]).sum())))
    return row


def share_above(values: Sequence[float] | Array, value: float) -> float:
    """Return the p-value of an observed statistic, which is never 0.

    The p-value is (1 + number of `values` that are not below `value`) / (1 + number of `values`).

    Args:
        values: Values of the statistic in draws from the null distribution.
        value: Observed value of the statistic.
    """
    return (1.0 + float(np.sum(np.asarray(values) >= value - 1e-9))) / (1.0 + len(values))
