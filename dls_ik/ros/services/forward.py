"""The answer to ``compute_fk``: a function of the request, the robot and its state."""

from collections.abc import Mapping
from typing import Any

from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK

from dls_ik.model.rotations import inverse
from dls_ik.model.tree import Tree
from dls_ik.ros.arm import Arm
from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.frames import Frames, pose_from_matrix, strip_slash
from dls_ik.ros.services.inverse import Answer
from dls_ik.ros.services.state import overlaid
from dls_ik.text import listing, quoted

MOST_LINKS = 1000  # of a request, for robots that have less


def answer_fk(request: Any, arm: Arm, current: Mapping[str, float], frames: Frames) -> Answer:
    """The poses of links, in the frame that the header of the request names; empty: the root.

    Without links it is the pose of the tip that follows targets.

    Args:
        request: ``moveit_msgs/srv/GetPositionFK`` request.
        current: the joint values that the state of the request overlays.

    Raises:
        RequestError: a request that is not valid.
    """
    asked = list(request.fk_link_names) or [arm.robot.tip]
    links = [strip_slash(link) for link in asked]
    _check_links(links, arm.tree)
    state = overlaid(arm.tree, current, request.robot_state)
    frame = strip_slash(request.header.frame_id) or arm.tree.root
    stamp = request.header.stamp
    T_frame_root = inverse(frames.T_root_frame(frame, arm.tree, state.values, stamp))
    poses = {link: T_frame_root @ arm.tree.pose(link, state.values) for link in set(links)}
    response = GetPositionFK.Response(fk_link_names=asked)
    for link in links:
        stamped = PoseStamped(pose=pose_from_matrix(poses[link]))
        stamped.header.frame_id = frame
        response.pose_stamped.append(stamped)
    found = f"{len(links)} poses in {quoted(frame)}"
    return Answer(response, f"{found}; {state.note}" if state.note else found)


def _check_links(links: list[str], tree: Tree) -> None:
    known, most = f"links: {listing(tree.links)}", max(MOST_LINKS, len(tree.links))
    if len(links) > most:
        words = f"at most {most} links in a request, given {len(links)}"
        raise RequestError(Code.INVALID_LINK_NAME, words)
    unknown = [link for link in dict.fromkeys(links) if link not in tree.child_joints]
    if unknown:
        words = f"unknown link {listing(map(quoted, unknown))}; {known}"
        raise RequestError(Code.INVALID_LINK_NAME, words)
