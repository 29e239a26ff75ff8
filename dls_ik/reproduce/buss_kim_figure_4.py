# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figure 4 of Buss & Kim 2004: the double-Y moves to fixed targets from the zero position.

A run is the motion of one method toward one target. The run ends after a step that decreases the
distance too little, after several steps that increase the distance, or after 4000 steps. Targets
that no method reaches are evaluated separately.

The paper does not define the experiment completely, so it is run in two readings (interpretations).
"As published" uses the targets and rules with which the printed figures can be reproduced; these
were found by trying the targets and rules of the authors' test programs. "As in the text" uses the
rules of section 5 and the targets of the double-Y. A slip is a property of the authors' program
that differs from the text.

The distance of a step is the sum of the distances of the four effectors from their targets. A trace
is the array of these distances of a run: before the first step, and after every step.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.model import RobotModel
from dls_ik.plot.canvas import BLUE, GREEN, GREY, ORANGE, RED, heading, new_figure, plain
from dls_ik.reproduce import buss_kim_shapes as shapes
from dls_ik.reproduce.buss_kim_shapes import DOUBLE_Y, start, tip_distances
from dls_ik.reproduce.experiment import (
    FITTED,
    SIGMAS,
    Column,
    Experiment,
    NotPredicted,
    Progress,
    Reproduction,
    ResultTable,
    Row,
    marked,
    mean_score,
    not_run,
    percent_score,
)
from dls_ik.solver.plugins import plugin_names
from dls_ik.solver.stepper import Stepper

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Printed figures

FIGURE_4_METHODS = ("SDLS", "DLS", "DLS'", "DLS*", "J^T")
GROUPS = ("reached", "not reached")  # whether any of the methods reaches the targets
ACCURACIES = (0.1, 0.01, 0.001, 0.0001)  # distance above the minimum distance of the run
STEP_KEYS = ("steps_1e-1", "steps_1e-2", "steps_1e-3", "steps_1e-4")
MEAN_KEYS = ("wins", "excess", *STEP_KEYS)
PRINTED_TARGETS, PRINTED_REACHED = 10_000, 2972  # numbers of targets, and of reached targets
PRINTED_COUNTS = (PRINTED_REACHED, PRINTED_TARGETS - PRINTED_REACHED)

# Columns: wins, mean excess, mean steps to each accuracy
PRINTED_FIGURES = (
    (
        (2972, 0.0, 39.3, 48.7, 52.2, 53.5),
        (0, 0.00015, 61.5, 231.6, 467.1, 635.2),
        (0, 0.00007, 29.7, 110.9, 228.3, 327.2),
        (0, 0.00015, 63.3, 222.9, 448.0, 609.4),
        (0, 2.362, 44.0, 51.6, 53.4, 53.9),
    ),
    (
        (940, 0.182, 173.5, 336.0, 548.1, 686.0),
        (52, 0.106, 116.1, 448.9, 1166.7, 1706.2),
        (6097, 0.00011, 75.2, 318.7, 863.6, 1289.5),
        (123, 0.00097, 63.3, 647.3, 1748.5, 2429.8),
        (0, 4.907, 44.0, 142.27, 142.30, 142.30),
    ),
)


# Printed figures of the targets not reached that are copies from the table of targets reached
COPIED = {(GROUPS[1], method, STEP_KEYS[0]) for method in ("DLS*", "J^T")}


def printed_rows() -> list[Row]:
    """Return the figures of the paper as table rows; wins are converted to [percent].

    There is a row for each group of targets and method. The last row has the share of the targets
    that at least one method reaches [percent].
    """
    rows: list[Row] = []
    for group, count, figures in zip(GROUPS, PRINTED_COUNTS, PRINTED_FIGURES, strict=True):
        for method, (wins, *others) in zip(FIGURE_4_METHODS, figures, strict=True):
            values = dict(zip(MEAN_KEYS, (100.0 * wins / count, *others), strict=True))
            rows.append({"table": "means", "group": group, "method": method, **values})
    share = 100.0 * PRINTED_REACHED / PRINTED_TARGETS
    return [*rows, {"table": "shares", "share": share, "targets": PRINTED_TARGETS}]


