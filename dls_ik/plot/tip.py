# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures of the motion of a tip: path and target, errors, and conditioning of the Jacobian."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, OptionError, PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.arm import AXES, arm_points, draw_arms, instants, space_axes
from dls_ik.plot.canvas import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PALE,
    above_zero,
    checked_motion,
    heading,
    legend_below,
    log_axis,
    new_figure,
    panel_title,
    plain,
    series_look,
    show_times,
)
from dls_ik.solver.comparison import MIN_SINGULAR_VALUE
from dls_ik.text import scaled, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GHOSTS = 12  # number of times at which the arm is drawn
LENGTHS = ((1.0, "m"), (1e2, "cm"), (1e3, "mm"), (1e6, "um"), (1e9, "nm"))  # units per metre, name
MAX_ZERO_DISTANCE = 1e-12  # [m] maximum distance that counts as 0
PROJECTION_PLANES = ((0, 1, "from above"), (0, 2, "from the side"), (1, 2, "from the front"))


def tip_path(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    target: ArrayLike,
    title: str = "The tip and its target",
) -> Figure:
    """Draw the paths of the tip and its target in 3D and in 2D, and the distance between them.

    The 3D panel also shows the arm. The 2D panel shows the plane in which the target extends the
    most. A third panel shows the distance from the tip to its target over time.

    Args:
        robot: Robot.
        times: (k,) times [s].
        q: (k, n) joint positions [rad or m].
        target: (k, 3) desired positions of the tip [m].
        title: Title of the picture.

    Raises:
        JointValueError: If the joint positions do not fit the robot or the times.
        PoseError: If the target does not fit the times.
        DlsIkError: If matplotlib is not installed, or the robot has several tips.
    """
    t, values, tip = _checked(robot, times, q)
    goal = _checked_places(target, len(t))
    figure = new_figure(11.0, 5.6)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.0, 1.1), height_ratios=(1.5, 1.0), wspace=0.08)
    _draw_in_space(figure.add_subplot(grid[:, 0], projection="3d"), robot, t, values, tip, goal)
    _draw_in_own_plane(figure.add_subplot(grid[0, 1]), tip, goal)
    _draw_distance(figure.add_subplot(grid[1, 1]), t, tip, goal)
    heading(figure, title)
    return figure


def tip_planes(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    target: ArrayLike | None = None,
    title: str = "The path of the tip",
) -> Figure:
    """Draw the arm and the path of its tip in 3D, and the path in the planes xy, xz and yz.

    Args:
        robot: Robot.
        times: (k,) times [s].
        q: (k, n) joint positions [rad or m].
        target: (k, 3) desired positions of the tip [m], or None.
        title: Title of the picture.

    Raises:
        JointValueError: If the joint positions do not fit the robot or the times.
        PoseError: If the target does not fit the times.
        DlsIkError: If matplotlib is not installed, or the robot has several tips.
    """
    t, values, tip = _checked(robot, times, q)
    goal = None if target is None else _checked_places(target, len(t))
    figure = new_figure(10.0, 8.6)
    grid = figure.add_gridspec(2, 2)
    _draw_in_space(figure.add_subplot(grid[0], projection="3d"), robot, t, values, tip, goal)
    panels = [figure.add_subplot(grid[i]) for i in (1, 2, 3)]
    for axes, (i, j, view) in zip(panels, PROJECTION_PLANES, strict=True):
        _draw_in_plane(axes, tip, goal, (i, j))
        panel_title(axes, view, f"{AXES[i]}{AXES[j]}")
    legend_below(figure, panels[0].get_legend_handles_labels()[0], 4)
    heading(figure, title)
    return figure


def _checked(robot: RobotModel, times: ArrayLike, q: ArrayLike) -> tuple[Array, Array, Array]:
    """Check a motion; return times (k,) [s], joint positions (k, n) and tip positions (k, 3) [m].

    Raises:
        DlsIkError: If the robot has several tips.
        JointValueError: If the joint positions do not fit the robot or the times.
    """
    if len(robot.tips) > 1:
        raise DlsIkError(
            f"this picture needs a robot with one tip; got {', '.join(robot.tips)}; "
            "use stroboscope for several tips"
        )
    t, values = checked_motion(robot, times, q)
    return t, values, robot.fk(values)[:, :3, 3]


