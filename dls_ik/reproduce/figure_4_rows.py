"""Where the runs of figure 4 of Buss & Kim end, and its rows: means over the targets."""

from collections.abc import Sequence
from math import sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.reproduce.figure_4_printed import ACCURACIES, GROUPS, KEYS, METHODS
from dls_ik.reproduce.report import Reproduction, Row

GAINS = (1e-5, 1e-6)  # improvement of a step below which a run ends: the text's, and a tenth
MOST_STEPS, MOST_RISES = 4000, 3
REACHED = 1e-3  # summed distance of the effectors
WAY_POINTS = np.unique(np.geomspace(1, MOST_STEPS, 60).astype(np.int64))  # steps that are drawn
SIGMAS = 3.0  # standard errors that chance explains

Ways = Sequence[Sequence[Array]]  # for each target and method: summed distance over the steps


def end(distance: Array, gain: float) -> int | None:
    """The step after which the rules of the paper end a run; None: not yet."""
    better = distance[:-1] - distance[1:]
    ends = ((better >= 0.0) & (better < gain)) | (np.cumsum(better < 0.0) >= MOST_RISES)
    if ends.any():
        return int(np.argmax(ends)) + 1
    return MOST_STEPS if len(distance) > MOST_STEPS else None


def summarise(report: Reproduction, ways: Ways) -> None:
    """Write the rows of both groups under both rules, and the mean ways for the picture."""
    report.settings["targets done"] = len(ways)
    report.series["steps"] = WAY_POINTS
    for gain in GAINS:
        ended = [[way[: (end(way, gain) or len(way)) + 1] for way in target] for target in ways]
        best = np.array([[way.min() for way in target] for target in ended])  # (targets, methods)
        reached = best.min(axis=1) < REACHED
        for group, chosen in zip(GROUPS, (reached, ~reached), strict=True):
            some = [target for target, is_in in zip(ended, chosen, strict=True) if is_in]
            if some:
                _add_group(report, {"gain": gain, "group": group}, some, best[chosen], len(ways))


def _add_group(report: Reproduction, names: Row, ways: Ways, best: Array, count: int) -> None:
    """Rows of one group, `count` targets being in both; best (targets, methods)."""
    share = len(ways) / count
    spread = {"share": 100.0 * sqrt(share * (1.0 - share) / count)}
    for i, method in enumerate(METHODS):
        figures = _figures([target[i] for target in ways], best[:, i] - best.min(axis=1))
        row = {**names, "method": method, "share": 100.0 * share, **_by_key(figures.mean(axis=0))}
        chance = {**spread, **_by_key(figures.std(axis=0) / sqrt(len(ways)))}
        far = _differing(row, chance, report)
        report.rows.append({**row, "differs": far} if far else row)
    report.series[names["group"]] = {  # of the finer rule, which comes last
        name: np.mean([_excess(target, i) for target in ways], axis=0)
        for i, name in enumerate(METHODS)
    }


def _figures(ways: Sequence[Array], excess: NDArray[np.floating[Any]]) -> Array:
    """What the columns are means of (targets, columns), for one method."""
    steps = [[int(np.argmax(way < way.min() + a)) for a in ACCURACIES] for way in ways]
    return np.column_stack([100.0 * (excess == 0.0), excess, steps])


def _by_key(figures: Array) -> dict[str, float]:
    return dict(zip(KEYS, figures.tolist(), strict=True))


def _differing(row: Row, chance: dict[str, float], report: Reproduction) -> list[str]:
    """The figures of a row that differ from the printed ones by more than chance."""
    names = ("gain", "group", "method")
    printed = next(p for p in report.printed if all(p[name] == row[name] for name in names))
    return [key for key, error in chance.items()
            if abs(row[key] - printed[key]) > SIGMAS * error + 1e-5]  # fmt: skip


def _excess(target: Sequence[Array], i: int) -> Array:
    """Distance above the best of all methods, at the steps that are drawn."""
    falling = np.minimum.accumulate(target[i])
    return np.asarray(falling[np.minimum(WAY_POINTS, len(falling) - 1)]) - min(map(np.min, target))
