# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A node that stands still for two seconds, as a process that is stopped or gets no processor."""

import signal
import subprocess
import sys
import time
from itertools import pairwise

import numpy as np
import pytest
from jtc import TrajectoryController
from ros_faulted import PERIOD, Rig
from ros_streamer import ALONE, HOME, TARGET_TIMEOUT, points, positions, seconds
from ros_wam import WAM
from ros_watched import ACCELERATION, pose, shifted

pytestmark = [pytest.mark.ros, pytest.mark.slow]

STILL = 2.0  # [s]
CLOCKS = 1e-3  # [s] maximum difference of the clocks of a cycle
ASIDE = 0.15  # [m] height at which only old targets are


@pytest.fixture(scope="module")
def rig(private_domain):
    with Rig("stopped", feedback_mode="auto") as rig:
        yield rig
        rig.assert_alive()
        assert rig.node.end() == 0


def stop(rig, begin, first, then):
    """Stop the node once `begin` has it in motion; let targets come: `first`, at the end `then`.

    A process that is stopped just while it sends a command ends that when it goes on, which nothing
    can prevent: then it is done once more.

    Returns:
        Where the arm came to rest (n,).
    """
    while True:
        begin()
        held, continued = _stopped(rig, first, then)
        if all(seconds(c) >= continued for c in rig.commands):
            return held


def _stopped(rig, first, then):
    """Where the arm came to rest, and when the node went on [s]."""
    lapses = rig.node.count("the loop stalled for ")
    rig.node.process.send_signal(signal.SIGSTOP)
    first()
    rig.client.spin_for(0.6 * STILL)
    then()
    rig.client.spin_for(0.4 * STILL)
    held = rig.rests()
    del rig.commands[:]
    continued = 1e-9 * rig.client.node.get_clock().now().nanoseconds
    rig.node.process.send_signal(signal.SIGCONT)
    rig.until(lambda: rig.node.count("the loop stalled for ") > lapses, "the node going on")
    # In order: once a new command has come, so has what was sent before, however busy the machine.
    rig.until(lambda: any(seconds(c) >= continued for c in rig.commands), "a new command")
    rig.client.spin_for(0.2)
    return held, continued


def aside(_):
    return shifted(0.0, 0.0, ASIDE)


def sweeps(rig):
    """Stream to the arm; the newest target has probably arrived, but is not used yet."""
    rig.stream()
    rig.follows()
    rig.streams()
    rig.publish()
    time.sleep(0.2 * PERIOD)


@pytest.mark.parametrize(
    "is_stamped", [False, pytest.param(True, marks=pytest.mark.campaign)], ids=["arrival", "stamp"]
)
def test_targets_sent_during_sigstop_are_ignored_and_the_arm_holds(rig, is_stamped):
    held = stop(rig, lambda: sweeps(rig), lambda: rig.stream(aside, is_stamped), rig.quiet)
    rig.client.spin_for(0.5)
    for k, command in enumerate(rig.commands):
        late = seconds(command) - seconds(rig.commands[0])
        words = f"command {k} of {len(rig.commands)}, {late:.3f} s after the first"
        np.testing.assert_allclose(positions(command), held, atol=1e-9, err_msg=words)
    np.testing.assert_array_equal(rig.q, held)
    rig.stream()
    rig.follows()
    rig.assert_alive()


def test_continuing_stream_is_followed_after_sigstop_without_old_targets(rig):
    held = stop(rig, lambda: sweeps(rig), lambda: rig.stream(aside), rig.stream)
    rig.assert_begins_at(held)
    rig.client.spin_for(1.0)
    rig.assert_calm()
    tips = WAM.fk(np.array([positions(c) for c in rig.commands]))[:, 2, 3]
    assert tips.max() < WAM.fk(HOME)[2, 3] + 0.3 * ASIDE, "old targets lie above"
    stamps = np.array([seconds(c) for c in rig.commands])
    most = 1.5 * (stamps[-1] - stamps[0]) / PERIOD + 5.0
    assert len(stamps) < most, "no burst of what was not sent in time"
    rig.follows()


def test_single_pose_is_reached_after_sigstop(rig):
    T = shifted(0.0, -0.3, -0.1)

    def goes():
        sweeps(rig)
        rig.quiet()
        rig.rests()
        rig.client.spin_for(ALONE)
        rig.client.send_until(
            lambda: rig.targets.publish(pose(T)),
            lambda: np.abs(rig.commands[-1].velocity).max() > 0.1,
            "motion",
        )

    held = stop(rig, goes, rig.quiet, rig.quiet)
    rig.assert_begins_at(held)
    rig.until(lambda: np.abs(WAM.fk(rig.q) - T).max() < 1e-4, "the arm there")
    rig.assert_calm()


