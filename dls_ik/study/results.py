# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Results of a study: a table with a row for each solve, as CSV or Parquet."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dls_ik.errors import OptionError
from dls_ik.study.definition import Study
from dls_ik.study.solve import COLUMNS

RESULT_FORMATS = ("csv", "parquet")


@dataclass(frozen=True, eq=False)
class StudyResults:
    """Columns of a study, each an array over robots, cases, pairs and variants.

    Results are compared by identity, as keys of caches.
    """

    study: Study
    columns: Mapping[str, NDArray[Any]]  # (robots, cases, pairs, variants) each

    def of(self, name: str, robot: int | None, case: int) -> NDArray[Any]:
        """Return a column (variants, k) of a robot and a case.

        Args:
            name: Name of the column.
            robot: Index of the robot; None stands for all robots, one after the other.
            case: Index of the case.
        """
        values = self.columns[name][:, case] if robot is None else self.columns[name][robot, case]
        return np.ascontiguousarray(values.reshape(-1, values.shape[-1]).T)

    def rows(self) -> dict[str, NDArray[Any]]:
        """Return the table by columns: robot, case, pair, method and the figures of each solve.

        Rows of methods that do not support a robot are left out.
        """
        study, shape = self.study, self.columns["solved"].shape
        index = np.indices(shape).reshape(len(shape), -1)
        there = self.columns["applicable"].ravel()
        names = (
            [robot.name for robot in study.robots],
            list(study.cases),
            [variant.label for variant in study.variants],
        )
        robot, case, label = (
            np.array(each, object)[index[k]] for each, k in zip(names, (0, 1, 3), strict=True)
        )
        table = {"robot": robot, "case": case, "pair": index[2], "method": label}
        table |= {name: self.columns[name].ravel() for name in COLUMNS if name != "applicable"}
        return {name: values[there] for name, values in table.items()}

    def write(self, path: Path) -> None:
        """Write the table to a file ``.csv`` or ``.parquet``.

        Raises:
            OptionError: If pyarrow is not installed, or the suffix is not supported.
        """
        if path.suffix == ".parquet":
            _write_parquet(path, self.rows())
        elif path.suffix == ".csv":
            rows = self.rows()
            path.write_text(csv_text(rows), encoding="utf-8")
        else:
            raise OptionError(f"results must end in .csv or .parquet; got {path.name}")


def check_format(name: str) -> None:
    """Check that results can be written in a format.

    Raises:
        OptionError: If the format is unknown, or pyarrow is not installed.
    """
    if name not in RESULT_FORMATS:
        raise OptionError(f"format must be one of {', '.join(RESULT_FORMATS)}; got {name!r}")
    if name == "parquet":
        _pyarrow()


def _pyarrow() -> Any:
    """Return the module pyarrow, with its submodule parquet.

    Raises:
        OptionError: If pyarrow is not installed.
    """
    try:
        pyarrow = import_module("pyarrow")
        import_module("pyarrow.parquet")
    except ImportError as error:
        raise OptionError(
            "Parquet files need pyarrow: pip install 'dls-ik[study]', or write CSV"
        ) from error
    return pyarrow


def _write_parquet(path: Path, rows: Mapping[str, NDArray[Any]]) -> None:
    pyarrow = _pyarrow()
    arrays = {
        name: pyarrow.array(values.tolist() if values.dtype == object else values)
        for name, values in rows.items()
    }
    pyarrow.parquet.write_table(pyarrow.table(arrays), path)


def csv_text(rows: Mapping[str, Any]) -> str:
    """Return columns of the same length as CSV; numbers have their full precision."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(rows)
    columns = [_words(values) for values in rows.values()]
    writer.writerows(zip(*columns, strict=True))
    return text.getvalue()


def _words(values: Any) -> list[Any]:
    """Return the values of a column for CSV: 0 and 1 for booleans, empty for NaN and None."""
    array: NDArray[Any] = np.asarray(values)
    if array.dtype == bool:
        return [int(value) for value in array]
    return ["" if value is None or value != value else value for value in array.tolist()]
