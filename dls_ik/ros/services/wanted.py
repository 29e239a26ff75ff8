"""Which links a request wants where."""

from typing import Any, NamedTuple

from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.frames import strip_slash


class Wanted(NamedTuple):
    """Links, and a pose for each."""

    links: tuple[str, ...]  # (k,); one empty name is the tip
    poses: tuple[Any, ...]  # (k,) of geometry_msgs/PoseStamped


def wanted(request: Any) -> Wanted:
    """Which poses and links of a ``moveit_msgs/PositionIKRequest`` count, as for move_group.

    Raises:
        RequestError: not as many links as poses.
    """
    poses, links = request.pose_stamped_vector, request.ik_link_names
    if not poses:
        return Wanted((strip_slash(request.ik_link_name),), (request.pose_stamped,))
    if len(poses) == 1:
        return Wanted((strip_slash(links[0]) if links else "",), tuple(poses))
    if len(poses) != len(links):
        raise RequestError(
            Code.INVALID_LINK_NAME,
            f"{len(poses)} poses need as many ik_link_names, given {len(links)}",
        )
    return Wanted(tuple(map(strip_slash, links)), tuple(poses))
