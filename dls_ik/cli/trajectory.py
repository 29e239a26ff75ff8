"""Joint trajectory along poses: solved, timed, and summed up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.cli.pose_file import PoseFile
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import unit_of
from dls_ik.solver.result import IkPathResult, Status
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Task

STARTS = 8  # solutions of the first pose that are tried where a path breaks
FASTEST = "as fast as the velocity limits allow"
SHORTEST = 1e-3  # [s] between two poses that no joint moves between


def solved_path(
    solver: IkSolver,
    poses: Array,
    seed: Array | None,
    task: Task | None,
    jump: float,
    progress: Callable[[int, int], None],
) -> IkPathResult:
    """Solve poses (b, 4, 4) one after the other; without a seed, from where most goes through.

    Where the first solution of the first pose leads to poses that are not reached, or to jumps,
    its other solutions are tried.
    """
    best = solver.solve_path(poses, seed, task, max_joint_step=jump, progress=progress)
    if seed is not None or _flaws(best) == (0, 0):
        return best
    for start in solver.solve_all(poses[0], STARTS, task=task):
        other = solver.solve_path(poses, start, task, max_joint_step=jump, progress=progress)
        best = min(best, other, key=_flaws)
        if _flaws(best) == (0, 0):
            break
    return best


def missed(result: IkPathResult) -> NDArray[np.int64]:
    """Which poses are not reached, approximations among them."""
    return np.flatnonzero(result.status != Status.SUCCESS)


def steps(q: Array) -> Array:
    """(b, n) how far joints move to each pose from the one before, 0 to the first."""
    return np.abs(np.diff(q, axis=0, prepend=q[:1]))


def _flaws(result: IkPathResult) -> tuple[int, int]:
    return len(missed(result)), int(result.jumps.sum())


class Timing(NamedTuple):
    """Times of a path, and where they come from."""

    t: Array  # (b,) [s]
    source: str


def timed(robot: RobotModel, q: Array, given: Array | None, rate: float | None) -> Timing:
    """Times of a joint path q (b, n): at a rate [Hz], as given (b,) [s], or as fast as can be.

    Raises:
        OptionError: neither, and a joint that moves without a velocity limit.
    """
    if rate is not None:
        return Timing(np.arange(len(q)) / rate, f"at {rate:g} Hz")
    if given is not None:
        return Timing(given, "column t")
    changes = np.abs(np.diff(q, axis=0))  # (b - 1, n)
    unknown = np.isinf(robot.velocity) & (changes > 0.0).any(axis=0)
    if unknown.any():
        name = robot.joint_names[int(np.flatnonzero(unknown)[0])]
        raise OptionError(f"joint {name} has no velocity limit: give --rate, or a column t")
    durations = np.maximum((changes / robot.velocity).max(axis=1, initial=0.0), SHORTEST)
    return Timing(np.concatenate([[0.0], np.cumsum(durations)]), FASTEST)


def speeds(robot: RobotModel, t: Array, q: Array) -> Array:
    """(b - 1,) the largest share of a velocity limit between each pose and the next."""
    rates = np.abs(np.diff(q, axis=0)) / np.diff(t)[:, None]
    shares: Array = (rates / robot.velocity).max(axis=1, initial=0.0)
    return shares


class Trajectory(NamedTuple):
    """b poses, the joint values that reach them, and when."""

    robot: RobotModel
    given: PoseFile
    result: IkPathResult
    timing: Timing

    @property
    def q(self) -> Array:
        """(b, n) joint values [rad or m]."""
        return self.result.q


def summary(trajectory: Trajectory, jump: float) -> dict[str, Any]:
    """Figures of a trajectory as a document."""
    robot, places, q = trajectory.robot, trajectory.given.places, trajectory.q
    result, t = trajectory.result, trajectory.timing.t
    lost, far = missed(result), np.flatnonzero((steps(q) > jump).any(axis=1))
    share = speeds(robot, t, q)
    return {
        "robot": robot.name,
        "poses": len(places),
        "reached": len(places) - len(lost),
        "missed": [_missed_facts(trajectory, int(i)) for i in lost],
        "position_error": float(result.position_error.max()),
        "rotation_error": float(result.rotation_error.max()),
        "largest_step": _extreme(trajectory, steps(q), largest=True),
        "nearest_limit": _extreme(
            trajectory, np.minimum(q - robot.lower, robot.upper - q), largest=False
        ),
        "jumps": [{"place": places[i], **_step(trajectory, int(i))} for i in far],
        "duration": float(t[-1] - t[0]),
        "times": trajectory.timing.source,
        "largest_share_of_velocity_limit": float(share.max(initial=0.0)),
        "too_fast": [places[i + 1] for i in np.flatnonzero(share > 1.0 + 1e-6)],
        "seconds_to_solve": result.duration,
    }


def _missed_facts(trajectory: Trajectory, i: int) -> dict[str, Any]:
    result = trajectory.result
    return {
        "place": trajectory.given.places[i],
        "status": str(Status(int(result.status[i]))),
        "position_error": float(result.position_error[i]),
        "rotation_error": float(result.rotation_error[i]),
    }


def _extreme(trajectory: Trajectory, values: Array, largest: bool) -> dict[str, Any]:
    """The largest or the least of (b, n) values, and where it is."""
    i, j = np.unravel_index(values.argmax() if largest else values.argmin(), values.shape)
    name, place = trajectory.robot.joint_names[j], trajectory.given.places[i]
    unit = unit_of(trajectory.robot, int(j))
    return {"value": float(values[i, j]), "unit": unit, "joint": name, "place": place}


def _step(trajectory: Trajectory, i: int) -> dict[str, Any]:
    moved = steps(trajectory.q)[i]
    j = int(moved.argmax())
    name, unit = trajectory.robot.joint_names[j], unit_of(trajectory.robot, j)
    return {"joint": name, "change": float(moved[j]), "unit": unit}
