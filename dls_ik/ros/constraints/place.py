"""Where the links and frames of a request stand, seen from the base of a chain."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from geometry_msgs.msg import PoseStamped

from dls_ik.core.types import Array
from dls_ik.model.names import listing, quoted
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, bare
from dls_ik.ros.services.codes import Code, RequestError


class Place(NamedTuple):
    """A robot in the state of a request."""

    arm: Arm
    frames: Frames
    values: Mapping[str, float]  # by joint
    base: str  # link

    def pose(self, header: Any, pose: Any, words: str) -> Array:
        """(4, 4) T_base_pose of a ``geometry_msgs/Pose`` in the frame of a header.

        Raises:
            RequestError: an unknown frame, or a pose that is not valid; with the words.
        """
        stamped = PoseStamped(header=header, pose=pose)
        try:
            T = self.frames.pose_in_root(stamped, self.arm.tree, self.values, at_stamp=True)
        except RequestError as error:
            is_frame = error.code is Code.FRAME_TRANSFORM_FAILURE
            code = error.code if is_frame else Code.INVALID_GOAL_CONSTRAINTS
            raise RequestError(code, f"{words}: {error}") from error
        return self.arm.base_from_root(T, self.base, self.values)

    def link(self, link: str) -> Array:
        """(4, 4) T_base_link."""
        T_root_link = self.arm.tree.pose(link, self.values)
        return self.arm.base_from_root(T_root_link, self.base, self.values)

    def checked_link(self, name: str, words: str) -> str:
        """The name of a link.

        Raises:
            RequestError: it has no such link.
        """
        link, links = bare(name), self.arm.tree.links
        if link not in self.arm.tree.below:
            raise RequestError(
                Code.INVALID_LINK_NAME,
                f"{words}: unknown link {quoted(name)}; links: {listing(links)}",
            )
        return link


def invalid(message: str) -> RequestError:
    """A constraint that has no meaning, or none here."""
    return RequestError(Code.INVALID_GOAL_CONSTRAINTS, message)
