# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Panel for the redundancy of the arms: levels, their targets, and frozen joints."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from functools import partial
from html import escape
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.solver.stack_labels import level_label
from dls_ik.text import short
from dls_ik.viewer.inputs import Input
from dls_ik.viewer.panels import DEG, DIMMED, MM, STEP_SIZES, RefusalLine
from dls_ik.viewer.redundancy import Redundancy, level_names, new_level
from dls_ik.viewer.session import Session

ADD_LEVEL = "a level ..."
UP, DOWN, REMOVE_LEVEL = "Up", "Down", "Remove"
LEVEL_TEXT = (
    "<div style='padding:6px 12px 0;font-size:12.5px;line-height:1.35'><b>{number}. {label}</b>"
    f"<span style='color:{DIMMED}'>{{error}}</span></div>"
)
LEVELS_NOTE = (
    f"<div style='padding:0 12px 6px;font-size:12.5px;line-height:1.35;color:{DIMMED}'>"
    "A level never disturbs the levels above it. Bare steps ignore levels and frozen joints."
    "</div>"
)
MAX_SWIVEL = 180.0  # [deg]
SHOWN_AS_REACHED = 1e-6  # largest scaled error of a level that the page shows as reached


class RedundancyPanel:
    """Panel with the levels below the task of the tip, their targets, and the frozen joints."""

    def __init__(self, server: Any, session: Session) -> None:
        self._server, self._session = server, session
        self._lock = threading.Lock()  # held while an entered value is handled
        gui, robot = server.gui, session.robot
        self._q = np.zeros(robot.n)  # (n,) [rad or m] latest joint positions
        self._rows: list[_LevelRow] = []
        self._inputs: list[Input] = []
        given = session.redundancy
        with gui.add_folder("Redundancy", expand_by_default=False, visible=given is not None):
            self._refusal = RefusalLine(gui)
            gui.add_html(LEVELS_NOTE)
            self._levels = gui.add_folder("Levels")
            with self._levels:
                self._first = gui.add_html(LEVEL_TEXT.format(number=1, label="target", error=""))
            adding = gui.add_dropdown("Add", (ADD_LEVEL, *level_names(robot)))
            self._inputs.append(Input(server, adding, lambda: ADD_LEVEL, self._add))
            self._swivel = gui.add_slider(
                f"Swivel angle [{DEG}]",
                min=-MAX_SWIVEL,
                max=MAX_SWIVEL,
                step=1.0,
                initial_value=0.0,
                visible=False,
                hint="angle of the elbow about the line from the shoulder to the wrist",
            )
            self._inputs.append(
                Input(server, self._swivel, self._swivel_angle, self._set_swivel, 0.6)
            )
            self._posture = gui.add_folder("Posture", expand_by_default=False, visible=False)
            self._sliders = self._add_posture()
            with gui.add_folder("Frozen joints", expand_by_default=False):
                for name in robot.joint_names:
                    box = gui.add_checkbox(name, False)
                    is_frozen, freeze = partial(self._is_frozen, name), partial(self._freeze, name)
                    self._inputs.append(Input(server, box, is_frozen, freeze))

    def update(self, q: Array) -> None:
        """Show the levels with the errors of the first arm, whose joint positions are q (n,)."""
        wanted = self._session.redundancy
        if wanted is None:
            return
        self._q = q
        errors = self._session.sources[0].level_errors
        self._show_text(self._first, 1, "target", errors[0] if errors else math.nan)
        while len(self._rows) < len(wanted.levels):
            with self._levels:
                self._rows.append(_LevelRow(self._server.gui, len(self._rows), self._click))
        for k, row in enumerate(self._rows):
            row.set_visible(k < len(wanted.levels))
            if k < len(wanted.levels):
                error = errors[k + 1] if k + 1 < len(errors) else math.nan
                self._show_text(row.text, k + 2, level_label(wanted.levels[k]), error)
        self._swivel.visible = wanted.swivel is not None
        posture = wanted.posture(self._session.robot.joint_names)
        self._posture.visible = bool(posture)
        for name, slider in self._sliders.items():
            slider.visible = name in posture
        for each in self._inputs:
            each.update()

    def _show_text(self, text: Any, number: int, label: str, error: float) -> None:
        """Show the text of a level; an error that is NaN is not shown."""
        shown = "" if math.isnan(error) else f" &nbsp;{short(error)} off"
        if error <= SHOWN_AS_REACHED:
            shown = " &nbsp;reached"
        content = LEVEL_TEXT.format(number=number, label=escape(label), error=shown)
        if content != text.content:
            text.content = content

    def _add_posture(self) -> dict[str, Any]:
        """Add a button and a slider for each joint of a posture, and return the sliders by name."""
        gui, robot, sliders = self._server.gui, self._session.robot, dict[str, Any]()
        lower, upper = robot.finite_limits()
        with self._posture:
            button = gui.add_button("Use the current joints", color="gray")
            button.on_click(lambda _: self._use_current())
            for j, name in enumerate(robot.joint_names):
                unit = MM if robot.units[j] == "m" else DEG
                low, high = self._scale(j) * lower[j], self._scale(j) * upper[j]
                slider = gui.add_slider(
                    f"{name} [{unit}] ",
                    min=round(float(low), 1),
                    max=round(float(max(high, low + STEP_SIZES[unit])), 1),
                    step=STEP_SIZES[unit],
                    initial_value=round(float(low), 1),
                    visible=False,
                )
                sliders[name] = slider
                show, change = partial(self._posture_value, j), partial(self._set_posture, j)
                self._inputs.append(
                    Input(self._server, slider, show, change, 0.6 * STEP_SIZES[unit])
                )
        return sliders

    def _scale(self, j: int) -> float:
        """Return the factor from [rad or m] to the displayed unit of a joint."""
        return 1e3 if self._session.robot.units[j] == "m" else 180.0 / math.pi

    def _swivel_angle(self) -> float | None:
        wanted = self._session.redundancy
        angle = None if wanted is None else wanted.swivel
        return None if angle is None else round(math.degrees(angle), 1)

    def _posture_value(self, j: int) -> float | None:
        """Return the displayed position of a joint in the posture, or None without one."""
        wanted, names = self._session.redundancy, self._session.robot.joint_names
        value = None if wanted is None else wanted.posture(names).get(names[j])
        return None if value is None else round(value * self._scale(j), 1)

    def _is_frozen(self, name: str) -> bool:
        wanted = self._session.redundancy
        return wanted is not None and name in wanted.frozen

    # Changes by a person

    def _change(self, change: Callable[[Redundancy], Redundancy]) -> None:
        """Change the redundancy settings of the arms; if they are refused, show the reason."""
        with self._lock, self._refusal.shown():
            wanted = self._session.redundancy
            if wanted is not None:
                self._session.set_redundancy(change(wanted))

    def _add(self, name: str) -> None:
        if name != ADD_LEVEL:
            now = self._session.robot.named(self._q)
            self._change(lambda wanted: wanted.with_level(new_level(name, now)))

    def _click(self, index: int, action: str) -> None:
        if action == REMOVE_LEVEL:
            self._change(lambda wanted: wanted.without_level(index))
        else:
            self._change(lambda wanted: wanted.moved(index, 1 if action == DOWN else -1))

    def _set_swivel(self, angle: float) -> None:
        self._change(lambda wanted: wanted.with_swivel(math.radians(angle)))

    def _set_posture(self, j: int, value: float) -> None:
        names = self._session.robot.joint_names
        position = {names[j]: value / self._scale(j)}
        self._change(lambda wanted: wanted.with_posture(position, names))

    def _use_current(self) -> None:
        robot = self._session.robot
        now = robot.named(self._session.joint_values)
        self._change(lambda wanted: wanted.with_posture(now, robot.joint_names))

    def _freeze(self, name: str, is_frozen: bool) -> None:
        self._change(lambda wanted: wanted.with_frozen(name, is_frozen))


class _LevelRow:
    """Text of a level, and buttons that move the level up and down or remove it.

    Rows are hidden and reused, never removed, see
    :class:`dls_ik.viewer.method_panel.ParameterWidgets`.
    """

    def __init__(self, gui: Any, index: int, clicked: Callable[[int, str], None]) -> None:
        self.text = gui.add_html("")
        self._buttons = gui.add_button_group("", (UP, DOWN, REMOVE_LEVEL))
        self._buttons.on_click(lambda event: clicked(index, event.target.value))

    def set_visible(self, is_visible: bool) -> None:
        """Show or hide the row."""
        if self.text.visible != is_visible:
            self.text.visible = self._buttons.visible = is_visible
