# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robots for the benchmarks of the controller, and runs in several processes."""

import multiprocessing
import os
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress

from dls_ik import DlsIkError, RobotModel

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = (ROOT / "urdf", ROOT / "test" / "urdf")
CORES = os.cpu_count()
VELOCITY = 2.0  # [rad/s or m/s] velocity limit of every joint


@cache
def moving(name: str, velocity: float = VELOCITY, tip: str | None = None) -> RobotModel:
    """Return a robot of this repository, all joints with the same velocity limit.

    Raises:
        DlsIkError: If the file does not exist.
    """
    paths = [folder / f"{name}.urdf" for folder in FOLDERS]
    for path in paths:
        if path.is_file():
            tree = ET.parse(path).getroot()
            for limit in tree.iter("limit"):
                limit.set("velocity", str(velocity))
            return RobotModel.from_urdf(ET.tostring(tree, encoding="unicode"), tip=tip)
    raise DlsIkError(f"no robot {name!r}; looked for {', '.join(map(str, paths))}")


def in_processes(
    work: Callable[..., Any], tasks: Sequence[Any], processes: int, title: str
) -> list[Any]:
    """Return the results of `work` for all tasks in order, with a progress bar on stderr."""
    results = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task(title, total=len(tasks))
        if processes <= 1:
            for task in tasks:
                results.append(work(task))
                progress.advance(bar)
            return results
        with multiprocessing.get_context("spawn").Pool(processes) as pool:
            for result in pool.imap(work, tasks):
                results.append(result)
                progress.advance(bar)
    return results


def joint_time(robot: RobotModel, way: np.ndarray, acceleration: float) -> float:
    """Return the minimum time [s] of a motion from rest to rest by `way` (n,) [rad or m]."""
    d, v = np.abs(way), robot.velocity
    if np.isinf(acceleration):
        return float((d / v).max())
    full = d >= v * v / acceleration
    return float(np.where(full, d / v + v / acceleration, 2.0 * np.sqrt(d / acceleration)).max())
