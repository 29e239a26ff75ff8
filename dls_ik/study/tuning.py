# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tuning: the best value of one option of a method for a robot, with a confidence interval.

All values are compared on the same random pairs of start and goal of a study. The first values are
evenly spaced on a logarithmic scale; further values lie between the neighbours of the best one. The
bootstrap over the pairs (Efron & Tibshirani 1993) gives the interval of the best value and of each
score; shares have Wilson's interval (Wilson 1927). For the best value, each replicate draws the
pairs with replacement, and chooses its own best value. The best value is then compared with the
default value on other pairs, because its score on the pairs that chose it is too good.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.chunks.parts import Progress
from dls_ik.core.types import Array
from dls_ik.errors import MethodError, OptionError
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import (
    SolverOptions,
    checked_count,
    checked_value,
    is_integer,
    solver_options,
)
from dls_ik.study.definition import CASES, MAX_PAIRS, STUDY_TASKS, Study, StudyMethod, StudyRobot
from dls_ik.study.run import run_study
from dls_ik.study.statistics import LEVEL, Interval, wilson_interval
from dls_ik.study.track import MAX_TRACK_STEPS, track_targets
from dls_ik.text import did_you_mean, listing, quoted, short

BY_SOLVED, BY_TRACKING = "solved", "tracking"
CRITERIA = {
    BY_SOLVED: "share of the pairs solved within the tolerances and the joint limits",
    "iterations": "steps of all pairs, divided by the number of solved pairs",
    "time": "processor time of all pairs, divided by the number of solved pairs [s]",
    BY_TRACKING: "mean error of a tip that follows a moving target by one step per target [m]",
}
# Options that cannot be tuned, with the reason
DEFINING_OPTIONS = {
    "position_tolerance": "it decides what counts as solved",
    "rotation_tolerance": "it decides what counts as solved",
    "error_tolerance": "it decides what counts as solved",
    "max_joint_change": "it decides what counts as solved",
    "length_unit": "it is a property of the robot description",
    "random_seed": "it only draws other random starts",
    "timeout": "results would depend on the speed of the machine",
    "prove_after": "it matters for unreachable poses, and all goals are reachable",
}
# Options whose larger values never solve fewer pairs
EFFORTS = ("max_iterations", "max_restarts", "num_candidates")
NUM_VALUES, NUM_REFINED = 13, 8  # values of the first grid, and between the neighbours of the best
DEFAULT_RATIO = 30.0  # the first grid reaches from default / ratio to default * ratio
MAX_EXTENSIONS = 3  # extensions of a grid whose best value is at its end
MAX_VALUES = 200
NUM_REPLICATES = 2000  # number of draws of the bootstrap
MAX_DRAWN = 2_000_000  # pairs drawn at a time, which bounds the memory
VALUE_DIGITS = 3  # significant digits of the values of a grid


@dataclass(frozen=True)
class Tuning:
    """Definition of a search for the best value of an option of a method, for one robot."""

    robot: StudyRobot
    method: str
    option: str
    values: tuple[float, ...] = ()  # values to compare; empty: a grid
    low: float | None = None  # smallest value of the grid; None: found from the default
    high: float | None = None  # largest value of the grid; None: found from the default
    criterion: str = BY_SOLVED  # one of CRITERIA
    case: str = "far"  # case of a study, which defines how the pairs are drawn
    pairs: int = 200  # number of random pairs of start and goal
    seed: int = 0  # seed of the pairs and of the bootstrap
    task: str = "pose"  # one of STUDY_TASKS
    options: tuple[tuple[str, Any], ...] = ()  # values of other options of the method
    steps: int = 100  # steps of a target from start to goal, for the criterion tracking
    # Largest share of joint steps that may reverse the previous one, for the criterion tracking
    max_reversals: float = 1.0

    @property
    def default(self) -> float | None:
        """Default value of the option for this method; None if it is not a finite number."""
        options = solver_options(parse_method(self.method), dict(self.options))
        value = getattr(options, self.option)
        is_number = isinstance(value, int | float) and math.isfinite(value)
        return value if is_number else None

    def variant(self, value: float) -> StudyMethod:
        """Return the method with a value of the option."""
        options = (*self.options, (self.option, value))
        return StudyMethod(f"{self.option}={value!r}", parse_method(self.method).name, options)


class TuningPoint(NamedTuple):
    """Score of one value of the option."""

    value: float
    score: Interval  # share solved, of which the largest is best; else smaller scores are better
    reversals: float | None  # share of joint steps that reverse the previous one; None: no tracking


