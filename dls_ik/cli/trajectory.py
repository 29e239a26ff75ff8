"""Joint trajectories along poses: solved, timed, summed up, and written to files."""

from __future__ import annotations

import csv
import errno
import io
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.cli.pose import PoseFile
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import unit_of
from dls_ik.solver.result import IkPathResult, Status
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from rosbags.rosbag2 import Writer

MAX_STARTS = 8  # solutions of the first pose, tried where a path breaks
FASTEST = "as fast as the velocity limits allow"
MIN_DURATION = 1e-3  # [s] between two poses
STATES, PLAN = "/joint_states", "/joint_trajectory"  # topics of a bag
STATE, TRAJECTORY = "sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory"
BAG_VERSION: Final = 8  # Humble reads it too
BILLION = 1_000_000_000


class Timing(NamedTuple):
    """Times of a path, and where they come from."""

    t: Array  # (b,) [s]
    source: str


class Trajectory(NamedTuple):
    """Poses (b), the joint values that reach them, and their times."""

    robot: RobotModel
    given: PoseFile
    result: IkPathResult
    timing: Timing

    @property
    def q(self) -> Array:
        """(b, n) joint values [rad or m]."""
        return self.result.q


# Solve and time


def solve_along(
    solver: IkSolver,
    poses: Array,
    seed: Array | None,
    task: Task | None,
    max_step: float,
    progress: Callable[[int, int], None],
) -> IkPathResult:
    """Solve poses (b, 4, 4) one after the other.

    Without a seed, where the first solution of the first pose leads to poses that are not reached
    or to jumps, its other solutions are tried.
    """
    best = solver.solve_path(poses, seed, task, max_joint_step=max_step, progress=progress)
    if seed is not None or _flaws(best) == (0, 0):
        return best
    for start in solver.solve_all(poses[0], MAX_STARTS, task=task):
        other = solver.solve_path(poses, start, task, max_joint_step=max_step, progress=progress)
        best = min(best, other, key=_flaws)
        if _flaws(best) == (0, 0):
            break
    return best


def _flaws(result: IkPathResult) -> tuple[int, int]:
    return len(_missed(result)), int(result.jumps.sum())


def _missed(result: IkPathResult) -> NDArray[np.int64]:
    """Return the indices of poses that are not reached, approximations included."""
    return np.flatnonzero(result.status != Status.SUCCESS)


def path_times(robot: RobotModel, q: Array, given: Array | None, rate: float | None) -> Timing:
    """Time a joint path q (b, n): at a rate [Hz], as given (b,) [s], or as fast as allowed.

    Raises:
        OptionError: no times are given, and a joint that moves has no velocity limit.
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
    durations = np.maximum((changes / robot.velocity).max(axis=1, initial=0.0), MIN_DURATION)
    return Timing(np.concatenate([[0.0], np.cumsum(durations)]), FASTEST)


# Summary


def summary(trajectory: Trajectory, max_step: float) -> dict[str, Any]:
    """Return figures of a trajectory as a document; steps above `max_step` are listed."""
    robot, places, q = trajectory.robot, trajectory.given.places, trajectory.q
    result, t = trajectory.result, trajectory.timing.t
    missed = _missed(result)
    steps = np.abs(np.diff(q, axis=0, prepend=q[:1]))  # (b, n), 0 to the first pose
    margins = np.minimum(q - robot.lower, robot.upper - q)
    rates = np.abs(np.diff(q, axis=0)) / np.diff(t)[:, None]
    share = (rates / robot.velocity).max(axis=1, initial=0.0)  # (b - 1,) of a velocity limit
    return {
        "robot": robot.name,
        "poses": len(places),
        "reached": len(places) - len(missed),
        "missed": [_missed_facts(trajectory, int(i)) for i in missed],
        "position_error": float(result.position_error.max()),
        "rotation_error": float(result.rotation_error.max()),
        "largest_step": _entry_facts(trajectory, steps, int(steps.argmax())),
        "nearest_limit": _entry_facts(trajectory, margins, int(margins.argmin())),
        "jumps": [
            _jump_facts(trajectory, steps, int(i))
            for i in np.flatnonzero((steps > max_step).any(axis=1))
        ],
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


def _entry_facts(trajectory: Trajectory, values: Array, index: int) -> dict[str, Any]:
    """Return an entry of values (b, n), by its flat index, with its joint and place."""
    i, j = divmod(index, values.shape[1])
    return {
        "value": float(values[i, j]),
        "unit": unit_of(trajectory.robot, j),
        "joint": trajectory.robot.joint_names[j],
        "place": trajectory.given.places[i],
    }


def _jump_facts(trajectory: Trajectory, steps: Array, i: int) -> dict[str, Any]:
    j = int(steps[i].argmax())
    return {
        "place": trajectory.given.places[i],
        "joint": trajectory.robot.joint_names[j],
        "change": float(steps[i, j]),
        "unit": unit_of(trajectory.robot, j),
    }


# Files


def csv_text(trajectory: Trajectory) -> str:
    """Return a line for each pose below a header: t [s] and the joints [rad or m], all digits."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["t", *trajectory.robot.joint_names])
    for t, q in zip(trajectory.timing.t.tolist(), trajectory.q.tolist(), strict=True):
        writer.writerow([repr(t), *map(repr, q)])
    return text.getvalue()


