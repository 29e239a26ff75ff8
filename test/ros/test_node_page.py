# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The page of the viewer attached to a running node, in a real browser."""

import re

import numpy as np
import pytest
from cli_runner import MISSING, refusal

pytest.importorskip("viser", reason="needs viser")

from geometry_msgs.msg import PoseStamped
from ros_client import Client, NodeProcess
from ros_streamer import HOME, Streamer, positions
from ros_wam import WAM
from viewer import pages
from viewer.browser import chromium, open_page

from dls_ik.model.analysis import ready_configuration
from dls_ik.model.files import shipped_urdf
from dls_ik.viewer.scene import node_names
from dls_ik.viewer.shapes import load_shapes

pytestmark = [pytest.mark.ros, pytest.mark.slow]

NAMESPACE = "/paged"
ARGUMENTS = ("-r", f"__ns:={NAMESPACE}", "-p", "robot:=wam")
STARTED = ready_configuration(WAM)
SHAPES = load_shapes(shipped_urdf("wam"))
DRAWN = node_names("/arm", tuple(dict.fromkeys(piece.link for piece in SHAPES.pieces)))


def test_page_shows_and_drives_a_running_node(private_domain, tmp_path):
    """It shows the node's arm, drives it, follows others, pauses it, and outlives it."""
    with NodeProcess(*ARGUMENTS) as node, Client(NAMESPACE) as client:
        node.wait_for_line("ready")
        streamer = Streamer(client)
        streamer.go(WAM.fk(HOME))
        with (
            pages.view("--ros", "--namespace", NAMESPACE, "--rate", "30") as view,
            chromium() as browser,
            open_page(browser, view.url, tmp_path, "node") as page,
        ):
            wait_for_arm(page, HOME)
            wait_for_target(page, WAM.fk(HOME))
            targets = client.listen(PoseStamped, "target_pose")
            client.spin_for(0.3)
            assert not targets  # a page that is only looked at moves nothing
            drag(page, client, streamer)
            page.screenshot("node")
            streamer.go(WAM.fk(HOME))
            wait_for_target(page, WAM.fk(HOME))
            pause_and_go_on(page)
            node.process.kill()
            page.wait_for_text("no status from")
            page.screenshot("node-silent")
            with NodeProcess(*ARGUMENTS):
                page.wait_for_text("no target yet")
                wait_for_arm(page, STARTED)


def test_view_command_without_a_node_exits_with_a_one_line_error(private_domain):
    words = ("view", "--ros", "--namespace", "/nobody", "--patience", "0.1", "--no-browser")
    said = refusal(*words, code=MISSING)
    assert re.fullmatch(r"dls-ik: .*/nobody/dls_ik.*--namespace.*\n", said)


def drag(page, client, streamer):
    """The arm of the node goes where the target is dragged, and the page draws it there."""
    T = page.drag_gizmo("/target", "z", 0.15)
    assert np.linalg.norm(T[:3, 3] - WAM.fk(HOME)[:3, 3]) > 0.1
    client.spin_until(lambda: streamer.error(T) < 1e-3, what="the arm where it was dragged")
    wait_for_arm(page, positions(streamer.states[-1]))


def pause_and_go_on(page):
    for name in ("Pause", "Resume"):
        page.press(name)
    page.page.get_by_role("button", name="Pause", exact=True).wait_for()


def wait_for_arm(page, q):
    """Until the page draws every link where it is at joint values."""

    def is_there():
        return all(
            page.is_drawn(name) and np.abs(page.pose(name) - WAM.link_pose(link, q)).max() < 1e-3
            for link, name in DRAWN.items()
        )

    page.wait_until(is_there, f"the arm at {q}")


def wait_for_target(page, T):
    page.wait_until(lambda: np.abs(page.pose("/target") - T).max() < 1e-3, "the target")
