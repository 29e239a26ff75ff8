# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik stream`` against the running node, over DDS."""

import csv
import json
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from bags import recorded
from click.testing import CliRunner
from matplotlib.figure import Figure
from prefork import ForkingPopen
from programs import environment
from robots import TEST_URDF, joint
from ros_client import NodeProcess
from ros_streamer import HOME
from ros_wam import WAM

from dls_ik import RobotModel
from dls_ik.cli.main import main
from dls_ik.cli.options import ChosenRobot
from dls_ik.cli.view import remote
from dls_ik.model.rotations import quaternion_from_rotation

pytestmark = [pytest.mark.ros, pytest.mark.slow]
COMMAND = [sys.executable, "-m", "dls_ik.cli", "stream", "--patience", "60"]
STREAMS = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}


def stream(*words):
    """Exit code, stdout and stderr."""
    ended = CliRunner().invoke(main, ["stream", "--patience", "60", *map(str, words)])
    return ended.exit_code, ended.stdout, ended.stderr


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


def test_timed_path_file_is_followed_and_recorded_to_a_bag(tmp_path):
    T = WAM.fk(HOME)
    path, bag = tmp_path / "poses.csv", tmp_path / "way.bag"
    quaternion = ",".join(map(str, quaternion_from_rotation(T[:3, :3])))
    lines = [
        f"{t},{T[0, 3]},{T[1, 3] + y},{T[2, 3]},{quaternion}"
        for t, y in ((0, 0.0), (0.5, 0.03), (1.0, 0.0))
    ]
    path.write_text("\n".join(["t,x,y,z,qx,qy,qz,qw", *lines]))
    code, out, err = stream("--file", path, "--rate", 50, "--wait", 60, "--record", bag)
    assert code == 0, err
    assert out.startswith("reached")
    assert "position error" in out
    assert "\x1b" not in out + err
    found = recorded(bag)
    outside = {topic for topic in found if not topic.startswith("/dls_ik/")} - {"/diagnostics"}
    assert outside == {"/joint_states", "/target_pose", "/robot_description"}
    assert "/dls_ik/tip_pose" in found
    ((_, description),) = found["/robot_description"]
    robot = RobotModel.from_urdf(description.data)
    _, state = found["/joint_states"][-1]
    q = dict(zip(state.name, state.position, strict=True))
    tip = robot.fk([q[name] for name in robot.joint_names])[:3, 3]
    for topic in ("/target_pose", "/dls_ik/tip_pose"):
        times = [t for t, _ in found[topic]]
        assert times == sorted(times)
        place = found[topic][-1][1].pose.position
        np.testing.assert_allclose([place.x, place.y, place.z], tip, atol=1e-4)


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


def test_refused_and_unreachable_targets_exit_with_code_1():
    code, out, err = stream("--xyz", 0.4, 0, 0.5, "--frame", "nowhere")
    assert code == 1
    assert out.startswith("refused")
    assert "rejected by the node" in err
    assert "'nowhere'" in err
    code, out, err = stream("--xyz", 9, 0, 0.5)
    assert code == 1
    assert out.startswith("not reached")
    assert "target out of reach" in err


def test_missing_node_exits_with_code_3_and_a_one_line_error():
    code, out, err = stream("--circle", 0.1, "--namespace", "nobody", "--patience", 2)
    assert (code, out) == (3, "")
    assert "/nobody/target_pose" in err
    assert err.count("\n") == 1
    code, out, err = stream("--circle", 0.1, "--node", "somebody", "--patience", 10)
    assert (code, out) == (3, "")
    assert "/somebody/tip_pose" in err


