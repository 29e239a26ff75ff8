"""What of a pose a map asks for, and the orientations that go with it."""

from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.names import listing, quoted
from dls_ik.reachability.defaults import ORIENTATIONS, TASKS
from dls_ik.reachability.error import ReachabilityError
from dls_ik.reachability.rotations import spread_directions, spread_rotations
from dls_ik.solver.task import Task

_TASKS = dict(zip(TASKS, (Task.pose(), Task.pointing("z"), Task.position_only()), strict=True))
MOST_ORIENTATIONS = 100_000


def checked_task(name: str) -> Task:
    """The task of a name.

    Raises:
        ReachabilityError: an unknown name; the message lists the known ones.
    """
    if name not in TASKS:
        raise ReachabilityError(f"unknown task {quoted(name)}; known: {listing(TASKS)}")
    return _TASKS[name]


def checked_orientations(count: Any, task: str) -> int:
    """How many orientations every voxel is asked for; without a rotation in the task one.

    Raises:
        ReachabilityError: not a whole number in range; more than one where none counts.
    """
    if task == "position":
        if count not in (None, 1):
            raise ReachabilityError(
                f"the task position leaves the orientation free: 1 of them is all, not {count!r}"
            )
        return 1
    count = ORIENTATIONS if count is None else count
    whole = isinstance(count, (int, np.integer)) and not isinstance(count, bool)
    if not whole or not 1 <= count <= MOST_ORIENTATIONS:
        raise ReachabilityError(
            f"orientations are a whole number from 1 to {MOST_ORIENTATIONS}, not {quoted(count)}"
        )
    return int(count)


def orientations(count: int, task: str) -> Array:
    """The rotations R_base_tip (count, 3, 3) that every voxel is asked for."""
    if task == "position":
        return np.eye(3)[None]
    return spread_directions(count) if task == "pointing" else spread_rotations(count)
