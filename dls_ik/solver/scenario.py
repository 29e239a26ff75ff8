# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Scenario files of Tabaczynski 2005, section 3.6: a chain with its start, a goal and a tolerance.

A YAML, JSON or MATLAB file has the variables of Tabaczynski's program. The chain and its start are
given either by `translate` (translation of each link in the frame that its joint turns) and `theta`
(joint positions), or by `position` (ends of the links at the start). `end_goal` and `tolerance`
complete the scenario. All joints turn about z. With `position`, all links must be in the plane
z = 0; the program announces this variable, but does not read it.
"""

from __future__ import annotations

import json
import os
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.files import read_file
from dls_ik.model.joint import Joint
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import transform
from dls_ik.model.tree import Tree
from dls_ik.solver.options import checked_count
from dls_ik.solver.stepper import Stepper
from dls_ik.solver.task import Task
from dls_ik.text import did_you_mean, listing, quoted

SCENARIO_KEYS = ("translate", "theta", "position", "end_goal", "tolerance")
MAX_SCENARIO_BYTES = 1_000_000  # maximum size of a file
MIN_RANK_VALUE = 1e-4  # smaller singular values count as 0 in the rank, as in the program


class ChainScenario(NamedTuple):
    """Chain of n joints that turn about z, with a start, a goal of the tip and a tolerance.

    Lengths are in the unit of the file.
    """

    robot: RobotModel
    start: Array  # (n,) joint positions [rad]
    goal: Array  # (3,) desired position of the tip in the base frame
    tolerance: float  # maximum distance of the tip from the goal at a solution


class ScenarioTrace(NamedTuple):
    """Iterations of a method: the configuration that each of k iterations tests."""

    q: Array  # (k, n) joint positions [rad]
    distance: Array  # (k,) distance of the tip from the goal
    rank: NDArray[np.int64]  # (k,) number of singular values of at least MIN_RANK_VALUE
    is_solved: bool  # whether the last distance is within the tolerance


def read_scenario(path: str | os.PathLike[str]) -> ChainScenario:
    """Read a scenario from a file: YAML, JSON, or a MATLAB file (.mat), which needs scipy.

    Raises:
        OptionError: If the file cannot be read, or a variable is missing, unknown or not valid.
    """
    file = Path(path)
    try:
        content = read_file(file, MAX_SCENARIO_BYTES)
        found = _matlab(file) if file.suffix == ".mat" else _text(file, content.decode("utf-8"))
    except OptionError:
        raise
    except Exception as error:  # readers raise errors of many types
        raise OptionError(f"cannot read the scenario {quoted(str(path))}: {error}") from error
    if not isinstance(found, dict):
        raise OptionError(
            f"the scenario {quoted(str(path))} must be a mapping with variables of "
            f"{listing(SCENARIO_KEYS)}; got {quoted(found)}"
        )
    return scenario_of(found, file.stem)


def _text(file: Path, text: str) -> Any:
    return json.loads(text) if file.suffix == ".json" else import_module("yaml").safe_load(text)


def _matlab(file: Path) -> dict[str, Any]:
    """Return the variables of a MATLAB file; its matrices have a column for each link.

    Raises:
        OptionError: If scipy is not installed.
    """
    try:
        scipy_io = import_module("scipy.io")
    except ImportError as error:
        raise OptionError("MATLAB files need scipy: pip install 'dls-ik[study]'") from error
    found = {k: v for k, v in scipy_io.loadmat(file).items() if not k.startswith("__")}
    for name in ("translate", "position"):
        if name in found:
            found[name] = np.asarray(found[name]).T
    return {name: np.squeeze(v) if name in SCENARIO_KEYS[3:] else v for name, v in found.items()}


def scenario_of(given: dict[str, Any], name: str = "scenario") -> ChainScenario:
    """Check the variables of a scenario, and return it.

    Args:
        given: Variables by name: `translate` (n, 3) and `theta` (n,), or `position` (n, 3);
            `end_goal` (3,), or (2,) for z = 0; `tolerance`.
        name: Name of the robot.

    Raises:
        OptionError: If a variable is missing, unknown or not valid.
    """
    unknown = [key for key in given if key not in SCENARIO_KEYS]
    if unknown:
        hint = did_you_mean(unknown[0], SCENARIO_KEYS) or f"known are {listing(SCENARIO_KEYS)}"
        raise OptionError(f"unknown variable {quoted(unknown[0])} of a scenario; {hint}")
    if ("position" in given) == ("translate" in given):
        raise OptionError(
            "a scenario needs either translate and theta, or position; got "
            + (", ".join(given) or "no variables")
        )
    if "position" in given:
        if "theta" in given:
            raise OptionError(
                "theta belongs to translate; position already defines the joint positions: remove "
                "theta"
            )
        links, start = _from_positions(_numbers("position", given["position"], (-1, 3)))
    else:
        links = _numbers("translate", given["translate"], (-1, 3))
        theta = np.ravel(np.asarray(given.get("theta", []), dtype=object))
        start = _numbers("theta", theta, (len(links),))
    goal = np.ravel(np.asarray(given.get("end_goal", []), dtype=object))
    goal = np.append(goal, 0.0) if len(goal) == 2 else goal
    tolerance = float(_numbers("tolerance", given.get("tolerance"), ()))
    if not tolerance > 0.0:
        raise OptionError(f"tolerance must be positive; got {tolerance:g}")
    return ChainScenario(_chain(links, name), start, _numbers("end_goal", goal, (3,)), tolerance)


def _numbers(name: str, given: Any, shape: tuple[int, ...]) -> Array:
    """Return a variable as an array; a length of -1 stands for any number of links.

    Raises:
        OptionError: If the variable is missing, or has another shape or values.
    """
    try:
        found = np.array(given, dtype=float)
    except (TypeError, ValueError, OverflowError):
        found = np.full(0, np.nan)
    fits = found.ndim == len(shape) and all(
        n in (-1, have) and have > 0 for n, have in zip(shape, found.shape, strict=True)
    )
    if not fits or not np.isfinite(found).all():
        form = "" if shape == (1,) else " by ".join("n" if n == -1 else str(n) for n in shape)
        wanted = f"{form} finite numbers" if form else "a finite number"
        shown = given.tolist() if isinstance(given, np.ndarray) else given
        raise OptionError(f"{name} must be {wanted}; got {quoted(shown)}")
    return found


def _from_positions(ends: Array) -> tuple[Array, Array]:
    """Return links (n, 3) along x and joint positions (n,) for ends of links (n, 3).

    Raises:
        OptionError: If an end is not in the plane z = 0, or a link has no length.
    """
    steps = np.diff(ends, axis=0, prepend=np.zeros((1, 3)))
    lengths = np.linalg.norm(steps[:, :2], axis=1)
    if np.any(ends[:, 2] != 0.0) or not (lengths > 0.0).all():
        raise OptionError(
            "position must have links of nonzero length in the plane z = 0, because all joints "
            f"turn about z; got {quoted(ends.tolist())}; give translate and theta for links out of "
            "this plane"
        )
    links = np.zeros_like(ends)
    links[:, 0] = lengths
    angles = np.unwrap(np.arctan2(steps[:, 1], steps[:, 0]))
    return links, np.diff(angles, prepend=0.0)


def _chain(links: Array, name: str) -> RobotModel:
    """Return a chain of continuous joints about z, each before a link (3,) of `links` (n, 3)."""
    n = len(links)
    names = ("base", *(f"link{i}" for i in range(1, n + 1)), "tip")
    origins = [np.eye(4), *(transform(None, link) for link in links)]
    joints = [
        Joint(f"joint{i + 1}", "continuous", names[i], names[i + 1], origins[i]) for i in range(n)
    ]
    joints.append(Joint("tip_joint", "fixed", names[n], "tip", origins[n]))
    return RobotModel.from_tree(Tree(name, names, tuple(joints)), "base", "tip")


def run_scenario(
    scenario: ChainScenario, method: str, max_iterations: int = 100, **options: Any
) -> ScenarioTrace:
    """Iterate a method until the tip is within the tolerance of the goal.

    Args:
        scenario: Scenario.
        method: Name of a method.
        max_iterations: Maximum number of iterations; the first one only tests the start.
        **options: Options of the method.

    Raises:
        MethodError: If the method does not support the chain.
        OptionError: If an option is not valid.
    """
    count = checked_count("max_iterations", max_iterations, 1)
    task = Task.position_only()
    stepper = Stepper(scenario.robot, method, scenario.start, task=task, **options)
    T = transform(None, scenario.goal)
    q, distance, rank = [], [], []
    for k in range(count):
        q.append(stepper.q.copy())
        distance.append(float(np.linalg.norm(stepper.error(T))))
        s = np.linalg.svd(stepper.jacobian(T), compute_uv=False)
        rank.append(int((s >= MIN_RANK_VALUE).sum()))
        if distance[-1] <= scenario.tolerance or k == count - 1:
            break
        stepper.step(T)
    is_solved = distance[-1] <= scenario.tolerance
    return ScenarioTrace(np.array(q), np.array(distance), np.array(rank), is_solved)
