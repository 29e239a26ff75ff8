# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A bag of ``dls-ik stream --record`` has real times, and moves an arm when it is replayed."""

import time
from pathlib import Path

import numpy as np
import pytest
from bags import recorded
from click.testing import CliRunner
from geometry_msgs.msg import PoseStamped
from ros_client import SOON, Client
from ros_streamer import HOME, Streamer, seconds
from ros_wam import WAM

from dls_ik.cli.main import main
from dls_ik.model.rotations import quaternion_from_rotation, transform

rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="needs rosbags")

pytestmark = [pytest.mark.ros, pytest.mark.slow]
STEP = 0.05  # [m] distance of the recorded pose to the home pose
TOLERANCE = 60.0  # [s] clocks are read one after the other, on a busy machine


@pytest.fixture(scope="module")
def home():
    return WAM.fk(HOME)


@pytest.fixture(scope="module")
def bag(wam_node, home, tmp_path_factory):
    """The record of a motion away from home, with the times before and after it [s]."""
    folder = tmp_path_factory.mktemp("bags") / "way.bag"
    with Client() as client:
        Streamer(client).go(home)
    T = home @ transform(translation=np.array([0.0, STEP, 0.0]))
    words = ["--xyz", *T[:3, 3], "--quat", *quaternion_from_rotation(T[:3, :3]), "--wait", SOON]
    before = time.time()
    ended = CliRunner().invoke(
        main, ["stream", "--patience", "60", *map(str, words), "--record", str(folder)]
    )
    assert ended.exit_code == 0, ended.stderr
    return folder, before, time.time()


def test_bag_times_match_the_motion_and_targets_have_no_stamp(bag):
    folder, before, after = bag
    found = recorded(folder)
    for topic, messages in found.items():
        times = [t for t, _ in messages]
        assert times == sorted(times), topic
        assert before <= times[0] <= times[-1] <= after, topic
    for topic in ("/joint_states", "/dls_ik/tip_pose"):
        for t, message in found[topic]:
            assert abs(seconds(message) - t) < TOLERANCE, topic
    stamps = {seconds(message) for _, message in found["/target_pose"]}
    assert stamps == {0.0}, "a target with a stamp is too old when it is replayed"


def test_a_replayed_bag_moves_the_arm_of_a_default_node(bag, home):
    folder, _, _ = bag
    with Client() as client:
        streamer = Streamer(client)
        streamer.go(home)
        goal = recorded(folder)["/target_pose"][-1][1].pose.position

        def is_there():
            tip = WAM.fk(streamer.states[-1].position)[:3, 3]
            return np.linalg.norm(tip - [goal.x, goal.y, goal.z]) < 1e-3

        assert not is_there()
        deadline = time.monotonic() + SOON
        while not is_there():  # again, as `ros2 bag play --loop`: a busy machine may lose messages
            assert time.monotonic() < deadline, "the arm did not follow the bag"
            replay(folder, "/target_pose", client)


def replay(folder: Path, topic: str, client: Client) -> None:
    """Publish the messages of a topic as they were written, at the same intervals."""
    publisher = client.publisher(PoseStamped, topic, 1)
    begin = None
    with rosbag2.Reader(folder) as reader:
        chosen = [each for each in reader.connections if each.topic == topic]
        for _, nanoseconds, raw in reader.messages(chosen):
            now = time.monotonic()
            begin = now - 1e-9 * nanoseconds if begin is None else begin
            client.spin_for(max(0.0, begin + 1e-9 * nanoseconds - now))
            publisher.publish(bytes(raw))
    client.node.destroy_publisher(publisher)
