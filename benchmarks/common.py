# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Common parts of the benchmarks: options, description of the machine, tables and JSON files."""

import argparse
import json
import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from dls_ik import DlsIkError, RobotModel, __version__
from dls_ik.plot import check_picture

WIDTH = 200  # characters per line of a table that is not printed to a terminal


class Column(NamedTuple):
    """Heading and value format of a column."""

    name: str  # heading, with the unit in brackets
    form: str = "s"


def columns(text: str) -> list[Column]:
    """Return columns from headings and formats, such as ``robot; joints :d; solved [%] :.2f``."""
    parts = (part.strip().partition(" :") for part in text.split(";"))
    return [Column(name, form or "s") for name, _, form in parts]


@dataclass
class Table:
    """Table of values; None is printed as -."""

    title: str
    columns: Sequence[Column]
    rows: list[Sequence[Any]] = field(default_factory=list)


def parser(description: str | None, **defaults: Any) -> argparse.ArgumentParser:
    """Return a parser of the options of every benchmark, and of ``COMMON`` with given defaults.

    The default `before` of the parser is the present state of the machine.

    Args:
        description: Docstring of the benchmark; its first line is printed.
    """
    line = (description or "").strip().partition("\n")[0]
    result = argparse.ArgumentParser(
        description=line, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    result.set_defaults(before=machine())
    result.add_argument("--json", metavar="FILE", help="write the figures there; - for stdout")
    for name, default in defaults.items():
        kind, text = COMMON[name]
        result.add_argument(f"--{name}", type=kind, default=default, help=text)
    return result


def positive(text: str) -> int:
    """Return a whole number above 0, for argparse."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is not above 0")
    return number


def robot_of(name: str, base: str | None = None, tip: str | None = None) -> RobotModel:
    """Load a shipped robot by its name, or a URDF file."""
    is_file = Path(name).suffix in (".urdf", ".xml")
    load = RobotModel.from_urdf if is_file else RobotModel.from_name
    return load(name, base, tip)


def argument(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return a converter for argparse that prints errors of dls_ik unchanged."""

    def converted(text: str) -> Any:
        try:
            return convert(text)
        except DlsIkError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return converted


robot_from = argument(robot_of)


def add_plot(options: argparse.ArgumentParser, what: str) -> None:
    """Add the option for a picture, which refuses a wrong suffix before the measurement."""
    options.add_argument(
        "--plot", metavar="FILE", type=argument(_picture), help=f"draw {what} there"
    )


def _picture(text: str) -> Path:
    check_picture(Path(text))
    return Path(text)


COMMON: dict[str, tuple[Callable[[str], Any], str]] = {
    "robot": (robot_from, "a name or a URDF file"),
    "samples": (positive, "random poses"),
    "repeats": (positive, "turns"),
    "seed": (int, "of the random numbers"),
    "rate": (float, "of the loop [Hz]"),
    "processes": (int, "at once"),
}


def quartiles(values: Any) -> tuple[float, float, float]:
    """Return the median and the lower and upper quartile."""
    low, middle, high = np.percentile(np.asarray(values, float), (25, 50, 75))
    return float(middle), float(low), float(high)


def spread(values: Any) -> str:
    """Return the text of the median of a ratio with its quartiles."""
    middle, low, high = quartiles(values)
    return f"{middle:.2f} ({low:.2f} to {high:.2f})"


def finish(given: Any, tables: Sequence[Table], notes: Sequence[str] = (), **versions: str) -> None:
    """Print the tables and the machine, and write them as JSON to `given.json`, if it is given.

    If `given.json` is ``-``, JSON goes to stdout and the tables to stderr.
    """
    about = {**given.before, **versions, "load_after": round(os.getloadavg()[0], 1)}
    stream = sys.stderr if given.json == "-" else sys.stdout
    _show(stream, about, tables, notes)
    if given.json is not None:
        found = [
            {"title": t.title, "rows": [dict(zip(_names(t), r, strict=True)) for r in t.rows]}
            for t in tables
        ]
        text = json.dumps({"machine": about, "tables": found, "notes": list(notes)}, indent=2)
        if given.json == "-":
            print(text)
        else:
            Path(given.json).write_text(text + "\n")


def guarded(main: Callable[[], None]) -> None:
    """Run a benchmark, and print an error of dls_ik as one line."""
    try:
        main()
    except DlsIkError as error:
        script = Path(sys.argv[0])
        sys.exit(f"{script.parent.name if script.stem == '__main__' else script.stem}: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def _show(stream: TextIO, about: dict[str, Any], tables: Sequence[Table], notes: Any) -> None:
    console = Console(file=stream, width=None if stream.isatty() else WIDTH, highlight=False)
    console.print(", ".join(f"{key} {value}" for key, value in about.items()), markup=False)
    for table in tables:
        shown = RichTable(title=table.title, box=box.MARKDOWN, title_justify="left")
        for i, column in enumerate(table.columns):
            shown.add_column(column.name.replace("[", r"\["), justify="right" if i else "left")
        for row in table.rows:
            cells = zip(row, table.columns, strict=True)
            shown.add_row(*("-" if x is None else f"{x:{c.form}}" for x, c in cells))
        console.print("", shown)
    for note in notes:
        console.print(f"* {note}", markup=False)


# Machine


def machine() -> dict[str, Any]:
    """Return a description of the machine and the versions that affect the results."""
    return {
        "date": date.today().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numba", "numpy", "rclpy")},
        "dls_ik": __version__,
    }


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def thread_counts() -> list[int]:
    """Return the thread counts 1, 2, 4, ... and the number of cores of this process."""
    cores = len(os.sched_getaffinity(0))
    return sorted({min(2**i, cores) for i in range(cores.bit_length() + 1)})
