# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Files of recordings: read back, cut off, of other definitions, of another robot, replayed."""

import numpy as np
import pytest
from control_msgs.msg import JointJog
from geometry_msgs.msg import PoseArray, PoseStamped, TwistStamped
from moveit_msgs.msg import ServoStatus
from rclpy.serialization import serialize_message
from ros_streamer import HOME, stamped
from ros_wam import WAM
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dls_ik import RobotModel
from dls_ik.model.load import find_urdf
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix
from dls_ik.ros.recording.definitions import definition_difference, message_definition
from dls_ik.ros.recording.files import McapWriter, RecordingError, SqliteWriter, read_messages
from dls_ik.ros.recording.recording import MAX_GAP, RecordedTarget, read_recording, steady_times
from dls_ik.ros.recording.replay import joint_trajectory, schedule
from dls_ik.ros.recording.tables import CsvWriter
from dls_ik.ros.recording.topics import RecordingInfo
from dls_ik.servo.joint_motion import MotionLimits

pytest.importorskip("mcap", reason="needs mcap")
pytest.importorskip("rosbags", reason="needs rosbags")

SECOND = 10**9
BEGIN = 1_790_000_000 * SECOND
PERIOD = SECOND // 100
INFO = RecordingInfo("/dls_ik", {"/target_pose": "target", "/joint_states": "command"},
                     WAM.joint_names, "wam_base", "wam_tip")  # fmt: skip
WRITERS = {".mcap": McapWriter, ".bag": SqliteWriter, ".csv": CsvWriter}
LIMITS = MotionLimits(WAM.velocity, np.full(7, 6.0), np.full(7, np.inf))


def positions(k):
    q = HOME.copy()
    q[0] += 0.2 * (1.0 - np.cos(0.01 * k))
    return q


def session(count=300, urdf=None):
    """Yield topic, type, role, time and message of each cycle of a recorded session."""
    text = find_urdf("wam").read_text() if urdf is None else urdf
    texts = "std_msgs/msg/String"
    yield "/dls_ik/recording", texts, "description", BEGIN, String(data=INFO.to_text())
    yield "/robot_description", texts, "description", BEGIN, String(data=text)
    for k in range(count):
        time = BEGIN + k * PERIOD
        state = JointState(name=list(WAM.joint_names), position=positions(k).tolist())
        state.velocity = state.effort = [0.0] * 7
        state.header.stamp.sec, state.header.stamp.nanosec = divmod(time, SECOND)
        yield "/joint_states", "sensor_msgs/msg/JointState", "command", time, state
        status = ServoStatus(code=0, message="following")
        yield "/dls_ik/status", "moveit_msgs/msg/ServoStatus", "status", time, status
        pose = stamped(WAM.fk(positions(k)))
        pose.header.frame_id = "wam_base"
        yield "/target_pose", "geometry_msgs/msg/PoseStamped", "target", time, pose
        yield "/dls_ik/tip_pose", "geometry_msgs/msg/PoseStamped", "tip", time, pose


def write(path, messages=None, close=True):
    writer, known = WRITERS[path.suffix](path), set()
    for topic, kind, role, time, message in session() if messages is None else messages:
        if topic not in known:
            known.add(topic)
            writer.add_topic(topic, kind, role)
        writer.write(topic, time, time, serialize_message(message))
    writer.close() if close else writer.flush()
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("recordings")
    return {suffix: write(folder / f"session{suffix}") for suffix in WRITERS}


@pytest.mark.parametrize("suffix", WRITERS)
def test_recording_is_read_back(files, suffix):
    found = read_recording(files[suffix])
    assert found.notes == ()
    assert len(found.targets) == len(found.q) == 300
    names = found.joint_names
    assert set(names) == set(WAM.joint_names)
    np.testing.assert_allclose(found.positions_at(1.0, WAM.joint_names), positions(100), atol=1e-12)
    np.testing.assert_allclose(found.times, 0.01 * np.arange(300), atol=1e-5)
    T = matrix_from_pose(found.targets[-1].message.pose)
    np.testing.assert_allclose(T, WAM.fk(positions(299)), atol=1e-9)
    found.check_robot(WAM.joint_names, WAM)
    if suffix != ".csv":
        assert found.info == INFO


