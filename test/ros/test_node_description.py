"""The robot is replaced again and again while the arm moves and requests wait."""

from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
moveit = pytest.importorskip("moveit_msgs.msg", reason="needs moveit_msgs")
if not hasattr(moveit, "ServoStatus"):
    pytest.skip("this moveit_msgs has no ServoStatus", allow_module_level=True)

from robots import URDF
from ros_client import READY
from ros_streamer import positions
from ros_wam import WAM, Q
from ros_watched import ACCELERATION, JITTER, Watched, twist
from std_msgs.msg import String

from dls_ik import RobotModel
from dls_ik.model.shipped import shipped_urdf
from dls_ik.ros.client import IkClient
from dls_ik.ros.robot_source import QOS

pytestmark = [pytest.mark.ros, pytest.mark.slow]
WAM_TEXT = shipped_urdf("wam").read_text()
NARROW_TEXT = WAM_TEXT.replace('upper="3.1"', 'upper="1.5"')  # of joint 4, which stands at 1.6
PLANAR_TEXT = (URDF / "planar_2r.urdf").read_text()
NARROW, PLANAR = map(RobotModel.from_urdf, (NARROW_TEXT, PLANAR_TEXT))
ROBOTS = {tuple(robot.joint_names): robot for robot in (WAM, PLANAR)}
ENTITIES = "".join(f'<!ENTITY e{k + 1} "{f"&e{k};" * 10}">' for k in range(9))
GOOD = {
    "the same again": WAM_TEXT + "<!-- again -->",
    "narrower limits": NARROW_TEXT,
    "other joints": PLANAR_TEXT,
    "megabytes": WAM_TEXT.replace("</robot>", f"<!--{'x' * 3_000_000}--></robot>"),
}
BROKEN = {
    "line": WAM_TEXT[:2000],
    "XML": "",
    "links: a": '<robot name="r"><link name="a"/></robot>',
    "document type": f'<!DOCTYPE r [<!ENTITY e0 "ha">{ENTITIES}]><robot name="&e9;"/>',
    "larger than": f"<robot>{' ' * 17_000_000}</robot>",
}


class Described(Watched):
    """A node whose robot comes on the topic; it is sent a twist and asked for IK all the time."""

    def __init__(self, namespace, **parameters):
        super().__init__(namespace, robot="''", **parameters)
        self.topic = self.client.node.create_publisher(String, "robot_description", QOS)
        self.asker = IkClient(self.client.node)
        self.asks, self.answers, self.pending = True, [], set()

    def __enter__(self):
        self.describe(WAM_TEXT)
        super().__enter__()
        self.client.spin_until(lambda: self.asker.is_served)
        self.client.node.create_timer(0.02, lambda: self.send(twist((0.0, 0.02, 0.0))))
        for _ in range(3):
            self.ask()
        return self

    def describe(self, text):
        self.topic.publish(String(data=text))

    def ask(self):
        """Ask for IK, and again when that is answered."""
        pending = self.asker.solve_async(WAM.fk(Q), link="wam_tip", timeout=20.0)
        self.pending.add(pending)
        pending.add_done_callback(self._take)

    def goes_on(self):
        """Wait until it moves, and answers."""
        heard, answered = len(self.heard), len(self.answers)
        self.client.spin_until(
            lambda: any(any(c.velocity) for c in self.heard[heard:])
            and len(self.answers) > answered + 3,
            what="motion and answers",
        )

    def _take(self, pending):
        self.pending.remove(pending)
        self.answers.append(pending.result())
        if self.asks:
            self.ask()


def test_a_robot_is_replaced_while_it_moves_and_while_requests_wait():
    with Described("described", driver="none") as arm:
        for name, text in GOOD.items():
            replaced(arm, name, text, "ready")
        for words, text in BROKEN.items():
            replaced(arm, words, text, "refused", words)
        replaced(arm, "good again", WAM_TEXT, "ready")
        arm.asks = False
        arm.client.spin_until(lambda: not arm.pending, what="all answers")
        assert_no_torn_command(arm.heard)
        assert_no_torn_answer(arm.answers)
        assert "Traceback" not in arm.node.output, arm.node.output
        assert arm.node.end() == 0


def replaced(arm, name, text, *words):
    """Send a description while the arm moves and requests wait; wait for what is said of it."""
    arm.goes_on()
    said = arm.node.count(*words)
    arm.describe(text)
    arm.client.spin_until(lambda: arm.node.count(*words) > said, READY, f"{words} after {name}")
    if text is NARROW_TEXT:
        arm.client.spin_until(lambda: NARROW.within_limits(arm.q, 1e-9), what="the new limits")
    arm.goes_on()


def assert_no_torn_command(commands):
    """Each is of one robot, inside its limits; none jumps; none is left behind moving."""
    for message in commands:
        robot = ROBOTS[tuple(message.name)]
        assert len(message.position) == len(message.velocity) == robot.n
        assert robot.within_limits(positions(message), 1e-9)
    for before, after in pairwise(commands):
        elapsed = stamp(after) - stamp(before) + JITTER
        if before.name == after.name:
            robot = ROBOTS[tuple(before.name)]
            way = np.abs(positions(after) - positions(before))
            assert (way <= robot.velocity * elapsed + 1e-9).all()
        else:
            assert np.abs(before.velocity).max() <= ACCELERATION * elapsed, "it was left moving"
            assert not any(after.velocity)


def assert_no_torn_answer(answers):
    """Each is of one robot: a solution for the one that has the link, a refusal of the other."""
    assert any(answer.success for answer in answers)
    for answer in answers:
        if answer.success:
            np.testing.assert_allclose(WAM.fk(answer.array(WAM.joint_names)), WAM.fk(Q), atol=1e-4)
        else:
            assert "unknown link 'wam_tip'" in answer.message
            assert PLANAR.tip in answer.message


def stamp(message):
    return message.header.stamp.sec + 1e-9 * message.header.stamp.nanosec
