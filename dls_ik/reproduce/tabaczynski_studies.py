# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Sections 2 to 4 of Tabaczynski 2005: two printed traces, and claims that have no tables.

A trace lists the distance and the step of each joint for all iterations of a run with the chain of
5 links. The claims are about the cap of the step (a bound on the norm or on the largest joint
change), the pseudoinverse without truncation, halved errors, DLS followed by the pseudoinverse, and
chains with more links.
"""

from __future__ import annotations

from itertools import product
from math import pi, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, RED, heading, new_figure, plain
from dls_ik.reproduce.experiment import (
    FITTED,
    Column,
    Experiment,
    NotPredicted,
    Progress,
    Reproduction,
    ResultTable,
    Row,
    marked,
)
from dls_ik.reproduce.tabaczynski import (
    COARSE_TOLERANCE,
    FINE_TOLERANCE,
    MOTION_COLUMNS,
    NAME_COLUMNS,
    NEVER_REACHED,
    SCENARIOS,
    STEP_CAP,
    TABLE_4_METHODS,
    Method,
    Scenario,
    first_of,
    follow,
    planar_joints,
    row_of,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Printed traces: a row per iteration, with the distance and the step of each joint. A number is
# None if it is not legible.

FIVE = SCENARIOS[-1]
TRACES: dict[str, tuple[tuple[float | None, ...], ...]] = {
    "truncated pinv": (
        (3.1772, -0.2548, -0.3650, -0.4744, -0.2963, 0.1077),
        (2.2797, 0.5740, 0.5341, -0.0189, -0.3098, 0.2384),
        (1.3181, 0.0453, 0.2095, -0.3655, -0.3570, 0.3858),
        (0.2902, 0.1706, 0.0340, -0.1028, -0.0130, 0.2009),
        (0.0388, -0.0047, -0.0036, -0.0015, -0.0017, -0.0028),
        (0.0002, 0.0001, 0.0, -0.0001, 0.0, None),
    ),
    "DLS": (
        (3.1772, None, -0.0782, -0.0991, -0.0602, None),
        (2.5221, -0.0815, -0.0020, -0.0966, -0.1190, 0.0555),
        (1.9160, -0.0714, 0.0885, -0.1012, -0.1738, 0.0979),
        (1.4197, -0.0331, 0.1578, -0.1122, -0.1903, 0.1403),
        (1.0371, -0.0063, 0.1844, -0.1228, -0.1628, 0.1800),
        (0.7239, -0.0061, 0.1774, -0.1248, -0.1120, 0.2196),
        (0.4460, -0.0166, 0.0969, -0.0734, -0.0375, 0.1621),
        (0.2767, -0.0173, 0.0536, -0.0412, -0.0133, 0.1064),
        (0.1722, -0.0138, 0.0315, -0.0238, -0.0054, 0.0675),
        (0.1072, -0.0098, 0.0190, -0.0141, -0.0025, None),
        (0.0667, -0.0067, 0.0117, -0.0085, -0.0013, None),
        (0.0415, -0.0044, 0.0072, -0.0052, -0.0007, 0.0164),
        (0.0258, -0.0028, 0.0045, -0.0032, -0.0004, 0.0102),
        (0.0161, -0.0018, 0.0028, -0.0020, -0.0002, None),
        (0.0100, -0.0011, 0.0017, -0.0012, -0.0001, 0.0040),
    ),
}
TRACE_KEYS = ("distance", "q1", "q2", "q3", "q4", "q5")
PRINTED_ROUNDING = 5.5e-5  # maximum rounding error of the printed digits, with a margin

# Variants of the pseudoinverse; they are run in the scenarios of table 4.4, and with a straight arm

_TRUNCATED = {"truncation": 5e-5}
DLS_THEN_PINV, PINV_SWITCH_DISTANCE = "DLS to 0.1, then pinv", 0.1
STRAIGHT = Scenario("2 links, straight", SCENARIOS[2].links, (0.0, 0.0), (-2.0, -2.0), ((), (), ()))
VARIANTS: dict[str, Method] = {
    "truncated pinv": TABLE_4_METHODS["truncated pinv"],
    "pinv": ("jp+max", STEP_CAP),
    "pinv, no cap": ("jp", {}),
    "truncated pinv, cap of the norm": ("tpinv+norm", {**_TRUNCATED, "Delta": pi / 4}),
    "truncated pinv, halved": ("tpinv+halve+max", {**_TRUNCATED, **STEP_CAP}),
    DLS_THEN_PINV: TABLE_4_METHODS["DLS"],
}

# Caps of the step on random chains, and numbers of links

CAPS: dict[str, float] = {"0.01": 0.01, "0.1": 0.1, "pi/4": pi / 4, "pi": pi, "none": 1e3}
START_TURNS = {"a quadrant away": pi / 2, "opposite": pi}
NUM_LINKS = (2, 3, 5, 8, 12)
PRINTED_LINKS: dict[int, Row] = {8: {"transpose_least": 4}}
MAX_CHAIN_ITERATIONS = 500  # maximum iterations of a random chain


class PlanarChain(NamedTuple):
    """Random chain with a random start."""

    links: tuple[float, ...]
    start: tuple[float, ...]


def random_chain(rng: np.random.Generator, count: int) -> PlanarChain:
    """Return a random chain of `count` links, with lengths from 0.5 to 2.5 and a random start.

    The joint positions of the start are between -pi/2 and pi/2.
    """
    links, start = rng.uniform(0.5, 2.5, count), rng.uniform(-pi / 2, pi / 2, count)
    return PlanarChain(tuple(links.tolist()), tuple(start.tolist()))


def goal_of(
    rng: np.random.Generator, chain: PlanarChain, turn: float | None
) -> tuple[float, float]:
    """Return a random goal (x, y) in reach of a chain.

    The goal is the position of the tip in a random configuration. If `turn` is not None, the goal
    is rotated about the base.

    Args:
        rng: Random number generator.
        chain: Chain with its start.
        turn: Angle at the base between the initial tip and the rotated goal [rad]; None for no
            rotation.
    """
    q = rng.uniform(-pi / 2, pi / 2, len(chain.links))
    end = planar_joints(chain.links, q)[-1]
    if turn is not None:
        x, y = planar_joints(chain.links, np.array(chain.start))[-1]
        angle = float(np.arctan2(y, x)) + turn
        end = float(np.hypot(*end)) * np.array([np.cos(angle), np.sin(angle)])
    return float(end[0]), float(end[1])


def run(report: Reproduction, progress: Progress) -> None:
    """Add the rows of the traces, then those of the variants, caps and numbers of links."""
    report.settings.update(SETTINGS)
    report.notes += NOTES
    for method, printed in TRACES.items():
        report.printed += [
            {"table": method, "k": k, **dict(zip(TRACE_KEYS, figures, strict=True))}
            for k, figures in enumerate(printed, 1)
        ]
        report.rows += _trace(method, len(printed))
    report.printed += [{"table": "links", "links": n, **row} for n, row in PRINTED_LINKS.items()]
    base: Row = {}
    pairs = list(product((*SCENARIOS, STRAIGHT), VARIANTS))
    for scenario, method in progress.track(pairs, "variants"):
        row = _variant(scenario, method)
        if method == "truncated pinv":
            base = row
        if row is base or _shown(row) != _shown(base):
            report.rows.append(row)
    for cap in progress.track(list(CAPS), "caps"):
        report.rows.append(_cap_row(cap, report.samples, np.random.default_rng(report.seed)))
    for count in progress.track(NUM_LINKS, "numbers of links"):
        row = _links_row(count, report.samples, np.random.default_rng(report.seed))
        report.rows.append(row)


def _trace(method: str, count: int) -> list[Row]:
    """Return rows with the first `count` iterations of our run with the chain of 5 links.

    Figures that differ from the printed trace of the method by more than PRINTED_ROUNDING are
    marked.
    """
    q, distance = follow(FIVE, TABLE_4_METHODS[method], count + 1)
    steps, rows = np.diff(q, axis=0), []
    for k, printed in enumerate(TRACES[method]):
        figures = (float(distance[k]), *steps[k].tolist())
        far = [
            key
            for key, ours, theirs in zip(TRACE_KEYS, figures, printed, strict=True)
            if theirs is not None and abs(ours - theirs) > PRINTED_ROUNDING
        ]
        row: Row = {"table": method, "k": k + 1, **dict(zip(TRACE_KEYS, figures, strict=True))}
        rows.append(marked(row, far))
    return rows


def _variant(scenario: Scenario, method: str) -> Row:
    """Run a variant in a scenario, and return its row.

    Args:
        scenario: Chain with start and goal.
        method: Key of VARIANTS.
    """
    q, distance = follow(scenario, VARIANTS[method], 2 * MAX_CHAIN_ITERATIONS)
    if method == DLS_THEN_PINV:
        first = first_of(distance <= PINV_SWITCH_DISTANCE)
        if isinstance(first, int):
            begin = q[first - 1].tolist()
            rest = follow(scenario, VARIANTS["pinv"], 2 * MAX_CHAIN_ITERATIONS - first + 1, begin)
            q = np.concatenate([q[: first - 1], rest[0]])
            distance = np.concatenate([distance[: first - 1], rest[1]])
    row = row_of(scenario, method, q, distance)
    reached = {
        "coarse": first_of(distance <= COARSE_TOLERANCE),
        "fine": first_of(distance <= FINE_TOLERANCE),
    }
    nearest = round(float(distance[-100:].min()), 12)
    return {**row, "table": "variants", **reached, "nearest": nearest}


def _shown(row: Row) -> list[str]:
    """Return the figures of a row of a variant as text, formatted as in the table.

    The texts of two rows are compared, to omit variants that give the same figures.
    """
    return [format(row.get(c.key), c.form) if c.form else str(row.get(c.key)) for c in _FIGURES]


_FIGURES = (
    Column("coarse", "to 0.01"),
    Column("fine", "to 1e-7"),
    Column("nearest", "final distance", ".2g"),
    *MOTION_COLUMNS,
)


def _iterations(chain: PlanarChain, goal: tuple[float, float], method: Method) -> float:
    """Return the number of iterations until the distance from a goal is 0.01.

    The number is infinity if MAX_CHAIN_ITERATIONS are not enough.
    """
    scenario = Scenario("", chain.links, chain.start, goal, ((), (), ()))
    _, distance = follow(scenario, method, MAX_CHAIN_ITERATIONS)
    first = first_of(distance <= COARSE_TOLERANCE)
    return float(first) if isinstance(first, int) else np.inf


def _cap_row(cap: str, samples: int, rng: np.random.Generator) -> Row:
    """Return a row with the results of a cap of the step on random chains of 5 links.

    For each rotation of the goals in START_TURNS, the row has the share of reached goals [percent]
    and the median number of iterations.

    Args:
        cap: Key of CAPS.
        samples: Number of chains per rotation.
        rng: Random number generator.
    """
    row: Row = {"table": "caps", "cap": cap}
    method = ("tpinv+max", {**_TRUNCATED, "largest_change": CAPS[cap]})
    for name, turn in START_TURNS.items():
        found = []
        for _ in range(samples):
            chain = random_chain(rng, 5)
            found.append(_iterations(chain, goal_of(rng, chain, turn), method))
        row[f"share {name}"] = 100.0 * float(np.isfinite(found).mean())
        row[f"median {name}"] = _median(np.array(found))
    return row


def _links_row(count: int, samples: int, rng: np.random.Generator) -> Row:
    """Return a row with the median iterations of each method on random chains of `count` links.

    For the transpose, the row also has the smallest number of iterations, and the share of chains
    [percent] with at most 4 iterations. `samples` is the number of chains.
    """
    row: Row = {"table": "links", "links": count}
    chains = [random_chain(rng, count) for _ in range(samples)]
    goals = [goal_of(rng, chain, None) for chain in chains]
    for name, method in TABLE_4_METHODS.items():
        found = [_iterations(c, goal, method) for c, goal in zip(chains, goals, strict=True)]
        row[f"{name}_median"] = _median(np.array(found))
        if name == "transpose":
            row["transpose_least"] = min(found) if np.isfinite(min(found)) else NEVER_REACHED
            row["transpose_four"] = 100.0 * float(np.mean(np.array(found) <= 4.0))
    return row


def _median(found: Array) -> int | str:
    """Return the rounded median of iteration counts; NEVER_REACHED if the median is infinite."""
    middle = float(np.median(np.sort(found)))
    return round(middle) if np.isfinite(middle) else NEVER_REACHED


def plot(report: Reproduction) -> Figure:
    """Draw the distance over the iterations of both traces, and iterations by number of links."""
    figure = new_figure(11.0, 4.2)
    left, right = figure.subplots(1, 2)
    for (method, printed), color in zip(TRACES.items(), (BLUE, ORANGE), strict=True):
        ours = [row["distance"] for row in report.rows if row["table"] == method]
        left.semilogy(range(1, len(ours) + 1), ours, color=color, label=method)
        marks = [row[0] for row in printed]
        left.semilogy(range(1, len(marks) + 1), marks, "o", color=color, mfc="none")
    left.set_title("5 links: distance to the goal; circles: printed", fontsize=10, loc="left")
    plain(left, "iteration")
    left.legend(frameon=False, fontsize=9)
    rows = [row for row in report.rows if row["table"] == "links"]
    for name, color in zip(TABLE_4_METHODS, (BLUE, RED, ORANGE), strict=True):
        medians = [row[f"{name}_median"] for row in rows]
        shown = [np.nan if value == NEVER_REACHED else value for value in medians]
        right.semilogy([row["links"] for row in rows], shown, ".-", color=color, label=name)
    right.axhline(4, color=GREY, lw=0.8, ls="--")
    right.set_title("random chains: median iterations to 0.01; dashed: 4", fontsize=10, loc="left")
    plain(right, "links")
    right.legend(frameon=False, fontsize=9)
    heading(figure, "Traces of the chain of 5 links, and random chains")
    return figure


SETTINGS = {
    "traces": "5 links of table 4.4",
    "caps": "random chains of 5 links, truncated pinv; goals in reach, rotated from the start",
    "numbers of links": "random chains, lengths 0.5 to 2.5; joints of start and goal configuration "
    "between -pi/2 and pi/2",
    "iterations": f"at most {MAX_CHAIN_ITERATIONS} for random chains, {2 * MAX_CHAIN_ITERATIONS} "
    "for the chains of table 4.4",
}
NOTES = [
    "Traces: our runs give all legible printed figures. After the last iteration, which makes no "
    "step, the paper prints the previous step again.",
    "Variants: a variant is missing from the table if all its figures are those of the truncated "
    "pinv; this is the case for pinv and halving almost everywhere. Without a cap the joints turn "
    "six times as far; a cap of the norm changes little. DLS followed by the pseudoinverse "
    "combines the smooth motion of DLS with the final accuracy of the pseudoinverse, as the "
    "conclusions of the paper expect.",
    "Halving (section 2.2) shortens the error until the component that J cannot produce is within "
    "a tolerance; Tabaczynski's code omits it. (The paper prints J+ J, whose dimensions do not fit "
    "the error; J J+ is meant.) Halving has an effect only at exact singularities: for a straight "
    "chain it reduces the first step to zero, and only rounding errors let the motion continue.",
    f"DLS uses lambda = {sqrt(1.1):.3f} and D_max = 0.7, as in table 4.4.",
    "Caps: very small caps need hundreds of iterations, and caps near pi/4 few, as the paper says. "
    "The paper also says that large caps never converge; this is not the case for random chains "
    "with goals in reach. If the start is a quadrant away from the goal, a cap has little benefit.",
    "Links: the paper reports 4 iterations of the transpose for a chain of 8 links, but does not "
    "print this chain. Of our random chains of 8 links, one in thirty takes 4 or fewer iterations, "
    "and the median is 26. DLS takes about 10 iterations in the text, and 15 here.",
]
STUDIES = Experiment(
    what="section-4",
    source="Tabaczynski 2005, sections 2 to 4",
    title="Planar chains: traces, variants of the pseudoinverse, caps of the step, more links",
    tables=(
        *(
            ResultTable(
                (
                    Column("k", "k", is_name=True),
                    Column("distance", "distance", ".4f"),
                    *(Column(f"q{i}", f"step {i} [rad]", ".4f") for i in range(1, 6)),
                ),
                f"Trace of the chain of 5 links, {method}",
                {"table": method},
            )
            for method in TRACES
        ),
        ResultTable(
            (
                *NAME_COLUMNS,
                *_FIGURES,
            ),
            "Variants of the pseudoinverse: iterations to a distance of 0.01 and 1e-7",
            {"table": "variants"},
        ),
        ResultTable(
            (
                Column("cap", "cap [rad]", is_name=True),
                *(
                    column
                    for name in START_TURNS
                    for column in (
                        Column(f"share {name}", f"goal {name}: reached [%]", ".0f"),
                        Column(f"median {name}", "median iterations"),
                    )
                ),
            ),
            "Caps of the largest joint change per step, random chains of 5 links",
            {"table": "caps"},
        ),
        ResultTable(
            (
                Column("links", "links", is_name=True),
                *(Column(f"{name}_median", f"{name}, median") for name in TABLE_4_METHODS),
                Column("transpose_least", "transpose, smallest", ".0f", is_compared=False),
                Column("transpose_four", "transpose, 4 or fewer [%]", ".0f"),
            ),
            "Iterations to a distance of 0.01, random chains",
            {"table": "links"},
        ),
    ),
    run=run,
    plot=plot,
    samples=50,
    samples_are="random chains per row",
    not_predicted=(
        NotPredicted(
            FITTED,
            "lengths, start and goal of the chain of 5 links were fitted to the 30 numbers of "
            "iterations 1 to 5 of this trace",
            {"table": ("truncated pinv",), "k": tuple(range(1, 6))},
        ),
        NotPredicted(
            FITTED,
            "DLS starts in the configuration that was fitted to the printed iterations of the "
            "truncated pseudoinverse, so the distance at the start agrees in any case",
            {"table": ("DLS",), "k": (1,)},
            ("distance",),
        ),
    ),
)