def test_lost_node_exits_with_code_3_and_ctrl_c_stops_the_arm(at_home):
    words = ["--twist", "0", "0", "0.01", "0", "0", "0", "--for", "1000", "--namespace", "mortal"]
    with NodeProcess("-r", "__ns:=/mortal", "-p", "robot:=wam") as node:
        node.wait_for_line("ready")
        with ForkingPopen([*COMMAND, *words], env=environment(), **STREAMS) as process:
            assert process.stderr.readline().startswith("streaming")
            node.end(signal.SIGKILL)
            out, err = process.communicate(timeout=300)
    assert process.returncode == 3
    assert out.startswith("lost")
    assert err == "dls-ik: the node has stopped: no data received from it\n"

    words = ["--twist", "0", "0", "0.01", "0", "0", "0", "--for", "1000", "--json"]
    with ForkingPopen([*COMMAND, *words], env=environment(), **STREAMS) as process:
        assert process.stderr.readline().startswith("streaming")
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert process.returncode == 130
    assert err == "dls-ik: interrupted; the arm was commanded to stop\n"
    assert json.loads(out)["interrupted"]


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    """A node with an arm of two tips from a file, whose drivers have other names for the joints."""
    file = tmp_path_factory.mktemp("arm") / "arm.urdf"
    links = '<link name="camera"/><link name="world"/>'
    mount = joint("mount", "fixed", "link6", "camera", detail="")
    stand = joint("stand", "fixed", "world", "base_link", detail='<origin xyz="0 0 1"/>')
    text = (TEST_URDF / "ur5e.urdf").read_text()
    file.write_text(text.replace("</robot>", f"{links}{mount}{stand}</robot>"))
    settings = [
        f"robot:={file}", "base:=base_link", "tip:=tip", "output_names:=[a,b,c,d,e,f]",
        "initial_positions:=[0.0,-1.5,1.5,-1.5,-1.5,0.0]",
    ]  # fmt: skip
    parameters = [word for setting in settings for word in ("-p", setting)]
    with NodeProcess("-r", "__ns:=/forked", *parameters) as node:
        node.wait_for_line("ready")
        yield file


def draw(file, picture):
    words = ["--circle", 0.05, "--period", 1, "--namespace", "forked"]
    return stream(*words, "--plot", picture, "--robot", file)


def test_plot_uses_base_tip_and_joints_of_the_node(forked, tmp_path, monkeypatch):
    shown = {}

    def keep(robot, times, q, goals):
        shown.update(robot=robot, error=robot.fk(q)[:, :3, 3] - goals)
        return Figure()

    monkeypatch.setattr("dls_ik.plot.tip_path", keep)
    code, out, err = draw(forked, tmp_path / "way.png")
    assert code == 0, err
    assert (tmp_path / "way.png").is_file()
    assert (shown["robot"].base, shown["robot"].tip) == ("base_link", "tip")
    mean = float(np.linalg.norm(shown["error"], axis=1).mean())
    (line,) = [line for line in out.splitlines() if line.startswith("position error")]
    number, unit = re.search(r"mean ([\d.]+) (\w+),", line).groups()
    said = float(number) * {"m": 1.0, "mm": 1e-3, "um": 1e-6, "nm": 1e-9}[unit]
    assert mean == pytest.approx(said, rel=0.1, abs=1e-5), "picture and summary agree"


def test_missing_plot_inputs_are_refused_before_motion(forked, tmp_path):
    picture = tmp_path / "way.png"
    words = ["--circle", 0.05, "--namespace", "forked", "--plot", picture]
    for robot, said in (([], "by --robot FILE"), (["--robot", "wam"], "'base_link'")):
        code, out, err = stream(*words, *robot)
        assert (code, out) == (2, "")
        assert said in err
        assert err.count("\n") == 1
    assert not picture.exists()


def test_recording_is_saved_as_csv_if_the_plot_fails(forked, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("dls_ik.plot.save_picture", fail)
    code, _, err = draw(forked, tmp_path / "way.png")
    assert code == 2
    assert "No space left" in err
    with (tmp_path / "way.png.csv").open() as file:
        assert len(list(csv.DictReader(file))) > 10


def test_viewer_of_a_given_robot_uses_base_and_tip_of_the_node(forked):
    with remote(ChosenRobot(str(forked), None, None), "forked", 60.0) as shown:
        assert (shown.robot.base, shown.robot.tip) == ("base_link", "tip")
