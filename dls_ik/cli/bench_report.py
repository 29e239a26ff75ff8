"""What a comparison of methods came to, for a person, and on what machine."""

import os
import platform
from importlib.metadata import version
from typing import Any

from dls_ik.cli.tables import print_table, stdout_console

HEADINGS = ("method", "solved", "inside", "restarts", "steps", "median", "95 %", "batch", "faster")


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    packages = {name: version(name) for name in ("numba", "numpy")}
    return {"cores": os.cpu_count(), "python": platform.python_version(), **packages}


def print_report(report: dict[str, Any]) -> None:
    """Print the figures for a person."""
    console = stdout_console()
    poses = f"{report['finished']} random poses within reach, seed {report['seed']}"
    console.print(f"{report['robot']}: {poses}", style="bold", markup=False)
    print_table(console, HEADINGS, [_cells(row) for row in report["methods"]])
    console.print(
        "inside: the answer is inside the joint limits; batch: all poses at once on "
        f"{report['machine']['cores']} cores; faster: median time of {report['reference']} over "
        "that of the method",
        style="dim",
        markup=False,
    )


def _cells(row: dict[str, Any]) -> list[str]:
    rate, steps = row["batch_rate"], row["iterations"]
    return [
        row["method"],
        f"{100.0 * row['solved']:.1f} %",
        f"{100.0 * row['inside_limits']:.1f} %",
        f"{row['restarts']:.2f}",
        "-" if steps is None else f"{steps:.1f}",
        _time(row["median_time"]),
        _time(row["p95_time"]),
        "-" if rate is None else f"{rate:.0f}/s",
        f"{row['faster']:.2f}x",
    ]


def _time(seconds: float) -> str:
    return f"{1e6 * seconds:.0f} us" if seconds < 1e-2 else f"{1e3 * seconds:.0f} ms"