# Readings

# Difference of T between targets; irrational, so no target occurs twice
TARGET_SPACING = 3.0 * (1.0 + sqrt(5.0))
MAX_RUN_STEPS = 4000


class Rules(NamedTuple):
    """Rules of a reading: which targets are used, when a run ends, how figures are computed."""

    # True: effectors E0 and E1 have the targets of the Y shape, E2 and E3 the origin.
    # False: all four effectors have the targets of the double-Y.
    is_y: bool
    code: str  # rule that adapts D_max, a key of buss_kim_shapes.CODES
    gain: float  # a step that decreases the distance by less than this value ends the run
    rises: int  # number of steps with a rise of the distance (see the next field) that ends a run
    # True: a step with a rise ends at a distance above the smallest distance of the run so far.
    # False: a step with a rise ends at a larger distance than it starts from.
    is_above_best: bool
    reached: float  # summed distance of the effectors up to which a target counts as reached
    tie: float  # a method wins if its distance exceeds the smallest distance by at most this value
    first: int  # number given to the first step: 0 or 1
    by_reached: bool  # whether sums over targets not reached are divided by the number reached


RULES_AS_PUBLISHED = Rules(True, shapes.CODE_PUBLISHED, 1e-6, 4, True, 1e-4, 1e-5, 0, True)
RULES_AS_IN_TEXT = Rules(False, shapes.CODE_TEXT, 1e-5, 3, False, 1e-3, 0.0, 1, False)
PUBLISHED_RULES_NAME, TEXT_RULES_NAME = "as published", "as in the text"
RULES_BY_NAME = {PUBLISHED_RULES_NAME: RULES_AS_PUBLISHED, TEXT_RULES_NAME: RULES_AS_IN_TEXT}
RULES_OF_SLIPS: dict[str, tuple[str, Rules]] = {
    "E0, E1: targets of the Y; E2, E3: origin": (
        "all: targets of the double-Y", RULES_AS_PUBLISHED._replace(is_y=False)),
    "D_max from wrong rows of the last error": (
        "from the correct rows", RULES_AS_PUBLISHED._replace(code=shapes.CODE_MENDED)),
    "ends if a step improves by less than 1e-6": (
        "less than 1e-5", RULES_AS_PUBLISHED._replace(gain=1e-5)),
    "a run ends at the 4th step after which the distance exceeds the smallest so far": (
        "at the 3rd", RULES_AS_PUBLISHED._replace(rises=3)),
    "counts steps that end above the smallest distance so far": (
        "steps that increase the distance", RULES_AS_PUBLISHED._replace(is_above_best=False)),
    "reached: distance below 0.0001": (
        "below 0.001", RULES_AS_PUBLISHED._replace(reached=1e-3)),
    "not reached: sum divided by the number reached": (
        "by the number not reached", RULES_AS_PUBLISHED._replace(by_reached=False)),
    "methods within 1e-5 of the best also win": (
        "only the best wins", RULES_AS_PUBLISHED._replace(tie=0.0)),
    "the first step has number 0": ("number 1", RULES_AS_PUBLISHED._replace(first=1)),
}  # fmt: skip


def fixed_targets(first: int, count: int, is_y: bool) -> Array:
    """Return poses (count, 4, 4, 4) on the target paths of the four effectors.

    The path parameter T is k TARGET_SPACING, for consecutive integers k.

    Args:
        first: Smallest k.
        count: Number of values of k.
        is_y: Whether E0 and E1 have the targets of the Y, and E2 and E3 the origin; otherwise all
            effectors have the targets of the double-Y.
    """
    T = TARGET_SPACING * np.arange(first, first + count, dtype=np.float64)
    poses = DOUBLE_Y.targets(T)
    if is_y:
        poses[:, :2] = shapes.Y.targets(T)
        poses[:, 2:, :3, 3] = 0.0
    return poses


