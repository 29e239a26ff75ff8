# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Null hypothesis of Table V: both samples of pairs come from the same methods.

All figures of a run come from the same pairs of start and goal. Therefore the figures are
correlated, and "one figure of 370 beyond 3 standard deviations" is not the distribution to expect.
Here this distribution is the bootstrap over pairs: two samples of pairs are drawn with replacement
from the pairs of a run. The figures of one sample take the place of ours, and the figures of the
other, rounded as in the paper, take the place of the printed ones. Every statistic of the
comparison with the paper is computed for each of these pairs of samples.
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
DIGITS = {"residual": 3}  # decimals of the printed figures; 1 in all other columns
# Share of the identity matrix that is added to the correlation matrix to make it invertible
CORRELATION_SHRINKAGE = 0.1

Scores = Mapping[tuple[str, str], float]  # z-score by (method, column key)


class NullDistribution(NamedTuple):
    """Bootstrap distribution of the z-scores of all figures, if only chance separates them.

    The first half of the draws estimates the covariance of the z-scores, and the second half the
    distribution of the statistic that uses it: the same draws would be too close to their own mean.
    """

    names: tuple[tuple[str, str], ...]  # (method, column key) of each figure
    z: Array  # (b, k) z-scores; 0 where a sample lacks the figure

    @property
    def inverse(self) -> Array:
        """Inverse (k, k) of the covariance, with a correlation matrix that is shrunk a little."""
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
        """Return z-scores (k,) in the order of `names`; 0 for a missing figure."""
        return np.array([found.get(name, 0.0) for name in self.names])


def null_distribution(
    outcomes: Mapping[str, Outcomes], rng: np.random.Generator, samples: int, size: int = 0
) -> NullDistribution:
    """Draw pairs of samples from the outcomes of a run, and compare each pair.

    The second sample of each pair has as many pairs of start and goal as the paper.

    Args:
        outcomes: Outcomes of each method for the same n pairs of start and goal.
        rng: Source of random numbers.
        samples: Number b of pairs of samples.
        size: Size of the first sample of each pair; 0 for that of the run.
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
    """Return a row that compares the z-scores of a run with their distribution under the null.

    The row has the number of figures beyond SIGMAS with the mean and the 99 % quantile that chance
    gives, and for each statistic the share of bootstrap samples in which it is at least as large as
    in the run: for the mean of z^2, for z^T C^-1 z with the covariance C of the z-scores, and for
    the number of figures of ours that are below the printed ones in the column "in limits" or above
    them, whichever is larger.

    Args:
        null: Distribution under the null hypothesis.
        found: z-scores of the run by (method, column key).
        reading: Name of the reading.
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
    """Return the p-value of a value: the share of the null distribution that is not below it.

    The value itself counts as one more draw, so that the p-value is never 0.
    """
    return (1.0 + float(np.sum(np.asarray(values) >= value - 1e-9))) / (1.0 + len(values))
