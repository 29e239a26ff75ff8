"""What services answer, as Python has it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import JointValueError
from dls_ik.model.names import listing
from dls_ik.ros.conversions import matrix_from_pose

SUCCESS = 1  # of moveit_msgs/msg/MoveItErrorCodes


class IkAnswer(NamedTuple):
    """Joint values for a pose, or why there are none; true as a condition if it is a success."""

    success: bool
    q: dict[str, float]  # [rad or m] by joint, of the whole robot; empty without success
    code: int  # of moveit_msgs/msg/MoveItErrorCodes
    message: str  # empty from servers older than the field
    response: Any  # as it came, moveit_msgs/srv/GetPositionIK response

    def __bool__(self) -> bool:
        """Return `success`."""
        return self.success

    def array(self, joint_names: Sequence[str]) -> Array:
        """(n,) the values of these joints [rad or m].

        Raises:
            JointValueError: the answer has no such joint.
        """
        missing = [name for name in joint_names if name not in self.q]
        if missing:
            raise JointValueError(
                f"the answer has no joint {missing[0]!r}; it has {listing(self.q) or 'none'}"
            )
        return np.array([self.q[name] for name in joint_names])


class FkAnswer(NamedTuple):
    """Poses of links, or why there are none; true as a condition if it is a success."""

    success: bool
    poses: dict[str, Array]  # (4, 4) T_frame_link by link; empty without success
    frame: str
    code: int
    message: str
    response: Any  # as it came, moveit_msgs/srv/GetPositionFK response

    def __bool__(self) -> bool:
        """Return `success`."""
        return self.success


def ik_answer(response: Any) -> IkAnswer:
    """Read the response of a ``moveit_msgs/srv/GetPositionIK``."""
    code, message = _verdict(response)
    state = response.solution.joint_state
    found = dict(zip(state.name, state.position, strict=False)) if code == SUCCESS else {}
    return IkAnswer(code == SUCCESS, found, code, message, response)


def fk_answer(response: Any) -> FkAnswer:
    """Read the response of a ``moveit_msgs/srv/GetPositionFK``."""
    code, message = _verdict(response)
    stamped = response.pose_stamped if code == SUCCESS else []
    pairs = zip(response.fk_link_names, stamped, strict=False)
    poses = {link: matrix_from_pose(each.pose) for link, each in pairs}
    frame = stamped[0].header.frame_id if stamped else ""
    return FkAnswer(code == SUCCESS, poses, frame, code, message, response)


def _verdict(response: Any) -> tuple[int, str]:
    error_code = response.error_code
    return int(error_code.val), str(getattr(error_code, "message", ""))
