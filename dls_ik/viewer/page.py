# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Page with the scene and panels of a session, and the loop that advances and shows the session."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.files import ExportPanel, RecordPanel, ReplayPanel, Save
from dls_ik.viewer.method_panel import MethodPanel
from dls_ik.viewer.panels import (
    ControlPanel,
    GainTable,
    JointPanel,
    PresetPanel,
    StatusLine,
    TargetPanel,
)
from dls_ik.viewer.plots import CONDITIONING_TAB, MOTION_TAB, Plots, joint_bars, speed_unit
from dls_ik.viewer.presets import Preset
from dls_ik.viewer.redundancy_panel import RedundancyPanel
from dls_ik.viewer.replay import ReplayPath
from dls_ik.viewer.scene import PHONE, SHEET, SceneView
from dls_ik.viewer.server import set_theme
from dls_ik.viewer.session import ArmView, Session
from dls_ik.viewer.shapes import Shapes

if TYPE_CHECKING:
    from dls_ik.scene.snapshot import ClosestPair
    from dls_ik.viewer.obstacles import ObstaclePanel, ObstacleView

CONTROLS_WIDTH, PLOTS_WIDTH = 350, 320  # [px]
# This style sets the space between the widgets and the scroll bar, and between the axis and the
# legend of a plot. It removes the last line of each plot, which is invisible, from the legend (see
# :class:`dls_ik.viewer.plots.Plots`). On a phone, viser's panel would have a fixed width and hide
# the arm, with the plots below all widgets. The style gives the panel the full width and a part of
# the height, and moves the plots, which a person can unfold, above the widgets.
PAGE_STYLE = (
    "<style class='dls-ik-style'>"
    ".mantine-ScrollArea-content:has(.dls-ik-style, .uplot) "
    "{{padding-right: 8px; box-sizing: border-box; min-width: 0; width: 100%}}"
    ".uplot .u-legend {{margin-top: 0 !important}}"
    ".uplot .u-legend .u-series:last-child {{display: none}}"
    "@media (max-width: {phone}px) {{"
    "[style*='max-height: 60%'] {{width: 100% !important; max-height: {share:.0%} !important}}"
    "[style*='max-height: 60%'] [style*='width: 20em'] {{width: 100% !important}}"
    "[style*='max-height: 60%'] div:has(> div > .mantine-Tabs-root) "
    "{{display: flex !important; flex-direction: column}}"
    "[style*='max-height: 60%'] div:has(> .mantine-Tabs-root) {{order: -1}}"
    "}}</style>"
)
SCENE_PERIOD, FIGURES_PERIOD = 1.0 / 30.0, 1.0 / 6.0  # [s]

Clearance = Callable[[Array], Array]
MakeSession = Callable[[Clearance], tuple[Session, Sequence[Preset]]]


