"""Error codes of the services, and the errors that messages and requests are refused with."""

import enum

from dls_ik.errors import DlsIkError, PoseError


class Code(enum.IntEnum):
    """Values of ``moveit_msgs/msg/MoveItErrorCodes``; older versions of it lack some names."""

    SUCCESS = 1
    TIMED_OUT = -6
    INVALID_GROUP_NAME = -15
    INVALID_GOAL_CONSTRAINTS = -16
    INVALID_ROBOT_STATE = -17
    INVALID_LINK_NAME = -18
    FRAME_TRANSFORM_FAILURE = -21
    GOAL_STATE_INVALID = -27
    NO_IK_SOLUTION = -31
    FAILURE = 99999


class RequestError(DlsIkError):
    """A request that is refused or has no solution; carries the code of the response."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class FrameError(DlsIkError):
    """A frame that neither the robot nor tf2 knows."""


def code_of(error: Exception) -> Code:
    """Return the code that a service answers with after an error."""
    if isinstance(error, RequestError):
        return error.code
    if isinstance(error, FrameError):
        return Code.FRAME_TRANSFORM_FAILURE
    return Code.GOAL_STATE_INVALID if isinstance(error, PoseError) else Code.FAILURE