def _checked_places(target: ArrayLike, k: int) -> Array:
    """Check the desired positions of the tip at k times; return them as an array (k, 3) [m].

    Raises:
        PoseError: If the shape is not (k, 3), or a value is not finite.
    """
    goal = np.asarray(target, dtype=np.float64)
    if goal.shape != (k, 3):
        raise PoseError(f"the target of {k} instants must have shape ({k}, 3); got {goal.shape}")
    if not np.isfinite(goal).all():
        raise PoseError("the target of a path must be finite")
    return goal


def _draw_in_space(
    axes: Any, robot: RobotModel, t: Array, values: Array, tip: Array, goal: Array | None
) -> None:
    """Draw the arm at several times, and the paths of tip and target, in 3D.

    Args:
        axes: 3D axes.
        robot: Robot.
        t: (k,) times [s].
        values: (k, n) joint positions [rad or m].
        tip: (k, 3) positions of the tip [m].
        goal: (k, 3) positions of the target [m], or None.
    """
    ghosts = instants(t, GHOSTS)
    arms = arm_points(robot, values[[*ghosts, -1]])[0]
    draw_arms(axes, arms[:-1], [PALE] * len(ghosts))
    arm = arms[-1]
    axes.plot(*arm.T, color=GREY, linewidth=4.0, solid_joinstyle="round")
    axes.scatter(*arm[:-1].T, s=14, color="white", edgecolors=GREY, depthshade=False, zorder=9)
    if goal is not None:
        axes.plot(*goal.T, color=ORANGE, linewidth=4.0)
    axes.plot(*tip.T, color=BLUE, linewidth=1.4)
    axes.text(*arm[0], f"  {robot.base}", fontsize=8, color=GREY, va="top")
    space_axes(axes)
    panel_title(axes, f"{robot.name} at the end, and at {len(ghosts)} instants")


def _draw_in_own_plane(axes: Axes, tip: Array, goal: Array) -> None:
    """Draw the paths of tip (k, 3) and target (k, 3) in the plane where the target extends most."""
    centre = goal.mean(axis=0)
    first, second = _main_directions(goal - centre)
    across = np.array([first, second]).T * 1e2  # projects positions [m] to the plane [cm]
    axes.plot(*((goal - centre) @ across).T, color=ORANGE, linewidth=5.0, label="target")
    axes.plot(*((tip - centre) @ across).T, color=BLUE, linewidth=1.6, label="tip")
    axes.set_aspect("equal", adjustable="datalim")
    axes.locator_params(nbins=6)
    panel_title(axes, "the path in its own plane")
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9, ncol=2)
    plain(axes, "along the path's long side [cm]", "across [cm]")


def _main_directions(points: Array) -> Array:
    """Return two orthogonal unit vectors (2, 3) along which points (k, 3) extend the most."""
    _, _, directions = np.linalg.svd(points, full_matrices=False)
    main = directions[:2]
    largest = np.abs(main).argmax(axis=1)
    signs: Array = np.sign(main[np.arange(2), largest])
    return main * signs[:, None]


def _draw_distance(axes: Axes, t: Array, tip: Array, goal: Array) -> None:
    """Draw the distance from the tip (k, 3) to its target (k, 3) over times t (k,) [s]."""
    distance = np.linalg.norm(tip - goal, axis=1)
    scale, unit = _length_unit(float(distance.max()))
    error = scale * distance
    axes.plot(t, error, color=BLUE, linewidth=1.4)
    axes.fill_between(t, error, color=BLUE, alpha=0.15, linewidth=0)
    axes.axhline(error.mean(), color=GREY, linewidth=1.0, linestyle="--")
    at_the_end = axes.get_yaxis_transform()  # x relative to the axes, y in data
    axes.text(1.01, error.mean(), "mean", transform=at_the_end, color=GREY, fontsize=8, va="center")
    note = f"mean {short(error.mean())} {unit}, largest {short(error.max())} {unit}"
    panel_title(axes, f"distance from tip to target: {note}")
    show_times(axes, t)
    axes.set_ylim(0.0, 1.15 * error.max() if error.max() > 0.0 else 1.0)
    plain(axes, "time [s]", f"distance [{unit}]")


