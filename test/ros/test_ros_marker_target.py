# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The interactive marker: its handles, its pose, and which feedback sets targets."""

import sys

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message
from robots import URDF
from ros_world import FakeNode
from std_msgs.msg import Header
from visualization_msgs.msg import InteractiveMarker
from visualization_msgs.msg import InteractiveMarkerControl as Control
from visualization_msgs.msg import InteractiveMarkerFeedback as Feedback

from dls_ik import RobotModel
from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo import target_marker
from dls_ik.ros.servo.monitor import CycleReport
from dls_ik.ros.servo.target_marker import MarkerTarget, build_handles, build_marker
from dls_ik.ros.servo.tip import Tip, Trail
from dls_ik.servo import Controller, ServoState

WAM = RobotModel.wam()


class Server:
    """Minimal InteractiveMarkerServer that records markers and poses."""

    def __init__(self, node, name, *, feedback_sub_qos):
        self.inserted, self.poses, self.hear = [], [], None

    def insert(self, marker, feedback_callback):
        self.inserted.append(marker)
        self.hear = feedback_callback

    def setPose(self, name, pose):
        self.poses.append(matrix_from_pose(pose))

    def applyChanges(self):
        pass


class MenuHandler:
    """Minimal MenuHandler that records the callbacks of its entries."""

    CHECKED, UNCHECKED = 1, 2

    def __init__(self):
        self.do, self.ticks = {}, []

    def insert(self, title, callback):
        self.do[title] = callback
        return title

    def setCheckState(self, entry, state):
        self.ticks.append((entry, state))

    def apply(self, server, name):
        server.menu = self


class Library:
    InteractiveMarkerServer, MenuHandler = Server, MenuHandler


class World(FakeNode):
    """A marker of an arm whose state the test sets, with a clock that only the test advances."""

    def __init__(self, monkeypatch):
        super().__init__()
        self.now, self.watchers = 100.0, 1
        monkeypatch.setattr(target_marker.time, "monotonic", lambda: self.now)
        self.targets, self.orders = [], []
        self.controller = Controller(WAM)
        self.trail = Trail(Tip(WAM, dict), 0.0)
        self.marker = MarkerTarget(
            self, Library, lambda: self.seen, self.targets.append, self.orders.append
        )
        self.server = self.marker._server
        self.is_in(ServoState.WAITING)

    def count_subscribers(self, topic):
        assert topic == "/~/target/update"
        return self.watchers

    def is_in(self, state, q=None, T_d=None):
        q = np.zeros(WAM.n) if q is None else q
        output = self.controller.cycle(self.now, 0.01)._replace(q=q, T_d=T_d)
        self.seen = CycleReport(state, "", None, output, False, self.trail)
        self.look_out()

    def feels(self, kind, T, frame="wam_base"):
        pose = pose_from_matrix(T)
        header = Header(frame_id=frame)
        header.stamp.sec = 7
        self.server.hear(Feedback(event_type=kind, pose=pose, header=header))


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def shifted(x):
    return WAM.fk(np.zeros(WAM.n)) + x * np.eye(4, k=3)


def test_handles_move_and_turn_along_each_axis_of_the_tip():
    tip, T = Tip(WAM, dict), shifted(0.1)
    made = build_handles("target", tip, pose_from_matrix(T))
    made = deserialize_message(serialize_message(made), InteractiveMarker)
    assert matrix_from_pose(made.pose) == pytest.approx(T)
    assert made.header.frame_id == WAM.tree.root
    assert "wam_tip" in made.description
    axes = {Control.MOVE_AXIS: [], Control.ROTATE_AXIS: []}
    for control in made.controls:
        if control.interaction_mode in axes:
            pose = pose_from_matrix(np.eye(4))
            pose.orientation = control.orientation
            axes[control.interaction_mode].append(matrix_from_pose(pose)[:3, 0])
    for mode in axes:
        assert np.array(axes[mode]) == pytest.approx(np.eye(3))


