"""Asking for kinematics from Python: this node, move_group, or whoever serves the same types."""

from dls_ik.ros.client.answers import FkAnswer, IkAnswer
from dls_ik.ros.client.client import IkClient
from dls_ik.ros.client.errors import NoAnswerError, NotSpunError, ServiceMissingError

__all__ = [
    "FkAnswer",
    "IkAnswer",
    "IkClient",
    "NoAnswerError",
    "NotSpunError",
    "ServiceMissingError",
]
