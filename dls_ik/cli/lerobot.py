# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Data sets of LeRobot (v2.1 and v3.0): columns of joint positions and of end-effector poses.

A data set is a folder with Parquet files in ``data/`` and their description in ``meta/info.json``,
or a single Parquet file. Only converted features change; videos, tasks and other columns are kept.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dls_ik.cli import output
from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import (
    rotation_about,
    rotation_from_quaternion,
    rotation_from_rpy,
)
from dls_ik.text import listing

EPISODE_COLUMN = "episode_index"
JOINT_SUFFIX, POSE_PREFIX = ".pos", "ee."
POSITION_NAMES = ("x", "y", "z")
POSE_NAMES = tuple(f"{POSE_PREFIX}{name}" for name in (*POSITION_NAMES, "wx", "wy", "wz"))


def _percentile(p: int, x: Array) -> Array:
    """Return the percentile p of each column of x (frames, columns)."""
    return np.asarray(np.percentile(x, p, axis=0))


STATISTICS: dict[str, Callable[[Array], Array]] = {
    "min": lambda x: x.min(axis=0),
    "max": lambda x: x.max(axis=0),
    "mean": lambda x: x.mean(axis=0),
    "std": lambda x: x.std(axis=0),
    "count": lambda x: np.array([len(x)]),
    **{f"q{p:02d}": partial(_percentile, p) for p in (1, 10, 50, 90, 99)},
}


class DatasetError(DlsIkError):
    """A data set that cannot be read or converted; the message gives the reason."""


class Converted(NamedTuple):
    """Result of the conversion of the values of one feature in one episode."""

    values: Array  # (frames, columns)
    names: list[str]  # names of the columns


Convert = Callable[[str, int, Array, list[str]], Converted]


def parquet() -> Any:
    """Return the module pyarrow.parquet.

    Raises:
        MissingPartError: If pyarrow is not installed.
    """
    try:
        from pyarrow import parquet as module
    except ImportError as error:
        raise output.MissingPartError(
            "a data set needs the package pyarrow: pip install 'dls-ik[lerobot]'"
        ) from error
    return module


def convert_dataset(source: Path, target: Path, features: Sequence[str], convert: Convert) -> None:
    """Write a copy of a data set with converted features.

    Args:
        source: Folder or Parquet file.
        target: Folder or file to create.
        features: Names of the features, such as "action".
        convert: Function of feature, index of the episode, values and names of the columns; it
            raises an error if nothing is to be written.

    Raises:
        DatasetError: If the data set is not valid, or has no such feature.
        OSError: If a file cannot be read or written.
    """
    parquet()
    if source.is_dir():
        _convert_folder(source, target, features, convert)
    else:
        _convert_file(source, target, features, {}, convert)


def _convert_folder(source: Path, target: Path, features: Sequence[str], convert: Convert) -> None:
    info_file = source / "meta" / "info.json"
    try:
        info = json.loads(info_file.read_text(encoding="utf-8"))
        described = info["features"]
        names = {name: _column_names(described[name]) for name in features if name in described}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DatasetError(
            f"{source} is no data set of LeRobot: {info_file} is missing or not valid ({error})"
        ) from error
    files = sorted((source / "data").rglob("*.parquet"))
    if not files:
        raise DatasetError(f"{source} has no Parquet file in data/")
    shutil.copytree(source, target, copy_function=_link_or_copy)
    found: dict[str, dict[int, list[Array]]] = {name: {} for name in features}

    def collect(feature: str, episode: int, values: Array, given: list[str]) -> Converted:
        result = convert(feature, episode, values, given)
        found[feature].setdefault(episode, []).append(result.values)
        names[feature] = result.names
        return result

    given = dict(names)
    for file in files:
        copy = target / file.relative_to(source)
        copy.unlink()  # the copy may be a link
        _convert_file(file, copy, features, given, collect)
    for name in features:
        described[name] |= {"shape": [len(names[name])], "names": names[name]}
    _replace(target / "meta" / "info.json", json.dumps(info, indent=4))
    _update_statistics(target / "meta", found)


