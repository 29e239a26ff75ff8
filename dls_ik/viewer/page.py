"""The page: the scene and the panels of a session, and the loop that updates them."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.measures import CONDITIONING, MOTION
from dls_ik.viewer.panels import (
    ControlPanel,
    MethodPanel,
    PresetPanel,
    RecordPanel,
    Save,
    StatusLine,
)
from dls_ik.viewer.plots import Plots, joint_bars
from dls_ik.viewer.presets import Preset
from dls_ik.viewer.scene import SceneView
from dls_ik.viewer.session import ArmView, Session
from dls_ik.viewer.shapes import Shapes

CONTROLS_WIDTH, PLOTS_WIDTH = 350, 290  # [px]
SCENE_PERIOD, FIGURES_PERIOD = 1.0 / 30.0, 1.0 / 6.0  # [s]

MakeSession = Callable[[], tuple[Session, Sequence[Preset]]]


class Page:
    """Shows the robot, and what a session does with it once there is one.

    Args:
        server: of viser.
        note: one line for the user, such as which meshes are missing.
    """

    def __init__(self, server: Any, robot: RobotModel, shapes: Shapes, note: str = "") -> None:
        self._server, self._gui, self._robot = server, server.gui, robot
        self._session: Session | None = None
        self._lock = threading.Lock()  # one thread at a time changes the panels
        self._plots: Plots | None = None
        self._plotted_arms = 0
        server.gui.main_panel.dock_right()
        server.gui.main_panel.set_width(CONTROLS_WIDTH)
        self._status = StatusLine(server.gui, note)
        self._scene = SceneView(server, robot, shapes, self._drag_target)

    def say(self, message: str) -> None:
        """Show a message in place of the state of the arms."""
        self._status.say(message)

    def attach(self, session: Session, presets: Sequence[Preset], save: Save | None) -> None:
        """Show a session and its panels."""
        gui = self._gui
        self._methods = MethodPanel(gui, session, session.history.clear)
        self._presets = PresetPanel(gui, session, presets, self._start_preset)
        with gui.add_folder("Joints"):
            self._bars = gui.add_html("")
        with gui.add_folder("Show"):
            self._add_switches()
            self._controls = ControlPanel(gui, session, self._scene.clear_trails)
        self._record = RecordPanel(gui, session, save)
        panel = gui.add_panel()
        self._tabs = {name: panel.add_tab(name) for name in (MOTION, CONDITIONING)}
        panel.dock_left()
        panel.set_width(PLOTS_WIDTH)
        if session.target is not None:
            self._scene.target.show(session.target)
        self._session = session

    def show(self, views: Sequence[ArmView]) -> None:
        """Draw the arms."""
        if self._session is not None:
            with self._server.atomic():
                self._scene.show(views, self._session.displayed_target())

    def show_figures(self, views: Sequence[ArmView]) -> None:
        """Update status, bars, plots and panels."""
        if self._session is None or not views:
            return
        with self._lock:
            self._show_plots(self._session, len(views))
            self._status.show(views)
            self._bars.content = joint_bars(self._robot, [view.sample.q for view in views])
            self._presets.update()
            self._controls.update(views)
            self._methods.follow()

    def finish(self) -> None:
        """Finish a recording."""
        if self._session is not None:
            self._record.finish()

    def _drag_target(self, T: Array) -> None:
        if self._session is not None:
            self._session.drag_target(T)

    def _start_preset(self) -> None:
        self._methods.update()
        self._scene.clear_trails()

    def _show_plots(self, session: Session, arms: int) -> None:
        if self._plots is None or arms != self._plotted_arms:
            if self._plots is not None:
                self._plots.remove()
            self._plots, self._plotted_arms = Plots(self._gui, self._tabs, arms), arms
        self._plots.show(session.history)

    def _add_switches(self) -> None:
        gui = self._gui
        hint = "how fast the tip of A can go in each direction"
        ellipsoid = gui.add_checkbox("Ellipsoid", False, hint=hint)
        trail = gui.add_checkbox("Trails", False, hint="where the tips have been")

        @ellipsoid.on_update  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            self._scene.ellipsoid.set_visible(ellipsoid.value)

        @trail.on_update  # type: ignore[untyped-decorator]
        def _(_: object) -> None:
            self._scene.show_trails(trail.value)


def serve(
    server: Any,
    robot: RobotModel,
    shapes: Shapes,
    make_session: MakeSession,
    rate: float,
    save: Save | None = None,
    ended: threading.Event | None = None,
) -> None:
    """Show the robot, make a session, and step it until the event is set.

    Args:
        server: of :func:`dls_ik.viewer.server.open_server`; it is stopped at the end.
        make_session: may take long; the page shows the robot meanwhile.
        rate: steps of the session [Hz].
        save: see :class:`dls_ik.viewer.panels.RecordPanel`.
    """
    ended = ended or threading.Event()
    page = Page(server, robot, shapes, shapes.complaint)
    session = None
    try:
        page.say("compiling kernels ...")
        session, presets = make_session()
        page.attach(session, presets, save)
        _run(page, session, 1.0 / rate, ended)
    finally:
        page.finish()
        if session is not None:
            session.close()
        server.stop()


def _run(page: Page, session: Session, period: float, ended: threading.Event) -> None:
    """Step on absolute deadlines; those that were missed are skipped."""
    begin = deadline = time.monotonic()
    scene_time = figures_time = 0.0
    while not ended.wait(max(deadline - time.monotonic(), 0.0)):
        now = time.monotonic() - begin
        deadline = max(deadline + period, begin + now)
        views = session.step(now)
        if now - scene_time >= SCENE_PERIOD:
            page.show(views)
            scene_time = now
        if now - figures_time >= FIGURES_PERIOD:
            page.show_figures(views)
            figures_time = now
