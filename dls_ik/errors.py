# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package, and the error codes of its services.

Misuse raises an error; non-convergence is part of the result (see :class:`dls_ik.IkResult`). Each
message states the given value and the valid values.
"""

import enum
from collections.abc import Sequence
from typing import Any


class DlsIkError(Exception):
    """Base class of all errors of this package."""


class RobotModelError(DlsIkError):
    """A robot description without a usable robot."""


class ChainError(RobotModelError):
    """A base and tip that do not span a chain with moving joints."""


class AmbiguousTipError(ChainError):
    """An unspecified tip for which several links are possible.

    Attributes:
        tips: The names of the possible links.
    """

    def __init__(self, message: str, tips: Sequence[str]) -> None:
        super().__init__(message)
        self.tips = tuple(tips)


class LimitsError(DlsIkError):
    """Two limit intervals without a common value; the message states both."""


class SceneError(DlsIkError):
    """Collision geometry, or a description of a scene, that cannot be used."""


class ScenePendingError(SceneError):
    """A scene that is still being prepared; the caller can try again later."""


class MethodError(DlsIkError):
    """A method name, or a parameter of a method, that is not valid."""


class OptionError(DlsIkError):
    """An option of the solver or of the servo that is unknown or out of range."""


class PoseError(DlsIkError):
    """A pose that is not a finite rigid transform."""


class BatchInterrupted(KeyboardInterrupt):
    """Ctrl-C while a batch is solved; like every KeyboardInterrupt it ends programs by default.

    Attributes:
        result: The :class:`dls_ik.IkBatchResult`; the status of unfinished rows is
            ``INTERRUPTED``.
    """

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted; .result has the rows that were finished")
        self.result = result


class JointValueError(DlsIkError):
    """Joint positions of the wrong length, or not finite."""


class StaleTargetError(DlsIkError):
    """A target whose stamp is too old or in the future."""


class HeldError(DlsIkError):
    """A target rejected because the controller is paused or has a fault."""


# Codes of the services of the node


class Code(enum.IntEnum):
    """Values of ``moveit_msgs/msg/MoveItErrorCodes``; older versions lack some of the names."""

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
    """A rejected request, or a request without a solution, with the code of the response."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class FrameError(DlsIkError):
    """A frame that neither the robot nor tf2 knows."""


def code_of(error: Exception) -> Code:
    """Return the code of the service response for an error."""
    if isinstance(error, RequestError):
        return error.code
    if isinstance(error, FrameError):
        return Code.FRAME_TRANSFORM_FAILURE
    return Code.GOAL_STATE_INVALID if isinstance(error, PoseError) else Code.FAILURE
