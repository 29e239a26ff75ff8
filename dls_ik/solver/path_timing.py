# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Time-optimal motion along a solved path that stays close to the lines between its poses.

1. A cubic spline passes through the joint positions. Where the tip leaves the line between two
   poses by more than half of the tolerance, the solver computes joint positions for the middle.
2. TOPP-RA (Pham & Pham 2018, package toppra) computes the fastest motion along the spline within
   the limits of joint velocity, joint acceleration and tip speed.
3. The motion is sampled. Between the samples, a controller interpolates positions, velocities and
   accelerations by polynomials of degree 5. If these polynomials exceed the tolerance, samples are
   added; if they exceed a limit, the whole motion is slowed down.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array, Indices
from dls_ik.errors import ChainError, DlsIkError, OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import checked_value, number, per_joint
from dls_ik.solver.path_tolerance import (
    JointBounds,
    Lines,
    distances,
    largest_deviations,
    lines_between,
    pose_on_line,
    tip_accelerations,
)
from dls_ik.solver.poses import batch_poses
from dls_ik.solver.result import IkPathResult
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.trajectory import csv_text, trajectory_message
from dls_ik.text import listing, quoted, suggest_names

MAX_ROUNDS = 16  # maximum number of rounds that add poses, and of rounds that add samples
MAX_KNOTS = 20_000
MAX_CHECKED_AT_ONCE = 200_000  # configurations that are checked at once
SPLINE_SHARE = 0.5  # part of the path tolerance that the spline may use
SAMPLE_SHARE = 0.1  # part of the tolerance by which the distance may grow between two samples
MAX_CHANGE = 0.5  # [rad or m] largest distance of the solution for an added pose from the spline
GRID_PER_KNOT, MIN_GRID = 4, 200  # grid points of toppra: per knot, and minimum in total
CHECKS_PER_SAMPLE = 8  # points of each polynomial at which the limits are checked
ROUNDING = 1e-9  # relative excess of a limit due to rounding
NO_LIMIT = 1e6  # [rad/s or m/s] replaces missing velocity limits


