"""Whatever a request holds, it is answered with a code and words, and nothing has changed after."""

from copy import deepcopy

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from hypothesis import HealthCheck, given, settings
from message_fuzz import GOOD, requests
from moveit_msgs.msg import (
    Constraints,
    JointConstraint,
    OrientationConstraint,
    PositionConstraint,
    VisibilityConstraint,
)
from ros_arms import TIPS, place, request, send

from dls_ik.ros.errors import Code

pytestmark = [pytest.mark.ros, pytest.mark.slow]


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


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
@given(whole=requests())
def test_any_request_is_answered_and_changes_nothing(arms_client, before, whole):
    error = send(arms_client, whole).error_code
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


REACHED = place(TIPS[0], left_wam_j2=0.7)
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
