# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the viewer's view and control of a running node."""

import time

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import CollisionObject
from rclpy.serialization import deserialize_message, serialize_message
from ros_client import READY, SEND_AGAIN, SOON, Client, NodeProcess
from ros_scene import apply, box, objects_of, removed, scene_of, world
from ros_streamer import ALONE, HOME, Streamer, stamped
from ros_wam import WAM
from shape_msgs.msg import SolidPrimitive

from dls_ik import PostureTask, SwivelTask
from dls_ik.errors import DlsIkError, OptionError, SceneError
from dls_ik.model.files import shipped_urdf
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import transform
from dls_ik.ros.client.connection import ServiceMissingError
from dls_ik.ros.robot_source import DescribedRobot
from dls_ik.ros.viewer_scene import shapes_of
from dls_ik.ros.viewer_source import NodeSource
from dls_ik.viewer.redundancy import Redundancy

pytestmark = [pytest.mark.ros, pytest.mark.slow]

NAMESPACE = "/shown"
ARGUMENTS = ("-r", f"__ns:={NAMESPACE}", "-p", "robot:=wam")
NEAR = WAM.fk(HOME + 0.1)
FAR = WAM.fk(HOME + np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]))  # a second or more away

UPPER = RobotModel.from_name("wam", base="wam_link1")  # not from the root of the robot
UPPER_ARGUMENTS = (
    *("-p", "robot:=wam", "-p", "base:=wam_link1", "-p", "stream_method:=dls"),
    *("-p", f"initial_positions:={HOME[1:].tolist()}"),
    *("-p", f"output_names:={','.join(f'driver_{name}' for name in UPPER.joint_names)}"),
)


@pytest.fixture(scope="module")
def node(private_domain):
    with NodeProcess(*ARGUMENTS) as node:
        node.wait_for_line("ready")
        yield node


@pytest.fixture
def source(node):
    source = NodeSource(namespace=NAMESPACE)
    yield source
    source.close()


def step_until(source, condition, what, timeout=SOON):
    """The first sample for which something holds."""
    deadline = time.monotonic() + timeout
    while not condition(sample := source.step(time.monotonic())):
        assert time.monotonic() < deadline, f"waited {timeout} s for {what}; last: {sample}"
        time.sleep(0.02)
    return sample


def reach(source, T, what):
    """Return the first sample at a target; set the target again if the node asks for that."""
    sent = time.monotonic()

    def is_there(sample):
        nonlocal sent
        if SEND_AGAIN in sample.message and time.monotonic() - sent > ALONE + 0.5:
            source.set_target(T)
            sent = time.monotonic()
        return is_at(T)(sample)

    return step_until(source, is_there, what)


def is_at(T):
    return lambda sample: np.abs(sample.T_tip - T).max() < 1e-4


def test_robot_joints_and_method_are_those_of_the_node(source):
    assert source.robot.joint_names == WAM.joint_names
    assert source.urdf == shipped_urdf("wam")
    assert source.name == f"{NAMESPACE}/dls_ik"
    assert source.method == "ctp+sd+svf"
    assert {p.name for p in source.parameters} >= {"margin", "sigma0", "when_stuck"}
    with Client(NAMESPACE) as client:
        streamer = Streamer(client)
        client.spin_until(lambda: streamer.states)
        streamer.go(WAM.fk(HOME))
        sample = step_until(source, is_at(WAM.fk(HOME)), "the arm where it was sent")
        np.testing.assert_allclose(sample.q, streamer.states[-1].position, atol=1e-3)


def test_arm_reaches_the_end_of_a_drag_after_targets_have_stopped(source):
    step_until(source, lambda sample: sample.state != "NO_ROBOT", "the node")
    for T in (NEAR, FAR, FAR, FAR):  # a stream that stops
        source.set_target(T)
        time.sleep(0.05)
    sample = reach(source, FAR, "the arm where the drag ended")
    np.testing.assert_allclose(sample.T_target, FAR, atol=1e-9)
    sample = step_until(source, lambda sample: sample.state == "REACHED", "the node to say so")
    assert sample.position_error < 1e-3