def test_a_dragged_pose_becomes_a_one_pose_trajectory_without_a_stamp(world):
    world.feels(Feedback.POSE_UPDATE, shifted(0.1))
    [target] = world.targets
    assert target.header.frame_id == "wam_base"
    assert (target.header.stamp.sec, target.header.stamp.nanosec) == (0, 0)
    [pose] = target.poses
    assert matrix_from_pose(pose) == pytest.approx(shifted(0.1))


def test_each_new_pose_sets_one_target_including_the_pose_of_the_release(world):
    for kind in (
        Feedback.POSE_UPDATE,
        Feedback.MOUSE_DOWN,
        Feedback.POSE_UPDATE,
        Feedback.MOUSE_UP,
    ):
        world.feels(kind, shifted(0.0))
    assert world.targets == []
    world.feels(Feedback.POSE_UPDATE, shifted(0.1))
    world.feels(Feedback.POSE_UPDATE, shifted(0.1) + 1e-7)
    world.feels(Feedback.MOUSE_UP, shifted(0.2))
    world.feels(Feedback.KEEP_ALIVE, shifted(0.3))
    found = np.array([matrix_from_pose(target.poses[0]) for target in world.targets])
    assert found == pytest.approx(np.array([shifted(0.1), shifted(0.2)]))


def test_the_marker_follows_tip_and_target(world):
    q = np.full(WAM.n, 0.2)
    world.is_in(ServoState.WAITING, q)
    world.is_in(ServoState.WAITING, q)  # no change, nothing to send
    world.is_in(ServoState.FOLLOWING, q, T_d=shifted(0.3))
    world.is_in(ServoState.TIMED_OUT, q)
    assert len(world.server.inserted) == 1
    wanted = np.array([WAM.fk(q), shifted(0.3), WAM.fk(q)])
    assert np.array(world.server.poses) == pytest.approx(wanted)


def test_marker_is_not_moved_while_dragged_or_without_a_viewer(world):
    world.feels(Feedback.POSE_UPDATE, shifted(0.1))
    world.is_in(ServoState.REFUSED)
    assert world.server.poses == []
    world.now += 1.1 * target_marker.TOUCH_HOLD
    world.watchers = 0
    world.is_in(ServoState.REFUSED)
    assert world.server.poses == []
    world.watchers = 1
    world.is_in(ServoState.REFUSED)
    [T] = world.server.poses
    assert T == pytest.approx(shifted(0.0))


def test_the_menu_controls_the_stream_and_shows_a_pause(world):
    menu = world.server.menu
    world.is_in(ServoState.FOLLOWING, np.full(WAM.n, 0.2), T_d=shifted(0.3))
    menu.do["Bring the target to the tip"](None)
    [target] = world.targets
    assert matrix_from_pose(target.poses[0]) == pytest.approx(WAM.fk(np.full(WAM.n, 0.2)))
    menu.do["Pause"](None)
    world.is_in(ServoState.PAUSED)
    world.is_in(ServoState.PAUSED)
    menu.do["Pause"](None)
    world.is_in(ServoState.WAITING)
    menu.do["Reset"](None)
    assert world.orders == [Controller.pause, Controller.resume, Controller.reset]
    assert menu.ticks == [("Pause", state) for state in (2, 1, 2)]


def test_the_marker_is_replaced_for_another_robot(world):
    planar = RobotModel.from_urdf(URDF / "planar_2r.urdf")
    world.trail = Trail(Tip(planar, dict), 0.0)
    world.is_in(ServoState.WAITING, np.zeros(2))
    assert [made.header.frame_id for made in world.server.inserted] == ["wam_base", "base"]
    assert len({made.name for made in world.server.inserted}) == 1  # the marker is replaced


def test_a_missing_library_is_logged_with_the_package_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "interactive_markers", None)
    node, nothing = FakeNode(), (None, None, None)
    assert build_marker(node, Parameters(), *nothing) is None
    assert node.lines == []
    asked = Parameters().changed({"interactive_marker": True})
    assert build_marker(node, asked, *nothing) is None
    [line] = node.lines
    assert "the package interactive_markers is not installed" in line
    assert "apt-get install ros-$ROS_DISTRO-interactive-markers" in line
