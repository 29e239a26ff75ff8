"""The page: the scene and the panels of a session, and the loop that serves it."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import rich

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.panels import MethodPanel, OrderPanel, PresetPanel, RecordPanel, Save, StatusLine
from dls_ik.viewer.plots import JACOBIAN, MOTION, Plots, joint_bars
from dls_ik.viewer.presets import Preset
from dls_ik.viewer.scene import Stage
from dls_ik.viewer.server import PageServer, theme
from dls_ik.viewer.session import Seen, Session
from dls_ik.viewer.shapes import Shapes

WIDE, NARROW = 350, 290  # [px] of the panels
DRAWN, TOLD = 1.0 / 30.0, 1.0 / 6.0  # [s] between two pictures, and two looks at the figures
Begin = Callable[[], tuple[Session, Sequence[Preset]]]


class Page:
    """Shows the robot at once, and what it does when there is a session.

    Args:
        server: of viser.
        note: one line for a person to know, such as what could not be drawn.
    """

    def __init__(self, server: Any, robot: RobotModel, shapes: Shapes, note: str = "") -> None:
        self._server, self._gui, self._robot = server, server.gui, robot
        self._session: Session | None = None
        self._lock = threading.Lock()  # panels are renewed by one thread at a time
        self._arms = 0  # that the plots are for
        self._plots: Plots | None = None
        server.gui.main_panel.dock_right()
        server.gui.main_panel.set_width(WIDE)
        self._status = StatusLine(server.gui, note)
        self._stage = Stage(server, robot, shapes, self._dragged)

    def say(self, words: str) -> None:
        """Words in place of what the arms do."""
        self._status.say(words)

    def attach(self, session: Session, presets: Sequence[Preset], save: Save | None) -> None:
        """Let a session be seen and worked."""
        gui = self._gui
        self._methods = MethodPanel(gui, session, self._changed)
        self._presets = PresetPanel(gui, session, presets, self._began)
        with gui.add_folder("Joints"):
            self._bars = gui.add_html("")
        with self._add_show():
            self._orders = OrderPanel(gui, session, self._stage.clear_trails)
        self._record = RecordPanel(gui, session, save)
        panel = gui.add_panel()
        self._tabs = {name: panel.add_tab(name) for name in (MOTION, JACOBIAN)}
        panel.dock_left()
        panel.set_width(NARROW)
        if session.target is not None:
            self._stage.target.show(session.target)
        self._session = session

    def show(self, seen: Sequence[Seen]) -> None:
        """Draw the arms."""
        if self._session is not None:
            with self._server.atomic():
                self._stage.show(seen, self._session.led_target())

    def show_figures(self, seen: Sequence[Seen]) -> None:
        """Bring words, bars and plots up to date."""
        if self._session is None or not seen:
            return
        with self._lock:
            if len(seen) != self._arms:
                self._renew_plots(len(seen))
            self._status.show(seen)
            self._bars.content = joint_bars(self._robot, [arm.sample.q for arm in seen])
            if self._plots is not None:
                self._plots.show(self._session.history)
            self._presets.update()
            self._orders.update(seen)
            self._methods.follow()

    def finish(self) -> None:
        """End a recording that goes on."""
        if self._session is not None:
            self._record.finish()

    def _dragged(self, T: Array) -> None:
        if self._session is not None:
            self._session.aim(T)

    def _changed(self) -> None:
        if self._session is not None:
            self._session.history.clear()

    def _began(self) -> None:
        self._methods.update()
        self._stage.clear_trails()

    def _renew_plots(self, arms: int) -> None:
        if self._plots is not None:
            self._plots.remove()
        self._plots = Plots(self._gui, self._tabs, arms)
        self._arms = arms

    def _add_show(self) -> Any:
        gui = self._gui
        folder = gui.add_folder("Show")
        with folder:
            ellipsoid = gui.add_checkbox(
                "Ellipsoid", False, hint="how fast the tip of A can go in each direction"
            )
            trail = gui.add_checkbox("Trails", False, hint="where the tips have been")

        @ellipsoid.on_update  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            self._stage.ellipsoid.visible(ellipsoid.value)

        @trail.on_update  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            self._stage.show_trails(trail.value)

        return folder


def open_server(host: str, port: int, title: str) -> Any:
    """A server with an empty page.

    Raises:
        PortError: as :class:`PageServer`.
    """
    rich.get_console().quiet = True  # viser's own words, which say less than ours
    server = PageServer(host, port)
    theme(server, title)
    return server


def serve(
    server: Any,
    robot: RobotModel,
    shapes: Shapes,
    begin: Begin,
    rate: float,
    save: Save | None = None,
    ended: threading.Event | None = None,
) -> None:
    """Show the robot, begin a session, and step it until the event, or for ever.

    Args:
        server: of :func:`open_server`; it is stopped at the end.
        begin: makes the session, which takes its time: the page is there meanwhile.
        rate: steps of the session [Hz].
        save: see :class:`dls_ik.viewer.panels.RecordPanel`.
    """
    ended = ended or threading.Event()
    page = Page(server, robot, shapes, shapes.complaint)
    session = None
    try:
        page.say("compiling kernels ...")
        session, presets = begin()
        page.attach(session, presets, save)
        _run(page, session, 1.0 / rate, ended)
    finally:
        page.finish()
        if session is not None:
            session.close()
        server.stop()


def _run(page: Page, session: Session, period: float, ended: threading.Event) -> None:
    began = following = time.monotonic()
    drawn = told = 0.0
    while not ended.wait(max(following - time.monotonic(), 0.0)):
        now = time.monotonic() - began
        following = max(following + period, began + now)
        seen = session.step(now)
        if now - drawn >= DRAWN:
            page.show(seen)
            drawn = now
        if now - told >= TOLD:
            page.show_figures(seen)
            told = now
