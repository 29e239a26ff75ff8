"""The viewer's page attached to a running node: it shows what the node does, and sends targets."""

from dls_ik.ros.client.connection import NoAnswerError, ServiceMissingError
from dls_ik.ros.client.robot import Described
from dls_ik.ros.viewer.source import NodeSource

__all__ = ["Described", "NoAnswerError", "NodeSource", "ServiceMissingError"]