class Page:
    """Web page that shows the arms of a session and the panels that control the session.

    Args:
        server: Server of viser.
        scene: Display of the arms, targets and floor.
        status: Text about the state of the arms.
        session: Session to show.
        presets: Presets that a person can start.
        save: See :class:`dls_ik.viewer.files.RecordPanel`.
        is_dark: Whether the page is dark at first.
        is_compact: Whether the plots are collapsed at first.
    """

    def __init__(
        self,
        server: Any,
        scene: SceneView,
        status: StatusLine,
        session: Session,
        presets: Sequence[Preset],
        save: Save | None,
        is_dark: bool = False,
        is_compact: bool = False,
    ) -> None:
        self._server, self._gui, gui = server, server.gui, server.gui
        self._scene, self._status, self._session = scene, status, session
        self._lock = threading.Lock()  # held while the panels are changed
        self._plots: dict[int, Plots] = {}  # key: number of arms; all but one are hidden
        self._shown_plots: Plots | None = None
        self._is_dark = is_dark
        # Client id -> whether the page has dark colours, for clients that changed the colours
        self._dark: dict[int, bool] = {}
        self._shown: Preset | ReplayPath | None = None
        self._closest: ClosestPair | None = None
        self._controls = ControlPanel(server, session, scene.clear_trails)
        self._obstacles = _obstacles(server, session, scene.size)
        self._presets = PresetPanel(gui, session, presets, self._start_preset)
        self._methods = MethodPanel(server, session, session.history.clear)
        with gui.add_folder("Joints"):
            self._bars = gui.add_html("")
        self._joints = JointPanel(server, session)
        self._redundancy = RedundancyPanel(server, session)
        self._target = TargetPanel(server, session)
        self._replay = ReplayPanel(server, session)
        with gui.add_folder("Show"):
            hint = "possible speed of the tip of arm A in each direction"
            ellipsoid = gui.add_checkbox("Ellipsoid", False, hint=hint)
            self._trail = gui.add_checkbox("Trails", False, hint="recent paths of the tips")
            colours = gui.add_button("Light or dark", color="gray")
            frame = gui.add_button("Frame the arm", color="gray")
        ellipsoid.on_update(lambda _: scene.show_ellipsoid(ellipsoid.value))
        self._trail.on_update(lambda _: scene.show_trails(self._trail.value))
        colours.on_click(lambda event: self._change_colours(event.client))
        frame.on_click(lambda event: scene.frame_again(event.client))
        self._record = RecordPanel(gui, session, save)
        self._export = ExportPanel(gui, session)
        panel = gui.add_panel()
        self._tabs = {name: panel.add_tab(name) for name in (MOTION_TAB, CONDITIONING_TAB)}
        with self._tabs[CONDITIONING_TAB]:
            self._gains = GainTable(gui)
        panel.dock_left()
        panel.set_width(PLOTS_WIDTH)
        if is_compact:
            panel.minimize()
        if session.target is not None:
            scene.show((), session.target)
        for i, gizmo in enumerate(scene.targets):
            gizmo.on_drag(partial(session.drag_target, tip=i))

    def show(self, views: Sequence[ArmView]) -> None:
        """Draw the arms, targets and obstacles in the scene."""
        with self._server.atomic():
            self._scene.show(views, self._session.displayed_target())
            if self._obstacles is not None and views:
                self._closest = self._obstacles[0].show(views[0].sample.q)

    def show_figures(self, views: Sequence[ArmView]) -> None:
        """Update the status text, joint bars, plots and panels."""
        if not views:
            return
        with self._lock:
            self._show_path()
            self._show_plots(views)
            self._gains.show(self._session.gains(views[0]))
            self._status.show(views)
            qs = [view.sample.q for view in views]
            self._bars.content = joint_bars(self._session.robot, qs)
            self._presets.update()
            self._controls.update(views)
            self._methods.update()
            self._joints.update(qs[0])
            self._redundancy.update(qs[0])
            self._target.update(views[0].sample)
            self._replay.update()
            if self._obstacles is not None:
                self._obstacles[1].update(self._closest)

    def with_obstacles(self, points: Array | None) -> Array | None:
        """Return points (k, 3) together with the corners of all obstacles, in the base frame [m].

        Returns:
            Points (m, 3), or None if there are neither points nor obstacles.
        """
        if self._obstacles is None:
            return points
        corners = self._obstacles[0].corners()
        every = corners if points is None else np.concatenate([points, corners])
        return every if len(every) else None

    def finish(self) -> None:
        """Stop the recording, if there is one, and save it or offer it as a download."""
        self._record.finish()

    def _start_preset(self) -> None:
        self._methods.update()
        self._trail.value = True
        self._scene.show_trails(True)

    def _show_path(self) -> None:
        """Draw the path if a preset or replay has started, and point the camera at the path."""
        session = self._session
        shown = session.preset or session.replay
        if shown is self._shown:
            return
        self._shown = shown
        self._scene.clear_trails()
        self._scene.show_breaks(np.zeros((0, 3)))
        if shown is None:
            self._scene.show_path(None)
            return
        if isinstance(shown, Preset):
            points, q = shown.Ts[:, :3, 3], shown.start
        else:
            q = shown.q[0]
            some = shown.q[np.linspace(0, len(shown.q) - 1, min(len(shown.q), 300)).astype(int)]
            points = _first_tip(session.robot, some)
            if shown.breaks:
                ends = np.array([shown.at(each.t)[0] for each in shown.breaks])
                self._scene.show_breaks(_first_tip(session.robot, ends))
        self._scene.show_path(points)
        self._scene.frame(q, points)

    def _change_colours(self, client: Any) -> None:
        """Switch between light and dark colours for one client (browser) of the viser server."""
        is_dark = not self._dark.get(client.client_id, self._is_dark)
        self._dark[client.client_id] = is_dark
        set_theme(client.gui, is_dark)
        self._scene.darken(is_dark, client)

    def _show_plots(self, views: Sequence[ArmView]) -> None:
        names = tuple(view.name for view in views)
        errors = views[0].sample.position_error, views[0].sample.rotation_error
        has_rotation = not np.isnan(errors[1]) or bool(np.isnan(errors[0]))
        plots = self._plots.get(len(names))
        if plots is None:
            units = self._session.robot.units
            plots = self._plots[len(names)] = Plots(self._gui, self._tabs, len(names), units)
        before, self._shown_plots = self._shown_plots, plots
        if before is not None and before is not plots:
            before.hide()
        plots.label(names, has_rotation)
        plots.show(self._session.history)


