# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Run a study, and store definition, results, statistics and versions in a folder.

The folder has ``study.json`` (the study, versions, machine and SHA-256 of the robots: all that is
needed to run it again), ``results.csv`` or ``results.parquet`` with a row for each solve,
``summary.csv``, ``comparisons.csv`` and ``results.npz`` (the results as arrays). Until the results
are complete, finished chunks are kept in ``results.npz.parts``.
"""

from __future__ import annotations

import io
import json
import os
import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dls_ik import __version__
from dls_ik.chunks.executors import Work
from dls_ik.chunks.parts import Progress, differences, open_parts, solve_missing
from dls_ik.errors import OptionError
from dls_ik.model.files import read_file
from dls_ik.study.definition import DIGESTS_KEY, Study, study_of
from dls_ik.study.results import StudyResults, check_format, csv_text
from dls_ik.study.solve import COLUMNS, PAIRS_PER_CHUNK, StudyJob, new_job, solve_chunk
from dls_ik.study.statistics import (
    comparison_columns,
    comparisons,
    scipy_stats,
    summaries,
    summary_columns,
)

STUDY_FILE, ARRAYS_FILE, RESULTS_NAME = "study.json", "results.npz", "results"
MAX_ARRAYS_BYTES = 4 * 1024**3  # maximum size of results.npz


def run_study(
    study: Study,
    out: str | os.PathLike[str] | None = None,
    scheduler: str | None = None,
    progress: Progress | None = None,
    table_format: str = "csv",
) -> StudyResults:
    """Solve the pairs of a study by all methods.

    Args:
        study: The study, from :func:`read_study`.
        out: Folder of the results; None: the results are not stored. A second call with the same
            study and folder resumes the study if it was interrupted, or else reads its results.
        scheduler: Address of a Dask scheduler; default: the threads of this machine.
        progress: Called with the number of finished chunks and the number of all chunks.
        table_format: ``csv`` or ``parquet``, format of the table of all solves.

    Raises:
        OptionError: If a method supports no robot, the folder holds another study, or scipy or
            pyarrow is needed and not installed.
        ChunkError: If a chunk cannot be stored, or the scheduler does not answer.
    """
    if out is None:
        job, kept = new_job(study), dict[int, dict[str, NDArray[Any]]]()
        work = Work(solve_chunk, job)
        solve_missing(work, job.chunks, (), kept.__setitem__, scheduler, progress)
        return _merged(job, kept.__getitem__)
    scipy_stats()
    check_format(table_format)
    folder = Path(out)
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OptionError(f"cannot write {folder}: {error.strerror or error}") from error
    store = folder / ARRAYS_FILE
    if store.exists():
        results = load_results(folder, study)
    else:
        results = _solved(study, store, scheduler, progress)
    _write_tables(results, folder, table_format)
    return results


def _solved(
    study: Study, store: Path, scheduler: str | None, progress: Progress | None
) -> StudyResults:
    """Solve the chunks that are not finished, and write all results to the file `store`."""
    job = new_job(study)
    asked = {**study.as_json(), DIGESTS_KEY: study.digests(), "chunk": PAIRS_PER_CHUNK}

    def length(chunk: int) -> int:
        part = job.part(chunk)
        return part.last - part.first

    with open_parts(store, asked, list(COLUMNS), length, "study") as parts:
        work, finished = Work(solve_chunk, job), parts.finished()
        solve_missing(work, job.chunks, finished, parts.keep, scheduler, progress)
        results = _merged(job, parts.load)
        content, about = io.BytesIO(), json.dumps(_about(study), indent=1) + "\n"
        np.savez_compressed(content, **dict[str, Any](results.columns))
        try:
            (store.parent / STUDY_FILE).write_text(about, encoding="utf-8")
            whole = store.with_suffix(".new")
            whole.write_bytes(content.getbuffer())
            whole.replace(store)
        except OSError as error:
            raise OptionError(f"cannot write {store}: {error.strerror or error}") from error
        parts.remove()
    return results


def _merged(job: StudyJob, load: Callable[[int], dict[str, NDArray[Any]]]) -> StudyResults:
    """Return the results of all chunks."""
    study = job.study
    shape = len(study.robots), len(study.cases), study.pairs, len(study.variants)
    columns: dict[str, NDArray[Any]] = {
        name: np.zeros(shape, kind) for name, (kind, _) in COLUMNS.items()
    }
    for chunk in range(job.chunks):
        part, found = job.part(chunk), load(chunk)
        case = study.cases.index(part.case)
        for name, column in columns.items():
            column[part.robot, case, part.first : part.last] = found[name]
    return StudyResults(study, columns)


def _about(study: Study) -> dict[str, Any]:
    """Return the content of ``study.json``."""
    versions = {name: version(name) for name in ("numpy", "numba")}
    return {
        "study": study.as_json(),
        DIGESTS_KEY: study.digests(),
        "versions": {"dls_ik": __version__, "python": platform.python_version(), **versions},
        "machine": {"system": platform.platform(), "cores": os.cpu_count()},
        "columns": {name: meaning for name, (_, meaning) in COLUMNS.items()},
    }


def load_results(folder: str | os.PathLike[str], expected: Study | None = None) -> StudyResults:
    """Read the results of a complete study from its folder.

    Args:
        folder: Folder that :func:`run_study` wrote.
        expected: Study that the folder must hold; None accepts any study.

    Raises:
        OptionError: If the folder holds no complete study, or another one.
    """
    path = Path(folder)
    try:
        about = json.loads(read_file(path / STUDY_FILE, MAX_ARRAYS_BYTES))
        content = io.BytesIO(read_file(path / ARRAYS_FILE, MAX_ARRAYS_BYTES))
        with np.load(content, allow_pickle=False) as file:
            columns = {name: file[name] for name in COLUMNS}
        study = study_of(about["study"])
    except Exception as error:  # a damaged file raises errors of many types
        raise OptionError(f"{path} holds no complete study: {error}") from error
    if expected is not None:
        stored = {**study.as_json(), DIGESTS_KEY: about.get(DIGESTS_KEY)}
        differing = differences(stored, {**expected.as_json(), DIGESTS_KEY: expected.digests()})
        if differing:
            raise OptionError(
                f"{path} holds another study ({differing}): write to another folder, or remove it"
            )
    return StudyResults(study, columns)


def _write_tables(results: StudyResults, folder: Path, table_format: str) -> None:
    """Write the table of all solves, the summary and the comparisons.

    Raises:
        OptionError: If a file cannot be written.
    """
    try:
        results.write(folder / f"{RESULTS_NAME}.{table_format}")
        tables = {
            "summary.csv": summary_columns(summaries(results)),
            "comparisons.csv": comparison_columns(comparisons(results)),
        }
        for name, columns in tables.items():
            (folder / name).write_text(csv_text(columns), encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write {folder}: {error.strerror or error}") from error
