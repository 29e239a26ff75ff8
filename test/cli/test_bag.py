"""``dls-ik path`` to a rosbag2: read back by the library's reader, message by message."""

import sys

import numpy as np
import pytest
from cli_runner import MISSING, refusal, run
from test_path_command import DOWN, PLACES, RPY, table, written

STATE, PLAN = "/joint_states", "/joint_trajectory"


@pytest.fixture
def poses(tmp_path):
    return written(tmp_path / "poses.csv", RPY, [[*place, *DOWN] for place in PLACES])


def messages(folder):
    """By topic: times [s] in the bag, and messages."""
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="needs rosbags")
    from rosbags.typesys import Stores, get_typestore

    store, found = get_typestore(Stores.ROS2_HUMBLE), {}
    with rosbag2.Reader(folder) as bag:
        for connection, stamp, raw in bag.messages():
            message = store.deserialize_cdr(raw, connection.msgtype)
            found.setdefault(connection.topic, []).append((stamp * 1e-9, message))
    return found


def seconds(stamp):
    return stamp.sec + 1e-9 * stamp.nanosec


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
def test_a_bag_has_the_trajectory_of_the_table(poses, tmp_path, storage):
    pytest.importorskip("rosbags", reason="needs rosbags")
    header, rows = table(run("path", "wam", poses, "--out", "-").stdout)
    folder = tmp_path / "moves.bag"
    run("path", "wam", poses, "--out", folder, "--storage", storage)
    found = messages(folder)
    states = found[STATE]
    np.testing.assert_allclose([stamp for stamp, _ in states], rows[:, 0], atol=1e-9)
    np.testing.assert_allclose([seconds(m.header.stamp) for _, m in states], rows[:, 0], atol=1e-9)
    np.testing.assert_array_equal([m.position for _, m in states], rows[:, 1:])
    ((_, plan),) = found[PLAN]
    assert list(plan.joint_names) == list(states[0][1].name) == header[1:]
    np.testing.assert_array_equal([p.positions for p in plan.points], rows[:, 1:])
    times = [seconds(point.time_from_start) for point in plan.points]
    np.testing.assert_allclose(times, rows[:, 0], atol=1e-9)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["moves.bag", "poses.csv"]


def test_a_trajectory_begins_at_its_own_start(poses, tmp_path):
    lines = poses.read_text().splitlines()
    late = [f"{1e9 + i},{line}" for i, line in enumerate(lines[1:])]
    poses.write_text("\n".join([f"t,{lines[0]}", *late]))
    run("path", "wam", poses, "--out", tmp_path / "late")
    found = messages(tmp_path / "late")
    assert seconds(found[STATE][1][1].header.stamp) == 1e9 + 1
    assert [seconds(p.time_from_start) for p in found[PLAN][0][1].points][:2] == [0.0, 1.0]


def test_what_is_there_already_stays(poses, tmp_path):
    folder = tmp_path / "there.bag"
    folder.mkdir()
    assert "it is there already" in refusal("path", "wam", poses, "--out", folder)
    assert not list(folder.iterdir())


def test_without_the_library_it_is_said_what_to_install(poses, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rosbags.rosbag2", None)
    said = refusal("path", "wam", poses, "--out", tmp_path / "a.bag", code=MISSING)
    assert "pip install 'dls-ik[bag]'" in said


def test_ros_itself_reads_the_messages(poses, tmp_path):
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="needs rosbags")
    serialization = pytest.importorskip("rclpy.serialization", reason="needs rclpy")
    sensors = pytest.importorskip("sensor_msgs.msg", reason="needs sensor_msgs")
    plans = pytest.importorskip("trajectory_msgs.msg", reason="needs trajectory_msgs")
    run("path", "wam", poses, "--out", tmp_path / "a.bag")
    kinds = {STATE: sensors.JointState, PLAN: plans.JointTrajectory}
    ours, read = messages(tmp_path / "a.bag"), {STATE: [], PLAN: []}
    with rosbag2.Reader(tmp_path / "a.bag") as bag:
        for connection, _, raw in bag.messages():
            kind = kinds[connection.topic]
            read[connection.topic].append(serialization.deserialize_message(raw, kind))
    for (_, message), same in zip(ours[STATE], read[STATE], strict=True):
        assert list(same.name) == list(message.name)
        np.testing.assert_array_equal(same.position, message.position)
    (plan,) = read[PLAN]
    assert len(plan.points) == len(PLACES)
    assert plan.points[-1].time_from_start.sec == ours[PLAN][0][1].points[-1].time_from_start.sec
