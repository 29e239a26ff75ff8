# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Short texts about the levels of a task stack, for tables and the page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dls_ik.solver.task import Task
from dls_ik.solver.task_stack import (
    CenterOfMassTask,
    CouplingTask,
    FrameTask,
    ObjectiveTask,
    PostureTask,
    StackTask,
    SwivelTask,
)
from dls_ik.text import listing


def level_label(level: Sequence[StackTask]) -> str:
    """Return a text about the tasks of a level, such as ``swivel angle, posture``."""
    labels = (_LABELS[type(task)](task) for task in level)
    return ", ".join(dict.fromkeys(labels))


def _tip_label(task: Task) -> str:
    if task == Task.free():
        return "free tip"
    parts = [f"position {task.position}" * bool(task.position)]
    parts.append(f"rotation {task.rotation}" * bool(task.rotation))
    return "tip" if task.rows == Task().rows else f"tip, {' and '.join(filter(None, parts))}"


def _frame_label(task: FrameTask) -> str:
    of = f"pose of {task.link}" if task.task.rotation else f"position of {task.link}"
    return of if task.reference is None else f"{of} relative to {task.reference}"


def _coupling_label(task: CouplingTask) -> str:
    return f"coupling of {listing(dict(task.coefficients))}"


_LABELS: dict[type, Callable[[Any], str]] = {
    Task: _tip_label,
    FrameTask: _frame_label,
    PostureTask: lambda _: "posture",
    CouplingTask: _coupling_label,
    SwivelTask: lambda _: "swivel angle",
    CenterOfMassTask: lambda task: f"centre of mass {task.axes}",
    ObjectiveTask: lambda task: f"objective {task.objective}",
}