def _link_or_copy(source: str, target: str) -> None:
    """Link a file that does not change, such as a video, or copy it to another disk."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _replace(file: Path, text: str) -> None:
    """Replace a file that may be a link to the file of the source."""
    file.unlink(missing_ok=True)
    file.write_text(text, encoding="utf-8")


def _column_names(feature: dict[str, Any]) -> list[str]:
    """Return the names of the columns of a feature; an empty list if it has none."""
    names = feature.get("names")
    if isinstance(names, dict):
        names = next((each for each in names.values() if isinstance(each, list)), None)
    return [str(name) for name in names] if isinstance(names, list) else []


def _convert_file(
    source: Path,
    target: Path,
    features: Sequence[str],
    names: dict[str, list[str]],
    convert: Convert,
) -> None:
    """Convert one Parquet file."""
    import pyarrow as pa

    try:
        table = parquet().read_table(source)
    except (pa.ArrowException, OSError) as error:
        reason = " ".join(str(error).split())
        raise DatasetError(f"{source} is not a Parquet file, or is cut off: {reason}") from error
    missing = [name for name in features if name not in table.column_names]
    if missing:
        raise DatasetError(
            f"{source} has no column {listing(missing)}; its columns: {listing(table.column_names)}"
        )
    episodes = _episodes(source, table)
    metadata = dict(table.schema.metadata or {})
    for name in features:
        values, kind = _values(source, name, table.column(name))
        parts: list[Converted] = []
        for episode, rows in _runs(episodes):
            parts.append(convert(name, episode, values[rows], names.get(name, [])))
        joined = np.concatenate([part.values for part in parts]) if parts else values[:, :0]
        width = joined.shape[1]
        fixed = pa.types.is_fixed_size_list(table.schema.field(name).type)
        column = pa.FixedSizeListArray.from_arrays(pa.array(joined.ravel(), kind), width)
        column = column if fixed else column.cast(pa.list_(kind))
        index = table.column_names.index(name)
        table = table.set_column(index, pa.field(name, column.type), column)
        metadata = _with_length(metadata, name, width)
    parquet().write_table(table.replace_schema_metadata(metadata), target)


def _episodes(source: Path, table: Any) -> Array:
    """Return the index of the episode of each row; a table without such a column is one episode.

    Raises:
        DatasetError: If a row has no index.
    """
    if EPISODE_COLUMN not in table.column_names:
        return np.zeros(table.num_rows)
    column = table.column(EPISODE_COLUMN)
    if column.null_count:
        raise DatasetError(f"{source}: {EPISODE_COLUMN} must be a number in each row")
    return np.asarray(column.to_numpy())


def _runs(episodes: Array) -> Iterator[tuple[int, slice]]:
    """Yield the index and the rows of each episode."""
    ends = [*(np.flatnonzero(np.diff(episodes)) + 1), len(episodes)]
    for begin, end in zip([0, *ends[:-1]], ends, strict=True):
        if end > begin:
            yield int(episodes[begin]), slice(int(begin), int(end))


def _values(source: Path, name: str, column: Any) -> tuple[Array, Any]:
    """Return the values (rows, columns) of a column of lists, and the type of a value.

    Raises:
        DatasetError: If the lists are not numbers, or differ in length.
    """
    import pyarrow as pa

    kind = getattr(column.type, "value_type", None)
    if kind is None or not pa.types.is_floating(kind):
        raise DatasetError(
            f"{source}: column {name} must have lists of float32 or float64; got {column.type}"
        )
    rows = [np.nan if row is None else row for row in column.to_pylist()]
    lengths = {len(row) for row in rows if isinstance(row, list)}
    if len(lengths) != 1:
        raise DatasetError(f"{source}: lists in column {name} differ in length: {sorted(lengths)}")
    width = lengths.pop()
    filled = [row if isinstance(row, list) else [np.nan] * width for row in rows]
    return np.array(filled, np.float64).reshape(len(rows), width), kind


def _with_length(metadata: dict[bytes, bytes], name: str, width: int) -> dict[bytes, bytes]:
    """Return the metadata of a schema with the length that the library datasets expects."""
    key = b"huggingface"
    try:
        content = json.loads(metadata[key])
        content["info"]["features"][name]["length"] = width
    except (KeyError, ValueError, TypeError):
        return metadata
    return {**metadata, key: json.dumps(content).encode()}


def _update_statistics(meta: Path, found: dict[str, dict[int, list[Array]]]) -> None:
    """Compute the statistics of the converted features again, where a data set has them.

    Args:
        meta: Folder of the metadata.
        found: Values (frames, columns) by feature and episode.
    """
    joined = {
        name: {index: np.concatenate(parts) for index, parts in episodes.items()}
        for name, episodes in found.items()
    }
    whole = meta / "stats.json"
    if whole.exists():
        content = json.loads(whole.read_text(encoding="utf-8"))
        for name, episodes in joined.items():
            content[name] = _statistics(content.get(name, ()), np.concatenate([*episodes.values()]))
        _replace(whole, json.dumps(content, indent=4))
    lines = meta / "episodes_stats.jsonl"  # v2.1
    if lines.exists():
        entries = [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]
        for entry in entries:
            for name, episodes in joined.items():
                if (values := episodes.get(entry[EPISODE_COLUMN])) is not None:
                    entry["stats"][name] = _statistics(entry["stats"].get(name, ()), values)
        _replace(lines, "".join(f"{json.dumps(entry)}\n" for entry in entries))
    for file in sorted((meta / "episodes").rglob("*.parquet")):  # v3.0
        _update_episode_table(file, joined)


def _statistics(keys: Any, values: Array) -> dict[str, list[float]]:
    """Return the statistics with given names of values (frames, columns)."""
    return {key: STATISTICS[key](values).tolist() for key in keys if key in STATISTICS}


def _update_episode_table(file: Path, joined: dict[str, dict[int, Array]]) -> None:
    import pyarrow as pa

    table = parquet().read_table(file)
    episodes = table.column(EPISODE_COLUMN).to_pylist()
    for name, by_episode in joined.items():
        for index, column in enumerate(table.column_names):
            key = column.removeprefix(f"stats/{name}/")
            if key != column and key in STATISTICS:
                rows = [STATISTICS[key](by_episode[e]).tolist() for e in episodes]
                table = table.set_column(index, column, pa.array(rows))
    file.unlink()
    parquet().write_table(table, file)


# Columns


class PoseColumns(NamedTuple):
    """Columns of a pose: indices of position and rotation, and its form."""

    position: list[int]
    rotation: list[int]
    form: str  # "vector", "rpy" or "quaternion"

    def poses(self, values: Array) -> Array:
        """Return poses (b, 4, 4) of values (b, columns); rows with NaN remain NaN."""
        Ts = np.tile(np.eye(4), (len(values), 1, 1))
        Ts[:, :3, 3] = values[:, self.position]
        for T, row in zip(Ts, values[:, self.rotation], strict=True):
            T[:3, :3] = self._rotation(row)
        return Ts

    def _rotation(self, row: Array) -> Array:
        """Return the rotation matrix of one row; NaN if it is not a rotation."""
        try:
            if not np.isfinite(row).all():
                return np.full((3, 3), np.nan)
            if self.form == "rpy":
                return rotation_from_rpy(*row)
            if self.form == "quaternion":
                return rotation_from_quaternion(row.tolist())
            angle = float(np.linalg.norm(row))
            return rotation_about(row / angle, angle) if angle else np.eye(3)
        except PoseError:
            return np.full((3, 3), np.nan)


ROTATION_FORMS = {
    ("wx", "wy", "wz"): "vector",
    ("rx", "ry", "rz"): "vector",
    ("roll", "pitch", "yaw"): "rpy",
    ("qx", "qy", "qz", "qw"): "quaternion",
}


def pose_columns(feature: str, names: list[str]) -> PoseColumns:
    """Return the columns of a pose in a feature, by their names with or without ``ee.``.

    Raises:
        DatasetError: If the names are not those of a pose.
    """
    plain = [name.removeprefix(POSE_PREFIX) for name in names]
    for rotation, form in ROTATION_FORMS.items():
        if {*POSITION_NAMES, *rotation} <= set(plain):
            return PoseColumns(
                [plain.index(n) for n in POSITION_NAMES], [plain.index(n) for n in rotation], form
            )
    forms = " or ".join(",".join(rotation) for rotation in ROTATION_FORMS)
    raise DatasetError(
        f"{feature} has no pose: its columns must be named x,y,z and {forms}, with or without "
        f"'{POSE_PREFIX}'; got {listing(names)}; give them by --names"
    )


def joint_columns(
    feature: str, names: list[str], robot: RobotModel, called: dict[str, str]
) -> list[int]:
    """Return the column (n,) of each joint of a robot in a feature.

    Args:
        feature: Name of the feature, for messages.
        names: Names of the columns, with or without ``.pos``.
        robot: Robot.
        called: Name in the data set by joint name of the robot, for joints whose names differ.

    Raises:
        DatasetError: If a joint has no column.
    """
    plain = [name.removesuffix(JOINT_SUFFIX) for name in names]
    wanted = [called.get(name, name).removesuffix(JOINT_SUFFIX) for name in robot.joint_names]
    missing = [name for name in wanted if name not in plain]
    if missing:
        raise DatasetError(
            f"{feature} has no column for {listing(missing)}; its columns: "
            f"{listing(names)}; name them by --names, or joints by --map "
            f"{robot.joint_names[0]}={plain[0] if plain else 'COLUMN'}"
        )
    return [plain.index(name) for name in wanted]


def pose_values(Ts: Array) -> Array:
    """Return poses (b, 4, 4) as values (b, 6): position [m] and rotation vector [rad]."""
    return np.array([difference(np.eye(4), T) for T in Ts]).reshape(-1, 6)
