# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Sections 2 to 4 of Tabaczynski 2005: two printed traces, and claims that have no tables.

The traces list all iterations and steps of the chain of 5 links. The claims are about the cap of
the step (none, small, large; of the norm or of the largest joint change), the pseudoinverse without
truncation, halved steps, DLS followed by the pseudoinverse, and chains of more links.
"""

from __future__ import annotations

from itertools import product
from math import pi, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, RED, heading, new_figure, plain
from dls_ik.reproduce.experiment import (
    Column,
    Experiment,
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

# Traces as printed: the distance, then the step of each joint; None if a number is not legible.

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

# Variants of the pseudoinverse, run on the chains of table 4.4 and on an initially straight chain

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
    """Return a chain with random link lengths from 0.5 to 2.5, and a random start."""
    links, start = rng.uniform(0.5, 2.5, count), rng.uniform(-pi / 2, pi / 2, count)
    return PlanarChain(tuple(links.tolist()), tuple(start.tolist()))


def goal_of(
    rng: np.random.Generator, chain: PlanarChain, turn: float | None
) -> tuple[float, float]:
    """Return a random goal (x, y) in reach of a chain.

    The goal is the position of the tip in a random configuration, rotated about the base if `turn`
    is not None.

    Args:
        rng: Random numbers.
        chain: Chain.
        turn: Angle at the base between the initial tip and the goal [rad]; None for no rotation.
    """
    q = rng.uniform(-pi / 2, pi / 2, len(chain.links))
    end = planar_joints(chain.links, q)[-1]
    if turn is not None:
        x, y = planar_joints(chain.links, np.array(chain.start))[-1]
        angle = float(np.arctan2(y, x)) + turn
        end = float(np.hypot(*end)) * np.array([np.cos(angle), np.sin(angle)])
    return float(end[0]), float(end[1])


def run(report: Reproduction, progress: Progress) -> None:
    """Add the rows of the traces, then run the studies of the other claims."""
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
    """Return our first `count` iterations as rows; mark figures that differ from the printed."""
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
    """Run a variant on the chain of a scenario, and return its row."""
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
    """Return the figures of a variant's row as text, formatted as in the table."""
    return [format(row.get(c.key), c.form) if c.form else str(row.get(c.key)) for c in _FIGURES]


_FIGURES = (
    Column("coarse", "to 0.01"),
    Column("fine", "to 1e-7"),
    Column("nearest", "nearest at last", ".2g"),
    *MOTION_COLUMNS,
)


def _iterations(chain: PlanarChain, goal: tuple[float, float], method: Method) -> float:
    """Return the number of iterations to a distance of 0.01 from the goal; infinity if never."""
    scenario = Scenario("", chain.links, chain.start, goal, ((), (), ()))
    _, distance = follow(scenario, method, MAX_CHAIN_ITERATIONS)
    first = first_of(distance <= COARSE_TOLERANCE)
    return float(first) if isinstance(first, int) else np.inf


def _cap_row(cap: str, samples: int, rng: np.random.Generator) -> Row:
    """Return a row with the success and iterations of a step cap on random chains of 5 links."""
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
    """Return a row with the iterations of each method on random chains of `count` links."""
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
    """Return the median number of iterations; NEVER_REACHED if the median is infinite."""
    middle = float(np.median(np.sort(found)))
    return round(middle) if np.isfinite(middle) else NEVER_REACHED


def plot(report: Reproduction) -> Figure:
    """Draw the distances of both traces, and the iterations over the number of links."""
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
    right.set_title("random chains: iterations to 0.01; dashed: 4", fontsize=10, loc="left")
    plain(right, "links")
    right.legend(frameon=False, fontsize=9)
    heading(figure, "Traces of 5 links, and chains of more")
    return figure


SETTINGS = {
    "traces": "5 links of table 4.4",
    "caps": "random chains of 5 links, truncated pinv; goals reached, turned from the start",
    "numbers of links": "random chains, start and goal within pi/2 of straight, lengths 0.5 to 2.5",
    "iterations": f"at most {MAX_CHAIN_ITERATIONS}, {2 * MAX_CHAIN_ITERATIONS} of the chains of "
    "table 4.4",
}
NOTES = [
    "Traces: all legible figures are printed by ours too. He prints the step once more after the "
    "last iteration, which makes none.",
    "Variants that are missing do what truncated pinv does, in all figures: pinv and halving "
    "almost everywhere. Without a cap the joints turn six times as far; a cap of the norm changes "
    "little. DLS followed by the pseudoinverse has the smooth way of the one and the last digits "
    "of the other, as his conclusions expect.",
    "Halving, of his section 2.2, shortens the error until the part of it that J cannot produce is "
    "within a tolerance; his code leaves it out. (He prints J+ J, which does not fit the error; "
    "J J+ is meant.) It acts at exact singularities alone: of a straight chain it takes all of "
    "the first step, and rounding leads on.",
    f"{sqrt(1.1):.3f} is lambda of DLS, D_max 0.7, as in table 4.4.",
    "Caps: very small ones need hundreds of iterations, and those near pi/4 few, as he says. That "
    "large ones never arrive is not so on random chains with goals in reach, and arms that begin a "
    "quadrant away gain little from a cap.",
    "Links: he reports 4 iterations by the transpose for a chain of 8 links that is not given. "
    "Of random chains of 8 links, one in thirty takes 4 or fewer; half of them take 26. DLS takes "
    "about 10 iterations by his text, and 15 here.",
]
STUDIES = Experiment(
    what="section-4",
    source="Tabaczynski 2005, sections 2 to 4",
    title="Planar chains: two traces, caps of the step, halving, two methods in a row, more links",
    tables=(
        *(
            ResultTable(
                (
                    Column("k", "k", is_name=True),
                    Column("distance", "distance", ".4f"),
                    *(Column(f"q{i}", f"step {i} [rad]", ".4f") for i in range(1, 6)),
                ),
                f"Trace of 5 links, {method}",
                {"table": method},
            )
            for method in TRACES
        ),
        ResultTable(
            (
                *NAME_COLUMNS,
                *_FIGURES,
            ),
            "Variants of the pseudoinverse",
            {"table": "variants"},
        ),
        ResultTable(
            (
                Column("cap", "largest change [rad]", is_name=True),
                *(
                    column
                    for name in START_TURNS
                    for column in (
                        Column(f"share {name}", f"goal {name}: reached [%]", ".0f"),
                        Column(f"median {name}", "median iterations"),
                    )
                ),
            ),
            "Caps of the step, random chains of 5 links",
            {"table": "caps"},
        ),
        ResultTable(
            (
                Column("links", "links", is_name=True),
                *(Column(f"{name}_median", f"{name}, median") for name in TABLE_4_METHODS),
                Column("transpose_least", "transpose, least", ".0f", is_compared=False),
                Column("transpose_four", "transpose in 4 or fewer [%]", ".0f"),
            ),
            "Iterations to 0.01, random chains",
            {"table": "links"},
        ),
    ),
    run=run,
    plot=plot,
    samples=50,
    samples_are="random chains of a kind",
)