def test_tables_ignore_joint_states_without_positions_and_joint_targets(tmp_path):
    def joint_states(role, topic, **fields):
        message = JointState(name=list(WAM.joint_names), **fields)
        return topic, "sensor_msgs/msg/JointState", role, BEGIN, message

    *_, tip = session(1)
    command = joint_states("command", "/commands", position=positions(50).tolist())
    path = write(tmp_path / "roles.csv", [
        command,
        joint_states("state", "/joint_states", position=HOME.tolist()),
        command,
        joint_states("state", "/joint_states", velocity=[0.0] * 7),
        joint_states("target", "/target_joint", position=positions(99).tolist()),
        tip,
    ])  # fmt: skip
    found = read_recording(path)
    np.testing.assert_allclose(found.positions_at(0.0, WAM.joint_names), HOME)


def test_tables_follow_commands_of_joints_that_are_not_measured(tmp_path):
    gripper = JointState(name=["finger"], position=[0.01])
    command = JointState(name=list(WAM.joint_names), position=positions(50).tolist())
    kind = "sensor_msgs/msg/JointState"
    *_, tip = session(1)
    path = write(tmp_path / "gripper.csv", [
        ("/joint_states", kind, "state", BEGIN, gripper),
        ("/commands", kind, "command", BEGIN, command),
        tip,
    ])  # fmt: skip
    found = read_recording(path)
    np.testing.assert_allclose(found.positions_at(0.0, WAM.joint_names), positions(50))


def test_other_programs_read_the_files(files):
    from rosbags.rosbag2 import Reader
    from rosbags.typesys import Stores, get_types_from_msg, get_typestore

    with Reader(files[".bag"]) as bag:
        assert bag.message_count == 1202
        connections = [each for each in bag.connections if each.topic == "/joint_states"]
        raw = [data for _, _, data in bag.messages(connections)]
    official = get_typestore(Stores.ROS2_KILTED)
    state = official.deserialize_cdr(raw[-1], "sensor_msgs/msg/JointState")
    assert state.name == list(WAM.joint_names)
    from mcap.reader import make_reader

    with files[".mcap"].open("rb") as file:
        summary = make_reader(file).get_summary()
    assert summary.statistics.message_count == 1202
    for kind in ("sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory"):
        store = get_typestore(Stores.EMPTY)
        store.register(get_types_from_msg(message_definition(kind), kind))
        assert store.hash_rihs01(kind) == official.hash_rihs01(kind), "the hash that ROS publishes"


def test_a_file_that_was_cut_off_is_read_up_to_the_cut(files, tmp_path):
    whole = files[".mcap"].read_bytes()
    complete = read_messages(files[".mcap"]).messages
    before = 0
    for share in (0.3, 0.6, 0.9):
        cut = tmp_path / "cut.mcap"
        cut.write_bytes(whole[: int(share * len(whole))])
        stored = read_messages(cut)
        assert before < len(stored.messages) < len(complete)
        assert stored.messages == complete[: len(stored.messages)]
        assert "cut off (at byte" in stored.damage
        before = len(stored.messages)
        assert read_recording(cut).notes == (stored.damage,)
    cut.write_bytes(whole[:100])
    with pytest.raises(RecordingError, match="no message that can be read"):
        read_messages(cut)
    table = tmp_path / "cut.csv"
    table.write_text(files[".csv"].read_text()[:-30])
    found = read_recording(table)
    assert found.notes == ("the last line is cut off",)
    assert len(found.targets) == 299


