# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Numbers in the columns of Table V of Colome & Torras 2012, and their comparison with the paper.

Each number of a run is compared with the printed number by a z-score: their difference divided by
the standard deviation of this difference. In this package, a figure is a number in a table.
"""

from __future__ import annotations

from math import nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.reproduce.experiment import Row, mean_score, percent_score


class Outcomes(NamedTuple):
    """Results of a method for b pairs of a start configuration and a goal pose."""

    solved: NDArray[np.bool_]  # (b,) whether the goal is reached, inside joint limits or not
    inside: NDArray[np.bool_]  # (b,) whether the goal is reached inside the joint limits
    iterations: Array  # (b,) number of iterations; NaN if the method does not report it
    residual: Array  # (b,) norm of the final error [m], with the rotation error scaled to [m]
    time: Array | None = None  # (b,) duration of each solver call [ms]; None if not measured

    def of(self, chosen: NDArray[np.int64]) -> Outcomes:
        """Return the outcomes of the pairs with the indices `chosen` (c,), without times."""
        return Outcomes(
            self.solved[chosen], self.inside[chosen], self.iterations[chosen], self.residual[chosen]
        )


def figures(found: Outcomes) -> Row:
    """Return the numbers of a row of Table V by column key, computed from a method's outcomes.

    The numbers are percentages of solved pairs, and means of iterations, residuals and times.
    """
    row: Row = {
        "solved_percent": 100.0 * float(found.solved.mean()),
        "in_limits_percent": 100.0 * float(found.inside.mean()),
        "iterations": _mean(found.iterations),
        "iterations_solved": _mean(found.iterations[found.solved]),
        "residual": _mean(found.residual[~found.solved]),
    }
    if found.time is not None:
        row["time_ms"] = _mean(found.time)
        row["time_solved_ms"] = _mean(found.time[found.solved])
        row["time_in_limits_ms"] = _mean(found.time[found.inside])
    return row


# Number of unsolved pairs below which the standard deviation of their residuals is unreliable
MIN_FAILURES = 30


def scores(found: Outcomes, printed: Row, printed_pairs: int) -> dict[str, float]:
    """Return the z-score of our number minus the printed number, by column key.

    Columns without a number of ours or without a printed number are left out.

    Args:
        found: Our outcomes of a method.
        printed: Printed row of this method.
        printed_pairs: Number of pairs of start and goal in the paper.
    """
    row, n = figures(found), len(found.solved)
    shares = ("solved_percent", "in_limits_percent")
    z = {k: percent_score(row[k], n, printed[k], printed_pairs, 0.05) for k in shares}
    printed_solved = round(printed_pairs * printed["solved_percent"] / 100.0)
    for key, values, count, rounding in (
        ("iterations", found.iterations, printed_pairs, 0.05),
        ("iterations_solved", found.iterations[found.solved], printed_solved, 0.05),
        ("residual", found.residual[~found.solved], printed_pairs - printed_solved, 0.0005),
    ):
        if row[key] is not None and printed[key] is not None and min(len(values), count) > 1:
            spread = float(values.std(ddof=1))
            if key == "iterations" and row["iterations_solved"] is not None:
                spread = _spread_of_iterations(found, printed, printed_pairs)
            if key == "residual" and min(len(values), count) < MIN_FAILURES:
                spread = max(spread, row[key], printed[key])
            z[key] = mean_score(row[key], len(values), printed[key], count, spread, rounding)
    return z


def _spread_of_iterations(found: Outcomes, printed: Row, printed_pairs: int) -> float:
    """Return an estimate of the standard deviation of a method's number of iterations per pair.

    A few unsolved pairs cause most of the deviation, and a small sample may have no unsolved pair.
    Therefore the share of solved pairs is estimated from our pairs and those of the paper together.

    Args:
        found: Our outcomes of the method.
        printed: Printed row of the method.
        printed_pairs: Number of pairs of start and goal in the paper.
    """
    n, share = len(found.solved), printed["solved_percent"] / 100.0
    p = (float(found.solved.sum()) + printed_pairs * share) / (n + printed_pairs)
    solved, unsolved = found.iterations[found.solved], found.iterations[~found.solved]
    if len(unsolved):
        last = float(unsolved.mean())
    elif share < 1.0:
        last = (printed["iterations"] - share * printed["iterations_solved"]) / (1.0 - share)
    else:
        last = float(solved.mean())
    between = p * (1.0 - p) * (last - float(solved.mean())) ** 2
    return sqrt(p * float(solved.var()) + between)


def _mean(values: Array) -> float | None:
    mean = float(values.mean()) if len(values) else nan
    return mean if np.isfinite(mean) else None
