"""The tables of `scaling` as one picture of three panels."""

from collections.abc import Sequence
from typing import Any

from benchmarks.common import Table

TICKS = [k * 10.0**i for i in range(-2, 6) for k in (1, 2, 5)]  # [us]
STEP, POSE, IDEAL = "#d1495b", "#0b6e4f", "0.6"


def draw(target: str, tables: Sequence[Table], about: dict[str, Any]) -> None:
    """Write it.

    Args:
        tables: by joints, by tolerance, by threads.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.0, 4.6), layout="constrained")
    panels = figure.subplots(1, 3)
    for axes, table, label in zip(panels, tables, ("joints", "tolerance [m], [rad]"), strict=False):
        _costs(axes, table)
        axes.set(xlabel=label, xscale="log", yscale="log")
        axes.minorticks_off()
        low, high = axes.get_ylim()
        ticks = [tick for tick in TICKS if low <= tick <= high]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    joints = [int(row[0]) for row in tables[0].rows]
    panels[0].set_xticks(joints, [str(n) for n in joints], fontsize=8)
    panels[1].invert_xaxis()
    _threads(panels[2], tables[2])
    for axes in panels:
        axes.grid(which="major", color="0.9")
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(f"{about['processor']}, {about['date']}", x=0.995, ha="right", fontsize=8)
    figure.savefig(target, dpi=150)


def _costs(axes: Any, table: Table) -> None:
    values = [row[0] for row in table.rows]
    for column, colour, name in ((4, POSE, "a pose"), (3, STEP, "an iteration")):
        axes.plot(values, [row[column] for row in table.rows], "o-", color=colour, label=name)
    axes.set_title(table.title.replace(", ", ",\n", 1), loc="left", fontsize=9)
    axes.set_ylabel("processor time [us]")
    axes.legend(frameon=False)


def _threads(axes: Any, table: Table) -> None:
    threads, rates = [row[0] for row in table.rows], [row[1] / 1e3 for row in table.rows]
    ideal = [rates[0] * k for k in threads]
    axes.plot(threads, ideal, "--", color=IDEAL, label="in proportion")
    axes.plot(threads, rates, "o-", color=POSE, label="measured")
    axes.set(xlabel="threads", ylabel="thousand poses a second", xticks=threads, ylim=(0, None))
    axes.set_title(table.title.replace(", ", ",\n", 1), loc="left", fontsize=9)
    axes.legend(frameon=False)