class TuningCheck(NamedTuple):
    """Comparison of the best and the default value on pairs not used to find the best value."""

    pairs: int
    seed: int
    best: TuningPoint
    default: TuningPoint
    gain: Interval  # score of the best value minus score of the default value, paired


@dataclass(frozen=True)
class TuningResult:
    """Best value of an option, and the scores of all values."""

    tuning: Tuning
    points: tuple[TuningPoint, ...]  # ascending values
    best: Interval  # best value with the interval of the bootstrap
    # Values next to the best one that are as good: intervals of paired differences contain 0
    as_good: tuple[float, ...]
    is_at_end: bool  # whether the best value is the first or the last one
    check: TuningCheck | None = field(default=None)  # None if the default is the best, or no number

    @property
    def best_point(self) -> TuningPoint:
        """Score of the best value."""
        return next(point for point in self.points if point.value == self.best.value)


class _Scores(NamedTuple):
    """Contributions of k pairs to the scores of v values."""

    above: Array  # (k, v); a score is the sum of `above` divided by the sum of `below`
    below: Array  # (k, v)
    reversals: Array  # (k, v) share of reversed steps; NaN unless tracking
    errors: Array  # (k, v) errors of the answers, which show whether the option has an effect

    def joined(self, other: _Scores) -> _Scores:
        """Return scores with the columns of these scores, followed by those of `other`."""
        return _Scores(*(np.hstack(both) for both in zip(self, other, strict=True)))

    def ordered(self, order: NDArray[np.intp]) -> _Scores:
        """Return the columns in another order."""
        return _Scores(*(each[:, order] for each in self))


def tune(tuning: Tuning, progress: Progress | None = None) -> TuningResult:
    """Find the best value of an option of a method for a robot.

    Args:
        tuning: Robot, method, option and criterion.
        progress: Called with the number of finished solves of a stage and the number of all; for
            the criterion tracking, with numbers of followed paths.

    Raises:
        OptionError: If the option cannot be tuned, has no effect, or a value is not valid.
        MethodError: If the method does not support the robot or a value.
        RobotModelError: If the robot cannot be loaded.
    """
    _check(tuning)
    values = list(_first_values(tuning))
    if len(values) < 2:
        raise OptionError(
            f"the grid of {tuning.option} has fewer than 2 valid values; give other ends, or values"
        )
    scores = _measure(tuning, values, progress)
    if not tuning.values:
        values, scores = _extended(tuning, values, scores, progress)
        added = _between(tuning, values, _best_index(tuning, scores))
        if added:
            scores = scores.joined(_measure(tuning, added, progress))
            order = np.argsort(values + added)
            values, scores = sorted(values + added), scores.ordered(order)
    if not _differs(scores):
        raise OptionError(
            f"{tuning.option} changes no answer of {tuning.method} for these pairs; "
            "docs/methods.md lists the options of each method"
        )
    result = _result(tuning, values, scores)
    default = tuning.default
    if default is None or default == result.best.value:
        return result
    return replace(result, check=_on_other_pairs(tuning, result.best.value, default, progress))


# What can be tuned


def _check(tuning: Tuning) -> None:
    """Check all entries of the definition of a search.

    Raises:
        OptionError: If an entry is not valid.
        MethodError: If the method is unknown.
    """
    choice = parse_method(tuning.method)
    known = {f.name: f for f in fields(SolverOptions)}
    if tuning.option not in known:
        hint = did_you_mean(tuning.option, known) or f"options of solvers: {listing(known)}"
        raise OptionError(f"unknown option {quoted(tuning.option)}; {hint}")
    if tuning.option in dict(tuning.options):
        raise OptionError(
            f"{tuning.option} is tuned, and cannot be set to a value too; remove it from the "
            "options that are set"
        )
    about = known[tuning.option].metadata
    if not ("range" in about or "per_joint" in about):
        raise OptionError(
            f"{tuning.option} ({about['text']}) is not a number; compare its values with dls-ik "
            "study and a file that lists them"
        )
    for names, entry, word in (
        (CRITERIA, "criterion", tuning.criterion),
        (CASES, "case", tuning.case),
        (STUDY_TASKS, "task", tuning.task),
    ):
        if word not in names:
            hint = did_you_mean(word, names) or f"known are {listing(names)}"
            raise OptionError(f"unknown {entry} {quoted(word)}; {hint}")
    if tuning.option in DEFINING_OPTIONS:
        raise OptionError(f"{tuning.option} cannot be tuned: {DEFINING_OPTIONS[tuning.option]}")
    if tuning.option in EFFORTS and tuning.criterion == BY_SOLVED:
        raise OptionError(
            f"a larger {tuning.option} never solves fewer pairs; tune it by the criterion "
            "iterations or time"
        )
    _check_tracking(tuning, choice.follows_no_target)
    if checked_count("pairs", tuning.pairs, 10) > MAX_PAIRS:
        raise OptionError(f"pairs must be at most {MAX_PAIRS}; got {tuning.pairs}")
    checked_count("seed", tuning.seed, 0)
    ends = (end for end in (tuning.low, tuning.high) if end is not None)
    for number in (*tuning.values, *ends):
        solver_options(choice, {**dict(tuning.options), tuning.option: number})
    if tuning.values and (tuning.low is not None or tuning.high is not None):
        raise OptionError("give either values, or the ends of a grid; got both")
    count = len(set(tuning.values))
    if tuning.values and not 2 <= count <= MAX_VALUES:
        raise OptionError(f"give 2 to {MAX_VALUES} different values; got {count}")