SHORT = (0.05, 0.1, 0.15)  # [s]
MAX_ROUNDS = 100  # maximum number of rounds of stops, instead of a time


def pause(rig, duration):
    """Stop the node for a duration [s].

    A separate process continues the node, because this process also sends targets. On a busy
    machine it was late by 5 s, and the node received none of its later targets.
    """
    pid = rig.node.process.pid
    stop = f"kill -STOP {pid}; sleep {duration}; kill -CONT {pid}"
    with subprocess.Popen(["sh", "-c", stop]) as shell:
        rig.client.spin_until(lambda: shell.poll() is not None, what="the end of the pause")


def pauses(rig):
    """Pairs of commands around a pause in motion: times, and the trajectory sent with the first.

    The trajectory of a command is the one that has it as its point a period ahead.
    """
    due = {}
    for trajectory in rig.trajectories:
        start = [
            p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in trajectory.points
        ]
        k = int(np.argmin(np.abs(np.array(start) - PERIOD)))
        due[tuple(trajectory.points[k].positions)] = trajectory
    for first, second in pairwise(rig.commands):
        gap, sent = seconds(second) - seconds(first), due.get(tuple(first.position))
        is_fast = np.abs(first.velocity).max() > 0.1
        if sent is not None and is_fast and 1.5 * PERIOD < gap < TARGET_TIMEOUT:
            yield gap, positions(second), sent


@pytest.mark.parametrize("jerk", [[], [40.0]])
def test_arm_continues_on_the_published_stop_after_a_short_sigstop(private_domain, jerk):
    """By default, without a number of points: within what one period allows from there."""
    if jerk:
        pytest.importorskip("ruckig", reason="needs ruckig")
    given = {"feedback_mode": "none", "initial_positions": HOME.tolist()}
    if jerk:
        given["jerk"] = jerk
    with Rig("pauses", **given) as rig:
        rig.stream()
        found = []
        for _ in range(MAX_ROUNDS):  # a busy machine makes some pauses too long
            if len(found) >= 6:
                break
            rig.follows()
            del rig.trajectories[:]
            for gap in SHORT:
                rig.until(lambda: np.abs(rig.commands[-1].velocity).max() > 0.2, "motion")
                pause(rig, gap)
                rig.client.spin_for(0.2)
            found += pauses(rig)
        assert len(found) >= 6, "pauses in motion"
        for gap, q, sent in found:
            assert len(sent.points) > 1
            times, *rows = points(sent)
            arm = TrajectoryController(rows[0][0])
            arm.receive(0.0, times, *rows)
            stopped = arm.at(gap + PERIOD)[0]
            # The stop and the new path start with the same state, and each has its acceleration.
            reach = ACCELERATION * PERIOD**2 + WAM.velocity * CLOCKS
            np.testing.assert_array_less(np.abs(q - stopped), reach)
        rig.assert_alive()


def ways(rig):
    """The longest way of a joint [rad]."""
    return np.ptp([positions(c) for c in rig.commands] or [HOME], axis=0).max()


def campaign(given):
    return pytest.param(given, marks=pytest.mark.campaign)


FAST = {"rate": 500.0, "trajectory_points": 100}


@pytest.mark.parametrize(
    "given",
    [
        {**FAST, "jerk": [20.0]},  # little jerk: a stop takes long
        campaign({**FAST, "rate": 100.0, "trajectory_points": 30}),
        campaign({"rate": 250.0, "trajectory_points": 1, "jerk": [80.0]}),
        {"rate": 500.0, "output_type": "position_array,joint_state",
         "output_topic": "forward_position_controller/commands,commands"},
    ],
    ids=["trajectory_jerk", "trajectory", "point_jerk", "array"],
)  # fmt: skip
def test_load_and_repeated_sigstops_keep_all_limits(private_domain, given):
    """Fast, to a limit and back; the process pauses again and again, and has no core for itself."""
    pytest.importorskip("ruckig", reason="needs ruckig")
    near_a_limit = shifted(0.0, 0.45, -0.3)
    busy = [sys.executable, "-c", "while True: pass"]
    with Rig("paused", feedback_mode="none", initial_positions=HOME.tolist(), **given) as rig:
        load = [subprocess.Popen(busy) for _ in range(2)]
        try:
            for k in range(MAX_ROUNDS):
                if k >= 6 and ways(rig) > 0.3:
                    break
                rig.targets.publish(pose(near_a_limit if k % 2 else WAM.fk(HOME)))
                rig.client.spin_for(0.3)
                for gap in (0.005, 0.02, 0.1):
                    pause(rig, gap)
                    rig.client.spin_for(0.05)
        finally:
            for process in load:
                process.kill()
                process.wait()
        assert ways(rig) > 0.3, "the arm moves"
        rig.assert_limits()
        rig.assert_alive()
