# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Moving targets of Buss & Kim 2004: figure 3, and the experiments that section 5 describes.

Figure 3 counts how many of the four effectors are closer to their moving targets with SDLS than
with DLS or DLS'. The targets move a little, then each method makes one step, and so on. The
experiment is run with and without the mistake that the published code makes in D_max ("as
published" and "mended"), and with the rule for D_max of the text ("as in the text").

The experiment of section 5 follows moving targets with the Y and the double-Y by all methods,
searches for the damping constant with the smallest error, and measures the time per iteration. All
methods are also run with the Jacobian evaluated at the targets instead of the effectors, an option
of the authors' programs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.model import RobotModel
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, RED, heading, new_figure, plain
from dls_ik.reproduce.buss_kim_shapes import (
    CODE_MENDED,
    CODE_PUBLISHED,
    CODES,
    DOUBLE_Y,
    Shape,
    Y,
    methods,
    start,
)
from dls_ik.reproduce.experiment import (
    Column,
    Experiment,
    Progress,
    Reproduction,
    ResultTable,
    Row,
    marked,
    not_run,
)
from dls_ik.solver.plugins import plugin_names
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Figure 3

WARM_UP_STEPS, ADVANCE = 400, 0.005  # number of first steps not counted; increase of T per step
STEPS_PER_CALL = 500  # steps per kernel call
DAMPINGS = (0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.1, 1.5)  # the paper uses 1.1 (DLS) and 0.7 (DLS')
COMPARED_PAIRS = (("SDLS", "DLS"), ("SDLS", "DLS'"), ("SDLS hard", "DLS"), ("SDLS hard", "DLS'"))
SHARE_KEYS = tuple(f"n{n}" for n in range(5))
PRINTED_SHARES = {
    ("SDLS", "DLS"): (1.4, 3.1, 20.6, 55.7, 19.3),
    ("SDLS", "DLS'"): (9.3, 24.3, 32.9, 20.0, 13.6),
}
MAX_CHANCE = 1.0  # [percentage points] larger differences from a printed share are marked
DRAWN_METHODS = ("SDLS", "DLS", "DLS'")

FIGURE_3_SETTINGS = {
    "robot": "double-Y, zero position, no joint limits",
    "targets": f"T advances by {ADVANCE} per step; the first {WARM_UP_STEPS} steps are not counted",
    "damping": "DLS 1.1, DLS' 0.7, DLS* 1.1; SDLS gamma_max pi/4, soft clamping unless named hard",
    "D_max": "0.4, adaptive",
    "largest joint change": "DLS 45 deg, J^T 30 deg, pinv 5 deg; pinv truncated at 0.01",
}
FIGURE_3_NOTES = [
    "As published: to adapt D_max of effector i, the code reads components i to i + 2 of the last "
    "error; it should read components 3i to 3i + 2. The printed figures include the effect of this "
    "mistake. Mended (with the correct components), SDLS is closer to the targets than DLS even "
    "more often.",
    "As in the text: D_max grows by the decrease of the distance in the last step. In the code it "
    "grows by the increase. The results of SDLS and DLS' are then similar to the mended ones.",
    "Damping constants: the distance from the targets is smallest with 0.5 for DLS and with 0.3 "
    "for DLS'; the paper uses 1.1 and 0.7. The paper says that it had to choose larger constants "
    "than the best ones to remove oscillation. Indeed the jerk of DLS falls from 0.9 on, and that "
    "of DLS' from 0.3 on.",
    "Another difference between text and code: the text clamps the step of SDLS hard, the code "
    "softly. Figure 3 is clamped softly, as in the code.",
    "The paper prints no sums of errors. J^T and pinv oscillate, so rounding errors change their "
    "paths: if the start is moved by 1e-12 rad, the sum of pinv changes by 6 percent, and the sums "
    "of J^T and SDLS hard by 0.6 percent.",
]
DEVIATION = (
    f"Marked: our share differs by more than {MAX_CHANCE:g} percentage point from the printed one. "
    "In a run of 2000 counted steps the difference is at most 0.2 points; with another number of "
    "steps, another part of the target paths is evaluated."
)


def run_figure_3(report: Reproduction, progress: Progress) -> None:
    """Follow the moving targets with every method, once for each rule of D_max in CODES."""
    report.settings.update(FIGURE_3_SETTINGS)
    report.notes += FIGURE_3_NOTES
    report.printed += [
        {"table": "shares", "code": CODE_PUBLISHED, "pair": " over ".join(pair), **_shares(values)}
        for pair, values in PRINTED_SHARES.items()
    ]
    robot = DOUBLE_Y.robot()
    T = ADVANCE * np.arange(1, WARM_UP_STEPS + report.samples + 1, dtype=np.float64)
    Ts = DOUBLE_Y.targets(T)
    for code in CODES:
        found: dict[str, Array] = {}
        for name in progress.track([*methods(code), *plugin_names()], code):
            try:
                found[name] = _follow(start(robot, name, code), Ts)[WARM_UP_STEPS:]
            except MethodError as error:
                not_run(report, {"table": "sums", "code": code, "method": name}, name, error)
                continue
            row: Row = {"table": "sums", "code": code, "method": name}
            report.rows.append({**row, "sum": float(found[name].sum())})
        for pair in COMPARED_PAIRS:
            report.rows.append(_share_row(code, pair, found))
        report.series["sums"] = _sums(report)
        thin = slice(None, None, max(1, report.samples // 1000))
        shown = {name: found[name].sum(axis=1)[thin] for name in DRAWN_METHODS}
        report.series[code] = {"T": T[WARM_UP_STEPS:][thin], "distance": shown}
    rows = report.series.setdefault("damping", [])
    for damping in progress.track(DAMPINGS, "damping constants"):
        rows.append(_damping_row(robot, damping, Ts))
    if report.samples != FIGURE_3.samples:  # other steps than those of the paper
        for row in report.rows:
            row.pop("differs", None)
    if any("differs" in row for row in report.rows):
        report.notes.append(DEVIATION)


def _damping_row(robot: RobotModel, damping: float, Ts: Array) -> Row:
    """Run DLS and DLS' with a damping constant along moving targets; return a table row.

    The row has two numbers for each method: the distance between tip and target, summed over tips
    and steps; and the mean absolute difference of a joint's displacements in consecutive steps
    [rad]. Both ignore the first WARM_UP_STEPS steps.

    Args:
        robot: Robot with the double-Y shape of the paper.
        damping: Damping constant lambda of both methods.
        Ts: (t, 4, 4, 4) target poses of the four tips at each step.
    """
    row: Row = {"damping": damping}
    for key, name in (("dls", "DLS"), ("clamped", "DLS'")):
        method, options = methods(CODE_MENDED)[name]
        given = {**options, "lambda_": damping}
        stepper = Stepper(robot, method, np.zeros(robot.n), task=Task.position_only(), **given)
        q = np.concatenate([stepper.q[None], *(q for q, _ in _moves(stepper, Ts))])
        tips = robot.fk(q[1:])[:, :, :3, 3]
        away = np.linalg.norm(tips - Ts[:, :, :3, 3], axis=2)[WARM_UP_STEPS:]
        row[key] = float(away.sum())
        row[f"{key}_rough"] = float(np.abs(np.diff(q[WARM_UP_STEPS:], n=2, axis=0)).mean())
    return row


def _moves(stepper: Stepper, Ts: Array) -> Iterator[tuple[Array, slice]]:
    """Make one step toward each of the targets Ts (t, 4, 4, 4), in chunks of STEPS_PER_CALL steps.

    Yields:
        The joint positions (s, n) after each step of a chunk, and the slice of Ts of this chunk.
    """
    for first, last in pairwise([*range(0, len(Ts), STEPS_PER_CALL), len(Ts)]):
        yield stepper.run(Ts[first:last], last - first).q[1:], slice(first, last)


def _follow(stepper: Stepper, Ts: Array) -> Array:
    """Make one step toward each of Ts (s, 4, 4, 4); return the distances (s, 4) from the targets.

    Row i has the distances of the four tips from target i after step i.
    """
    found = []
    for q, chosen in _moves(stepper, Ts):
        tips = stepper.robot.fk(q)[:, :, :3, 3]
        found.append(np.linalg.norm(tips - Ts[chosen, :, :3, 3], axis=2))
    return np.concatenate(found)


def _sums(report: Reproduction) -> list[Row]:
    """Return a row for each method of the report: the summed distance for each rule of D_max."""
    found: dict[str, Row] = {}
    for row in report.rows:
        if row["table"] == "sums":
            found.setdefault(row["method"], {"method": row["method"]})[row["code"]] = row.get("sum")
    return list(found.values())


def _share_row(code: str, pair: tuple[str, str], found: dict[str, Array]) -> Row:
    one, other = (found[name] for name in pair)
    nearer = (one < other).sum(axis=1)
    shares = [100.0 * float(np.mean(nearer == n)) for n in range(5)]
    row: Row = {"table": "shares", "code": code, "pair": " over ".join(pair), **_shares(shares)}
    printed = PRINTED_SHARES.get(pair) if code == CODE_PUBLISHED else None
    pairs = zip(SHARE_KEYS, shares, printed or shares, strict=True)
    return marked(row, [key for key, ours, theirs in pairs if abs(ours - theirs) > MAX_CHANCE])


def _shares(values: tuple[float, ...] | list[float]) -> Row:
    return dict(zip(SHARE_KEYS, values, strict=True))


def plot_figure_3(report: Reproduction) -> Figure:
    """Draw our shares next to the printed shares, and the summed distance of the tips over T."""
    figure = new_figure(11.0, 6.0)
    grid = figure.subplots(2, 2, width_ratios=(1.0, 1.3))
    for axes, pair in zip(grid[:, 0], COMPARED_PAIRS, strict=False):
        _bars(axes, report, " over ".join(pair))
    drawn = [(code, report.series[code]) for code in CODES if code in report.series]
    for axes, (code, series) in zip(grid[:, 1], drawn, strict=False):
        for name, color in zip(DRAWN_METHODS, (BLUE, ORANGE, GREY), strict=True):
            axes.plot(series["T"], series["distance"][name], color=color, lw=0.9, label=name)
        axes.set_title(f"summed distance of the effectors, D_max {code}", fontsize=9, loc="left")
        axes.set_xlabel("T", fontsize=8)
        axes.set_ylim(0.0, 6.0)
        axes.legend(fontsize=7, frameon=False, ncols=3, loc="upper right")
        plain(axes)
    heading(figure, "Figure 3: which method is closer to moving targets")
    return figure


def _bars(axes: Axes, report: Reproduction, pair: str) -> None:
    rows = [("printed", row, GREY) for row in report.printed if row["pair"] == pair]
    measured = [row for row in report.rows if row.get("pair") == pair]
    colors = (BLUE, PALE)
    rows += [(row["code"], row, color) for row, color in zip(measured, colors, strict=False)]
    for i, (label, row, color) in enumerate(rows):
        shares = [row[key] for key in SHARE_KEYS]
        axes.bar(np.arange(5) + 0.27 * (i - 1), shares, 0.25, color=color, label=label)
    axes.set_title(f"{pair}: number of closer effectors [% of steps]", fontsize=9, loc="left")
    axes.legend(fontsize=7, frameon=False)
    plain(axes)


_SHARE_COLUMNS = (
    Column("pair", "methods", is_name=True),
    *(Column(key, f"{n} closer [%]", ".1f") for n, key in enumerate(SHARE_KEYS)),
)
_SUM_COLUMNS = (
    Column("method", "method", is_name=True),
    *(Column(code, code, ".0f") for code in CODES),
)
FIGURE_3 = Experiment(
    what="figure-3",
    source="Buss & Kim 2004, figure 3",
    title="Double-Y: how many effectors are closer to moving targets with SDLS",
    tables=(
        *(
            ResultTable(
                _SHARE_COLUMNS,
                f"Share of steps by number of closer effectors, D_max {code}",
                {"table": "shares", "code": code},
            )
            for code in CODES
        ),
        ResultTable(_SUM_COLUMNS, "Summed distance for each rule of D_max", series="sums"),
        ResultTable(
            (
                Column("damping", "lambda", ".1f", is_name=True),
                Column("dls", "DLS, distance", ".0f"),
                Column("dls_rough", "jerk", ".3f"),
                Column("clamped", "DLS', distance", ".0f"),
                Column("clamped_rough", "jerk", ".3f"),
            ),
            "Damping constants: summed distance, and jerk (mean change of a joint's step) [rad]",
            series="damping",
        ),
    ),
    run=run_figure_3,
    plot=plot_figure_3,
    samples=2000,
    samples_are="counted steps",
    least_samples=100,
    needs_all=True,
)


# Section 5

TRACKED = ("J^T", "pinv", "DLS", "DLS'", "SDLS")
SEARCHED = np.round(np.arange(0.3, 0.61, 0.03), 2)  # range of the published code
SEARCH_WARM_UP, SEARCH_STEPS = 20, 200  # values of the published code
PRINTED_TIMES = {"J^T": 6.5, "DLS": 18.5, "SDLS": 120.0}  # [us] per iteration of the double-Y
TIMED_STEPS, TIMED_RUNS = 2000, 5

SECTION_5_SETTINGS = {
    "targets": f"T advances by {ADVANCE} per step; the first {WARM_UP_STEPS} steps are not counted",
    "damping, Y": "DLS and DLS' 0.6",
    "damping, double-Y": "DLS 1.1, DLS' 0.7",
    "largest joint change": "DLS 45 deg, J^T 30 deg, pinv 5 deg; pinv truncated at 0.01",
    "D_max": "0.4, adaptive, mended",
}
SECTION_5_NOTES = [
    "The paper prints only times of these experiments, and describes the rest in words: J^T is "
    "poor for the Y and extremely poor for the double-Y; pinv, with steps small enough that it "
    "does not shake, cannot follow the targets.",
    "Distance: mean distance of an effector from its target. Jerk: mean change of the step of a "
    "joint. The paper prints no damping constant of DLS' for the Y; we use the constant of DLS.",
    "J at the targets: column j of the Jacobian is the axis of joint j times (target - position of "
    "the joint) instead of (effector - position of the joint). This is an option of the authors' "
    "programs that the paper does not mention.",
    "Search: like the authors' program, we try damping constants of DLS on the Y; the first 20 "
    "steps are not counted, the next 200 are. The paper uses a larger constant than the best one, "
    "for smooth motion.",
    "Times: the printed times are those of C++ on a 2.8 GHz Pentium; ours are those of one thread, "
    f"the minimum of {TIMED_RUNS} runs. Ratios are relative to the time of J^T. Our times include "
    "the kinematics, which is the same for all methods.",
]


def run_section_5(report: Reproduction, progress: Progress) -> None:
    """Follow targets with both shapes, search for the best damping constant, and time the steps."""
    report.settings.update(SECTION_5_SETTINGS)
    report.notes += SECTION_5_NOTES
    for shape in (Y, DOUBLE_Y):
        robot = shape.robot()
        T = ADVANCE * np.arange(1, WARM_UP_STEPS + report.samples + 1, dtype=np.float64)
        Ts = shape.targets(T)
        for name in progress.track([*TRACKED, *plugin_names()], shape.name):
            names: Row = {"table": "tracking", "shape": shape.name, "method": name}
            try:
                row = _tracking_row(shape, robot, name, Ts)
            except MethodError as error:
                not_run(report, names, name, error)
                continue
            report.rows.append({**names, **row})
    rows = report.series.setdefault("search", [])
    robot = Y.robot()
    T = ADVANCE * np.arange(1, SEARCH_WARM_UP + SEARCH_STEPS + 1, dtype=np.float64)
    for damping in progress.track(SEARCHED.tolist(), "damping constants"):
        rows.append(_search_row(robot, damping, Y.targets(T)))
    least = min(rows, key=lambda row: row["sum"])
    least["best"] = "smallest"
    times = report.series.setdefault("times", [])
    for name in progress.track(list(PRINTED_TIMES), "times"):
        times.append(_time_row(name))
        times[-1] |= {"ratio": times[-1]["us"] / times[0]["us"]}


def _tracking_row(shape: Shape, robot: RobotModel, name: str, Ts: Array) -> Row:
    """Return a row with the mean distance and jerk of a method that follows the targets.

    The jerk is the mean change of the step of a joint [rad]. The method runs twice: with the
    Jacobian at the effectors, and with the Jacobian at the targets.

    Args:
        shape: Shape whose damping constants are used.
        robot: Robot of the shape.
        name: Name of the method.
        Ts: (t, k, 4, 4) target poses of the k tips at each step.
    """
    row: Row = {}
    for key, at_targets in (("", False), ("_there", True)):
        stepper = start(robot, name, CODE_MENDED, shape)
        if at_targets:
            q = np.array([_step_at_targets(stepper, T) for T in Ts])
        else:
            q = np.concatenate([some for some, _ in _moves(stepper, Ts)])
        tips = robot.fk(q)[:, :, :3, 3]
        away = np.linalg.norm(tips - Ts[:, :, :3, 3], axis=2)[WARM_UP_STEPS:]
        row[f"distance{key}"] = float(away.mean())
        row[f"jerk{key}"] = float(np.abs(np.diff(q[WARM_UP_STEPS:], n=2, axis=0)).mean())
    return row


def _step_at_targets(stepper: Stepper, T: Array) -> Array:
    """Step toward T (k, 4, 4) with the Jacobian at the targets; return the new joints (n,) [rad].

    Each target is treated as a point fixed to the link of its effector.
    """
    robot, k = stepper.robot, len(T)
    J = robot.jacobian(stepper.q).reshape(k, 6, robot.n)
    to_target = T[:, :3, 3] - robot.fk(stepper.q)[:, :3, 3]
    # axis x (target - p) = axis x (effector - p) + axis x (target - effector), p: joint position
    turned = np.cross(J[:, 3:], to_target[:, :, None], axis=1)
    stepper.step(T, (J[:, :3] + turned).reshape(3 * k, robot.n))
    return stepper.q


def _search_row(robot: RobotModel, damping: float, Ts: Array) -> Row:
    """Return a row with the summed distance of DLS on the Y for a damping constant.

    Args:
        robot: The Y.
        damping: Damping constant.
        Ts: (t, 2, 4, 4) target poses of both tips at each step.
    """
    name, options = methods(CODE_MENDED, Y)["DLS"]
    given = {**options, "lambda_": damping}
    stepper = Stepper(robot, name, np.zeros(robot.n), task=Task.position_only(), **given)
    found = _follow(stepper, Ts)[SEARCH_WARM_UP:]
    return {"damping": damping, "sum": float(found.sum())}


def _time_row(name: str) -> Row:
    """Measure the time per iteration of a method on the double-Y.

    The row has our time [us], the printed time [us], and the printed ratio to the time of J^T.
    """
    robot, found = DOUBLE_Y.robot(), []
    Ts = DOUBLE_Y.targets(ADVANCE * np.arange(1.0, TIMED_STEPS + 1.0))
    for _ in range(TIMED_RUNS):
        stepper = start(robot, name, CODE_MENDED)
        begun = time.perf_counter()
        stepper.run(Ts, TIMED_STEPS)
        found.append(1e6 * (time.perf_counter() - begun) / TIMED_STEPS)
    printed = PRINTED_TIMES[name]
    ratio = printed / PRINTED_TIMES["J^T"]
    return {"method": name, "us": min(found), "printed_us": printed, "printed_ratio": ratio}


def plot_section_5(report: Reproduction) -> Figure:
    """Draw the mean distance of each method for both shapes, and the search for the damping."""
    figure = new_figure(11.0, 3.8)
    *shapes, last = figure.subplots(1, 3)
    for axes, shape in zip(shapes, (Y, DOUBLE_Y), strict=True):
        rows = [r for r in report.rows if r["shape"] == shape.name and "distance" in r]
        for i, (key, label, color) in enumerate(
            (("distance", "J at the effectors", BLUE), ("distance_there", "J at the targets", PALE))
        ):
            places = np.arange(len(rows)) + 0.4 * (i - 0.5)
            axes.bar(places, [row[key] for row in rows], 0.38, color=color, label=label)
        axes.set_xticks(range(len(rows)), [row["method"] for row in rows])
        axes.set_title(f"{shape.name}: mean distance", fontsize=10, loc="left")
        plain(axes)
        if rows:
            axes.legend(frameon=False, fontsize=8)
    search = report.series.get("search", [])
    last.plot([r["damping"] for r in search], [r["sum"] for r in search], ".-", color=BLUE)
    last.axvline(Y.damping, color=RED, lw=1.0, ls="--")
    last.set_title("Y, DLS: summed distance; dashed: paper's constant", fontsize=10, loc="left")
    plain(last, "damping constant")
    heading(figure, "Section 5: following moving targets with all methods")
    return figure


_TRACKING_COLUMNS = (
    Column("method", "method", is_name=True),
    Column("distance", "distance", ".3f"),
    Column("jerk", "jerk [rad]", ".4f"),
    Column("distance_there", "J at targets: distance", ".3f"),
    Column("jerk_there", "jerk [rad]", ".4f"),
)
SECTION_5 = Experiment(
    what="section-5",
    source="Buss & Kim 2004, section 5",
    title="Y and double-Y: following moving targets, damping constants, times",
    tables=(
        *(
            ResultTable(
                _TRACKING_COLUMNS, f"Following targets, {shape.name}", {"shape": shape.name}
            )
            for shape in (Y, DOUBLE_Y)
        ),
        ResultTable(
            (
                Column("damping", "lambda", ".2f", is_name=True),
                Column("sum", "summed distance", ".1f"),
                Column("best", "", is_text=True),
            ),
            "Search for the best damping constant of DLS on the Y",
            series="search",
        ),
        ResultTable(
            (
                Column("method", "method", is_name=True),
                Column("us", "time [us]", ".1f"),
                Column("printed_us", "printed", ".1f"),
                Column("ratio", "ratio", ".1f"),
                Column("printed_ratio", "printed", ".1f"),
            ),
            "Time per iteration on the double-Y",
            is_verdict=False,
            series="times",
        ),
    ),
    run=run_section_5,
    plot=plot_section_5,
    samples=2000,
    samples_are="counted steps",
    least_samples=3,
)
