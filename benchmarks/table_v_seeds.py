# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Table V of Colome & Torras 2012 at many seeds, compared with chance.

Each seed draws 1000 pairs of start and goal, as in the paper, and runs the reading "as published".
The distribution under the null hypothesis (only the sampling of pairs separates our figures from
the printed ones) is the bootstrap over the pairs of all seeds together, see
dls_ik/reproduce/colome_torras_sampling.py. The last row compares the pairs of all seeds together.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.common import Table, columns, finish, guarded, parser
from dls_ik import IkSolver, RobotModel
from dls_ik.reproduce.colome_torras_outcomes import Outcomes, scores
from dls_ik.reproduce.colome_torras_readings import (
    FIGURES,
    NOT_EXPLAINED,
    NUM_PAPER_PAIRS,
    READING_AS_PUBLISHED,
    printed_rows,
)
from dls_ik.reproduce.colome_torras_sampling import NullDistribution, null_distribution, null_test
from dls_ik.reproduce.colome_torras_table_v import run_in_batches
from dls_ik.reproduce.experiment import SIGMAS

SEEDS = (*range(1, 16), 22, 33, 44, 55, 777)
DRAWS, DRAWS_OF_ALL = 500, 400  # numbers of bootstrap draws: for the seeds, and for all pairs
IN_LIMITS = "in_limits_percent"
COLUMNS = columns(
    "seed; figures :d; beyond 3 :d; mean z^2 :.2f; its p :.3f; p with covariance :.3f; "
    "in limits: below print :d; p of the signs :.2f; largest z"
)


def outcomes_of(seed: int, pairs: int) -> dict[str, Outcomes]:
    """Return the outcomes of the methods of Table V for random pairs of start and goal."""
    robot, rng = RobotModel.wam(), np.random.default_rng(seed)
    starts = robot.random(pairs, rng)
    goals = robot.fk(robot.random(pairs, rng))
    found = {}
    for name in FIGURES:
        method, options = READING_AS_PUBLISHED.options_of(name)
        solver = IkSolver(robot, method, **options)
        found[name] = run_in_batches(READING_AS_PUBLISHED, solver, goals, starts)
    return found


def together(runs: Mapping[str, Mapping[str, Outcomes]]) -> dict[str, Outcomes]:
    """Return the outcomes of several runs as those of one run."""
    return {
        name: Outcomes(
            *(np.concatenate([getattr(run[name], part) for run in runs.values()])
              for part in ("solved", "inside", "iterations", "residual"))
        )
        for name in FIGURES
    }  # fmt: skip


def row(name: str, found: Mapping[str, Outcomes], null: NullDistribution) -> list[Any]:
    """Return the row of COLUMNS that compares a run with the paper.

    Args:
        name: Name of the row.
        found: Outcomes of the run by method.
        null: Distribution of the z-scores under the null hypothesis.
    """
    z = {
        (printed["method"], key): value
        for printed in printed_rows()
        for key, value in scores(found[printed["method"]], printed, NUM_PAPER_PAIRS).items()
        if (printed["method"], key) != NOT_EXPLAINED
    }
    test = null_test(null, z, name)
    below = sum(value < 0.0 for (_, key), value in z.items() if key == IN_LIMITS)
    largest = max(z, key=lambda figure: abs(z[figure]))
    return [
        name,
        len(z),
        test["beyond"],
        test["mean_z2"],
        test["mean_z2_p"],
        test["covariance_p"],
        below,
        test[f"sign_{IN_LIMITS}_p"],
        f"{z[largest]:+.1f} {' '.join(largest)}",
    ]


def main() -> None:
    """Run all seeds, and compare each with chance."""
    options = parser(__doc__, samples=NUM_PAPER_PAIRS)
    options.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    given = options.parse_args()
    runs = {str(seed): outcomes_of(seed, given.samples) for seed in given.seeds}
    every, rng = together(runs), np.random.default_rng(0)
    null = null_distribution(every, rng, DRAWS, given.samples)
    table = Table(f"{len(runs)} seeds, {given.samples} pairs each", COLUMNS)
    table.rows += [row(name, found, null) for name, found in runs.items()]
    table.rows.append(row("all", every, null_distribution(every, rng, DRAWS_OF_ALL)))
    beyond = np.sum(np.abs(null.z) > SIGMAS, axis=1)
    finish(
        given,
        [table],
        [
            f"by chance {beyond.mean():.2f} figures are beyond 3 on average; the most in 99 of 100 "
            f"draws is {np.quantile(beyond, 0.99):.0f}"
        ],
    )


if __name__ == "__main__":
    guarded(main)