def end(distance: Array, rules: Rules) -> int | None:
    """Return the number (from 1) of the step that ends a run; None if no rule ends the run yet.

    Args:
        distance: (s + 1,) sums of the four effectors' distances from their targets, before the
            first step and after each of s steps.
        rules: Rules that end the run.
    """
    better = distance[:-1] - distance[1:]
    before = np.minimum.accumulate(distance) if rules.is_above_best else distance
    is_small = (better >= 0.0) & (better < rules.gain)
    ends = is_small | (np.cumsum(distance[1:] > before[:-1]) >= rules.rises)
    if ends.any():
        return int(np.argmax(ends)) + 1
    return MAX_RUN_STEPS if len(distance) > MAX_RUN_STEPS else None


# Runs

Traces = Sequence[Sequence[Array]]  # traces[target][method] is a trace, see the module docstring
FIRST_CHUNK, CHUNK_GROWTH = 50, 1.5


def _trace(stepper: Stepper, T: Array, rules: Rules, began: Sequence[float] = ()) -> Array:
    """Run a method until a rule ends the run; return the distance before and after each step.

    The distance is the sum of the four effectors' distances from their targets.

    Args:
        stepper: Method to run, with the initial configuration.
        T: Target poses (4, 4, 4) of the effectors.
        rules: Rules that end the run.
        began: Distances of earlier steps, made by another method; the result begins with them.

    Returns:
        Distances (s + 1,) for s steps.
    """
    distance, chunk = np.empty(0), FIRST_CHUNK
    while True:
        error = stepper.run(T, min(chunk, MAX_RUN_STEPS - max(0, len(distance) - 1))).error
        distance = np.concatenate([distance[:-1], tip_distances(error).sum(axis=1)])
        whole = np.concatenate([began, distance])
        last = end(whole, rules)
        if last is not None:
            return whole[: last + 1]
        chunk = int(CHUNK_GROWTH * chunk)


def _traces(robot: RobotModel, names: Sequence[str], rules: Rules, T: Array) -> list[Array]:
    """Run each named method toward the target poses T (4, 4, 4) of the four effectors.

    Returns:
        For each method its trace (s + 1,): the summed distances before and after each step.
    """
    return [_trace(start(robot, name, rules.code), T, rules) for name in names]


SWITCH_DISTANCE = 0.1  # summed distance below which SDLS replaces DLS'
DLS_THEN_SDLS = "DLS', then SDLS"


def _dual_trace(robot: RobotModel, rules: Rules, T: Array) -> Array:
    """Run DLS' until the distance is below SWITCH_DISTANCE, and then SDLS until a rule ends it.

    The distance is the sum of the four effectors' distances from their targets.

    Args:
        robot: Robot with the double-Y shape of the paper.
        rules: Rules that end the run.
        T: Target poses (4, 4, 4) of the four effectors.

    Returns:
        Distances (s + 1,) before the first step and after each of s steps.
    """
    stepper = start(robot, "DLS'", rules.code)
    trace, q = np.empty(0), stepper.q
    while len(trace) < MAX_RUN_STEPS:
        chunk = stepper.run(T, FIRST_CHUNK)
        distance = tip_distances(chunk.error).sum(axis=1)
        near = np.flatnonzero(distance < SWITCH_DISTANCE)
        if len(near):
            trace, q = np.concatenate([trace, distance[: near[0]]]), chunk.q[near[0]]
            break
        trace = np.concatenate([trace, distance[:-1]])
    stepper = start(robot, "SDLS", rules.code)
    stepper.reset(q)
    return _trace(stepper, T, rules, trace.tolist())


