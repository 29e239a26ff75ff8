# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Clients: their node, answers that are lost, and robots that a node names."""

import threading
import time
from collections import Counter
from concurrent.futures import Future

import pytest
from moveit_msgs.srv import GetPositionFK
from rclpy.qos import qos_profile_services_default
from robots import joint, urdf
from std_msgs.msg import String

from dls_ik.errors import RobotModelError
from dls_ik.model.files import shipped_urdf
from dls_ik.model.load import find_tree
from dls_ik.ros.client import IkClient
from dls_ik.ros.client.connection import (
    NoAnswerError,
    OwnNode,
    ServiceClient,
    ServiceMissingError,
    call_with_retry,
)
from dls_ik.ros.params import RobotParameters
from dls_ik.ros.receiver import MessageReceiver
from dls_ik.ros.robot_source import ForeignFileError, named_robot, served_robot
from dls_ik.ros.util import Throttle

pytestmark = pytest.mark.ros


NAMESPACE = "/forgetful"
PATIENCE = 120.0  # [s]


class Event(threading.Event):
    """Fails at the first call."""

    calls = 0

    def fail(self):
        self.calls += 1
        raise ValueError(self.calls)


class Forgetful:
    """A server of ``compute_fk`` that loses its first answers for each link."""

    def __init__(self, host):
        self.loses, self.asked = 0, Counter()
        depth = qos_profile_services_default.depth
        self._receiver = MessageReceiver(host.node, Throttle(host.node))
        self._receiver.create_service(GetPositionFK, "compute_fk", self._answer, depth)
        self._thread = threading.Thread(target=self._receiver.serve)
        self._thread.start()

    def close(self):
        self._receiver.close()
        self._thread.join()

    def _answer(self, request, reply):
        (link,) = request.fk_link_names
        self.asked[link] += 1
        if self.asked[link] > self.loses:
            response = GetPositionFK.Response(fk_link_names=request.fk_link_names)
            response.error_code.val = 1
            reply(response)


@pytest.fixture
def server():
    host = OwnNode(NAMESPACE, "forgetful")
    forgetful = Forgetful(host)
    yield forgetful
    forgetful.close()
    host.close()


@pytest.fixture
def asker(server):
    with IkClient(namespace=NAMESPACE, patience=PATIENCE) as asker:
        asker.fk(links=["known"])  # now server and client have found one another
        yield asker


def assert_asked(server):
    assert server.asked["tip"] > server.loses
    assert set(server.asked) == {"known", "tip"}


@pytest.mark.parametrize("loses", [0, 2])
def test_ik_client_retries_until_it_is_answered(asker, server, loses):
    server.loses = loses
    assert asker.fk(links=["tip"]).success
    assert_asked(server)


def test_service_client_retries_until_it_is_answered(asker, server):
    server.loses = 1
    host = OwnNode(NAMESPACE, "other")
    service = ServiceClient(host.node, GetPositionFK, "compute_fk")
    try:
        assert service.call(PATIENCE, fk_link_names=["tip"]).error_code.val == 1
        assert_asked(server)
    finally:
        host.close()


def test_unanswered_call_raises_and_leaves_no_pending_request(server):
    server.loses = 1000
    with IkClient(namespace=NAMESPACE, patience=3.0) as asker:
        assert asker._fk._client.wait_for_service(PATIENCE)
        with pytest.raises(NoAnswerError, match="did not answer within 3 s"):
            asker.fk(links=["tip"])
        assert server.asked["tip"] in (1, 2, 3)
        assert not asker._fk._client._pending_requests
        server.loses = 0
        assert asker.fk(links=["tip"]).success


@pytest.mark.parametrize("has_own_node", [True, False])
def test_closing_a_client_fails_its_pending_calls(server, has_own_node):
    server.loses = 1000
    host = None if has_own_node else OwnNode(NAMESPACE, "host")
    try:
        asker = IkClient(host and host.node, namespace=NAMESPACE, patience=PATIENCE)
        assert asker._fk._client.wait_for_service(PATIENCE)
        pending = [asker.fk_async(links=["tip"]) for _ in range(3)]
        asker.close()
        for each in pending:
            with pytest.raises(NoAnswerError, match="closed"):
                each.result(timeout=PATIENCE)
        assert not asker._calls
    finally:
        if host is not None:
            host.close()


def test_failing_callback_does_not_stop_the_client_thread():
    host, heard = OwnNode(NAMESPACE, "failing"), Event()
    try:
        host.node.create_timer(0.01, lambda: (heard.set() if heard.calls else None, heard.fail()))
        assert heard.wait(PATIENCE)
    finally:
        host.close()


def test_call_is_not_retried_after_the_server_has_gone():
    sent = []

    def send():
        sent.append(Future())
        return sent[-1]

    assert call_with_retry(send, lambda: False, patience=1.5) is None
    assert [future.cancelled() for future in sent] == [True]