def _check_tracking(tuning: Tuning, follows_no_target: bool) -> None:
    """Check the entries for the criterion tracking.

    Raises:
        OptionError: If tracking does not depend on the option, or an entry is not valid.
    """
    if not 1 <= tuning.steps <= MAX_TRACK_STEPS or not 0.0 <= tuning.max_reversals <= 1.0:
        raise OptionError(
            f"steps must be from 1 to {MAX_TRACK_STEPS}, and max_reversals from 0 to 1; got "
            f"{tuning.steps} and {tuning.max_reversals}"
        )
    if tuning.criterion != BY_TRACKING:
        return
    if follows_no_target:
        raise OptionError(f"{tuning.method} can only solve for poses; it follows no target")
    of_searches = ("stall_ratio", "stall_count", "long_attempt_every", *EFFORTS)
    if tuning.option in of_searches:
        raise OptionError(
            f"{tuning.option} belongs to the search for one pose; tracking makes single steps, use "
            "the criterion iterations or time"
        )


# Values


def _first_values(tuning: Tuning) -> list[float]:
    """Return the values to start with, in ascending order.

    Raises:
        OptionError: If a grid needs ends that are not given, or the ends are not valid.
    """
    if tuning.values:
        return sorted(set(tuning.values))
    option = SolverOptions.__dataclass_fields__[tuning.option]
    least, largest = option.metadata.get("range", (0.0, math.inf))
    default, low, high = tuning.default, tuning.low, tuning.high
    if low is None or high is None:
        if not default:
            raise OptionError(
                f"{tuning.option} has the default {default}, at which no logarithmic grid can be "
                "centred; give the ends of the grid, or values"
            )
        if low is None:
            middle = default if high is None else min(default, high)
            low = max(middle / DEFAULT_RATIO, least)
        if high is None:
            high = min(max(default, low) * DEFAULT_RATIO, largest)
    if not 0.0 < low < high < math.inf:
        raise OptionError(
            "a grid on a logarithmic scale needs a positive smallest value below the largest one; "
            f"got {low:g} and {high:g}; give values to include 0"
        )
    return _grid(tuning, low, high, NUM_VALUES)


def _grid(tuning: Tuning, low: float, high: float, count: int) -> list[float]:
    """Return values with few digits from `low` to `high`, evenly spaced on a logarithmic scale."""
    option = SolverOptions.__dataclass_fields__[tuning.option]
    least, largest = option.metadata.get("range", (0.0, math.inf))
    is_whole = is_integer(option)
    found = set()
    for value in np.geomspace(low, high, count).tolist():
        rounded = float(f"{value:.{VALUE_DIGITS - 1}e}")
        rounded = round(rounded) if is_whole else rounded
        if least <= rounded <= largest:
            found.add(checked_value(option, rounded))
    return [value for value in sorted(found) if _is_valid(tuning, value)]


def _is_valid(tuning: Tuning, value: float) -> bool:
    """Return whether the method permits a value together with the values of the other options."""
    try:
        solver_options(parse_method(tuning.method), {**dict(tuning.options), tuning.option: value})
    except MethodError:
        return False
    return True


def _extended(
    tuning: Tuning, values: list[float], scores: _Scores, progress: Progress | None
) -> tuple[list[float], _Scores]:
    """Extend a grid while its best value is at an end that the user has not given.

    Returns:
        The values in ascending order, and their scores, after at most MAX_EXTENSIONS extensions.
    """
    for _ in range(MAX_EXTENSIONS):
        if not _differs(scores):
            break
        best = _best_index(tuning, scores)
        at_low = best == 0 and tuning.low is None
        at_high = best == len(values) - 1 and tuning.high is None
        if not (at_low or at_high):
            break
        low, high = values[0], values[-1]
        ends = (low / DEFAULT_RATIO, low) if at_low else (high, high * DEFAULT_RATIO)
        added = [v for v in _grid(tuning, *ends, NUM_REFINED) if v not in values]
        if not added:
            break
        scores = scores.joined(_measure(tuning, added, progress))
        order = np.argsort(values + added)
        values, scores = sorted(values + added), scores.ordered(order)
    return values, scores