def test_targets_of_other_publishers_are_shown(source):
    message = stamped(NEAR)
    with Client(NAMESPACE) as client:
        targets = client.publisher(PoseStamped, "target_pose", 1)
        client.spin_until(lambda: targets.get_subscription_count() == 2, what="node and viewer")
        targets.publish(message)
        sample = step_until(source, lambda sample: sample.T_target is not None, "the target")
    np.testing.assert_allclose(sample.T_target, NEAR, atol=1e-9)


def test_method_and_parameters_are_changed_in_the_node(source):
    source.set_method("sdls+clamp")
    with Client(NAMESPACE) as client:
        assert client.get_parameter("stream_method").string_value == "sdls+clamp"
        assert source.method == "sdls+clamp"
        source.set_parameter("gamma_max", 0.3)
        assert client.get_parameter("method_options.gamma_max").double_value == 0.3
    with pytest.raises(OptionError, match="unknown method 'nonsense'"):
        source.set_method("nonsense")
    with pytest.raises(OptionError, match="alpha"):
        source.set_parameter("alpha", 7.0)
    assert source.method == "sdls+clamp"
    source.set_parameter("gamma_max", 0.5)
    source.set_method("ctp+sd+svf")


def test_levels_and_frozen_joints_are_changed_in_the_node(source):
    assert source.redundancy == Redundancy()
    wanted = Redundancy().with_level(SwivelTask(0.3)).with_frozen("wam_j3", True)
    posture = source.robot.named(HOME)
    source.set_redundancy(wanted.with_level(PostureTask(posture)))
    assert source.redundancy.swivel == 0.3
    assert source.redundancy.posture(WAM.joint_names) == pytest.approx(posture)
    assert source.redundancy.frozen == ("wam_j3",)
    source.set_redundancy(source.redundancy.with_swivel(-0.2))
    assert source.redundancy.swivel == -0.2
    before = source.redundancy
    for refused, words in (
        (before.moved(0, 1), "in this order; got posture; swivel angle"),
        (before._replace(frozen=("wam_j9",)), "wam_j9"),
        (Redundancy().with_level(PostureTask({"wam_j1": 0.0})), "the posture of all joints"),
    ):
        with pytest.raises(OptionError, match=words):
            source.set_redundancy(refused)
        assert source.redundancy == before
    source.set_redundancy(Redundancy())
    assert source.redundancy == Redundancy()


def test_scene_changes_are_synchronized_with_the_node(source, tmp_path):
    """What others add comes; what is added, moved and removed here the node has then."""
    mirror = source.scene.scene

    def until(condition, what):
        step_until(source, lambda _: condition(), what)

    def place(client, name):
        objects = scene_of(client).world.collision_objects
        return next((each.pose.position.x for each in objects if each.id == name), None)

    with Client(NAMESPACE) as client:
        assert apply(client, world(box("shelf", (0.6, 0.0, 0.5))))
        until(lambda: "shelf" in mirror.objects, "the box of the node")
        shown = mirror.snapshot.objects["shelf"].body
        assert mirror.distance(HOME).names  # the arm's own shapes count
        assert mirror.snapshot.may_touch("wam_base", "wam_link1")  # allowed by the node

        for x in (0.7, 0.8, 0.9):  # a drag
            mirror.move("shelf", transform(translation=np.array([x, 0.0, 0.5])))
            source.scene.publish("shelf")
        until(lambda: place(client, "shelf") == 0.9, "the box where it was dragged")
        mirror.add_box("new", [0.1, 0.2, 0.3], transform(translation=np.array([0.0, 1.0, 0.0])))
        source.scene.publish("new")
        until(lambda: "new" in objects_of(client), "the box that was added")
        mirror.remove("new")
        source.scene.publish("new")
        until(lambda: "new" not in objects_of(client), "the end of that box")
        file = tmp_path / "box.scene"
        file.write_text("(s)\n* crate\n1\nbox\n0.1 0.1 0.1\n0 1 0\n0 0 0 1\n0 0 0 0\n.\n")
        assert source.scene.load(str(file)) == ()
        until(lambda: "crate" in objects_of(client), "the object of a file")

        assert apply(client, world(box("shelf", (0.5, 0.0, 0.5)), removed("crate")))
        until(lambda: [*mirror.objects] == ["shelf"], "what the node has")
        until(lambda: mirror.objects["shelf"][0, 3] == 0.5, "the box where others moved it")
        assert mirror.snapshot.objects["shelf"].body is shown  # not drawn anew
        assert apply(client, world(removed("shelf")))
    file.write_text("world: {collision_objects: [{id: a, header: {frame_id: wam_tip}, "
                    "primitives: [{type: sphere, dimensions: [0.1]}]}]}")  # fmt: skip
    with pytest.raises(SceneError, match="object 'a' is in frame 'wam_tip'"):
        source.scene.load(str(file))


