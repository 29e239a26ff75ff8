"""Serving the page until it is ended: a loop that steps the arms and draws them."""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import rich

from dls_ik.model.robot import RobotModel
from dls_ik.viewer.page import Page
from dls_ik.viewer.panels.record import Save
from dls_ik.viewer.presets.preset import Preset
from dls_ik.viewer.server import PageServer, theme
from dls_ik.viewer.session import Session
from dls_ik.viewer.shapes import Shapes

DRAWN, TOLD = 1.0 / 30.0, 1.0 / 6.0  # [s] between two pictures, and two looks at the figures
Begin = Callable[[], tuple[Session, Sequence[Preset]]]


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
        save: see :class:`dls_ik.viewer.panels.record.RecordPanel`.
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
