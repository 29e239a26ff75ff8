# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Draw planar arms: the error, the ellipse of the Jacobian, and the null space."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dls_ik import RobotModel, Stepper, Task
from dls_ik.core.types import Array
from dls_ik.model.dh import DhRow
from dls_ik.plot.canvas import BLUE, GREY, ORANGE, PALE, RED, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

REACH = 2.6  # [rad] of every joint, both ways


def arm(*lengths: float) -> RobotModel:
    """Return a planar chain of revolute joints with links of these lengths [m]."""
    return RobotModel.from_dh([DhRow(a=a, lower=-REACH, upper=REACH) for a in lengths])


def points(robot: RobotModel, q: Array) -> Array:
    """Return positions of the joints and the tip (n + 1, 2) [m]."""
    links = [*(f"{name}_link" for name in robot.joint_names), robot.tip]
    return np.array([robot.link_pose(link, q)[:2, 3] for link in links])


def draw_arm(axes: Axes, robot: RobotModel, q: Array, color: str, width: float = 3.0) -> None:
    """Draw links and joints."""
    at = points(robot, q)
    axes.plot(*at.T, color=color, linewidth=width, solid_capstyle="round", zorder=2)
    axes.plot(*at[:-1].T, "o", color="white", markeredgecolor=color, markersize=5, zorder=3)


def draw_frame(axes: Axes, T: Array, size: float = 0.25) -> None:
    """Draw the x axis of a pose in red, its y axis in blue."""
    for column, color in ((0, RED), (1, BLUE)):
        end = T[:2, 3] + size * T[:2, column]
        axes.annotate(
            "", end, T[:2, 3], arrowprops={"arrowstyle": "-|>", "color": color, "linewidth": 1.6}
        )


def bare(axes: Axes, title: str) -> None:
    """Set equal scales and a title, and hide the axes."""
    axes.set_aspect("equal")
    axes.set_axis_off()
    axes.set_title(title, fontsize=10, loc="left")


def error() -> Figure:
    """Draw the parts of the error, and its decrease."""
    robot = arm(1.0, 0.8, 0.5)
    q, goal = np.array([0.5, 0.7, -1.2]), np.array([1.2, 0.6, 0.6])
    T, T_d = robot.fk(q), robot.fk(goal)
    figure = new_figure(9.0, 3.6)
    left, right = figure.subplots(1, 2, width_ratios=(1.1, 1.0))
    draw_arm(left, robot, q, GREY)
    draw_arm(left, robot, goal, PALE)
    draw_frame(left, T)
    draw_frame(left, T_d)
    way = {"arrowstyle": "-|>", "color": ORANGE, "linewidth": 2.0, "linestyle": "--"}
    left.annotate("", T_d[:2, 3], T[:2, 3], arrowprops=way)
    left.text(*(0.5 * (T + T_d)[:2, 3] + (0.05, 0.05)), "dp", color=ORANGE)
    left.text(*(T[:2, 3] + (0.06, -0.16)), "T")
    left.text(*(T_d[:2, 3] + (0.14, 0.1)), "T_d")
    left.set_xlim(-0.7, 2.0)
    left.set_ylim(-0.1, 2.4)
    bare(left, "from T to T_d: a way dp [m] and a turn [rad]")
    task = Task("xy", "z")
    for method, color in (("jp", GREY), ("ed", BLUE), ("jt", RED)):
        trace = Stepper(robot, method, q, task=task).run(T_d, 40)
        sizes = np.maximum(np.linalg.norm(trace.error, axis=1), 1e-16)
        right.semilogy(sizes, color=color, linewidth=1.8, label=method)
    right.axhline(1e-6, color=ORANGE, linewidth=1.0, linestyle="--")
    right.set_ylim(1e-13, 5.0)
    right.set_xlabel("step", fontsize=9)
    right.set_title("norm of the error, step by step", fontsize=10, loc="left")
    right.legend(fontsize=9, frameon=False)
    plain(right)
    return figure


