# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The running node at the end of streams: settle, stop or finish, codes, and diagnostics."""

import time

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from ros_client import SOON
from ros_streamer import HOME
from ros_wam import WAM
from ros_watched import Watched, has_ended, pose, shifted, twist

from dls_ik.servo import ServoState

pytestmark = [pytest.mark.ros, pytest.mark.slow]

NAME = "/ends/dls_ik: stream"


@pytest.fixture(scope="module")
def arm():
    with Watched("ends", feedback_mode="none") as arm:
        arm.diagnostics = arm.client.listen(DiagnosticArray, "/diagnostics", 100)
        yield arm
        arm.assert_alive()
        assert arm.node.end() == 0


@pytest.fixture(autouse=True)
def _only_commands_of_the_test(arm):
    assert arm.client.set_parameters(when_stream_ends="settle").successful
    arm.goes(WAM.fk(HOME), 1e-6)
    del arm.heard[:]


def level(arm):
    """The level of the next diagnostics."""
    del arm.diagnostics[:]

    def found():
        return [s for array in arm.diagnostics for s in array.status if s.name == NAME]

    arm.client.spin_until(found, what="diagnostics")
    return found()[-1].level


def sweep(t):
    """A pose that moves along y at 0.1 m/s, as long as a test may stream."""
    return pose(shifted(0.0, 0.1 * t, 0.0))


def send_run(arm, last, count=20):
    """Send poses so close to each other that they are a stream, the last one of them `last`."""
    for k in range(count):
        arm.send(pose(shifted(0.0, 0.002 * k, 0.0)))
        arm.client.spin_for(0.01)
    arm.send(pose(last))


def test_a_stream_that_simply_ends_reaches_its_last_pose(arm):
    last = shifted(0.0, 0.04, 0.0)
    send_run(arm, last)
    arm.arrives(last, 1e-5)
    arm.says("at the target")
    assert arm.statuses[-1].code == 0
    assert level(arm) in (DiagnosticStatus.OK, DiagnosticStatus.WARN)
    arm.assert_calm()


def test_a_pose_published_twice_is_followed_to_its_end(arm):
    far = shifted(0.0, 0.4, 0.0)
    for _ in range(2):
        arm.send(pose(far))
        time.sleep(0.05)
    arm.arrives(far, 1e-5)
    arm.assert_calm()


def test_a_stream_that_ends_far_from_its_last_pose_stops_and_says_why(arm):
    """A busy machine may put a gap before the last poses, which then are single ones."""
    far = WAM.fk(HOME + 1.0)
    for _ in range(20):
        arm.goes(WAM.fk(HOME))
        send_run(arm, far)
        del arm.statuses[:]
        arm.client.spin_until(
            lambda: any(has_ended(s.message) or "at the target" in s.message for s in arm.statuses),
            what="the end of the stream",
        )
        found = [s for s in arm.statuses if "no target received" in s.message]
        if found:
            break
    assert "settle_distance = 0.05 m" in found[-1].message
    assert found[-1].code == 0
    arm.node.wait_for_line("stream: no target received", "settle_distance = 0.05 m")
    arm.stands()
    assert arm.error(far) > 0.05
    assert level(arm) in (DiagnosticStatus.OK, DiagnosticStatus.WARN)
    arm.assert_calm()


def test_the_parameter_is_live(arm):
    assert arm.client.set_parameters(when_stream_ends="finish").successful
    far = shifted(0.0, 0.3, -0.1)
    send_run(arm, far)
    arm.arrives(far, 1e-5)
    result = arm.client.set_parameters(when_stream_ends="wait")
    assert not result.successful
    assert "settle, stop, finish" in result.reason
    assert arm.client.set_parameters(when_stream_ends="stop").successful
    arm.goes(WAM.fk(HOME), 1e-6)
    arm.ceases(lambda: arm.stream_until(sweep, lambda: arm.is_moving(0.05)))
    arm.assert_calm()


def test_releasing_a_joystick_idling_and_pausing_are_no_errors(arm):
    arm.reset()
    arm.says("no target yet")
    assert level(arm) in (DiagnosticStatus.OK, DiagnosticStatus.WARN), "WARN: late cycles"
    arm.stream_until(lambda _: twist((0.0, 0.1, 0.0)), lambda: arm.is_moving(0.05))
    arm.says(ServoState.TIMED_OUT.explanation)
    assert {s.code for s in arm.statuses if "no target received" in s.message} == {0}
    arm.stands()
    assert level(arm) in (DiagnosticStatus.OK, DiagnosticStatus.WARN)
    arm.pause()
    arm.says("paused")
    assert arm.statuses[-1].code == 0
    assert level(arm) in (DiagnosticStatus.OK, DiagnosticStatus.WARN)
    arm.pause(False)
    bad = pose(shifted(), "nowhere")
    arm.send(bad)
    arm.says("invalid target")
    assert arm.statuses[-1].code == -1
    assert level(arm) == DiagnosticStatus.ERROR


def test_joint_states_that_are_required_and_missing_are_old_data():
    with Watched("blind", feedback_mode="required") as arm:
        arm.says("waiting for joint states on /blind/joint_states")
        heard = arm.client.listen(DiagnosticArray, "/diagnostics", 100)
        levels = lambda: {  # noqa: E731
            s.level for array in heard for s in array.status if s.name == "/blind/dls_ik: stream"
        }
        arm.client.spin_until(levels, SOON, "diagnostics")
        assert levels() == {DiagnosticStatus.STALE}


def test_the_end_of_the_node_is_not_taken_for_a_pause():
    with Watched("ending", feedback_mode="none") as arm:
        arm.send(pose(np.eye(4), "nowhere"))
        arm.says("invalid target")
        assert arm.node.end() == 0
        assert not [line for line in arm.node.lines if line.endswith("stream: paused")]
        assert arm.node.count("stream: paused: the node is shutting down") == 1
