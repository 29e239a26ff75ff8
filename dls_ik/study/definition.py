# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Definition of a study: robots, methods with options, cases, metrics; read from TOML or JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import product
from pathlib import Path
from typing import Any

from dls_ik.errors import OptionError
from dls_ik.model.files import read_file, shipped_names
from dls_ik.model.load import find_tree
from dls_ik.model.robot import RobotModel, kinematics_digest
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import SolverOptions, solver_options
from dls_ik.text import did_you_mean, listing, quoted

CASES = {
    "far": "start and goal anywhere within the joint limits",
    "near": "start close to the goal: 0.2 rad or m in each joint (one sigma)",
    "limits": "as in case near, with half of the goal's joints at a limit",
    "singular": "as in case near; the goal is the most singular of 50 random configurations",
}
METRICS = {
    "time": "processor time of a solve [s]",
    "iterations": "steps of all attempts",
    "restarts": "attempts after the first",
    "distance": "distance of the solution from the start [rad or m]",
    "isotropy": "smallest divided by largest singular value at the solution",
    "margin": "smallest relative distance of a joint from a limit",
}
LARGER_IS_BETTER = ("isotropy", "margin")
STUDY_TASKS = ("pose", "position", "pointing")
DIGESTS_KEY = "kinematics_sha256"  # entry of study.json
MAX_FILE_BYTES = 1_000_000  # maximum size of the file of a study
MAX_PAIRS = 1_000_000
MAX_STUDY_METHODS = 1000
# [s] Default timeout of each solve. It is so long that the limits on steps and restarts end every
# search, and results do not depend on the speed of the machine.
STUDY_TIMEOUT = 3600.0


@dataclass(frozen=True)
class StudyRobot:
    """Robot of a study."""

    name: str  # unique in the study
    source: str  # name of a robot or path of a file
    base: str | None = None  # first link of the chain; None: the root link
    tip: str | None = None  # last link of the chain; None: the only leaf link

    def load(self) -> RobotModel:
        """Load the robot.

        Raises:
            RobotModelError: If the robot does not exist, or has no chain from base to tip.
        """
        return RobotModel.from_tree(find_tree(self.source), self.base, self.tip)


@dataclass(frozen=True)
class StudyMethod:
    """Method with the values of its options."""

    label: str  # unique in the study, such as "dls lambda_=0.1"
    method: str
    options: tuple[tuple[str, Any], ...] = ()  # options that differ from the defaults


@dataclass(frozen=True)
class Study:
    """What a study solves: all variants on the same pairs of all robots and cases."""

    robots: tuple[StudyRobot, ...]
    variants: tuple[StudyMethod, ...]
    cases: tuple[str, ...] = ("far",)
    pairs: int = 1000  # number of pairs of start and goal per robot and case
    seed: int = 0
    task: str = "pose"
    metrics: tuple[str, ...] = ("time", "iterations")  # compared in addition to success
    # Label of the method with which all others are compared; None: all methods with each other
    reference: str | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the study as a dict of JSON types, which `study_of` reads."""
        robots = [
            {"name": r.name, "file": r.source, **_given({"base": r.base, "tip": r.tip})}
            for r in self.robots
        ]
        methods = [{"label": v.label, "method": v.method, **dict(v.options)} for v in self.variants]
        return {
            "robots": robots,
            "methods": methods,
            "cases": list(self.cases),
            "pairs": self.pairs,
            "seed": self.seed,
            "task": self.task,
            "metrics": list(self.metrics),
            **_given({"reference": self.reference}),
        }

    def digests(self) -> dict[str, str]:
        """Return the SHA-256 of the kinematics and limits of each robot, by name."""
        return {robot.name: kinematics_digest(robot.load()) for robot in self.robots}


def _given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries whose value is not None."""
    return {name: value for name, value in values.items() if value is not None}