def _length_unit(top: float) -> tuple[float, str]:
    """Return a unit in which a length `top` [m] is easy to read, as units per metre and name."""
    if top <= MAX_ZERO_DISTANCE:
        return 1e3, "mm"
    return next(((scale, unit) for scale, unit in LENGTHS if scale * top >= 0.5), LENGTHS[-1])


def _draw_in_plane(axes: Axes, tip: Array, goal: Array | None, seen: tuple[int, int]) -> None:
    """Draw the paths of tip and target in the plane of two axes; mark start and end of the path.

    Args:
        axes: Axes to draw in.
        tip: (k, 3) positions of the tip [m].
        goal: (k, 3) positions of the target [m], or None.
        seen: The two axes: 0, 1 or 2 for x, y or z.
    """
    if goal is not None:
        axes.plot(*goal[:, seen].T, color=ORANGE, linewidth=5.0, label="target")
    path = tip[:, seen]
    axes.plot(*path.T, color=BLUE, linewidth=1.6, label="tip")
    axes.plot(*path[0], "o", color="white", markeredgecolor=BLUE, markersize=6, label="start")
    axes.plot(*path[-1], "o", color=BLUE, markersize=6, label="end")
    axes.set_aspect("equal", adjustable="datalim")
    axes.margins(0.08)
    axes.locator_params(nbins=6)
    plain(axes, f"{AXES[seen[0]]} [m]", f"{AXES[seen[1]]} [m]")


# Errors and conditioning

ROTATION_WEIGHT = 0.5  # [m/rad] equal to the default of the solver


def error_and_conditioning(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    target: ArrayLike,
    rotation_weight: float = ROTATION_WEIGHT,
    title: str = "Errors and conditioning",
) -> Figure:
    """Draw position and rotation error, smallest singular value and condition number over time.

    Rotation rows of the Jacobian are multiplied by `rotation_weight`, so that all singular values
    are lengths. Singular values that are 0 at all times, as for a planar arm, are omitted. All
    panels are logarithmic.

    Args:
        robot: Robot.
        times: (k,) times [s].
        q: (k, n) joint positions [rad or m].
        target: (k, 4, 4) desired poses of the tip, or (4, 4) for a fixed target; for j tips
            (k, j, 4, 4) or (j, 4, 4).
        rotation_weight: Weight of rotations [m/rad].
        title: Title of the picture.

    Raises:
        JointValueError: If the joint positions do not fit the robot or the times.
        PoseError: If the targets do not fit the times or the tips.
        OptionError: If the rotation weight is not above 0.
        DlsIkError: If matplotlib is not installed.
    """
    t, values = checked_motion(robot, times, q)
    if not 0.0 < rotation_weight < np.inf:
        raise OptionError(f"rotation_weight must be above 0 [m/rad]; got {rotation_weight!r}")
    errors = _errors(robot, values, target)  # (k, j, 2)
    s = _singular_values(robot, values, rotation_weight)  # (k, r)
    figure = new_figure(10.0, 6.2)
    (position, rotation), (smallest, condition) = figure.subplots(2, 2, sharex=True)
    _error_panel(position, t, errors[..., 0], ("position error", "m"), robot.tips)
    _error_panel(rotation, t, errors[..., 1], ("rotation error", "rad"), robot.tips)
    _panel(smallest, t, s[:, -1], "smallest singular value [m]")
    title_at = f"smallest {_value_and_time(t, s[:, -1], np.argmin)}"
    panel_title(smallest, "distance from a singularity", title_at)
    numbers = s[:, 0] / np.maximum(s[:, -1], np.finfo(float).tiny)
    _panel(condition, t, numbers, "condition number [-]")
    panel_title(condition, "conditioning", f"largest {_value_and_time(t, numbers, np.argmax)}")
    for axes in (smallest, condition):
        axes.set_xlabel("time [s]", fontsize=9)
    heading(figure, title)
    return figure