def test_pause_resume_and_reset_control_the_node(source):
    source.pause(True)
    step_until(source, lambda sample: sample.state == "PAUSED", "the pause")
    source.pause(False)
    step_until(source, lambda sample: sample.state != "PAUSED", "the end of the pause")
    source.reset()
    sample = step_until(source, lambda sample: sample.state == "WAITING", "no target")
    assert sample.T_target is None
    assert not source.can_place
    with pytest.raises(DlsIkError, match="cannot be set"):
        source.place(HOME)


def test_missing_node_and_invalid_namespace_raise():
    with pytest.raises(ServiceMissingError, match="/nowhere/dls_ik/get_parameters"):
        NodeSource(namespace="/nowhere", patience=0.2)
    with pytest.raises(OptionError, match=r"namespace.*'a b'"):
        NodeSource(namespace="a b")


def test_source_connects_to_a_late_and_a_restarted_node():
    source = NodeSource(DescribedRobot(UPPER, shipped_urdf("wam")), "/late")
    try:
        assert "waiting for /late/dls_ik" in source.step(0.0).message
        with pytest.raises(ServiceMissingError, match="/late/dls_ik/pause"):
            source.pause(True)
        for _ in range(2):
            with NodeProcess("-r", "__ns:=/late", *UPPER_ARGUMENTS):
                step_until(source, lambda s: s.message == "no target yet", "the node", READY)
                step_until(source, lambda _: source.method == "dls", "its parameters")
                T = UPPER.fk(HOME[1:] + 0.1)
                source.set_target(T)
                sample = reach(source, T, "its arm, by the names of a driver")
                np.testing.assert_allclose(sample.T_target, T, atol=1e-9)
            sample = step_until(source, lambda s: s.state == "STALE", "the silence")
            assert "no status from /late/dls_ik" in sample.message
            assert sample.T_target is None
    finally:
        source.close()


def test_different_base_of_page_and_node_is_reported_with_a_remedy():
    whole = NodeSource(DescribedRobot(WAM, shipped_urdf("wam")), "/upper")
    try:
        with NodeProcess("-r", "__ns:=/upper", *UPPER_ARGUMENTS):
            said = "the node uses base 'wam_link1'; start the viewer again with --base wam_link1"
            step_until(whole, lambda s: s.message.startswith(said), "the other base", READY)
    finally:
        whole.close()


def test_object_shapes_are_compared_by_value_and_without_the_pose():
    def crate(x):
        shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=[0.1, 0.2, 0.3])
        message = CollisionObject(id="crate", primitives=[shape])
        message.pose.position.x = x
        return deserialize_message(serialize_message(message), CollisionObject)

    noise, rng = [], np.random.default_rng(501)
    shapes = shapes_of(crate(0.0))
    for x in range(2000):
        noise.append(rng.bytes(rng.integers(10, 4000)))
        noise = noise[-50:]
        moved = crate(float(x))
        assert shapes_of(moved) == shapes
        assert moved.pose.position.x == x
    moved.primitives[0].dimensions[0] = 0.2
    assert shapes_of(moved) != shapes
