# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the comparison of servo-level packages on streams of teleoperation."""

import numpy as np
import pytest

from benchmarks.peers.arm import stand, tips
from benchmarks.servo_peers.adapters import PEERS, DlsIk
from benchmarks.servo_peers.job import ServoJob, ServoRun
from benchmarks.servo_peers.worker import follow
from benchmarks.servo_runs import moving
from benchmarks.teleop import ACCELERATION, FIVE_JOINTS, PAIR, arm_named, followed, job_of
from benchmarks.teleop_figures import figures_of, gathered
from benchmarks.teleop_picture import draw
from benchmarks.teleop_streams import KINDS, PERIOD, Hand, judged
from dls_ik import RobotModel
from dls_ik.servo import Controller, ServoState


@pytest.fixture
def robot():
    return moving("wam7")


def hand_of(robot, seed):
    return Hand(robot, np.full(robot.n, ACCELERATION), np.random.default_rng(seed))


@pytest.mark.parametrize("kind", KINDS)
def test_streams_have_reachable_targets_and_keep_the_limits_of_the_hand(robot, kind):
    stream = KINDS[kind](hand_of(robot, 3))
    assert stream.kind == kind
    assert len(stream.targets) == len(stream.has_arrived) == len(stream.is_judged)
    R = stream.targets[:, :3, :3]
    assert np.allclose(R @ np.swapaxes(R, 1, 2), np.eye(3), atol=1e-9)
    is_outside = (stream.start > robot.upper) | (stream.start < robot.lower)
    assert is_outside.any() == (kind == "outside limits")
    assert stream.has_arrived.all() == (kind not in ("headset", "dropout", "re-clutch"))


def test_controller_follows_a_hand_within_its_limits(robot):
    stream = KINDS["clutch"](hand_of(robot, 5))
    job = job_of(robot, [stream])
    found = follow(job, DlsIk)
    figures = figures_of(job, stream, found.q[0], found.has_failed[0])
    assert figures.steps_above == figures.failed == 0
    assert figures.acceleration < 1.0 + 1e-6
    assert figures.error < 1e-3


def test_two_arms_are_followed_at_once_each_with_its_own_stream():
    robot = arm_named(PAIR)
    hand = hand_of(robot, 4)
    streams = [KINDS[kind](hand)._replace(kind=kind) for kind in ("re-clutch", "dropout")]
    short = [
        each._replace(
            targets=each.targets[:400],
            has_arrived=each.has_arrived[:400],
            is_judged=each.is_judged[:400],
        )
        for each in streams
    ]
    job = job_of(robot, short, 2)
    both = RobotModel.from_urdf(job.arm.urdf(job.velocity, job.count), tip=tips(2))
    for k, each in enumerate(short):
        tip = both.fk(job.start[0])[k]
        assert np.allclose(tip, stand(k) @ robot.fk(each.start), atol=1e-12)
    found = follow(job, DlsIk)
    figures = dict(followed(job, short, found))
    assert list(figures) == ["re-clutch", "dropout"]
    for each in figures.values():
        assert each.steps_above == each.failed == each.freezes == 0
        assert each.acceleration < 1.0 + 1e-6
        assert each.error < 1e-3


