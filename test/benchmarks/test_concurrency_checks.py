# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The checks of `benchmarks.concurrency` see what they are for."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from benchmarks.concurrency_checks import (
    CALM,
    LIMITS,
    ONE_ROBOT,
    Commands,
    History,
    Ledger,
    broken_robots,
    good_robots,
)
from dls_ik.errors import RobotModelError
from dls_ik.ros.robot_source import robot_from_text
from dls_ik.servo.limiter import AccelerationLimiter

PERIOD = 0.005
WAM, NARROW, PUMA, PLANAR, _ = good_robots()


class Seen:
    """Commands as they are heard, a period apart, after descriptions of robots."""

    def __init__(self):
        self.history, self.ledger = History(), Ledger()
        self.commands = Commands(self.history, self.ledger, PERIOD)
        self.now = 1000.0

    def hear(self, robot, q, v=0.0, names=None):
        """Take a command; return what it violates."""
        self.now += PERIOD
        stamp = SimpleNamespace(sec=int(self.now), nanosec=round(1e9 * (self.now % 1.0)))
        names = robot.model.joint_names if names is None else names
        q, v = np.broadcast_to(q, len(names)), np.broadcast_to(v, len(names))
        header = SimpleNamespace(stamp=stamp, frame_id="")
        before = self.ledger.violations.copy()
        message = SimpleNamespace(header=header, name=names, position=q.copy(), velocity=v.copy())
        self.commands.take(message)
        return list(self.ledger.violations - before)


@pytest.fixture
def seen():
    seen = Seen()
    seen.history.send(WAM)
    return seen


def test_commands_within_the_limits_are_no_violation(seen):
    q = v = 0.0
    for _ in range(50):
        v = min(v + 8.0 * PERIOD, 1.0)
        q += v * PERIOD
        assert seen.hear(WAM, q, v) == []


def test_joint_names_of_another_robot_are_a_violation(seen):
    assert seen.hear(WAM, 0.1) == []
    assert seen.hear(PUMA, 0.1) == [ONE_ROBOT]
    seen.history.send(PUMA)
    assert seen.hear(PUMA, 0.1) == []
    assert seen.hear(WAM, 0.1) == [ONE_ROBOT]
    mixed = [*PUMA.model.joint_names[:5], "wam_j1"]
    assert seen.hear(PUMA, 0.1, names=mixed) == [ONE_ROBOT]
    seen.history.send(WAM)
    assert seen.hear(WAM, 0.1) == []


def test_jump_is_allowed_when_a_robot_returns_after_another(seen):
    assert seen.hear(WAM, 0.3) == []
    seen.history.send(WAM)
    assert seen.hear(WAM, 0.0) == [CALM]
    assert seen.hear(WAM, 0.3) == [CALM]
    for robot in (PUMA, WAM):
        seen.history.send(robot)
        seen.history.read(f"[INFO] ready after 0.1 s: r{len(seen.history.sent) - 1}, 7 joints")
    assert seen.hear(WAM, 0.0) == []


def test_jump_is_allowed_if_a_robot_is_resent_before_the_other_is_ready(seen):
    """Commands heard while both wait may be of either; the later one begins anew all the same."""
    for robot in (PUMA, WAM):
        seen.history.send(robot)
    assert seen.hear(WAM, 0.3) == []
    seen.history.read("[INFO] ready after 0.1 s: r1, 6 joints")
    seen.history.read("[INFO] ready after 0.1 s: r2, 7 joints")
    assert seen.hear(WAM, 0.0) == []
    assert seen.hear(WAM, 0.3) == [CALM]


def test_position_beyond_a_limit_is_a_violation(seen):
    lower = WAM.model.lower
    assert seen.hear(WAM, lower) == []
    assert seen.hear(WAM, lower - 1e-6) == [LIMITS]
    assert seen.hear(WAM, lower - 2e-6) == [LIMITS]


def test_velocity_above_its_limit_is_a_violation(seen):
    assert seen.hear(WAM, 0.0) == []
    assert LIMITS in seen.hear(WAM, 0.0, 1.01 * WAM.model.velocity)


