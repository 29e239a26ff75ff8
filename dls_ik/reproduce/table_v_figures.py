"""The figures of a row of Table V, and which of them differ from the printed ones."""

from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.reproduce.chance import means_differ, percents_differ
from dls_ik.reproduce.report import Row


class Outcomes(NamedTuple):
    """How a method did on b pairs of start and goal."""

    solved: NDArray[np.bool_]  # (b,) reached, in limits or not
    inside: NDArray[np.bool_]  # (b,) reached in limits
    iterations: Array  # (b,) NaN where it is not known
    residual: Array  # (b,) norm of the scaled error at the end [m]
    time: Array | None = None  # (b,) [ms]


def figures(found: Outcomes) -> Row:
    """The columns of the table."""
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


def differing(found: Outcomes, printed: Row, printed_pairs: int) -> list[str]:
    """The columns that differ from the paper by more than the sampling of both."""
    row, n = figures(found), len(found.solved)
    shares = ("solved_percent", "in_limits_percent")
    differs = [k for k in shares if percents_differ(row[k], n, printed[k], printed_pairs)]
    printed_solved = round(printed_pairs * printed["solved_percent"] / 100.0)
    for key, values, count, rounding in (
        ("iterations", found.iterations, printed_pairs, 0.05),
        ("iterations_solved", found.iterations[found.solved], printed_solved, 0.05),
        ("residual", found.residual[~found.solved], printed_pairs - printed_solved, 0.0005),
    ):
        if row[key] is None or printed[key] is None:
            continue
        spread = float(values.std())
        if means_differ(row[key], len(values), printed[key], count, spread, rounding):
            differs.append(key)
    return differs


def _mean(values: Array) -> float | None:
    mean = float(values.mean()) if len(values) else nan
    return mean if np.isfinite(mean) else None
