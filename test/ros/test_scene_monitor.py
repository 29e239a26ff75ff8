# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the node's scene: queued and lost changes, and changes during a new robot."""

import threading
import time
from types import SimpleNamespace

import pytest
from moveit_msgs.srv import GetPlanningScene
from rclpy.serialization import serialize_message
from robots import URDF
from ros_scene import SRDF, box, world
from ros_wam import WAM

from dls_ik import RobotModel
from dls_ik.errors import SceneError, ScenePendingError
from dls_ik.ros.arm import Arm, Surroundings
from dls_ik.ros.client.connection import OwnNode
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import Parameters
from dls_ik.ros.receiver import MessageReceiver
from dls_ik.ros.services import change_queue, robot_scene, scene_monitor, whole_scene
from dls_ik.ros.services.scene_monitor import PlanningSceneMonitor
from dls_ik.ros.services.whole_scene import WholeScene
from dls_ik.ros.util import Throttle

pytestmark = pytest.mark.ros

LONG = 120.0  # [s] timeout of an immediate event
FEW = 3


@pytest.fixture
def scenes(node, monkeypatch):
    """A monitor with room for few changes, a WAM in a scene, and the scene that its stream sees."""
    monkeypatch.setattr(change_queue, "MAX_QUEUED_CHANGES", FEW)
    shown, parameters = {}, Parameters().changed({"robot_description_semantic": SRDF})
    monitor = PlanningSceneMonitor(
        node,
        parameters,
        lambda arm: {},
        Frames(),
        lambda robot, srdf: None,
        lambda robot, scene, reason: shown.update({id(robot): scene}),
    )
    arm = Arm(WAM, parameters)
    monitor.use(arm)
    wait_until(lambda: id(WAM) in shown)
    yield SimpleNamespace(
        monitor=monitor, arm=arm.within(Surroundings(shown[id(WAM)])), shown=shown, node=node
    )
    monitor.close()


def wait_until(is_done):
    end = time.monotonic() + LONG
    while not is_done():
        assert time.monotonic() < end
        time.sleep(0.001)


@pytest.fixture
def gate(scenes):
    """Holds the thread of the scene until it is set."""
    event, begun = threading.Event(), threading.Event()
    scenes.monitor.submit(lambda: (begun.set(), event.wait(LONG)))
    assert begun.wait(LONG)
    yield event
    event.set()


def receive(scenes, message, topic):
    """Deliver a message."""
    (heard,) = (each for each in scenes.node.subscriptions if each.topic_name == f"/{topic}")
    heard.callback(serialize_message(message))


def publish(scenes, name):
    receive(scenes, box(name, (0.0, 0.0, 2.0)), "collision_object")


def hold_reason(scenes):
    return scenes.monitor.check_stream(scenes.arm, 0.0, dict)


def seen(scenes):
    """The objects that the stream sees."""
    return set(scenes.shown[id(WAM)].snapshot.objects)


def test_lost_changes_hold_the_arm_until_a_full_scene_arrives(scenes, gate):
    for name in "abcd":  # the job that holds the thread counts too
        publish(scenes, name)
    assert "2 changes are lost" in hold_reason(scenes)
    gate.set()
    wait_until(lambda: seen(scenes) == {"a", "b"})
    publish(scenes, "e")
    wait_until(lambda: "e" in seen(scenes))
    assert hold_reason(scenes), "other changes do not make up for it"
    receive(scenes, world(box("all", (0.0, 0.0, 2.0)), is_diff=False), "planning_scene")
    wait_until(lambda: seen(scenes) == {"all"})
    wait_until(lambda: not hold_reason(scenes))


def test_full_scene_does_not_replace_changes_lost_after_it(scenes, gate):
    receive(scenes, world(box("all", (0.0, 0.0, 2.0)), is_diff=False), "planning_scene")
    for name in "abc":
        publish(scenes, name)
    gate.set()
    wait_until(lambda: {"all", "a"} == seen(scenes))
    assert "2 changes are lost" in hold_reason(scenes)


