# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package, and the error codes of its services.

Invalid arguments raise an error. If a method does not converge, no error is raised; the result has
the status (see :class:`dls_ik.IkResult`). Each message states the given value and the valid values.
"""

import enum
from collections.abc import Sequence
from typing import Any


class DlsIkError(Exception):
    """Base class of all errors of this package."""


class RobotModelError(DlsIkError):
    """A robot description from which no robot can be made."""


class ChainError(RobotModelError):
    """A base link and a tip link with no movable joint between them."""


class AmbiguousTipError(ChainError):
    """A missing tip: no tip was given, and several links can be the tip.

    Attributes:
        tips: The names of the links that can be the tip.
    """

    def __init__(self, message: str, tips: Sequence[str]) -> None:
        super().__init__(message)
        self.tips = tuple(tips)


class LimitsError(DlsIkError):
    """Two intervals of limits that have no common value; the message states both intervals."""


class SceneError(DlsIkError):
    """Collision geometry that cannot be used, or a scene description that cannot be used."""


class ScenePendingError(SceneError):
    """A scene that is still being prepared; the caller can try again later."""


class MethodError(DlsIkError):
    """An invalid name of a method, or an invalid parameter of a method."""


class OptionError(DlsIkError):
    """An option of the solver or of the servo controller that is unknown or out of range."""


class PoseError(DlsIkError):
    """A pose that is not a finite rigid transform."""


class BatchInterrupted(KeyboardInterrupt):
    """Ctrl-C while a batch is solved; a KeyboardInterrupt, which ends a program if not caught.

    Attributes:
        result: The :class:`dls_ik.IkBatchResult` so far; unfinished rows have the status
            ``INTERRUPTED``.
    """

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted; .result has the rows that were finished")
        self.result = result


class JointValueError(DlsIkError):
    """Joint positions that have the wrong shape or are not finite."""


class StaleTargetError(DlsIkError):
    """A target whose stamp is too old or in the future."""


class HeldError(DlsIkError):
    """A target that is rejected because the controller is paused or has a fault."""


# Error codes in the responses of the node's services


class Code(enum.IntEnum):
    """Error codes of ``moveit_msgs/msg/MoveItErrorCodes``; older versions lack some constants."""

    SUCCESS = 1
    PLANNING_FAILED = -1
    TIMED_OUT = -6
    INVALID_GROUP_NAME = -15
    INVALID_GOAL_CONSTRAINTS = -16
    INVALID_ROBOT_STATE = -17
    INVALID_LINK_NAME = -18
    FRAME_TRANSFORM_FAILURE = -21
    COLLISION_CHECKING_UNAVAILABLE = -22
    GOAL_STATE_INVALID = -27
    NO_IK_SOLUTION = -31
    FAILURE = 99999


class RequestError(DlsIkError):
    """A request that is rejected or has no solution; the error has the code of the response."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class FrameError(DlsIkError):
    """A frame that neither the robot nor tf2 knows."""


def code_of(error: Exception) -> Code:
    """Return the error code of a service response for an exception."""
    if isinstance(error, RequestError):
        return error.code
    if isinstance(error, FrameError):
        return Code.FRAME_TRANSFORM_FAILURE
    return Code.GOAL_STATE_INVALID if isinstance(error, PoseError) else Code.FAILURE
