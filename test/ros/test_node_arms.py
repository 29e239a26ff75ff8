# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The node with two WAMs: groups, the table of error codes, and requests with anything in them."""

import re
from copy import deepcopy

import pytest
from builtin_interfaces.msg import Duration
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from moveit_msgs.msg import (
    Constraints,
    JointConstraint,
    OrientationConstraint,
    PositionConstraint,
    VisibilityConstraint,
)
from moveit_msgs.srv import GetPositionIK
from robots import ROOT
from ros_arms import CURRENT, GOOD, NAMES, TIPS, place, request, send, send_once
from service_cases import CASES, REACHED, out_of_grasp_of_the_left, timed

from dls_ik.errors import Code
from fuzz.source import Source
from fuzz.targets.node import changed

pytestmark = [pytest.mark.ros, pytest.mark.slow]


NO_ROBOT = "no robot yet"


def documented():
    """Our code by case, as the table has it."""
    text = (ROOT / "docs" / "lab" / "error_codes.md").read_text()
    rows = text.split("| case | move_group | ik_node | why |\n| --- | --- | --- | --- |\n")[1]
    cells = [row.split("|")[1:4] for row in rows.split("\n\n")[0].splitlines()]
    return {case.strip(): int(code) for case, _, code in cells}


def test_documented_error_codes_are_the_tested_cases():
    assert list(documented()) == [*CASES, NO_ROBOT]
    assert documented()[NO_ROBOT] == Code.FAILURE


@pytest.mark.parametrize("name", CASES)
def test_request_returns_the_documented_code_and_message(arms_client, name):
    case = CASES[name]
    whole = case.request
    if name == "a pose not found in time":
        whole = timed(0.1, out_of_grasp_of_the_left())
    try:
        if case.parameters:
            assert arms_client.set_parameters(**dict(case.parameters)).successful
        response = send(arms_client, whole)
    finally:
        if case.parameters:
            assert arms_client.set_parameters(avoid_collisions="request").successful
    check(response, documented()[name], case.words)


def check(response, code, words):
    error = response.error_code
    assert error.val == code, getattr(error, "message", "")
    if hasattr(error, "message"):
        assert re.search(words, error.message), error.message
        assert error.source == "dls_ik"
    if code != 1:
        assert response == with_code(type(response)(), error)


def with_code(empty, error):
    empty.error_code = error
    return empty


def test_groups_are_described_and_change_live(arms_client):
    tip, method, timeout = arms_client.describe_parameters(
        "group.both_arms.tip", "group.left_arm.method", "group.right_arm.timeout"
    )
    assert tip.read_only
    assert "string array" in tip.additional_constraints
    assert not method.read_only
    assert (timeout.description[-3:], timeout.floating_point_range[0].to_value) == ("[s]", 3600.0)
    assert list(arms_client.get_parameter("group.both_arms.tip").string_array_value) == list(TIPS)
    try:
        changed = {"group.left_arm.method": "svf+sd", "group.right_arm.timeout": 0.2}
        assert arms_client.set_parameters(**changed).successful
        far = place(TIPS[0])
        far.pose.position.x = 9.0
        answer = send(arms_client, request(far, group_name="left_arm"))
        assert "no attempt reached" in answer.error_code.message
    finally:
        changed = {"group.left_arm.method": "", "group.right_arm.timeout": 0.1}
        assert arms_client.set_parameters(**changed).successful
    refused = arms_client.set_parameters(**{"group.both_arms.method": "kdl_lma"})
    assert "group 'both_arms'" in refused.reason
    refused = arms_client.set_parameters(**{"group.both_arms.tip": "left_wam_tip"})
    assert "read-only" in refused.reason


def test_node_logs_the_groups_it_serves(arms_client):
    arms_client.process.wait_for_line("ready", "for left_arm, right_arm, both_arms")


def words(error):
    return getattr(error, "message", "no words on Humble")


def results(client):
    """What good requests get, without times."""
    answers = []
    for good in GOOD:
        response = send(client, deepcopy(good))
        assert response.error_code.val == Code.SUCCESS, words(response.error_code)
        if hasattr(response, "solution"):
            state = response.solution.joint_state
            answers.append((list(state.name), list(state.position)))
        else:
            answers.append([stamped.pose for stamped in response.pose_stamped])
    return answers


@pytest.fixture(scope="module")
def before(arms_client):
    return results(arms_client)


@settings(max_examples=50, suppress_health_check=list(HealthCheck))
@given(good=st.sampled_from(GOOD), data=st.binary(max_size=150))
def test_random_requests_are_answered_and_change_no_later_answer(arms_client, before, good, data):
    whole = changed(Source(data), good, (*NAMES, *CURRENT))
    if isinstance(whole, GetPositionIK.Request) and whole.ik_request.timeout.sec >= 0:
        whole.ik_request.timeout = Duration(nanosec=20_000_000)  # longer ones are waited for
    error = send_once(arms_client, whole).error_code
    assert error.val in {int(code) for code in Code}
    assert words(error)
    assert "internal error" not in words(error), words(error)
    assert len(words(error)) < 20_000
    assert results(arms_client) == before


def deep():
    """Constraints of all kinds, a thousand of each."""
    given = Constraints()
    given.joint_constraints = [JointConstraint(joint_name="left_wam_j1")] * 1000
    given.position_constraints = [PositionConstraint(link_name=TIPS[0])] * 1000
    given.orientation_constraints = [OrientationConstraint(link_name=TIPS[0])] * 1000
    given.visibility_constraints = [VisibilityConstraint()] * 1000
    return given


LARGE = {
    "10000 joints": request(REACHED, {f"joint_{i}": float(i) for i in range(10_000)}),
    "10000 poses": request(
        pose_stamped_vector=[REACHED] * 10_000, ik_link_names=[TIPS[0]] * 10_000
    ),
    "10000 links": request(pose_stamped_vector=[REACHED] * 10_000, ik_link_names=["x"] * 10_000),
    "4000 constraints": request(REACHED, constraints=deep()),
    "a megabyte of group": request(REACHED, group_name="x" * 2**20),
    "a megabyte of link": request(REACHED, ik_link_name="x" * 2**20),
}


@pytest.mark.parametrize("name", LARGE)
def test_large_requests_are_answered(arms_client, before, name):
    error = send(arms_client, LARGE[name]).error_code
    assert error.val == (Code.SUCCESS if name == "10000 joints" else error.val)
    assert 0 < len(words(error)) < 20_000
    assert results(arms_client) == before
