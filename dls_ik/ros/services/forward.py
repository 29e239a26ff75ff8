"""The answer to ``compute_fk``: a function of the request, the robot and its state."""

from collections.abc import Mapping
from typing import Any

from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK

from dls_ik.exceptions import ChainError
from dls_ik.model.rigid import inverse
from dls_ik.ros.arm import Arm
from dls_ik.ros.conversions import pose_from_matrix
from dls_ik.ros.frames import Frames, bare
from dls_ik.ros.services.codes import Code, RequestError
from dls_ik.ros.services.inverse import Answer
from dls_ik.ros.services.state import overlaid


def answer_fk(request: Any, arm: Arm, current: Mapping[str, float], frames: Frames) -> Answer:
    """The poses of links, in the frame that the header of the request names; empty: the root.

    Args:
        request: ``moveit_msgs/srv/GetPositionFK`` request; without links it is about the tip.
        current: the joint values that the state of the request overlays.

    Raises:
        RequestError: a request that is not valid.
    """
    links = list(request.fk_link_names) or [arm.robot.tip]
    _check_links(links, arm)
    state = overlaid(arm.tree, current, request.robot_state.joint_state)
    frame = bare(request.header.frame_id) or arm.tree.root
    T_frame_root = inverse(frames.T_root_frame(frame, arm.tree, state.values))
    response = GetPositionFK.Response(fk_link_names=links)
    for link in links:
        T_frame_link = T_frame_root @ arm.tree.pose(link, state.values)
        stamped = PoseStamped(pose=pose_from_matrix(T_frame_link))
        stamped.header.frame_id = frame
        response.pose_stamped.append(stamped)
    return Answer(response, state.note)


def _check_links(links: list[str], arm: Arm) -> None:
    try:
        for link in links:
            arm.tree.require(link)
    except ChainError as error:
        raise RequestError(Code.INVALID_LINK_NAME, str(error)) from error
