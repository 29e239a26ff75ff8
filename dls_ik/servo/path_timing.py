# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fastest motion along a solved path that stays close to the lines between its poses.

1. A cubic spline passes through joint positions of the path. It passes as few of them as possible,
   because small errors of joint positions that are close to each other would cause large
   accelerations and jerks. Where the tip deviates from the line between two successive poses by
   more than half of the tolerance, the solver computes joint positions for the middle of the line.
2. The fastest motion along the spline within the limits of joint velocity, acceleration and jerk,
   and of the speed of the tip, is computed (:mod:`dls_ik.servo.speed_profile`).
3. Between the points of the trajectory, a controller interpolates positions, velocities and
   accelerations by polynomials of degree 5. If these polynomials exceed a limit or the tolerance,
   points are added.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.path_lines import Lines
from dls_ik.core.types import Array, Flags, Indices
from dls_ik.errors import ChainError, DlsIkError, OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.servo.joint_motion import MotionLimits
from dls_ik.servo.joint_spline import JointSpline
from dls_ik.servo.path_tolerance import (
    JointBounds,
    distances,
    largest_deviations,
    lines_between,
    pose_on_line,
    tip_accelerations,
)
from dls_ik.servo.speed_profile import PathSpline, TimedSpline, fastest_motion
from dls_ik.servo.tip_speed import tip_speed
from dls_ik.solver.episodes import polished
from dls_ik.solver.options import checked_value, number, per_joint
from dls_ik.solver.poses import batch_poses
from dls_ik.solver.result import IkPathResult
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.trajectory import csv_text, trajectory_message
from dls_ik.text import listing, quoted, suggest_names

MIN_KNOTS = 16  # minimum number of poses of a long path that the spline passes
JOINT_TOLERANCE = 1e-4  # [rad or m] largest distance of the spline from given joint positions
MAX_POSE_ROUNDS = 16  # maximum number of rounds that add poses
MAX_KNOTS = 20_000
MAX_CHECKED_AT_ONCE = 200_000  # configurations that are checked at once
SPLINE_SHARE = 0.5  # part of the path tolerance that the spline may use
SAMPLE_SHARE = 0.1  # part of the tolerance by which the distance may grow between two samples
MAX_CHANGE = 0.5  # [rad or m] largest distance of the solution for an added pose from the spline
MIN_POSE_STEP = 1e-7  # [rad or m] poses with smaller changes of all joints count as equal
MAX_POSE_STEP = 1.0  # [rad or m] largest change of a joint between two poses
MAX_CORRECTION = 1e-3  # [rad or m] largest change of joint positions that makes them more accurate
CHECKS_PER_PIECE = 8  # points of each piece of the spline at which the distance is compared


@dataclass(frozen=True)
class TimingOptions:
    """Options of :func:`time_path`."""

    acceleration: float | tuple[float, ...] = per_joint(
        5.0, "rad/s^2 or m/s^2", "largest acceleration, for all joints or for each joint"
    )
    jerk: float | tuple[float, ...] = per_joint(
        math.inf, "rad/s^3 or m/s^3", "largest jerk, for all joints or for each joint"
    )
    scale: float = number(1.0, 1e-3, 1.0, "", "share of the velocity and acceleration limits")
    max_linear_speed: float = number(math.inf, 1e-6, math.inf, "m/s", "largest speed of the tip")
    max_angular_speed: float = number(
        math.inf, 1e-6, math.inf, "rad/s", "largest angular speed of the tip"
    )
    path_tolerance: float = number(
        1e-4, 1e-7, 1.0, "m", "largest distance of the tip from the lines between the poses"
    )
    rotation_tolerance: float = number(
        1e-4, 1e-7, math.pi, "rad", "largest rotation of the tip from the lines between the poses"
    )
    rate: float = number(100.0, 1.0, 10_000.0, "Hz", "smallest number of trajectory points per s")


