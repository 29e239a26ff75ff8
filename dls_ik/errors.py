# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Exceptions of the package, and the error codes of its services.

Invalid arguments raise an error, whose message gives the value and the valid values. If a solver
does not converge, no error is raised; the status of the result says so (see
:class:`dls_ik.IkResult`).
"""

import enum
from collections.abc import Sequence
from typing import Any


class DlsIkError(Exception):
    """Base class of all errors of this package."""


class RobotModelError(DlsIkError):
    """A robot description that is invalid, or that lacks data needed for a robot model."""


class ChainError(RobotModelError):
    """Links between which there is no valid chain, for example because no joint moves the tip."""


class AmbiguousTipError(ChainError):
    """No tip link was given, and the robot has several links that can be the tip.

    Attributes:
        tips: Names of links that can be the tip.
    """

    def __init__(self, message: str, tips: Sequence[str]) -> None:
        super().__init__(message)
        self.tips = tuple(tips)


class LimitsError(DlsIkError):
    """Joint limits that are invalid, or that have no value in common with the robot's limits."""


class SceneError(DlsIkError):
    """Collision geometry, or the description of a planning scene, that is invalid."""


class ScenePendingError(SceneError):
    """A planning scene that is still being prepared; the caller can try again later."""


class MethodError(DlsIkError):
    """An unknown name of an inverse kinematics method, or an invalid parameter of a method."""


class OptionError(DlsIkError):
    """An option of the solver or of the servo controller that is unknown or out of range."""


class PoseError(DlsIkError):
    """A pose that is not a finite rigid transform."""


class ChunkError(DlsIkError):
    """A long computation whose chunks cannot be computed, stored or resumed."""


class BatchInterrupted(KeyboardInterrupt):
    """KeyboardInterrupt (Ctrl-C) while a batch of poses is solved, with the result so far.

    Attributes:
        result: The :class:`dls_ik.IkBatchResult` so far. Rows that are not solved have the status
            ``INTERRUPTED``.
    """

    def __init__(self, result: Any) -> None:
        super().__init__("interrupted; .result has the rows that were finished")
        self.result = result


class JointValueError(DlsIkError):
    """Joint positions that have the wrong shape or are not finite."""


class StaleTargetError(DlsIkError):
    """A target message whose time stamp is too old or in the future."""


class HeldError(DlsIkError):
    """A target that the servo controller rejects, because it is paused or has a fault."""


# Error codes in the responses of the node's services


class Code(enum.IntEnum):
    """Error codes of ``moveit_msgs/msg/MoveItErrorCodes``.

    The codes are defined here, because older versions of the message lack some of the constants.
    """

    SUCCESS = 1
    PLANNING_FAILED = -1
    INVALID_MOTION_PLAN = -2
    MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE = -3
    CONTROL_FAILED = -4
    TIMED_OUT = -6
    PREEMPTED = -7
    START_STATE_IN_COLLISION = -10
    START_STATE_VIOLATES_PATH_CONSTRAINTS = -11
    GOAL_IN_COLLISION = -12
    GOAL_VIOLATES_PATH_CONSTRAINTS = -13
    INVALID_GROUP_NAME = -15
    INVALID_GOAL_CONSTRAINTS = -16
    INVALID_ROBOT_STATE = -17
    INVALID_LINK_NAME = -18
    FRAME_TRANSFORM_FAILURE = -21
    COLLISION_CHECKING_UNAVAILABLE = -22
    START_STATE_INVALID = -26
    GOAL_STATE_INVALID = -27
    NO_IK_SOLUTION = -31
    FAILURE = 99999


class RequestError(DlsIkError):
    """A service request that is rejected or has no solution.

    Args:
        code: Error code for the response to the request.
        message: Error message.
    """

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code


class FrameError(DlsIkError):
    """A name of a coordinate frame that neither the robot nor tf2 knows."""


def code_of(error: Exception) -> Code:
    """Return the error code for the response to a service request that raised an exception."""
    if isinstance(error, RequestError):
        return error.code
    if isinstance(error, FrameError):
        return Code.FRAME_TRANSFORM_FAILURE
    return Code.GOAL_STATE_INVALID if isinstance(error, PoseError) else Code.FAILURE
