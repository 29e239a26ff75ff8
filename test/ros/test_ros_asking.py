"""Answers that are lost, as those to a client that its server has not found yet."""

from collections import Counter
from concurrent.futures import Future

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from moveit_msgs.srv import GetPositionFK
from rclpy.qos import qos_profile_services_default

from dls_ik.ros.client import IkClient
from dls_ik.ros.client.connection import NoAnswerError, OwnNode, ServiceClient, call_with_retry
from dls_ik.ros.services.executor import DeferredService

pytestmark = pytest.mark.ros
NAMESPACE = "/forgetful"


class Forgetful:
    """A server of ``compute_fk`` that loses its first answers for each link."""

    def __init__(self, host):
        self.loses, self.asked = 0, Counter()
        depth = qos_profile_services_default.depth
        DeferredService(host.node, GetPositionFK, "compute_fk", self._answer, depth)

    def _answer(self, request, response, reply):
        (link,) = request.fk_link_names
        self.asked[link] += 1
        if self.asked[link] > self.loses:
            response.error_code.val = 1
            response.fk_link_names = request.fk_link_names
            reply(response)


@pytest.fixture
def server():
    host = OwnNode(NAMESPACE, "forgetful")
    yield Forgetful(host)
    host.close()


@pytest.fixture
def asker(server):
    with IkClient(namespace=NAMESPACE, patience=20.0) as asker:
        asker.fk(links=["known"])  # now server and client have found one another
        yield asker


def assert_asked(server):
    assert server.asked["tip"] > server.loses
    assert set(server.asked) == {"known", "tip"}


@pytest.mark.parametrize("loses", [0, 1, 2])
def test_a_client_asks_until_it_is_answered(asker, server, loses):
    server.loses = loses
    assert asker.fk(links=["tip"]).success
    assert_asked(server)


@pytest.mark.parametrize("loses", [0, 1])
def test_a_service_asks_until_it_is_answered(asker, server, loses):
    server.loses = loses
    host = OwnNode(NAMESPACE, "other")
    service = ServiceClient(host.node, GetPositionFK, "compute_fk")
    try:
        assert service.call(20.0, fk_link_names=["tip"]).error_code.val == 1
        assert_asked(server)
    finally:
        host.close()


def test_no_answer_is_said_and_leaves_nothing_behind(server):
    server.loses = 1000
    with IkClient(namespace=NAMESPACE, patience=3.0) as asker:
        with pytest.raises(NoAnswerError, match="did not answer within 3 s"):
            asker.fk(links=["tip"])
        assert server.asked["tip"] in (1, 2, 3)
        assert not asker._fk._client._pending_requests
        server.loses = 0
        assert asker.fk(links=["tip"]).success


def test_a_server_that_left_is_not_asked_anew():
    sent = []

    def send():
        sent.append(Future())
        return sent[-1]

    assert call_with_retry(send, lambda: False, patience=1.5) is None
    assert [future.cancelled() for future in sent] == [True]
