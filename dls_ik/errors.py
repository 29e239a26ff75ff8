# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package, and the error codes of its services.

Misuse raises; non-convergence is data (see :class:`dls_ik.IkResult`). Each message says what was
given and what is valid.
"""

import enum
from collections.abc import Sequence
from typing import Any


class DlsIkError(Exception):
    """Root of all errors of this package."""


class RobotModelError(DlsIkError):
    """A robot description without a usable robot."""


class ChainError(RobotModelError):
    """A base and tip that do not span a chain with moving joints."""


class AmbiguousTipError(ChainError):
    """Several links could be the tip, and none was named.

    Attributes:
        tips: The names of those links.
    """

    def __init__(self, message: str, tips: Sequence[str]) -> None:
        super().__init__(message)
        self.tips = tuple(tips)


class LimitsError(DlsIkError):
    """Limits without a common value; the message has both intervals."""


class SceneError(DlsIkError):
    """Collision geometry, or a description of a scene, that cannot be used."""


class ScenePendingError(SceneError):
    """A scene that is being prepared, and will be there without a change of anything."""


class MethodError(DlsIkError):
    """A method name, or a parameter of a method, that is not valid."""


class OptionError(DlsIkError):
    """An option of the solver or of the servo that is unknown or out of range."""


class PoseError(DlsIkError):
    """A pose that is not a finite rigid transform."""


class BatchInterrupted(KeyboardInterrupt):
    """Ctrl-C while a batch was solved; a KeyboardInterrupt, which ends programs by default.

    Attributes:
        result: The :class:`dls_ik.IkBatchResult` with all that was finished; rows that were not
            are ``INTERRUPTED``.
    """

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted; .result has the rows that were finished")
        self.result = result


class JointValueError(DlsIkError):
    """Joint values of the wrong length, or not finite."""


class StaleTargetError(DlsIkError):
    """A target that is too old, or from the future, by its stamp."""


class HeldError(DlsIkError):
    """Targets are refused: the controller is paused, or has a fault."""


# Codes of the services of the node


class Code(enum.IntEnum):
    """Values of ``moveit_msgs/msg/MoveItErrorCodes``; older versions of it lack some names."""

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
