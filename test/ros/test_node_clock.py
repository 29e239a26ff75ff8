# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Simulated time that starts late, jumps, stands or creeps; the arm takes steady time."""

import numpy as np
import pytest
from ros_streamer import TARGET_TIMEOUT, motion, seconds
from ros_wam import WAM
from ros_watched import ACCELERATION, Watched, pose, shifted, twist
from rosgraph_msgs.msg import Clock

pytestmark = [pytest.mark.ros, pytest.mark.slow]
SPEED = 0.1  # [m/s]
BUSY = 0.5  # [s] maximum gap of commands, and time for the arm to stop
FARTHEST = SPEED * (TARGET_TIMEOUT + BUSY)  # [m] maximum distance of one twist
HOUR = 3600.0
TICK = 0.02  # [s]


class SimulatedTime:
    """Publishes /clock, at a rate [s/s]."""

    def __init__(self, client):
        self.now, self.rate = 5000.0, 1.0
        self._publisher = client.node.create_publisher(Clock, "/clock", 1)
        client.node.create_timer(TICK, self._tick)

    def stamp(self, ahead=0.0):
        return divmod(round((self.now + ahead) * 1e9), 10**9)

    def _tick(self):
        self.now += TICK * self.rate
        message = Clock()
        message.clock.sec, message.clock.nanosec = self.stamp()
        self._publisher.publish(message)


def is_heard(arm):
    """Wait until commands are stamped with the time that is published."""
    arm.client.spin_until(
        lambda: arm.commands and abs(seconds(arm.commands[-1]) - arm.time.now) < 2.0,
        what=f"stamps of about {arm.time.now:.0f} s",
    )


def test_motion_uses_steady_time_when_simulated_time_jumps_or_stops():
    with Watched("clock", feedback_mode="none", use_sim_time=True) as arm:
        the_clock_starts_late(arm)
        for jump, rate in ((HOUR, 1.0), (-HOUR, 1.0), (0.0, 0.0), (-4000.0, 0.1)):
            the_clock_jumps(arm, jump, rate)
        assert "Traceback" not in arm.node.output, arm.node.output
        assert arm.node.end() == 0


def the_clock_starts_late(arm):
    arm.stream_until(  # no clock yet
        lambda t: pose(shifted(0.0, 0.1 * min(t, 1.0), 0.0)),
        lambda: bool(arm.commands) and arm.error(shifted()) > 0.01,
    )
    early = pose(shifted(), stamp=(100, 0))
    arm.answers(lambda: arm.send(early), "target ignored", "nothing was received on /clock yet")
    arm.time = SimulatedTime(arm.client)
    is_heard(arm)
    for T in (shifted(0.0, 0.05, 0.0), shifted()):
        arm.stream_until(
            lambda _, T=T: pose(T, stamp=arm.time.stamp()), lambda T=T: arm.error(T) < 1e-3
        )
    arm.answers(
        lambda: arm.send(pose(shifted(), stamp=arm.time.stamp(ahead=60.0))),
        "target ignored", "future",
    )  # fmt: skip
    assert_steps_are_small(arm)


def the_clock_jumps(arm, jump, rate):
    """It jumps [s] and then has a rate [s/s]; the arm does as ever."""
    time = arm.time
    early = time.stamp()
    time.now, time.rate = time.now + jump, rate
    is_heard(arm)
    del arm.heard[:]
    arm.goes(shifted())
    one_twist_ends(arm)
    arm.goes(shifted(0.0, 0.05, 0.0))
    if abs(jump) > 100.0:
        words = "old by its stamp" if jump > 0.0 else "in the future"
        arm.answers(lambda: arm.send_alone(pose(shifted(), stamp=early)), "target ignored", words)
    time.rate = 1.0
    arm.goes_by_stamp(shifted(), time.stamp)
    assert_steps_are_small(arm)


def one_twist_ends(arm):
    """A twist is in force for `target_timeout` at most, by a clock that cannot be turned."""
    arm.stands()
    del arm.statuses[:]
    while not timed_out(arm):  # a busy node may pass it over as too old
        before = WAM.fk(arm.q)[:3, 3]
        arm.send_alone(twist((0.0, SPEED, 0.0)))
        arm.client.spin_for(1.0)
    arm.stands()
    assert np.linalg.norm(WAM.fk(arm.q)[:3, 3] - before) < FARTHEST


def timed_out(arm):
    return any("no target received" in status.message for status in arm.statuses)


def assert_steps_are_small(arm):
    """Successive commands, while stamps jump and stand still: a few cycles may be lost."""
    _, q, v = motion(arm.commands)
    assert WAM.within_limits(q, 1e-9).all()
    assert (np.abs(np.diff(q, axis=0)) <= WAM.velocity * 0.1).all()
    assert (np.abs(np.diff(v, axis=0)) <= ACCELERATION * 0.1).all()
