"""Where frames are: the root, links of the robot, and whatever tf2 knows."""

from collections.abc import Callable, Mapping
from typing import Any

from dls_ik.core.types import Array
from dls_ik.model.tree import Tree
from dls_ik.ros.bounded import MAX_NAME
from dls_ik.ros.conversions import matrix_from_pose
from dls_ik.ros.services.codes import Code, RequestError
from dls_ik.text import listing, quoted

# (4, 4) T_target_source at a builtin_interfaces/Time, None and zero are the latest; a LookupError
# says why there is none.
Lookup = Callable[[str, str, Any], Array]


def no_tf2(target: str, source: str, stamp: Any) -> Array:
    """The lookup where tf2 is not installed."""
    raise LookupError("tf2_ros is not installed, so other frames are not known")


class Frames:
    """Finds frames by name, first in the robot, then by a lookup."""

    def __init__(self, lookup: Lookup = no_tf2) -> None:
        self._lookup = lookup

    def pose_in_root(
        self, stamped: Any, tree: Tree, values: Mapping[str, float], at_stamp: bool = False
    ) -> Array:
        """(4, 4) of a ``geometry_msgs/PoseStamped`` in the root frame; links stand at `values`.

        Args:
            at_stamp: frames that are not of the robot are where they were at the stamp, not latest.

        Raises:
            RequestError: an unknown frame, or a pose that is not valid.
        """
        T_frame_pose = matrix_from_pose(stamped.pose)
        frame = bare(stamped.header.frame_id)
        if frame in ("", tree.root):
            return T_frame_pose
        stamp = stamped.header.stamp if at_stamp else None
        return self.T_root_frame(frame, tree, values, stamp) @ T_frame_pose

    def T_root_frame(
        self, frame: str, tree: Tree, values: Mapping[str, float], stamp: Any = None
    ) -> Array:
        """(4, 4) pose of a frame in the root frame.

        Args:
            stamp: when, a ``builtin_interfaces/Time``, of a frame not of the robot; zero: latest.

        Raises:
            RequestError: an unknown frame; the message lists those of the robot.
        """
        frame = bare(frame) or tree.root
        if frame in tree.child_joints:
            return tree.pose(frame, values)
        try:
            if len(frame) > MAX_NAME:
                raise LookupError(f"names have at most {MAX_NAME} characters")
            return self._lookup(tree.root, frame, stamp)
        except LookupError as error:
            raise RequestError(
                Code.FRAME_TRANSFORM_FAILURE,
                f"unknown frame {quoted(frame)}: {error}; empty is the root {tree.root!r}, links "
                f"of the robot: {listing(tree.links)}",
            ) from error


def bare(frame: str) -> str:
    """The name of a frame without the slash that old programs put first."""
    return frame.removeprefix("/")
