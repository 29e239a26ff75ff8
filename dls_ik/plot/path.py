# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Picture of a path of poses in space, with obstacles, reconfigurations and missed poses."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array, Flags
from dls_ik.errors import PoseError
from dls_ik.model.rotations import inverse
from dls_ik.plot.arm import AXES, arm_points, draw_arms, fading, instants, space_axes
from dls_ik.plot.canvas import (
    BLACK,
    BLUE,
    ORANGE,
    PURPLE,
    RED,
    heading,
    legend_below,
    new_figure,
    panel_title,
    plain,
)
from dls_ik.plot.scene import draw_faces, placed_faces

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.solver.result import IkPathResult

NUM_ARMS = 8  # number of configurations of the arm that are drawn
FROM_ABOVE = 0, 1, "from above"
SIDES = (0, 2, "from the side"), (1, 2, "from the front")
OBSTACLE = "#F3E2BE"  # colour of obstacles in the projections
MIN_PATH_EXTENT = 0.05  # [m] minimum extent of the path in the projections
MIN_SHAPE = 0.6  # minimum ratio of the shorter to the longer side of a projection
TITLE_WIDTH = 80  # characters of a line of the title


def path_in_space(
    path: IkPathResult,
    poses: ArrayLike,
    scene: PlanningScene | None = None,
    title: str = "",
) -> Figure:
    """Draw a solved path of poses in 3D and in two projections, with the obstacles of a scene.

    Missed poses are marked by crosses. Reconfigurations are numbered, and marked at the first pose
    after each of them.

    Args:
        path: Result of :meth:`dls_ik.IkSolver.solve_path`.
        poses: (b, 4, 4) poses of the path, or (b, k, 4, 4) for k tips [m].
        scene: Scene whose objects are drawn; None: no objects.
        title: Title of the picture; by default :func:`path_title`.

    Raises:
        PoseError: If the poses do not fit the path.
        DlsIkError: If matplotlib is not installed.
    """
    robot, q = path.robot, np.asarray(path.q, float)
    T = np.asarray(poses, float).reshape(-1, len(robot.tips), 4, 4)
    if len(T) != len(q) or len(T) < 2:
        raise PoseError(f"a path of {len(q)} configurations needs as many poses; got {len(T)}")
    tips = robot.fk(q).reshape(T.shape)[..., :3, 3]  # (b, k, 3)
    marks = [each.pose for each in path.reconfigurations]
    figure = new_figure(11.0, 6.6)
    grid = figure.add_gridspec(2, 2, width_ratios=(1.25, 1.0))
    space: Any = figure.add_subplot(grid[:, 0], projection="3d", computed_zorder=False)
    T_base_root = inverse(robot.tree.pose(robot.base, robot.named(q[0])))
    flat = [] if scene is None else placed_faces(scene, T_base_root)
    if flat:
        draw_faces(space, flat)
    chosen = instants(np.arange(len(q), dtype=float), NUM_ARMS)
    colours = fading(chosen / (len(q) - 1.0))
    for arm in arm_points(robot, q[chosen]):
        draw_arms(space, arm, colours, 1.6)
    _draw_paths(space, T[..., :3, 3], tips, marks, ~path.success, [0, 1, 2])
    space_axes(space)
    panel_title(space, f"{robot.name}, from pale (start) to dark (end)")
    side = SIDES[int(np.ptp(T[..., 1, 3]) > np.ptp(T[..., 0, 3]))]
    for row, (i, j, view) in enumerate((FROM_ABOVE, side)):
        axes: Any = figure.add_subplot(grid[row, 1])
        handles = _draw_paths(axes, T[..., :3, 3], tips, marks, ~path.success, [i, j])
        _show_surroundings(axes, T[..., :3, 3].reshape(-1, 3)[:, [i, j]])
        _draw_silhouettes(axes, flat, [i, j])
        panel_title(axes, view)
        plain(axes, f"{AXES[i]} [m]", f"{AXES[j]} [m]")
    legend_below(figure, _with_obstacles(handles, flat), 6)
    heading(figure, title or path_title(path))
    return figure


