"""Names that anybody may send take no more room than there is."""

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

import rclpy
from rclpy.context import Context
from rclpy.node import Node
from sensor_msgs.msg import JointState

from dls_ik.ros.bounded import MOST, with_news
from dls_ik.ros.stream.joint_states import JointStates


@pytest.fixture
def states(private_domain):
    context = Context()
    rclpy.init(context=context)
    node = Node("bounded", context=context, use_global_arguments=False)
    yield JointStates(node, None)
    node.destroy_node()
    context.try_shutdown()


def message(names):
    return JointState(name=names, position=[1.0] * len(names))


def test_news_of_known_names_count_however_many_there_are():
    full = {f"j{i}": 0.0 for i in range(MOST)}
    news = with_news(full, {"new": 1.0, "j0": 2.0})
    assert len(news) == MOST
    assert news["j0"] == 2.0
    assert with_news({"a": 1.0}, {"b": 2.0, "a": 3.0}) == {"a": 3.0, "b": 2.0}


def test_a_driver_is_heard_among_names_without_end(states):
    states.store(message(["arm"]))
    for k in range(MOST // 1000 + 5):
        states.store(message([f"j{k}_{i}" for i in range(1000)]))
    assert len(states.values()) == MOST
    moved = message(["arm"])
    moved.position = [2.0]
    states.store(moved)
    assert states.values()["arm"] == 2.0


def test_a_message_with_more_names_than_that_is_not_looked_into(states):
    states.store(message([f"j{i}" for i in range(MOST + 1)]))
    assert states.values() == {}
