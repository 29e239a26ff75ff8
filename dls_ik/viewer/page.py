"""The page: the scene and the panels of a session, and the loop that updates them."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from dls_ik.model.robot import RobotModel
from dls_ik.viewer.panels import (
    ControlPanel,
    MethodPanel,
    PresetPanel,
    RecordPanel,
    Save,
    StatusLine,
)
from dls_ik.viewer.plots import CONDITIONING, MOTION, Plots, joint_bars
from dls_ik.viewer.presets import Preset
from dls_ik.viewer.scene import SceneView
from dls_ik.viewer.session import ArmView, Session
from dls_ik.viewer.shapes import Shapes

CONTROLS_WIDTH, PLOTS_WIDTH = 350, 290  # [px]
SCENE_PERIOD, FIGURES_PERIOD = 1.0 / 30.0, 1.0 / 6.0  # [s]

MakeSession = Callable[[], tuple[Session, Sequence[Preset]]]


class Page:
    """Shows a session, and the panels that control it.

    Args:
        server: of viser.
        scene: with the robot.
        save: see :class:`dls_ik.viewer.panels.RecordPanel`.
    """

    def __init__(
        self,
        server: Any,
        scene: SceneView,
        status: StatusLine,
        session: Session,
        presets: Sequence[Preset],
        save: Save | None,
    ) -> None:
        self._server, self._gui, gui = server, server.gui, server.gui
        self._scene, self._status, self._session = scene, status, session
        self._lock = threading.Lock()  # one thread at a time changes the panels
        self._plots: Plots | None = None
        self._methods = MethodPanel(gui, session, session.history.clear)
        self._presets = PresetPanel(gui, session, presets, self._start_preset)
        with gui.add_folder("Joints"):
            self._bars = gui.add_html("")
        with gui.add_folder("Show"):
            hint = "how fast the tip of A can go in each direction"
            ellipsoid = gui.add_checkbox("Ellipsoid", False, hint=hint)
            trail = gui.add_checkbox("Trails", False, hint="where the tips have been")
            self._controls = ControlPanel(gui, session, scene.clear_trails)
        ellipsoid.on_update(lambda _: scene.show_ellipsoid(ellipsoid.value))
        trail.on_update(lambda _: scene.show_trails(trail.value))
        self._record = RecordPanel(gui, session, save)
        panel = gui.add_panel()
        self._tabs = {name: panel.add_tab(name) for name in (MOTION, CONDITIONING)}
        panel.dock_left()
        panel.set_width(PLOTS_WIDTH)
        if session.target is not None:
            scene.target.show(session.target)
        scene.target.on_drag(session.drag_target)

    def show(self, views: Sequence[ArmView]) -> None:
        """Draw the arms."""
        with self._server.atomic():
            self._scene.show(views, self._session.displayed_target())

    def show_figures(self, views: Sequence[ArmView]) -> None:
        """Update status, bars, plots and panels."""
        if not views:
            return
        with self._lock:
            self._show_plots(len(views))
            self._status.show(views)
            qs = [view.sample.q for view in views]
            self._bars.content = joint_bars(self._session.robot, qs)
            self._presets.update()
            self._controls.update(views)
            self._methods.follow()

    def finish(self) -> None:
        """Finish a recording."""
        self._record.finish()

    def _start_preset(self) -> None:
        self._methods.update()
        self._scene.clear_trails()

    def _show_plots(self, arms: int) -> None:
        if self._plots is None or arms != self._plots.arms:
            if self._plots is not None:
                self._plots.remove()
            self._plots = Plots(self._gui, self._tabs, arms)
        self._plots.show(self._session.history)


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
    server.gui.main_panel.dock_right()
    server.gui.main_panel.set_width(CONTROLS_WIDTH)
    status = StatusLine(server.gui, shapes.complaint)
    scene = SceneView(server, robot, shapes)
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        status.say("compiling kernels ...")
        session, presets = make_session()
        stack.callback(session.close)
        page = Page(server, scene, status, session, presets, save)
        stack.callback(page.finish)
        _run(page, session, 1.0 / rate, ended or threading.Event())


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
