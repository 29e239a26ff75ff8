# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Panels of the page: status, presets, controls, joints and target."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from html import escape
from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.rotations import rotation_from_rpy, rpy_from_rotation, transform
from dls_ik.servo.state import ServoState
from dls_ik.viewer.gains import CurrentGains
from dls_ik.viewer.inputs import Input
from dls_ik.viewer.plots import ARM_COLOURS, LETTERS, css
from dls_ik.viewer.presets import Preset
from dls_ik.viewer.session import MAX_ARMS, ArmView, Session
from dls_ik.viewer.source import Sample

DIMMED = "var(--mantine-color-dimmed)"  # text colour of viser's light or dark theme
STATUS = (
    "<div style='padding:6px 12px 2px;font-size:12.5px;line-height:1.35'>{notes}"
    "<div style='min-height:{height}px'>{text}</div></div>"
)
ARM_STATUS = (
    "<div style='display:flex;gap:7px;min-height:36px'>"
    "<span style='flex:none;width:11px;height:11px;border-radius:6px;margin-top:3px;"
    "background:{colour}'></span><span style='min-width:0'><b>{letter}: {name}</b>{errors}"
    "<div style='color:{dimmed};{clip}' title='{message}'>{message}</div></span></div>"
)
# Style that cuts a message after one line; the page shows all of it while the mouse is over it
ONE_LINE = "white-space:nowrap;overflow:hidden;text-overflow:ellipsis"
# Minimum heights [px] of the status line. The larger one is used when arms can be added, so that
# the widgets below the status line do not move.
ALL_ARMS_HEIGHT, ONE_ARM_HEIGHT = 36 * MAX_ARMS, 54
HINT = (
    f"<div style='color:{DIMMED};margin-top:12px'>Drag the arrows, squares and arcs of the target. "
    "A preset moves the target and compares methods; methods B to D add arms.</div>"
)
SHARED_VIEW = (
    "<div style='margin-bottom:4px'><b>Shared view:</b> {} browsers are connected; all show and "
    "control the same arms.</div>"
)
NOTE = "<div style='color:light-dark(#92400e,#fbbf24);margin-bottom:4px'>{}</div>"
REFUSAL = (
    "<div style='margin:2px 10px 6px;padding:5px 8px;border-radius:4px;font-size:12px;"
    "background:#fee2e2;color:#991b1b'>{}</div>"
)


class StatusLine:
    """Text on the page that describes the state of the arms.

    Args:
        note: Text above the state of the arms, such as the names of missing meshes.
        unit: Unit of the joint speeds.
        num_clients: Returns the number of browsers that show the page.
    """

    def __init__(
        self,
        gui: Any,
        note: str = "",
        unit: str = "rad/s",
        num_clients: Callable[[], int] = lambda: 1,
    ) -> None:
        self._unit, self._num_clients = unit, num_clients
        self._height = ONE_ARM_HEIGHT
        self._note = NOTE.format(escape(note)) if note else ""
        self._html = gui.add_html("")
        self.say("starting ...")

    def say(self, message: str) -> None:
        """Show a message instead of the state of the arms."""
        self._show(escape(message))

    def reserve(self) -> None:
        """Make the status line high enough for MAX_ARMS arms from the next update on."""
        self._height = ALL_ARMS_HEIGHT

    def show(self, views: Sequence[ArmView]) -> None:
        """Show the name, the errors and the message of each arm.

        If several browsers show the page, add a note about this.

        Args:
            views: States of the arms.
        """
        clip = "" if len(views) < 3 else ONE_LINE
        status = [_arm_status(i, view, self._unit, clip) for i, view in enumerate(views)]
        if len(views) == 1 and self._height == ALL_ARMS_HEIGHT:
            status.append(HINT)
        self._show("".join(status))

    def _show(self, content: str) -> None:
        count = self._num_clients()
        notes = self._note + (SHARED_VIEW.format(count) if count > 1 else "")
        html = STATUS.format(notes=notes, text=content, height=self._height)
        if html != self._html.content:
            self._html.content = html


MIN_SHOWN_SPEED = 0.05  # [rad/s or m/s] smaller peak speeds are not shown


def _arm_status(i: int, view: ArmView, unit: str, clip: str) -> str:
    distance, angle = view.sample.position_error, np.degrees(view.sample.rotation_error)
    found = []
    if np.isfinite(distance):
        found.append(f"{distance:.2f} m" if distance >= 1.0 else f"{1000.0 * distance:.1f} mm")
    if np.isfinite(angle):
        found.append(f"{angle:.2f}&deg;")
    peak = f"; fastest joint up to {view.peak:.1f} {unit}" if view.peak > MIN_SHOWN_SPEED else ""
    return ARM_STATUS.format(
        clip=clip,
        colour=css(ARM_COLOURS[i]),
        dimmed=DIMMED,
        letter=LETTERS[i],
        name=escape(view.name),
        errors=f" &nbsp;{', '.join(found)} off" if found else "",
        message=escape(view.sample.message) + peak,
    )


