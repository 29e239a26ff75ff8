"""Panels of the page: what a person reads and presses."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from typing import Any

import numpy as np

from dls_ik.errors import DlsIkError
from dls_ik.servo.state import ServoState
from dls_ik.viewer.local import LocalSource, slider_step
from dls_ik.viewer.plots import ARMS, css
from dls_ik.viewer.presets import Preset
from dls_ik.viewer.session import Seen, Session
from dls_ik.viewer.source import Parameter, Source

LOOKS = ("solid", "ghost")
BOX = "<div style='padding:6px 12px 2px;font-size:12.5px;line-height:1.35'>{}</div>"
ARM = (
    "<div style='display:flex;gap:7px;min-height:54px'>"
    "<span style='flex:none;width:11px;height:11px;border-radius:6px;margin-top:3px;"
    "background:{colour}'></span><span><b>{letter}: {name}</b> ({look}){numbers}<br>"
    "<span style='color:#6b7280'>{words}</span></span></div>"
)
NOTE = "<div style='color:#92400e;margin-bottom:4px'>{}</div>"


class StatusLine:
    """What goes on, in words."""

    def __init__(self, gui: Any, note: str = "") -> None:
        self._note = NOTE.format(escape(note)) if note else ""
        self._html = gui.add_html("")
        self.say("starting ...")

    def say(self, words: str) -> None:
        """Words in place of the arms."""
        self._show(escape(words))

    def show(self, seen: Sequence[Seen]) -> None:
        """What the arms do."""
        self._show("".join(_arm(i, arm) for i, arm in enumerate(seen)))

    def _show(self, content: str) -> None:
        html = BOX.format(self._note + content)
        if html != self._html.content:
            self._html.content = html


def _arm(i: int, arm: Seen) -> str:
    errors = arm.sample.position_error, np.degrees(arm.sample.rotation_error)
    numbers = ""
    if np.isfinite(errors[0]):
        numbers = f" &nbsp;{_length(errors[0])}, {errors[1]:.2f}&deg; off"
    return ARM.format(
        colour=css(ARMS[i]),
        letter="AB"[i],
        look=LOOKS[i],
        name=escape(arm.name),
        numbers=numbers,
        words=escape(arm.sample.words),
    )


def _length(metres: float) -> str:
    return f"{metres:.2f} m" if metres >= 1.0 else f"{1000.0 * metres:.1f} mm"


REFUSAL = (
    "<div style='margin:2px 10px 6px;padding:5px 8px;border-radius:4px;font-size:12px;"
    "background:#fee2e2;color:#991b1b'>{}</div>"
)


class Refusal:
    """A line that is there only when something was refused."""

    def __init__(self, gui: Any) -> None:
        self._line = gui.add_html("", visible=False)

    @contextmanager
    def shown(self, undo: Callable[[], object] = lambda: None) -> Iterator[None]:
        """Show why what is done inside is refused, and undo it in the page; else show nothing."""
        try:
            yield
        except DlsIkError as error:
            self._line.content = REFUSAL.format(escape(str(error)))
            self._line.visible = True
            undo()
        else:
            self._line.visible = False


NONE = "none"
LETTERS = ("A", "B")


class MethodPanel:
    """Two lists of methods, and sliders for what they have.

    Args:
        changed: called when there is another number of arms, or another method.
    """

    def __init__(self, gui: Any, session: Session, changed: Callable[[], None]) -> None:
        self._gui, self._session, self._changed = gui, session, changed
        self._lists: list[Any] = []
        self._was_current = True
        with gui.add_folder("Methods"):
            self._refusal = Refusal(gui)
            first = session.sources[0]
            if first.methods:
                self._add_list("Method A", tuple(first.methods), self._use_first)
            if session.can_compare:
                self._add_list("Method B", (NONE, *LocalSource.methods), self._use_second)
            self._folder = gui.add_folder("Parameters", expand_by_default=False)
            self._parameters: list[ParameterPanel] = []
        self.update()

    def update(self) -> None:
        """Show what the session has."""
        sources = self._session.sources
        shown = [source.method for source in sources] + [NONE]
        values = shown[: len(self._lists)] if sources[0].methods else shown[1:]
        for handle, value in zip(self._lists, values, strict=False):
            if value not in handle.options:
                handle.options = (*handle.options, value)
            if handle.value != value:
                handle.value = value
        self._renew_parameters()

    def follow(self) -> None:
        """Show what others changed, once it lasts for two looks."""
        if not self._session.sources[0].is_remote:
            return
        was_current, self._was_current = self._was_current, self._is_current
        if not was_current and not self._was_current:
            self.update()

    @property
    def _is_current(self) -> bool:
        same = not self._lists or self._lists[0].value == self._session.sources[0].method
        return same and all(panel.is_current for panel in self._parameters)

    def _renew_parameters(self) -> None:
        for panel in self._parameters:
            panel.remove()
        sources = self._session.sources
        with self._folder:
            self._parameters = [
                ParameterPanel(self._gui, source, letter, self._refusal)
                for letter, source in zip(LETTERS, sources, strict=False)
                if source.parameters
            ]
        self._folder.visible = bool(self._parameters)

    def _add_list(self, label: str, names: tuple[str, ...], use: Callable[[str], None]) -> None:
        handle = self._gui.add_dropdown(label, names)
        self._lists.append(handle)

        @handle.on_update  # type: ignore[untyped-decorator]
        def _(event: Any) -> None:
            if event.client is not None:  # by a person
                with self._refusal.shown(self.update):
                    use(handle.value)
                    self.update()
                    self._changed()

    def _use_first(self, method: str) -> None:
        self._session.sources[0].use(method)

    def _use_second(self, method: str) -> None:
        self._session.compare(None if method == NONE else method)


class ParameterPanel:
    """A widget for each parameter of a source, as they are now."""

    def __init__(self, gui: Any, source: Source, letter: str, refusal: Refusal) -> None:
        self._source, self._refusal = source, refusal
        self._shown = source.parameters
        self._handles = {
            p.name: _widget(gui, p, f"{letter}: {p.name.rstrip('_').replace('_', ' ')}")
            for p in source.parameters
        }
        for name, handle in self._handles.items():
            self._connect(name, handle)

    @property
    def is_current(self) -> bool:
        """Whether nobody else changed them."""
        return self._shown == self._source.parameters

    def remove(self) -> None:
        """Take them off the page."""
        for handle in self._handles.values():
            handle.remove()

    def _connect(self, name: str, handle: Any) -> None:
        @handle.on_update  # type: ignore[untyped-decorator]
        def _(event: Any) -> None:
            if event.client is not None:  # by a person
                with self._refusal.shown(self._show):
                    self._source.change(name, handle.value)
                    self._shown = self._source.parameters

    def _show(self) -> None:
        """As the source has them, which kept the old ones."""
        for parameter in self._source.parameters:
            handle = self._handles.get(parameter.name)
            if handle is not None and handle.value != parameter.value:
                handle.value = parameter.value


def _widget(gui: Any, parameter: Parameter, label: str) -> Any:
    hint = parameter.text + (f" [{parameter.unit}]" if parameter.unit else "")
    if parameter.choices:
        return gui.add_dropdown(label, parameter.choices, parameter.value, hint=hint)
    low, high = parameter.low, parameter.high
    step = slider_step(high)
    return gui.add_slider(
        label, min=low, max=high, step=step, initial_value=parameter.value, hint=hint
    )


WATCH = "<div style='padding:0 12px 6px;font-size:12.5px;line-height:1.35'>{}</div>"
IDLE = "The target moves by itself; what there is to see is said here."
STOP = "Stop"


class PresetPanel:
    """A button for each preset, and one to stop.

    Args:
        changed: called when a preset has begun, with its methods.
    """

    def __init__(
        self,
        gui: Any,
        session: Session,
        presets: Sequence[Preset],
        changed: Callable[[], None],
    ) -> None:
        self._session, self._changed = session, changed
        self._playing: Preset | None = None
        with gui.add_folder("Presets", visible=bool(presets)):
            self._refusal = Refusal(gui)
            for preset in presets:
                self._connect(gui.add_button(preset.title, color="gray"), preset)
            self._watch = gui.add_html(WATCH.format(IDLE))
            self._stop = gui.add_button(STOP, visible=False)

        @self._stop.on_click  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            session.stop()

    def update(self) -> None:
        """Show what is played now."""
        playing = self._session.preset
        if playing is self._playing:
            return
        self._playing = playing
        self._stop.visible = playing is not None
        words = IDLE if playing is None else f"<b>Watch:</b> {escape(playing.watch)}"
        self._watch.content = WATCH.format(words)

    def _connect(self, button: Any, preset: Preset) -> None:
        @button.on_click  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            with self._refusal.shown():
                self._session.play(preset)
                self._changed()
                self.update()


PAUSE, RESUME = "Pause", "Go on"


class OrderPanel:
    """Reset, and for an arm elsewhere pause.

    Args:
        cleared: called after a reset.
    """

    def __init__(self, gui: Any, session: Session, cleared: Callable[[], None]) -> None:
        self._refusal = Refusal(gui)
        is_remote = session.sources[0].is_remote
        self._pause = gui.add_button(PAUSE, color="gray", visible=is_remote)
        reset = gui.add_button("Reset", color="gray")

        @self._pause.on_click  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            with self._refusal.shown():
                session.pause(self._pause.label == PAUSE)

        @reset.on_click  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            with self._refusal.shown():
                session.reset()
            cleared()

    def update(self, seen: Sequence[Seen]) -> None:
        """Offer to go on where an arm is paused."""
        is_paused = any(arm.sample.state == ServoState.PAUSED.name for arm in seen)
        label = RESUME if is_paused else PAUSE
        if self._pause.label != label:
            self._pause.label = label


START_RECORDING, STOP_RECORDING = "Record", "Stop recording"
DOWNLOAD_NAME = "dls-ik-view.csv"
LINE = "<div style='padding:0 12px 6px;font-size:12px;color:#6b7280'>{}</div>"

Save = Callable[[bytes], str]  # returns where it went


class RecordPanel:
    """Starts a recording, and hands it over when it is stopped.

    Args:
        save: puts it where it belongs; None: it is offered as a download.
    """

    def __init__(self, gui: Any, session: Session, save: Save | None) -> None:
        self._session, self._save = session, save
        with gui.add_folder("Recording", expand_by_default=False):
            self._button = gui.add_button(START_RECORDING, color="gray")
            self._line = gui.add_html(LINE.format("All that the arms do, as CSV."))

        @self._button.on_click  # type: ignore[untyped-decorator]
        def _(event: Any) -> None:
            if session.is_recording:
                self.finish(event.client)
            else:
                session.start_recording()
                self._button.label = STOP_RECORDING
                self._say("recording ...")

    def finish(self, client: Any = None) -> None:
        """End a recording, if there is one, and hand it over."""
        content = self._session.stop_recording()
        if content is None:
            return
        self._button.label = START_RECORDING
        rows = content.count(b"\n") - 1
        if self._save is None:
            if client is not None:
                client.send_file_download(DOWNLOAD_NAME, content, save_immediately=True)
            self._say(f"{rows} rows")
            return
        try:
            self._say(f"{rows} rows in {self._save(content)}")
        except (DlsIkError, OSError) as error:
            self._say(str(error))

    def _say(self, words: str) -> None:
        self._line.content = LINE.format(escape(words))