def singular() -> Figure:
    """Draw velocities of the tip for joint velocities of norm 1, from bent to stretched."""
    robot, task = arm(1.0, 0.8), Task("xy", "")
    figure = new_figure(9.0, 2.8)
    left, right = figure.subplots(1, 2, width_ratios=(1.9, 1.0))
    turn = np.linspace(0.0, 2.0 * np.pi, 121)
    for k, elbow in enumerate((1.6, 0.7, 0.0)):
        q = np.array([0.35, elbow])
        draw_arm(left, _Moved(robot, 2.3 * k), q, GREY)
        J = Stepper(robot, "jp", q, task=task).jacobian()
        ellipse = 0.35 * J @ np.stack([np.cos(turn), np.sin(turn)])
        tip = points(robot, q)[-1] + (2.3 * k, 0.0)
        left.fill(*(tip[:, None] + ellipse), color=BLUE, alpha=0.25)
        left.plot(*(tip[:, None] + ellipse), color=BLUE, linewidth=1.4)
        s = np.linalg.svd(J, compute_uv=False)
        left.text(2.3 * k, -0.4, f"s = {s[0]:.2f}, {s[1]:.2f}", fontsize=9, color=GREY)
    left.set_ylim(-0.5, 1.7)
    bare(left, "velocities of the tip for joint velocities of norm 1")
    elbows = np.linspace(-0.5, 1.6, 211)
    s = [_singular_values(robot, task, np.array([0.35, elbow])) for elbow in elbows]
    right.plot(elbows, s, linewidth=1.8)
    right.lines[0].set_color(BLUE)
    right.lines[1].set_color(RED)
    right.legend(right.lines, ["s_1", "s_2"], fontsize=9, frameon=False)
    right.set_xlabel("elbow [rad]; stretched at 0", fontsize=9)
    right.set_title("singular values", fontsize=10, loc="left")
    plain(right)
    return figure


def _singular_values(robot: RobotModel, task: Task, q: Array) -> Array:
    return np.linalg.svd(Stepper(robot, "jp", q, task=task).jacobian(), compute_uv=False)


class _Moved:
    """Draw an arm with its links moved along x by `by` [m]."""

    def __init__(self, robot: RobotModel, by: float) -> None:
        self._robot, self._by = robot, by
        self.joint_names, self.tip = robot.joint_names, robot.tip

    def link_pose(self, link: str, q: Array) -> Array:
        T = self._robot.link_pose(link, q).copy()
        T[0, 3] += self._by
        return T


def nullspace() -> Figure:
    """Draw motion in the null space toward less of an objective."""
    robot, task = arm(1.0, 0.8, 0.7), Task("xy", "")
    q = np.array([2.0, -1.9, 2.0])
    T = robot.fk(q)
    figure = new_figure(9.0, 3.4)
    left, right = figure.subplots(1, 2, width_ratios=(1.0, 1.1))
    stepper = Stepper(robot, "gp", q, task=task, objective="centring", mu=2.0)
    trace = stepper.run(T, 40)
    for k in (2, 5, 10):
        draw_arm(left, robot, trace.q[k], PALE, 2.0)
    draw_arm(left, robot, trace.q[0], RED)
    draw_arm(left, robot, trace.q[-1], BLUE)
    left.plot(*T[:2, 3], "*", color=ORANGE, markersize=13, zorder=4)
    bare(left, "the tip stays, the arm moves: red to blue")
    from_middle = np.linalg.norm(trace.q, axis=1)
    right.plot(from_middle, color=BLUE, linewidth=1.8, label="joints from mid-range [rad]")
    held = np.linalg.norm(trace.error, axis=1)
    right.plot(held, color=ORANGE, linewidth=1.8, label="error of the tip [m]")
    right.set_xlabel("step", fontsize=9)
    right.set_title("gp: the objective falls, the task is kept", fontsize=10, loc="left")
    right.legend(fontsize=9, frameon=False)
    plain(right)
    return figure