@pytest.mark.parametrize(("q", "v"), [(0.01, 0.0), (0.0, 0.2), (0.001, -0.05)])
def test_position_or_velocity_jump_is_a_violation(seen, q, v):
    assert seen.hear(WAM, 0.0) == []
    assert seen.hear(WAM, q, v) == [CALM]


def test_position_outside_newly_narrowed_limits_is_no_violation(seen):
    beyond = 0.9 * WAM.model.upper
    assert seen.hear(WAM, beyond) == []
    seen.history.send(NARROW)
    assert seen.hear(WAM, beyond) == []
    back = beyond.copy()
    back[0] -= 1e-4
    assert seen.hear(WAM, back, 0.02) == []


def _run_up(seen):
    """Hear joint 4 go down, until it is too near to the limit of the narrow robot to stop."""
    limiter = AccelerationLimiter(WAM.model, np.full(7, 8.0))
    q, v = np.zeros(7), np.zeros(7)
    q[3], v[3] = NARROW.model.lower[3] + 0.1, -1.15
    limiter.reset(q, v)
    while limiter.q[3] > NARROW.model.lower[3] + 0.01:
        assert seen.hear(NARROW, limiter.q, limiter.v) == []
        limiter.advance(limiter.q + PERIOD * v, v, PERIOD)
    return limiter


def test_sudden_stop_at_a_limit_received_during_motion_is_no_jump(seen):
    wide = _run_up(seen)
    seen.history.send(NARROW)
    limiter = AccelerationLimiter(NARROW.model, np.full(7, 8.0))
    limiter.take_over(wide.hand_over())
    changes = []
    while limiter.v[3] != 0.0:
        before = limiter.v[3]
        limiter.brake(PERIOD)
        assert seen.hear(NARROW, limiter.q, limiter.v) == []
        changes.append(limiter.v[3] - before)
    assert limiter.q[3] == NARROW.model.lower[3]
    assert max(changes) > 8.0 * 3 * PERIOD


def test_joint_faster_than_a_new_velocity_limit_must_slow_down(seen):
    q, v = np.zeros(7), np.zeros(7)
    q[1], v[0], v[1] = 0.9 * WAM.model.upper[1], 1.9, 0.5  # the narrow one stops the second
    assert seen.hear(WAM, q, v) == []
    seen.history.send(NARROW)
    limiter = AccelerationLimiter(NARROW.model, np.full(7, 8.0))
    limiter.reset(q, v)
    while limiter.v[0] > NARROW.model.velocity[0]:
        limiter.advance(limiter.q + PERIOD * v, v, PERIOD)
        assert seen.hear(NARROW, limiter.q, limiter.v) == []
    limiter.v[0] = 1.25
    assert seen.hear(NARROW, limiter.q + PERIOD * limiter.v, limiter.v) == [LIMITS]


def test_sudden_stop_away_from_all_limits_is_a_jump(seen):
    wide = _run_up(seen)
    seen.history.send(NARROW)
    assert seen.hear(WAM, wide.q + PERIOD * wide.v, wide.v) == []
    assert seen.hear(WAM, wide.q + PERIOD * wide.v, 0.0) == [CALM]


def test_sudden_stop_at_a_previously_known_limit_is_a_jump():
    seen = Seen()
    seen.history.send(NARROW)
    limiter = _run_up(seen)
    assert seen.hear(NARROW, limiter.q, limiter.v) == []
    limiter.q[3] = NARROW.model.lower[3]
    assert seen.hear(NARROW, limiter.q, 0.0) == [CALM]


@pytest.mark.parametrize("i", range(len(broken_robots())))
def test_broken_robot_descriptions_fail_to_load(i):
    with pytest.raises(RobotModelError):
        robot_from_text(broken_robots()[i].text, None, None)


def test_ready_log_lines_are_matched_to_sent_descriptions():
    history = History()
    for robot in (WAM, broken_robots()[1], PLANAR):
        history.send(robot)
    history.read("[INFO] [1.0] [x.dls_ik]: ready after 1.2 s: r2, base to tip, joints joint1")
    history.read("[ERROR] [1.0] [x.dls_ik]: robot refused: a robot description is XML")
    assert (history.model, history.refused) == (PLANAR.model, 1)
    assert history.since(0) == {0: WAM.model, 2: PLANAR.model}