def _between(tuning: Tuning, values: Sequence[float], best: int) -> list[float]:
    """Return new values between the neighbours of the best value."""
    low, high = values[max(best - 1, 0)], values[min(best + 1, len(values) - 1)]
    if not low < high:
        return []
    return [v for v in _grid(tuning, low, high, NUM_REFINED) if v not in values]


# Scores


def _measure(
    tuning: Tuning, values: Sequence[float], progress: Progress | None, shift: int = 0
) -> _Scores:
    """Return the scores of values; `shift` is added to the seed of the pairs.

    Raises:
        OptionError: If the method with a value does not support the robot.
    """
    seed = tuning.seed + shift
    variants = tuple(tuning.variant(value) for value in values)
    study = Study(
        (tuning.robot,), variants, (tuning.case,), tuning.pairs, seed, tuning.task, ("iterations",)
    )
    if tuning.criterion == BY_TRACKING:
        error, reversals = track_targets(study, tuning.steps, progress)
        return _Scores(error, np.ones_like(error), reversals, error)
    results = run_study(study, progress=progress)
    for variant, there in zip(variants, results.of("applicable", 0, 0), strict=True):
        if not there.any():
            raise OptionError(
                f"{tuning.method} with {variant.label} does not support {tuning.robot.name}"
            )
    solved = results.of(BY_SOLVED, 0, 0).T.astype(float)
    missing = np.full(solved.shape, np.nan)
    errors = results.of("position_error", 0, 0).T + results.of("rotation_error", 0, 0).T
    if tuning.criterion == BY_SOLVED:
        return _Scores(solved, np.ones_like(solved), missing, errors)
    cost = results.of(tuning.criterion, 0, 0).T.astype(float)
    return _Scores(cost, solved, missing, errors)


def _differs(scores: _Scores) -> bool:
    """Return whether any value leads to other errors than the first value, for any pair."""
    return not np.array_equal(
        scores.errors, np.broadcast_to(scores.errors[:, :1], scores.errors.shape)
    )


