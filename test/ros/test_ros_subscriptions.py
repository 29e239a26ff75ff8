# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests that the memory for names from untrusted messages is bounded."""

import pytest
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState

from dls_ik.ros.servo.state_monitor import JOINT_STATES_QOS, CurrentStateMonitor
from dls_ik.ros.subscriptions import MAX_NAMES, call_every, merge_bounded, subscribe_bounded
from dls_ik.ros.util import Throttle


@pytest.fixture
def states(node):
    return CurrentStateMonitor(node, None, False)


def message(names):
    return JointState(name=names, position=[1.0] * len(names))


def test_known_names_are_updated_when_the_table_is_full():
    full = {f"j{i}": 0.0 for i in range(MAX_NAMES)}
    news = merge_bounded(full, {"new": 1.0, "j0": 2.0})
    assert len(news) == MAX_NAMES
    assert news["j0"] == 2.0
    assert merge_bounded({"a": 1.0}, {"b": 2.0, "a": 3.0}) == {"a": 3.0, "b": 2.0}


def test_known_joint_is_updated_after_max_names_other_joints(states):
    states.store(message(["arm"]))
    for k in range(MAX_NAMES // 1000 + 5):
        states.store(message([f"j{k}_{i}" for i in range(1000)]))
    assert len(states.values()) == MAX_NAMES
    moved = message(["arm"])
    moved.position = [2.0]
    states.store(moved)
    assert states.values()["arm"] == 2.0


def test_only_joints_of_the_current_and_previous_robot_are_kept(states):
    states.store(message(["arm", "other", "x" * 400_000]))
    assert set(states.values()) == {"arm", "other"}, "long names are of no robot"
    states.keep_only({"arm", "wrist"})
    for k in range(20):
        states.store(message(["wrist", f"{k}" * 300]))
    assert set(states.values()) == {"arm", "wrist"}
    states.keep_only({"arm", "hand"})
    states.store(message(["wrist", "hand", "other"]))
    assert set(states.values()) == {"arm", "wrist", "hand"}


class Counted(str):
    """A name that counts how often names are compared."""

    __slots__ = ()
    compared = 0

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)

    __hash__ = str.__hash__


@pytest.mark.parametrize("robot", [None, {"arm"}])
def test_name_comparisons_grow_linearly_with_the_number_of_joints(states, robot):
    if robot:
        states.keep_only(robot)
    n = 2000
    Counted.compared = 0
    states.store(message([Counted(f"j{i}") for i in range(n)] * 2))
    assert states.values() == {}, "joints twice"
    assert Counted.compared < 20 * n


def test_message_above_the_byte_limit_is_ignored(states):
    node, stored = states._node, []

    def store(message, sent):
        stored.append(message.name)

    subscription = subscribe_bounded(
        node, JointState, "js", store, JOINT_STATES_QOS, Throttle(node), 100
    )
    for names in (["a"], ["a" * 200], ["b"]):
        subscription.callback(serialize_message(message(names)), {"source_timestamp": 1})
    assert stored == [["a"], ["b"]]


def test_callbacks_of_a_period_share_a_timer(node):
    called = []

    def fail():
        called.append("fails")
        raise ValueError("odd")

    before = len(list(node.timers))
    call_every(node, 5.0, fail)
    call_every(node, 5.0, lambda: called.append("second"))
    call_every(node, 6.0, lambda: called.append("other"))
    first, other = list(node.timers)[before:]
    with pytest.raises(ValueError, match="odd"):
        first.callback()
    assert called == ["fails", "second"]
    other.callback()
    assert called[2:] == ["other"]
