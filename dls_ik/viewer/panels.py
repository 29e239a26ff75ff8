"""Panels of the page: status, methods and parameters, presets, controls, joints and target."""

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
from dls_ik.solver.plugins import plugin_names
from dls_ik.viewer.plots import ARM_COLOURS, LETTERS, css
from dls_ik.viewer.presets import Preset
from dls_ik.viewer.session import MAX_ARMS, ArmView, Session
from dls_ik.viewer.source import Sample, Source, TunableParameter, follower_names, slider_step

DIMMED = "var(--mantine-color-dimmed)"  # of viser's theme, light or dark
STATUS = "<div style='padding:6px 12px 2px;font-size:12.5px;line-height:1.35'>{}</div>"
ARM_STATUS = (
    "<div style='display:flex;gap:7px;min-height:{height}px'>"
    "<span style='flex:none;width:11px;height:11px;border-radius:6px;margin-top:3px;"
    "background:{colour}'></span><span><b>{letter}: {name}</b>{errors}<br>"
    "<span style='color:{dimmed}'>{message}</span></span></div>"
)
NOTE = "<div style='color:light-dark(#92400e,#fbbf24);margin-bottom:4px'>{}</div>"
REFUSAL = (
    "<div style='margin:2px 10px 6px;padding:5px 8px;border-radius:4px;font-size:12px;"
    "background:#fee2e2;color:#991b1b'>{}</div>"
)


class StatusLine:
    """Describes the arms in words.

    Args:
        note: one line above, such as which meshes are missing.
        unit: of the speed of joints.
    """

    def __init__(self, gui: Any, note: str = "", unit: str = "rad/s") -> None:
        self._unit = unit
        self._note = NOTE.format(escape(note)) if note else ""
        self._html = gui.add_html("")
        self.say("starting ...")

    def say(self, message: str) -> None:
        """Show a message in place of the arms."""
        self._show(escape(message))

    def show(self, views: Sequence[ArmView]) -> None:
        """Show the state of the arms."""
        height = 54 if len(views) < 3 else 36
        status = [_arm_status(i, view, self._unit, height) for i, view in enumerate(views)]
        self._show("".join(status))

    def _show(self, content: str) -> None:
        html = STATUS.format(self._note + content)
        if html != self._html.content:
            self._html.content = html


SLOW = 0.05  # [rad/s or m/s] slower peaks are not worth a word


def _arm_status(i: int, view: ArmView, unit: str, height: int) -> str:
    distance, angle = view.sample.position_error, np.degrees(view.sample.rotation_error)
    found = []
    if np.isfinite(distance):
        found.append(f"{distance:.2f} m" if distance >= 1.0 else f"{1000.0 * distance:.1f} mm")
    if np.isfinite(angle):
        found.append(f"{angle:.2f}&deg;")
    peak = f"; fastest joint up to {view.peak:.1f} {unit}" if view.peak > SLOW else ""
    return ARM_STATUS.format(
        height=height,
        colour=css(ARM_COLOURS[i]),
        dimmed=DIMMED,
        letter=LETTERS[i],
        name=escape(view.name),
        errors=f" &nbsp;{', '.join(found)} off" if found else "",
        message=escape(view.sample.message) + peak,
    )


