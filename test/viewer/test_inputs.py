# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Values entered on a page that the program changes too, and pages that draw rarely."""

import threading

import numpy as np
import pytest

pytest.importorskip("viser")

from viewer.slow_page import SOON, SlowPage

import dls_ik.viewer
from dls_ik import RobotModel
from dls_ik.viewer.inputs import Input
from dls_ik.viewer.server import PageServer

ROBOT = RobotModel.wam()
Q = np.array([0.3, 0.6, 0.2, 1.6, -1.5, 0.4, 0.2])
EDITS = 200


@pytest.fixture
def server():
    made = PageServer("127.0.0.1", 0)
    yield made
    made.stop()


@pytest.fixture
def viewer():
    with dls_ik.viewer.open(ROBOT, "dls", browser=False, presets=False) as viewer:
        yield viewer


@pytest.fixture
def page(viewer):
    with SlowPage(int(viewer.url.rpartition(":")[2])) as page:
        yield page


class Program:
    """Thread that continuously shows its own value in a widget, inside a ``with`` statement."""

    def __init__(self, widget):
        self._widget, self._stopped = widget, threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self):
        self._thread.start()

    def __exit__(self, *_):
        self._stopped.set()
        self._thread.join()

    def _run(self):
        while not self._stopped.wait(1e-4):
            self._widget.update()


def test_user_input_is_never_replaced_by_program_updates(server):
    given, last = [], threading.Event()

    def change(value):
        given.append(value)
        if value == EDITS:
            last.set()

    handle = server.gui.add_slider("number", min=0.0, max=EDITS, step=1.0, initial_value=0.0)
    widget = Input(server, handle, lambda: 0.0, change)
    with SlowPage(server.get_port()) as page, Program(widget):
        uuid = page.find("number")
        for value in range(1, EDITS + 1):
            page.give(uuid, value)
        assert last.wait(SOON), f"the last value did not come: {given[-10:]}"
    assert 0.0 not in given
    assert given == sorted(given)


def test_refused_input_resets_the_widget_to_the_program_value(server):
    seen = threading.Event()
    handle = server.gui.add_checkbox("switch", False)
    Input(server, handle, lambda: False, lambda _: seen.set())
    with SlowPage(server.get_port()) as page:
        uuid = page.find("switch")
        page.give(uuid, True)
        assert seen.wait(SOON)
        page.wait_for(
            lambda m: m["type"] == "GuiUpdateMessage" and m["updates"] == {"value": False}
        )


def test_alternately_moved_joint_sliders_both_take_effect(viewer, page):
    viewer.show(Q)
    first, second = (page.find(f"{name} [deg]") for name in ROBOT.joint_names[1:3])
    for degrees in np.arange(1.0, 21.0):
        page.give(first, degrees)
        page.give(second, -degrees)
        wanted = np.radians([degrees, -degrees])
        waited = threading.Event()
        for _ in range(int(SOON / 0.02)):
            if np.abs(viewer.q[1:3] - wanted).max() < 1e-6:
                break
            waited.wait(0.02)
        np.testing.assert_allclose(viewer.q[1:3], wanted, atol=1e-6)


def legend(names):
    """Return a function that finds messages with curves of arms with these names."""
    lines = [f"{letter} {name}" for letter, name in zip("ABCD", names, strict=False)]
    labels = ["time", *lines, ""]  # the last line is invisible

    def matches(message):
        shown = message.get("props") or message.get("updates") or {}
        return [each["label"] for each in shown.get("series", ())] == labels

    return matches


def test_slow_page_receives_no_update_of_removed_widgets(viewer, page):
    session = viewer.session
    page.wait_for(legend(["dls"]))
    session.set_method(1, "ctp")
    page.wait_for(legend(["dls", "ctp"]))
    page.give(page.find("Method B"), "none")
    viewer.play([0.0, 100.0], [Q, Q + 0.1])
    page.wait_for(legend(["path"]))
    session.show_path(None)
    session.set_methods(["sdls"])
    page.wait_for(legend(["sdls"]))
    parameter = session.sources[0].parameters[-1]
    page.find(f"A: {parameter.name.rstrip('_').replace('_', ' ')}")
    session.set_method(0, "dls")
    viewer.play([0.0, 50.0], [Q, Q + 0.1])
    session.show_path(None)
    page.wait_for(lambda m: m.get("updates", {}).get("data") is not None)
    assert page.errors() == []
