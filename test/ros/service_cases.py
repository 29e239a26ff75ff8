"""The cases of docs/services.md: for each a request to the node with two WAMs, and its answer."""

import math
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from constraint_cases import CONSTRAINED
from geometry_msgs.msg import PoseStamped
from ros_arms import CURRENT, TIPS, fk_request, place, request

REACHED = place("left_wam_tip", left_wam_j2=0.7)
LEFT, RIGHT = TIPS
TWO = [place(LEFT, left_wam_j2=0.7), place(RIGHT, right_wam_j4=1.4)]


class Case(NamedTuple):
    request: Any
    words: str = ""  # a regular expression of the message
    parameters: tuple[tuple[str, Any], ...] = ()  # of the node meanwhile


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
        request(REACHED, group_name="both_arms"), "several tips, name links: left_wam_tip"
    ),
    "fewer links than poses": Case(several(TWO, [LEFT]), "2 poses .* given 1"),
    "a link given twice": Case(several(TWO, [LEFT, LEFT]), "'left_wam_tip' is given twice"),
    "two links attached to each other": Case(
        several(TWO, [LEFT, "left_wam_link7"]), "rigidly attached"
    ),
    "a frame of the robot": Case(request(place(LEFT, "right_wam_link4", left_wam_j2=0.7))),
    "an unknown frame, or none at the stamp": Case(
        request(framed(REACHED, "table")), "'table': .*'base'"
    ),
    "a pose with NaN or infinity": Case(request(BESIDE), "position .*nan"),
    "a quaternion of zeros": Case(request(moved(REACHED, **NO_TURN)), "no direction"),
    "a quaternion of another length": Case(request(longer(REACHED, 1.01))),
    "a state with some of the joints": Case(request(REACHED, PARTIAL)),
    "an empty state": Case(request(REACHED, {})),
    "joints that the robot lacks": Case(request(REACHED, FOREIGN)),
    "a state with NaN or infinity": Case(request(REACHED, WRONG), "'left_wam_j2'.*inf"),
    "more names than positions": Case(unequal(), "14 names and 1 positions, so it is not used"),
    **{name: Case(*case) for name, case in CONSTRAINED.items()},
    "collisions to avoid": Case(request(REACHED, avoid_collisions=True)),
    "collisions to avoid, with `refuse`": Case(
        request(REACHED, avoid_collisions=True),
        "cannot see collisions",
        (("avoid_collisions", "refuse"),),
    ),
    "a pose out of reach": Case(request(FAR), "no configuration .* nearest"),
    "a pose not found in time": Case(timed(0.1), "within the timeout"),
    "a time below zero": Case(timed(-1.0), "timeout .* not -1"),
    "FK of links, in a frame of the robot": Case(
        fk_request([RIGHT, "base", RIGHT], "left_wam_link4")
    ),
    "FK of no links": Case(fk_request([]), "1 poses in"),
    "FK of unknown links": Case(fk_request([LEFT, "hand", "foot"]), "'hand', 'foot'; links"),
    "FK in an unknown frame": Case(fk_request([LEFT], "table"), "'table'"),
    "FK of a state with NaN or infinity": Case(fk_request([LEFT], values=WRONG), "left_wam_j2"),
}


def out_of_grasp_of_the_left():
    """A pose in the base of the left arm that takes all its time."""
    from out_of_grasp import out_of_grasp
    from ros_wam import WAM

    from dls_ik.ros.frames import pose_from_matrix

    stamped = PoseStamped(pose=pose_from_matrix(out_of_grasp(WAM, np.random.default_rng(1))))
    stamped.header.frame_id = "left_wam_base"
    return stamped