class RefusalLine:
    """A line that appears when an action is refused."""

    def __init__(self, gui: Any) -> None:
        self._line = gui.add_html("", visible=False)

    @contextmanager
    def shown(self, undo: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Show why the action inside is refused and undo it in the page; hide the line if not."""
        try:
            yield
        except DlsIkError as error:
            self._line.content = REFUSAL.format(escape(str(error)))
            self._line.visible = True
            undo()
        else:
            self._line.visible = False


NO_METHOD = "none"
BARE_HINT = (
    "one step of the method every 10 ms, as in the papers: without the controller's limits of "
    "speed, its shorter steps, and its substitute where a method makes the error larger"
)


class MethodPanel:
    """Lists of methods for all arms, a switch for bare steps, and widgets for parameters.

    Args:
        changed: called after a change of a method or of the number of arms.
    """

    def __init__(self, gui: Any, session: Session, changed: Callable[[], None]) -> None:
        self._gui, self._session, self._changed = gui, session, changed
        self._lists: list[Any] = []
        self._was_current = True
        first = session.sources[0]
        with gui.add_folder("Methods"):
            self._refusal = RefusalLine(gui)
            if first.methods:
                self._add_list(0, tuple(first.methods))
            if session.can_compare:
                for arm in range(1, MAX_ARMS):
                    self._add_list(arm, (NO_METHOD, *follower_names()))
            is_switched = session.bare is not None
            self._bare = gui.add_checkbox(
                "Bare steps", bool(session.bare), hint=BARE_HINT, visible=is_switched
            )
            self._bare.on_update(self._set_bare)
            self._folder = gui.add_folder("Parameters", expand_by_default=False)
            self._parameters: list[ParameterWidgets] = []
        self.update()

    def update(self) -> None:
        """Show the methods and parameters of the session."""
        sources, shown = self._session.sources, self._shown_methods()
        if self._session.bare is not None and self._bare.value != self._session.bare:
            self._bare.value = self._session.bare
        own = plugin_names() if not sources[0].is_remote else ()
        for handle, method in zip(self._lists, shown, strict=False):
            fresh = [name for name in (*own, method) if name not in handle.options]
            if fresh:
                handle.options = (*handle.options, *dict.fromkeys(fresh))
            if handle.value != method:
                handle.value = method
        for widgets in self._parameters:
            widgets.remove()
        with self._folder:
            self._parameters = [
                ParameterWidgets(self._gui, source, letter, self._refusal)
                for letter, source in zip(LETTERS, sources, strict=False)
                if source.parameters
            ]
        self._folder.visible = bool(self._parameters)

    def _shown_methods(self) -> list[str]:
        """Return the value of each list."""
        sources = self._session.sources
        methods = [source.method for source in sources]
        methods += [NO_METHOD] * (MAX_ARMS - len(methods))
        return methods if sources[0].methods else methods[1:]

    def follow(self) -> None:
        """Show what others, or a plug-in that failed, changed; once it is seen twice.

        A change here comes back late.
        """
        was_current, self._was_current = self._was_current, self._is_current
        if not was_current and not self._was_current:
            self.update()

    @property
    def _is_current(self) -> bool:
        pairs = zip(self._lists, self._shown_methods(), strict=False)
        same = all(handle.value == method for handle, method in pairs)
        return same and all(widgets.is_current for widgets in self._parameters)

    def _add_list(self, arm: int, names: tuple[str, ...]) -> None:
        def change(event: Any) -> None:
            if event.client is not None:  # changed by a person
                with self._refusal.shown(self.update):
                    name = event.target.value
                    self._session.set_method(arm, None if name == NO_METHOD else name)
                    self.update()
                    self._changed()

        self._lists.append(self._gui.add_dropdown(f"Method {LETTERS[arm]}", names))
        self._lists[-1].on_update(change)

    def _set_bare(self, event: Any) -> None:
        if event.client is not None:
            with self._refusal.shown(self.update):
                self._session.set_bare(event.target.value)
                self.update()
                self._changed()


class ParameterWidgets:
    """A slider or list for each parameter of a source."""

    def __init__(self, gui: Any, source: Source, letter: str, refusal: RefusalLine) -> None:
        self._source, self._refusal = source, refusal
        self._shown = source.parameters
        self._handles: dict[str, Any] = {}
        for parameter in source.parameters:
            name = parameter.name
            label = f"{letter}: {name.rstrip('_').replace('_', ' ')}"
            self._handles[name] = _widget(gui, parameter, label)
            self._handles[name].on_update(partial(self._change, name))

    @property
    def is_current(self) -> bool:
        """True if only this page changed the parameters."""
        return self._shown == self._source.parameters

    def remove(self) -> None:
        """Remove the widgets from the page."""
        for handle in self._handles.values():
            handle.remove()

    def _change(self, name: str, event: Any) -> None:
        if event.client is not None:  # changed by a person
            with self._refusal.shown(self._restore):
                self._source.set_parameter(name, event.target.value)
                self._shown = self._source.parameters

    def _restore(self) -> None:
        """Show the values that the source has kept."""
        for parameter in self._source.parameters:
            handle = self._handles.get(parameter.name)
            if handle is not None and handle.value != parameter.value:
                handle.value = parameter.value


def _widget(gui: Any, parameter: TunableParameter, label: str) -> Any:
    hint = parameter.description + (f" [{parameter.unit}]" if parameter.unit else "")
    value, low, high = parameter.value, parameter.low, parameter.high
    if parameter.choices:
        return gui.add_dropdown(label, parameter.choices, initial_value=value, hint=hint)
    step = slider_step(high)
    return gui.add_slider(label, min=low, max=high, step=step, initial_value=value, hint=hint)


WATCH = "<div style='padding:0 12px 6px;font-size:12.5px;line-height:1.35'>{}</div>"
BLOCKED = (
    " <b>In the way:</b> {} and {}. The path was computed without obstacles; no arm steps into one."
)
NO_PRESET = "The target moves by itself; this line says what to look at."


class PresetPanel:
    """A button for each preset, and one to stop.

    Args:
        started: called when a preset has started.
    """

    def __init__(
        self, gui: Any, session: Session, presets: Sequence[Preset], started: Callable[[], None]
    ) -> None:
        self._session, self._started = session, started
        self._shown: Preset | None = None
        with gui.add_folder("Presets", visible=bool(presets)):
            self._refusal = RefusalLine(gui)
            for preset in presets:
                button = gui.add_button(preset.title, color="gray")
                button.on_click(lambda _, preset=preset: self._play(preset))
            self._watch = gui.add_html(WATCH.format(NO_PRESET))
            self._stop = gui.add_button("Stop", visible=False)
            self._stop.on_click(lambda _: session.stop_preset())

    def update(self) -> None:
        """Show the current preset."""
        preset = self._session.preset
        if preset is self._shown:
            return
        self._shown = preset
        self._stop.visible = preset is not None
        text = NO_PRESET
        if preset is not None:
            text = f"<b>Watch:</b> {escape(preset.watch)}"
            pair = self._session.in_the_way(preset)
            if pair is not None:
                text += BLOCKED.format(*map(escape, pair))
        self._watch.content = WATCH.format(text)

    def _play(self, preset: Preset) -> None:
        with self._refusal.shown():
            self._session.play(preset)
            self._started()
            self.update()


PAUSE, RESUME = "Pause", "Go on"
SPEEDS = {"real time": 1.0, "1/2": 0.5, "1/5": 0.2, "1/20": 0.05}


class ControlPanel:
    """Reset, pause, and slow motion for arms of this process.

    Args:
        cleared: called after a reset.
    """

    def __init__(self, gui: Any, session: Session, cleared: Callable[[], None]) -> None:
        self._session, self._cleared = session, cleared
        self._refusal = RefusalLine(gui)
        self._speed: Any = None
        if not session.is_remote:
            hint = "slow motion: of the target and the arms"
            self._speed = gui.add_dropdown("Speed", tuple(SPEEDS), hint=hint)
            self._speed.on_update(self._set_speed)
        self._buttons = gui.add_button_group("", (PAUSE, "Reset"))
        self._buttons.on_click(self._click)
        self._is_paused = False

    def update(self, views: Sequence[ArmView]) -> None:
        """Offer to resume while an arm is paused."""
        current = [name for name, speed in SPEEDS.items() if speed == self._session.speed]
        if self._speed is not None and current and self._speed.value != current[0]:
            self._speed.value = current[0]
        states = [view.sample.state == ServoState.PAUSED.name for view in views]
        self._is_paused = self._session.is_paused or any(states)
        labels = (RESUME if self._is_paused else PAUSE, "Reset")
        if tuple(self._buttons.options) != labels:
            self._buttons.options = labels

    def _set_speed(self, event: Any) -> None:
        self._session.speed = SPEEDS[event.target.value]

    def _click(self, event: Any) -> None:
        with self._refusal.shown():
            if event.target.value == "Reset":
                self._session.reset()
                self._cleared()
            else:
                self._session.pause(not self._is_paused)


# Numbers that a person gives: joint sliders, and the pose of the target

DEG, MM = "deg", "mm"
STEPS = {DEG: 0.1, MM: 0.1}


class JointPanel:
    """A slider for each joint, which puts the arms there, with the target at the tip."""

    def __init__(self, gui: Any, session: Session) -> None:
        self._session = session
        robot = session.robot
        self._scale = np.array([1e3 if unit == "m" else 180.0 / np.pi for unit in robot.units])
        self._sliders: list[Any] = []
        lower, upper = robot.finite_limits()
        can_place = session.sources[0].can_place
        with gui.add_folder("Move joints", expand_by_default=False, visible=can_place):
            self._refusal = RefusalLine(gui)
            for j, name in enumerate(robot.joint_names):
                unit = MM if robot.units[j] == "m" else DEG
                low = np.ceil(lower[j] * self._scale[j] / STEPS[unit]) * STEPS[unit]
                high = np.floor(upper[j] * self._scale[j] / STEPS[unit]) * STEPS[unit]
                slider = gui.add_slider(
                    f"{name} [{unit}]",
                    min=round(float(low), 1),
                    max=round(float(max(high, low + STEPS[unit])), 1),
                    step=STEPS[unit],
                    initial_value=round(float(low), 1),
                    disabled=bool(high <= low),
                )
                slider.on_update(partial(self._move, j))
                self._sliders.append(slider)
        self._q = np.array([float(slider.value) for slider in self._sliders]) / self._scale

    def update(self, q: Array) -> None:
        """Show joint values (n,) of the first arm."""
        self._q = q
        for slider, value in zip(self._sliders, (q * self._scale).tolist(), strict=True):
            shown = float(np.clip(value, slider.min, slider.max))
            if abs(slider.value - shown) > 0.6 * slider.step:
                slider.value = round(shown, 1)

    def _move(self, j: int, event: Any) -> None:
        if event.client is None:  # not by a person
            return
        with self._refusal.shown():
            q = self._q.copy()
            q[j] = event.target.value / self._scale[j]
            self._q = q
            self._session.place(q)


class TargetPanel:
    """The target of each tip in numbers: position [mm], and roll, pitch, yaw [deg]."""

    def __init__(self, gui: Any, session: Session) -> None:
        self._session = session
        self._fields: list[tuple[Any, Any]] = []
        self._shown: list[Array | None] = []
        robot = session.robot
        with gui.add_folder("Target in numbers", expand_by_default=False):
            self._refusal = RefusalLine(gui)
            for i, tip in enumerate(robot.tips):
                of = f" {tip}" if len(robot.tips) > 1 else ""
                xyz = gui.add_vector3(f"xyz{of} [mm]", (0.0, 0.0, 0.0), step=0.1)
                hint = "R = Rz(yaw) Ry(pitch) Rx(roll), in the base frame"
                rpy = gui.add_vector3(f"rpy{of} [deg]", (0.0, 0.0, 0.0), step=0.1, hint=hint)
                for field in (xyz, rpy):
                    field.on_update(partial(self._set, i))
                self._fields.append((xyz, rpy))
                self._shown.append(None)

    def update(self, sample: Sample) -> None:
        """Show the target, or the tip where there is no target."""
        Ts = sample.T_tip if sample.T_target is None else sample.T_target
        for i, T in enumerate(Ts.reshape(-1, 4, 4)):
            shown = self._shown[i]
            if shown is not None and np.abs(T - shown).max() < 1e-6:
                continue
            self._shown[i] = T
            xyz, rpy = self._fields[i]
            xyz.value = tuple(np.round(1e3 * T[:3, 3], 1).tolist())
            rpy.value = tuple(np.round(np.degrees(rpy_from_rotation(T[:3, :3])), 2).tolist())

    def _set(self, i: int, event: Any) -> None:
        if event.client is None:  # not by a person
            return
        xyz, rpy = self._fields[i]
        R = rotation_from_rpy(*np.radians(rpy.value).tolist())
        T = transform(R, 1e-3 * np.array(xyz.value))
        self._shown[i] = T
        with self._refusal.shown():
            self._session.drag_target(T, i)