def run(report: Reproduction, progress: Progress) -> None:
    """Run all methods for all targets in every reading, and add the rows of means to the report.

    If Ctrl-C interrupts the run, the rows have the means over the targets finished so far.
    """
    report.settings.update(SETTINGS)
    report.notes += NOTES
    report.printed += printed_rows()
    robot = DOUBLE_Y.robot()
    for name, rules in RULES_BY_NAME.items():
        if report.reading in ("", name):
            own = _usable(robot, report) if rules is RULES_AS_IN_TEXT else []
            traces = _run(report, robot, [*FIGURE_4_METHODS, *own], rules, progress, name)
            if rules is RULES_AS_PUBLISHED:
                _add_slips(report, robot, traces, progress)
    if report.reading in ("", PUBLISHED_RULES_NAME):
        report.notes.append(NOTE_ON_COPIED)


def _usable(robot: RobotModel, report: Reproduction) -> list[str]:
    """Return the names of the plug-ins that can make steps toward a target of the double-Y.

    For a plug-in that raises :class:`MethodError`, add a note with the reason to the report.
    """
    found = []
    T = fixed_targets(1, 1, is_y=False)[0]
    for name in plugin_names():
        try:
            start(robot, name, shapes.CODE_MENDED).run(T, 20)
        except MethodError as error:
            not_run(
                report, {"table": "means", "reading": TEXT_RULES_NAME, "method": name}, name, error
            )
            continue
        found.append(name)
    return found


def _run(
    report: Reproduction,
    robot: RobotModel,
    names: Sequence[str],
    rules: Rules,
    progress: Progress,
    title: str,
) -> Traces:
    """Run the named methods for all targets, and add the results to the report.

    The results are the rows of the reading (interpretation of the paper) with the name `title` and
    the rules `rules`.

    Returns:
        The traces: element [target][method] has the summed distances of a run at each step.
    """
    traces: list[list[Array]] = []
    try:
        for some in run_in_groups(report.samples, robot, names, rules, progress, title):
            traces += some
    finally:
        if traces:
            report.settings["targets done"] = len(traces)
            _add_rows(report, title, rules, names, traces)
    return traces


def run_in_groups(
    samples: int,
    robot: RobotModel,
    names: Sequence[str],
    rules: Rules,
    progress: Progress,
    title: str,
) -> Iterable[list[list[Array]]]:
    """Run the named methods for the first `samples` targets, in groups of targets, on all cores.

    Args:
        samples: Number of targets.
        robot: Robot with the double-Y shape of the paper.
        names: Names of the methods.
        rules: Rules that select the targets and end the runs.
        progress: Display of the progress.
        title: Text next to the progress.

    Yields:
        For each group, the results [target][method]. A result is an array with the sum of the
        effectors' distances from their targets before and after each step.
    """
    workers = os.cpu_count() or 1
    targets, size = fixed_targets(1, samples, rules.is_y), 4 * workers
    groups = [slice(k, k + size) for k in range(0, len(targets), size)]
    with ThreadPoolExecutor(workers) as pool:
        for group in progress.track(groups, f"targets, {title}"):
            yield list(pool.map(partial(_traces, robot, names, rules), targets[group]))


# Figures, and their deviation from the printed ones


class TargetGroup(NamedTuple):
    """Results of all methods for one group of targets.

    A group has either all targets that at least one method reaches, or all other targets.
    """

    name: str
    counts: tuple[int, int]  # number of targets in this group; number of reached targets
    samples: dict[str, Array]  # results by method: (targets, 6), columns as in MEAN_KEYS

    def factor(self, rules: Rules) -> float:
        """Return the factor by which a mean over this group is multiplied before the comparison.

        As published, the paper divides the sum over the targets not reached by the number of the
        reached targets; the factor makes our mean comparable. Otherwise it is 1.
        """
        is_scaled = rules.by_reached and self.name == GROUPS[1]
        return self.counts[0] / max(1, self.counts[1]) if is_scaled else 1.0

    def row(self, rules: Rules, method: str) -> Row:
        """Return the table row of a method: means over the group, multiplied by ``factor``."""
        means = self.samples[method].mean(axis=0)
        means[1:] *= self.factor(rules)
        return dict(zip(MEAN_KEYS, means.tolist(), strict=True))

    def scores(self, rules: Rules, method: str) -> dict[str, float]:
        """Return the z-scores of our figures minus the printed ones for a method, by column key."""
        i, values = GROUPS.index(self.name), self.samples[method]
        count, printed = PRINTED_COUNTS[i], PRINTED_FIGURES[i][FIGURE_4_METHODS.index(method)]
        scale = PRINTED_COUNTS[1] / PRINTED_COUNTS[0] if self.factor(rules) != 1.0 else 1.0
        mean, spread, n = values.mean(axis=0), values.std(axis=0), len(values)
        z = {"wins": percent_score(mean[0], n, 100.0 * printed[0] / count, count)}
        for j, key in enumerate(MEAN_KEYS[1:], 1):
            rounding = (5e-6 if printed[1] < 0.1 else 5e-4) if key == "excess" else 0.05
            z[key] = mean_score(mean[j], n, printed[j] / scale, count, spread[j], rounding / scale)
        return z


