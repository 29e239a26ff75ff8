"""``dls-ik stream`` against the running node, over DDS."""

import csv
import json
import signal
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from ros_client import NodeProcess
from ros_streamer import HOME
from ros_wam import WAM

from dls_ik.model.rotations import quaternion_from_rotation

pytestmark = [pytest.mark.ros, pytest.mark.slow]
COMMAND = [sys.executable, "-m", "dls_ik.cli", "stream", "--patience", "60"]


def stream(*words):
    """Exit code, stdout and stderr."""
    command = [*COMMAND, *map(str, words)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    return ended.returncode, ended.stdout, ended.stderr


def pose_words(T):
    return ["--xyz", *T[:3, 3], "--quat", *quaternion_from_rotation(T[:3, :3])]


@pytest.fixture(autouse=True, scope="module")
def at_home(wam_node):
    code, _, err = stream(*pose_words(WAM.fk(HOME)), "--wait", 60)
    assert code == 0, err


def test_a_circle_is_followed_recorded_and_drawn(tmp_path):
    record, picture = tmp_path / "way.csv", tmp_path / "way.png"
    files = ["--record", record, "--plot", picture]
    code, out, err = stream("--circle", 0.05, "--period", 2, "--wait", 60, "--json", *files)
    assert code == 0, err
    found = json.loads(out)
    assert found["reached"]
    assert found["sent"] >= 300
    assert found["last_state"] == "REACHED"
    assert found["position_error"]["last"] < 1e-5
    assert sum(found["states"].values()) == pytest.approx(1.0)
    with record.open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == found["heard"]
    aimed = [row for row in rows if row["target_x"]]
    assert rows[-len(aimed) :] == aimed, "only what came before the first target has none"
    rows = aimed
    targets = np.array([[float(row[f"target_{axis}"]) for axis in "xyz"] for row in rows])
    tips = np.array([[float(row[f"tip_{axis}"]) for axis in "xyz"] for row in rows])
    np.testing.assert_allclose(tips[-1], targets[-1], atol=1e-5)
    away = np.linalg.norm(targets - targets[-1], axis=1)
    assert 0.045 < away.max() < 0.0501
    q = np.array([float(rows[-1][name]) for name in WAM.joint_names])
    np.testing.assert_allclose(WAM.fk(q)[:3, 3], tips[-1], atol=1e-5)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_a_recorded_path_with_times(tmp_path):
    T = WAM.fk(HOME)
    path = tmp_path / "poses.csv"
    quaternion = ",".join(map(str, quaternion_from_rotation(T[:3, :3])))
    lines = [
        f"{t},{T[0, 3]},{T[1, 3] + y},{T[2, 3]},{quaternion}"
        for t, y in ((0, 0.0), (0.5, 0.03), (1.0, 0.0))
    ]
    path.write_text("\n".join(["t,x,y,z,qx,qy,qz,qw", *lines]))
    code, out, err = stream("--file", path, "--rate", 50, "--wait", 60)
    assert code == 0, err
    assert out.startswith("reached")
    assert "position error" in out
    assert "\x1b" not in out + err


def test_a_twist_moves_the_tip_along_an_axis(tmp_path):
    record = tmp_path / "way.csv"
    code, out, err = stream(
        "--twist", 0, 0, -0.05, 0, 0, 0, "--for", 1, "--json", "--record", record
    )
    assert code == 0, err
    assert json.loads(out)["reached"] is None
    with record.open() as file:
        heights = [float(row["tip_z"]) for row in csv.DictReader(file)]
    assert heights[-1] < heights[0] - 1e-3
    code, _, err = stream(*pose_words(WAM.fk(HOME)), "--wait", 60)
    assert code == 0, err


def test_what_cannot_be_followed():
    code, out, err = stream("--xyz", 0.4, 0, 0.5, "--frame", "nowhere")
    assert code == 1
    assert out.startswith("refused")
    assert "the node refuses" in err
    assert "'nowhere'" in err
    code, out, err = stream("--xyz", 9, 0, 0.5)
    assert code == 1
    assert out.startswith("not reached")
    assert "out of its reach" in err


def test_nobody_there():
    code, out, err = stream("--circle", 0.1, "--namespace", "nobody", "--patience", 2)
    assert (code, out) == (3, "")
    assert "/nobody/target_pose" in err
    assert err.count("\n") == 1
    code, out, err = stream("--circle", 0.1, "--node", "somebody", "--patience", 10)
    assert (code, out) == (3, "")
    assert "/somebody/tip_pose" in err


def test_a_node_that_goes_away(at_home):
    words = ["--twist", "0", "0", "0.01", "0", "0", "0", "--for", "1000", "--namespace", "mortal"]
    with NodeProcess("-r", "__ns:=/mortal", "-p", "robot:=wam") as node:
        node.wait_for_line("ready")
        with subprocess.Popen(
            [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr.readline().startswith("streaming")
            node.end(signal.SIGKILL)
            out, err = process.communicate(timeout=60)
    assert process.returncode == 3
    assert out.startswith("lost")
    assert err == "dls-ik: the node has gone: nothing comes from it any more\n"


def test_ctrl_c_stops_the_arm_and_shows_what_was():
    words = ["--twist", "0", "0", "0.01", "0", "0", "0", "--for", "1000", "--json"]
    with subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr.readline().startswith("streaming")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == "dls-ik: interrupted; the arm was told to stop\n"
    assert json.loads(out)["interrupted"]
