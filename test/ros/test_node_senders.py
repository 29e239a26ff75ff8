# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of contradictory senders and of stamps of other clocks, in the running node."""

import pytest
from geometry_msgs.msg import TwistStamped
from ros_client import Client
from ros_watched import Watched, pose, shifted

from dls_ik.ros.servo.freshness import stamp_advice
from dls_ik.ros.servo.rivals import MIN_RIVAL_CHANGES, RIVAL_WINDOW, RivalTargets

pytestmark = [pytest.mark.ros, pytest.mark.slow]


@pytest.fixture(scope="module")
def arm():
    with Watched("senders", feedback_mode="none") as arm:
        yield arm
        arm.assert_alive()
        assert arm.node.end() == 0


def test_alternating_topics_are_rivals_until_the_window_has_passed():
    rivals = RivalTargets()
    for k in range(100):
        rivals.note("a", 0.01 * k)
    assert rivals.topics(1.0) == []
    for k in range(MIN_RIVAL_CHANGES):
        assert rivals.topics(2.0) == []
        rivals.note("ba"[k % 2], 1.0 + 0.1 * k)
    assert rivals.topics(2.0) == ["a", "b"]
    assert rivals.topics(1.0 + RIVAL_WINDOW + 0.5) == []


def test_occasional_topic_changes_are_not_rivals():
    rivals = RivalTargets()
    for k in range(50):
        rivals.note("ab"[k % 2], 0.5 * RIVAL_WINDOW * k)
        assert rivals.topics(0.5 * RIVAL_WINDOW * k) == []


def test_two_nodes_that_send_different_types_are_named_with_their_topics(arm):
    with Client("senders", "hand_tracker") as other:
        twists = other.publisher(TwistStamped, "target_twist", 1)

        def is_told():
            arm.send(pose(shifted()))
            arm.client.spin_for(0.03)
            twists.publish(TwistStamped())
            arm.client.spin_for(0.03)
            return arm.node.count("WARN", "targets of different types alternate")

        arm.client.spin_until(is_told, what="the warning")
    line = arm.node.wait_for_line("targets of different types alternate")
    assert "/senders/target_pose from /senders/test_client" in line
    assert "/senders/target_twist from" in line
    assert "/senders/hand_tracker" in line


@pytest.mark.parametrize(
    ("age", "words"),
    [
        (1.8e9, ("clock that starts at 0", "use_sim_time:=true", "stamp of 0")),
        (86_400.0, ("recording", "--clock", "use_sim_time:=true")),
        (1.0, ("delayed", "clocks of the two machines", "stamp of 0")),
        (-1.0, ("clocks of the two machines",)),
        (-1.8e9, ("system clock", "use_sim_time", "/clock")),
    ],
)
def test_stamp_advice_names_the_probable_clock_and_the_remedy(age, words):
    assert [each for each in words if each not in stamp_advice(age)] == []