def share_score(share: float, count: int) -> float:
    """Return the z-score of our share of reached targets minus the printed share.

    Args:
        share: Our share [percent].
        count: Number of targets in our run.
    """
    return percent_score(share, count, 100.0 * PRINTED_REACHED / PRINTED_TARGETS, PRINTED_TARGETS)


def groups_of(traces: Traces, names: Sequence[str], rules: Rules) -> list[TargetGroup]:
    """Return the group of reached targets and the group of other targets; omit an empty group.

    Args:
        traces: Element [target][method] has the summed distances of a run; it is cut where the
            rules end the run.
        names: Names of the methods, in the order of the traces.
        rules: Rules that end the runs and decide which method wins.
    """
    ended = [
        [trace[: (end(trace, rules) or len(trace)) + 1] for trace in target] for target in traces
    ]
    attained = np.array([[x.min() for x in target] for target in ended])  # (targets, methods)
    best = attained[:, : len(FIGURE_4_METHODS)].min(axis=1)
    reached = best < rules.reached
    found = []
    for name, chosen in zip(GROUPS, (reached, ~reached), strict=True):
        samples = {}
        for i, method in enumerate(names):
            some = [target[i] for target, is_in in zip(ended, chosen, strict=True) if is_in]
            samples[method] = _samples(some, attained[chosen, i] - best[chosen], rules)
        if chosen.any():
            found.append(TargetGroup(name, (int(chosen.sum()), int(reached.sum())), samples))
    return found


def _samples(traces: Sequence[Array], excess: Array, rules: Rules) -> Array:
    """Return the results (targets, 6) of one method; the columns are those of MEAN_KEYS.

    The columns are: 100 if the method wins and 0 otherwise, the excess, and the number of steps to
    each of ACCURACIES.

    Args:
        traces: Summed distances of the run of the method, for each target.
        excess: (targets,) smallest distance of the method minus that of the best method.
        rules: Rules that decide ties, and the number of the first step.
    """
    steps = [_steps(trace, rules) for trace in traces]
    wins = 100.0 * (excess <= rules.tie)
    return np.column_stack([wins, excess, np.array(steps).reshape(-1, len(ACCURACIES))])


def _steps(trace: Array, rules: Rules) -> list[int]:
    """Return, for each accuracy a of ACCURACIES, the step that first gets within a of the minimum.

    The minimum is the smallest distance of the trace (s + 1,).
    """
    found = [int(np.argmax(trace < trace.min() + a)) for a in ACCURACIES]
    return [max(0, steps - 1 + rules.first) for steps in found]


