"""Exceptions of the package.

Misuse raises; non-convergence is data (see :class:`dls_ik.IkResult`). Each message says what was
given and what is valid.
"""

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
