# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Clients of a running node or of move_group: send IK and FK requests, and streams of targets."""

from dls_ik.ros.client.connection import (
    ClientStartError,
    NoAnswerError,
    NotSpunError,
    ServiceMissingError,
)
from dls_ik.ros.client.ik_client import FkAnswer, IkAnswer, IkClient, Pending
from dls_ik.ros.client.target_publisher import TargetPublisher, stream_poses, stream_twist

__all__ = [
    "ClientStartError",
    "FkAnswer",
    "IkAnswer",
    "IkClient",
    "NoAnswerError",
    "NotSpunError",
    "Pending",
    "ServiceMissingError",
    "TargetPublisher",
    "stream_poses",
    "stream_twist",
]