def _add_rows(
    report: Reproduction, name: str, rules: Rules, names: Sequence[str], traces: Traces
) -> None:
    """Add the results of a reading to the report.

    These are the rows of all methods, the share of reached targets, the agreement with the paper,
    and the curves of the picture.

    Args:
        report: Report to change.
        name: Name of the reading.
        rules: Rules of the reading.
        names: Names of the methods, in the order of the traces.
        traces: Element [target][method] has the summed distances of a run.
    """
    found = groups_of(traces, names, rules)
    share = 100.0 * found[0].counts[1] / len(traces)
    z = share_score(share, len(traces))
    row: Row = {"table": "shares", "reading": name, "share": share, "targets": len(traces)}
    report.rows.append(marked(row, ["share"] if abs(z) > SIGMAS else []))
    for group in found:
        for method in names:
            row = {"table": "means", "reading": name, "group": group.name, "method": method}
            row |= group.row(rules, method)
            z_all = group.scores(rules, method) if method in FIGURE_4_METHODS else {}
            report.rows.append(marked(row, [key for key, v in z_all.items() if abs(v) > SIGMAS]))
    report.series.setdefault("readings", []).append(_agreement(found, rules, traces) | {"is": name})
    report.series[name] = _mean_excess(traces, rules)


def _agreement(found: Sequence[TargetGroup], rules: Rules, traces: Traces) -> Row:
    """Return a row that tells how well the figures of both groups agree with the printed ones.

    The row has the share of reached targets [percent], the number of compared figures, how many of
    these have a z-score above SIGMAS, and the mean squared z-score. Figures in COPIED are left out.
    """
    z = [
        value
        for group in found
        for method in FIGURE_4_METHODS
        for key, value in group.scores(rules, method).items()
        if (group.name, method, key) not in COPIED
    ]
    share = 100.0 * found[0].counts[1] / len(traces)
    z.append(share_score(share, len(traces)))
    beyond = int(np.sum(np.abs(z) > SIGMAS))
    mean = float(np.mean(np.square(z)))
    return {"share": share, "figures": len(z), "beyond": beyond, "mean_z2": mean}


def _moves(rules: Rules) -> tuple[bool, str, bool]:
    """Return the rules that require new runs of the methods if they differ from other rules.

    The tuple has `is_y`, `code` and `is_above_best`. Changes of the other rules only need the
    distances of the existing runs to be evaluated again.
    """
    return rules.is_y, rules.code, rules.is_above_best


def _add_slips(report: Reproduction, robot: RobotModel, traces: Traces, progress: Progress) -> None:
    """Add the rows of the slips, and the rows of runs that switch from DLS' to SDLS.

    A slip is a property of the authors' program that differs from the text. The row of a slip has
    the agreement with the paper when only this slip is reverted. `traces` are those of the reading
    "as published", element [target][method].
    """
    rows = report.series.setdefault("slips", [])
    for slip, (instead, rules) in RULES_OF_SLIPS.items():
        found = list(traces)
        if _moves(rules) != _moves(RULES_AS_PUBLISHED):
            groups = run_in_groups(
                report.samples, robot, FIGURE_4_METHODS, rules, progress, instead
            )
            found = [target for some in groups for target in some]
        row = _agreement(groups_of(found, FIGURE_4_METHODS, rules), rules, found)
        rows.append({"is": slip, "instead": instead, **row})
    limit = RULES_AS_PUBLISHED.reached
    chosen = [k for k, target in enumerate(traces) if min(x.min() for x in target) < limit]
    targets = fixed_targets(1, report.samples, is_y=True)
    names = ("SDLS", "DLS'")
    both = {name: [traces[k][FIGURE_4_METHODS.index(name)] for k in chosen] for name in names}
    pool = progress.track(chosen, DLS_THEN_SDLS)
    both[DLS_THEN_SDLS] = [_dual_trace(robot, RULES_AS_PUBLISHED, targets[k]) for k in pool]
    for name, some in both.items() if chosen else ():
        steps = np.mean([_steps(trace, RULES_AS_PUBLISHED) for trace in some], axis=0)
        least = float(np.mean([trace.min() for trace in some]))
        begun: Row = {"table": "dual", "method": name, "least": least}
        by_accuracy = dict(zip(STEP_KEYS, steps.tolist(), strict=True))
        report.series.setdefault("dual", []).append({**begun, **by_accuracy})


