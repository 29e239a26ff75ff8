# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The marker that is dragged in RViz, by the library that RViz takes it from."""

import pytest

pytest.importorskip(
    "interactive_markers", reason="needs interactive_markers, which comes with RViz"
)

from robots import URDF
from ros_client import Client, NodeProcess
from ros_rviz import Rviz
from ros_streamer import HOME
from ros_wam import WAM
from ros_watched import Watched, shifted
from std_msgs.msg import String

from dls_ik import RobotModel
from dls_ik.ros.robot_source import DESCRIPTION_QOS
from dls_ik.servo.state import ServoState

pytestmark = [pytest.mark.ros, pytest.mark.slow]

HALTED = (ServoState.TIMED_OUT, ServoState.REFUSED, ServoState.FAULT)


class Dragged(Watched):
    """A node with the marker."""

    def waits(self):
        """Reset the node, which drops its target, also a target in the cycle of the reset."""

        def forgets():
            self.reset()
            del self.statuses[:]
            self.client.spin_until(lambda: len(self.statuses) > 5, what="statuses")
            return self.statuses[-1].message == ServoState.WAITING.explanation

        self.client.spin_until(forgets, what="an arm without a target")

    def was_halted(self):
        said = [status.message for status in self.statuses]
        return any(state.explanation in words for state in HALTED for words in said)


@pytest.fixture(scope="module")
def arm():
    with Dragged("dragged", interactive_marker=True) as arm:
        yield arm


@pytest.fixture(scope="module")
def window(arm):
    window = Rviz(arm.client)
    window.gets_heard()
    return window


@pytest.fixture
def rviz(arm, window):
    """RViz, and the arm at rest at HOME without a target."""
    arm.waits()
    arm.goes(WAM.fk(HOME))
    arm.says(ServoState.REACHED.explanation)  # else the target may come after the reset
    arm.waits()
    window.shows(WAM.fk(HOME))
    return window


def test_arm_follows_a_dragged_marker_and_reaches_the_release_pose(arm, rviz):
    T = shifted(y=0.15, z=-0.05)
    del arm.statuses[:]
    rviz.press()
    rviz.drag(T)
    arm.client.spin_until(lambda: arm.error(WAM.fk(HOME)) > 0.02, what="motion before the release")
    rviz.release(T)
    arm.arrives(T)
    rviz.shows(T)
    arm.says(ServoState.REACHED.explanation)
    assert not arm.was_halted()
    arm.assert_calm()


def test_menu_pauses_resets_and_moves_the_target_to_the_tip(arm, rviz):
    far = shifted(y=2.0)
    rviz.press()
    rviz.drag(far, frames=3)
    rviz.release(far)
    arm.says(ServoState.UNREACHABLE.explanation)
    rviz.shows(far)
    rviz.choose("tip")
    arm.says(ServoState.REACHED.explanation)
    rviz.shows(WAM.fk(arm.q))

    rviz.choose("Pause")
    arm.says(ServoState.PAUSED.explanation)
    rviz.client.spin_until(lambda: rviz.marker.menu_entries[0].title == "[x] Pause")
    rviz.press()
    rviz.drag(shifted(), frames=3)
    rviz.release(shifted())
    arm.says("paused", "target ignored")
    rviz.shows(WAM.fk(arm.q))  # the arm has not moved
    rviz.choose("Pause")
    rviz.client.spin_until(lambda: rviz.marker.menu_entries[0].title == "[ ] Pause")

    rviz.press()
    rviz.drag(shifted(), frames=3)
    rviz.release(shifted())
    arm.arrives(shifted())
    rviz.choose("Reset")
    arm.says(ServoState.WAITING.explanation)
    rviz.shows(WAM.fk(arm.q))
    assert "Traceback" not in arm.node.output


def test_new_robot_gets_a_new_marker_and_the_node_exits_cleanly():
    arguments = ("-r", "__ns:=/changing", "-p", "interactive_marker:=true")
    with NodeProcess(*arguments) as node, Client("changing") as client:
        node.wait_for_line("waiting for a robot")
        topic = client.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
        topic.publish(String(data=(URDF / "planar_2r.urdf").read_text()))
        rviz = Rviz(client)
        planar, puma = (RobotModel.from_name(name) for name in ("planar_2r", "puma560"))
        assert rviz.marker.header.frame_id == planar.tree.root
        small = rviz.marker.scale
        topic.publish(String(data=(URDF / "puma560.urdf").read_text()))
        client.spin_until(lambda: rviz.marker.header.frame_id == puma.tree.root, what="a marker")
        assert rviz.marker.scale != small
        assert puma.tip in rviz.marker.description
        rviz.gets_heard()
        assert node.end() == 0
        assert "Traceback" not in node.output
