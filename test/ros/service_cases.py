# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cases of docs/lab/error_codes.md: for each a request to the node with two WAMs, its answer."""

import math
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseStamped, Quaternion
from ros_arms import CURRENT, TIPS, fk_request, place, request
from ros_constraints import joint, orientation, position, primitive, together, visibility

from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix

LEFT, RIGHT = TIPS
REACHED = place(LEFT, left_wam_j2=0.7)
TURNED = matrix_from_pose(REACHED.pose)[:3, :3]
# Where the tip is when the arm is stretched out, but turned upside down.
AWRY = place(LEFT, left_wam_j2=1.2, left_wam_j4=0.05)
AWRY.pose.orientation = Quaternion(x=1.0, w=0.0)


def constrained(*given, stamped=REACHED):
    return request(stamped, constraints=together(*given))


AROUND = place("left_wam_link4", left_wam_j2=0.7)  # unconstrained elbow pose
ELSEWHERE = place("left_wam_link4")
ELSEWHERE.pose.position.x = 30.0
UPRIGHT = np.eye(3)
BALL = primitive(2, 0.2)


def elbow(primitives=(BALL,), poses=(AROUND,), link="left_wam_link4", **fields):
    return constrained(position(link, primitives, [each.pose for each in poses], **fields))


CONSTRAINED = {
    "a joint within its constraint": (constrained(joint("left_wam_j1", 0.2)), "solved to"),
    "a joint constraint beyond the limits": (
        constrained(joint("left_wam_j1", 9.0)),
        r"\[-2.6, 2.6\].*\[8.9, 9.1\]",
    ),
    "a joint constraint on a joint that is not solved for": (
        constrained(joint("right_wam_j1", 1.0)),
        "'right_wam_j1' is at 0.2, outside ",
    ),
    "a joint constraint of an unknown joint": (
        constrained(joint("hand", 0.0)),
        "'hand'; joints: left_wam_j1",
    ),
    "a joint constraint with NaN or a tolerance below 0": (
        constrained(joint("left_wam_j1", 0.2, -1.0)),
        "tolerance_below .*at least 0; got .*-1",
    ),
    "a pose within its orientation constraint": (
        constrained(orientation(LEFT, TURNED, (0.1, 0.1, 0.1))),
        "solved to",
    ),
    "a pose outside of its orientation constraint": (
        constrained(orientation(LEFT, UPRIGHT, (0.2, 0.2, math.pi))),
        "orientation differs",
    ),
    "a position, with any orientation": (
        constrained(orientation(LEFT, UPRIGHT, [math.pi] * 3), stamped=AWRY),
        "orientation differs",
    ),
    "an orientation constraint with a tolerance below 0, or of no parameterization": (
        constrained(orientation(LEFT, UPRIGHT, (1, 1, 1), parameterization=2)),
        "Euler.*got 2",
    ),
    "a position constraint of an elbow": (elbow(), "solved to"),
    "a position constraint of a union": (elbow([BALL] * 2, [ELSEWHERE, AROUND]), "solved to"),
    "a position constraint that the pose is outside of": (
        elbow(link=LEFT, poses=[ELSEWHERE]),
        "the requested pose of link 'left_wam_tip' violates",
    ),
    "a constraint on a link that does not move": (
        elbow(link="right_wam_link4"),
        "no joint that is solved for moves the link",
    ),
    "a constraint of an unknown link": (elbow(link="hand"), "'hand'; links: base"),
    "a constraint in an unknown frame": (elbow(frame="table"), "link4.*'table'"),
    "a region without primitives, or of other numbers of poses": (
        elbow(poses=[]),
        "1 primitives need as many primitive_poses; got 0",
    ),
    "a region with a length not above 0": (
        elbow([primitive(2, 0.0)]),
        "radius, lengths above 0",
    ),
    "a cone, or a mesh": (elbow([primitive(4, 1, 1)]), "type 4 are not supported; give .*box"),
    "a visibility constraint": (constrained(visibility()), "visibility.*give joint"),
    "more constraints than 16 on links": (
        constrained(*[orientation(LEFT, UPRIGHT, (1, 1, 1))] * 17),
        "at most 16 .* got 17",
    ),
}
TWO = [place(LEFT, left_wam_j2=0.7), place(RIGHT, right_wam_j4=1.4)]


class Case(NamedTuple):
    request: Any
    words: str = ""  # a regular expression of the message
    parameters: tuple[tuple[str, Any], ...] = ()  # parameters of the node


def moved(stamped, **fields):
    """A pose elsewhere, or turned: ``position_x=1.0``."""
    copy = deepcopy(stamped)
    for name, value in fields.items():
        part, axis = name.split("_")
        setattr(getattr(copy.pose, part), axis, float(value))
    return copy


def framed(stamped, frame):
    copy = deepcopy(stamped)
    copy.header.frame_id = frame
    return copy


def several(poses, links, **fields):
    return request(pose_stamped_vector=poses, ik_link_names=links, **fields)


def timed(seconds, stamped=REACHED):
    whole = request(stamped)
    whole.ik_request.timeout.sec = math.floor(seconds)
    whole.ik_request.timeout.nanosec = round(seconds % 1.0 * 1e9)
    return whole