def _score(weights: Array, scores: _Scores) -> Array:
    """Return the scores (b, v) of each value, for weights (b, k) of the pairs."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (weights @ scores.above) / (weights @ scores.below)
    return np.asarray(np.where(np.isnan(found), np.inf, found))


def _costs(tuning: Tuning, weights: Array, scores: _Scores) -> Array:
    """Return costs (b, v), of which the best value has the smallest, for weights (b, k) of pairs.

    The cost of a value with too many reversals is infinite, unless all values have too many.
    """
    costs = _score(weights, scores)
    if tuning.criterion == BY_SOLVED:
        return -costs
    costs[_too_shaky(tuning, weights, scores)] = np.inf
    return costs


def _too_shaky(tuning: Tuning, weights: Array, scores: _Scores) -> NDArray[np.bool_]:
    """Return a mask (b, v) of values with too many reversals, for weights (b, k) of the pairs.

    If all values of a row have too many reversals, no value of the row is marked.
    """
    if tuning.criterion != BY_TRACKING:
        return np.zeros((len(weights), scores.above.shape[1]), np.bool_)
    share = (weights @ scores.reversals) / weights.sum(axis=1, keepdims=True)
    shaky = share > tuning.max_reversals
    return np.asarray(shaky & ~shaky.all(axis=1, keepdims=True))


def _best_of(costs: Array) -> NDArray[np.intp]:
    """Return the index of the smallest cost of each row (b, v), the middle one of equal costs."""
    ties = costs == costs.min(axis=1, keepdims=True)
    middle = (ties.sum(axis=1, keepdims=True) + 1) // 2
    return np.asarray(np.argmax(np.cumsum(ties, axis=1) >= middle, axis=1))


def _best_index(tuning: Tuning, scores: _Scores) -> int:
    """Return the index of the best value for all pairs."""
    return int(_best_of(_costs(tuning, np.ones((1, len(scores.above))), scores))[0])


def _result(tuning: Tuning, values: Sequence[float], scores: _Scores) -> TuningResult:
    """Return scores and best value with the intervals of the bootstrap."""
    best = _best_index(tuning, scores)
    drawn, costs = _replicates(tuning, scores)
    chosen = np.array(values)[_best_of(costs)]
    low, high = _percentiles(chosen)
    points = _points(tuning, values, scores, drawn)
    interval = Interval(values[best], min(low, values[best]), max(high, values[best]))
    sign = -1.0 if tuning.criterion == BY_SOLVED else 1.0
    permitted = ~_too_shaky(tuning, np.ones((1, len(scores.above))), scores)[0]
    as_good = _as_good(values, best, sign * drawn, permitted)
    is_at_end = best in (0, len(values) - 1)
    return TuningResult(tuning, points, interval, as_good, is_at_end)


def _points(
    tuning: Tuning, values: Sequence[float], scores: _Scores, drawn: Array
) -> tuple[TuningPoint, ...]:
    """Return the points of the curve; `drawn` (b, v) has the scores of the replicates.

    Shares have Wilson's interval, because the bootstrap of a share of 0 has no width.
    """
    k = len(scores.above)
    points = []
    for v, score in enumerate(_score(np.ones((1, k)), scores)[0].tolist()):
        interval = _interval(score, drawn[:, v])
        if tuning.criterion == BY_SOLVED:
            interval = wilson_interval(int(scores.above[:, v].sum()), k)
        share = float(scores.reversals[:, v].mean()) if tuning.criterion == BY_TRACKING else None
        points.append(TuningPoint(values[v], interval, share))
    return tuple(points)


def _replicates(tuning: Tuning, scores: _Scores) -> tuple[Array, Array]:
    """Return the scores and the costs (b, v) of the replicates of the bootstrap."""
    k, rng = len(scores.above), np.random.default_rng(tuning.seed)
    at_a_time = max(1, MAX_DRAWN // k)
    drawn, costs = [], []
    for first in range(0, NUM_REPLICATES, at_a_time):
        count = min(at_a_time, NUM_REPLICATES - first)
        weights = rng.multinomial(k, np.full(k, 1.0 / k), size=count).astype(float)
        drawn.append(_score(weights, scores))
        costs.append(_costs(tuning, weights, scores))
    return np.vstack(drawn), np.vstack(costs)


def _percentiles(values: Array) -> tuple[float, float]:
    """Return the ends of the percentile interval of values (b,), which may be infinite."""
    tail = 0.5 * (1.0 - LEVEL)
    ordered = np.sort(values)
    last = len(ordered) - 1
    return float(ordered[math.floor(tail * last)]), float(ordered[math.ceil((1.0 - tail) * last)])


def _interval(value: float, drawn: Array) -> Interval:
    """Return a score with the percentile interval of its replicates (b,)."""
    low, high = _percentiles(drawn)
    return Interval(float(value), min(low, float(value)), max(high, float(value)))


def _as_good(
    values: Sequence[float], best: int, costs: Array, permitted: NDArray[np.bool_]
) -> tuple[float, ...]:
    """Return the values around the best one whose costs (b, v) do not differ significantly.

    Args:
        values: (v,) values in ascending order.
        best: Index of the best value.
        costs: (b, v) scores of the replicates, of which the smallest is best.
        permitted: (v,) whether a value may be chosen.
    """
    with np.errstate(invalid="ignore"):
        difference = costs - costs[:, [best]]
    difference[np.isnan(difference)] = 0.0  # both are infinite
    good = [_percentiles(column)[0] <= 0.0 for column in difference.T]
    good = [each and bool(allowed) for each, allowed in zip(good, permitted, strict=True)]
    first, last = best, best
    while first > 0 and good[first - 1]:
        first -= 1
    while last < len(values) - 1 and good[last + 1]:
        last += 1
    return tuple(values[first : last + 1])


def _on_other_pairs(
    tuning: Tuning, best: float, default: float, progress: Progress | None
) -> TuningCheck:
    """Compare the best value with the default value on pairs of the next seed."""
    values = [best, default]
    scores = _measure(tuning, values, progress, shift=1)
    drawn, _ = _replicates(tuning, scores)
    points = _points(tuning, values, scores, drawn)
    with np.errstate(invalid="ignore"):
        difference = drawn[:, 0] - drawn[:, 1]
        gain = _interval(points[0].score.value - points[1].score.value, difference)
    return TuningCheck(tuning.pairs, tuning.seed + 1, points[0], points[1], gain)


def score_text(tuning: Tuning, value: float) -> str:
    """Return a score by the criterion as text, with its unit."""
    if tuning.criterion == BY_SOLVED:
        return f"{100.0 * value:.1f} %"
    return short(value, 3)
