# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reading of joint trajectories from messages, and checks of their limits and collisions."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import MAX_POSE_COORDINATE, Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.scene.joint_paths import path_pairs
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.servo.joint_spline import JointSpline, Peak
from dls_ik.servo.joint_target import MAX_START_DISTANCE
from dls_ik.text import listing, quoted

MAX_GOAL_POINTS = 10_000  # maximum number of points of a trajectory
MAX_DURATION = 24.0 * 3600.0  # [s] maximum duration of a trajectory
MIN_INTERVAL = 1e-6  # [s] minimum time between two points
# Largest accepted velocities and accelerations, as shares of the limits. Trajectories of other
# programs use the full limits, and interpolation between their points exceeds them slightly.
MAX_VELOCITY_SHARE, MAX_ACCELERATION_SHARE = 1.002, 1.1
# Largest distance of points outside the position limits [rad or m].
POSITION_LIMIT_TOLERANCE = 1e-3
# Values of error_code in control_msgs/action/FollowJointTrajectory
INVALID_GOAL, INVALID_JOINTS, OLD_STAMP = -1, -2, -3


class TrajectoryError(DlsIkError):
    """A trajectory that is rejected before any motion.

    Args:
        code: Value of `error_code` in the result of FollowJointTrajectory.
        message: Error message.
    """

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class MotionBounds(NamedTuple):
    """Limits of the velocities and accelerations of n joints, as scaled by the parameters."""

    velocity: Array  # (n,) [rad/s or m/s]
    acceleration: Array  # (n,) [rad/s^2 or m/s^2]


def read_spline(given: Any, robot: RobotModel, q: Array) -> JointSpline:
    """Return a ``trajectory_msgs/JointTrajectory`` as a trajectory of all joints of a robot.

    Joints that the message does not name keep their positions. If the first point is later than 0,
    the trajectory begins at the current positions. Continuous joints are shifted by full turns to
    start as close to their current position as possible.

    Args:
        given: Message.
        robot: Robot that follows the trajectory.
        q: (n,) current joint positions [rad or m].

    Raises:
        TrajectoryError: If the names of joints or the points are not valid.
    """
    columns = _columns(given.joint_names, robot)
    points = given.points
    if not 0 < len(points) <= MAX_GOAL_POINTS:
        raise TrajectoryError(
            INVALID_GOAL,
            f"a trajectory must have from 1 to {MAX_GOAL_POINTS} points; got {len(points)}",
        )
    times = np.array([p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points])
    _check_times(times)
    positions = _rows(points, "positions", len(columns))
    if positions is None:
        raise TrajectoryError(INVALID_GOAL, "the points have no positions; give one for each joint")
    v, a = (_rows(points, kind, len(columns)) for kind in ("velocities", "accelerations"))
    if v is not None and (np.abs(v[-1]) > 1e-3).any():
        j = int(np.abs(v[-1]).argmax())
        raise TrajectoryError(
            INVALID_GOAL,
            f"the trajectory must end at rest; the last velocity of joint "
            f"{given.joint_names[j]!r} is {v[-1, j]:.4g}",
        )
    turns = np.array([robot.tree.joint[robot.joint_names[j]].kind == "continuous" for j in columns])
    shift = np.round((q[columns] - positions[0]) / (2.0 * np.pi)) * 2.0 * np.pi
    positions = positions + np.where(turns, shift, 0.0)
    if times[0] > 0.0:
        times = np.concatenate([[0.0], times])
        positions = np.vstack([q[columns], positions])
        v = None if v is None else np.vstack([np.zeros(len(columns)), v])
        a = None if a is None else np.vstack([np.zeros(len(columns)), a])
    if len(times) == 1:  # a single point at the time 0 demands no motion
        _check_at(given.joint_names, positions[0], q[columns])
        times, positions = np.array([0.0, MIN_INTERVAL]), np.vstack([q[columns], q[columns]])
        v = a = None
    complete = np.tile(q, (len(times), 1))
    complete[:, columns] = positions
    return JointSpline(times, complete, _all_joints(v, columns, q), _all_joints(a, columns, q))


def _columns(names: Sequence[str], robot: RobotModel) -> list[int]:
    """Return the indices of named joints in the robot.

    Raises:
        TrajectoryError: If there are no names, or a name is unknown or given twice.
    """
    known = listing(robot.joint_names)
    unknown = [name for name in names if name not in robot.joint_names]
    if not names or unknown:
        what = f"unknown joints {listing(map(quoted, unknown))}" if unknown else "no joint names"
        raise TrajectoryError(
            INVALID_JOINTS, f"the trajectory has {what}; joints that can move: {known}"
        )
    twice = sorted({name for name in names if list(names).count(name) > 1})
    if twice:
        raise TrajectoryError(
            INVALID_JOINTS, f"the trajectory names joints more than once: {listing(twice)}"
        )
    return [robot.joint_names.index(name) for name in names]