@dataclass(frozen=True)
class PathTrajectory:
    """Timed motion along a path, at rest at both ends.

    A controller that interpolates positions, velocities and accelerations, as
    joint_trajectory_controller does, keeps all limits and both bounds on the deviation between the
    points as well. All times are whole nanoseconds.
    """

    robot: RobotModel
    t: Array  # (m,) times, from 0 [s]
    q: Array  # (m, n) joint positions [rad or m]
    v: Array  # (m, n) joint velocities [rad/s or m/s]
    a: Array  # (m, n) joint accelerations [rad/s^2 or m/s^2]
    position_deviation: float  # bound on the distance from the lines between the poses [m]
    rotation_deviation: float  # bound on the rotation from the lines between the poses [rad]

    @property
    def duration(self) -> float:
        """Duration of the motion [s]."""
        return float(self.t[-1])

    def __len__(self) -> int:
        """Return the number of points."""
        return len(self.t)

    def to_csv(self, file: str | os.PathLike[str] | None = None) -> str:
        """Return the motion as CSV; a line has time, positions, velocities and accelerations.

        Args:
            file: File to write in addition.

        Raises:
            OSError: If the file cannot be written.
        """
        text = csv_text(self.robot, self.t, self.q, self.v, self.a)
        if file is not None:
            Path(file).write_text(text, encoding="utf-8")
        return text

    def to_trajectory_msg(self, frame_id: str = "") -> Any:
        """Return the motion as a ``trajectory_msgs/msg/JointTrajectory`` that starts immediately.

        Args:
            frame_id: Frame in the header.

        Raises:
            DlsIkError: If the ROS message packages are not installed.
        """
        return trajectory_message(self.robot, self.t, self.q, frame_id, self.v, self.a)


class _Spline(NamedTuple):
    """Cubic spline along a path, and its parameters at p poses with different joint positions."""

    path: PathSpline
    s: Array  # (p,) parameters of the poses
    number: Indices  # (p,) numbers of the poses

    def line(self, s: Array) -> Indices:
        """Return the numbers (m,) of the lines to follow at parameters s (m,)."""
        at = np.searchsorted(self.s, s, "right") - 1
        return np.asarray(self.number[np.clip(at, 0, len(self.number) - 2)])


class _Points(NamedTuple):
    """Points of a path with their joint positions."""

    at: Array  # (k,) number of a line, plus the share of this line
    q: Array  # (k, n) [rad or m]
    used: Flags  # (k,) whether the spline passes through each point


def time_path(
    solver: IkSolver, Ts: ArrayLike, path: IkPathResult | ArrayLike, **options: Any
) -> PathTrajectory:
    """Return the fastest motion along a path within all limits, close to the lines between poses.

    Args:
        solver: Solver of the path; it computes joint positions between the poses where necessary.
        Ts: (b, 4, 4) poses of the path, as given to :meth:`IkSolver.solve_path`.
        path: Result of :meth:`IkSolver.solve_path`, or its joint positions (b, n) [rad or m].
        options: Fields of :class:`TimingOptions`.

    Raises:
        DlsIkError: If the tip cannot stay within the tolerance, because a line leaves the joint
            limits or passes a singularity.
        ChainError: If the robot has several tips.
        PoseError: If a pose is not valid.
        OptionError: If an option is unknown or out of range, or the path is incomplete or has
            jumps.
    """
    chosen = checked_timing(options)
    robot = solver.robot
    if len(robot.tips) > 1:
        raise ChainError(
            f"only paths of one tip can be timed; {robot.name} has the tips {listing(robot.tips)}"
        )
    lines = lines_between(batch_poses(Ts, 1)[:, 0])
    limits = _limits(robot, chosen)
    q = _on_poses(robot, lines.T, _joint_path(robot, lines, path))
    spline = _follow_lines(solver, lines, q, chosen)
    tolerance = chosen.path_tolerance, chosen.rotation_tolerance

    def deviations(timed: TimedSpline) -> tuple[Array, Array]:
        line = spline.line(0.5 * (timed.s[:-1] + timed.s[1:]))
        return _deviations(robot, lines, timed.motion, line, tolerance)

    def is_far(timed: TimedSpline) -> Flags:
        position, rotation = deviations(timed)
        return np.asarray((position > tolerance[0]) | (rotation > tolerance[1]))

    timed = fastest_motion(spline.path, limits, 1.0 / chosen.rate, is_far)
    position, rotation = (float(each.max()) for each in deviations(timed))
    if position > tolerance[0] or rotation > tolerance[1]:
        raise DlsIkError(
            f"the motion between two points of the trajectory is up to {position:.2g} m and "
            f"{rotation:.2g} rad from the path; increase path_tolerance, now {tolerance[0]:g} m, "
            f"or rotation_tolerance, now {tolerance[1]:g} rad"
        )
    motion = timed.motion
    return PathTrajectory(
        robot, motion.times, motion.q, motion.v, motion.accelerations, position, rotation
    )


