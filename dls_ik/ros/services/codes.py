"""What a service answers when it does not succeed; docs/services.md has the cases of each code."""

import enum
from typing import Any

from dls_ik.errors import DlsIkError


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
    """A request that is refused, or has no solution; carries the code of the answer."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


def fill_error_code(error_code: Any, code: Code, message: str, source: str) -> None:
    """Write a code, and the words to it where the message has fields for them (not on Humble)."""
    error_code.val = int(code)
    if hasattr(error_code, "message"):
        error_code.message = message
        error_code.source = source
