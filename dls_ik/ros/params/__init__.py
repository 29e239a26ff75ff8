"""Parameters of the nodes: how they are declared, which there are, and how they change."""

from dls_ik.ros.params.ik_node import DECLARED, Parameters

__all__ = ["DECLARED", "Parameters"]