@dataclass(frozen=True)
class TimingOptions:
    """Options of :func:`time_path`."""

    acceleration: float | tuple[float, ...] = per_joint(
        5.0, "rad/s^2 or m/s^2", "largest acceleration, for all joints or for each joint"
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
    points as well.
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
    """Cubic spline through the joint positions of a path, and the lines that it follows."""

    path: Any  # toppra.SplineInterpolator
    s: Array  # (k,) parameters of the knots
    line: Array  # (k - 1,) number of the line of each piece


class _Fastest(NamedTuple):
    """Time-optimal motion along a spline."""

    motion: Any  # toppra's function of times (m,) and the order of the derivative
    knot_times: Array  # (k,) times at the knots of the spline [s]


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
        DlsIkError: If the package toppra is not installed, or if the tip cannot stay within the
            tolerance, because a line leaves the joint limits or passes a singularity.
        ChainError: If the robot has several tips.
        PoseError: If a pose is not valid.
        OptionError: If an option is unknown or out of range, a joint that moves has neither a
            velocity nor an acceleration limit, or the path is incomplete or has jumps.
    """
    chosen = checked_timing(options)
    robot = solver.robot
    if len(robot.tips) > 1:
        raise ChainError(
            f"only paths of one tip can be timed; {robot.name} has the tips {listing(robot.tips)}"
        )
    lines = lines_between(batch_poses(Ts, 1)[:, 0])
    q = _joint_path(robot, lines, path)
    spline = _follow_lines(solver, lines, q, chosen)
    fastest, times = _fastest(robot, spline, chosen)
    return _sample(robot, lines, spline, fastest, times, chosen)


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
        OptionError: If a pose is not reached, the arm does not move, or the path has jumps.
    """
    if isinstance(path, IkPathResult):
        missed = np.flatnonzero(~path.success)
        if len(missed):
            raise OptionError(
                f"{len(missed)} of {len(path)} poses are not reached (indices "
                f"{listing(map(str, missed))}); time the part before the first of them"
            )
        q = np.asarray(path.q, float)
    else:
        q = np.asarray(path, float)
    b = len(lines.T)
    if q.shape != (b, robot.n) or not np.isfinite(q).all():
        raise OptionError(f"path must be {b} x {robot.n} finite numbers; got shape {q.shape}")
    if b < 2 or np.abs(np.diff(q, axis=0)).max() == 0.0:
        raise OptionError("a path needs at least two different poses")
    jumps = np.flatnonzero(np.abs(np.diff(q, axis=0)).max(axis=1) > 1.0)
    if len(jumps):
        raise OptionError(
            f"the joints jump by more than 1 rad or m to the poses {listing(map(str, jumps + 1))}; "
            "give more poses, or time the parts between the jumps"
        )
    return q


# The spline ---------------------------------------------------------------------------------------


def _follow_lines(
    solver: IkSolver, lines: Lines, q: Array, options: TimingOptions, share: float = SPLINE_SHARE
) -> _Spline:
    """Return a spline along which the tip, at samples, stays within a share of the tolerance.

    Raises:
        DlsIkError: If poses between the given ones have no joint positions near the spline.
    """
    moves = np.concatenate([[True], np.abs(np.diff(q, axis=0)).max(axis=1) > 0.0])
    q = q[moves]
    at = np.flatnonzero(moves).astype(float)  # number of the line, plus the share of this line
    tolerance = share * np.array([options.path_tolerance, options.rotation_tolerance])
    for _ in range(MAX_ROUNDS):
        spline = _through(q, at)
        bad = _far_pieces(solver.robot, lines, spline, tolerance)
        if not len(bad):
            return spline
        if len(q) + len(bad) > MAX_KNOTS:
            break
        middle = 0.5 * (at[bad] + at[bad + 1])
        guesses = spline.path.eval(0.5 * (spline.s[bad] + spline.s[bad + 1]))
        added = [_answer(solver, lines, *each) for each in zip(middle, guesses, strict=True)]
        at = np.insert(at, bad + 1, middle)
        q = np.insert(q, bad + 1, np.array(added), axis=0)
    raise DlsIkError(
        f"no smooth motion stays within {options.path_tolerance:g} m and "
        f"{options.rotation_tolerance:g} rad of the path: the tip is farther near pose "
        f"{int(at[bad[0]])}; increase path_tolerance and rotation_tolerance"
    )


def _through(q: Array, at: Array) -> _Spline:
    """Return the spline through joint positions (k, n); `at` (k,) are line numbers plus shares."""
    toppra = _toppra()
    steps = np.linalg.norm(np.diff(q, axis=0), axis=1)
    s = np.concatenate([[0.0], np.cumsum(steps)])
    kind = "not-a-knot" if len(q) > 3 else "natural"
    path = toppra.SplineInterpolator(s, q, kind)
    return _Spline(path, s, np.floor(0.5 * (at[:-1] + at[1:])).astype(int))


def _far_pieces(robot: RobotModel, lines: Lines, spline: _Spline, tolerance: Array) -> Indices:
    """Return the numbers of the pieces in which the tip leaves the lines by a tolerance (2,)."""
    shares = np.arange(1, CHECKS_PER_SAMPLE) / CHECKS_PER_SAMPLE
    s = spline.s[:-1, None] + shares * np.diff(spline.s)[:, None]
    line = np.repeat(spline.line, len(shares))
    T = robot.fk(spline.path.eval(s.ravel()))
    position, rotation = distances(lines, T, line)
    far = (position > tolerance[0]) | (rotation > tolerance[1])
    return np.flatnonzero(far.reshape(s.shape).any(axis=1))


def _answer(solver: IkSolver, lines: Lines, at: float, guess: Array) -> Array:
    """Return the joint positions (n,) of the pose at a place of the path, near a guess (n,).

    Raises:
        DlsIkError: If no joint positions near the guess reach the pose.
    """
    k = min(int(at), len(lines.length) - 1)
    found = solver.solve(pose_on_line(lines, k, at - k), solver.robot.clip(guess))
    if not found.success or np.abs(found.q - guess).max() > MAX_CHANGE:
        raise DlsIkError(
            f"the tip cannot follow the line from pose {k} to pose {k + 1}: between the poses the "
            "arm would leave the joint limits, or pass a singularity; give more poses there, or "
            "solve the path with whole=True"
        )
    return np.asarray(found.q)


# The fastest motion -------------------------------------------------------------------------------


def _toppra() -> Any:
    """Return the package toppra.

    Raises:
        DlsIkError: If the package is not installed.
    """
    try:
        return import_module("toppra")
    except ImportError as error:
        raise DlsIkError(
            "timing a path needs the package toppra; install it: pip install 'dls-ik[timing]'"
        ) from error


def _limits(robot: RobotModel, options: TimingOptions) -> tuple[Array, Array]:
    """Return the limits of velocity and acceleration (n,) that the motion must keep.

    Raises:
        OptionError: If an acceleration limit is not finite and above 0.
    """
    acceleration = np.broadcast_to(np.asarray(options.acceleration, float), (robot.n,))
    if (acceleration <= 0.0).any() or np.isinf(acceleration).any():
        raise OptionError(
            "acceleration must be finite and above 0 for each joint [rad/s^2 or m/s^2]; got "
            f"{quoted(options.acceleration)}"
        )
    velocity = np.minimum(options.scale * robot.velocity, NO_LIMIT)
    return velocity, options.scale * acceleration


def _fastest(robot: RobotModel, spline: _Spline, options: TimingOptions) -> tuple[_Fastest, Array]:
    """Return the time-optimal motion along a spline, and sampling times (m,) [s].

    Raises:
        DlsIkError: If toppra finds no trajectory.
    """
    constraint, algorithm = import_module("toppra.constraint"), import_module("toppra.algorithm")
    parametrizer = import_module("toppra.parametrizer")
    velocity, acceleration = _limits(robot, options)
    parts = max(GRID_PER_KNOT, math.ceil(MIN_GRID / (len(spline.s) - 1)))
    shares = np.arange(parts) / parts
    grid = (spline.s[:-1, None] + shares * np.diff(spline.s)[:, None]).ravel()
    grid = np.append(grid, spline.s[-1])

    def velocity_at(s: float) -> Array:
        limit = velocity
        slopes = spline.path(s, 1)
        tip = robot.jacobian(spline.path(s)) @ slopes
        speeds = np.linalg.norm(tip[:3]), np.linalg.norm(tip[3:])
        allowed = options.max_linear_speed, options.max_angular_speed
        rates = [a / b for a, b in zip(allowed, speeds, strict=True) if b > 1e-12]
        if rates and np.isfinite(min(rates)):
            slowed = np.maximum(np.abs(slopes) * min(rates), 1e-9)
            limit = np.minimum(limit, slowed)
        return np.column_stack([-limit, limit])

    constraints = [
        constraint.JointVelocityConstraintVarying(velocity_at)
        if min(options.max_linear_speed, options.max_angular_speed) < math.inf
        else constraint.JointVelocityConstraint(np.column_stack([-velocity, velocity])),
        constraint.JointAccelerationConstraint(
            np.column_stack([-acceleration, acceleration]),
            discretization_scheme=constraint.DiscretizationType.Interpolation,
        ),
    ]
    solver = algorithm.TOPPRA(constraints, spline.path, gridpoints=grid)
    _, speeds, _ = solver.compute_parameterization(0.0, 0.0)
    if speeds is None or not np.isfinite(speeds).all():
        raise DlsIkError("toppra finds no motion within the limits along this path")
    trajectory = parametrizer.ParametrizeConstAccel(spline.path, grid, speeds)
    # The speed along the spline changes linearly with time between two grid points.
    durations = 2.0 * np.diff(grid) / (speeds[:-1] + speeds[1:])
    knot_times = np.append(0.0, np.cumsum(durations))[::parts]
    count = max(2, math.ceil(trajectory.duration * options.rate) + 1)
    return _Fastest(trajectory, knot_times), np.linspace(0.0, trajectory.duration, count)


# Samples ------------------------------------------------------------------------------------------


class _Pieces(NamedTuple):
    """Polynomials of degree 5 between samples, as a controller interpolates them."""

    t: Array  # (m + 1,) times of the samples [s]
    c: Array  # (6, m, n) coefficients of the powers of the share u, 0 to 1, of the interval

    def at(self, u: Array, order: int = 0) -> Array:
        """Return a derivative by time of all polynomials at shares u (k,), as (k, m, n)."""
        c = self.c
        for _ in range(order):
            c = c[1:] * np.arange(1, len(c))[:, None, None]
        powers = u[:, None] ** np.arange(len(c))
        steps = np.diff(self.t)[:, None]
        return np.asarray(np.einsum("kp,pmn->kmn", powers, c) / steps**order)


def _pieces(t: Array, q: Array, v: Array, a: Array) -> _Pieces:
    """Return the polynomials through positions, velocities and accelerations (m + 1, n)."""
    h = np.diff(t)[:, None]
    v0, v1, a0, a1 = v[:-1] * h, v[1:] * h, a[:-1] * h * h, a[1:] * h * h
    d, dv, da = q[1:] - q[:-1] - v0 - 0.5 * a0, v1 - v0 - a0, a1 - a0
    third = 10.0 * d - 4.0 * dv + 0.5 * da
    fourth = -15.0 * d + 7.0 * dv - da
    fifth = 6.0 * d - 3.0 * dv + 0.5 * da
    return _Pieces(t, np.stack([q[:-1], v0, 0.5 * a0, third, fourth, fifth]))


def _sample(
    robot: RobotModel,
    lines: Lines,
    spline: _Spline,
    fastest: _Fastest,
    times: Array,
    options: TimingOptions,
) -> PathTrajectory:
    """Return samples between which the polynomials keep the tolerances and the limits.

    Raises:
        DlsIkError: If the tolerance is not kept after `MAX_ROUNDS` rounds of added samples.
    """
    tolerance = options.path_tolerance, options.rotation_tolerance
    for _ in range(MAX_ROUNDS):
        q, v, a = (fastest.motion(times, order) for order in range(3))
        v[[0, -1]] = 0.0
        pieces = _pieces(times, q, v, a)
        middle = 0.5 * (times[:-1] + times[1:])
        piece = np.searchsorted(fastest.knot_times, middle) - 1
        line = spline.line[np.clip(piece, 0, len(spline.line) - 1)]
        position, rotation = _deviations(robot, lines, pieces, line, tolerance)
        bad = np.flatnonzero((position > tolerance[0]) | (rotation > tolerance[1]))
        if not len(bad):
            slower = _slowdown(robot, pieces, options)
            return PathTrajectory(
                robot, times * slower, q, v / slower, a / slower**2,
                float(position.max()), float(rotation.max()),
            )  # fmt: skip
        if len(times) + len(bad) > MAX_KNOTS:
            break
        times = np.insert(times, bad + 1, 0.5 * (times[bad] + times[bad + 1]))
    raise DlsIkError(
        f"the motion between two points of the trajectory is up to {position.max():.2g} m and "
        f"{rotation.max():.2g} rad from the path; increase path_tolerance, now {tolerance[0]:g} m, "
        f"or rotation_tolerance, now {tolerance[1]:g} rad"
    )


def _deviations(
    robot: RobotModel, lines: Lines, pieces: _Pieces, line: Array, tolerance: tuple[float, float]
) -> tuple[Array, Array]:
    """Return bounds (m,) on the distance and the rotation of each polynomial from the path."""
    h = np.diff(pieces.t)
    bounds = JointBounds(_largest(pieces, 1), _largest(pieces, 2))
    linear, angular = tip_accelerations(robot, bounds)
    excess = linear * h * h / 8.0, angular * h * h / 8.0
    wanted = np.sqrt(np.maximum(excess[0] / tolerance[0], excess[1] / tolerance[1]) / SAMPLE_SHARE)
    counts = 2 ** np.ceil(np.log2(np.clip(wanted, 1.0, MAX_CHECKED_AT_ONCE))).astype(int)
    position, rotation = np.empty(len(counts)), np.empty(len(counts))
    for count in np.unique(counts):
        alike = np.flatnonzero(counts == count)
        for some in np.array_split(alike, 1 + len(alike) * count // MAX_CHECKED_AT_ONCE):
            u = np.linspace(0.0, 1.0, count + 1)
            q = np.swapaxes(_Pieces(pieces.t[: len(some) + 1], pieces.c[:, some]).at(u), 0, 1)
            between = excess[0][some] / count**2, excess[1][some] / count**2
            position[some], rotation[some] = largest_deviations(
                robot, lines, q, line[some], between
            )
    return position, rotation


def _largest(pieces: _Pieces, order: int) -> Array:
    """Return bounds (m, n) on a derivative of each joint by time in each interval.

    On its interval, a polynomial lies between its smallest and its largest Bernstein coefficient.
    """
    c = pieces.c
    for _ in range(order):
        c = c[1:] * np.arange(1, len(c))[:, None, None]
    d = len(c) - 1
    weights = np.array([[math.comb(i, j) / math.comb(d, j) for j in range(d + 1)]
                        for i in range(d + 1)])  # fmt: skip
    largest = np.abs(np.einsum("ij,jmn->imn", weights, c)).max(axis=0)
    return np.asarray(largest / np.diff(pieces.t)[:, None] ** order)


def _slowdown(robot: RobotModel, pieces: _Pieces, options: TimingOptions) -> float:
    """Return the factor, at least 1, for all times with which the motion keeps all limits."""
    velocity, acceleration = _limits(robot, options)
    u = np.linspace(0.0, 1.0, CHECKS_PER_SAMPLE + 1)
    q, v, a = (pieces.at(u, order).reshape(-1, robot.n) for order in range(3))
    shares = [(np.abs(v) / velocity).max(), math.sqrt((np.abs(a) / acceleration).max())]
    if min(options.max_linear_speed, options.max_angular_speed) < math.inf:
        tips = np.stack([robot.jacobian(each) @ speed for each, speed in zip(q, v, strict=True)])
        shares.append(np.linalg.norm(tips[:, :3], axis=1).max() / options.max_linear_speed)
        shares.append(np.linalg.norm(tips[:, 3:], axis=1).max() / options.max_angular_speed)
    return max(1.0, (1.0 + ROUNDING) * float(max(shares)))
