# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Null hypothesis of Table V: bootstrap over pairs, with the correlation of the figures."""

import numpy as np
import pytest

from dls_ik.reproduce.colome_torras_outcomes import Outcomes, figures, scores
from dls_ik.reproduce.colome_torras_readings import NUM_PAPER_PAIRS
from dls_ik.reproduce.colome_torras_sampling import null_distribution, null_test, share_above

METHODS = [f"m{i}" for i in range(12)]


def sample(rng, shift=0.0):
    """Outcomes of 12 methods whose numbers of iterations depend on the same pairs."""
    hardness = rng.normal(size=NUM_PAPER_PAIRS)
    found = {}
    for method in METHODS:
        solved = hardness + 0.3 * rng.normal(size=NUM_PAPER_PAIRS) < 0.5
        steps = 10.0 + 3.0 * hardness + shift + 0.3 * rng.normal(size=NUM_PAPER_PAIRS)
        residual = np.where(solved, 0.0, 0.2 + 0.05 * np.abs(hardness))
        inside = solved & (hardness > -0.5)
        found[method] = Outcomes(solved, inside, np.where(solved, steps, 251.0), residual)
    return found


def compared(ours, theirs):
    return {
        (method, key): z
        for method in METHODS
        for key, z in scores(ours[method], figures(theirs[method]), NUM_PAPER_PAIRS).items()
    }


@pytest.fixture(scope="module")
def null():
    rng = np.random.default_rng(1)
    return null_distribution(sample(rng), rng, 200)


def test_figures_of_the_same_pairs_are_correlated(null):
    k = [i for i, (_, key) in enumerate(null.names) if key == "iterations"]
    correlation = np.corrcoef(null.z[:, k].T)
    assert correlation[np.triu_indices(len(k), 1)].min() > 0.5
    assert np.allclose(null.z.std(axis=0), 1.0, atol=0.2)


def test_samples_of_the_same_methods_are_seldom_rejected_and_others_always(null):
    rng = np.random.default_rng(2)
    p = []
    for _ in range(20):
        row = null_test(null, compared(sample(rng), sample(rng)), "r")
        p.append([row["mean_z2_p"], row["covariance_p"], row["sign_in_limits_percent_p"]])
    assert np.sum(np.array(p) < 0.01, axis=0).max() <= 2
    assert np.mean(p) == pytest.approx(0.5, abs=0.2)
    row = null_test(null, compared(sample(rng, 1.0), sample(rng)), "r")
    assert row["covariance_p"] == pytest.approx(1.0 / 101.0)


def test_chance_gives_correlated_figures_beyond_three_more_often_at_once(null):
    signs = np.abs(np.sign(null.z[:, [key == "in_limits_percent" for _, key in null.names]]).sum(1))
    assert np.mean(signs >= 10) > 0.1  # independent signs: 10 of 12 or more in 4 of 100


def test_the_value_itself_counts_as_a_draw():
    assert share_above([1.0, 2.0, 3.0], 4.0) == 0.25
    assert share_above([1.0, 2.0, 3.0], 2.0) == 0.75
