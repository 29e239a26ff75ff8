# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Draw the activation of joints near their limits, and its continuity."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from concept_pictures.plane import REACH, arm
from dls_ik import Stepper, Task
from dls_ik.core.limits import activation as h
from dls_ik.core.types import Array
from dls_ik.plot.canvas import BLUE, ORANGE, PALE, RED, new_figure, plain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MARGIN = 0.2


def activation() -> Figure:
    """Draw h over the range of a joint, and a step while a joint enters its margin."""
    figure = new_figure(9.0, 3.4)
    left, right = figure.subplots(1, 2)
    q = np.linspace(-1.05, 1.05, 421)
    for margin, color in ((0.05, BLUE), (0.1, ORANGE), (MARGIN, RED)):
        values = [h(value, -1.0, 1.0, margin) for value in q]
        left.plot(q, values, color=color, linewidth=1.8, label=f"margin {margin:g}")
    left.axvspan(-1.05, -1.0, color=PALE)
    left.axvspan(1.0, 1.05, color=PALE)
    left.set_xlim(-1.05, 1.05)
    left.set_xticks([-1.0, 0.0, 1.0], ["lower limit", "mid-range", "upper limit"])
    left.set_title("activation h: 0 free, 1 held", fontsize=10, loc="left")
    left.legend(fontsize=9, frameon=False, loc="center")
    plain(left)
    elbows = REACH * np.linspace(0.5, 1.0, 301)
    for method, color in (("tp", RED), ("ctp", BLUE)):
        right.plot(elbows, steps(method, elbows), color=color, linewidth=1.8, label=method)
    right.axvline(REACH * (1.0 - 2.0 * MARGIN), color=PALE, linewidth=1.0, zorder=0)
    right.text(REACH * (1.0 - 2.0 * MARGIN) - 0.02, -1.0, "margin begins", fontsize=8, ha="right")
    right.set_xlabel("joint 2 [rad]; its limit at the right edge", fontsize=9)
    right.set_title("step of joint 3 [rad], as joint 2 nears its limit", fontsize=10, loc="left")
    right.legend(fontsize=9, frameon=False)
    plain(right)
    return figure


def steps(method: str, elbows: Array) -> list[float]:
    """Return the step of the last joint [rad] for the same small error, at each joint 2."""
    robot, found = arm(1.0, 0.8, 0.6), []
    for elbow in elbows:
        q = np.array([-0.4, elbow, -0.9])
        T = robot.fk(q)
        T[:2, 3] += 0.05 * T[:2, 0]
        stepper = Stepper(robot, method, q, task=Task("xy", ""), margin=MARGIN, mu=0.0)
        found.append(float(stepper.step(T)[2]))
    return found
