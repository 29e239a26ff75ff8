# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik record``, ``replay`` and ``waypoint`` against running nodes, over DDS."""

import json
import resource
import signal
import subprocess

import numpy as np
import pytest
import yaml
from click.testing import CliRunner
from prefork import ForkingPopen
from programs import COMMAND, environment
from ros_client import SOON, Client, NodeProcess
from ros_scene import apply, box, removed, world
from ros_streamer import HOME, positions
from ros_wam import WAM
from sensor_msgs.msg import JointState

from dls_ik.cli.main import main
from dls_ik.ros.recording.files import read_messages
from dls_ik.ros.recording.recording import read_recording

pytest.importorskip("mcap", reason="needs mcap")
pytest.importorskip("rosbags", reason="needs rosbags")

pytestmark = [pytest.mark.ros, pytest.mark.slow]
PATIENCE = ("--patience", "60")
TOPICS = {
    "/target_pose",
    "/joint_states",
    "/dls_ik/status",
    "/dls_ik/tip_pose",
    "/planning_scene",
    "/robot_description",
    "/dls_ik/recording",
}
MAX_JOINT_DIFFERENCE = 0.05  # [rad] messages of a replay arrive at slightly other times


def command(*words, code=0):
    """Return stdout and stderr of a command."""
    ended = CliRunner().invoke(main, [*map(str, words), *PATIENCE])
    assert ended.exit_code == code, (ended.output, ended.exception)
    return ended.stdout, ended.stderr


class Recording:
    """Process of ``dls-ik record``."""

    def __init__(self, file, *words, **options):
        self.process = ForkingPopen(
            [*COMMAND, "record", str(file), *PATIENCE, *words], env=environment(),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options,
        )  # fmt: skip
        lines = iter(self.process.stderr.readline, "")
        assert any(line.startswith("recording /") for line in lines)

    def end(self, number=signal.SIGINT):
        """Send a signal, and return exit code, stdout and stderr."""
        self.process.send_signal(number)
        return self.wait()

    def wait(self):
        out, err = self.process.communicate(timeout=SOON)
        return self.process.returncode, out, err


@pytest.fixture(scope="module")
def session(wam_node, tmp_path_factory):
    """Recordings of a circle in all formats, and the joint positions at its end."""
    folder = tmp_path_factory.mktemp("sessions")
    files = [folder / f"session{suffix}" for suffix in (".mcap", ".bag", ".csv")]
    recordings = [Recording(file) for file in files]
    command("stream", "--circle", "0.05", "--period", "4", "--wait", "60")
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGINT
    for recording, number in zip(recordings, numbers, strict=True):
        code, out, err = recording.end(number)
        assert (code, err) == (0, ""), err
        assert "/target_pose" in out
    return files


@pytest.fixture(scope="module")
def fresh(wam_node):
    """A node in a namespace with the same arm, and its joint states."""
    home = f"initial_positions:={HOME.tolist()}"
    settings = ("-p", "robot:=wam", "-p", "acceleration:=[10.0]", "-p", home)
    with NodeProcess("-r", "__ns:=/fresh", *settings) as node, Client("/fresh") as client:
        node.wait_for_line("the stream keeps")
        yield client.listen(JointState, "joint_states", 10), client  # few old messages wait


def now(fresh):
    """Return the joint positions of the fresh node once it is at rest."""
    states, client = fresh
    del states[:]

    def is_at_rest():  # ten old messages may wait
        return len(states) > 15 and not any(states[-1].velocity)

    client.spin_until(is_at_rest, what="an arm at rest")
    return positions(states[-1])


def replay(file, *words, code=0):
    return command("replay", file, "--namespace", "fresh", *words, code=code)


def test_recording_has_targets_joints_status_scene_and_robot(session):
    for file in session[:2]:
        stored = read_messages(file)
        assert stored.damage == ""
        kinds = {message.topic: message.kind for message in stored.messages}
        assert set(kinds) >= TOPICS
        times = [message.time for message in stored.messages]
        assert times == sorted(times)
    found = read_recording(session[0])
    assert found.info.node == "/dls_ik"
    assert set(found.info.joints) == set(WAM.joint_names)
    assert len(found.targets) > 10, "a busy machine may lose messages"


def test_recorded_session_gives_the_same_joints_on_a_fresh_node(session, fresh):
    recorded = read_recording(session[0])
    last = recorded.positions_at(recorded.targets[-1].time + 1.0, WAM.joint_names)
    out, _ = replay(session[0])
    assert "state REACHED" in out
    q = now(fresh)
    assert np.abs(q - last).max() < MAX_JOINT_DIFFERENCE
    assert np.abs(WAM.fk(q) - WAM.fk(last)).max() < 1e-4


def test_replay_at_other_speeds_and_of_joints(session, fresh):
    file = session[0]
    recorded = read_recording(file)
    duration = recorded.targets[-1].time - recorded.targets[0].time
    found = json.loads(replay(file, "--speed", 2.0, "--json")[0])
    assert found["state"] == "REACHED"
    assert found["duration"] > duration / 2.0
    assert found["sent"] == len(recorded.targets)
    out, _ = replay(session[1], "--what", "joints", "--speed", "20")
    assert out.startswith("points ")
    assert np.abs(now(fresh) - read_recording(session[1]).q[-1]).max() < 1e-3


