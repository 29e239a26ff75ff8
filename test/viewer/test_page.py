# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The page in a real browser: loading, mouse, methods, presets."""

import contextlib
import csv
import socket

import numpy as np
import pytest
from viewer import pages
from viewer.browser import CLICK

pytest.importorskip("viser")

from dls_ik.model.files import shipped_urdf
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse
from dls_ik.viewer.scene import node_names
from dls_ik.viewer.shapes import link_poses, load_shapes, moving_links

pytestmark = pytest.mark.slow

ROBOT = RobotModel.wam()
SHAPES = load_shapes(shipped_urdf("wam"))
LINKS = tuple(dict.fromkeys(piece.link for piece in SHAPES.pieces))
MOVING = tuple(link for link in LINKS if link in moving_links(ROBOT))
# Returns the address that the page must not connect to; like viser's page, it uses a worker.
BLOCKED = """(url) => new Promise((done) => {
    const code = `self.addEventListener("securitypolicyviolation", (event) => {
        self.postMessage(event.blockedURI);
    }); new WebSocket("${url}");`;
    new Worker(URL.createObjectURL(new Blob([code]))).onmessage = (event) => done(event.data);
})"""


@pytest.fixture(scope="module")
def url():
    with pages.view("wam", "--method", "ctp+sd+svf,dls") as process:
        yield process.url
    assert process.returncode == 130, process.complained


def tip(page):
    """Return the drawn position (3,) of the arm's tip."""
    poses = link_poses(ROBOT, np.zeros(7))
    offset = (inverse(poses[LINKS[-1]]) @ poses[ROBOT.tip])[:, 3]
    return (page.pose(node_names("/arm_a", LINKS)[LINKS[-1]]) @ offset)[:3]


def choose(page, place, option):
    """Choose an option in a list of methods; the list of speeds precedes them."""
    page.page.locator("input.mantine-Select-input:visible").nth(1 + place).evaluate(CLICK)
    page.page.get_by_role("option", name=option, exact=True).evaluate(CLICK)


def unfold(page, name):
    page.page.get_by_text(name, exact=True).evaluate(CLICK)


def fill(page, place, number):
    """Enter a number in the field next to a slider."""
    field = page.page.locator("input.mantine-NumberInput-input:visible").nth(place)
    field.fill(str(number))
    field.press("Tab")


def test_page_handles_drags_methods_and_presets_in_a_browser(url, open_page):
    with open_page(url) as page:
        page.wait_for_text("at the target")
        before = page.position("/target")
        after = page.drag_gizmo("/target", "z", -0.15)[:3, 3]
        assert np.linalg.norm(after - before) > 0.03
        arrived = lambda: np.linalg.norm(tip(page) - after) < 2e-3  # noqa: E731
        page.wait_until(arrived, "the tip to come to the target")
        page.screenshot("viewer-dragged")

        choose(page, 0, "sdls+clamp")
        page.wait_for_text("A: sdls+clamp")
        choose(page, 1, "none")
        page.wait_until(lambda: page.is_drawn("/arm"), "one arm in its own colours")
        assert not page.is_drawn("/arm_b")

        page.press("Through a singularity")
        page.wait_for_text("Watch:")
        page.wait_for_text("D: sdls+clamp")
        page.wait_until(lambda: page.is_drawn("/path"), "the path")
        last = [node_names(f"/arm_{letter}", MOVING)[MOVING[-1]] for letter in "bcd"]
        page.wait_until(lambda: any(map(page.is_drawn, last)), "the arms to part")
        page.screenshot("viewer-preset")
        page.press("Pause")
        page.press("Resume")
        page.press("Stop")
        page.wait_until(lambda: not page.is_drawn("/path"), "the preset to end")
        page.press("Reset")
        page.wait_for_text("no target yet")


def test_page_shows_refused_parameters_and_downloads_a_recording(url, open_page):
    with open_page(url) as page:
        choose(page, 0, "svf")
        page.wait_for_text("A: svf")
        unfold(page, "Parameters")
        fill(page, 0, 50)
        fill(page, 1, 0.05)
        page.wait_for_text("svf needs nu > sigma0 and 2 > nu * sigma0")
        unfold(page, "Recording")
        page.press("Record")
        page.wait_for_text("recording ...")
        with page.page.expect_download() as download:
            page.press("Stop recording")
        with open(download.value.path(), encoding="utf-8", newline="") as file:
            assert "svf" in {row["arm"] for row in csv.DictReader(file)}


def test_page_link_cannot_redirect_the_websocket_to_another_server(url, browser):
    with contextlib.closing(browser.new_context()) as context, socket.socket() as foreign:
        foreign.bind(("127.0.0.1", 0))
        foreign.listen()
        foreign.setblocking(False)
        other = f"ws://localhost:{foreign.getsockname()[1]}"
        page = context.new_page()
        page.goto(f"{url}/?websocket={other}", wait_until="commit")
        assert page.evaluate(BLOCKED, other).startswith(other)
        with pytest.raises(BlockingIOError):
            foreign.accept()