def path_title(path: IkPathResult) -> str:
    """Return a title that tells how much of a path is reached, and why it is not complete."""
    breaks, missed = path.reconfigurations, np.flatnonzero(~path.success)
    parts = []
    if len(missed):
        parts.append(f"{len(missed)} of {len(path)} poses missed, the first is {missed[0]}")
        pair = path[int(missed[0])].pair_in_the_way
        status = path.statuses[int(missed[0])]
        parts.append(f"{' and '.join(pair)} would collide" if pair else status.explanation)
    if breaks:
        count = "1 reconfiguration" if len(breaks) == 1 else f"{len(breaks)} reconfigurations"
        at = ", ".join(str(each.pose) for each in breaks[:5]) + (", ..." if breaks[5:] else "")
        reason = f"after pose {breaks[0].last}, {breaks[0].explanation}"
        parts += [f"{count} (to {'pose' if len(breaks) == 1 else 'poses'} {at})", reason]
    explained = {each.pose for each in breaks}
    contacts = [i for i, each in enumerate(path.contacts) if each is not None]
    contacts = [i for i in contacts if i not in explained]
    if contacts and not len(missed):
        names = getattr(path.contacts[contacts[0]], "names", ())
        parts.append(f"{' and '.join(names)} would collide before pose {contacts[0]}")
    if not parts:
        parts = [f"all {len(path)} poses are reached without a reconfiguration"]
    text = "; ".join(parts)
    return "\n".join(textwrap.wrap(text[0].upper() + text[1:], TITLE_WIDTH))


def _draw_paths(
    axes: Any, goals: Array, tips: Array, marks: Sequence[int], missed: Flags, seen: list[int]
) -> list[Any]:
    """Draw the poses, the paths of the tips, reconfigurations and missed poses.

    Args:
        axes: Axes, 3D if `seen` has three entries.
        goals: (b, k, 3) positions to reach [m].
        tips: (b, k, 3) positions of the tips [m].
        marks: Numbers of the poses to which reconfigurations lead.
        missed: (b,) whether a pose is not reached.
        seen: Axes to draw: 0, 1 and 2 for x, y and z.

    Returns:
        Handles for the legend.
    """
    handles: list[Any] = []
    reached = np.where(missed[:, None, None], np.nan, tips)
    for k in range(goals.shape[1]):
        goal, tip = goals[:, k, seen], reached[:, k, seen]
        # The tip leaves the path during a reconfiguration
        tip = np.insert(tip, list(marks), np.nan, axis=0)
        handles += axes.plot(*goal.T, color=ORANGE, linewidth=4.5, zorder=10, label="poses")
        handles += axes.plot(*tip.T, color=BLUE, linewidth=1.4, zorder=11, label="tip")
        handles += axes.plot(
            *goal[:1].T, "o", color="white", markeredgecolor=BLACK, markersize=6, zorder=12,
            linestyle="none", label="start",
        )  # fmt: skip
        if missed.any():
            handles += axes.plot(
                *goal[missed].T, "x", color=RED, markersize=5, zorder=13, linestyle="none",
                label="missed",
            )  # fmt: skip
        if marks:
            handles += axes.plot(
                *goal[list(marks)].T, "D", color=PURPLE, markeredgecolor=BLACK, markersize=7,
                zorder=14, linestyle="none", label="reconfiguration",
            )  # fmt: skip
        for number, mark in enumerate(marks, 1):
            axes.text(*goal[mark], f"  {number}", fontsize=10, color=BLACK, zorder=15)
    return list({each.get_label(): each for each in reversed(handles)}.values())[::-1]


def _show_surroundings(axes: Any, points: Array) -> None:
    """Set equal scales that show points (m, 2) [m] and half of their extent around them."""
    low, high = points.min(axis=0), points.max(axis=0)
    extent = high - low
    half = 0.5 * np.maximum(extent, MIN_PATH_EXTENT) + 0.25 * max(extent.max(), MIN_PATH_EXTENT)
    half, middle = np.maximum(half, MIN_SHAPE * half.max()), 0.5 * (low + high)
    axes.set_xlim(middle[0] - half[0], middle[0] + half[0])
    axes.set_ylim(middle[1] - half[1], middle[1] + half[1])
    axes.set_aspect("equal", adjustable="box")
    axes.locator_params(nbins=6)


def _draw_silhouettes(axes: Any, flat: list[Array], seen: list[int]) -> None:
    """Draw faces (m, 3) [m] in a projection, without changing the range of the axes."""
    from matplotlib.collections import PolyCollection

    collection = PolyCollection(
        [face[:, seen] for face in flat], facecolors=OBSTACLE, edgecolors=OBSTACLE, zorder=0.5
    )
    axes.add_collection(collection, autolim=False)


def _with_obstacles(handles: list[Any], flat: list[Array]) -> list[Any]:
    """Return the handles of a legend, with one for obstacles if there are any."""
    from matplotlib.patches import Patch

    return [*handles, Patch(color=OBSTACLE, label="obstacle")] if flat else handles