def unequal():
    whole = request(REACHED)
    whole.ik_request.robot_state.joint_state.position = [0.1]
    return whole


def longer(stamped, factor):
    o = stamped.pose.orientation
    return moved(stamped, **{f"orientation_{axis}": factor * getattr(o, axis) for axis in "xyzw"})


NO_TURN = {f"orientation_{axis}": 0.0 for axis in "xyzw"}
BESIDE = moved(REACHED, position_x=math.nan)
# Where the last link is in the foot.
FOLDED = (-0.2, 2.0, 0.2, 2.8, 1.1, -0.8, -1.0)
INSIDE = place(LEFT, **{f"left_wam_j{i + 1}": q for i, q in enumerate(FOLDED)})
FAR = moved(REACHED, position_x=30.0)
WRONG = {**CURRENT, "left_wam_j2": math.inf}
PARTIAL = {"left_wam_j4": 1.2}
FOREIGN = {**CURRENT, "gripper": math.nan}
CASES = {
    "a pose that the tip reaches": Case(request(REACHED, group_name="left_arm"), "solved to"),
    "an unknown group": Case(
        request(REACHED, group_name="hand"), "'hand'; known: left_arm, right_arm, both_arms"
    ),
    "no group": Case(request(REACHED), "solved to"),
    "a link attached to the tip": Case(
        request(place("left_wam_link7"), ik_link_name="left_wam_link7")
    ),
    "a link with a slash before it": Case(request(REACHED, ik_link_name="/left_wam_tip")),
    "a link that moves, but not with the tip": Case(
        request(place("right_wam_link4"), ik_link_name="right_wam_link4", group_name="left_arm")
    ),
    "an unknown link": Case(request(REACHED, ik_link_name="hand"), "'hand'; links: left_wam_base"),
    "a link that never moves": Case(
        request(REACHED, ik_link_name="left_wam_base"), "'left_wam_base'.*no moving joint"
    ),
    "a pose for each of several links": Case(several(TWO, TIPS, group_name="both_arms")),
    "a pose for one link of a group with several tips": Case(
        request(REACHED, ik_link_name=LEFT, group_name="both_arms")
    ),
    "a pose for no link of a group with several tips": Case(
        request(REACHED, group_name="both_arms"), "several tips; give ik_link_names: left_wam_tip"
    ),
    "fewer links than poses": Case(several(TWO, [LEFT]), "2 poses .* got 1"),
    "a link given twice": Case(several(TWO, [LEFT, LEFT]), "'left_wam_tip' is given twice"),
    "two links attached to each other": Case(
        several(TWO, [LEFT, "left_wam_link7"]), "rigidly attached"
    ),
    "a frame of the robot": Case(request(place(LEFT, "right_wam_link4", left_wam_j2=0.7))),
    "an unknown frame, or none at the stamp": Case(
        request(framed(REACHED, "table")), "'table': .*'base'"
    ),
    "a pose with NaN or infinity": Case(request(BESIDE), "position .*nan"),
    "a quaternion of zeros": Case(request(moved(REACHED, **NO_TURN)), "must not be zero"),
    "a quaternion of another length": Case(request(longer(REACHED, 1.01))),
    "a state with some of the joints": Case(request(REACHED, PARTIAL)),
    "an empty state": Case(request(REACHED, {})),
    "joints that the robot lacks": Case(request(REACHED, FOREIGN)),
    "a state with NaN or infinity": Case(request(REACHED, WRONG), "'left_wam_j2'.*inf"),
    "more names than positions": Case(unequal(), "14 joint names and 1 positions; give"),
    **{name: Case(*case) for name, case in CONSTRAINED.items()},
    "collisions to avoid": Case(request(REACHED, avoid_collisions=True)),
    "a pose that is reached only in collision": Case(
        request(INSIDE, avoid_collisions=True), "only in collision, most often of"
    ),
    "collisions that are not asked about, with `always`": Case(
        request(INSIDE), "only in collision", (("avoid_collisions", "always"),)
    ),
    "collisions to avoid, with `ignore`": Case(
        request(INSIDE, avoid_collisions=True), "solved to", (("avoid_collisions", "ignore"),)
    ),
    "a pose out of reach": Case(request(FAR), "no configuration .* closest configuration"),
    "a pose not found in time": Case(timed(0.1), "within the timeout"),
    "a time below zero, or a second or more of nanoseconds": Case(timed(-1.0), "sec = -1"),
    "FK of links, in a frame of the robot": Case(
        fk_request([RIGHT, "base", RIGHT], "left_wam_link4")
    ),
    "FK of no links": Case(fk_request([]), "1 pose in"),
    "FK of unknown links": Case(fk_request([LEFT, "hand", "foot"]), "'hand', 'foot'; links"),
    "FK in an unknown frame": Case(fk_request([LEFT], "table"), "'table'"),
    "FK of a state with NaN or infinity": Case(fk_request([LEFT], values=WRONG), "left_wam_j2"),
}


def out_of_grasp_of_the_left():
    """A pose in the base of the left arm that takes all its time."""
    from out_of_grasp import out_of_grasp
    from ros_wam import WAM

    stamped = PoseStamped(pose=pose_from_matrix(out_of_grasp(WAM, np.random.default_rng(1))))
    stamped.header.frame_id = "left_wam_base"
    return stamped