def read_study(path: str | os.PathLike[str], changes: Mapping[str, Any] | None = None) -> Study:
    """Read a study from a TOML file, or from the file ``study.json`` of its results.

    Args:
        path: The file. Relative paths of robots in a TOML file are relative to its folder.
        changes: Entries that replace entries of the file, by name.

    Raises:
        OptionError: If the file cannot be read, or an entry is not valid.
    """
    file = Path(path)
    try:
        text = read_file(file, MAX_FILE_BYTES).decode("utf-8")
        found = json.loads(text) if file.suffix == ".json" else _toml(text)
    except (OSError, ValueError, RecursionError) as error:
        raise OptionError(f"cannot read the study {quoted(str(path))}: {error}") from error
    if not isinstance(found, dict):
        raise OptionError(f"{path} must be a table with robots and methods")
    if "study" not in found:
        return study_of({**found, **(changes or {})}, file.parent)
    study = study_of({**found["study"], **(changes or {})}, file.parent)
    _check_digests(study, found.get(DIGESTS_KEY, {}))
    return study


def _check_digests(study: Study, before: Mapping[str, str]) -> None:
    """Check that the robots of a study have the same kinematics as when it was run.

    Raises:
        OptionError: If a robot has changed.
    """
    for name, digest in study.digests().items():
        if before.get(name, digest) != digest:
            raise OptionError(
                f"robot {quoted(name)} has other kinematics or limits than when the study was run; "
                "use the file that it was run with"
            )


def _toml(text: str) -> dict[str, Any]:
    try:
        import tomllib
    except ModuleNotFoundError:  # Python 3.10
        try:
            import tomli as tomllib  # type: ignore[no-redef]
        except ModuleNotFoundError as error:
            raise OptionError("TOML files need tomli: pip install 'dls-ik[study]'") from error
    return dict(tomllib.loads(text))


KNOWN_KEYS = (
    "robots", "methods", "options", "cases", "pairs", "seed", "task", "metrics", "reference",
)  # fmt: skip


def study_of(given: Mapping[str, Any], folder: Path | None = None) -> Study:
    """Check the entries of a study, and return it.

    Args:
        given: Entries by name: `robots` and `methods` are lists of names or tables; see
            docs/study.md.
        folder: Folder of relative paths of robots; None stands for the working directory.

    Raises:
        OptionError: If an entry is unknown, missing or not valid.
        MethodError: If a method is unknown.
        RobotModelError: If a robot cannot be loaded.
    """
    unknown = [key for key in given if key not in KNOWN_KEYS]
    if unknown:
        hint = did_you_mean(unknown[0], KNOWN_KEYS) or f"known are {listing(KNOWN_KEYS)}"
        raise OptionError(f"unknown entry {quoted(unknown[0])} of a study; {hint}")
    robots = tuple(_robot(each, folder) for each in _listed(given, "robots"))
    common = given.get("options", {})
    if not isinstance(common, dict):
        raise OptionError(f"options must be a table of solver options; got {quoted(common)}")
    variants = tuple(v for each in _listed(given, "methods") for v in _variants(each, common))
    if len(variants) > MAX_STUDY_METHODS:
        raise OptionError(
            f"a study has at most {MAX_STUDY_METHODS} methods with options; got {len(variants)}"
        )
    _check_unique("robot", [robot.name for robot in robots])
    _check_unique("method", [variant.label for variant in variants])
    reference = given.get("reference")
    labels = [variant.label for variant in variants]
    if reference is not None and reference not in labels:
        raise OptionError(
            f"reference must be one of the methods ({listing(labels)}); got {quoted(reference)}"
        )
    task = given.get("task", "pose")
    _check_choices("task", [task], STUDY_TASKS)
    study = Study(
        robots,
        variants,
        tuple(_choices(given, "cases", ("far",), CASES)),
        _count(given, "pairs", 1000, 1, MAX_PAIRS),
        _count(given, "seed", 0, 0, 2**63 - 1),
        task,
        tuple(_choices(given, "metrics", ("time", "iterations"), METRICS)),
        reference,
    )
    for robot in robots:
        robot.load()
    return study


def _listed(given: Mapping[str, Any], key: str) -> list[Any]:
    """Return an entry of a study, which must be a list with at least one element.

    Raises:
        OptionError: If the entry is missing, is no list or is empty.
    """
    found = given.get(key)
    if not isinstance(found, list | tuple) or not found:
        raise OptionError(
            f"{key} of a study must be a list with at least one entry; got {quoted(found)}"
        )
    return list(found)


