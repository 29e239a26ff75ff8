"""Asking for kinematics and sending targets from Python: to this node, and to move_group."""

from dls_ik.ros.client.connection import (
    ClientStartError,
    NoAnswerError,
    NotSpunError,
    ServiceMissingError,
)
from dls_ik.ros.client.ik_client import IkClient, Pending
from dls_ik.ros.client.messages import FkAnswer, IkAnswer
from dls_ik.ros.client.streamer import Streamer

__all__ = [
    "ClientStartError",
    "FkAnswer",
    "IkAnswer",
    "IkClient",
    "NoAnswerError",
    "NotSpunError",
    "Pending",
    "ServiceMissingError",
    "Streamer",
]