class RefusalLine:
    """Line of text that appears if the program rejects an action of a person."""

    def __init__(self, gui: Any) -> None:
        self._line = gui.add_html("", visible=False)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the message of a DlsIkError raised in a ``with`` block; otherwise hide the line."""
        try:
            yield
        except DlsIkError as error:
            self._line.content = REFUSAL.format(escape(str(error)))
            self._line.visible = True
        else:
            self._line.visible = False


# HTML of a grid with one cell, which contains the texts of all presets; all but one are invisible.
# The cell has the height of the longest text, so that widgets below do not move when a preset
# starts.
WATCH = "<div style='display:grid;padding:0 12px 6px;font-size:12.5px;line-height:1.35'>{}</div>"
VISIBLE_TEXT = "<div style='grid-area:1/1'>{}</div>"
INVISIBLE_TEXT = "<div style='grid-area:1/1;visibility:hidden'>{}</div>"
WATCH_TEXT = "<b>Watch:</b> {}"
BLOCKED_HTML = (
    " <b>Blocked:</b> {} and {} would collide, because the path was computed without obstacles. "
    "The arms stop before a collision."
)
NO_PRESET = "A preset moves the target; this line will describe what to watch."


class PresetPanel:
    """Panel with a button for each preset, and a button that stops the running preset.

    Args:
        started: Called when a preset has started.
    """

    def __init__(
        self, gui: Any, session: Session, presets: Sequence[Preset], started: Callable[[], None]
    ) -> None:
        self._session, self._started, self._all = session, started, presets
        self._shown: Preset | None = None
        with gui.add_folder("Presets", visible=bool(presets)):
            self._refusal = RefusalLine(gui)
            for preset in presets:
                button = gui.add_button(preset.title, color="gray")
                button.on_click(lambda _, preset=preset: self._play(preset))
            self._watch = gui.add_html(self._texts(NO_PRESET))
            self._stop = gui.add_button("Stop", disabled=True)
            self._stop.on_click(lambda _: session.stop_preset())

    def update(self) -> None:
        """Describe the running preset, and say whether an obstacle blocks its path."""
        preset = self._session.preset
        if preset is self._shown:
            return
        self._shown = preset
        self._stop.disabled = preset is None
        text = NO_PRESET
        if preset is not None:
            text = WATCH_TEXT.format(escape(preset.watch))
            pair = self._session.in_the_way(preset)
            if pair is not None:
                text += BLOCKED_HTML.format(*map(escape, pair))
        self._watch.content = self._texts(text)

    def _texts(self, shown: str) -> str:
        """Return HTML that shows the text `shown`, and is high enough for each preset's text."""
        others = [WATCH_TEXT.format(escape(preset.watch)) for preset in self._all]
        hidden = "".join(map(INVISIBLE_TEXT.format, others))
        return WATCH.format(VISIBLE_TEXT.format(shown) + hidden)

    def _play(self, preset: Preset) -> None:
        with self._refusal.shown():
            self._session.play(preset)
            self._started()
            self.update()


# Table of gains in the tab "Conditioning" of the page

GAIN_TABLE = (
    "<div style='padding:8px 12px 4px;font-size:12px;line-height:1.4'>"
    "<b>Gains at the configuration of A</b>"
    "<table style='width:100%;border-collapse:collapse;text-align:right;"
    "font-variant-numeric:tabular-nums'>{rows}</table>"
    f"<div style='color:{DIMMED};margin-top:4px'>{{note}}</div></div>"
)
HEAD_CELL = (
    "<th style='font-weight:600;padding-left:6px;vertical-align:bottom;overflow-wrap:anywhere;"
    "border-bottom:2px solid {colour}'>{text}</th>"
)
NUMBER_CELL = "<td style='padding-left:6px'>{:#.3g}</td>"
GAIN_NOTE = (
    "Gain of one step of the method: joint motion along the right singular vector v<sub>i</sub>, "
    "divided by an error of {size:.3g} mm along the left singular vector u<sub>i</sub> (1 rad "
    "counts as 0.5 m). The pseudoinverse has the gain 1/s."
)
NO_GAIN_NOTE = "1 rad counts as 0.5 m. The gains of the methods are not known."