def test_a_bag_that_was_not_closed_has_all_messages_that_were_flushed(tmp_path):
    path = write(tmp_path / "open.bag", close=False)
    stored = read_messages(path)
    assert len(stored.messages) == 1202
    assert stored.damage == "it was not closed: metadata.yaml is missing"
    data = path / "open.bag.db3"
    data.write_bytes(data.read_bytes()[: data.stat().st_size // 2])
    assert "damaged or cut off" in loss(path)


def loss(path):
    """Return what is lost of a damaged recording."""
    try:
        return read_messages(path).damage
    except RecordingError as error:
        return str(error)


def test_files_that_are_no_recordings_are_refused(tmp_path):
    (tmp_path / "a.txt").write_text("text")
    (tmp_path / "empty.mcap").write_bytes(b"")
    (tmp_path / "empty.csv").write_text("")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    (tmp_path / "text.mcap").write_text("text " * 100)
    (tmp_path / "text.db3").write_text("text " * 100)
    for name, words in (
        ("gone.mcap", "does not exist"), ("a.txt", "expected FILE.mcap"),
        ("empty.mcap", "no message"), ("empty.csv", "header must begin"),
        ("other.csv", "header must begin"), ("text.mcap", "no message"), ("text.db3", "no message"),
        (".", "no .mcap and no .db3 file"),
    ):  # fmt: skip
        folder = tmp_path / "empty"
        folder.mkdir(exist_ok=True)
        with pytest.raises(RecordingError, match=words):
            read_recording(folder if name == "." else tmp_path / name)
    nothing = write(tmp_path / "nothing.mcap", list(session(0)))
    with pytest.raises(RecordingError, match="nothing to replay"):
        read_recording(nothing)


def test_messages_of_another_definition_are_refused(tmp_path):
    from mcap.writer import Writer

    path = tmp_path / "other.mcap"
    kind = "geometry_msgs/msg/PoseStamped"
    text = message_definition(kind).replace("string frame_id", "string frame_id\nuint32 seq")
    assert "std_msgs/Header is recorded with" in definition_difference(kind, text)
    with path.open("wb") as file:
        writer = Writer(file)
        writer.start("ros2", "test")
        schema = writer.register_schema(kind, "ros2msg", text.encode())
        channel = writer.register_channel("/target_pose", "cdr", schema)
        writer.add_message(channel, 0, serialize_message(PoseStamped()), 0)
        writer.finish()
    with pytest.raises(RecordingError, match=r"another definition.*uint32 seq"):
        read_recording(path)
    noted = "# comment\n" + message_definition(kind).replace("float64 x", "float64 x 0  # default")
    assert definition_difference(kind, noted) == ""


def test_a_clock_that_jumps_shortens_gaps_and_never_goes_back():
    times, notes = steady_times([0, SECOND, SECOND // 2, 2 * SECOND, 100 * SECOND])
    np.testing.assert_allclose(times, [0.0, 1.0, 1.0, 2.5, 2.5 + MAX_GAP])
    assert "jumped back 1 times, by up to 0.5 s" in notes[0]
    assert "1 gaps of up to 98 s" in notes[1]
    assert steady_times([])[0].shape == (0,)


def test_another_robot_is_refused(files, tmp_path):
    found = read_recording(files[".mcap"])
    puma = RobotModel.from_name("puma560")
    with pytest.raises(RecordingError, match=r"another robot: it has no joint puma_j1"):
        found.check_robot(puma.joint_names, puma)
    text = find_urdf("wam").read_text()
    assert "0.55" in text
    longer = write(tmp_path / "longer.mcap", session(5, text.replace("0.55", "0.60")))
    with pytest.raises(RecordingError, match=r"its tip is up to .* elsewhere"):
        read_recording(longer).check_robot(WAM.joint_names, WAM)


def test_targets_keep_their_times_and_lose_their_stamps(files):
    targets = read_recording(files[".mcap"]).targets
    stamp = targets[0].message.header.stamp
    stamp.sec = 12
    sent = schedule(targets, 1.0, 0.25)
    assert len(sent) == 300
    np.testing.assert_allclose([each.time for each in sent], 0.01 * np.arange(300), atol=1e-6)
    assert {each.message.header.stamp.sec for each in sent} == {0}
    stamp.sec = 0
    fast = schedule(targets, 4.0, 0.25)
    assert (len(fast), fast[-1].time) == (300, pytest.approx(2.99 / 4.0))
    slow = schedule(targets, 0.25, 0.25)
    assert len(slow) == 300 + 3 * 299
    np.testing.assert_allclose(np.diff([each.time for each in slow]), 0.01, atol=1e-6)
    steps = np.diff([each.message.pose.position.y for each in slow])
    assert (
        np.abs(steps).max() < 0.3 * np.abs(np.diff([e.message.pose.position.y for e in sent])).max()
    )


def test_joint_targets_are_found_scaled_and_repeated_but_not_displacements(tmp_path):
    jog = JointJog(joint_names=["wam_j1"], velocities=[0.4])
    step = JointJog(joint_names=["wam_j1"], displacements=[0.1])
    goal = JointState(name=["wam_j1"], position=[0.5])
    kinds = ("control_msgs/msg/JointJog", "sensor_msgs/msg/JointState")
    messages = [
        ("/target_joint_jog", kinds[0], "target", BEGIN + k * SECOND // 10, message)
        for k, message in enumerate((jog, jog, step, step))
    ]
    messages.append(("/target_joint", kinds[1], "target", BEGIN + SECOND, goal))
    targets = read_recording(write(tmp_path / "joints.mcap", messages)).targets
    assert [each.topic for each in targets] == ["/target_joint_jog"] * 4 + ["/target_joint"]
    sent = schedule(targets, 0.5, 0.25)
    assert [each.message.velocities.tolist() for each in sent[:4]] == [[0.2]] * 4
    assert [each.message.displacements.tolist() for each in sent[4:6]] == [[0.1]] * 2
    assert len(sent) == 7


def test_twists_are_scaled():
    twist = TwistStamped()
    twist.twist.linear.x = 0.2
    kind = "geometry_msgs/msg/TwistStamped"
    targets = [RecordedTarget(t, "/target_twist", kind, twist) for t in (1.0, 1.2, 9.0)]
    sent = schedule(targets, 0.5, 0.25)
    np.testing.assert_allclose([each.time for each in sent], [0.0, 0.2, 0.4, 16.0])
    assert {each.message.twist.linear.x for each in sent} == {0.1}
    assert twist.twist.linear.x == 0.2


@pytest.mark.parametrize(("speed", "count"), [(0.5, 9), (0.8, 6), (1.0, 5), (2.0, 3), (100.0, 2)])
def test_trajectories_are_resampled_for_other_speeds(speed, count):
    T = WAM.fk(HOME)
    path = [
        T @ transform(rotation_from_rpy(0.1 * k, 0.0, 0.0), [0.0, 0.0, 0.1 * k]) for k in range(5)
    ]
    message = PoseArray(poses=[pose_from_matrix(each) for each in path])
    kind = "geometry_msgs/msg/PoseArray"
    targets = [RecordedTarget(t, "/target_trajectory", kind, message) for t in (0.0, 0.2)]
    sent = schedule(targets, speed, 0.25)
    assert len(sent) == 2, "a repeated trajectory would start again"
    found = [matrix_from_pose(pose) for pose in sent[0].message.poses]
    assert len(found) == count
    for k, each in enumerate(found):
        at = min(k * speed, 4.0)
        turned = rotation_from_rpy(0.1 * at, 0.0, 0.0)
        np.testing.assert_allclose(each, T @ transform(turned, [0.0, 0.0, 0.1 * at]), atol=1e-9)
    assert len(message.poses) == 5
    empty = targets[0]._replace(message=PoseArray())
    assert len(schedule([empty], speed, 0.25)[0].message.poses) == 0


@pytest.mark.parametrize("speed", [0.5, 1.0, 50.0])
def test_joint_positions_are_replayed_within_limits(files, speed):
    found = read_recording(files[".bag"])
    spline, factor = joint_trajectory(found, WAM.joint_names, speed, LIMITS)
    velocity, acceleration = spline.peaks(LIMITS.velocity, LIMITS.acceleration)
    assert max(velocity.ratio, acceleration.ratio) < 1.0 + 1e-9
    assert spline.duration == pytest.approx(2.99 / speed * factor, abs=1e-4)
    assert (factor > 1.0) == (speed > 1.0)
    np.testing.assert_allclose(spline.q[-1], positions(299))
    still = found._replace(q=np.tile(found.q[:1], (300, 1)))
    with pytest.raises(RecordingError, match="no motion of the joints"):
        joint_trajectory(still, WAM.joint_names, speed, LIMITS)


def test_joint_motion_at_the_limits_is_hardly_slowed_down(files):
    """The recorded acceleration jumps from one limit to the other, at any phase of the knots."""
    limit = LIMITS.acceleration[0]
    for phase in (0, 1, 3):
        a = np.zeros(300)
        a[20 + phase : 50 + phase], a[50 + phase : 80 + phase] = limit, -limit
        v = np.cumsum(a) * 0.01
        moved = np.cumsum(v * 0.01 - 0.5 * a * 1e-4)
        found = read_recording(files[".bag"])
        q = np.tile(HOME, (300, 1))
        q[:, list(found.joint_names).index("wam_j1")] += moved
        found = found._replace(times=0.01 * np.arange(300), q=q)
        spline, factor = joint_trajectory(found, WAM.joint_names, 1.0, LIMITS)
        assert factor < 1.2
        np.testing.assert_allclose(spline.q[-1], q[-1])


def test_sqlite_error_is_an_error_of_the_disk(tmp_path):
    writer = SqliteWriter(tmp_path / "full.bag")
    writer.add_topic("/t", "std_msgs/msg/String", "target")
    writer._writer.storage.conn.execute("PRAGMA max_page_count=12")
    with pytest.raises(OSError, match="full"):
        writer.write("/t", BEGIN, 0, bytes(10**6))
    writer._writer.abort()