def replaced(scenes, root):
    """Replace the WAM by another one, of a root link of this name."""
    text = (URDF / "wam7.urdf").read_text().replace('"wam_base"', f'"{root}"')
    other = RobotModel.from_urdf(text, root, "wam_tip")
    assert other.tree is not WAM.tree
    scenes.monitor.use(Arm(other, Parameters()))
    with pytest.raises(SceneError, match="prepared"):
        scenes.monitor.scene(other.tree)
    return other


def test_new_robot_gets_its_scene_with_a_full_change_queue(scenes, gate):
    for name in "abcd":
        publish(scenes, name)
    other = replaced(scenes, "floor")
    gate.set()
    wait_until(lambda: id(other) in scenes.shown)
    assert not scenes.monitor.scene(other.tree).objects
    assert not hold_reason(scenes), "a scene that begins anew lacks nothing"


def test_objects_and_losses_are_kept_for_a_robot_with_the_same_root_link(scenes, gate):
    for name in "abcd":
        publish(scenes, name)
    other = replaced(scenes, "wam_base")
    gate.set()
    wait_until(lambda: id(other) in scenes.shown)
    assert set(scenes.monitor.scene(other.tree).objects) == {"a", "b"}
    assert set(scenes.shown[id(other)].snapshot.objects) == {"a", "b"}
    assert "2 changes are lost" in hold_reason(scenes), "what was lost is lost still"


def test_changes_are_published_to_the_stream_before_a_long_job(scenes, gate, monkeypatch):
    monkeypatch.setattr(robot_scene, "MAX_PUBLISH_DELAY", LONG)
    publish(scenes, "a")
    publish(scenes, "b")
    held, end = threading.Event(), threading.Event()
    scenes.monitor._queue.submit(lambda: (held.set(), end.wait(LONG)), is_bounded=False)
    gate.set()
    assert held.wait(LONG)
    try:
        assert seen(scenes) == {"a", "b"}
    finally:
        end.set()


def test_sphere_fitting_budget_is_renewed_when_no_change_is_queued(scenes, gate):
    scene = scenes.monitor._scene
    before = scene._budget
    publish(scenes, "first")
    used = []
    scenes.monitor.submit(lambda: used.append(scene._budget))
    gate.set()
    wait_until(lambda: used)
    assert used == [before], "changes that wait together share it"
    publish(scenes, "last")
    wait_until(lambda: scene._budget is not before)


def test_change_confirmed_by_a_service_is_published_to_the_stream(scenes, gate, monkeypatch):
    monkeypatch.setattr(robot_scene, "MAX_PUBLISH_DELAY", LONG)
    found = []

    def apply():
        message = world(box("asked", (0.0, 0.0, 2.0)))
        found.append((scenes.monitor.change(message, "service", at_once=True), seen(scenes)))

    publish(scenes, "before")
    scenes.monitor.submit(apply)
    scenes.monitor._queue.submit(lambda: None, is_bounded=False)
    gate.set()
    wait_until(lambda: found)
    assert found == [(True, {"before", "asked"})]


# The scene of another node


class Asked:
    """Another node's scene, whose answers the test gives."""

    def __init__(self):
        self.host, self.replies = OwnNode("/whole", "move_group"), []
        self.receiver = MessageReceiver(self.host.node, Throttle(self.host.node))
        self.receiver.create_service(GetPlanningScene, "get_planning_scene", self._take, 10)
        self.thread = threading.Thread(target=self.receiver.serve)
        self.thread.start()

    def _take(self, request, reply):
        self.replies.append(reply)

    def close(self):
        self.receiver.close()
        self.thread.join()
        self.host.close()


@pytest.fixture
def asked(private_domain):
    made = Asked()
    yield made
    made.close()


@pytest.fixture
def asker(asked):
    made = OwnNode("/whole", "asker")
    yield made
    made.close()


def test_full_scene_request_is_repeated_after_a_timeout(asked, asker, monkeypatch):
    monkeypatch.setattr(whole_scene, "ANSWER_TIMEOUT", 0.5)
    found = []
    log = Throttle(asker.node)
    WholeScene(asker.node, "topic", log, lambda *given: found.append(given), has_own=False)
    wait_until(lambda: len(asked.replies) > 1 or found)  # the first one is forgotten
    while not found:
        asked.replies[-1](GetPlanningScene.Response())
        time.sleep(0.05)
    assert found[0][1] == "/whole/get_planning_scene"