def test_targets_are_replayed_to_a_node_without_actions(session, wam_node):
    settings = ("-p", "robot:=wam", "-p", "motion_actions:=false")
    settings += ("-p", "stream_avoid_collisions:=none")
    with NodeProcess("-r", "__ns:=/passive", *settings) as node:
        node.wait_for_line("ready")
        words = ("replay", session[0], "--namespace", "passive")
        out, _ = command(*words, "--no-start")
        assert "state REACHED" in out
        _, err = command(*words, "--what", "joints", code=3)
        assert "--no-start needs no action" in err


def test_ctrl_c_ends_a_loop(session, fresh):
    words = ["replay", str(session[0]), "--namespace", "fresh", "--loop", *PATIENCE]
    with ForkingPopen(
        [*COMMAND, *words], env=environment(), stderr=subprocess.PIPE, text=True
    ) as process:
        states, client = fresh
        first = now(fresh)
        client.spin_until(lambda: np.abs(positions(states[-1]) - first).max() > 0.01, what="motion")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=SOON)
    assert process.returncode == 130
    assert "interrupted after" in err


def test_waypoints_are_saved_and_reached(fresh, tmp_path):
    file = tmp_path / "points.yaml"
    node = ("--file", file, "--namespace", "fresh")
    before = now(fresh)
    command("waypoint", "save", "here", *node)
    _, err = command("waypoint", "save", "here", *node, code=2)
    assert "--replace" in err
    command("stream", "--twist", 0, 0.1, 0, 0, 0, 0, "--for", 1, "--namespace", "fresh")
    assert np.abs(now(fresh) - before).max() > 0.01
    _, err = command("waypoint", "go", "here", *node)
    assert "at here" in err
    assert np.abs(now(fresh) - before).max() < 1e-4
    _, err = command("waypoint", "go", "there", *node, code=2)
    assert "no waypoint 'there'; did you mean here?" in err
    content = yaml.safe_load(file.read_text())
    joints = content["waypoints"]["here"].pop("joints")
    content["waypoints"]["here"]["joints"] = {f"x{name}": q for name, q in joints.items()}
    content["waypoints"]["far"] = {"joints": {**joints, "wam_j1": 99.0}}
    file.write_text(yaml.safe_dump(content))
    _, err = command("waypoint", "go", "here", *node, code=2)
    assert "of another robot" in err
    _, err = command("waypoint", "go", "far", *node, code=1)
    assert "outside its limits" in err


def test_waypoint_behind_an_obstacle_is_reached_around_it(fresh, tmp_path):
    file = tmp_path / "points.yaml"
    node = ("--file", file, "--namespace", "fresh")
    joints = dict(zip(WAM.joint_names, HOME.tolist(), strict=True))
    sides = {name: {**joints, "wam_j1": q} for name, q in (("left", 0.6), ("right", -0.6))}
    for each in sides.values():
        each["wam_j2"] = 1.2
    file.write_text(yaml.safe_dump({"waypoints": {k: {"joints": v} for k, v in sides.items()}}))
    command("waypoint", "go", "left", *node)
    middle = WAM.fk([0.0, *list(sides["left"].values())[1:]])[:3, 3]
    assert apply(fresh[1], world(box("pole", middle, (0.06, 0.06, 0.06))))
    _, err = command("waypoint", "go", "right", *node)
    assert "at right; not straight: 'pole' and" in err
    assert np.abs(now(fresh) - list(sides["right"].values())).max() < 1e-4
    assert apply(fresh[1], world(removed("pole")))


def test_a_killed_recorder_and_a_full_disk_leave_what_was_written(session, wam_node, tmp_path):
    file, limit = tmp_path / "killed.mcap", 150_000  # [bytes]
    killed = Recording(file)
    for _ in range(100):
        if file.stat().st_size >= limit:
            break
        assert killed.process.poll() is None, "the recorder has ended"
        command("stream", "--twist", 0, 0.01, 0, 0, 0, 0, "--for", 1)
    assert file.stat().st_size >= limit
    killed.end(signal.SIGKILL)
    stored = read_messages(file)
    assert len(stored.messages) > 100
    assert "cut off" in stored.damage

    full = Recording(
        tmp_path / "full.mcap",
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    code, _, err = full.wait()
    assert code == 2
    assert "cannot write" in err
    assert "are recorded" in err
    assert len(read_messages(tmp_path / "full.mcap").messages) > 100


def test_other_robots_missing_nodes_and_existing_files_are_refused(session, fresh, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text(session[2].read_text().replace("wam_j", "puma_j"))
    _, err = replay(other, code=2)
    assert "is of another robot: it has no joint wam_j1" in err
    out, err = replay(other, "--force")
    assert "no positions of the joints of the node" in err
    assert out.startswith("sent ")
    words = ("--what", "joints")
    assert "no motion of the joints" in replay(other, "--force", *words, code=2)[1]
    other.write_text("\n".join(session[2].read_text().splitlines()[:1]))
    assert "nothing to replay" in replay(other, *words, code=2)[1]
    ended = CliRunner().invoke(main, ["record", str(session[0])])
    assert (ended.exit_code, "already exists" in ended.stderr) == (2, True)
    ended = CliRunner().invoke(main, ["record", str(tmp_path / "a.txt")])
    assert (ended.exit_code, "must end in .mcap" in ended.stderr) == (2, True)
    words = ["record", str(tmp_path / "a.mcap"), "--node", "gone", "--patience", "1"]
    ended = CliRunner().invoke(main, words)
    assert (ended.exit_code, "no node /gone" in ended.stderr) == (3, True)
    assert not (tmp_path / "a.mcap").exists()