def _first_tip(robot: RobotModel, q: Array) -> Array:
    """Return the positions (k, 3) of the first tip [m] at joint positions (k, n)."""
    return np.asarray(robot.fk(q).reshape(len(q), -1, 4, 4)[:, 0, :3, 3])


def _obstacles(
    server: Any, session: Session, size: float
) -> tuple[ObstacleView, ObstaclePanel] | None:
    """Return the display and the panel of a session's obstacles, or None if it has no scene."""
    if session.scene is None:
        return None
    from dls_ik.viewer.obstacles import ObstaclePanel, ObstacleView

    tell = (lambda _: None) if session.shared is None else session.shared.publish
    view = ObstacleView(server.scene, session.scene, session.robot, size, tell)
    return view, ObstaclePanel(server, session, view, size)


def serve(
    server: Any,
    robot: RobotModel,
    shapes: Shapes,
    make_session: MakeSession,
    rate: float,
    save: Save | None,
    ended: threading.Event,
    is_dark: bool = False,
    note: str = "",
    begun: Callable[[Session], object] = lambda _: None,
    is_compact: bool = False,
) -> None:
    """Show a robot, make a session, and advance the session until the event `ended` is set.

    Args:
        server: Server made by :func:`dls_ik.viewer.server.open_server`; stopped at the end.
        robot: Robot to show.
        shapes: Shapes of the robot's links.
        make_session: Makes the session while the page already shows the robot. The argument is a
            function that returns the height of each moving link above the floor [m], given joint
            positions (n,) [rad or m].
        rate: Rate of the session's steps [Hz].
        save: See :class:`dls_ik.viewer.files.RecordPanel`.
        ended: Event that closes the page.
        note: Text above the state of the arms.
        begun: Called with the session when the page is complete.
        is_dark, is_compact: See :class:`Page`.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(server.stop)
        server.gui.main_panel.dock_right()
        server.gui.main_panel.set_width(CONTROLS_WIDTH)
        server.gui.add_html(PAGE_STYLE.format(phone=PHONE, share=SHEET))
        notes = " ".join(filter(None, (shapes.complaint, note)))
        unit = speed_unit(robot.units)
        status = StatusLine(server.gui, notes, unit, lambda: len(server.get_clients()))
        scene = SceneView(server, robot, shapes)
        set_theme(server.gui, is_dark)
        scene.darken(is_dark)
        status.say("compiling kernels ...")
        session, presets = make_session(scene.clearance)
        stack.callback(session.close)
        if session.can_compare:
            status.reserve()
        page = Page(server, scene, status, session, presets, save, is_dark, is_compact)
        stack.callback(page.finish)
        views = session.step(0.0)
        if views:
            points = None if session.target is None else session.target.reshape(-1, 4, 4)[:, :3, 3]
            scene.frame(views[0].sample.q, page.with_obstacles(points))
        begun(session)
        _run(page, session, 1.0 / rate, ended)


def _run(page: Page, session: Session, period: float, ended: threading.Event) -> None:
    """Advance the session once per period [s] and update the page until the event `ended` is set.

    Periods that were missed are skipped.
    """
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