def test_changes_received_during_a_full_scene_request_are_reapplied(asked, asker):
    made, log = [], Throttle(asker.node)
    whole = WholeScene(asker.node, "topic", log, lambda *_: made.append("whole"), has_own=False)
    whole.note_change(lambda: made.append("before"))
    wait_until(lambda: asked.replies)
    whole.note_change(lambda: made.append("change"))
    while not made:  # an answer may be lost to a client that was made just now
        asked.replies[-1](GetPlanningScene.Response())
        time.sleep(0.05)
    wait_until(lambda: len(made) == 2)
    assert made == ["whole", "change"]
    whole.note_change(lambda: made.append("after"))
    assert made == ["whole", "change"]


# Changes that cannot be read


GARBAGE = b"\x00\x01\x00\x00" + b"\xff" * 40


def receive_bytes(scenes, data, topic):
    (heard,) = (each for each in scenes.node.subscriptions if each.topic_name == f"/{topic}")
    heard.callback(data)


@pytest.mark.parametrize("topic", scene_monitor.SCENE_TOPICS)
def test_unreadable_change_holds_the_arm_until_a_full_scene_arrives(scenes, topic, capfd):
    for _ in range(200):
        receive_bytes(scenes, GARBAGE, topic)
    wait_until(lambda: "200 changes are lost" in hold_reason(scenes))
    publish(scenes, "known")
    wait_until(lambda: "known" in seen(scenes))
    assert hold_reason(scenes), "other changes do not make up for it"
    receive(scenes, world(box("all", (0.0, 0.0, 2.0)), is_diff=False), "planning_scene")
    wait_until(lambda: not hold_reason(scenes))
    said = capfd.readouterr().err
    assert "Traceback" not in said
    words = f"bytes are not a moveit_msgs/msg/{scene_monitor.SCENE_TOPICS[topic].__name__}"
    lines = [line for line in said.splitlines() if words in line]
    assert 1 <= len(lines) < 20, "throttled"
    assert f"a message on /{topic}, published by" in lines[0]


def test_full_scene_replaces_only_unreadable_changes_before_it(scenes, gate):
    receive_bytes(scenes, GARBAGE, "planning_scene")
    receive(scenes, world(box("all", (0.0, 0.0, 2.0)), is_diff=False), "planning_scene")
    receive_bytes(scenes, GARBAGE, "planning_scene")
    gate.set()
    wait_until(lambda: "all" in seen(scenes))
    wait_until(lambda: "1 changes are lost" in hold_reason(scenes))


def test_oversized_change_counts_as_lost(scenes):
    receive_bytes(scenes, bytes(scene_monitor.MAX_CHANGE_BYTES + 1), "planning_scene")
    assert "1 changes are lost" in hold_reason(scenes)


# A scene that is not there yet


def test_scene_is_pending_while_its_kernels_are_being_compiled(node):
    told, event = threading.Event(), threading.Event()

    def compile_kernels(tell):
        tell("kernels are being compiled")
        told.set()
        assert event.wait(LONG)

    parameters = Parameters().changed({"robot_description_semantic": SRDF})
    ignore = lambda *given: None  # noqa: E731
    monitor = PlanningSceneMonitor(
        node, parameters, lambda arm: {}, Frames(), ignore, ignore, compile_kernels
    )
    monitor.use(Arm(WAM, parameters))
    try:
        assert told.wait(LONG)
        with pytest.raises(ScenePendingError, match="kernels are being compiled"):
            monitor.scene(WAM.tree)
        event.set()
        wait_until(lambda: not is_pending(monitor))
        assert monitor.scene(WAM.tree).snapshot.links
    finally:
        event.set()
        monitor.close()


def is_pending(monitor):
    try:
        monitor.scene(WAM.tree)
    except ScenePendingError:
        return True
    return False
