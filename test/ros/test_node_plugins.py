# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of users' methods in a node next to a wall: one that works, and several that fail."""

import numpy as np
import pytest
from commands import Limits, assert_told
from moveit_msgs.srv import GetPositionIK
from ros_client import NodeProcess
from ros_guarded import KEPT, NEAR, START, Guarded, shifted
from ros_scene import box
from ros_streamer import motion
from ros_wam import WAM, ik
from ros_wam import stamped as pose_of
from std_srvs.srv import Trigger

from dls_ik.ros.client.ik_client import ik_request

pytestmark = [pytest.mark.ros]
WALL = box("wall", WAM.fk(START)[:3, 3] + [0.0, 0.25, 0.0], size=(1.0, 0.1, 1.0))
FILE = """
import numpy as np
import time

def damped(J, e, state):
    return J.T @ np.linalg.solve(J @ J.T + 0.01 * np.eye(6), e)

def until(step):
    return lambda J, e, state: damped(J, e, state) if state.iteration < 30 else step()

def never():
    while True:
        pass

METHODS = {
    "damped": damped,
    "nan": until(lambda: np.full(7, np.nan)),
    "short": until(lambda: np.zeros(6)),
    "raises": until(lambda: 1 / 0),
    "never": until(never),
    "broken": lambda J, e, state: 1 / 0,
}
"""
REASONS = {
    "nan": "not finite",
    "short": "a step must be 7 numbers",
    "raises": "ZeroDivisionError",
    "never": "takes more than",
}


@pytest.fixture(scope="module")
def arm(private_domain, tmp_path_factory):
    file = tmp_path_factory.mktemp("plugins") / "own.py"
    file.write_text(FILE)
    with Guarded("/own", plugins=str(file), stream_method="damped") as arm:
        yield arm


def test_plugin_method_stops_the_arm_at_min_distance_from_a_wall(arm):
    arm.fresh(WALL)
    arm.streamer.send_until(shifted(y=0.5), lambda: NEAR in arm.codes(), "the wall nearby")
    arm.client.spin_until(lambda: arm.figures().get("state") == "blocked", what="rest at the wall")
    assert KEPT - 1e-6 < arm.least(WALL) < KEPT + 0.02
    assert_told(*motion(arm.streamer.states), Limits.of(WAM, 6.0), jitter=0.02)


@pytest.mark.parametrize("name", REASONS)
def test_failing_plugin_stops_the_arm_is_named_and_can_be_replaced(arm, name):
    arm.fresh(WALL)
    assert arm.client.set_parameters(stream_method=name).successful
    told = lambda: arm.said(f"'{name}'", REASONS[name])  # noqa: E731
    arm.streamer.send_until(shifted(y=0.5), told, "the reason")
    arm.client.spin_until(lambda: not any(arm.streamer.states[-1].velocity), what="rest")
    assert arm.least(WALL) > KEPT - 1e-6
    refused = arm.client.set_parameters(stream_method="nobody")
    assert not refused.successful
    assert arm.client.set_parameters(stream_method="damped").successful
    arm.client.call(Trigger, "dls_ik/reset", Trigger.Request())
    arm.streamer.go(WAM.fk(START))


def test_requests_are_solved_by_a_plugin_or_return_its_failure(arm):
    goal = np.array([0.1, 0.7, 0.1, 1.5, 0.1, 0.3, 0.1])
    for name, succeeds in (("damped", True), ("broken", False), ("auto", True)):
        assert arm.client.set_parameters(method=name).successful
        response = ik(arm.client, pose_of(WAM.fk(goal)))
        assert (response.error_code.val == 1) == succeeds, response.error_code.message
    assert arm.client.set_parameters(method="damped").successful
    arm.fresh(WALL)
    for y, code, words in ((0.0, 1, "solved"), (0.25, -31, "'wall'")):
        asked = ik_request(shifted(y=y), timeout=2.0, avoid_collisions=True)
        response = arm.client.call_in_time(GetPositionIK, "compute_ik", asked)
        assert response.error_code.val == code, response.error_code.message
        assert words in response.error_code.message
    assert arm.client.set_parameters(method="auto").successful


@pytest.mark.parametrize(
    ("text", "reason"), [(None, "there is no plug-in"), ("1 / 0", "ZeroDivisionError")]
)
def test_unusable_plugin_file_ends_the_start_with_a_reason(private_domain, tmp_path, text, reason):
    file = tmp_path / "bad.py"
    if text is not None:
        file.write_text(text)
    with NodeProcess("-p", "robot:=wam", "-p", f"plugins:={file}") as node:
        assert node.wait_for_end() != 0
        node.wait_for_line(reason)
        assert "Traceback" not in node.output