def _errors(robot: RobotModel, q: Array, target: ArrayLike) -> Array:
    """Return position error [m] and rotation error [rad] of j tips at k configurations (k, j, 2).

    Args:
        robot: Robot with j tips.
        q: (k, n) joint positions [rad or m].
        target: Targets as in :func:`error_and_conditioning`.

    Raises:
        PoseError: If the targets do not fit the configurations or the tips.
    """
    k, j = len(q), len(robot.tips)
    given = np.asarray(target, dtype=np.float64)
    tips = (4, 4) if j == 1 else (j, 4, 4)
    if given.shape not in (tips, (k, *tips)):
        raise PoseError(
            f"the targets of {k} instants must have shape {(k, *tips)} or {tips}; got {given.shape}"
        )
    if not np.isfinite(given).all():
        raise PoseError("the targets must be finite")
    goals = np.broadcast_to(given, (k, *tips)).reshape(-1, 4, 4)
    pairs = zip(robot.fk(q).reshape(-1, 4, 4), goals, strict=True)
    left = np.array([difference(np.ascontiguousarray(T), T_d.copy()) for T, T_d in pairs])
    return np.asarray(np.linalg.norm(left.reshape(k, j, 2, 3), axis=-1))


def _singular_values(robot: RobotModel, q: Array, weight: float) -> Array:
    """Return the singular values (k, r) of the Jacobian at q (k, n), in descending order.

    Rotation rows of the Jacobian are multiplied by `weight` [m/rad]. Singular values that are 0 at
    all configurations are omitted.
    """
    J = robot.jacobian(q)
    rows = np.tile([1.0] * 3 + [weight] * 3, len(robot.tips))
    s = np.asarray(np.linalg.svd(rows[:, None] * J, compute_uv=False), np.float64)
    return s[:, : max(1, int((s.max(axis=0) > MIN_SINGULAR_VALUE).sum()))]


def _error_panel(
    axes: Axes, t: Array, errors: Array, quantity: tuple[str, str], tips: tuple[str, ...]
) -> None:
    """Draw the position error or the rotation error of each tip over time.

    Args:
        axes: Axes to draw in.
        t: (k,) times [s].
        errors: (k, j) errors of j tips.
        quantity: Name and unit of the error.
        tips: Names of the tips.
    """
    title, unit = quantity
    for i, (tip, error) in enumerate(zip(tips, errors.T, strict=True)):
        axes.plot(t, above_zero(error), linewidth=1.6, label=tip, **series_look(i))
    largest, last = errors.max(), errors[-1].max()
    panel_title(axes, title, f"largest {scaled(largest, unit)}, at the end {scaled(last, unit)}")
    if len(tips) > 1:
        axes.legend(frameon=False, fontsize=8)
    _finish(axes, t, errors, f"{title} [{unit}]")


def _panel(axes: Axes, t: Array, values: Array, label: str) -> None:
    """Draw values (k,) over times t (k,) [s] on a logarithmic axis."""
    axes.plot(t, above_zero(values), color=GREEN, linewidth=1.6)
    _finish(axes, t, values, label)


def _finish(axes: Axes, t: Array, values: Array, label: str) -> None:
    """Set labels and axes of a panel; write "0 throughout" in it if no value is positive."""
    plain(axes, y=label)
    show_times(axes, t)
    log_axis(axes, values)
    if not (values > 0.0).any():
        axes.text(0.5, 0.5, "0 throughout", transform=axes.transAxes, ha="center", color=GREEN)
        axes.set_yticks([])


def _value_and_time(t: Array, values: Array, which: Callable[[Array], Any]) -> str:
    """Return a text with an extreme value and its time.

    Args:
        t: (k,) times [s].
        values: (k,) values.
        which: Returns the index of the extreme value, like ``np.argmax``.
    """
    i = int(which(values))
    return f"{short(values[i])} at {short(t[i], 3)} s"
