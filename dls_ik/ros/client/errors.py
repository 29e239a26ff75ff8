"""What keeps a client from an answer."""

from dls_ik.exceptions import DlsIkError


class ServiceMissingError(DlsIkError):
    """Nobody serves what is asked for; the message names it, and what is there instead."""


class NoAnswerError(DlsIkError):
    """A service took a request, and did not answer in time."""


class ClientStartError(DlsIkError):
    """ROS 2 cannot be joined from here; the message says why."""


class NotSpunError(DlsIkError):
    """A call that waits, on a node whose callbacks nobody runs."""


NOT_THERE = (ServiceMissingError, NoAnswerError, ClientStartError)  # what a command ends by
