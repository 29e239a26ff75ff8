"""The cases of docs/services.md that have constraints: a request and words of its answer."""

import math

import numpy as np
from geometry_msgs.msg import Quaternion
from ros_arms import TIPS, place, request
from ros_constraints import joint, orientation, position, primitive, together, visibility

from dls_ik.ros.frames import matrix_from_pose

LEFT = TIPS[0]
REACHED = place(LEFT, left_wam_j2=0.7)
TURNED = matrix_from_pose(REACHED.pose)[:3, :3]
# Where the tip is when the arm is stretched out, but turned upside down.
AWRY = place(LEFT, left_wam_j2=1.2, left_wam_j4=0.05)
AWRY.pose.orientation = Quaternion(x=1.0, w=0.0)


def constrained(*given, stamped=REACHED):
    return request(stamped, constraints=together(*given))


AROUND = place("left_wam_link4", left_wam_j2=0.7)  # where the elbow is without a constraint
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
        "'right_wam_j1' is at 0.2, outside of",
    ),
    "a joint constraint of an unknown joint": (
        constrained(joint("hand", 0.0)),
        "'hand'; joints: left_wam_j1",
    ),
    "a joint constraint with NaN or a tolerance below 0": (
        constrained(joint("left_wam_j1", 0.2, -1.0)),
        "tolerances .* from 0 on.*-1",
    ),
    "a pose within its orientation constraint": (
        constrained(orientation(LEFT, TURNED, (0.1, 0.1, 0.1))),
        "solved to",
    ),
    "a pose outside of its orientation constraint": (
        constrained(orientation(LEFT, UPRIGHT, (0.2, 0.2, math.pi))),
        "orientation is not",
    ),
    "a position, with any orientation": (
        constrained(orientation(LEFT, UPRIGHT, [math.pi] * 3), stamped=AWRY),
        "orientation is not",
    ),
    "an orientation constraint with a tolerance below 0, or of no parameterization": (
        constrained(orientation(LEFT, UPRIGHT, (1, 1, 1), parameterization=2)),
        "Euler.*not 2",
    ),
    "a position constraint of an elbow": (elbow(), "solved to"),
    "a position constraint of a union": (elbow([BALL] * 2, [ELSEWHERE, AROUND]), "solved to"),
    "a position constraint that the pose is outside of": (
        elbow(link=LEFT, poses=[ELSEWHERE]),
        "the pose asked for of link 'left_wam_tip' is outside",
    ),
    "a constraint on a link that does not move": (
        elbow(link="right_wam_link4"),
        "no joint that is solved for moves the link",
    ),
    "a constraint of an unknown link": (elbow(link="hand"), "'hand'; links: base"),
    "a constraint in an unknown frame": (elbow(frame="table"), "link4.*'table'"),
    "a region without primitives, or of other numbers of poses": (
        elbow(poses=[]),
        "1 primitives need as many primitive_poses, not 0",
    ),
    "a region with a length not above 0": (elbow([primitive(2, 0.0)]), "above 0.*radius"),
    "a cone, or a mesh": (elbow([primitive(4, 1, 1)]), r"CONE \(4\) cannot.*BOX"),
    "a visibility constraint": (constrained(visibility()), "visibility.*obstacles"),
    "more constraints than 16 on links": (
        constrained(*[orientation(LEFT, UPRIGHT, (1, 1, 1))] * 17),
        "at most 16 .* not 17",
    ),
}
