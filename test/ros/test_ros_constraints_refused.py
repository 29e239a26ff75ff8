"""Constraints of compute_ik that are refused, and whatever else may be in them."""

import math
from contextlib import suppress
from copy import deepcopy

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")

from builtin_interfaces.msg import Duration
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from message_fuzz import change
from moveit_msgs.msg import PositionIKRequest
from ros_constraints import joint, orientation, position, primitive, together, visibility
from ros_requests import CURRENT, ask, make_arm, pose, refusal, values
from shape_msgs.msg import Mesh

from dls_ik.errors import DlsIkError
from dls_ik.ros.errors import Code
from dls_ik.ros.frames import Frames
from dls_ik.ros.services.ik import answer_ik

NAN, INF, I3, I4 = math.nan, math.inf, np.eye(3), np.eye(4)
BALL = primitive(2, 0.1)
INVALID = Code.INVALID_GOAL_CONSTRAINTS


@pytest.fixture(scope="module")
def arm():
    return make_arm()


def no_direction():
    given = orientation("tool", I3, (1, 1, 1))
    q = given.orientation_constraints[0].orientation
    q.x = q.y = q.z = q.w = 0.0
    return given


def mesh():
    given = position("tool", [BALL], [I4])
    given.position_constraints[0].constraint_region.meshes = [Mesh()]
    return given


BAD = {
    "joint unknown": (INVALID, "'nope'; joints: rail_joint, a1", joint("nope", 0.0)),
    "joint without a name": (INVALID, "''; joints", joint("", 0.0)),
    "joint that is fixed": (INVALID, "'tool_joint'", joint("tool_joint", 0.0)),
    "joint at nan": (INVALID, "'a1': the position nan", joint("a1", NAN)),
    "joint at inf": (INVALID, "'a1': the position inf", joint("a1", INF)),
    "tolerance nan": (INVALID, "from 0 on, not .*nan", joint("a1", 0.0, NAN)),
    "tolerance below 0": (INVALID, "from 0 on, not .*-0.1", joint("a1", 0.0, 0.1, -0.1)),
    "link unknown": (Code.INVALID_LINK_NAME, "'nope'; links", orientation("nope", I3, (1, 1, 1))),
    "no link": (Code.INVALID_LINK_NAME, "''; links", position("", [BALL], [I4])),
    "frame": (
        Code.FRAME_TRANSFORM_FAILURE,
        "link 'tool': .*'table'",
        orientation("tool", I3, (1, 1, 1), "table"),
    ),
    "angle below 0": (INVALID, "from 0 on .*-1", orientation("tool", I3, (1, -1, 1))),
    "angle nan": (INVALID, "from 0 on .*nan", orientation("tool", I3, (1, 1, NAN))),
    "parameterization": (INVALID, "not 7", orientation("tool", I3, (1, 1, 1), "", 7)),
    "quaternion": (INVALID, "link 'tool': .*no direction", no_direction()),
    "no region": (INVALID, "no primitives", position("tool", [], [])),
    "poses": (INVALID, "1 primitives .* not 2", position("tool", [BALL], [I4, I4])),
    "meshes": (INVALID, "meshes are no regions", mesh()),
    "cone": (INVALID, r"CONE \(4\)", position("tool", [primitive(4, 1, 1)], [I4])),
    "no shape": (INVALID, "primitive 9 ", position("tool", [primitive(9, 1, 1)], [I4])),
    "length 0": (INVALID, "above 0 .*x, y, z", position("tool", [primitive(1, 1, 0, 1)], [I4])),
    "length nan": (INVALID, "above 0 .*nan", position("tool", [primitive(2, NAN)], [I4])),
    "two lengths": (INVALID, "x, y, z, not", position("tool", [primitive(1, 1, 1)], [I4])),
    "offset": (INVALID, "offset .*nan", position("tool", [BALL], [I4], (0, NAN, 0))),
    "union": (INVALID, "at most 64, not 65", position("tool", [BALL] * 65, [I4] * 65)),
    "unions": (
        INVALID,
        "come to 100 problems",
        together(*[position("j3", [BALL] * 10, [I4] * 10)] * 2),
    ),
    "many joints": (INVALID, "256 on joints", together(*[joint("a1", 0.0)] * 257)),
    "visibility": (INVALID, "visibility .*obstacles", visibility()),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_not_valid_is_refused(arm, name):
    code, words, constraints = BAD[name]
    refusal(code, words, ask, arm, pose(arm, "tool"), constraints=constraints)


def test_region_at_nan_is_refused(arm):
    region = position("tool", [BALL], [I4])
    region.position_constraints[0].constraint_region.primitive_poses[0].position.x = NAN
    refusal(INVALID, "link 'tool': .*nan", ask, arm, pose(arm, "tool"), constraints=region)


GOOD = together(
    joint("a3", 0.7, 0.5),
    orientation("tool", I3, (1.0, 2.0, 3.0), "camera", 1),
    position("j3", [BALL, primitive(1, 1, 1, 1)], [I4, I4], (0.1, 0, 0)),
)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_constraints_are_answered_or_refused(arm, data):
    constraints = deepcopy(GOOD)
    for _ in range(data.draw(st.integers(1, 4))):
        change(data.draw, constraints, 5)
    request = PositionIKRequest(pose_stamped=pose(arm, "tool"), constraints=constraints)
    request.timeout = Duration(nanosec=5_000_000)
    with suppress(DlsIkError):
        found = values(answer_ik(request, arm, CURRENT, Frames()))
        assert arm.robot.within_limits([found[name] for name in arm.robot.joint_names])
