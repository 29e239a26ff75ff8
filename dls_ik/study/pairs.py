# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pairs of start and goal configurations that a seed determines, and files with their checksums.

Joint values are rounded to 12 decimals, so that the files are the same on every machine. The first
pairs do not depend on the number of pairs.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.study.definition import CASES, Study, StudyRobot

DECIMALS = 12  # decimals of joint values [rad or m]
NEAR = 0.2  # [rad or m] standard deviation of each joint of a start close to the goal
NUM_SINGULAR_CANDIDATES = 50  # random configurations of which the most singular one is the goal
MIN_SINGULAR_RATIO = 1e-6  # singular values below this share of the largest count as zero
CHECKSUMS = "SHA256SUMS"


class Pairs(NamedTuple):
    """k pairs of start and goal of a robot with n joints."""

    starts: Array  # (k, n) [rad or m]
    goals: Array  # (k, n) [rad or m]; the target is the pose of the tip there


def study_pairs(robot: RobotModel, case: str, count: int, seed: int = 0) -> Pairs:
    """Return random pairs of start and goal.

    Args:
        robot: Robot.
        case: One of the cases of a study: far, near, limits or singular.
        count: Number of pairs.
        seed: Seed of the random numbers.

    Raises:
        OptionError: If the case is unknown.
    """
    if case not in CASES:
        raise OptionError(f"case must be one of {', '.join(CASES)}; got {case!r}")
    number = list(CASES).index(case)
    of_goals, of_starts, of_ends = (np.random.default_rng([seed, number, k]) for k in range(3))
    if case == "singular":
        goals = _most_singular(robot, count, of_goals)
    else:
        goals = robot.random(count, of_goals)
    if case == "limits":
        lower, upper = robot.finite_limits()
        draws = of_ends.random((count, 2, robot.n))
        goals = np.where(draws[:, 0] < 0.5, np.where(draws[:, 1] < 0.5, lower, upper), goals)
    if case == "far":
        starts = robot.random(count, of_starts)
    else:
        starts = goals + NEAR * of_starts.standard_normal((count, robot.n))
    return Pairs(*(robot.clip(np.round(q, DECIMALS)) for q in (starts, goals)))


def _most_singular(robot: RobotModel, count: int, rng: np.random.Generator) -> Array:
    """Return configurations (count, n), each the most singular of some random configurations."""
    found = np.empty((count, robot.n))
    for i in range(count):
        q = robot.random(NUM_SINGULAR_CANDIDATES, rng)
        s = np.linalg.svd(robot.jacobian(q), compute_uv=False)
        rank = max(1, int(np.median(np.sum(s > MIN_SINGULAR_RATIO * s[:, :1], axis=1))))
        found[i] = q[np.argmin(s[:, rank - 1])]
    return found


def pairs_text(study: Study, robot: StudyRobot, case: str) -> str:
    """Return the pairs of a robot and a case as CSV: start and goal of each joint [rad or m]."""
    model = robot.load()
    pairs = study_pairs(model, case, study.pairs, study.seed)
    names = [f"{kind}_{joint}" for kind in ("start", "goal") for joint in model.joint_names]
    rows = np.concatenate(pairs, axis=1) + 0.0  # 0.0 replaces -0.0
    lines = [",".join(names), *(",".join(f"{v:.{DECIMALS}f}" for v in row) for row in rows)]
    return "\n".join(lines) + "\n"


def write_pairs(study: Study, folder: Path) -> str:
    """Write a CSV file with the pairs of each robot and case, and a file ``SHA256SUMS``.

    Args:
        study: Study whose pairs are written.
        folder: Folder, which is made if it does not exist.

    Returns:
        The checksums, one line for each file, as ``sha256sum`` prints and checks them.

    Raises:
        OptionError: If a file cannot be written.
    """
    sums = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for robot in study.robots:
            for case in study.cases:
                content = pairs_text(study, robot, case).encode()
                name = f"{robot.name}_{case}.csv"
                (folder / name).write_bytes(content)
                sums.append(f"{hashlib.sha256(content).hexdigest()}  {name}\n")
        (folder / CHECKSUMS).write_text("".join(sums), encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot write {folder}: {error.strerror or error}") from error
    return "".join(sums)
