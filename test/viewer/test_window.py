# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The page from Python: content, notebooks, and its end with the program."""

import csv
import json
import urllib.request

import matplotlib.image
import numpy as np
import pytest
from viewer.browser import CLICK

pytest.importorskip("viser")

import dls_ik.viewer
from dls_ik import RobotModel
from dls_ik.errors import JointValueError, MethodError
from dls_ik.viewer.replay import PathFileError
from dls_ik.viewer.scene import node_names
from dls_ik.viewer.shapes import described_shapes, link_poses
from dls_ik.viewer.window import ViewerError

ROBOT = RobotModel.wam()
Q = np.array([0.3, 0.6, 0.2, 1.6, -1.5, 0.4, 0.2])
LINKS = tuple(dict.fromkeys(piece.link for piece in described_shapes(ROBOT).pieces))


@pytest.fixture(scope="module")
def viewer():
    with dls_ik.show(ROBOT, Q, browser=False) as viewer:
        yield viewer
    assert not viewer.is_open
    with pytest.raises(ViewerError, match="is closed"):
        viewer.show(Q)
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(viewer.url)


@pytest.mark.slow
def test_browser_shows_joint_positions_and_paths_of_the_program(viewer, open_page):
    def drawn(page, q):
        link = LINKS[-1]
        node = node_names("/arm", LINKS)[link]
        return np.abs(page.pose(node) - link_poses(ROBOT, q)[link]).max() < 1e-3

    with open_page(viewer.url) as page:
        page.wait_until(lambda: drawn(page, Q), "the arm at the first joint values")
        assert dls_ik.show(
            RobotModel.wam(), {"wam_j2": -0.5, **dict.fromkeys(ROBOT.joint_names, 0.1)}
        )
        page.wait_until(lambda: drawn(page, np.full(7, 0.1)), "the same page, for an equal robot")
        dls_ik.play(ROBOT, [0.0, 1.0, 100.0], [Q, Q + 0.1, Q + 0.1])
        page.wait_until(lambda: drawn(page, Q + 0.1), "the end of the path")
        page.wait_for_text("3 points in 100 s")
        T = ROBOT.fk(Q)
        viewer.follow(T)
        tip = lambda: ROBOT.fk(viewer.q)  # noqa: E731
        page.wait_until(lambda: np.abs(tip() - T).max() < 1e-4, "the arm at the target")


def test_shown_joint_positions_are_read_back_immediately(viewer):
    np.testing.assert_array_equal(viewer.show(Q + 0.1).q, Q + 0.1)
    np.testing.assert_array_equal(viewer.show(dict(zip(ROBOT.joint_names, Q, strict=True))).q, Q)
    assert f"<iframe src='{viewer.url}'" in viewer._repr_html_()


def test_only_notebooks_of_this_machine_may_embed_the_page(viewer):
    headers = urllib.request.urlopen(viewer.url).headers
    frames = headers["Content-Security-Policy"].split("frame-ancestors ")[1].split(";")[0]
    assert frames.split() == [
        "'self'", "http://localhost:*", "http://127.0.0.1:*", "vscode-webview:",
    ]  # fmt: skip


def test_invalid_input_raises_and_keeps_the_page_open(viewer):
    with pytest.raises(JointValueError):
        viewer.show([0.0, 1.0])
    with pytest.raises(PathFileError, match="finite, increasing times"):
        viewer.play([0.0, 0.0], [Q, Q])
    with pytest.raises(PathFileError, match="one time for each row"):
        viewer.play([0.0, 1.0, 2.0], [Q, Q])
    with pytest.raises(ViewerError, match="speed"):
        viewer.play([0.0, 1.0], [Q, Q], speed=0.0)
    with pytest.raises(MethodError, match="unknown method 'nonsense'"):
        dls_ik.viewer.open(ROBOT, "nonsense", browser=False)
    with pytest.raises(MethodError, match="follows no target"):
        dls_ik.viewer.open(ROBOT, ["dls", "kdl_lma"], browser=False)
    with pytest.raises(ViewerError, match="at most 4 names; got 5"):
        dls_ik.viewer.open(ROBOT, ["dls"] * 5, browser=False)
    assert viewer.is_open


def test_error_that_closed_the_page_is_raised_to_its_user():
    with dls_ik.viewer.open(PLANAR, "dls", browser=False, presets=False) as viewer:
        viewer.session.history = None  # the page cannot draw it
        with pytest.raises(ViewerError, match="error closed the page") as raised:
            viewer.wait()
        assert isinstance(raised.value.__cause__, AttributeError)
        with pytest.raises(ViewerError, match="page is closed by an error") as raised:
            _ = viewer.q
        assert isinstance(raised.value.__cause__, AttributeError)


PLANAR = RobotModel.from_name("planar_2r")
JOINTS = {"joint_names": PLANAR.joint_names, "t": [0, 50], "positions": [[0.1, 0.2], [0.3, 0.4]]}


@pytest.fixture(scope="module")
def planar():
    with dls_ik.viewer.open(PLANAR, "dls", browser=False, presets=False) as viewer:
        yield viewer


def unfold(page, name):
    page.page.get_by_text(name, exact=True).evaluate(CLICK)


def fill(page, place, number):
    field = page.page.locator("input.mantine-NumberInput-input:visible").nth(place)
    field.fill(str(number))
    field.press("Tab")


@pytest.mark.slow
def test_number_fields_replay_files_and_exports_work_in_a_browser(planar, open_page, tmp_path):
    with open_page(planar.url) as page:
        page.wait_for_text("at the target")
        unfold(page, "Move joints")
        fill(page, 1, 30.0)
        page.wait_until(lambda: abs(planar.q[1] - np.radians(30.0)) < 1e-9, "joint 2 at 30 deg")
        np.testing.assert_allclose(planar.session.target, PLANAR.fk(planar.q))

        unfold(page, "Target in numbers")
        page.page.get_by_label("xyz [mm]").first.wait_for(state="attached")
        fill(page, 3, 250.0)  # preceded by the fields of two joints and x
        page.wait_until(lambda: planar.session.target[1, 3] == 0.25, "y at 250 mm")

        unfold(page, "Replay")
        (tmp_path / "joints.json").write_text(json.dumps(JOINTS))
        with page.page.expect_file_chooser() as chooser:
            page.press("Open a file")
        chooser.value.set_files(tmp_path / "joints.json")
        page.wait_for_text("joints.json: 2 points in 50 s")
        page.wait_until(lambda: planar.session.replay is not None, "the replay")
        page.press("Stop the replay")
        page.wait_until(lambda: planar.session.replay is None, "the arm again")

        unfold(page, "Export")
        with page.page.expect_download() as download:
            page.press("Scene as PNG")
        picture = matplotlib.image.imread(download.value.path())
        assert picture.shape[0] > 100
        assert np.ptp(picture[..., :3]) > 0.3, "something is drawn"
        with page.page.expect_download() as download:
            page.press("Curves as CSV")
        with open(download.value.path(), encoding="utf-8", newline="") as file:
            assert "Position error [mm] A: dls" in next(csv.reader(file))