# Pictures

COLORS = (BLUE, ORANGE, RED, GREEN, GREY)
WAY_POINTS = np.unique(np.geomspace(1, MAX_RUN_STEPS, 60).astype(np.int64))  # steps that are drawn


def _mean_excess(traces: Traces, rules: Rules) -> dict[str, Any]:
    """Return the mean excess distance of each method after WAY_POINTS steps, for both groups.

    The excess is the smallest distance of the run so far, minus the smallest distance that any
    method attains for the same target.
    """
    best = np.array([min(x.min() for x in target[: len(FIGURE_4_METHODS)]) for target in traces])
    shown: dict[str, Any] = {"steps": WAY_POINTS}
    for group, chosen in zip(GROUPS, (best < rules.reached, best >= rules.reached), strict=True):
        some = np.flatnonzero(chosen).tolist()
        shown[group] = {
            name: np.mean([_falling(traces[k][i]) - best[k] for k in some], axis=0)
            for i, name in enumerate(FIGURE_4_METHODS)
            if len(some)
        }
    return shown


def _falling(trace: Array) -> Array:
    least = np.minimum.accumulate(trace)
    return np.asarray(least[np.minimum(WAY_POINTS, len(least) - 1)])


def plot(report: Reproduction) -> Figure:
    """Draw the mean excess distance of each method over the steps, in a panel for each group."""
    figure = new_figure(11.0, 4.6)
    shown = report.series.get(PUBLISHED_RULES_NAME) or report.series.get(TEXT_RULES_NAME) or {}
    for axes, group in zip(figure.subplots(1, 2, sharey=True), GROUPS, strict=True):
        _draw(axes, shown.get("steps", []), shown.get(group, {}))
        axes.set_title(f"targets {group}", fontsize=10, loc="left")
    figure.supylabel("mean distance above that of the best method", fontsize=9)
    heading(figure, "Figure 4: fixed targets, from the zero position")
    return figure


def _draw(axes: Axes, steps: Sequence[int], curves: dict[str, Sequence[float]]) -> None:
    for color, (name, curve) in zip(COLORS, curves.items(), strict=False):
        axes.loglog(steps, np.maximum(curve, 1e-7), color=color, lw=1.6, label=name)
    axes.set_ylim(bottom=1e-6)
    plain(axes, "steps")
    if curves:
        axes.legend(frameon=False, fontsize=8)


# The experiment

SETTINGS = {
    "robot": "double-Y, zero position, no joint limits",
    "reached": "summed distance of the effectors from their targets is below "
    f"{RULES_AS_PUBLISHED.reached:g} (as in the text: {RULES_AS_IN_TEXT.reached:g}) with at least "
    "one method",
    "targets": "T = 3 (1 + sqrt 5) k, k = 1, 2, ...",
    PUBLISHED_RULES_NAME: {
        slip: f"instead of: {instead}" for slip, (instead, _) in RULES_OF_SLIPS.items()
    },
    TEXT_RULES_NAME: "targets of the double-Y; a run ends at a step that improves by less than "
    "1e-5, or at the third step that increases the distance",
}
NOTES = [
    "As published: the authors' program for fixed targets uses T = 3 (1 + sqrt 5) k and starts in "
    "the zero position. Unlike the program of figure 3, it does not set the shape whose targets "
    "are used. The printed figures show that this shape was the Y: E0 and E1 have the targets of "
    "the Y, and E2 and E3, whose targets were never set, have the origin. With these targets 3 of "
    "10 are reached, as printed; with the targets of the double-Y only one of seven.",
    "The printed means over the targets not reached are too large by the factor 7028 / 2972: the "
    "sums were divided by the number of targets reached (2972) instead of not reached (7028). "
    "Divided by 7028, the distance of SDLS is 0.077 above that of the best method, not 0.182, and "
    "SDLS takes 290 steps, not 686.",
    "Five rules are fitted to the printed figures, because the paper does not state them. Rule 1: "
    "a run ends at a step that decreases the distance by less than 1e-6. Rule 2: a run also ends "
    "at the fourth step after which the distance is above the smallest distance of the run so far. "
    "Rule 3: a target is reached if the distance is below 1e-4 (of all 10 000 targets this gives "
    "2972, as printed). Rule 4: a method whose distance is within 1e-5 of the best also wins (the "
    "printed wins for targets not reached add up to more than their number). Rule 5: the first "
    "step has number 0. Our targets are the first ones of the paper's 10 000, and columns are "
    "correlated, so that the mean z^2 may be below 1. docs/lab/figure_4.md compares all 10 000.",
    "As in the text: D_max grows by the decrease of the distance in the last step; a run ends at a "
    "step that improves by less than 1e-5, or at the third step that increases the distance; the "
    "targets are those of the double-Y.",
    "The conclusions of the paper hold in both readings. SDLS wins wherever a target is reached; "
    "for each further digit of accuracy it needs a few more steps, DLS hundreds. DLS' wins for "
    "most targets out of reach. J^T stops early, far from the target. The combination that the "
    "text suggests, DLS' until the distance is below 0.1 and then SDLS, is as fast as DLS' to 0.1 "
    "and the fastest to all finer accuracies.",
]
NOTE_ON_COPIED = (
    "The printed numbers of steps of DLS* and J^T to accuracy 0.1 are the same in both tables, "
    "63.3 and 44.0: the table of the targets not reached has a copy of them. They are not compared."
)

