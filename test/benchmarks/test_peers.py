# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The peers' benchmark: what all of them are given, how they are judged, and how they may fail."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from random_robots import random_robots
from robots import ROOT

from benchmarks.common import guarded
from benchmarks.peers.__main__ import main
from benchmarks.peers.arm import arm_of, errors, judged
from benchmarks.peers.process import Peer, PeerError
from benchmarks.peers.solver import Found, one_by_one, quaternion
from dls_ik import DlsIkError, RobotModel

COMMAND = [sys.executable, "-m", "benchmarks.peers"]


@pytest.fixture
def arm():
    return arm_of(RobotModel.wam())


def close(a, b):
    return np.allclose(a, b, rtol=0.0, atol=1e-9)


@settings(max_examples=50)
@given(random_robots())
def test_an_arm_and_its_urdf_move_as_the_robot_does(random_robot):
    links = [link for i, link in enumerate(random_robot.links) if random_robot.moves(i)]
    for link in links:
        try:
            robot = RobotModel.from_urdf(random_robot.text, "l0", link)
            arm = arm_of(robot)
        except DlsIkError:
            assert "mimic" in random_robot.text
            continue
        q = robot.random(5, np.random.default_rng(0))
        assert close(arm.fk(q), robot.fk(q))
        again = RobotModel.from_urdf(arm.urdf())
        assert close(again.fk(q), robot.fk(q))
        assert np.array_equal(np.isinf(again.lower), arm.endless)
        assert close(arm.lower[~arm.endless], again.lower[~arm.endless])


def test_errors_are_the_distance_and_the_angle():
    A, B = np.eye(4), np.eye(4)
    c, s = np.cos(1.2), np.sin(1.2)
    B[:3, :3] = [[1, 0, 0], [0, c, -s], [0, s, c]]
    B[:3, 3] = [3.0, 0.0, 4.0]
    position, rotation = errors(A[None], B[None])
    assert position == pytest.approx([5.0])
    assert rotation == pytest.approx([1.2])
    half = np.diag([1.0, -1.0, -1.0, 1.0])
    assert errors(A[None], half[None])[1] == pytest.approx([np.pi])


def test_verdict_checks_pose_and_joint_limits(arm):
    q = np.tile(0.5 * (arm.lower + arm.upper), (5, 1))
    Ts = arm.fk(q)
    q[1, 0] += 3e-6  # not at the pose
    q[2, 1] += 2.0 * np.pi  # a whole turn is granted
    q[3, 3] = np.nan
    q[4, 6] = arm.upper[6] + 1e-3  # the pose is reached, and a limit is exceeded
    Ts[4] = arm.fk(q[4:])[0]
    verdict = judged(arm, Ts, q)
    assert verdict.solved.tolist() == [True, False, True, False, True]
    assert verdict.inside.tolist() == [True, False, True, False, False]


def test_quaternion_converts_back_to_its_rotation():
    T = RobotModel.wam().fk(RobotModel.wam().random(50, np.random.default_rng(3)))
    for R in T[:, :3, :3]:
        x, y, z, w = quaternion(R)
        axis = np.array([x, y, z])
        cross = np.cross(axis, np.eye(3)).T
        again = (w * w - axis @ axis) * np.eye(3) + 2.0 * np.outer(axis, axis) + 2.0 * w * cross
        assert close(again, R)


def test_solver_out_of_time_returns_the_solutions_found_so_far():
    run = one_by_one(lambda T, seed: seed)
    Ts, seeds = np.tile(np.eye(4), (6, 1, 1)), np.arange(12.0).reshape(6, 2)
    found = run(Ts, seeds, -1.0)
    assert isinstance(found, Found)
    assert np.array_equal(found.q, seeds[:1])
    assert np.array_equal(run(Ts, seeds, 60.0).q, seeds)


def test_missing_or_killed_peer_raises_peer_error(arm):
    peer = Peer("no_such_peer", sys.executable, arm)
    with pytest.raises(PeerError, match="no_such_peer"):
        peer.described()
    peer.close()
    peer = Peer("dls_ik", sys.executable, arm)
    rows, versions = peer.described()
    assert versions["numpy"] == np.__version__
    os.kill(peer._process.pid, signal.SIGKILL)
    with pytest.raises(PeerError, match="-9"):
        peer.solve(next(iter(rows)), np.eye(4)[None], np.zeros((1, arm.n)), 1.0)
    peer.close()


def test_command_compares_the_installed_solvers(tmp_path, monkeypatch):
    pytest.importorskip("PyKDL")
    pytest.importorskip("matplotlib")
    target, picture = tmp_path / "peers.json", tmp_path / "peers.png"
    options = ["--only", "dls_ik,kdl", "--samples", "20", "--block", "8"]
    outputs = ["--json", str(target), "--plot", str(picture)]
    monkeypatch.setattr(sys, "argv", ["peers.py", *options, *outputs])
    main()
    figures = json.loads(target.read_text())
    rows = {row["solver"]: row for row in figures["tables"][0]["rows"]}
    for name in ("dls_ik solve", "dls_ik batch, one thread", "dls_ik batch, all cores"):
        assert rows[name]["poses"] == 20
        assert rows[name]["in limits [%]"] == 100.0
    assert rows["dls_ik solve"]["mean / our solve"] == 1.0
    assert any(name.startswith("KDL") and row["mean [us]"] > 0 for name, row in rows.items())
    assert any(note.startswith("KDL NR_JL: ") for note in figures["notes"])
    assert "PyKDL" in figures["machine"]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_arm_not_supported_by_a_peer_gives_a_row_with_the_reason(tmp_path, monkeypatch):
    pytest.importorskip("PyKDL")
    target = tmp_path / "peers.json"
    options = ["--robot", "planar_2r", "--only", "kdl", "--samples", "2", "--json", str(target)]
    monkeypatch.setattr(sys, "argv", ["peers.py", *options])
    main()
    figures = json.loads(target.read_text())
    (row,) = figures["tables"][0]["rows"]
    assert (row["solver"], row["poses"], row["mean [us]"]) == ("kdl", 0, None)
    assert "fewer than 6 joints" in figures["notes"][0]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--only", "dls_ik,nobody"], "nobody"),
        (["--robot", "no_robot", "--only", "dls_ik"], "no_robot"),
        (["--samples", "0"], "not above 0"),
        (["--robot", "y_shape.urdf", "--only", "dls_ik"], "y_shape"),
    ],
)
def test_invalid_options_are_refused_with_the_reason(options, word, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["peers.py", *options])
    with pytest.raises(SystemExit) as caught:
        guarded(main)
    assert caught.value.code
    assert word in f"{caught.value.code} {capsys.readouterr().err}"


def test_ctrl_c_writes_partial_results_and_stops_the_workers(tmp_path):
    target = tmp_path / "peers.json"
    options = ["--only", "dls_ik", "--samples", "100000000", "--block", "20", "--json", str(target)]
    with subprocess.Popen(
        [*COMMAND, *options], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        workers = wait_for(lambda: children(process.pid))
        assert process.stderr.readline() == "peers: running dls_ik\n"
        process.send_signal(signal.SIGINT)
        _, errors_ = process.communicate(timeout=60.0)
    assert process.returncode == 130, errors_
    figures = json.loads(target.read_text())
    assert "interrupted" in figures["notes"][-1]
    wait_for(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in workers))


def children(pid):
    """Processes that a process started."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


def wait_for(condition):
    """Wait until it holds; return what it gave."""
    while not (result := condition()):
        time.sleep(0.02)
    return result
