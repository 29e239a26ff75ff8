# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arm with its surroundings, and requests for it."""

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import PositionIKRequest
from robots import joint, urdf

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError, code_of
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, pose_from_matrix
from dls_ik.ros.params import Parameters
from dls_ik.ros.services.answers import ik_slices
from dls_ik.ros.services.request import read_ik_request
from dls_ik.solver.calls import finished

LIMIT = '<limit lower="-2" upper="2" effort="1" velocity="1.5"/>'

# On a rail: an arm of 6 joints with a flange and a tool, a gripper with a mimic finger, a mast.
ARM = urdf(
    "world rail j1 j2 j3 j4 j5 j6 flange tool palm finger thumb mast camera",
    joint("rail_joint", "prismatic", "world", "rail", axis="0 1 0"),
    joint("a1", "revolute", "rail", "j1", LIMIT + '<origin xyz="0 0 0.3"/>'),
    joint("a2", "revolute", "j1", "j2", LIMIT + '<origin xyz="0 0 0.2"/>', "0 1 0"),
    joint("a3", "revolute", "j2", "j3", LIMIT + '<origin xyz="0 0 0.5"/>', "0 1 0"),
    joint("a4", "revolute", "j3", "j4", LIMIT + '<origin xyz="0 0 0.3"/>'),
    joint("a5", "revolute", "j4", "j5", LIMIT + '<origin xyz="0 0 0.2"/>', "0 1 0"),
    joint("a6", "revolute", "j5", "j6", LIMIT + '<origin xyz="0 0 0.1"/>'),
    joint("flange_joint", "fixed", "j6", "flange", '<origin xyz="0 0 0.1"/>'),
    joint("tool_joint", "fixed", "flange", "tool", '<origin xyz="0.1 0 0.2" rpy="0.3 0 1"/>'),
    joint("palm_joint", "fixed", "flange", "palm", '<origin xyz="0 0 0.05"/>'),
    joint("grip", "prismatic", "palm", "finger", axis="1 0 0"),
    joint("follow", "prismatic", "palm", "thumb", LIMIT + '<mimic joint="grip" multiplier="-1"/>'),
    joint("pan", "continuous", "world", "mast", '<origin xyz="1 0 0"/>'),
    joint("tilt", "revolute", "mast", "camera", axis="0 1 0"),
)
NAMES = ["rail_joint", "a1", "a2", "a3", "a4", "a5", "a6", "grip", "follow", "pan", "tilt"]
CURRENT = {"rail_joint": 0.4, "a1": 0.1, "a2": 0.6, "a3": 0.7, "a4": 0.1, "a5": 0.5, "a6": 0.2}


def make_arm(**parameters):
    return Arm(RobotModel.from_urdf(ARM, "rail", "tool"), Parameters().changed(parameters))


def pose(arm, link, frame="", **moved):
    """Return a request for the pose of a link with some joints moved, in a frame at CURRENT."""
    T = arm.tree.pose(link, {**CURRENT, **moved})
    if frame:
        T = np.linalg.inv(arm.tree.pose(frame, CURRENT)) @ T
    stamped = PoseStamped(pose=pose_from_matrix(T))
    stamped.header.frame_id = frame
    return stamped


def answer_ik(message, arm, current, frames):
    request = read_ik_request(message, arm)
    return finished(ik_slices(request, current, frames, request.timeout))


def ask(arm, stamped=None, frames=None, current=CURRENT, **fields):
    request = PositionIKRequest(timeout=Duration(sec=2), **fields)
    if stamped is not None:
        request.pose_stamped = stamped
    return answer_ik(request, arm, current, frames or Frames())


def values(answer):
    state = answer.response.solution.joint_state
    return dict(zip(state.name, state.position, strict=True))


def refusal(code, words, call, *arguments, **fields):
    with pytest.raises(DlsIkError, match=words) as caught:
        call(*arguments, **fields)
    assert code_of(caught.value) is code
