"""Parameters of the node."""

from dls_ik.ros.parameters.parameters import DECLARED, Parameters

__all__ = ["DECLARED", "Parameters"]