def _robot(given: Any, folder: Path | None) -> StudyRobot:
    """Return a robot given by a name, a path or a table with file, name, base and tip.

    Raises:
        OptionError: If the entry is not valid.
    """
    table = {"file": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or not {"file"} <= set(table) <= {"file", "name", "base", "tip"}:
        raise OptionError(
            "a robot of a study must be a name, a file, or a table with file and, if needed, name, "
            f"base and tip; got {quoted(given)}"
        )
    if not all(isinstance(value, str) for value in table.values()):
        raise OptionError(f"the entries of a robot must be texts; got {quoted(given)}")
    source: str = table["file"]
    path = Path(source) if folder is None else folder / source
    if source not in shipped_names() and path.is_file():
        source = str(path)
    name = table.get("name") or (Path(source).stem if "/" in source else source)
    return StudyRobot(name, source, table.get("base"), table.get("tip"))


def _variants(given: Any, common: Mapping[str, Any]) -> Iterator[StudyMethod]:
    """Yield the variants of a method, one for each combination of values of its options.

    Args:
        given: Name of a method, or a table with `method`, options, and perhaps `label`. A list is
            several values of an option, each of which gives a variant.
        common: Options of all methods.

    Raises:
        OptionError: If the entry or an option is not valid.
        MethodError: If the method is unknown.
    """
    table = {"method": given} if isinstance(given, str) else given
    if not isinstance(table, dict) or not isinstance(table.get("method"), str):
        raise OptionError(
            f"a method of a study must be a name, or a table with method; got {quoted(given)}"
        )
    choice = parse_method(table["method"])
    options = {**common, **{k: v for k, v in table.items() if k not in ("method", "label")}}
    grid = {name: _values(name, value) for name, value in options.items()}
    several = [name for name, values in grid.items() if len(values) > 1]
    own = [name for name in grid if name in several or name not in common]
    for values in product(*grid.values()):
        chosen = dict(zip(grid, values, strict=True))
        solver_options(choice, chosen)
        words = [f"{name}={_word(chosen[name])}" for name in own]
        label = " ".join([choice.name, *words])
        if "label" in table:
            label = " ".join(
                [str(table["label"]), *(w for w in words if w.split("=")[0] in several)]
            )
        yield StudyMethod(label, choice.name, tuple(chosen.items()))


def _values(name: str, value: Any) -> list[Any]:
    """Return the values of an option; a list of numbers is one value if the option is a vector."""
    metadata = [f.metadata for f in fields(SolverOptions) if f.name == name]
    is_vector = any("vector" in about or "per_joint" in about for about in metadata)
    if isinstance(value, list | tuple):
        nested = any(isinstance(each, list | tuple) for each in value)
        values = [value] if is_vector and not nested else list(value)
        if not values:
            raise OptionError(f"option {name} has an empty list of values")
        return [tuple(each) if isinstance(each, list) else each for each in values]
    return [value]


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _check_unique(kind: str, names: Sequence[str]) -> None:
    twice = [name for i, name in enumerate(names) if name in names[:i]]
    if twice:
        raise OptionError(f"{kind} {quoted(twice[0])} is given twice in the study")


def _choices(
    given: Mapping[str, Any], key: str, default: Sequence[str], known: Mapping[str, str]
) -> list[str]:
    """Return an entry that is a list of known names without duplicates."""
    found = _listed(given, key) if key in given else list(default)
    _check_choices(key, found, known)
    return list(dict.fromkeys(found))


def _check_choices(
    key: str, found: Sequence[Any], known: Mapping[str, str] | Sequence[str]
) -> None:
    strange = [each for each in found if each not in list(known)]
    if strange:
        hint = did_you_mean(strange[0], known) or f"known are {listing(known)}"
        raise OptionError(f"unknown {key} {quoted(strange[0])}; {hint}")


def _count(given: Mapping[str, Any], key: str, default: int, low: int, high: int) -> int:
    value = given.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise OptionError(f"{key} must be an integer from {low} to {high}; got {quoted(value)}")
    return value