_MEAN_COLUMNS = (
    Column("method", "method", is_name=True),
    Column("wins", "wins [%]", ".1f"),
    Column("excess", "mean excess", ".5f"),
    *(Column(key, f"steps to {a:g}", ".1f") for key, a in zip(STEP_KEYS, ACCURACIES, strict=True)),
)
_AGREEMENT = (
    Column("share", "reached [%]", ".1f"),
    Column("figures", "figures compared", is_plain=True),
    Column("beyond", "beyond 3 sigma", is_plain=True),
    Column("mean_z2", "mean z^2", ".2f", is_plain=True),
)
FIGURE_4 = Experiment(
    what="figure-4",
    source="Buss & Kim 2004, figure 4",
    title="Double-Y: distance attained and steps needed for fixed targets",
    tables=(
        ResultTable(
            (Column("is", "reading", is_name=True), *_AGREEMENT),
            "Agreement with the printed figures, without the two copied ones",
            series="readings",
        ),
        ResultTable(
            (Column("targets", "targets", is_plain=True), Column("share", "reached [%]", ".1f")),
            "Share of targets reached, as published",
            {"table": "shares", "reading": PUBLISHED_RULES_NAME},
        ),
        *(
            ResultTable(
                _MEAN_COLUMNS,
                f"Targets {group}, {reading}",
                {"table": "means", "reading": reading, "group": group},
                is_verdict=reading == PUBLISHED_RULES_NAME,
            )
            for reading in RULES_BY_NAME
            for group in GROUPS
        ),
        ResultTable(
            (
                Column("is", "as published", is_name=True),
                Column("instead", "instead", is_text=True),
                *_AGREEMENT,
            ),
            "Agreement with the printed figures when one slip or choice is reverted",
            series="slips",
        ),
        ResultTable(
            (
                Column("method", "method", is_name=True),
                Column("least", "distance", ".5f"),
                *_MEAN_COLUMNS[3:],
            ),
            "Targets reached, as published: switching from DLS' to SDLS",
            {"table": "dual"},
            series="dual",
        ),
    ),
    run=run,
    plot=plot,
    samples=1000,
    samples_are="targets",
    is_sampled=True,
    readings=tuple(RULES_BY_NAME),
    not_predicted=(
        NotPredicted(
            FITTED,
            "the targets, the number by which sums are divided to give means, the rules that end "
            "a run, and the distance up to which a target counts as reached were chosen so that "
            "the figures of this table result",
        ),
    ),
)