def _check_times(times: Array) -> None:
    if times[0] < 0.0 or times[-1] > MAX_DURATION or (np.diff(times) < MIN_INTERVAL).any():
        late = np.flatnonzero(np.diff(times) < MIN_INTERVAL)
        where = f"; point {late[0] + 1} is not later than the point before" if len(late) else ""
        raise TrajectoryError(
            INVALID_GOAL,
            f"time_from_start must increase from 0 or later to at most {MAX_DURATION:g} s; got "
            f"{times[0]:.6g} to {times[-1]:.6g} s{where}",
        )


def _check_at(names: Sequence[str], goal: Array, q: Array) -> None:
    away = np.abs(goal - q)
    j = int(away.argmax())
    if away[j] > MAX_START_DISTANCE:
        raise TrajectoryError(
            INVALID_GOAL,
            f"the only point has time_from_start 0, and joint {names[j]!r} is {away[j]:.4g} away "
            "from it; give the motion a duration",
        )


def _rows(points: Sequence[Any], kind: str, n: int) -> Array | None:
    """Return a field of all points as an array (m, n); None if the points do not have the field.

    Raises:
        TrajectoryError: If a point has another number of values, or a value is not finite.
    """
    rows = [getattr(point, kind) for point in points]
    if not any(len(row) for row in rows):
        return None
    for i, row in enumerate(rows):
        if len(row) != n:
            raise TrajectoryError(
                INVALID_GOAL,
                f"point {i} has {len(row)} {kind} for {n} joints; give one for each joint in all "
                "points, or none",
            )
    values = np.array(rows, np.float64)
    bad = np.argwhere(~(np.abs(values) <= MAX_POSE_COORDINATE))
    if len(bad):
        i, j = bad[0]
        raise TrajectoryError(
            INVALID_GOAL,
            f"{kind} must be finite numbers up to {MAX_POSE_COORDINATE:g}; point {i} has "
            f"{values[i, j]}",
        )
    return values


def _all_joints(rows: Array | None, columns: list[int], q: Array) -> Array | None:
    if rows is None:
        return None
    complete = np.zeros((len(rows), len(q)))
    complete[:, columns] = rows
    return complete


def check_limits(spline: JointSpline, robot: RobotModel, bounds: MotionBounds) -> None:
    """Check that a trajectory is within the limits of positions, velocities and accelerations.

    Args:
        spline: Trajectory of all joints of the robot.
        robot: Robot with position limits.
        bounds: Velocity and acceleration limits.

    Raises:
        TrajectoryError: If a limit is exceeded; the message names the joint, the time and the
            factor by which the trajectory must be slower.
    """
    if found := spline.outside(
        robot.lower - POSITION_LIMIT_TOLERANCE, robot.upper + POSITION_LIMIT_TOLERANCE
    ):
        j, value, time = found
        raise TrajectoryError(
            INVALID_GOAL,
            f"joint {robot.joint_names[j]!r} would be at {value:.4g} after {time:.3g} s, outside "
            f"its limits from {robot.lower[j]:.4g} to {robot.upper[j]:.4g} [{robot.units[j]}]",
        )
    velocity, acceleration = spline.peaks(bounds.velocity, bounds.acceleration)
    factor = max(velocity.ratio, np.sqrt(acceleration.ratio))
    peaks = (
        (velocity, MAX_VELOCITY_SHARE, "move at", "/s", bounds.velocity),
        (acceleration, MAX_ACCELERATION_SHARE, "accelerate by", "/s^2", bounds.acceleration),
    )
    for peak, share, verb, per, limits in peaks:
        if peak.ratio > share:
            raise TrajectoryError(
                INVALID_GOAL,
                f"{_peak_words(peak, robot, verb, per)}, above its limit of "
                f"{limits[peak.joint]:.4g}; multiply all times by at least {factor:.3g}, or change "
                "the parameters acceleration or scale",
            )


def _peak_words(peak: Peak, robot: RobotModel, verb: str, per: str) -> str:
    j = peak.joint
    unit = f"{robot.units[j]}{per}"
    return (
        f"joint {robot.joint_names[j]!r} would {verb} {peak.value:.4g} {unit} at {peak.time:.3g} s"
    )


def check_collisions(spline: JointSpline, scene: SceneSnapshot, min_distance: float) -> None:
    """Check that a trajectory is collision-free in a scene.

    Args:
        spline: Trajectory of the joints of the scene.
        scene: Scene in its current state.
        min_distance: Minimum distance of all pairs [m].

    Raises:
        TrajectoryError: If a pair is too close; the message names the pair and the time.
    """
    found = spline.contact(path_pairs(scene), min_distance)
    if found is not None:
        time, names = found
        where = "at the start" if time == 0.0 else f"after {time:.3g} s"
        raise TrajectoryError(
            INVALID_GOAL,
            f"{names[0]!r} and {names[1]!r} would collide, or come closer than {min_distance:g} m, "
            f"{where}; give points on a path around them",
        )
