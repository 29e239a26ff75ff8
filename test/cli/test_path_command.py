# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik path``: trajectories against forward kinematics and limits, and refusals."""

import csv
import io
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from bags import recorded
from cli_runner import MISSING, NO_SOLUTION, document, refusal, run

from dls_ik import RobotModel
from dls_ik.model.rotations import quaternion_from_rotation, rotation_from_rpy

RPY, QUAT = "x,y,z,roll,pitch,yaw", "x,y,z,qx,qy,qz,qw"
ANGLES = np.linspace(0.0, 2.0 * np.pi, 15)
PLACES = np.array([[0.5 + 0.1 * np.cos(a), 0.1 * np.sin(a), 0.3] for a in ANGLES])
DOWN = (0.1, 3.0, -0.2)


@pytest.fixture(scope="module")
def robot():
    return RobotModel.wam()


def written(path, header, rows):
    lines = [header, *(",".join(map(repr, map(float, row))) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture
def circle(tmp_path):
    return written(tmp_path / "circle.csv", RPY, [[*place, *DOWN] for place in PLACES])


def goals():
    T = np.tile(np.eye(4), (len(PLACES), 1, 1))
    T[:, :3, :3], T[:, :3, 3] = rotation_from_rpy(*DOWN), PLACES
    return T


def table(text):
    header, *rows = csv.reader(io.StringIO(text))
    return header, np.array(rows, float)


def test_tip_reaches_all_poses_within_velocity_limits(circle, robot):
    header, rows = table(run("path", "wam", circle, "--out", "-").stdout)
    assert header == ["t", *robot.joint_names]
    t, q = rows[:, 0], rows[:, 1:]
    np.testing.assert_allclose(robot.fk(q), goals(), atol=3e-6)
    assert robot.within_limits(q).all()
    shares = (np.abs(np.diff(q, axis=0)) / np.diff(t)[:, None] / robot.velocity).max(axis=1)
    np.testing.assert_allclose(shares, 1.0, rtol=1e-9)  # the limits are fully used


def test_all_pose_file_formats_give_the_same_path(circle, tmp_path):
    quat = quaternion_from_rotation(rotation_from_rpy(*DOWN))
    columns = [[q, *place, *other] for place, (q, *other) in ((p, quat) for p in PLACES)]
    mixed = written(tmp_path / "q.csv", "qx, X,y,z,qy,qz,qw", columns)
    matrices = tmp_path / "m.json"
    matrices.write_text(json.dumps(goals().tolist()))
    named = json.dumps([{"matrix": T.tolist()} for T in goals()])
    _, rows = table(run("path", "wam", circle, "--out", "-").stdout)
    for source, stdin in ((mixed, None), (matrices, None), ("-", named)):
        _, same = table(run("path", "wam", source, "--out", "-", stdin=stdin).stdout)
        np.testing.assert_allclose(same, rows, atol=1e-9)


def test_times_come_from_the_file_or_from_the_rate(tmp_path):
    t = 0.5 * np.arange(len(PLACES)) ** 1.5
    path = written(
        tmp_path / "t.csv", "t," + RPY, [[a, *p, *DOWN] for a, p in zip(t, PLACES, strict=True)]
    )
    _, rows = table(run("path", "wam", path, "--out", "-").stdout)
    np.testing.assert_array_equal(rows[:, 0], t)
    _, rows = table(run("path", "wam", path, "--out", "-", "--rate", 20).stdout)
    np.testing.assert_allclose(rows[:, 0], np.arange(len(PLACES)) / 20.0)


def test_velocity_excess_and_joint_jumps_give_a_warning(circle, tmp_path):
    out = tmp_path / "fast.csv"
    result = run("path", "wam", circle, "--out", out, "--rate", 1000, columns=60)
    assert "line 3: faster than a velocity limit" in result.stderr
    assert "15, 15 reached" in result.stdout
    assert out.is_file()
    rows = [[*PLACES[0], *DOWN], [-0.5, 0.0, 0.3, *DOWN]]
    path = written(tmp_path / "jump.csv", RPY, rows)
    result = run("path", "wam", path, "--out", tmp_path / "o.csv", "--max-joint-step", 0.2)
    assert "line 3: " in result.stderr
    assert "more than 0.2" in result.stderr
    assert "as fast as the velocity limits allow" in " ".join(result.stdout.split())


def test_json_output_and_summary_match_the_trajectory(circle, tmp_path, robot):
    out = tmp_path / "found.json"
    summary = document("path", "wam", circle, "--out", out, "--seed", "0,0.6,0,1.6,0,0.5,0")
    found = json.loads(out.read_text())
    q = np.array(found["positions"])
    np.testing.assert_allclose(robot.fk(q), goals(), atol=3e-6)
    assert found["joint_names"] == list(robot.joint_names)
    assert found["t"][-1] == pytest.approx(summary["duration"])
    assert (summary["poses"], summary["reached"], summary["missed"]) == (15, 15, [])
    assert summary["largest_step"]["value"] == pytest.approx(np.abs(np.diff(q, axis=0)).max())
    room = np.minimum(q - robot.lower, robot.upper - q)
    assert summary["nearest_limit"]["value"] == pytest.approx(room.min())


def test_unreachable_poses_are_reported_by_line_number(tmp_path):
    rows = [[*PLACES[0], *DOWN], [0.0, 0.0, 3.0, *DOWN], [*PLACES[1], *DOWN]]
    path, out = written(tmp_path / "far.csv", RPY, rows), tmp_path / "o.csv"
    result = run("path", "wam", path, "--out", out, code=NO_SOLUTION)
    assert "line 3: UNREACHABLE, the closest configuration is off by 2." in result.stderr
    assert result.stderr.splitlines()[-1].startswith("dls-ik: nothing is written")
    assert not out.exists()
    summary = document("path", "wam", path, "--out", out, "--approximate")
    assert [each["place"] for each in summary["missed"]] == ["line 3"]
    assert len(table(out.read_text())[1]) == 3


def test_start_that_keeps_the_whole_path_in_limits_is_chosen(tmp_path):
    """A planar arm reaches the first pose with both elbows; only one stays within the limits."""
    robot = RobotModel.from_name("planar_2r").narrowed([-1.0, -2.5], [1.0, 2.5])
    from dls_ik import IkSolver, Task
    from dls_ik.cli.path import solve_along

    q = np.linspace([0.9, -2.0], [-0.9, -0.6], 12)
    solver = IkSolver(robot, task=Task.position_only())
    found = solve_along(solver, robot.fk(q), None, None, 0.5, lambda done, total: None)
    assert found.success.all()
    assert not found.jumps.any()


def test_plot_writes_pictures_of_joints_and_tip(circle, tmp_path):
    picture = tmp_path / "c.png"
    run("path", "wam", circle, "--out", tmp_path / "c.csv", "--plot", picture)
    for path in (picture, tmp_path / "c-tip.png"):
        assert path.read_bytes().startswith(b"\x89PNG")


GOOD = "0.5,0,0.3,0,3,0"


BAD_FILES = [
    ("", "header"),
    (f"{RPY}\n", "no poses"),
    ("x,y,z\n1,2,3", "line 1: the header must be x,y,z,qx,qy,qz,qw or x,y,z,roll,pitch,yaw"),
    (f"{RPY},{QUAT}\n", "line 1"),
    (f"{RPY},x\n", "line 1"),
    (f"{RPY}\n{GOOD}\n1,2,3\n", "line 3: 3 values, but the header has 6 columns"),
    (
        f"{RPY}\n# a comment\n\n{GOOD}\n0.5,0,up,0,3,0\n",
        "line 5: z must be a finite number; got 'up'",
    ),
    (f"{RPY}\n0.5,0,nan,0,3,0\n", "line 2: z must be a finite number; got 'nan'"),
    (f"{QUAT}\n0.5,0,0.3,0,0,0,0\n", "line 2: quaternion"),
    (f"t,{RPY}\n0,{GOOD}\n0,{GOOD}\n", "line 3: t must increase; got 0.0 after 0.0"),
    (f"t,{RPY}\n-1,{GOOD}\n", "line 2: t must be at least 0 [s], and below 2^31; got -1.0"),
    ("[[1, 2], 3]", "pose 1: a pose must be a 4x4"),
    ("[", "not JSON"),
    ('{"poses": []}', "list of 4x4"),
    ("[]", "no poses"),
    (json.dumps([{"matrix": np.eye(4).tolist(), "t": "x"}]), "t must be a number; got 'x'"),
    (
        json.dumps([{"matrix": np.eye(4).tolist(), "t": 0}, np.eye(4).tolist()]),
        "for all poses or for none",
    ),
    (json.dumps([np.diag([2.0, 1, 1, 1]).tolist()]), "pose 1"),
    ("\0\1", "line 1"),
    (b"\xff\xfe\x00", "is not text"),
]


def test_invalid_pose_file_error_is_one_line_that_names_the_place(tmp_path):
    path = tmp_path / "poses"
    for text, said in BAD_FILES:
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        assert said in refusal("path", "wam", path, "--out", tmp_path / "o.csv")
    assert not (tmp_path / "o.csv").exists()


def test_a_robot_without_velocity_limits_needs_a_rate(tmp_path):
    urdf = tmp_path / "free.urdf"
    urdf.write_text(
        '<robot name="free"><link name="a"/><link name="b"/><link name="c"/>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
        '<joint name="f" type="fixed"><parent link="b"/><child link="c"/>'
        '<origin xyz="0 1 0"/></joint></robot>'
    )
    poses = written(tmp_path / "p.csv", RPY, [[0, 1, 0, 0, 0, 0], [0, 0.8, 0.6, 0, 0, 0]])
    words = ("path", urdf, poses, "--task", "position", "--out", tmp_path / "o.csv")
    assert "joint j has no velocity limit; give --rate" in refusal(*words)
    run(*words, "--rate", 10, "--max-joint-step", 1)


def test_deg_and_mm_convert_pose_files(circle, tmp_path):
    rows = [[*(1e3 * place), *np.degrees(DOWN)] for place in PLACES]
    other = written(tmp_path / "mm.csv", RPY, rows)
    once = run("path", "wam", circle, "--out", "-").stdout
    again = run("path", "wam", other, "--out", "-", "--deg", "--mm").stdout
    np.testing.assert_allclose(table(again)[1], table(once)[1], atol=1e-9)
    said = run("path", "wam", other, "--out", "-", code=NO_SOLUTION).stderr
    assert "use --deg for angles in degrees" in said
    assert "use --mm for positions in millimetres" in said


def test_written_pipe_is_read_but_silent_pipe_and_device_are_refused(circle, tmp_path, monkeypatch):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with subprocess.Popen(["sh", "-c", f"sleep 0.2; cat {circle} >{pipe}"]):
        _, rows = table(run("path", "wam", pipe, "--out", "-").stdout)
    assert len(rows) == len(PLACES)
    monkeypatch.setattr("dls_ik.cli.pose.PIPE_TIMEOUT", 0.1)
    for path, said in (
        (pipe, "nothing is written to this pipe within 0.1 s"),
        ("/dev/zero", "it is a device; expected a file"),
    ):
        assert said in refusal("path", "wam", path, "--out", tmp_path / "o.csv")
    monkeypatch.setattr("dls_ik.cli.pose.MAX_POSE_FILE_BYTES", 100)
    assert "larger than" in refusal("path", "wam", circle, "--out", tmp_path / "o.csv")


# Bags

STATE, PLAN = "/joint_states", "/joint_trajectory"


def seconds(stamp):
    return stamp.sec + 1e-9 * stamp.nanosec


@pytest.mark.parametrize("storage", ["sqlite3", "mcap"])
def test_a_bag_has_the_trajectory_of_the_table(circle, tmp_path, storage):
    pytest.importorskip("rosbags", reason="needs rosbags")
    header, rows = table(run("path", "wam", circle, "--out", "-").stdout)
    folder = tmp_path / "moves.bag"
    run("path", "wam", circle, "--out", folder, "--storage", storage)
    found = recorded(folder)
    states = found[STATE]
    np.testing.assert_allclose([stamp for stamp, _ in states], rows[:, 0], atol=1e-9)
    np.testing.assert_allclose([seconds(m.header.stamp) for _, m in states], rows[:, 0], atol=1e-9)
    np.testing.assert_array_equal([m.position for _, m in states], rows[:, 1:])
    ((_, plan),) = found[PLAN]
    assert list(plan.joint_names) == list(states[0][1].name) == header[1:]
    np.testing.assert_array_equal([p.positions for p in plan.points], rows[:, 1:])
    times = [seconds(point.time_from_start) for point in plan.points]
    np.testing.assert_allclose(times, rows[:, 0], atol=1e-9)
    ((stamp, description),) = found["/robot_description"]
    assert stamp == rows[0, 0]
    assert RobotModel.from_urdf(description.data).joint_names == RobotModel.wam().joint_names
    assert sorted(each.name for each in tmp_path.iterdir()) == ["circle.csv", "moves.bag"]
    assert "it already exists" in refusal("path", "wam", circle, "--out", folder)
    assert len(recorded(folder)[STATE]) == len(states), "what is there stays"


def test_rclpy_deserializes_the_messages_of_the_bag(circle, tmp_path):
    rosbag2 = pytest.importorskip("rosbags.rosbag2", reason="needs rosbags")
    serialization = pytest.importorskip("rclpy.serialization", reason="needs rclpy")
    sensors = pytest.importorskip("sensor_msgs.msg", reason="needs sensor_msgs")
    plans = pytest.importorskip("trajectory_msgs.msg", reason="needs trajectory_msgs")
    run("path", "wam", circle, "--out", tmp_path / "a.bag")
    kinds = {STATE: sensors.JointState, PLAN: plans.JointTrajectory}
    ours, read = recorded(tmp_path / "a.bag"), {STATE: [], PLAN: []}
    with rosbag2.Reader(tmp_path / "a.bag") as bag:
        chosen = [each for each in bag.connections if each.topic in kinds]
        (robot,) = [each for each in bag.connections if each.topic == "/robot_description"]
        assert robot.ext.offered_qos_profiles[0].durability.name == "TRANSIENT_LOCAL"
        for connection, _, raw in bag.messages(chosen):
            kind = kinds[connection.topic]
            read[connection.topic].append(serialization.deserialize_message(raw, kind))
    for (_, message), same in zip(ours[STATE], read[STATE], strict=True):
        assert list(same.name) == list(message.name)
        np.testing.assert_array_equal(same.position, message.position)
    ((_, plan),), (same,) = ours[PLAN], read[PLAN]
    assert len(same.points) == len(PLACES)
    assert same.points[-1].time_from_start.sec == plan.points[-1].time_from_start.sec


def test_trajectory_times_are_relative_to_its_first_pose(circle, tmp_path):
    lines = circle.read_text().splitlines()
    late = [f"{1e9 + i},{line}" for i, line in enumerate(lines[1:])]
    circle.write_text("\n".join([f"t,{lines[0]}", *late]))
    run("path", "wam", circle, "--out", tmp_path / "late")
    found = recorded(tmp_path / "late")
    assert seconds(found[STATE][1][1].header.stamp) == 1e9 + 1
    assert [seconds(p.time_from_start) for p in found[PLAN][0][1].points][:2] == [0.0, 1.0]


def test_missing_rosbags_is_reported_with_the_extra_to_install(circle, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rosbags.rosbag2", None)
    said = refusal("path", "wam", circle, "--out", tmp_path / "a.bag", code=MISSING)
    assert "pip install 'dls-ik[bag]'" in said


def test_path_with_scene_reports_blocked_poses_and_path_collisions(tmp_path):
    pytest.importorskip("coal")
    scene, poses, out = (tmp_path / name for name in ("a.scene", "poses.csv", "out.csv"))
    board = "a\n* board\n1\nbox\n0.3 0.8 0.02\n0.65 0 {}\n0 0 0 1\n0 0 0 0\n.\n"
    rows = "x,y,z,roll,pitch,yaw\n0.6,0,0.3,0,1.57,0\n0.6,0,0.4,0,1.57,0\n"
    poses.write_text(rows)
    scene.write_text(board.format(0.9))
    facts = document("path", "wam", poses, "--out", out, "--scene", scene)
    assert (facts["missed"], facts["collisions"], facts["written"]) == ([], [], [str(out)])
    out.unlink()
    scene.write_text(board.format(0.4))  # the board blocks the second pose
    result = run("path", "wam", poses, "--out", out, "--scene", scene, code=NO_SOLUTION)
    assert "line 3: IN_COLLISION, most frequent collision: board - " in result.stderr
    poses.write_text(rows.replace("0.4,", "0.5,"))  # the board blocks the path to the second pose
    facts = document("path", "wam", poses, "--out", out, "--scene", scene, code=NO_SOLUTION)
    assert facts["missed"] == []
    assert facts["collisions"][0]["pair"][0] == "board"
    assert not out.exists()


def test_a_path_solved_as_a_whole_reports_its_reconfiguration(tmp_path):
    """Each branch of a planar arm reaches a part of the arc; joint 1 ends the first part."""
    urdf = tmp_path / "planar.urdf"
    joint = (
        '<joint name="{0}" type="revolute"><parent link="{1}"/><child link="{2}"/>'
        '<axis xyz="0 0 1"/>'
        '<origin xyz="{3} 0 0"/><limit lower="-{4}" upper="{4}" velocity="1" effort="1"/></joint>'
    )
    links = "".join(f'<link name="{name}"/>' for name in ("base", "upper", "lower", "tip"))
    fixed = (
        '<joint name="end" type="fixed"><parent link="lower"/><child link="tip"/>'
        '<origin xyz="1 0 0"/></joint>'
    )
    joints = joint.format("a", "base", "upper", 0, 2) + joint.format("b", "upper", "lower", 1, 3)
    urdf.write_text(f'<robot name="planar">{links}{joints}{fixed}</robot>')
    angles = np.linspace(-2.5, 2.5, 80)
    rows = [[1.2 * np.cos(a), 1.2 * np.sin(a), 0, 0, 0, 0] for a in angles]
    poses = written(tmp_path / "arc.csv", RPY, rows)
    out, picture = tmp_path / "joints.csv", tmp_path / "joints.svg"
    found = document(
        "path", urdf, poses, "--out", out, "--whole", "--task", "position", "--plot", picture
    )
    assert found["reached"] == 80
    (each,) = found["reconfigurations"]
    assert each["reason"] == "limit"
    assert each["names"] == ["a"]
    assert found["min_reconfigurations"] in (1, None)
    assert 0.2 < found["fraction"] < 0.8
    assert "1 reconfiguration (to pose" in picture.read_text()
    assert "a would leave the joint limits" in picture.read_text()
    assert "from above" in (tmp_path / "joints-tip.svg").read_text()
    assert out.exists()
    timed = run(
        "path", urdf, poses, "--out", out, "--whole", "--task", "position", "--acceleration", 2,
        code=1,
    )  # fmt: skip
    assert "a path with reconfigurations leaves the lines" in timed.stderr


def test_refused_paths_are_drawn_with_the_reason(tmp_path):
    rows = [[0.5 + 0.1 * k, 0, 0.3, 0, 3, 0] for k in range(12)]
    poses, picture = written(tmp_path / "line.csv", RPY, rows), tmp_path / "j.svg"
    out = tmp_path / "j.csv"
    found = run("path", "wam", poses, "--out", out, "--whole", "--plot", picture, code=1)
    assert "poses missed, the first is" in picture.read_text()
    assert f"wrote {picture}" in found.stderr
    assert "missed" in (tmp_path / "j-tip.svg").read_text()
    assert not out.exists()


def test_timed_paths_have_velocities_accelerations_and_points_of_their_own(circle, tmp_path):
    out = tmp_path / "timed.csv"
    options = "--whole", "--acceleration", 3, "--jerk", 40, "--tip-speed", 0.2
    found = document("path", "wam", circle, "--out", out, *options)
    assert found["times"] == "fastest with acceleration 3, jerk 40, max linear speed 0.2"
    assert found["largest_share_of_velocity_limit"] <= 1.0
    header, *rows = csv.reader(out.open(newline=""))
    assert header[:2] == ["t", "wam_j1"]
    assert header[-1] == "acceleration wam_j7"
    values = np.array(rows, float)
    assert values[-1, 0] == pytest.approx(found["duration"])
    assert np.abs(values[:, 15:]).max() <= 3.0
    run("path", "wam", circle, "--out", tmp_path / "timed.json", *options)
    stored = json.loads((tmp_path / "timed.json").read_text())
    assert np.shape(stored["accelerations"]) == np.shape(stored["positions"]) == (len(rows), 7)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--jerk", 30), "--jerk needs --acceleration"),
        (("--tip-speed", 0.1), "--tip-speed needs --acceleration"),
        (("--acceleration", 2, "--rate", 10), "leave out --rate"),
    ],
)
def test_options_of_the_timing_that_do_not_fit_are_refused(circle, tmp_path, options, words):
    found = run("path", "wam", circle, "--out", tmp_path / "x.csv", *options, code=2)
    assert words in found.stderr
