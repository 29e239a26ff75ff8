# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of objects around the arm with masses: queued, refused and outdated changes."""

import threading
import time

import pytest
from rclpy.serialization import serialize_message
from robots import URDF
from ros_scene import box
from ros_wam import WAM

from dls_ik import RobotModel
from dls_ik.ros.sim_arm.arm import SimArmParameters, joints_of
from dls_ik.ros.sim_arm.physics_shapes import PhysicsError
from dls_ik.ros.sim_arm.world import PhysicalWorld
from dls_ik.ros.util import Throttle

pytest.importorskip("mujoco", reason="needs MuJoCo")
pytestmark = pytest.mark.ros

LONG = 120.0  # [s] timeout of an immediate event


class Objects:
    """The world of a physical arm, which the test gives messages."""

    def __init__(self, node):
        self.node = node
        self.world = PhysicalWorld(node, SimArmParameters(physics=True), Throttle(node))
        self.arm = self.world.simulate(WAM, joints_of(WAM))

    def publish(self, *names):
        for name in names:
            message = serialize_message(box(name, (0.0, 0.0, 2.0)))
            for each in self.node.subscriptions:
                if each.topic_name == "/collision_object":
                    each.callback(message)

    def block(self):
        """Hold the thread of the objects, behind all that came before; return how to end that."""
        begun, end = threading.Event(), threading.Event()
        self.world._executor.submit(lambda: (begun.set(), end.wait(LONG)))
        return begun, end


@pytest.fixture
def objects(node):
    made = Objects(node)
    yield made
    made.world.close()


def present(arm):
    """The objects in the model."""
    return set(arm._arm._built.mocap)


def wait_for(condition):
    end = time.monotonic() + LONG
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_model_is_updated_while_further_changes_are_queued(objects):
    held, go = objects.block()
    assert held.wait(LONG)
    objects.publish("a")
    behind, end = objects.block()
    go.set()
    assert behind.wait(LONG)
    try:
        assert present(objects.arm) == {"a"}
    finally:
        end.set()


def test_refused_object_does_not_block_later_objects(objects, monkeypatch):
    robot, build = objects.arm.robot, objects.arm.robot.build

    def refuse(scene):
        if "bad" in scene.objects:
            raise PhysicsError("a degenerate mesh")
        return build(scene)

    monkeypatch.setattr(robot, "build", refuse)
    for name in ("a", "bad", "b"):
        objects.publish(name)
        wait_for(lambda: objects.world._executor._count == 0)
    assert present(objects.arm) == {"a", "b"}


def test_changes_queued_for_a_previous_robot_are_discarded(objects):
    held, go = objects.block()
    assert held.wait(LONG)
    objects.publish("a")
    other = RobotModel.from_urdf(URDF / "puma560.urdf")
    after = objects.world.simulate(other, joints_of(other))
    objects.publish("b")
    go.set()
    wait_for(lambda: present(after) == {"b"})
    assert objects.world._stage.scene.tree is other.tree
