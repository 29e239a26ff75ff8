# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A path solved by the command line, replayed among its obstacles in a browser."""

import json

import numpy as np
import pytest

pytest.importorskip("coal")
pytest.importorskip("viser")

from cli_runner import run
from viewer import pages

from dls_ik.model.files import shipped_urdf
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.scene import node_names
from dls_ik.viewer.shapes import load_shapes

ROBOT = RobotModel.wam()
LINKS = tuple(dict.fromkeys(piece.link for piece in load_shapes(shipped_urdf("wam")).pieces))
SCENE = """path test
* post
-0.6 0.9 0.3
0 0 0 1
1
box
0.1 0.1 0.8
0 0 0
0 0 0 1
0 0 0 0
0
.
"""


def write_circle(folder, radius, angles):
    """Write poses on a circle about the base, and a scene; return their files."""
    poses, scene = folder / "circle.csv", folder / "post.scene"
    rows = [(radius * np.cos(a), radius * np.sin(a), 0.3, 0.0, 2.8, 0.0) for a in angles]
    lines = [",".join(map(str, row)) for row in rows]
    poses.write_text("\n".join(["x,y,z,roll,pitch,yaw", *lines]) + "\n")
    scene.write_text(SCENE)
    return poses, scene


@pytest.mark.slow
def test_a_path_is_replayed_among_the_obstacles_of_its_scene(open_page, tmp_path):
    poses, scene = write_circle(tmp_path, 0.6, np.linspace(-3.1, 3.8, 70))
    file = tmp_path / "circle.json"
    run("path", "wam", poses, "--out", file, "--whole", "--scene", scene, "--rate", 20,
        "--max-joint-step", 0.3)  # fmt: skip
    stored = json.loads(file.read_text())
    assert stored["scene"] == ["post.scene"]
    assert stored["reconfigurations"]
    with pages.view("wam", "--replay", file) as process, open_page(process.url) as page:
        page.wait_for_text("70 points in 3.45 s; reconfiguration at")
        page.wait_for_node("/path/break0")
        page.wait_for_node("/obstacle1")
        place = stored["reconfigurations"][0]
        q = np.array(stored["positions"][place["pose"]])
        np.testing.assert_allclose(page.position("/path/break0"), ROBOT.fk(q)[:3, 3], atol=1e-4)
        node = node_names("/arm", LINKS)["wam_link4"]
        page.wait_for_node(node)
        start = page.position(node)
        page.wait_until(lambda: np.abs(page.position(node) - start).max() > 0.01, "motion")
