# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Two WAMs in one description, and requests to their node."""

import yaml
from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from robots import CONFIG, URDF
from ros_client import ENOUGH
from sensor_msgs.msg import JointState

from dls_ik import RobotModel
from dls_ik.model.rotations import inverse
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.ros.params import Parameters

ARGUMENTS = (
    "-p",
    f"robot:={URDF / 'two_wams.urdf'}",
    "--params-file",
    str(CONFIG / "moveit" / "ik_node.yaml"),
)
TIPS = ("left_wam_tip", "right_wam_tip")
BOTH = RobotModel.from_urdf(URDF / "two_wams.urdf", tip=TIPS)
TREE = BOTH.tree
BENT = (0.2, 0.5, -0.1, 1.6, 0.3, -0.4, 0.6)
CURRENT = {f"{side}_wam_j{i + 1}": BENT[i] for side in ("left", "right") for i in range(7)}


def place(link, frame="", **moved):
    """Return a stamped pose of a link with some joints moved, in a frame of the arms at CURRENT."""
    T = TREE.pose(link, {**CURRENT, **moved})
    if frame:
        T = inverse(TREE.pose(frame, CURRENT)) @ T
    stamped = PoseStamped(pose=pose_from_matrix(T))
    stamped.header.frame_id = frame
    return stamped


def joint_state(values=CURRENT):
    return JointState(name=list(values), position=list(map(float, values.values())))


def request(stamped=None, values=CURRENT, **fields):
    """A request for IK: a pose, the joints at CURRENT, and a timeout for a busy machine."""
    whole = GetPositionIK.Request()
    asked = whole.ik_request
    asked.robot_state.joint_state = joint_state(values)
    asked.timeout.sec = 10
    if stamped is not None:
        asked.pose_stamped = stamped
    for name, value in fields.items():
        setattr(asked, name, value)
    return whole


def fk_request(links, frame="", values=CURRENT):
    whole = GetPositionFK.Request(fk_link_names=list(links))
    whole.header.frame_id = frame
    whole.robot_state.joint_state = joint_state(values)
    return whole


def send(client, whole):
    """Return the response of a service; repeat an IK request that times out before it starts."""
    if isinstance(whole, GetPositionIK.Request) and whole.ik_request.timeout.sec < ENOUGH:
        return client.call_in_time(GetPositionIK, "compute_ik", whole)
    return send_once(client, whole)


def send_once(client, whole):
    """Return the response of the service of a request."""
    if isinstance(whole, GetPositionIK.Request):
        return client.call(GetPositionIK, "compute_ik", whole)
    return client.call(GetPositionFK, "compute_fk", whole)


def robot_and_parameters():
    """Return the robot and the parameters of the node."""
    file = yaml.safe_load((CONFIG / "moveit" / "ik_node.yaml").read_text())
    given = dict(flat(file["/**"]["ros__parameters"]))
    parameters = Parameters().changed(given)
    return RobotModel.from_tree(TREE, *parameters.ends()), parameters


def flat(values, prefix=""):
    """Return the parameters of a file by their full names."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


# Good requests, and likely words, of which fields at any depth are changed.
NAMES = ("", "/", *TIPS, "base", "left_arm", "both_arms", "left_wam_j2", "right_wam_link4", "table")
GOOD = (
    request(place(TIPS[0], left_wam_j2=0.7)),
    request(
        group_name="both_arms",
        ik_link_names=list(TIPS),
        pose_stamped_vector=[place(tip, "base", right_wam_j4=1.4) for tip in TIPS],
    ),
    fk_request(TIPS, "left_wam_link4"),
)
