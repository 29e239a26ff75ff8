"""What Deo & Walker 1993 print of their simulations, and the table of ours beside it."""

from dls_ik.reproduce.rates import DELTA, FEEDBACK
from dls_ik.reproduce.report import Reproduction, Row
from dls_ik.reproduce.table import Column, Table

FAR = 0.5  # iterations on the average
TABLE = Table(
    (
        Column("method", "method", is_name=True),
        Column("peak", "largest norm [1/s]", ".2f"),
        Column("over_percent", "above bound [%]", ".1f"),
        Column("deviation", "off the path [m]", ".3f"),
        Column("damped_percent", "damped [%]", ".1f"),
        Column("searches", "iterations", ".2f"),
        Column("searches_anew", "from nothing", ".2f"),
    )
)
SEARCH_NOTE = (
    "Iterations: of the search for the damping factor, mean over the steps that are damped; the "
    "search starts from the factor of the step before, and ends at 1e-3 of the bound. The paper "
    "prints a whole number, without its tolerance or time step; with a short step the last factor "
    "is nearly right already. From nothing: the same searches without it."
)
RATE_NOTE = (
    f"The velocity asked for includes the feedback of section 2.1, {FEEDBACK:g}/s of the "
    "error; the paper prints neither gain nor time step."
)


def printed(method: str, searches: float) -> Row:
    """The row of the optimal damping factor."""
    return {"method": method, "peak": DELTA, "over_percent": 0.0, "searches": searches}


def append(report: Reproduction, row: Row) -> None:
    """Add a row, with its mark if its iterations are not the printed ones."""
    beside = next((p for p in report.printed if p["method"] == row["method"]), {})
    pair = (row.get("searches"), beside.get("searches"))
    if None not in pair and abs(pair[0] - pair[1]) > FAR:  # type: ignore[operator]
        row = {**row, "differs": ["searches"]}
    report.rows.append(row)
