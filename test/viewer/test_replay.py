# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Files of joint paths: those of ``dls-ik path``, recordings of the page, and invalid files."""

import json

import numpy as np
import pytest
from cli_runner import run

from dls_ik.model.robot import RobotModel
from dls_ik.viewer.replay import PathFileError, joint_path, read_path, stored_scenes
from dls_ik.viewer.session import local_session

ROBOT = RobotModel.wam()
POSES = "t,x,y,z,roll,pitch,yaw\n0,0.5,0,0.3,0,3,0\n0.5,0.5,0.05,0.3,0,3,0\n2,0.5,0.1,0.3,0,3,0\n"


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_joint_file_of_the_path_command_is_read_back(ending, tmp_path):
    (tmp_path / "poses.csv").write_text(POSES)
    file = tmp_path / f"joints.{ending}"
    run("path", "wam", tmp_path / "poses.csv", "--out", file)
    path = read_path(ROBOT, file.name, file.read_bytes())
    np.testing.assert_array_equal(path.t, [0.0, 0.5, 2.0])
    xyz = ROBOT.fk(path.q)[:, :3, 3]
    np.testing.assert_allclose(xyz, [[0.5, 0, 0.3], [0.5, 0.05, 0.3], [0.5, 0.1, 0.3]], atol=1e-5)
    q, velocity = path.at(1.25)
    np.testing.assert_allclose(q, (path.q[1] + path.q[2]) / 2)
    np.testing.assert_allclose(velocity, (path.q[2] - path.q[1]) / 1.5)


def test_a_recording_of_the_page_is_read_back():
    session, _ = local_session(ROBOT, ["dls", "jp"], has_presets=False)
    session.step(0.0)
    session.start_recording()
    T = session.target.copy()
    T[2, 3] += 0.1
    session.drag_target(T)
    seen = [session.step(0.01 * k)[0].sample for k in range(1, 30)]
    path = read_path(ROBOT, "page.csv", session.stop_recording())
    np.testing.assert_allclose(path.q, [sample.q for sample in seen], atol=1e-8)
    np.testing.assert_allclose(path.t, 0.01 * np.arange(29), atol=1e-6)
    session.close()


NAMES = list(ROBOT.joint_names)


@pytest.mark.parametrize("ending", ["csv", "json"])
def test_timed_paths_are_read_with_all_points(ending, tmp_path):
    rows = [line.partition(",")[2] for line in POSES.splitlines()]
    (tmp_path / "poses.csv").write_text("\n".join(rows) + "\n")
    file = tmp_path / f"joints.{ending}"
    run("path", "wam", tmp_path / "poses.csv", "--out", file, "--acceleration", 2, "--jerk", 20)
    path = read_path(ROBOT, file.name, file.read_bytes())
    assert len(path.t) > 20
    assert np.abs(path.velocity).max() <= ROBOT.velocity.max()
    assert np.abs(np.diff(path.velocity, axis=0)).max() < 0.1


def test_reconfigurations_and_scene_of_a_json_file_are_read(tmp_path):
    rows = [[0.0] * 7, [0.1] * 7, [0.5] * 7]
    breaks = [{"t": 3.0, "pose": 2, "explanation": "joint_7 would leave the joint limits"}]
    file = tmp_path / "joints.json"
    document = {"joint_names": NAMES, "t": [1.0, 2.0, 3.0], "positions": rows}
    file.write_text(json.dumps({**document, "reconfigurations": breaks, "scene": ["a.scene"]}))
    path = read_path(ROBOT, file.name, file.read_bytes())
    assert path.breaks[0].t == 2.0
    assert path.message == (
        "3 points in 2 s; reconfiguration at 2 s (joint_7 would leave the joint limits)"
    )
    assert stored_scenes(file) == [tmp_path / "a.scene"]
    file.write_text(json.dumps({**document, "reconfigurations": [{"t": "soon"}]}))
    with pytest.raises(PathFileError, match="is not a CSV"):
        read_path(ROBOT, file.name, file.read_bytes())
    assert stored_scenes(tmp_path / "none.json") == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is not a CSV"),
        (b"\xff\xfe\x00", "is not a CSV"),
        (b"[1, 2]", "is not a CSV"),
        (b"{" * 100_000, "is not a CSV"),
        (b"t,wam_j1\n0,0\n1,0\n", "has no joint wam_j2, wam_j3"),
        (b"x,y\n0,0\n", "is not a CSV"),
        (("t," + ",".join(NAMES) + "\n0" + ",0" * 7 + "\n").encode(), "at least two points"),
        (("t," + ",".join(NAMES) + "\n0" + ",a" * 7 + "\n").encode(), "is not a CSV"),
        (
            json.dumps({"joint_names": NAMES, "t": [0, 1], "positions": [[0] * 7] * 3}).encode(),
            "one time for each row",
        ),
        (
            json.dumps({"joint_names": NAMES, "t": [1, 0], "positions": [[0] * 7] * 2}).encode(),
            "finite, increasing times",
        ),
    ],
)
def test_invalid_path_file_raises_a_one_line_error(content, message):
    with pytest.raises(PathFileError, match=message) as caught:
        read_path(ROBOT, "file.csv", content)
    assert "\n" not in str(caught.value)


def test_joints_of_a_larger_robot_are_left_out():
    upper = RobotModel.from_name("wam", base="wam_link1")
    columns = {"joint_names": NAMES, "t": [0, 1], "positions": [[*range(7)], [*range(7)]]}
    path = read_path(upper, "all.json", json.dumps(columns).encode())
    np.testing.assert_array_equal(path.q[0], np.arange(1.0, 7.0))
    assert joint_path(upper, [5, 6], path.q).t[0] == 0.0