def test_figures_tell_jumps_rests_delays_and_starts_outside(robot):
    hand = hand_of(robot, 8)
    start = hand.draw()
    q = hand.wander(start)
    stream = judged("reaching", start, robot.fk(q))
    job = job_of(robot, [stream])
    none = np.zeros(len(q), bool)
    exact = figures_of(job, stream, q, none)
    assert exact.steps_above == exact.freezes == exact.delay == exact.recovery == 0
    assert exact.error < 1e-12
    assert 0.2 < exact.velocity <= 0.4 + 1e-9, "the share of the limits that a hand uses"
    late = np.vstack([np.repeat(q[:1], 12, axis=0), q[:-12]])
    assert figures_of(job, stream, late, none).delay == pytest.approx(12 * PERIOD)
    jumped = q.copy()
    jumped[500:] += 0.1
    figures = figures_of(job, stream, jumped, none)
    assert figures.steps_above == 1
    assert figures.largest_step == pytest.approx(0.1, abs=0.02)
    rested = np.repeat(q[:1], len(q), axis=0)
    assert figures_of(job, stream, rested, none).freezes > 20
    outside = q.copy()
    outside[:70, 2] = robot.upper[2] + 0.01
    assert figures_of(job, stream, outside, none).recovery == pytest.approx(71 * PERIOD)
    outside[-1, 2] = robot.upper[2] + 0.01
    assert figures_of(job, stream, outside, none).recovery == np.inf


def test_jobs_and_answers_are_the_same_after_a_file(robot, tmp_path):
    stream = KINDS["beyond reach"](hand_of(robot, 1))
    job = job_of(robot, [stream])
    job.save(tmp_path / "job.npz")
    again = ServoJob.load(tmp_path / "job.npz")
    assert again.arm.urdf(again.velocity) == job.arm.urdf(job.velocity)
    assert np.array_equal(again.targets, job.targets)
    same = RobotModel.from_urdf(again.arm.urdf(again.velocity))
    assert np.allclose(same.fk(stream.start), robot.fk(stream.start), atol=1e-12)
    run = ServoRun(np.ones((1, 2, 7)), np.ones((1, 2)), np.zeros((1, 2), bool), "numba 1")
    run.save(tmp_path / "run.npz")
    assert ServoRun.load(tmp_path / "run.npz").versions == "numba 1"


def test_every_peer_states_its_settings_and_packages():
    assert all(peer.settings and peer.packages for peer in PEERS.values())


def test_controller_leaves_a_dead_end_as_soon_as_the_target_rests():
    """The elbow is held at its limit, on the wrong side, when the target comes to rest."""
    arm = arm_named(FIVE_JOINTS)
    stuck = np.array([0.939, 0.849, 0.2, 2.15, 1.33])
    T = np.tile(arm.fk([0.939, 1.59, -1.203, 2.8, 1.33]), (220, 1, 1))
    T[:60, :3, 3] -= np.linspace(1.0, 0.0, 60)[:, None] * [0.02, 0.02, 0.04]
    controller = Controller(arm, acceleration=ACCELERATION)
    controller.seed(stuck)
    states, commands = [], [stuck]
    for k, pose in enumerate(T):
        controller.follow_pose(pose, k * PERIOD)
        output = controller.cycle(k * PERIOD, PERIOD)
        states.append(output.state)
        commands.append(output.q)
    begin = states.index(ServoState.JOINT_MOTION)
    assert 60 <= begin <= 74, "0.1 s after target and reference"
    moves = np.abs(np.diff(commands[: begin + 1], axis=0)).max(axis=1) > 0.0
    assert moves[-10:].any(), "the command rests for less than 0.1 s"
    assert states[-1] is ServoState.REACHED


def test_picture_shows_every_package(robot, tmp_path):
    hand = hand_of(robot, 2)
    found = {}
    for kind in ("dropout", "re-clutch"):
        stream = KINDS[kind](hand)
        job = job_of(robot, [stream])
        rested = np.repeat(stream.start[None], len(stream.targets), axis=0)
        found[kind] = [figures_of(job, stream, rested, np.zeros(len(rested), bool))]
    run = ServoRun(rested[None], np.full((1, len(rested)), 1e-5), np.zeros((1, 1), bool), "")
    figures = gathered(found, [run])
    assert figures.reclutch == 0.0
    assert figures.dropout > 0.01, "an arm at rest does not follow"
    draw(tmp_path / "teleop.svg", {"dls_ik": figures, "another package": figures})
    text = (tmp_path / "teleop.svg").read_text()
    assert "<svg" in text
