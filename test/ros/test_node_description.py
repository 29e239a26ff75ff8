# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The robot is replaced again and again while the arm moves and requests wait."""

import math
import time
from itertools import pairwise

import numpy as np
import pytest
from geometry_msgs.msg import TwistStamped
from robots import URDF
from ros_client import READY, Client, NodeProcess
from ros_streamer import positions, seconds
from ros_wam import WAM, Q
from ros_watched import ACCELERATION, JITTER, Watched, arguments, twist
from sensor_msgs.msg import JointState
from std_msgs.msg import String

from dls_ik import RobotModel
from dls_ik.model.files import shipped_urdf
from dls_ik.ros.client import IkClient
from dls_ik.ros.robot_source import DESCRIPTION_QOS

pytestmark = [pytest.mark.ros, pytest.mark.slow]
WAM_TEXT = shipped_urdf("wam").read_text()
NARROW_TEXT = WAM_TEXT.replace('lower="-0.9"', 'lower="0.3"')  # limit of joint 4, which starts at 0
PLANAR_TEXT = (URDF / "planar_2r.urdf").read_text()
NARROW, PLANAR = map(RobotModel.from_urdf, (NARROW_TEXT, PLANAR_TEXT))
SPEED = 0.05  # [m/s] along x and y
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

    def __init__(self, namespace):
        given = {"robot": "''", "feedback_mode": "none", "rate": 25.0}
        self.node = NodeProcess(*arguments(namespace, **given))
        self.client = Client(namespace)
        self.heard = self.client.listen(JointState, "joint_states", 1000)
        self.topic = self.client.node.create_publisher(String, "robot_description", DESCRIPTION_QOS)
        self.asker = IkClient(self.client.node)
        self.answers, self.pending = [], set()

    def __enter__(self):
        self.describe(WAM_TEXT)
        self.node.wait_for_line("ready")
        self.client.reach(self.asker)
        targets = self.client.publisher(TwistStamped, "target_twist", 1)
        timer = self.client.node.create_timer
        timer(
            0.05, lambda: targets.publish(twist([SPEED * math.sin(time.monotonic())] * 2 + [0.0]))
        )
        self._asking = timer(0.05, self._ask)
        return self

    def describe(self, text):
        self.topic.publish(String(data=text))

    def cease_to_ask(self):
        """Ask no more, and wait for what was asked for."""
        self.client.node.destroy_timer(self._asking)
        self.client.spin_until(lambda: not self.pending, READY, "all answers")

    def goes_on(self):
        """Wait until it moves, and answers."""
        heard, answered = len(self.heard), len(self.answers)
        self.client.spin_until(
            lambda: (
                any(any(c.velocity) for c in self.heard[heard:])
                and len(self.answers) > answered + 3
            ),
            READY,
            "motion and answers",
        )

    def _ask(self):
        if len(self.pending) < 3:
            pending = self.asker.solve_async(WAM.fk(Q), link="wam_tip", timeout=60.0)
            self.pending.add(pending)
            pending.add_done_callback(self._take)

    def _take(self, pending):
        self.pending.remove(pending)
        self.answers.append(pending.result())


def test_robot_replaced_in_motion_causes_no_mixed_commands_or_answers():
    with Described("described") as arm:
        arm.goes_on()
        replaced(arm, "the first", WAM_TEXT + " ", "ready")
        threads = arm.node.figures.threads
        for name, text in GOOD.items():
            replaced(arm, name, text, "ready")
        for words, text in BROKEN.items():
            replaced(arm, words, text, "refused", words)
        replaced(arm, "good again", WAM_TEXT, "ready")
        arm.cease_to_ask()
        assert arm.node.figures.threads < threads + 5, (
            "some begin when they are first needed, none each time"
        )
        assert_no_torn_command(arm.heard)
        assert_no_torn_answer(arm.answers)
        assert "Traceback" not in arm.node.output, arm.node.output
        assert arm.node.end() == 0


def replaced(arm, name, text, *words):
    """Send a description while the arm moves and requests wait; wait for what is said of it."""
    said = arm.node.count(*words)
    arm.describe(text)
    arm.client.spin_until(lambda: arm.node.count(*words) > said, READY, f"{words} after {name}")
    if text is NARROW_TEXT:
        arm.client.spin_until(lambda: NARROW.within_limits(arm.q, 1e-9), READY, "its limits")
    arm.goes_on()


def assert_no_torn_command(commands):
    """Each is of one robot, inside its limits; none jumps; none is left behind moving."""
    for message in commands:
        robot = ROBOTS[tuple(message.name)]
        assert len(message.position) == len(message.velocity) == robot.n
        assert robot.within_limits(positions(message), 1e-9)
    for before, after in pairwise(commands):
        elapsed = seconds(after) - seconds(before) + JITTER
        if before.name == after.name:
            robot = ROBOTS[tuple(before.name)]
            way = np.abs(positions(after) - positions(before))
            assert (way <= robot.velocity * elapsed + 1e-9).all()
        else:
            assert np.abs(before.velocity).max() <= ACCELERATION * elapsed, "it was left moving"
            assert np.abs(after.velocity).max() <= ACCELERATION * elapsed, "it begins from rest"


def assert_no_torn_answer(answers):
    """Each is of one robot: a solution for the one that has the link, a refusal of the other."""
    assert any(answer.success for answer in answers)
    for answer in answers:
        if answer.success:
            np.testing.assert_allclose(WAM.fk(answer.array(WAM.joint_names)), WAM.fk(Q), atol=1e-4)
        else:
            assert "unknown link 'wam_tip'" in answer.message
            assert PLANAR.tip in answer.message
