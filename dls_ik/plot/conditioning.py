"""Errors of the pose and conditioning of the Jacobian over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.errors import OptionError, PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.plot.canvas import (
    GREEN,
    above_zero,
    checked_motion,
    heading,
    log_axis,
    new_figure,
    panel_title,
    plain,
    scaled,
    series_look,
    short,
    show_times,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

ROTATION_WEIGHT = 0.5  # [m/rad] as the solver's default
VANISHING = 1e-9  # bound on a singular value that always vanishes, as out of a planar arm's plane


def error_and_conditioning(
    robot: RobotModel,
    times: ArrayLike,
    q: ArrayLike,
    target: ArrayLike,
    rotation_weight: float = ROTATION_WEIGHT,
    title: str = "Errors and conditioning",
) -> Figure:
    """Draw errors of position and rotation, least singular value and condition number.

    Singular values are those of the Jacobian with its rotational rows times `rotation_weight`, so
    that all are lengths; for a planar arm only those that do not always vanish. All four panels are
    logarithmic.

    Args:
        robot: The robot with these joints.
        times: (k,) [s].
        q: (k, n) actual joint values [rad or m].
        target: (k, 4, 4) desired poses of the tip, or (4, 4) if the target does not move; for j
            tips (k, j, 4, 4) or (j, 4, 4).
        rotation_weight: [m/rad] length that a rotation of 1 rad counts as.
        title: Title of the picture.

    Raises:
        JointValueError, PoseError: values that do not fit the robot or each other.
        OptionError: a weight that is not above 0.
        DlsIkError: matplotlib is not installed.
    """
    t, values = checked_motion(robot, times, q)
    if not 0.0 < rotation_weight < np.inf:
        raise OptionError(f"rotation_weight is a number above 0 [m/rad], not {rotation_weight!r}")
    errors = _errors(robot, values, target)  # (k, j, 2)
    s = _singular_values(robot, values, rotation_weight)  # (k, r)
    figure = new_figure(10.0, 6.2)
    (position, rotation), (least, condition) = figure.subplots(2, 2, sharex=True)
    _error_panel(position, t, errors[..., 0], ("position error", "m"), robot.tips)
    _error_panel(rotation, t, errors[..., 1], ("rotation error", "rad"), robot.tips)
    _panel(least, t, s[:, -1], "least singular value [m]")
    panel_title(least, "distance from a singularity", f"least {_at(t, s[:, -1], np.argmin)}")
    numbers = s[:, 0] / np.maximum(s[:, -1], np.finfo(float).tiny)
    _panel(condition, t, numbers, "condition number [-]")
    panel_title(condition, "conditioning", f"greatest {_at(t, numbers, np.argmax)}")
    for axes in (least, condition):
        axes.set_xlabel("time [s]", fontsize=9)
    heading(figure, title)
    return figure


def _errors(robot: RobotModel, q: Array, target: ArrayLike) -> Array:
    """Compute errors of position [m] and rotation [rad], (k, j, 2) for j tips."""
    k, j = len(q), len(robot.tips)
    given = np.asarray(target, dtype=np.float64)
    tips = (4, 4) if j == 1 else (j, 4, 4)
    if given.shape not in (tips, (k, *tips)):
        raise PoseError(
            f"the targets of {k} instants are {(k, *tips)} or {tips}, not {given.shape}"
        )
    if not np.isfinite(given).all():
        raise PoseError("the targets have values that are not finite")
    goals = np.broadcast_to(given, (k, *tips)).reshape(-1, 4, 4)
    pairs = zip(robot.fk(q).reshape(-1, 4, 4), goals, strict=True)
    left = np.array([difference(np.ascontiguousarray(T), T_d.copy()) for T, T_d in pairs])
    return np.asarray(np.linalg.norm(left.reshape(k, j, 2, 3), axis=-1))


def _singular_values(robot: RobotModel, q: Array, weight: float) -> Array:
    """Compute singular values (k, r) in falling order, without those that always vanish."""
    J = robot.jacobian(q)
    rows = np.tile([1.0] * 3 + [weight] * 3, len(robot.tips))
    s = np.asarray(np.linalg.svd(rows[:, None] * J, compute_uv=False), np.float64)
    return s[:, : max(1, int((s.max(axis=0) > VANISHING).sum()))]


def _error_panel(
    axes: Axes, t: Array, errors: Array, quantity: tuple[str, str], tips: tuple[str, ...]
) -> None:
    """Draw a line for each tip."""
    title, unit = quantity
    for i, (tip, error) in enumerate(zip(tips, errors.T, strict=True)):
        axes.plot(t, above_zero(error), linewidth=1.6, label=tip, **series_look(i))
    greatest, last = errors.max(), errors[-1].max()
    panel_title(axes, title, f"greatest {scaled(greatest, unit)}, at the end {scaled(last, unit)}")
    if len(tips) > 1:
        axes.legend(frameon=False, fontsize=8)
    _finish(axes, t, errors, f"{title} [{unit}]")


def _panel(axes: Axes, t: Array, values: Array, label: str) -> None:
    axes.plot(t, above_zero(values), color=GREEN, linewidth=1.6)
    _finish(axes, t, values, label)


def _finish(axes: Axes, t: Array, values: Array, label: str) -> None:
    plain(axes, y=label)
    show_times(axes, t)
    log_axis(axes, values)
    if not (values > 0.0).any():
        axes.text(0.5, 0.5, "0 throughout", transform=axes.transAxes, ha="center", color=GREEN)
        axes.set_yticks([])


def _at(t: Array, values: Array, which: Callable[[Array], Any]) -> str:
    """Say an extreme value and its time."""
    i = int(which(values))
    return f"{short(values[i])} at {short(t[i], 3)} s"