def checked_timing(given: dict[str, Any]) -> TimingOptions:
    """Validate options of :func:`time_path`.

    Raises:
        OptionError: If an option is unknown or out of range.
    """
    known = {each.name: each for each in fields(TimingOptions)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise OptionError(f"unknown option {listing(unknown)}; {suggest_names(unknown, known, {})}")
    return TimingOptions(**{name: checked_value(known[name], v) for name, v in given.items()})


def _joint_path(robot: RobotModel, lines: Lines, path: IkPathResult | ArrayLike) -> Array:
    """Return the joint positions (b, n) of a complete path without jumps.

    Raises:
        OptionError: If a pose is not reached, the arm does not move, or the path has jumps or
            reconfigurations.
    """
    if isinstance(path, IkPathResult):
        missed = np.flatnonzero(~path.success)
        if len(missed):
            raise OptionError(
                f"{len(missed)} of {len(path)} poses are not reached (indices "
                f"{listing(map(str, missed))}); time the part before the first of them"
            )
        if path.reconfigurations:
            raise OptionError(
                f"the tip leaves the lines at {len(path.reconfigurations)} reconfigurations: "
                f"{path.reconfigurations[0]}; time the sections between them"
            )
        q = np.asarray(path.q, float)
    else:
        q = np.asarray(path, float)
    b = len(lines.T)
    if q.shape != (b, robot.n) or not np.isfinite(q).all():
        raise OptionError(f"path must be {b} x {robot.n} finite numbers; got shape {q.shape}")
    if b < 2 or np.abs(np.diff(q, axis=0)).max() <= MIN_POSE_STEP:
        raise OptionError(
            f"a path needs at least two poses with different joint positions; got {b} poses whose "
            "joint positions are equal; give poses between which the arm moves"
        )
    jumps = np.flatnonzero(np.abs(np.diff(q, axis=0)).max(axis=1) > MAX_POSE_STEP)
    if len(jumps):
        raise OptionError(
            f"the joints jump by more than {MAX_POSE_STEP:g} rad or m to the poses "
            f"{listing(map(str, jumps + 1))}; give more poses, or time the parts between the jumps"
        )
    return q


def _on_poses(robot: RobotModel, T: Array, q: Array) -> Array:
    """Return joint positions (b, n) without the remaining errors of a solver, where possible.

    The errors that a solver accepts, such as 1e-6 m, differ from pose to pose. With poses close to
    each other, they would cause high accelerations and jerks, whose limits would slow the motion.

    Args:
        robot: Robot with one tip.
        T: (b, 4, 4) poses T_base_tip.
        q: (b, n) solutions of the poses [rad or m].
    """
    exact, _ = polished(robot, q, T, cutoff=1e-3)
    is_close = np.abs(exact - q).max(axis=1) < MAX_CORRECTION
    return np.where(is_close[:, None], exact, q)


# The spline ---------------------------------------------------------------------------------------


def _follow_lines(solver: IkSolver, lines: Lines, q: Array, options: TimingOptions) -> _Spline:
    """Return a spline along which the tip, at samples, stays within a share of the tolerance.

    Raises:
        DlsIkError: If poses between the given ones have no joint positions near the spline.
    """
    moves = np.concatenate([[True], np.abs(np.diff(q, axis=0)).max(axis=1) > MIN_POSE_STEP])
    at = np.flatnonzero(moves)
    used = np.arange(len(at)) % max(1, (len(at) - 1) // MIN_KNOTS) == 0
    used[-1] = True
    points = _Points(at.astype(float), q[moves], used)
    tolerance = SPLINE_SHARE * np.array([options.path_tolerance, options.rotation_tolerance])
    for _ in range(MAX_POSE_ROUNDS):
        spline, s = _through(points)
        bad = _far_pieces(solver.robot, lines, spline, points, s, tolerance)
        if not len(bad):
            return spline
        if len(points.at) + len(bad) > MAX_KNOTS:
            break
        points = _with_more_points(solver, lines, spline, points, bad)
    at_bad = int(points.at[points.used][bad[0]])
    raise DlsIkError(
        f"no smooth motion stays within {options.path_tolerance:g} m and "
        f"{options.rotation_tolerance:g} rad of the path: the tip is farther near pose "
        f"{at_bad}; increase path_tolerance and rotation_tolerance"
    )


def _through(points: _Points) -> tuple[_Spline, Array]:
    """Return the spline through the points in use, and its parameters (k,) at all points."""
    path = PathSpline(points.q[points.used])
    steps = np.linalg.norm(np.diff(points.q, axis=0), axis=1)
    passed = np.concatenate([[0.0], np.cumsum(steps)])
    s = np.interp(passed, passed[points.used], path.s)
    is_pose = points.at == np.floor(points.at)
    return _Spline(path, s[is_pose], points.at[is_pose].astype(int)), s


def _far_pieces(
    robot: RobotModel, lines: Lines, spline: _Spline, points: _Points, s: Array, tolerance: Array
) -> Indices:
    """Return the numbers of the pieces of a spline that are too far from the lines or the points.

    Args:
        robot: Robot with one tip.
        lines: Lines of the path.
        spline: Spline.
        points: Points of the path.
        s: (k,) parameters of the points.
        tolerance: (2,) distance [m] and rotation [rad] of the tip from the lines.
    """
    ends, shares = spline.path.s, np.arange(1, CHECKS_PER_PIECE) / CHECKS_PER_PIECE
    inner = (ends[:-1, None] + shares * np.diff(ends)[:, None]).ravel()
    checked = np.concatenate([inner, s])
    q, slope, _ = spline.path.at(checked)
    position, rotation = distances(lines, robot.fk(q), spline.line(checked))
    far = (position > tolerance[0]) | (rotation > tolerance[1])
    # A point may be passed a little earlier or later: only the distance across the path counts.
    across, along = q[len(inner) :] - points.q, slope[len(inner) :]
    along = along / np.maximum(np.linalg.norm(along, axis=1, keepdims=True), 1e-12)
    across = across - (across * along).sum(axis=1, keepdims=True) * along
    far[len(inner) :] |= np.abs(across).max(axis=1) > JOINT_TOLERANCE
    return np.unique(spline.path.piece(checked[far]))


def _with_more_points(
    solver: IkSolver, lines: Lines, spline: _Spline, points: _Points, pieces: Indices
) -> _Points:
    """Return points with one more point in use within each of the given pieces of a spline.

    The new point of a piece is the middle one of its unused points; if all are used, the solver
    finds a new point.

    Raises:
        DlsIkError: If poses between the given ones have no joint positions near the spline.
    """
    used, knots = points.used.copy(), np.flatnonzero(points.used)
    has_unused = knots[pieces + 1] > knots[pieces] + 1
    chosen = pieces[has_unused]
    used[(knots[chosen] + knots[chosen + 1]) // 2] = True
    empty = pieces[~has_unused]
    if not len(empty):
        return points._replace(used=used)
    before, s = knots[empty], spline.path.s
    middle = 0.5 * (points.at[before] + points.at[before + 1])
    guesses = spline.path.at(0.5 * (s[empty] + s[empty + 1]))[0]
    added = [_answer(solver, lines, *each) for each in zip(middle, guesses, strict=True)]
    T, found = (np.array(each) for each in zip(*added, strict=True))
    q = np.insert(points.q, before + 1, _on_poses(solver.robot, T, found), axis=0)
    return _Points(np.insert(points.at, before + 1, middle), q, np.insert(used, before + 1, True))


def _answer(solver: IkSolver, lines: Lines, at: float, guess: Array) -> tuple[Array, Array]:
    """Return the pose (4, 4) at a place of the path, and its joint positions near a guess (n,).

    Raises:
        DlsIkError: If no joint positions near the guess reach the pose.
    """
    k = min(int(at), len(lines.V) - 1)
    T = pose_on_line(lines, k, at - k)
    found = solver.solve(T, solver.robot.clip(guess))
    if not found.success or np.abs(found.q - guess).max() > MAX_CHANGE:
        raise DlsIkError(
            f"the tip cannot follow the line from pose {k} to pose {k + 1}: between the poses the "
            "arm would leave the joint limits, or pass a singularity; give more poses there, or "
            "solve the path with whole=True"
        )
    return T, np.asarray(found.q)


# Limits and tolerances ----------------------------------------------------------------------------


def _limits(robot: RobotModel, options: TimingOptions) -> MotionLimits:
    """Return the limits that the motion must keep.

    Raises:
        OptionError: If an acceleration limit is not finite and above 0, or a jerk limit not above
            0.
    """
    acceleration = np.broadcast_to(np.asarray(options.acceleration, float), (robot.n,))
    if (acceleration <= 0.0).any() or np.isinf(acceleration).any():
        raise OptionError(
            "acceleration must be finite and above 0 for each joint [rad/s^2 or m/s^2]; got "
            f"{quoted(options.acceleration)}"
        )
    jerk = np.broadcast_to(np.asarray(options.jerk, float), (robot.n,))
    if (jerk <= 0.0).any():
        raise OptionError(
            "jerk must be above 0 for each joint [rad/s^3 or m/s^3]; got "
            f"{quoted(options.jerk)}; inf stands for no limit"
        )
    speeds = options.max_linear_speed, options.max_angular_speed
    acceleration = options.scale * acceleration
    tip = tip_speed(robot, speeds, 1.0, 1.0, acceleration)
    return MotionLimits(options.scale * robot.velocity, acceleration, jerk.copy(), tip)


def _deviations(
    robot: RobotModel,
    lines: Lines,
    motion: JointSpline,
    line: Indices,
    tolerance: tuple[float, float],
) -> tuple[Array, Array]:
    """Return bounds (m - 1,) on the distance and the rotation of a motion from the path.

    Args:
        robot: Robot with one tip.
        lines: Lines of the path.
        motion: Trajectory of m points.
        line: (m - 1,) number of the line to follow after each point.
        tolerance: Tolerances of position [m] and rotation [rad], which determine how accurate the
            bounds must be.
    """
    h = np.diff(motion.times)
    bounds = JointBounds(motion.largest(1), motion.largest(2))
    linear, angular = tip_accelerations(robot, bounds)
    excess = linear * h * h / 8.0, angular * h * h / 8.0
    wanted = np.sqrt(np.maximum(excess[0] / tolerance[0], excess[1] / tolerance[1]) / SAMPLE_SHARE)
    counts = 2 ** np.ceil(np.log2(np.clip(wanted, 1.0, MAX_CHECKED_AT_ONCE))).astype(int)
    position, rotation = np.empty(len(counts)), np.empty(len(counts))
    for count in np.unique(counts):
        alike = np.flatnonzero(counts == count)
        for some in np.array_split(alike, 1 + len(alike) * count // MAX_CHECKED_AT_ONCE):
            q = motion.within(some, np.linspace(0.0, 1.0, count + 1))
            between = excess[0][some] / count**2, excess[1][some] / count**2
            position[some], rotation[some] = largest_deviations(
                robot, lines, q, line[some], between
            )
    return position, rotation