class GainTable:
    """Table of singular values, and of the gains of each arm's method in the singular directions.

    See :func:`dls_ik.viewer.gains.directional_gains`.
    """

    def __init__(self, gui: Any) -> None:
        self._html = gui.add_html("")

    def show(self, current: CurrentGains) -> None:
        """Show the given singular values and the gains of each arm's method."""
        content = gain_table(current)
        if content != self._html.content:
            self._html.content = content


def gain_table(current: CurrentGains) -> str:
    """Return an HTML table with a row for each singular direction.

    The columns are the singular value, and the gain of each arm's method in this direction (see
    :func:`dls_ik.viewer.gains.directional_gains`).
    """
    names, columns = [HEAD_CELL.format(colour="transparent", text="s [m/rad]")], [current.s]
    for letter, colour, arm in zip(LETTERS, ARM_COLOURS, current.arms, strict=False):
        if arm.gain is not None:
            text = f"{letter} {escape(arm.name)}"
            names.append(HEAD_CELL.format(colour=css(colour), text=text))
            columns.append(arm.gain)
    rows = ["".join(names)]
    rows += ["".join(map(NUMBER_CELL.format, row)) for row in zip(*columns, strict=True)]
    table = "".join(f"<tr>{row}</tr>" for row in rows)
    note = GAIN_NOTE.format(size=1e3 * current.size) if len(columns) > 1 else NO_GAIN_NOTE
    return GAIN_TABLE.format(rows=table, note=note)


# Controls

PAUSE, RESUME = "Pause", "Resume"
SPEEDS = {"real time": 1.0, "1/2": 0.5, "1/5": 0.2, "1/20": 0.05}


class ControlPanel:
    """Panel to reset and pause the arms, and to slow down arms that are simulated in this process.

    Args:
        cleared: Called after a reset.
    """

    def __init__(self, server: Any, session: Session, cleared: Callable[[], None]) -> None:
        self._session, self._cleared = session, cleared
        gui = server.gui
        self._refusal = RefusalLine(gui)
        self._speed: Input | None = None
        if not session.is_remote:
            speed = gui.add_dropdown("Speed", tuple(SPEEDS))
            self._speed = Input(server, speed, self._speed_name, self._set_speed)
        self._buttons = gui.add_button_group("", (PAUSE, "Reset"))
        self._buttons.on_click(self._click)
        self._is_paused = False

    def update(self, views: Sequence[ArmView]) -> None:
        """Show the speed of the clock; label the pause button as a resume button while paused."""
        if self._speed is not None:
            self._speed.update()
        states = [view.sample.state == ServoState.PAUSED.name for view in views]
        self._is_paused = self._session.is_paused or any(states)
        labels = (RESUME if self._is_paused else PAUSE, "Reset")
        if tuple(self._buttons.options) != labels:
            self._buttons.options = labels

    def _speed_name(self) -> str | None:
        """Return the list entry for the speed of the session, or None if there is no such entry."""
        return next((name for name, x in SPEEDS.items() if x == self._session.speed), None)

    def _set_speed(self, name: str) -> None:
        self._session.speed = SPEEDS[name]

    def _click(self, event: Any) -> None:
        with self._refusal.shown():
            if event.target.value == "Reset":
                self._session.reset()
                self._cleared()
            else:
                self._session.pause(not self._is_paused)


# Numbers that a person enters: joint sliders, and the pose of the target

DEG, MM = "deg", "mm"
STEP_SIZES = {DEG: 0.1, MM: 0.1}


class JointPanel:
    """Panel with a slider for each joint, which places all arms and the target without motion."""

    def __init__(self, server: Any, session: Session) -> None:
        self._session = session
        gui, robot = server.gui, session.robot
        self._scale = np.array([1e3 if unit == "m" else 180.0 / np.pi for unit in robot.units])
        self._sliders: list[Input] = []
        self._lock = threading.Lock()  # held while an entered value is handled
        lower, upper = robot.finite_limits()
        self._q = lower.copy()  # (n,) [rad or m] displayed joint positions
        can_place = session.sources[0].can_place
        with gui.add_folder("Move joints", expand_by_default=False, visible=can_place):
            self._refusal = RefusalLine(gui)
            for j, name in enumerate(robot.joint_names):
                unit = MM if robot.units[j] == "m" else DEG
                low = np.ceil(lower[j] * self._scale[j] / STEP_SIZES[unit]) * STEP_SIZES[unit]
                high = np.floor(upper[j] * self._scale[j] / STEP_SIZES[unit]) * STEP_SIZES[unit]
                slider = gui.add_slider(
                    f"{name} [{unit}]",
                    min=round(float(low), 1),
                    max=round(float(max(high, low + STEP_SIZES[unit])), 1),
                    step=STEP_SIZES[unit],
                    initial_value=round(float(low), 1),
                    disabled=bool(high <= low),
                )
                show, move = partial(self._shown_value, j, slider), partial(self._move, j)
                self._sliders.append(Input(server, slider, show, move, 0.6 * STEP_SIZES[unit]))

    def update(self, q: Array) -> None:
        """Show the joint positions q (n,) [rad or m] of the first arm."""
        self._q = q
        for slider in self._sliders:
            slider.update()

    def _shown_value(self, j: int, slider: Any) -> float:
        value = float(np.clip(self._q[j] * self._scale[j], slider.min, slider.max))
        return round(value, 1)

    def _move(self, j: int, value: float) -> None:
        with self._lock, self._refusal.shown():
            q = self._session.joint_values
            q[j] = value / self._scale[j]
            self._session.place(q)
            self._q = q