def document(trajectory: Trajectory) -> dict[str, Any]:
    """Return the content of a JSON file."""
    robot, result = trajectory.robot, trajectory.result
    return {
        "robot": robot.name,
        "base": robot.base,
        "tip": robot.tip,
        "times": trajectory.timing.source,
        "joint_names": robot.joint_names,
        "t": trajectory.timing.t,
        "positions": result.q,
        "success": result.success,
        "status": [str(Status(int(status))) for status in result.status],
        "position_error": result.position_error,
        "rotation_error": result.rotation_error,
    }


def write_bag(path: Path, trajectory: Trajectory, storage: str) -> None:
    """Write a rosbag2: a JointState for each pose at its time, and one JointTrajectory.

    Args:
        path: A directory that does not exist yet.
        storage: sqlite3 or mcap.

    Raises:
        OSError: it cannot be written.
    """
    from rosbags.rosbag2 import StoragePlugin, Writer
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    t, q = trajectory.timing.t, np.ascontiguousarray(trajectory.q)
    names, empty = list(trajectory.robot.joint_names), np.empty(0)
    state, plan = store.types[STATE], _plan(store.types, names, t, q)
    states = [
        (_nanoseconds(at), state(_header(store.types, at), names, values, empty, empty))
        for at, values in zip(t, q, strict=True)
    ]
    plugin = StoragePlugin[storage.upper()]
    try:
        with Writer(path, version=BAG_VERSION, storage_plugin=plugin) as bag:
            _write_messages(bag, store, PLAN, TRAJECTORY, [(_nanoseconds(t[0]), plan)])
            _write_messages(bag, store, STATES, STATE, states)
    except sqlite3.Error as error:
        raise OSError(errno.EIO, str(error)) from error


def _write_messages(
    bag: Writer, store: Any, topic: str, kind: str, messages: list[tuple[int, Any]]
) -> None:
    connection = bag.add_connection(topic, kind, typestore=store)
    for stamp, message in messages:
        bag.write(connection, stamp, store.serialize_cdr(message, kind))


def _plan(types: Any, names: list[str], t: Array, q: Array) -> Any:
    """Return a JointTrajectory of positions only; stamp 0 means to start at once."""
    point, empty = types["trajectory_msgs/msg/JointTrajectoryPoint"], np.empty(0)
    points = [
        point(values, empty, empty, empty, _time(types, "Duration", at))
        for at, values in zip(t - t[0], q, strict=True)
    ]
    return types[TRAJECTORY](_header(types, 0.0), names, points)


def _header(types: Any, t: float) -> Any:
    return types["std_msgs/msg/Header"](_time(types, "Time", t), "")


def _time(types: Any, kind: str, t: float) -> Any:
    return types[f"builtin_interfaces/msg/{kind}"](*divmod(_nanoseconds(t), BILLION))


def _nanoseconds(t: float) -> int:
    return round(float(t) * BILLION)