def test_close_stops_the_thread_between_two_waits():
    host = OwnNode("closed")
    between, closing = threading.Event(), threading.Event()
    nodes = host._executor.get_nodes

    def put_aside():
        """The thread gets no processor between two waits, until the other one closes."""
        found = nodes()
        between.set()
        closing.wait(PATIENCE)
        return found

    host._executor.get_nodes = put_aside
    host._executor.wake()
    assert between.wait(PATIENCE)
    closer = threading.Thread(target=host.close, daemon=True)
    closer.start()
    time.sleep(0.5)  # enough for it to be done with all that it does without the thread
    closing.set()
    closer.join(PATIENCE)
    assert not closer.is_alive()
    assert not host._thread.is_alive()
    host.close()


def test_thread_continues_after_a_subscription_is_destroyed_before_its_wait():
    host, heard = OwnNode("goes_on"), threading.Event()
    taken = host.node.create_subscription(String, "taken", print, 1)
    waits_for, gone = host._executor.can_execute, threading.Event()

    def take_away(entity):
        """It is there when the thread looks, and gone before it waits."""
        found = waits_for(entity)
        if entity in taken.event_handlers and not gone.is_set():
            host.node.destroy_subscription(taken)
            gone.set()
        return found

    host._executor.can_execute = take_away
    host._executor.wake()
    assert gone.wait(PATIENCE)
    host.node.create_timer(0.01, heard.set)
    assert heard.wait(PATIENCE)
    host.close()


ARM = urdf("a b", joint("j"))
# What xacro lets an expression reach: the class of anything, and from there every other one.
WRITES = (
    '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="a"/><link name="b"/>'
    "<xacro:property name=\"x\" value=\"${{[[c.__init__.__globals__['sys'].modules['os']"
    ".mkdir('{}') for c in ().__class__.__base__.__subclasses__()"
    " if c.__name__ == '_wrap_close'] for _ in (1,)]}}\"/>"
    '<joint name="j${{x}}" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
)


def missing():
    raise ServiceMissingError("there is no service")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A URDF and a xacro file in a package, and beside all packages."""
    share = tmp_path / "prefix" / "share" / "arm"
    share.mkdir(parents=True)
    for folder in (share, tmp_path):
        (folder / "arm.urdf").write_text(ARM)
        (folder / "arm.xacro").write_text(WRITES.format(tmp_path / "written"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_installed_robots_are_loaded_by_name_or_package_url(files):
    found = named_robot(RobotParameters(robot="wam"))
    assert found.urdf == shipped_urdf("wam")
    assert named_robot(RobotParameters(robot="package://arm/arm.urdf")).robot.joint_names == ("j",)
    assert named_robot(RobotParameters()) is None


@pytest.mark.parametrize(
    "name",
    [
        "arm.urdf",
        "{}/arm.urdf",
        "~/arm.urdf",
        "arm.xacro",
        "{}/arm.xacro",
        "package://arm/arm.xacro",
        "package://arm/ARM.XACRO",
        "package://arm/arm.xacro name:=r",
        "package://arm/arm.urdf name:=r",
        "package://arm/arm.xacro  x:=.urdf",
        "package://arm/../../../arm.urdf",
        "package://../../arm.urdf",
        "/dev/zero",
        "/proc/self/environ",
    ],
)
def test_robot_file_named_by_a_node_is_refused(files, name):
    with pytest.raises(ForeignFileError, match="not opened"):
        named_robot(RobotParameters(robot=name.format(files)))
    assert not (files / "written").exists()


def test_expanding_a_xacro_file_executes_code(files):
    """Why one that somebody else names is never expanded."""
    pytest.importorskip("xacro", reason="needs xacro")
    find_tree(str(files / "arm.xacro"))
    assert (files / "written").exists()


def test_robot_description_parameter_must_be_xml_and_no_file_name(files):
    for text in ("arm.urdf", f"{files}/arm.urdf", "file://arm.urdf"):
        with pytest.raises(RobotModelError, match="a robot description must be XML"):
            named_robot(RobotParameters(robot_description=text))
    assert named_robot(RobotParameters(robot_description=ARM)).urdf == ARM


def test_description_topic_is_used_if_parameters_name_no_robot():
    assert served_robot(RobotParameters, lambda: ARM).robot.joint_names == ("j",)
    assert served_robot(lambda: RobotParameters(robot="wam"), lambda: ARM).robot.n == 7
    assert served_robot(missing, lambda: ARM).urdf == ARM
    with pytest.raises(RobotModelError, match="'nobody'"):
        served_robot(lambda: RobotParameters(tip="nobody"), lambda: ARM)


def test_node_without_a_description_has_no_robot(monkeypatch):
    monkeypatch.setattr("dls_ik.ros.robot_source.DESCRIPTION_TIMEOUT", 0.0)
    with pytest.raises(NoAnswerError, match="no robot yet"):
        served_robot(RobotParameters, lambda: "")
    with pytest.raises(ServiceMissingError):
        served_robot(missing, lambda: "")