class TargetPanel:
    """Panel with the target of each tip in numbers: position [mm], and roll, pitch, yaw [deg]."""

    def __init__(self, server: Any, session: Session) -> None:
        self._session = session
        gui, robot = server.gui, session.robot
        k = len(robot.tips)
        self._Ts = [np.eye(4)] * k  # displayed targets T_base_tip
        self._xyz: list[Numbers] = [(0.0, 0.0, 0.0)] * k  # [mm]
        self._rpy: list[Numbers] = [(0.0, 0.0, 0.0)] * k  # [deg]
        self._fields: list[Input] = []
        with gui.add_folder("Target in numbers", expand_by_default=False):
            self._refusal = RefusalLine(gui)
            for i, tip in enumerate(robot.tips):
                of = f" {tip}" if k > 1 else ""
                xyz = gui.add_vector3(f"xyz{of} [mm]", (0.0, 0.0, 0.0), step=0.1)
                hint = "R = Rz(yaw) Ry(pitch) Rx(roll), in the base frame"
                rpy = gui.add_vector3(f"rpy{of} [deg]", (0.0, 0.0, 0.0), step=0.1, hint=hint)
                self._add(server, xyz, self._xyz, i, _with_position)
                self._add(server, rpy, self._rpy, i, _with_rpy)

    def update(self, sample: Sample) -> None:
        """Show the target of each tip, or the pose of the tip if there is no target."""
        Ts = sample.T_tip if sample.T_target is None else sample.T_target
        for i, T in enumerate(Ts.reshape(-1, 4, 4)):
            if np.abs(T - self._Ts[i]).max() >= MIN_SHOWN_POSE_CHANGE:
                self._Ts[i] = T
                self._xyz[i] = _numbers(1e3 * T[:3, 3], 1)
                self._rpy[i] = _numbers(np.degrees(rpy_from_rotation(T[:3, :3])), 2)
        for field in self._fields:
            field.update()

    def _add(
        self,
        server: Any,
        handle: Any,
        shown: list[Numbers],
        i: int,
        moved: Callable[[Array, Numbers], Array],
    ) -> None:
        """Register a field of three numbers that shows and changes the target of one tip.

        Args:
            server: Server of viser.
            handle: Widget with the numbers.
            shown: Displayed numbers of each tip.
            i: Index of the tip.
            moved: Returns the target (4, 4) with the entered numbers, given the current target.
        """

        def change(given: Numbers) -> None:
            shown[i] = given  # show the entered angles, not other angles of the same rotation
            self._Ts[i] = T = moved(self._target(i), given)
            with self._refusal.shown():
                self._session.drag_target(T, i)

        self._fields.append(Input(server, handle, lambda: shown[i], change))

    def _target(self, i: int) -> Array:
        """Return the target (4, 4) of tip i; without a target, return the displayed pose."""
        target = None if self._session.is_remote else self._session.target
        return self._Ts[i] if target is None else target.reshape(-1, 4, 4)[i]


Numbers = tuple[float, ...]
# Smaller changes of the entries of a pose (4, 4) are not shown; positions are in [m]
MIN_SHOWN_POSE_CHANGE = 1e-6


def _numbers(values: Array, digits: int) -> Numbers:
    return tuple(np.round(values, digits).tolist())


def _with_position(T: Array, xyz: Numbers) -> Array:
    """Return a copy of the pose T (4, 4) with the position xyz [mm]."""
    return transform(T[:3, :3], 1e-3 * np.array(xyz))


def _with_rpy(T: Array, rpy: Numbers) -> Array:
    """Return a copy of the pose T (4, 4) with the orientation roll, pitch, yaw [deg]."""
    return transform(rotation_from_rpy(*np.radians(rpy).tolist()), T[:3, 3])
